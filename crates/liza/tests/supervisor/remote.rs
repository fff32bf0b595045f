//! Supervisors and a git remote that is gone or refuses work.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};
use crate::support::process::wait_for;

/// A project whose work moves through a bare repository next to it.
fn shared(config: &str, coder: &str) -> Bench {
    let bench = Bench::new(config, &[("coder", coder)]);
    let bare = bare(&bench);
    let project = &bench.project;
    project.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    project.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    project.git(&["push", "-q", "origin", "integration"]);
    project.liza(&["lock", "write", "config.remote", "origin"]).ok();
    bench
}

fn bare(bench: &Bench) -> PathBuf {
    bench.home().join("remote.git")
}

fn work_on_remote(bench: &Bench) -> String {
    bench.project.git_at(&bare(bench), &["for-each-ref", "--format=%(objectname)", "refs/liza/task"])
}

/// How many sessions have begun.
fn sessions(bench: &Bench) -> usize {
    bench.kept("agent-prompts").len()
}

/// Covers: MM-07
#[test]
fn work_is_sent_at_a_heartbeat() {
    let script = r#"echo half > half.txt; git add . && git commit -qm half; git rev-parse HEAD > "$HOME/half"
        while [ ! -e "$HOME/go" ]; do sleep 0.1; done"#;
    let bench = shared("heartbeat_interval: 1", script);
    bench.project.add_task("one");
    let mut coder = bench.agent(&["coder", "--cli", "coder"]);
    let half = wait_for("a commit", || {
        fs::read_to_string(bench.home().join("half")).ok().filter(|text| text.ends_with('\n'))
    });
    wait_for("it is on the remote", || (work_on_remote(&bench) == half.trim()).then_some(()));
    assert_eq!(bench.status("one"), Status::Claimed, "it is not submitted");
    fs::write(bench.home().join("go"), "").unwrap();
    coder.stop();
}

/// Covers: MM-07
#[test]
fn a_supervisor_outlasts_a_remote_that_is_gone() {
    // Longer than it would wait for work.
    let bench = shared("coder_max_wait: 2\ncoder_poll_interval: 1", CODER);
    bench.project.add_task("one");
    let away = bench.home().join("away.git");
    fs::rename(bare(&bench), &away).unwrap();
    let mut coder = bench.agent(&["coder", "--cli", "coder"]);
    wait_for("it tries again", || {
        let tries = coder.output().matches("cannot reach the remote origin").count();
        (tries >= 2).then_some(())
    });
    assert_eq!((sessions(&bench), bench.status("one")), (0, Status::Unclaimed), "{}", coder.output());
    assert_eq!(bench.state().board.sprint.ready().unwrap().sessions, Default::default());
    assert!(bench.project.liza(&["status"]).ok().contains("REMOTE PROBLEM"));
    fs::rename(&away, bare(&bench)).unwrap();
    bench.until_status("one", Status::ReadyForReview);
    assert_eq!(sessions(&bench), 1);
    coder.stop();
}

/// Covers: MM-07
#[test]
fn no_session_starts_while_the_remote_refuses_the_work_of_the_last_one() {
    let bench = shared("coder_poll_interval: 1\nmax_crashes: 2", CODER);
    bench.project.add_task("one");
    let hook = bare(&bench).join("hooks/pre-receive");
    let text = "#!/bin/sh\nwhile read old new ref; do case $ref in refs/liza/task/*)\n\
        echo 'no space left' >&2; exit 1;; esac; done\n";
    fs::write(&hook, text).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let mut coder = bench.agent(&["coder", "--cli", "coder"]);
    wait_for("it is refused between sessions", || {
        let tries = coder.output().matches("Retry in").count();
        (tries >= 2).then_some(())
    });
    let record = bench.task("one");
    assert_eq!(sessions(&bench), 1, "{}", coder.output());
    assert_eq!((record.status, record.crashes.unwrap_or_default()), (Some(Status::Claimed), 0));
    fs::remove_file(&hook).unwrap();
    bench.until_status("one", Status::ReadyForReview);
    assert_eq!(sessions(&bench), 2);
    coder.stop();
}
