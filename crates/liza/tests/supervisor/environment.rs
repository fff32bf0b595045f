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

/// Everything that runs code which nobody has read.
pub(crate) const UNDER_TEST: [&str; 5] = ["coder-check", "reviewer-check", "setup", "validation", "test"];

/// A project in which every place runs the lines that `look` makes for it, merged by a coder's and a reviewer's program.
pub(crate) fn looking_around(config: &str, programs: [&str; 2], look: impl Fn(&str) -> String) -> Bench {
    let liza = env!("CARGO_BIN_EXE_liza");
    let both = |place: &str| {
        let check = look(&format!("{place}-check")).replace('\'', r"'\''");
        format!("{}\n\"{liza}\" check -- sh -c '{check}'\n", look(place))
    };
    let coder = format!(
        "{}echo done > \"$1.txt\"; git add . && git commit -qm work\n\
         \"{liza}\" pre-check \"$1\" --intent \"do it\" --validation true\n\
         \"{liza}\" submit-for-review \"$1\" \"$(git rev-parse HEAD)\"; exit 42",
        both("coder")
    );
    let reviewer = format!(
        "{}\"{liza}\" submit-verdict \"$1\" APPROVED \"cat: the file is what the task asks for\"",
        both("reviewer")
    );
    let [one, two] = programs;
    let bench = Bench::new(config, &[(one, &coder), (two, &reviewer)]);
    bench.project.set_config("setup", &format!("{:?}", look("setup")));
    bench.project.set_config("validation", "[sh scripts/validate.sh]");
    for (file, place) in [("integration-test", "test"), ("validate", "validation")] {
        bench.project.write(&format!("scripts/{file}.sh"), &format!("#!/bin/sh\n{}\n", look(place)));
    }
    bench.project.git(&["add", "scripts"]);
    bench.project.git(&["commit", "-qm", "test"]);
    bench.project.liza(&["sync"]).ok();
    bench.project.add_task("t1");
    bench
}

/// Runs an agent with variables in the supervisor's environment.
pub(crate) fn run_with(bench: &Bench, role: &str, program: &str, variables: &[(&str, String)]) {
    let mut command = bench.project.program();
    command.args(["agent", role, "--cli", program, "--once"]);
    let run = bench.project.run(command.envs(variables.iter().map(|(name, value)| (name, value))));
    assert_eq!(run.code, 0, "{run:?}\n{}", bench.outputs());
}

/// Everything that was printed anywhere.
pub(crate) fn said(bench: &Bench) -> String {
    let logs = ["agent-outputs", "setup", "integration-tests"].map(|folder| bench.kept(folder));
    logs.iter().flatten().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Those of `names` that a place has printed behind its own.
pub(crate) fn found<'n>(said: &str, place: &str, names: &[&'n str]) -> Vec<&'n str> {
    let begin = format!("{place}:");
    assert!(said.lines().any(|line| line.starts_with(&begin)), "{place} has run:\n{said}");
    let is_there = |name: &str| said.lines().any(|line| line.strip_prefix(&begin) == Some(name));
    names.iter().copied().filter(|name| is_there(name)).collect()
}

/// A project in which every place prints its variables. An entry with the name of a built-in program changes that one: the keys
/// are those of Claude Code and of Codex.
fn keyed(config: &str) -> Bench {
    looking_around(config, ["claude", "codex"], names)
}

/// Runs an agent with all keys.
fn run(bench: &Bench, role: &str, program: &str) {
    let keys = KEYS.iter().map(|key| (*key, format!("value-of-{key}")));
    let others = [("CARGO_TERM_QUIET", "false"), ("LC_TIME", "C"), ("MY_SERVICE", "here")];
    let others = others.map(|(name, value)| (name, value.to_owned()));
    run_with(bench, role, program, &keys.chain(others).collect::<Vec<_>>());
}

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
