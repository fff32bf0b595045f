//! `liza agent --interactive`: the agent program has the person's terminal.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};
use crate::support::process::{wait_for, wait_up_to};

/// A person at a terminal, which `script` provides.
pub(crate) struct Terminal<'b> {
    bench: &'b Bench,
    child: Child,
}

impl<'b> Terminal<'b> {
    pub(crate) fn open(bench: &'b Bench, words: &str) -> Self {
        // Without a shell in between, which would handle Ctrl-C itself.
        Self::run(bench, &format!("exec {} {words}", env!("CARGO_BIN_EXE_liza")))
    }

    /// Runs a line of a shell.
    pub(crate) fn run(bench: &'b Bench, line: &str) -> Self {
        let screen = fs::File::create(bench.home().join("screen")).unwrap();
        let mut script = bench.project.command("script");
        script.args(["-qefc", line, "/dev/null"]).envs(bench.variables());
        script
            .env("SHELL", "/bin/bash")
            .env("TEST_API_KEY", "a key")
            .stdin(Stdio::piped())
            .stdout(screen.try_clone().unwrap())
            .stderr(screen);
        let child = script.spawn().unwrap_or_else(|error| {
            panic!("script(1) cannot be run, ./check leaves this test out without it: {error}")
        });
        Self { bench, child }
    }

    pub(crate) fn screen(&self) -> String {
        fs::read_to_string(self.bench.home().join("screen")).unwrap()
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        let seen = wait_up_to(Duration::from_secs(30), || self.screen().contains(text).then_some(()));
        assert!(seen.is_some(), "never showed {text:?}:\n{}", self.screen());
    }

    #[track_caller]
    pub(crate) fn wait(&mut self) -> i32 {
        wait_for("it ends", || self.child.try_wait().unwrap()).code().unwrap_or(-1)
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that talks with the person; `$1` is the task, `$2` the prompt.
fn client(bench: &Bench) {
    let program = bench.home().join("client.sh");
    let work = CODER.replace("exit 42", "");
    let script = format!(
        r#"#!/bin/sh
trap 'echo "interrupted"' INT
test -t 0 && test -t 1 && test -t 2 && echo "has the terminal"
grep -q "=== ASSIGNED TASK ===" "$2" && echo "has the prompt"
echo "your name?"; while ! read name; do :; done
echo "hello $name"
{work}
echo "submitted; bye?"; read bye
exit 42
"#
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let call = format!("program: {}, interactive_args: [\"{{task}}\", \"{{prompt}}\"]", program.display());
    bench.project.set_config("providers", &format!("{{talks: {{{call}}}}}"));
    bench.project.liza(&["validate"]).ok();
}

/// Covers: AG-05, AG-09, AG-13
#[test]
fn needs_script_the_client_has_the_terminal_and_ctrl_c_until_the_person_ends_it() {
    let bench = Bench::new("stop_grace: 1", &[]);
    client(&bench);
    bench.project.add_task("t1");
    let mut terminal = Terminal::open(&bench, "agent coder --cli talks --interactive");
    terminal.shows("has the terminal");
    terminal.shows("has the prompt");
    terminal.shows("your name?");
    terminal.types("\x03");
    terminal.shows("interrupted");
    terminal.types("Ada\n");
    terminal.shows("hello Ada");
    bench.until_status("t1", Status::ReadyForReview);
    terminal.shows("bye?");
    // Its work is done, but the person is not: the session is not ended.
    let thrown_out = || terminal.screen().contains("stopping the session").then_some(());
    assert_eq!(wait_up_to(Duration::from_millis(2500), thrown_out), None);
    terminal.types("bye\n");
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    assert_eq!(bench.entry("coder-1"), None, "the registration is for one session only");
    assert_eq!(bench.kept("agent-prompts").len(), 1);
    assert!(bench.outputs().is_empty(), "a conversation is not recorded");
    bench.until_nothing_runs();
}

/// Covers: AG-13, RO-03
#[test]
#[cfg(target_os = "linux")]
fn needs_script_what_a_conversation_does_to_its_terminal_never_reaches_yours() {
    for config in ["sandbox: auto", "sandbox: off"] {
        let bench = Bench::new(config, &[]);
        client(&bench);
        let program = bench.home().join("client.sh");
        // Exclusive use, and another size.
        let spoils = r#"#!/bin/sh
perl -e 'my $z = 0; ioctl(STDIN, 0x540C, $z)'; stty -echo rows 1 cols 3; echo "is $(stty size)"; read -r word; echo "read $word""#;
        fs::write(&program, spoils).unwrap();
        bench.project.add_task("t1");
        let line = format!(
            r#"look() {{ stty -g; stty size; }}; before=$(look); TERM=xterm {} agent coder --cli talks --interactive
[ "$(look)" = "$before" ] && : 3<> /dev/tty && echo "terminal kept""#,
            env!("CARGO_BIN_EXE_liza")
        );
        let mut terminal = Terminal::run(&bench, &line);
        terminal.shows("is 1 3");
        terminal.types("mine\n");
        terminal.shows("read mine");
        terminal.shows("terminal kept");
        bench.until_nothing_runs();
    }
}

/// Covers: AG-07, AG-09
#[test]
fn needs_script_a_closed_terminal_ends_the_session_and_keeps_the_claim() {
    let bench = Bench::new("", &[]);
    client(&bench);
    bench.project.add_task("t1");
    let mut terminal = Terminal::open(&bench, "agent coder --cli talks --interactive");
    terminal.shows("your name?");
    terminal.child.kill().unwrap();
    terminal.child.wait().unwrap();
    bench.until_nothing_runs();
    assert_eq!((bench.status("t1"), bench.task("t1").crashes), (Status::Claimed, None));
    wait_for("it is off the board", || bench.entry("coder-1").is_none().then_some(()));
}

/// Covers: AG-13
#[test]
fn a_program_without_an_interactive_mode_is_refused() {
    let bench = Bench::new("", &[("c", CODER)]);
    let words = ["agent", "coder", "--cli", "c", "--interactive", "--json"];
    bench.project.add_task("t1");
    let run = bench.project.liza(&words);
    let error = run.refused(1, "not_interactive");
    assert!(error["message"].as_str().unwrap().contains("no interactive mode"), "{error}");
    assert!(bench.state().board.agents().unwrap().is_empty(), "no agent is left on the board");
    assert_eq!(bench.status("t1"), Status::Unclaimed, "and no task was claimed");
}
