//! How sessions are confined: the level and where it is shown, services, code under test, other runners.

use std::fs;
use std::os::unix::net::UnixListener;

use crate::bait::{PasswordService, bait};
use crate::fixture::{Bench, CODER};
use crate::network::free_port;
use crate::support::process::wait_for;

/// Covers: IS-05
#[test]
#[cfg(target_os = "linux")]
fn with_require_nothing_starts_below_the_minimum() {
    let bench = bait("sandbox: require\nsandbox_max_abi: 5", &[("c", CODER)]);
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once", "--json"]);
    assert_eq!(coder.wait(), 1, "{}", coder.output());
    let said = coder.output();
    assert!(said.contains("signals reach processes outside") && said.contains("liza doctor"), "{said}");
    assert_eq!(bench.status("t1").to_string(), "UNCLAIMED");
    let doctor = bench.project.liza(&["doctor"]);
    assert!(doctor.stdout.contains("fail  confinement"), "{doctor:?}");

    let bench = bait("sandbox: require\nsandbox_min: partly\nsandbox_max_abi: 5", &[("c", CODER)]);
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
}

/// Covers: IS-05, RO-08
#[test]
#[cfg(target_os = "linux")]
fn the_level_is_shown_everywhere() {
    let waits = "touch \"$TMPDIR/up\"; while [ ! -e go ]; do sleep 0.05; done; rm go";
    let script = format!("[ \"$1\" = --version ] && exit\n{waits}\n{CODER}");
    let config = "sandbox: auto\nnetwork_ports: [5432]\npass_env: [SERVICE]";
    let bench = Bench::new(config, &[("c", &script)]);
    bench.project.add_task("t1");
    let explained = bench.project.liza(&["agent", "coder", "t1", "--cli", "c", "--explain"]).stdout;
    assert!(explained.contains("confined   isolated"), "{explained}");
    let mut command = bench.project.program();
    let doctor = bench.project.run(command.arg("doctor").env("HTTP_PROXY", "http://localhost:3128"));
    let line = doctor.stdout.lines().find(|line| line.contains("confinement"));
    assert!(
        line.is_some_and(|line| line.starts_with("ok") && line.contains("isolated; what you mount while")),
        "{doctor:?}"
    );
    let shared: Vec<&str> = doctor.stdout.lines().filter(|line| line.starts_with("ok    shared ")).collect();
    for (what, end) in [
        ("the network;", "liza config roles.ROLE.network model-only"),
        ("git's settings;", "nothing, since git does not start without them; keep tokens out of them"),
        ("SERVICE;", "liza config pass_env"),
        ("port 5432;", "liza config network_ports"),
        ("port 3128;", "taking its address out of your variables and of the settings of the agent program"),
    ] {
        let line = shared.iter().find(|line| line.contains(what));
        assert!(line.is_some_and(|line| line.ends_with(end)), "{what} {shared:#?}");
    }
    assert!(
        shared.iter().all(|line| line.contains("; ends with: ") && !line.contains("/dev/shm")),
        "{shared:#?}"
    );
    bench.project.set_config("sandbox_max_abi", "100");
    let restricted = bench.project.liza(&["doctor"]).stdout;
    let reason = "warn  confinement         restricted: no namespaces (config.sandbox_max_abi is set)";
    assert!(restricted.contains(reason), "{restricted}");
    let line = restricted.lines().find(|line| line.contains("/dev/shm")).unwrap();
    for what in ["/dev/shm, modes and times of your files", "list of your processes", "free ports"] {
        assert!(line.contains(what), "{line}");
    }
    assert!(line.ends_with("; ends with: liza config sandbox_max_abi --unset"), "{line}");
    bench.project.liza(&["config", "sandbox_max_abi", "--unset"]).ok();
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    let status = wait_for("status says it", || {
        let status = bench.project.liza(&["status"]).stdout;
        status.contains("confinement isolated").then_some(status)
    });
    let shared = "  shared with you: the network, git's settings, SERVICE, port 5432\n";
    assert!(status.contains("AGENTS") && status.contains(shared), "{status}");
    let json = bench.project.liza(&["status", "--json"]).result();
    let agent = &json["agents"][0];
    assert_eq!((&agent["confinement"], &agent["level"]), (&"enforced".into(), &"isolated".into()), "{json}");
    fs::write(bench.tree("t1").join("go"), "").unwrap();
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    assert!(bench.prompts()[0].contains("WRITABLE: "), "{}", bench.prompts()[0]);
}

/// Covers: IS-12, MM-01
#[test]
#[cfg(target_os = "linux")]
fn variables_that_lead_to_services_are_removed_and_listed_sockets_are_reachable() {
    let ask = r#"env > seen; git add seen
cat "$HOME/database-login" > login 2>&1 && exit 3; git add login
printf 'protocol=https\nhost=yours\n\n' | git credential-cache --socket="$HOME/service/socket" get > answer"#;
    let home_service = "sandbox: auto\nsandbox_sockets: [\"~/service\"]";
    let bench = Bench::new(home_service, &[("c", &format!("{ask}\n{CODER}"))]);
    bench.project.add_task("t1");
    let service = PasswordService::start(&bench);
    let mut program = bench.project.program();
    program.args(["agent", "coder", "--cli", "c", "--once"]).env("LIZA", env!("CARGO_BIN_EXE_liza"));
    for name in [
        "TMUX",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "LIZA_STORE_URL",
        "PGSERVICEFILE",
    ] {
        program.env(name, "/somewhere");
    }
    let login = bench.home().join("database-login");
    fs::write(&login, "somewhere:5432:*:liza:password\n").unwrap();
    program.env("PGPASSFILE", &login);
    let run = bench.project.run(&mut program);
    run.ok();
    service.call(&bench, "exit", "");
    let seen = fs::read_to_string(bench.tree("t1").join("seen")).unwrap();
    assert!(!seen.contains("/somewhere") && !seen.contains("database-login"), "{seen}");
    let login = fs::read_to_string(bench.tree("t1").join("login")).unwrap();
    assert!(login.contains("No such file or directory"), "{login}");
    assert!(seen.contains("XDG_CACHE_HOME="), "{seen}");
    let answer = fs::read_to_string(bench.tree("t1").join("answer")).unwrap();
    assert!(answer.contains("password=secret"), "{answer}");
}

/// What code under review tries when the reviewer runs its tests.
const HOSTILE_TEST: &str = r#"#!/bin/sh
"$LIZA" submit-verdict t1 APPROVED "all is well" > spoken 2>&1 && echo APPROVED
LIZA_CHANNEL="$KEPT" "$LIZA" submit-verdict t1 APPROVED "all is well" >> spoken 2>&1 && echo APPROVED
setsid -w sh -c 'LIZA_CHANNEL="$KEPT" "$LIZA" submit-verdict t1 APPROVED "all is well"' >> spoken 2>&1 && echo APPROVED
cat "$PLAN" > /dev/null 2>&1 && echo READ
echo x > "$TMPDIR/../planted" 2> /dev/null && echo WROTE
kill -0 "$REVIEWER" 2> /dev/null && grep -q r.sh "/proc/$REVIEWER/cmdline" && echo SIGNALLED
cat spoken
echo x > inside && echo x > "$TMPDIR/inside" && echo FINISHED
exit 7
"#;

/// Covers: IS-13
#[test]
#[cfg(target_os = "linux")]
fn code_under_review_never_speaks_as_the_reviewer() {
    let coder = format!(
        "cat > hostile.sh <<'END_OF_TEST'\n{}\nEND_OF_TEST\nchmod +x hostile.sh\n{CODER}",
        HOSTILE_TEST.trim_end()
    );
    let reviewer = r#"
export KEPT="$LIZA_CHANNEL" PLAN="$LIZA_PLAN" REVIEWER=$$
"$LIZA" check -- "$PWD/hostile.sh"; echo "exit $?"
"$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] t1.txt:1 - it attacks the reviewer""#;
    for config in ["sandbox: auto", "sandbox: off"] {
        let bench = Bench::new(config, &[("c", &coder), ("r", reviewer)]);
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

/// Covers: JU-08
#[test]
#[cfg(target_os = "linux")]
fn a_check_runs_in_a_copy_and_nothing_but_its_output_comes_back() {
    let work = r#"echo changed > base; echo new > new; mkdir -p sub; printf 'built\n' > .gitignore; git add .
echo uncommitted > open; cd sub
"$LIZA" check -- sh -c 'echo "in $(basename "$PWD"):" $(cat ../base ../new ../open) "$(git log --format=%s | tail -1)"
echo x > ../base; echo x > ../left; echo x > ../built; git config core.fsmonitor ./planted; exit 5'; echo "exit $?"
"$LIZA" check -- sh -c 'echo "again: $(cat ../base) $(ls .. | tr "\n" " ")"'
cd ..; echo "here: $(cat base) $(ls | tr "\n" " ") $(git config --local core.fsmonitor)."; rm open"#;
    for config in ["sandbox: auto", "sandbox: off"] {
        let bench = Bench::new(config, &[("c", &format!("{work}\n{CODER}"))]);
        bench.project.add_task("t1");
        assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
        let log = bench.outputs();
        for said in [
            "in sub: changed new uncommitted start\n",
            "exit 5\n",
            // What git ignores is kept for the next check.
            "again: changed base built new open specs sub ",
            "here: changed base new open specs sub  .\n",
        ] {
            assert!(log.contains(said), "{config}: {said}:\n{log}");
        }
    }
}

/// Covers: IS-13, JU-08
#[test]
#[cfg(target_os = "linux")]
fn a_test_run_that_the_reviewers_program_kills_is_ended() {
    let reviewer = r#"
setsid "$LIZA" check -- sh -c 'echo begun; sleep 54321 & wait' > "$TMPDIR/said" &
check=$!
until [ -s "$TMPDIR/said" ]; do sleep 0.05; done
echo BEGUN
until [ -e "$TMPDIR/kill" ]; do sleep 0.05; done
for child in $(pgrep -P "$check"); do kill -9 "$child"; done
kill -9 "-$check"
until [ -e "$TMPDIR/ended" ]; do sleep 0.05; done
"$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] t1.txt:1 - it hangs""#;
    for config in ["sandbox: auto", "sandbox: off"] {
        let bench = Bench::new(config, &[("c", CODER), ("r", reviewer)]);
        bench.project.add_task("t1");
        assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
        let mut review = bench.agent(&["code-reviewer", "--cli", "r", "--once"]);
        wait_for("the code under test runs", || bench.outputs().contains("BEGUN").then_some(()));
        let scratch = bench.project.root.join(".liza/tmp/code-reviewer-1");
        let runs = || bench.processes().iter().any(|(_, line)| line.contains("sleep 54321"));
        assert!(runs(), "it is found as long as it runs");
        fs::write(scratch.join("kill"), "").unwrap();
        wait_for("the code under test has ended", || (!runs()).then_some(()));
        fs::write(scratch.join("ended"), "").unwrap();
        assert_eq!(review.wait(), 0, "{}\n{}", review.output(), bench.outputs());
        assert_eq!(bench.status("t1").to_string(), "REJECTED", "{}", bench.outputs());
    }
}

/// Servers of an agent program, as some have them: at a port, at a socket in its folder for temporary files, at a name. Each leaves a
/// line when somebody reaches it.
const SERVERS: &str = r#"use IO::Socket::INET; use IO::Socket::UNIX; use IO::Select; use Socket;
my %servers = (port => IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => 45454),
    file => IO::Socket::UNIX->new(Listen => 5, Local => "$ENV{TMPDIR}/own"), name => IO::Socket::UNIX->new(Listen => 5, Local => "\0own-name"));
defined $servers{$_} or die "no server: $_" for keys %servers;
open my $ready, ">", "$ENV{TMPDIR}/ready"; close $ready;
my $select = IO::Select->new(values %servers);
while (1) { for my $ready ($select->can_read) { $ready->accept; $| = 1; my ($which) = grep { $servers{$_} == $ready } keys %servers; print "REACHED $which\n" } }"#;

/// The rest of a session that code under test could use against it.
const REACH: &str = r#"perl -e 'use IO::Socket::INET; use IO::Socket::UNIX;
IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => 45454); IO::Socket::UNIX->new(Peer => "$ENV{OWN}/own"); IO::Socket::UNIX->new(Peer => "\0own-name");'
shared=/dev/shm/${HOME##*/}; cat "$shared-own" 2> /dev/null; echo x > "$shared-left"; cat "$OWN/own-file" 2> /dev/null
for process in /proc/[0-9]*; do tr '\0' ' ' < $process/cmdline 2> /dev/null | grep -q 'servers-of-the-progra[m]' && echo "SEEN"; done
setsid sh -c 'sleep 54321' & sleep 0.1; echo TRIED"#;

/// Whatever code under test and its session can reach, it is not each other; without a room they share `/dev/shm` and the list of
/// processes.
///
/// Covers: JU-08, RO-04, RO-08
#[test]
#[cfg(target_os = "linux")]
fn code_under_test_and_its_session_share_neither_processes_nor_loopback_nor_memory() {
    let restricted = ["READ-MEMORY", "SEEN", "LEFT-MEMORY"];
    for (level, setting, shared) in
        [("isolated", "", &[][..]), ("restricted", "sandbox_max_abi: 100", &restricted)]
    {
        let log = reached_each_other(setting);
        assert!(log.contains(&format!("[liza: confinement {level}")), "{log}");
        assert!(log.contains("TRIED\nexit 0\n"), "{log}");
        let words = ["READ-", "SEEN", "LEFT-"];
        let is_gained = |line: &&str| words.iter().any(|word| line.starts_with(word));
        let mut gained: Vec<&str> = log.lines().filter(is_gained).collect();
        gained.dedup();
        assert_eq!(gained, shared, "{level}: {log}");
        assert!(log.contains("ITSELF"), "the session reaches its own server:\n{log}");
        assert_eq!(log.matches("REACHED").count(), 1, "and nobody else did:\n{log}");
    }
}

/// What a reviewer and the code that it tests said.
#[cfg(target_os = "linux")]
fn reached_each_other(setting: &str) -> String {
    let reviewer = format!(
        r#"export OWN="$TMPDIR"; echo READ-FILE > "$TMPDIR/own-file"; shared=/dev/shm/${{HOME##*/}}; echo READ-MEMORY > "$shared-own"
perl -e '{SERVERS}' servers-of-the-program & 
until [ -e "$TMPDIR/ready" ]; do sleep 0.05; done
"$LIZA" check -- sh -c '{}'; echo "exit $?"
[ -e "$shared-left" ] && echo LEFT-MEMORY
rm -f "$shared-own" "$shared-left"
pgrep -f 'sleep 5432[1]' > /dev/null && echo LEFT-PROCESS
perl -e 'use IO::Socket::INET; IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => 45454) and print "ITSELF\n"'
"$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] t1.txt:1 - it attacks the reviewer""#,
        REACH.replace('\'', r"'\''")
    );
    let port = free_port().to_string();
    let reviewer = reviewer.replace("own-name", &format!("own-{port}")).replace("45454", &port);
    let config = format!("sandbox: auto\npass_env: [OWN, LIZA, LIZA_TEST_MARK]\n{setting}");
    let bench = Bench::new(&config, &[("c", CODER), ("r", &reviewer)]);
    bench.project.add_task("t1");
    for words in [["coder", "--cli", "c", "--once"], ["code-reviewer", "--cli", "r", "--once"]] {
        assert_eq!(bench.agent(&words).wait(), 0, "{}", bench.outputs());
    }
    bench.until_nothing_runs();
    bench.outputs()
}

/// Covers: IS-13
#[test]
#[cfg(target_os = "linux")]
fn only_where_orphans_have_a_voice_or_below_a_check_a_program_can_adopt_them() {
    // PR_SET_CHILD_SUBREAPER; what git leaves behind would become a child of such a program.
    let adopt = r#"perl -e '$prctl = `uname -m` =~ /x86_64/ ? 157 : 167;
print syscall($prctl, 36, 1, 0, 0, 0) == 0 ? "WHO adopts\n" : "WHO must not adopt\n"'"#;
    let reviewer = format!(
        r#"{direct}
"$LIZA" check -- {checked}
"$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] t1.txt:1 - no""#,
        direct = adopt.replace("WHO", "a reviewer"),
        checked = adopt.replace("WHO", "code under test"),
    );
    let coder = format!("{}\n{CODER}", adopt.replace("WHO", "a coder"));
    let bench = Bench::new("sandbox: auto", &[("c", &coder), ("r", &reviewer)]);
    bench.project.add_task("t1");
    for words in [["coder", "--cli", "c", "--once"], ["code-reviewer", "--cli", "r", "--once"]] {
        assert_eq!(bench.agent(&words).wait(), 0, "{}", bench.outputs());
    }
    let log = bench.outputs();
    for said in ["a coder adopts", "a reviewer must not adopt", "code under test adopts"] {
        assert!(log.contains(said), "{said}:\n{log}");
    }
}

/// Covers: IS-15
#[test]
#[cfg(target_os = "linux")]
fn nothing_is_written_through_what_an_earlier_session_left() {
    let plant = r#"folder=$(dirname "$XDG_CONFIG_HOME")
cat "$XDG_CONFIG_HOME/left" "$TMPDIR/left" 2> /dev/null && echo "SAW IT"
rm -f "$folder/plan.json" && ln -s "$ROOT/yours" "$folder/plan.json" && echo planted
echo x > "$XDG_CONFIG_HOME/left"; echo x > "$TMPDIR/left"
mkdir -p "$folder/deep" && (cd "$folder/deep" && for _ in $(seq 600); do mkdir d && cd d; done)
chmod 555 "$folder" "$XDG_CONFIG_HOME" "$TMPDIR""#;
    let bench = Bench::new("sandbox: auto", &[("c", plant)]);
    bench.project.add_task("t1");
    bench.project.write("yours", "the person's");
    for _ in 0..2 {
        let liza = env!("CARGO_BIN_EXE_liza");
        let mut shell = bench.project.command("sh");
        // Root has all rights, but cannot open more than this either.
        shell.args([
            "-c",
            "ulimit -n 400; exec \"$@\"",
            "sh",
            liza,
            "agent",
            "coder",
            "--cli",
            "c",
            "--once",
        ]);
        bench.project.run(shell.env("LIZA", liza).env("ROOT", &bench.project.root));
    }
    let log = bench.outputs();
    assert_eq!(log.matches("planted").count(), 2, "{log}");
    assert!(!log.contains("SAW IT"), "{log}");
    assert_eq!(fs::read_to_string(bench.project.root.join("yours")).unwrap(), "the person's");
}

/// Covers: IS-13, JU-08
#[test]
#[cfg(target_os = "linux")]
fn neither_set_up_nor_tests_decide_what_a_reviewers_git_does_and_shows() {
    let coder = format!("printf bad > code; git add code\n{CODER}");
    let lie = r#"good=$(printf good | git hash-object -w --stdin)
git update-ref "refs/replace/$(git rev-parse HEAD:code)" "$good"; git config core.fsmonitor ./evil; chmod 555 .git
mkdir -p .claude; echo x > .claude/settings.json; echo x > CLAUDE.md; mkdir -p "$XDG_CACHE_HOME/r"; ln -s "$XDG_CACHE_HOME/r" out"#;
    let look = r#"git config --local core.fsmonitor && echo PLANTED
[ -e .claude/settings.json ] || [ -e CLAUDE.md ] || [ -L out ] && echo PLANTED
[ "$(git cat-file blob HEAD:code)" = bad ] && env -u GIT_NO_REPLACE_OBJECTS git cat-file blob HEAD:code | grep -q bad && echo TRUTH"#;
    let reviewer = format!(
        r#"{look}
"$LIZA" check -- sh -c '[ -e made ] && echo SET-UP; {lie}
> left'
"$LIZA" check -- sh -c '[ -e made ] && [ ! -e left ] && [ -L out ] && echo "FROM NOTHING"'
{look}
"$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] code:1 - it is bad""#
    );
    let setup = format!("[ ! -f code ] || {{ {} ; > made ; }}", lie.replace('\n', "; "));
    let bench = Bench::new("sandbox: auto", &[("c", &coder), ("r", &reviewer)]);
    bench.project.set_config("setup", &serde_json::json!(setup).to_string());
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
    let mut review = bench.agent(&["code-reviewer", "--cli", "r", "--once"]);
    assert_eq!(review.wait(), 0, "{}\n{}", review.output(), bench.outputs());
    let log = bench.outputs();
    assert_eq!(log.matches("TRUTH").count(), 2, "{log}");
    assert!(!log.contains("PLANTED") && log.contains("SET-UP") && log.contains("FROM NOTHING"), "{log}");
    assert_eq!(bench.status("t1").to_string(), "REJECTED", "{log}");
}

/// Covers: IS-13, IS-15
#[test]
fn a_session_submits_no_settings_that_the_reviewers_program_would_start_with() {
    let plant = r#"mkdir -p pkg/.claude && echo '{}' > pkg/.claude/settings.json
git add -A && git commit -qm settings
"$LIZA" submit-for-review "$1" "$(git rev-parse HEAD)" --json"#;
    let clean = "git rm -rq pkg && git commit -qm 'without settings'";
    // What a person has put on the integration branch is theirs.
    let merge = "git merge -q --no-edit liza/integration";
    let submits = |config: &str, script: &str| {
        let bench = Bench::new(config, &[("c", &format!("{script}\n{CODER}"))]);
        bench.project.add_task("t1");
        assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
        bench
    };
    let bench = submits("", &format!("{plant}\n{clean}"));
    let log = bench.outputs();
    assert!(log.contains("client_settings_changed") && log.contains("pkg/.claude/settings.json"), "{log}");
    assert_eq!(bench.status("t1").to_string(), "READY_FOR_REVIEW", "{log}");
    let link = plant.replace(
        "mkdir -p pkg/.claude && echo '{}' > pkg/.claude/settings.json",
        "mkdir pkg; ln -s /dev/shm pkg/out",
    );
    let bench = submits("", &format!("{link}\n{clean}"));
    let log = bench.outputs();
    assert!(log.contains("link_outside") && log.contains("pkg/out"), "{log}");
    assert_eq!(bench.status("t1").to_string(), "READY_FOR_REVIEW", "{log}");
    let bench = submits("client_settings: allow", plant);
    assert!(!bench.outputs().contains("client_settings_changed"), "{}", bench.outputs());

    let bench = Bench::new("", &[("c", &format!("{merge}\n{CODER}"))]);
    bench.project.add_task("t1");
    bench.project.git(&["checkout", "-q", "integration"]);
    bench.project.write(".claude/settings.json", "{}");
    bench.project.git(&["add", "-A"]);
    bench.project.git(&["commit", "-qm", "a person's settings"]);
    bench.project.liza(&["accept-integration"]).ok();
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
    assert_eq!(bench.status("t1").to_string(), "READY_FOR_REVIEW", "{}", bench.outputs());
}

/// Covers: IS-03, IS-14
#[test]
#[cfg(target_os = "linux")]
fn files_that_the_persons_shell_has_open_reach_no_program() {
    for config in ["sandbox: auto", "sandbox: off"] {
        let look = "if cat <&7; then echo inherited; else echo closed; fi";
        let bench = Bench::new(config, &[("c", &format!("{look}\n{CODER}"))]);
        bench
            .project
            .set_config("setup", &format!("( {look} ) > setup-said 2>&1; echo setup-said > .gitignore"));
        bench.project.add_task("t1");
        fs::write(bench.home().join("secret"), "the secret").unwrap();
        let liza = env!("CARGO_BIN_EXE_liza");
        let mut shell = bench.project.command("sh");
        shell.args(["-c", "exec 7< \"$HOME/secret\"; exec \"$@\"", "sh", liza, "agent", "coder"]);
        shell.args(["--cli", "c", "--once"]).env("LIZA", liza);
        bench.project.run(&mut shell).ok();
        let (log, setup) =
            (bench.outputs(), fs::read_to_string(bench.tree("t1").join("setup-said")).unwrap());
        for said in [&log, &setup] {
            assert!(said.contains("closed") && !said.contains("the secret"), "{config}:\n{said}");
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
    assert!(log.contains("last /") && log.contains("confinement isolated"), "{log}");
}

/// Covers: IS-07
#[test]
#[cfg(target_os = "linux")]
fn needs_bubblewrap_a_session_runs_inside_of_it() {
    // The template writes only what the plan grants, and hides a folder that the plan would let it read.
    let wrapper = "exec_wrapper: [bwrap, --ro-bind, /, /, --dev-bind, /dev, /dev, --proc, /proc, --tmpfs, /srv, \
                   \"--bind-try {writable} {writable}\", --chdir, \"{directory}\"]";
    let script = r#"findmnt -n -o FSTYPE /srv | sed 's/^/srv is /'
"$LIZA" check -- sh -c 'echo "in a check, srv is $(findmnt -n -o FSTYPE /srv)"'
touch "$HOME/planted" 2> /dev/null && echo wrote"#;
    for sandbox in ["sandbox: auto", "sandbox: auto\nsandbox_max_abi: 0"] {
        let bench = Bench::new(&format!("{sandbox}\n{wrapper}"), &[("c", &format!("{script}\n{CODER}"))]);
        bench.project.add_task("t1");
        let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
        assert_eq!(coder.wait(), 0, "{}\n{}", coder.output(), bench.outputs());
        let log = bench.outputs();
        assert!(log.contains("\nsrv is tmpfs") && !log.contains("wrote"), "{sandbox}:\n{log}");
        assert!(log.contains("in a check, srv is tmpfs"), "{sandbox}:\n{log}");
        assert!(!bench.home().join("planted").exists());
        assert_eq!(bench.status("t1").to_string(), "READY_FOR_REVIEW", "{log}");
    }
}

/// Covers: IS-16
#[test]
#[cfg(target_os = "linux")]
fn changed_modes_of_lizas_files_are_repaired_with_an_alarm() {
    use std::os::unix::fs::PermissionsExt as _;
    let script = format!(
        "root=$(cd ../.. && pwd); chmod 755 \"$root/.liza\"; chmod 666 \"$root/.liza/state.yaml\"\n{CODER}"
    );
    // In a room it does not reach them.
    let bench = Bench::new("sandbox: auto\nsandbox_max_abi: 100", &[("c", &script)]);
    bench.project.add_task("t1");
    let file = bench.project.root.join(".liza/state.yaml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o640, "the person's own mode");
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert!(coder.output().contains("changed the mode of"), "{}", coder.output());
    let status = bench.project.liza(&["status"]).stdout;
    assert!(status.contains("changed the mode of") && status.contains(" more"), "{status}");
}

/// Covers: IS-03
#[test]
#[cfg(target_os = "linux")]
fn what_the_confinement_refused_is_named() {
    for config in ["sandbox: auto", "sandbox: auto\nsandbox_max_abi: 100"] {
        a_refusal_is_named(config);
    }
}

#[cfg(target_os = "linux")]
fn a_refusal_is_named(config: &str) {
    let script = format!(
        "\"$LIZA\" -C \"$HOME/.ssh/project\" status\ntouch \"$HOME/x\"\n\
         perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"$ENV{{HOME}}/yours.sock\")'\n\
         for i in $(seq 200); do \"$LIZA\" status 2>&1 > /dev/null | grep '^.liza: refused' > told && break; sleep 0.02; done; sed 's/^/TOLD /' told; rm told\n{CODER}"
    );
    let bench = Bench::new(config, &[("c", &script)]);
    bench.project.add_task("t1");
    let socket = bench.home().canonicalize().unwrap().join("yours.sock");
    let _service = UnixListener::bind(&socket).unwrap();
    let closed = bench.home().join(".ssh/project/.liza");
    fs::create_dir_all(&closed).unwrap();
    fs::write(closed.join("state.yaml"), "").unwrap();
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    let log = bench.outputs();
    let place = bench.home().join(".ssh/project");
    // In a room it does not even exist.
    let named =
        [format!("outside the workspace: {}", place.display()), format!("cannot enter {}", place.display())];
    assert!(named.iter().any(|words| log.contains(words)), "{log}");
    let tail = bench.project.liza(&["tail", "coder-1", "--no-follow"]).stdout;
    let hint = format!("outside the workspace: {}", bench.home().join("x").display());
    assert!(tail.contains(&hint) && tail.contains("sandbox_writable"), "{tail}");
    let status = bench.project.liza(&["status"]).stdout;
    let opens = format!("liza config sandbox_writable '[{}]'", bench.home().join("x").display());
    assert!(status.contains("PATH REFUSED") && status.contains(&opens), "{status}");
    let opens = format!("liza config sandbox_sockets '[{}]'", socket.display());
    assert!(status.contains(&opens) && tail.contains(&opens), "{status}\n{tail}");
    assert!(log.contains(&format!("TOLD [liza: refused: {}", bench.home().join("x").display())), "{log}");
    assert!(!status.contains(".ssh"), "nobody is asked to open a login: {status}");
}

/// Covers: IS-14
#[test]
#[cfg(target_os = "linux")]
fn doctor_says_whether_a_session_could_push() {
    for (config, expected) in [
        ("sandbox: auto", "ok    push"),
        ("sandbox: auto\nsandbox_readable: [\"~/.ssh\"]", "warn  push"),
        ("sandbox: off", "warn  push"),
    ] {
        let bench = Bench::new(config, &[]);
        fs::create_dir(bench.home().join(".ssh")).unwrap();
        fs::write(bench.home().join(".ssh/id_ed25519"), "key").unwrap();
        assert!(!bench.project.liza(&["doctor"]).stdout.contains("push"), "there is no remote");
        bench.project.git(&["remote", "add", "origin", "git@example.com:a/b.git"]);
        let doctor = bench.project.liza(&["doctor"]).stdout;
        assert!(doctor.contains(expected), "{config}: {doctor}");
        assert_eq!(doctor.contains("id_ed25519"), expected.starts_with("warn"), "{doctor}");
    }
}

/// Covers: IS-05
#[test]
#[cfg(target_os = "linux")]
fn what_the_settings_open_is_part_of_the_level() {
    for (setting, expected) in [
        ("sandbox_writable: [\"~\"]", "writable"),
        ("sandbox_readable: [\"~/.ssh\"]", ".ssh is readable"),
        ("sandbox_sockets: [/]", "local services reachable: "),
    ] {
        let bench = Bench::new(&format!("sandbox: auto\n{setting}"), &[("c", CODER)]);
        fs::create_dir(bench.home().join(".ssh")).unwrap();
        let explained = bench.project.liza(&["agent", "coder", "--cli", "c", "--explain"]).stdout;
        let level = explained.lines().find(|line| line.starts_with("confined ")).unwrap();
        assert!(level.contains("unenforced: ") && level.contains(expected), "{setting}: {level}");
    }
}

/// Covers: IS-03, IS-16
#[test]
#[cfg(target_os = "linux")]
fn no_device_file_can_be_made() {
    // Without Landlock the first one needs no privilege, and the second one fails with "Operation not permitted".
    let script = r#"for device in "c 0 0" "b 7 0"; do
LC_ALL=C mknod "$TMPDIR/device" $device 2>&1 | sed "s/^/$device: /"; rm -f "$TMPDIR/device"
done"#;
    let bench = Bench::new("sandbox: auto", &[("c", &format!("{script}\n{CODER}"))]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    let log = bench.outputs();
    for device in ["c 0 0", "b 7 0"] {
        let refused = |line: &str| line.starts_with(device) && line.ends_with("Permission denied");
        assert!(log.lines().any(refused), "{device}:\n{log}");
    }
}

/// Covers: IS-03, IS-16
#[test]
#[cfg(target_os = "linux")]
fn a_supervisor_without_capabilities_is_not_slowed_down() {
    // The kernel itself protects a process that has capabilities, such as root's, from one that has none.
    let is_root = rustix::process::geteuid().is_root();
    let without: &[&str] =
        if is_root { &["setpriv", "--bounding-set=-all", "--inh-caps=-all"] } else { &["env"] };
    for (config, expected) in [("sandbox: auto", "refused"), ("sandbox: off", "slowed down")] {
        let script = r#"for call in "taskset -pc 0" "chrt --batch --pid 0" "ionice -c 2 -n 7 -p" "renice -n 19 -p"; do
if $call "$PPID"; then echo "$call: slowed down"; else echo "$call: refused"; fi; done
if renice -n 19 -g 0; then echo 'group: slowed down'; else echo 'group: refused'; fi"#;
        let bench = Bench::new(config, &[("c", &format!("{script}\n{CODER}"))]);
        bench.project.add_task("t1");
        let liza = env!("CARGO_BIN_EXE_liza");
        let mut agent = bench.project.command(without[0]);
        agent.args(&without[1..]).args([liza, "agent", "coder", "--cli", "c", "--once"]).env("LIZA", liza);
        bench.project.run(&mut agent).ok();
        let log = bench.outputs();
        for call in
            ["taskset -pc 0", "chrt --batch --pid 0", "ionice -c 2 -n 7 -p", "renice -n 19 -p", "group"]
        {
            let line = format!("{call}: {expected}");
            assert!(log.lines().any(|other| other == line), "{config}: {line}\n{log}");
        }
    }
}

/// Covers: SE-09
#[test]
#[cfg(target_os = "linux")]
fn the_private_folder_of_a_program_exists_although_there_is_nothing_to_copy() {
    let script = format!("test -d \"$CODEX_HOME\" && echo FOLDER\n{CODER}");
    let bench = Bench::new("sandbox: auto", &[("codex", &script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "codex", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    assert!(bench.outputs().contains("FOLDER"), "{}", bench.outputs());
}
