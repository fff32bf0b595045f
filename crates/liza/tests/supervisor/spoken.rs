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
