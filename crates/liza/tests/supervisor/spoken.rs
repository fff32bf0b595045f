//! Who speaks for a code reviewer: its agent program, itself or in a shell, and nothing that the commit under
//! review brings, whatever runs it.

#![cfg(target_os = "linux")]

use std::path::Path;

use crate::fixture::{Bench, CODER};
use crate::support::attack::{HONEST, SETTINGS, attempts, check_attempts};

const REJECT: &str =
    r#""$LIZA" submit-verdict "$1" REJECTED "Blockers: 1 - [blocker] t1.txt:1 - it attacks the reviewer""#;

/// Covers: JU-08
#[test]
fn only_the_reviewers_program_and_its_shells_speak() {
    let toolchain = Path::new(env!("CARGO")).ancestors().nth(2).unwrap();
    let passed = "pass_env: [LIZA, LIZA_TEST_MARK, BASH_ENV, ENV, LD_LIBRARY_PATH, GIT_EXTERNAL_DIFF]";
    for sandbox in ["sandbox: auto", "sandbox: auto\nsandbox_max_abi: 100", "sandbox: off"] {
        let is_confined = sandbox != "sandbox: off";
        let config = format!("{sandbox}\n{passed}\nsandbox_readable: [\"{}\"]", toolchain.display());
        let reviewer = format!("exec 2>&1\n{}\n{HONEST}", attempts(is_confined).join("\n"));
        let coder = format!("{SETTINGS}\n{CODER}");
        let bench = Bench::new(&config, &[("c", &coder), ("r", &reviewer)]);
        bench.project.add_task("t1");
        assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
        let mut review = bench.project.program();
        review
            .args(["agent", "code-reviewer", "--cli", "r", "--once"])
            .env("LIZA", env!("CARGO_BIN_EXE_liza"));
        for name in ["BASH_ENV", "ENV", "GIT_EXTERNAL_DIFF"] {
            review.env(name, "./approve.sh");
        }
        review.env("PATH", format!("tools:{}", std::env::var("PATH").unwrap()));
        bench.project.run(&mut review).ok();
        let log = bench.outputs();
        assert_eq!(bench.status("t1").to_string(), "REJECTED", "{sandbox}:\n{log}");
        check_attempts(&log, is_confined);
    }
}

/// The agent program is a script, so each script of the commit has the file of its program.
const INTERPRETED: &str = r#"exec 2>&1
cat > "$TMPDIR/agent.py" <<'END'
import subprocess, sys
rejects = sys.stdin.read()
for line in [
    "python3 become.py; true", "python3 become.py", "python3 become_shell.py", "python3 sibling.py",
    "exec python3 become.py", "(python3 become.py)", "python3 '-cimport attempt; attempt.run()' " + sys.argv[0],
    "PYTHONPATH=. python3 " + sys.argv[0] + " again", "exec -a python3 python3 become.py " + sys.argv[0],
]:
    if sys.argv[1:] != ["again"]:
        subprocess.run(["bash", "-c", line]); print("ENDED", flush=True)
subprocess.run(["python3", "become.py"])
subprocess.run(["bash", "-c", '"$LIZA" status > /dev/null && echo "HONEST bash"'])
subprocess.run('"$LIZA" get goal.status > /dev/null && echo "HONEST shell"', shell=True)
subprocess.run(["bash", "-c", rejects])
END
exec python3 "$TMPDIR/agent.py" <<'END'
"#;

const BECOMING: &str = r#"printf 'import os\nos.execv(os.environ["LIZA"], ["liza", "submit-verdict", "t1", "APPROVED", "all is well"])\n' > become.py
printf 'import os\nos.execv("/bin/sh", ["sh", "-c", "\"$LIZA\" submit-verdict t1 APPROVED well"])\n' > become_shell.py
printf 'import ctypes, os, sys\nmade = ctypes.CDLL(None).syscall(56, 0x8011, 0, 0, 0, 0)\nif made == 0: import become\nprint("SIBLING", made)\n' > sibling.py
printf 'import os, subprocess\ndef run(): subprocess.run([os.environ["LIZA"], "submit-verdict", "t1", "APPROVED", "well"])\n' > attempt.py
printf 'import sys\nif sys.argv[1:] == ["again"]:\n    import attempt\n    attempt.run()\n' > sitecustomize.py
"#;

/// Covers: JU-08
#[test]
#[cfg(target_arch = "x86_64")]
fn an_agent_program_that_is_a_script_does_not_lend_its_voice_to_the_commits_scripts() {
    let reviewer = format!("{INTERPRETED}{}\nEND\n", REJECT.replace("$1", "t1"));
    let bench = Bench::new(
        "sandbox: auto\npass_env: [LIZA, LIZA_TEST_MARK]",
        &[("c", &format!("{BECOMING}\n{CODER}")), ("r", &reviewer)],
    );
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
    let mut review = bench.project.program();
    review.args(["agent", "code-reviewer", "--cli", "r", "--once"]).env("LIZA", env!("CARGO_BIN_EXE_liza"));
    bench.project.run(&mut review).ok();
    let log = bench.outputs();
    assert_eq!(bench.status("t1").to_string(), "REJECTED", "{log}");
    assert_eq!(log.matches("ENDED\n").count(), 9, "{log}");
    assert!(
        log.contains("SIBLING -1") && log.contains("HONEST bash") && log.contains("HONEST shell"),
        "{log}"
    );
    let refused = log.matches("counts only if the agent program runs it, itself or in a shell").count();
    assert!(refused >= 8, "{refused}:\n{log}");
}

/// Covers: JU-08
#[test]
fn a_reviewer_reads_and_checks_a_checkout_that_it_can_neither_write_nor_run() {
    let coder =
        format!("printf '#!/bin/sh\\necho \"RAN $(cat made)\"\\n' > run.sh; chmod +x run.sh\n{CODER}");
    let reviewer = format!(
        r#"exec 2>&1
tried() {{ if ( eval "$2" ) > /dev/null 2>&1; then echo "$1 possible"; else echo "$1 refused"; fi; }}
tried write 'echo x > new'; tried change 'echo x >> t1.txt'; tried remove 'rm t1.txt'; tried replace 'mv t1.txt t2.txt'
tried configure 'git config a.b c'; tried commit 'git commit --allow-empty -m x'; tried prepared 'echo x > ../.prepared-t1/x'
tried run ./run.sh; tried run-prepared ../.prepared-t1/run.sh; tried run-coders ../t1/run.sh
tried read 'cat t1.txt'; tried search 'grep -r work .'; tried status 'git status'; tried diff 'git diff HEAD~1'
tried log 'git log'; tried show 'git show HEAD:t1.txt'; tried scratch 'echo x > "$TMPDIR/x"'
"$LIZA" check -- ./run.sh; "$LIZA" check -- "$PWD/run.sh"
"$LIZA" check -- sh -c 'echo "in $(basename "$PWD")"; rm made; echo x > t1.txt; echo x > left; git config user.name left'
"$LIZA" check -- sh -c 'cat t1.txt; ls; git config user.name'
{REJECT}"#
    );
    let bench = Bench::new("sandbox: auto", &[("c", &coder), ("r", &reviewer)]);
    bench.project.set_config("setup", "echo 'set up' > made; echo made > .gitignore");
    bench.project.add_task("t1");
    for words in [["coder", "--cli", "c", "--once"], ["code-reviewer", "--cli", "r", "--once"]] {
        assert_eq!(bench.agent(&words).wait(), 0, "{}", bench.outputs());
    }
    let log = bench.outputs();
    for what in ["write", "change", "remove", "replace", "configure", "commit", "prepared"] {
        assert!(log.contains(&format!("{what} refused\n")), "{what}:\n{log}");
    }
    for what in ["run", "run-prepared", "run-coders"] {
        assert!(log.contains(&format!("{what} refused\n")), "{what}:\n{log}");
    }
    for what in ["read", "search", "status", "diff", "log", "show", "scratch"] {
        assert!(log.contains(&format!("{what} possible\n")), "{what}:\n{log}");
    }
    assert_eq!(log.matches("RAN set up\n").count(), 2, "{log}");
    // The room makes the copies, and nothing of one is in the next.
    assert!(log.contains("in .prepared-t1\nwork on t1\nmade\nrun.sh\nspecs\nt1.txt\n"), "{log}");
    assert!(!log.contains("left\n"), "{log}");
    assert!(log.contains("[liza: confinement isolated;"), "{log}");
    assert_eq!(bench.status("t1").to_string(), "REJECTED", "{log}");
}
