//! `liza shell`: a person looks at an agent's files from inside the agent's confinement.

use std::fs;
use std::time::Duration;

use liza_core::model::Status;

use crate::bait::{PasswordService, Servers, bait};
use crate::fixture::{Bench, CODER};
use crate::interactive::Terminal;
use crate::support::process::wait_up_to;

/// What both try, one line each: `TRIED NUMBER allowed` or `refused`. The first is allowed.
const TRIES: [&str; 16] = [
    "echo x > own && rm own",
    r#"cat "$root/.liza/state.yaml""#,
    r#"cat "$root/.git/config""#,
    r#"ls "$root/.liza/agent-prompts""#,
    r#"cat "$HOME/.ssh/id_ed25519""#,
    r#"cat "$HOME/src/other/.liza/clients/login""#,
    r#"cat "$HOME/.claude/settings.json""#,
    r#"echo x > "$root/planted""#,
    r#"echo x > "$HOME/planted""#,
    r#"echo x > "$root/.git/hooks/pre-commit""#,
    r#"echo x >> "$HOME/.cargo/registry/src/host/package-1.0.0/build.rs""#,
    r#"printf 'protocol=https\nhost=yours\n\n' | git credential-cache --socket="$HOME/service/socket" get | grep -q password"#,
    r#"port=$(cat "$root/known/server") && bash -c "exec 3<> /dev/tcp/127.0.0.1/$port""#,
    r#"env -i PATH="$PATH" HOME="$HOME" "$LIZA" -C "$root" note x"#,
    r#"[ -n "$TEST_API_KEY$AWS_SECRET_ACCESS_KEY$SSH_AUTH_SOCK" ]"#,
    // To type into the person's terminal what runs when the shell has ended.
    r#"perl -e 'for (split //, "echo typed\n") { ioctl(STDIN, 0x5412, $_) or exit 1 }'"#,
];

/// The lines of a text that say what was possible.
fn tried(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("TRIED "));
    lines.map(str::to_owned).collect()
}

/// Covers: RO-03, IS-03
#[test]
#[cfg(target_os = "linux")]
fn needs_script_a_shell_reads_and_reaches_what_its_coder_does_and_nothing_else() {
    for (config, level) in
        [("sandbox: auto", "isolated"), ("sandbox: auto\nsandbox_max_abi: 100", "restricted")]
    {
        let mut script = "root=$(cd ../.. && pwd); export root\n".to_owned();
        for (number, command) in TRIES.iter().enumerate() {
            script.push_str(&format!(
                "if ( {command} ) > /dev/null 2>&1; then echo TRIED {number} allowed; else echo TRIED {number} refused; fi\n"
            ));
        }
        let coder = format!("cat > tries <<'END_OF_TRIES'\n{script}END_OF_TRIES\nsh ./tries\nexit 1");
        let bench = bait(config, &[("c", &coder)]);
        let service = PasswordService::start(&bench);
        let _servers = Servers::start(&bench);
        bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
        let of_coder = tried(&bench.outputs());
        assert_eq!(of_coder.len(), TRIES.len(), "{}", bench.outputs());
        let mut terminal = Terminal::open(&bench, "shell t1");
        terminal.shows(&format!("confinement {level}"));
        terminal.types("sh ./tries; echo \"is $PWD\"\n");
        terminal.shows(&format!("is {}", bench.tree("t1").display()));
        // What it leaves for the person's own git.
        terminal.types("git config core.fsmonitor evil; sleep 1000 & \"$LIZA\" status; exit 7\n");
        assert_eq!(terminal.wait(), 7, "{}", terminal.screen());
        let screen = terminal.screen();
        assert_eq!(tried(&screen), of_coder, "{level}: {screen}");
        for (line, number) in of_coder.iter().zip(0..) {
            let word = if number == 0 { "allowed" } else { "refused" };
            assert_eq!(*line, format!("TRIED {number} {word}"), "{level}: {}", TRIES[number]);
        }
        assert!(!screen.contains("no job control"), "{screen}");
        assert!(screen.contains("commands of Liza do not work in liza shell"), "{screen}");
        let settings = fs::read_to_string(bench.tree("t1").join(".git/config")).unwrap();
        assert!(!settings.contains("fsmonitor"), "{settings}");
        service.call(&bench, "exit", "");
        bench.until_nothing_runs();
        let left = fs::read_dir(bench.project.root.join(".liza/tmp")).unwrap();
        assert_eq!(left.count(), 0, "nothing of it is left");
    }
}

/// Covers: RO-03, AG-09
#[test]
#[cfg(target_os = "linux")]
fn needs_script_a_shell_beside_a_running_session_disturbs_neither_it_nor_its_lease() {
    for config in ["sandbox: auto", "sandbox: auto\nsandbox_max_abi: 100"] {
        let coder = format!("while [ ! -e go ]; do sleep 0.02; done; rm go\n{CODER}");
        let bench =
            Bench::new(&format!("{config}\nroles: {{coder: {{network: model-only}}}}"), &[("c", &coder)]);
        bench.project.add_task("t1");
        let mut session = bench.agent(&["coder", "--cli", "c", "--once"]);
        bench.until_status("t1", Status::Claimed);
        let before = bench.task("t1");
        let mut terminal = Terminal::open(&bench, "shell t1");
        terminal.shows("coder-1 works in the same files now");
        terminal.types("sh -c 'echo \"proxy ${HTTPS_PROXY%:*} to $((40 + 2))\"; exec sleep 1000'\n");
        // Said by the program in the foreground: before it is there, Ctrl-C would reach the shell.
        terminal.shows("proxy http://127.0.0.1 to 42");
        // Ctrl-C ends what runs in the foreground, and not the shell.
        terminal.types("\x03");
        terminal.types("git config user.mine yes; exit 3\n");
        assert_eq!(terminal.wait(), 3, "{}", terminal.screen());
        let after = bench.task("t1");
        let claim = |task: &liza_core::model::TaskRecord| {
            (task.status, task.assigned_to, task.iteration, task.crashes)
        };
        assert_eq!(claim(&after), claim(&before));
        let settings = fs::read_to_string(bench.tree("t1").join(".git/config")).unwrap();
        assert!(settings.contains("mine = yes"), "the settings are the session's until it ends: {settings}");
        fs::write(bench.tree("t1").join("go"), "").unwrap();
        assert_eq!(session.wait(), 0, "{}\n{}", session.output(), bench.outputs());
        assert_eq!(bench.status("t1"), Status::ReadyForReview);
        bench.until_nothing_runs();
    }
}

/// Covers: RO-03
#[test]
#[cfg(target_os = "linux")]
fn needs_script_a_shell_ends_with_its_liza_however_that_ends() {
    for config in ["sandbox: auto", "sandbox: auto\nsandbox_max_abi: 100"] {
        let bench = Bench::new(config, &[]);
        bench.project.add_task("t1");
        bench.project.liza(&["register", "coder-1"]).ok();
        bench.project.liza(&["claim-task", "t1", "coder-1"]).ok();
        // The terminal stays open, as it does in a person's shell. What reads it in the background would end.
        let mut terminal = Terminal::run(
            &bench,
            &format!("{} shell t1; echo back in $0; tail -f /dev/null", env!("CARGO_BIN_EXE_liza")),
        );
        terminal.shows("confinement");
        terminal.types("sleep 1000 & echo \"job $((40 + 2))\"\n");
        terminal.shows("job 42");
        let is_liza = |line: &str| line.starts_with(env!("CARGO_BIN_EXE_liza")) && line.contains("shell t1");
        let liza = bench.processes().into_iter().find(|(_, line)| is_liza(line)).unwrap();
        assert!(bench.project.run(bench.project.command("kill").args(["-9", &liza.0])).code == 0);
        terminal.shows("back in");
        let is_left = |line: &String| line.contains("sleep 1000") || line.trim_end() == "/bin/bash";
        let ended =
            wait_up_to(Duration::from_secs(30), || (!bench.running().iter().any(is_left)).then_some(()));
        assert!(ended.is_some(), "{config}: {:#?}", bench.running());
    }
}

/// A shell for a task, from a person's own one, which afterwards says what has changed and what it reads.
fn shell_in_a_shell(bench: &Bench) -> Terminal<'_> {
    bench.project.add_task("t1");
    bench.project.liza(&["register", "coder-1"]).ok();
    bench.project.liza(&["claim-task", "t1", "coder-1"]).ok();
    let line = format!(
        r#"look() {{ stty -g; stty size; stat -c %a $(tty); }}; before=$(look); TERM=xterm {} shell t1; echo "ended $?"
[ "$(look)" = "$before" ] && : 3<> /dev/tty && echo "terminal kept"; read -r line; echo "got <$line>""#,
        env!("CARGO_BIN_EXE_liza")
    );
    let terminal = Terminal::run(bench, &line);
    terminal.shows("confinement ");
    terminal
}

/// Covers: RO-03
#[test]
#[cfg(target_os = "linux")]
fn needs_script_a_shell_leaves_your_terminal_as_it_was_and_no_answer_that_your_own_shell_would_read() {
    let bench = Bench::new("sandbox: auto", &[]);
    let mut terminal = shell_in_a_shell(&bench);
    terminal.types("perl -e 'chmod 0666, *STDOUT; print \"mode \", (stat STDOUT)[2] & 0777, \"\\n\"'; ");
    terminal.types("sh -c 'printf \"\\033[?1003h\\033[c\"; while [ ! -e go ]; do sleep 0.02; done'; exit\n");
    terminal.shows(&format!("mode {}", 0o666));
    terminal.shows("\x1b[c");
    // The answer of a terminal, after the program that asked for it has ended.
    fs::write(bench.tree("t1").join("go"), "").unwrap();
    terminal.shows("\x1b[5n");
    terminal.types("\x1b[?1;2c\x1b[0n");
    terminal.shows("terminal kept");
    terminal.types("\n");
    terminal.shows("got <>");
    let screen = terminal.screen();
    let (_, after) = screen.split_once("\x1b[c").unwrap();
    assert!(
        after.contains("1003") && after.contains("\x1b[!p"),
        "what a program has left on is off: {after:?}"
    );
}

/// Covers: RO-03, IS-03
#[test]
#[cfg(target_os = "linux")]
fn needs_script_what_a_program_does_to_its_terminal_never_reaches_yours() {
    // Exclusive use, a window of 1 x 3, output stopped, another line discipline: the numbers of `ioctl`.
    for (config, call, last) in [
        ("sandbox: auto", "0x540A", "0"),
        ("sandbox: auto\nsandbox_max_abi: 100", "0x5423", "pack(\"i\", 27)"),
        ("sandbox: off", "0x540A", "0"),
    ] {
        let bench = Bench::new(config, &[]);
        let mut terminal = shell_in_a_shell(&bench);
        let own = format!("my ($z, $size) = (0, pack(\"SSSS\", 1, 3, 0, 0)); my $last = {last}; $| = 1");
        terminal.types(&format!("perl -e '{own}; ioctl(STDOUT, 0x540C, $z); ioctl(STDOUT, 0x5414, $size); "));
        terminal.types(&format!("print \"did \", 6 * 7, \"\\n\"; ioctl(STDOUT, {call}, $last)'; exit 5\n"));
        terminal.shows("did 42");
        terminal.shows("ended ");
        terminal.shows("terminal kept");
        terminal.types("mine\n");
        terminal.shows("got <mine>");
    }
}

/// Covers: RO-03
#[test]
#[cfg(target_os = "linux")]
fn needs_script_a_shell_follows_the_size_of_your_window_and_gives_the_terminal_back_if_liza_is_ended() {
    let bench = Bench::new("sandbox: auto", &[]);
    let mut terminal = shell_in_a_shell(&bench);
    terminal.types("echo $((6 * 7)); tty > /dev/null; trap '' TERM HUP; stty size\n");
    terminal.shows("42");
    let is_liza = |line: &str| line.starts_with(env!("CARGO_BIN_EXE_liza")) && line.contains("shell t1");
    let liza = bench.processes().into_iter().find(|(_, line)| is_liza(line)).unwrap().0;
    let window = fs::read_link(format!("/proc/{liza}/fd/0")).unwrap();
    let sized = bench.project.command("stty").args(["rows", "33", "cols", "77", "-F"]).arg(&window).status();
    assert!(sized.unwrap().success());
    terminal.types("while [ \"$(stty size)\" != '33 77' ]; do sleep 0.02; done; echo \"sized $((6 * 7))\"\n");
    terminal.shows("sized 42");
    let back = bench.project.command("stty").args(["size", "-F"]).arg(&window).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&back.stdout).trim(), "33 77");
    bench.project.run(bench.project.command("kill").args(["-TERM", &liza]));
    terminal.shows("ended ");
    let modes = bench.project.command("stty").args(["-a", "-F"]).arg(&window).output().unwrap();
    let modes = String::from_utf8_lossy(&modes.stdout).into_owned();
    assert!(modes.contains(" icanon") && modes.contains(" echo "), "{modes}");
    terminal.types("\n");
    terminal.wait();
    bench.until_nothing_runs();
}

/// Covers: RO-03
#[test]
fn a_shell_is_refused_with_the_reason_where_it_cannot_be_had() {
    let bench = Bench::new("sandbox: auto", &[]);
    let refused = |code: &str, message: &str, hint: &str| {
        let error = bench.project.liza(&["shell", "t1", "--json"]).refused(1, code);
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    };
    refused("unknown_task", "t1", "liza status");
    bench.project.add_task("t1");
    refused("no_worktree", "t1 has no worktree", "liza show t1");
    bench.project.liza(&["register", "coder-1"]).ok();
    bench.project.liza(&["claim-task", "t1", "coder-1"]).ok();
    refused("no_terminal", "the shell needs a terminal", "liza diff");
    bench.project.liza(&["config", "sandbox", "require"]).ok();
    bench.project.liza(&["config", "sandbox_max_abi", "0"]).ok();
    refused("confinement", "config.sandbox is require", "liza doctor");
    bench.project.liza(&["lock", "write", ".agents.coder-1.machine", "elsewhere-0123"]).ok();
    refused("other_machine", "elsewhere-0123", "on elsewhere-0123: liza shell t1");
    let session = bench.project.liza_as("coder-1", &["shell", "t1"]);
    assert_eq!(session.code, 1, "{session:?}");
}
