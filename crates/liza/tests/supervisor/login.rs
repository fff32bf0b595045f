//! Logins whose refresh tokens work once: sessions of a team, each with its own copy, and a person who stays logged in.

use std::fs;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};
use crate::support::process::Running;

/// A codex whose access token has expired. The server, a folder, accepts each refresh token once. All sessions of the test are
/// there before the first one refreshes (`ALL_AT_ONCE`), or the first one waits for the others after that.
const CODEX: &str = r#"
auth="$CODEX_HOME/auth.json"; server="$HOME/server"
echo x >> "$server/sessions"
all_started() { until [ "$(wc -l < "$server/sessions")" -ge 3 ]; do sleep 0.05; done; }
[ -e "$server/all-at-once" ] && all_started
number=$(sed -n 's/.*"refresh_token": *"rt_\([0-9]*\)".*/\1/p' "$auth")
until mkdir "$server/busy" 2> /dev/null; do sleep 0.01; done
if [ "$number" = 1 ] && [ "$(cat "$server/next")" = 1 ]; then
  echo 2 > "$server/next"
  sed -e 's/rt_1/rt_2/' -e 's/eyJzdWIiOiJhZGEiLCJleHAiOjF9/eyJzdWIiOiJhZGEiLCJleHAiOjQxMDI0NDQ4MDB9/' "$auth" > "$auth.new"
  mv "$auth.new" "$auth"
elif [ "$number" = 1 ]; then
  echo x >> "$server/refused"; rmdir "$server/busy"
  echo '{"type":"turn.failed","error":{"message":"Your access token could not be refreshed because your refresh token was already used. Please log out and sign in again."}}'
  exit 1
fi
rmdir "$server/busy"
all_started
"#;

/// `{"sub":"ada","exp":1}`: it has expired long ago.
const EXPIRED: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEiLCJleHAiOjF9.c2ln";

/// A project with three tasks, and a login with this access token.
fn bench(access_token: &str) -> Bench {
    let config = "sandbox: auto\nsandbox_writable: [\"~/server\"]";
    let bench = Bench::new(config, &[("codex", &format!("{CODEX}\n{CODER}"))]);
    fs::create_dir(bench.home().join("server")).unwrap();
    fs::write(bench.home().join("server/next"), "1\n").unwrap();
    fs::create_dir(bench.home().join(".codex")).unwrap();
    let tokens = format!(r#"{{"access_token":"{access_token}","account_id":"ada","refresh_token":"rt_1"}}"#);
    fs::write(bench.home().join(".codex/auth.json"), format!(r#"{{"tokens":{tokens}}}"#)).unwrap();
    for task in ["t1", "t2", "t3"] {
        bench.project.add_task(task);
    }
    bench
}

/// Three coders, until each has submitted its task.
fn work(bench: &Bench) -> Vec<Running> {
    let coders: Vec<Running> = (0..3).map(|_| bench.agent(&["coder", "--cli", "codex"])).collect();
    for task in ["t1", "t2", "t3"] {
        bench.until_status(task, Status::ReadyForReview);
        let task = bench.task(task);
        assert_eq!((task.crashes, task.idle_exits), (None, None), "no task is blamed");
    }
    coders
}

fn server(bench: &Bench, file: &str) -> usize {
    fs::read_to_string(bench.home().join("server").join(file)).unwrap_or_default().lines().count()
}

/// Covers: AX-26
#[test]
#[cfg(target_os = "linux")]
fn sessions_that_refresh_a_login_at_once_leave_the_new_one_and_start_again_with_it() {
    let bench = bench("unreadable");
    fs::write(bench.home().join("server/all-at-once"), "").unwrap();
    let coders = work(&bench);
    let login = fs::read_to_string(bench.home().join(".codex/auth.json")).unwrap();
    assert!(login.contains("rt_2") && !login.contains("rt_1"), "the person is logged in: {login}");
    assert_eq!((server(&bench, "refused"), server(&bench, "sessions")), (2, 5), "two start again, once");
    let log = bench.project.liza(&["log"]).ok().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(log.contains("exited 1 and starts again with your present login"), "{log}");
    coders.into_iter().for_each(|mut coder| coder.stop());
}

/// Covers: AX-26
#[test]
#[cfg(target_os = "linux")]
fn a_session_that_would_outlive_a_login_starts_alone_until_it_was_refreshed() {
    let bench = bench(EXPIRED);
    let coders = work(&bench);
    assert_eq!((server(&bench, "refused"), server(&bench, "sessions")), (0, 3), "no token was used twice");
    let login = fs::read_to_string(bench.home().join(".codex/auth.json")).unwrap();
    assert!(login.contains("rt_2"), "{login}");
    coders.into_iter().for_each(|mut coder| coder.stop());
}
