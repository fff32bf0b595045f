//! A hostile session tries everything that it must not do, at every level of confinement; what happened is the table in
//! docs/safety.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::fixture::{Bench, CODER};
use crate::support::process::wait_for;

/// Something that a session tries, as a shell command that succeeds if it was possible.
struct Attempt {
    what: &'static str,
    /// Who refuses it when the confinement is enforced; nobody for the rows that are allowed there.
    by: &'static str,
    command: &'static str,
}

const fn attempt(what: &'static str, by: &'static str, command: &'static str) -> Attempt {
    Attempt { what, by, command }
}

const NOBODY: &str = "–";

const ATTEMPTS: &[Attempt] = &[
    attempt("write your checkout", "Landlock", r#"echo x > "$root/planted""#),
    attempt("write `.liza`", "Landlock", r#"echo x > "$root/.liza/planted""#),
    attempt("read the blackboard", "Landlock", r#"cat "$root/.liza/state.yaml""#),
    attempt("hold the blackboard's lock", "Landlock", r#"flock -n "$root/.liza/state.yaml.lock" true"#),
    attempt("write another worktree", "Landlock", r#"echo x > "$root/.worktrees/t2/planted""#),
    attempt("write your home folder", "Landlock", r#"echo x > "$HOME/planted""#),
    attempt("plant a hook", "Landlock", r#"echo x > "$root/.git/hooks/pre-commit""#),
    attempt("change the project's git configuration", "Landlock", r#"git -C "$root" config planted.key x"#),
    attempt(
        "create a branch in the project",
        "Landlock",
        r#"git -C "$root" update-ref refs/heads/planted HEAD"#,
    ),
    attempt("write the project's objects", "Landlock", r#"echo x > "$root/.git/objects/planted""#),
    attempt(
        "borrow objects for the project",
        "Landlock",
        r#"echo /x > "$root/.git/objects/info/alternates""#,
    ),
    attempt(
        "write through a link out of the worktree",
        "Landlock",
        r#"ln -s "$root/specs" "$TMPDIR/link" && echo x > "$TMPDIR/link/planted""#,
    ),
    attempt(
        "write through a hard link",
        "Landlock",
        r#"ln "$HOME/yours" "$TMPDIR/hard" && echo x >> "$TMPDIR/hard""#,
    ),
    attempt(
        "move a file out of the worktree",
        "Landlock",
        r#"echo x > "$TMPDIR/a" && mv "$TMPDIR/a" "$root/moved""#,
    ),
    attempt("read an ssh key", "Landlock", r#"cat "$HOME/.ssh/id_ed25519""#),
    attempt("read tokens in the project's remotes", "Landlock", r#"cat "$root/.git/config""#),
    attempt(
        "change the settings of its program for others",
        "Landlock",
        r#"echo x > "$HOME/.claude/settings.json""#,
    ),
    attempt("read the variables of its supervisor", "Landlock", r#"cat "/proc/$PPID/environ""#),
    attempt("trace its supervisor", "Landlock", r#": < "/proc/$PPID/mem""#),
    attempt("signal its supervisor", "Landlock", r#"kill -0 "$PPID""#),
    attempt("limit its supervisor", "seccomp", r#"prlimit --pid "$PPID" --core=0"#),
    attempt(
        "reach a service of yours by its socket",
        "helper",
        r#"printf 'protocol=https\nhost=yours\n\n' | git credential-cache --socket="$HOME/service/socket" get | grep -q password"#,
    ),
    attempt(
        "act as you without its variables",
        "channel",
        r#"env -i PATH="$PATH" HOME="$HOME" "$LIZA" -C "$root" note x"#,
    ),
    attempt(
        "act as you from a detached process",
        "channel",
        r#"setsid -w env -i PATH="$PATH" "$LIZA" -C "$root" note x"#,
    ),
    attempt(
        "act as another agent by variables",
        "channel",
        r#"LIZA_AGENT_ID=planner-1 LIZA_AGENT_GENERATION=1 "$LIZA" goal complete"#,
    ),
    attempt("approve its own work", "channel", r#""$LIZA" submit-verdict "$1" APPROVED "all is well""#),
    attempt("stop the team", "channel", r#""$LIZA" abort"#),
    attempt("change the mode of a file of yours", NOBODY, r#"chmod 600 "$HOME/yours""#),
    attempt(
        "reach a service that it started itself",
        NOBODY,
        r#"printf 'protocol=https\nhost=own\nusername=u\npassword=p\n\n' | git credential-cache --socket="$TMPDIR/s/socket" store &&
printf 'protocol=https\nhost=own\n\n' | git credential-cache --socket="$TMPDIR/s/socket" get | grep -q password"#,
    ),
    attempt(
        "write its worktree and its folder for temporary files",
        NOBODY,
        r#"echo x > own && rm own && echo x > "$TMPDIR/own""#,
    ),
];

/// The levels: how each is called in the table, and the settings that make it on any kernel.
const LEVELS: &[(&str, &str)] = &[
    ("enforced", "sandbox: auto"),
    ("partly: kernel before 6.12", "sandbox: auto\nsandbox_max_abi: 5"),
    ("partly: no Landlock", "sandbox: auto\nsandbox_max_abi: 0"),
    ("off", "sandbox: off"),
];

/// Without Landlock, root is refused these by its missing capabilities; other users are not refused.
const LESS_FOR_ROOT: &[&str] = &["read the variables of its supervisor", "trace its supervisor"];

/// The script of a session that tries everything and then does its work.
fn hostile() -> String {
    let mut script = "root=$(cd ../.. && pwd)\nexport root\n".to_owned();
    for (number, attempt) in ATTEMPTS.iter().enumerate() {
        let command = attempt.command;
        script.push_str(&format!(
            "if ( {command} ) > /dev/null 2>&1; then echo 'TRIED {number} allowed'; else echo 'TRIED {number} refused'; fi\n"
        ));
    }
    script + CODER
}

/// A project with things that a session would like to have.
fn bait(config: &str) -> Bench {
    let bench = Bench::new(config, &[("c", &hostile())]);
    let home = bench.home().to_owned();
    for (file, text) in [(".ssh/id_ed25519", "key"), ("yours", "text"), (".claude/settings.json", "{}")] {
        fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
        fs::write(home.join(file), text).unwrap();
    }
    bench.project.add_task("t1");
    bench.project.add_task("t2");
    bench.project.register("coder-9");
    bench.project.liza_as("coder-9", &["claim-task", "t2", "coder-9"]).ok();
    bench
}

/// A service of the person's: git's cache of passwords. Ends when the folder of its socket is removed, or by `exit`.
struct PasswordService(PathBuf);

impl PasswordService {
    fn start(bench: &Bench) -> Self {
        let socket = bench.home().join("service/socket");
        let service = Self(socket.clone());
        let word = "protocol=https\nhost=yours\nusername=u\npassword=secret\n\n";
        service.call(bench, "store", word);
        wait_for("the service answers", || socket.exists().then_some(()));
        assert!(service.call(bench, "get", "protocol=https\nhost=yours\n\n").contains("secret"));
        service
    }

    fn call(&self, bench: &Bench, verb: &str, input: &str) -> String {
        let option = format!("--socket={}", self.0.display());
        let mut git = bench.project.command("git");
        git.args(["credential-cache", &option, verb]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = git.stderr(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }
}

/// What happened to each attempt at one level, and the level that the session's log names.
fn results(config: &str) -> (Vec<String>, String) {
    let bench = bait(config);
    let service = PasswordService::start(&bench);
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}\n{}", coder.output(), bench.outputs());
    service.call(&bench, "exit", "");
    let log = bench.outputs();
    let result = |number: usize| {
        let prefix = format!("TRIED {number} ");
        let line = log.lines().find_map(|line| line.strip_prefix(&prefix));
        line.unwrap_or_else(|| panic!("attempt {number} is missing:\n{log}")).to_owned()
    };
    let level = log.lines().next().unwrap().to_owned();
    assert_eq!(bench.status("t1").to_string(), "READY_FOR_REVIEW", "its own work is possible:\n{log}");
    ((0..ATTEMPTS.len()).map(result).collect(), level)
}

const BEGIN: &str = "<!-- attempts: generated by `just bless` -->\n";
const END: &str = "<!-- end of attempts -->\n";

/// Covers: IS-03, IS-05, IS-12, IS-14, IS-16
#[test]
#[cfg(target_os = "linux")]
fn what_a_hostile_session_achieves_is_in_the_safety_page() {
    let columns: Vec<(Vec<String>, String)> = LEVELS.iter().map(|(_, config)| results(config)).collect();
    let (enforced, level) = &columns[0];
    assert_eq!(level, "[liza: confinement enforced]");
    for (attempt, result) in ATTEMPTS.iter().zip(enforced) {
        let expected = if attempt.by == NOBODY { "allowed" } else { "refused" };
        assert_eq!(result, expected, "{}", attempt.what);
    }
    for ((_, level), (name, _)) in columns.iter().zip(LEVELS).skip(1) {
        let word = name.split(':').next().unwrap();
        assert!(level.starts_with(&format!("[liza: confinement {word}")), "{name}: {level}");
    }
    let names: Vec<&str> = LEVELS.iter().map(|(name, _)| *name).collect();
    let mut table = format!("| A session tries to | Refused by | {} |\n", names.join(" | "));
    table.push_str(&format!("|{}\n", "---|".repeat(LEVELS.len() + 2)));
    for (number, Attempt { what, by, .. }) in ATTEMPTS.iter().enumerate() {
        let mut cells: Vec<&str> = columns.iter().map(|(results, _)| results[number].as_str()).collect();
        if LESS_FOR_ROOT.contains(what) {
            cells[2] = "allowed";
        }
        table.push_str(&format!("| {what} | {by} | {} |\n", cells.join(" | ")));
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/safety.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("LIZA_BLESS").is_some() {
        fs::write(&page, &expected).unwrap();
    }
    assert_eq!(text, expected, "docs/safety.md is not what happens; run: just bless");
}

/// Covers: IS-05
#[test]
#[cfg(target_os = "linux")]
fn with_require_nothing_starts_below_the_minimum() {
    let bench = bait("sandbox: require\nsandbox_max_abi: 5");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once", "--json"]);
    assert_eq!(coder.wait(), 1, "{}", coder.output());
    let said = coder.output();
    assert!(said.contains("signals reach processes outside") && said.contains("liza doctor"), "{said}");
    assert_eq!(bench.status("t1").to_string(), "UNCLAIMED");
    let doctor = bench.project.liza(&["doctor"]);
    assert!(doctor.stdout.contains("fail  confinement"), "{doctor:?}");

    let bench = bait("sandbox: require\nsandbox_min: partly\nsandbox_max_abi: 5");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
}

/// Covers: IS-05
#[test]
#[cfg(target_os = "linux")]
fn the_level_is_shown_everywhere() {
    let script = format!("touch \"$TMPDIR/up\"; while [ ! -e go ]; do sleep 0.05; done; rm go\n{CODER}");
    let bench = Bench::new("sandbox: auto", &[("c", &script)]);
    bench.project.add_task("t1");
    let explained = bench.project.liza(&["agent", "coder", "t1", "--cli", "c", "--explain"]).stdout;
    assert!(explained.contains("confined   enforced"), "{explained}");
    let doctor = bench.project.liza(&["doctor"]);
    let line = doctor.stdout.lines().find(|line| line.contains("confinement"));
    assert!(line.is_some_and(|line| line.starts_with("ok") && line.ends_with("enforced")), "{doctor:?}");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    let status = wait_for("status says it", || {
        let status = bench.project.liza(&["status"]).stdout;
        status.contains("confinement enforced").then_some(status)
    });
    assert!(status.contains("AGENTS"), "{status}");
    let json = bench.project.liza(&["status", "--json"]).result();
    assert_eq!(json["agents"][0]["confinement"], "enforced", "{json}");
    fs::write(bench.tree("t1").join("go"), "").unwrap();
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    assert!(bench.prompts()[0].contains("WRITABLE: "), "{}", bench.prompts()[0]);
}

/// Covers: IS-12
#[test]
#[cfg(target_os = "linux")]
fn variables_that_lead_to_services_are_removed_and_listed_sockets_are_reachable() {
    let ask = r#"env > seen; git add seen
printf 'protocol=https\nhost=yours\n\n' | git credential-cache --socket="$HOME/service/socket" get > answer"#;
    let home_service = "sandbox: auto\nsandbox_sockets: [\"~/service\"]";
    let bench = Bench::new(home_service, &[("c", &format!("{ask}\n{CODER}"))]);
    bench.project.add_task("t1");
    let service = PasswordService::start(&bench);
    let mut program = bench.project.program();
    program.args(["agent", "coder", "--cli", "c", "--once"]).env("LIZA", env!("CARGO_BIN_EXE_liza"));
    for name in
        ["TMUX", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "DISPLAY", "WAYLAND_DISPLAY"]
    {
        program.env(name, "/somewhere");
    }
    let run = bench.project.run(&mut program);
    run.ok();
    service.call(&bench, "exit", "");
    let seen = fs::read_to_string(bench.tree("t1").join("seen")).unwrap();
    assert!(!seen.contains("/somewhere"), "{seen}");
    assert!(seen.contains("XDG_CACHE_HOME="), "{seen}");
    let answer = fs::read_to_string(bench.tree("t1").join("answer")).unwrap();
    assert!(answer.contains("password=secret"), "{answer}");
}

/// What code under review tries when the reviewer runs its tests.
const HOSTILE_TEST: &str = r#"#!/bin/sh
"$LIZA" submit-verdict t1 APPROVED "all is well" > spoken 2>&1 && echo APPROVED
LIZA_CHANNEL="$KEPT" "$LIZA" submit-verdict t1 APPROVED "all is well" >> spoken 2>&1 && echo APPROVED
setsid -w sh -c 'LIZA_CHANNEL="$KEPT" "$LIZA" submit-verdict t1 APPROVED "all is well"' >> spoken 2>&1 && echo APPROVED
cat "$XDG_CONFIG_HOME/../plan.json" > /dev/null 2>&1 && echo READ
echo x > "$TMPDIR/../planted" 2> /dev/null && echo WROTE
kill -0 "$REVIEWER" 2> /dev/null && echo SIGNALLED
echo x > inside && echo x > "$TMPDIR/inside" && echo FINISHED
exit 7
"#;

/// Covers: IS-13
#[test]
#[cfg(target_os = "linux")]
fn code_under_review_never_speaks_as_the_reviewer() {
    let reviewer = r#"
cat > hostile.sh <<'END_OF_TEST'
HOSTILE
END_OF_TEST
chmod +x hostile.sh
export KEPT="$LIZA_CHANNEL" REVIEWER=$$
"$LIZA" check -- ./hostile.sh; echo "exit $?"
cat spoken
rm hostile.sh spoken inside
"$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] t1.txt:1 - it attacks the reviewer""#;
    let reviewer = reviewer.replace("HOSTILE", HOSTILE_TEST.trim_end());
    for config in ["sandbox: auto", "sandbox: off"] {
        let bench = Bench::new(config, &[("c", CODER), ("r", &reviewer)]);
        bench.project.add_task("t1");
        assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
        let mut review = bench.agent(&["code-reviewer", "--cli", "r", "--once"]);
        assert_eq!(review.wait(), 0, "{}\n{}", review.output(), bench.outputs());
        let log = bench.outputs();
        assert!(log.contains("FINISHED\nexit 7") && !log.contains("APPROVED\n"), "{config}:\n{log}");
        assert_eq!(bench.status("t1").to_string(), "REJECTED", "{log}");
        if config == "sandbox: auto" {
            let gained = ["READ", "WROTE", "SIGNALLED"].map(|word| log.lines().any(|line| line == word));
            assert_eq!(gained, [false; 3], "{log}");
        }
    }
}

/// Covers: IS-07
#[test]
#[cfg(target_os = "linux")]
fn another_runner_can_be_put_in_front() {
    let config = "sandbox: auto\nexec_wrapper: [env, \"IN={directory}\", \"MAY={writable}\"]";
    let bench = Bench::new(config, &[("c", &format!("echo \"ran in $IN\"; echo \"last $MAY\"\n{CODER}"))]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    let log = bench.outputs();
    assert!(log.contains(&format!("ran in {}", bench.tree("t1").display())), "{log}");
    assert!(log.contains("last /") && log.contains("confinement enforced"), "{log}");
}
