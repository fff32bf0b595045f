//! The environment of sessions and of code under test: built from nothing, so that no key of the person's shell gets there.

use std::fs;

use crate::fixture::Bench;

/// Typical keys in a shell, and ways to services with the person's rights.
const KEYS: [&str; 9] = [
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "DATABASE_URL",
    "NPM_TOKEN",
    "SSH_AUTH_SOCK",
    "KUBECONFIG",
];

/// Prints the names of all variables, each behind a word that says where.
const NAMES: &str = r#"awk 'BEGIN {for (name in ENVIRON) print "WHERE:" name}'"#;

fn names(place: &str) -> String {
    NAMES.replace("WHERE", place)
}

/// A project in which every place prints its variables, merged by two different programs.
fn keyed(config: &str) -> Bench {
    let liza = env!("CARGO_BIN_EXE_liza");
    let look =
        |place: &str| format!("{}\n\"{liza}\" check -- {}\n", names(place), names(&format!("{place}-check")));
    let coder = format!(
        "{}echo done > \"$1.txt\"; git add . && git commit -qm work\n\
         \"{liza}\" pre-check \"$1\" --intent \"do it\" --validation true\n\
         \"{liza}\" submit-for-review \"$1\" \"$(git rev-parse HEAD)\"; exit 42",
        look("coder")
    );
    let reviewer = format!(
        "{}\"{liza}\" submit-verdict \"$1\" APPROVED \"cat: the file is what the task asks for\"",
        look("reviewer")
    );
    // An entry with the name of a built-in program changes that one: the keys are those of Claude Code and of Codex.
    let bench = Bench::new(config, &[("claude", &coder), ("codex", &reviewer)]);
    bench.project.set_config("setup", &format!("{:?}", names("setup")));
    bench.project.write("scripts/integration-test.sh", &format!("#!/bin/sh\n{}\n", names("test")));
    bench.project.git(&["add", "scripts"]);
    bench.project.git(&["commit", "-qm", "test"]);
    bench.project.liza(&["sync"]).ok();
    bench.project.add_task("t1");
    bench
}

/// Runs an agent with all keys in the supervisor's environment.
fn run(bench: &Bench, role: &str, program: &str) {
    let mut command = bench.project.program();
    command.args(["agent", role, "--cli", program, "--once"]);
    for key in KEYS {
        command.env(key, format!("value-of-{key}"));
    }
    command.env("CARGO_TERM_QUIET", "false").env("LC_TIME", "C").env("MY_SERVICE", "here");
    let run = bench.project.run(&mut command);
    assert_eq!(run.code, 0, "{run:?}\n{}", bench.outputs());
}

/// Everything that was printed anywhere.
fn said(bench: &Bench) -> String {
    let logs = ["agent-outputs", "setup", "integration-tests"].map(|folder| bench.kept(folder));
    logs.iter().flatten().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Those of `names` that a place has.
fn found<'n>(said: &str, place: &str, names: &[&'n str]) -> Vec<&'n str> {
    assert!(said.lines().any(|line| line == format!("{place}:PATH")), "{place} has run:\n{said}");
    names.iter().copied().filter(|name| said.lines().any(|line| line == format!("{place}:{name}"))).collect()
}

const UNDER_TEST: [&str; 4] = ["coder-check", "reviewer-check", "setup", "test"];

/// Covers: RO-02
#[test]
fn a_session_has_the_key_of_its_program_and_code_under_test_has_none() {
    // In a room, without one, and on the oldest kernel that is still confined.
    let levels =
        [("isolated", ""), ("restricted", "sandbox_max_abi: 100"), ("unenforced", "sandbox_max_abi: 0")];
    for (level, setting) in levels {
        let config = format!("sandbox: auto\n{setting}");
        let bench = keyed(&format!("{config}\npass_env: [MY_SERVICE]"));
        run(&bench, "coder", "claude");
        run(&bench, "code-reviewer", "codex");
        let said = said(&bench);
        assert!(said.contains(&format!("[liza: confinement {level}")), "{said}");
        assert_eq!(found(&said, "coder", &KEYS), ["ANTHROPIC_API_KEY"], "{config}");
        assert_eq!(found(&said, "reviewer", &KEYS), ["OPENAI_API_KEY"], "{config}");
        for place in UNDER_TEST {
            assert_eq!(found(&said, place, &KEYS), [""; 0], "{config}: {place}");
        }
        let wanted = ["HOME", "LC_TIME", "CARGO_TERM_QUIET", "TMPDIR", "XDG_CACHE_HOME", "MY_SERVICE"];
        for place in ["coder", "reviewer"].into_iter().chain(UNDER_TEST) {
            assert_eq!(found(&said, place, &wanted), wanted, "{config}: {place}");
        }
    }
}

/// Covers: RO-02
#[test]
fn without_confinement_the_environment_is_that_of_the_shell() {
    let bench = keyed("sandbox: off");
    run(&bench, "coder", "claude");
    run(&bench, "code-reviewer", "codex");
    let said = said(&bench);
    for place in ["coder", "reviewer"].into_iter().chain(UNDER_TEST) {
        assert_eq!(found(&said, place, &KEYS), KEYS, "{place}");
    }
}

/// Covers: RO-02, AG-13
#[test]
fn a_program_of_your_own_gets_what_its_entry_names_and_its_tests_do_not() {
    let liza = env!("CARGO_BIN_EXE_liza");
    let script = format!("{}\n\"{liza}\" check -- {}\nexit 1", names("own"), names("own-check"));
    let bench = Bench::new("sandbox: auto", &[("mine", &script)]);
    let program = bench.home().join("mine.sh");
    let entry =
        format!("{{mine: {{program: {}, env: {{MODE: auto}}, pass_env: [NPM_TOKEN]}}}}", program.display());
    bench.project.set_config("providers", &entry);
    bench.project.add_task("t1");
    let mut command = bench.project.program();
    command.args(["agent", "coder", "--cli", "mine", "--once"]);
    command.envs(KEYS.map(|key| (key, format!("value-of-{key}"))));
    bench.project.run(&mut command);
    let said = said(&bench);
    let wanted = [&KEYS[..], &["MODE"]].concat();
    assert_eq!(found(&said, "own", &wanted), ["NPM_TOKEN", "MODE"]);
    assert_eq!(found(&said, "own-check", &wanted), [""; 0]);
}

/// Covers: RO-02, CM-05
#[test]
fn doctor_names_the_variables_that_the_project_wants_and_sessions_do_not_get() {
    let bench = Bench::new("sandbox: auto", &[]);
    bench
        .project
        .write("tests/config.sh", "psql \"$DATABASE_URL\" # not $DATABASE_URL_OLD, nor $NPM_TOKENS\n");
    bench.project.git(&["add", "tests"]);
    let doctor = || {
        let mut command = bench.project.program();
        command.arg("doctor").envs(KEYS.map(|key| (key, format!("value-of-{key}"))));
        let said = bench.project.run(&mut command).stdout;
        said.lines().find(|line| line.contains("environment ")).unwrap_or_default().to_owned()
    };
    let line = doctor();
    assert!(
        line.starts_with("ok ") && line.contains("not DATABASE_URL, which files of the project name"),
        "{line}"
    );
    assert!(
        line.contains("sessions get ") && line.ends_with("liza config pass_env '[DATABASE_URL]'"),
        "{line}"
    );
    bench.project.liza(&["config", "pass_env", "[DATABASE_URL]"]).ok();
    let line = doctor();
    assert!(line.contains("sessions get ") && !line.contains("DATABASE_URL"), "{line}");
    bench.project.liza(&["config", "sandbox", "off"]).ok();
    assert_eq!(doctor(), "");
}
