//! The webhook: what it receives, and what happens if it does not answer.

use std::fs;
use std::time::{Duration, Instant};

use liza_core::model::Seconds;
use liza_core::protocol::{Checkpoint, CheckpointCause, Command};
use liza_team::watch::WatchOptions;
use liza_team::watch::http::post;
use liza_team::watch::webhook::RetryPolicy;

use crate::fixture::Clocked;
use crate::server::{Answer, CERTIFICATE, Server, closed_port};
use crate::support::TestProject;
use crate::support::process::wait_for;

fn short_timeouts() -> RetryPolicy {
    RetryPolicy { timeout: Duration::from_millis(500), pauses: vec![Duration::from_millis(5); 2] }
}

fn options() -> WatchOptions {
    WatchOptions { webhook_policy: short_timeouts(), desktop: false, ..WatchOptions::default() }
}

/// A project whose alarms go to that address, with a blocked task.
fn blocked(url: &str) -> Clocked {
    let world = Clocked::new();
    world.test.liza(&["lock", "write", ".config.escalation_webhook", url]).ok();
    world.test.add_task("core");
    world.test.liza(&["mark-blocked", "core", "--reason", "key sk-ant-REDACTED", "--question", "?"]).ok();
    world
}

fn alerts(world: &Clocked) -> String {
    fs::read_to_string(world.test.root.join(".liza/alerts.log")).unwrap_or_default()
}

/// Covers: SP-05, SP-06
#[test]
fn a_waiting_checkpoint_is_posted_with_its_facts() {
    let server = Server::answering(&[Answer::Status(200)]);
    let mut world = blocked(&server.url());
    world.human(Command::from(Checkpoint { cause: CheckpointCause::Human }));
    let since = world.now;
    world.now = since + Seconds(7260);
    let mut watcher = world.watcher(options());
    watcher.check(world.now);
    assert!(watcher.close(Duration::from_secs(20)));
    let (line, blocked) = server.next();
    assert_eq!(line, "POST /services/s3cr3t-token?x=1 HTTP/1.1");
    assert_eq!((blocked["event"].as_str(), blocked["task"].as_str()), (Some("blocked"), Some("core")));
    assert!(!blocked.to_string().contains("abcdefghijklmnop"), "secrets are masked: {blocked}");
    let (_, stuck) = server.next();
    assert_eq!(stuck["event"], "checkpoint_stuck");
    assert_eq!(stuck["level"], "critical");
    assert_eq!(stuck["duration"], "2h 1m");
    assert_eq!(stuck["duration_seconds"], 7260);
    assert_eq!(stuck["timestamp"], world.now.to_string());
    assert_eq!(stuck["since"], since.to_string());
    assert_eq!((stuck["sprint"].as_str(), stuck["goal"].as_str()), (Some("sprint-1"), Some("goal-1")));
    assert_eq!(stuck["tasks_waiting"][0]["task"], "core");
    assert_eq!(stuck["tasks_waiting"][0]["status"], "BLOCKED");
    assert_eq!(stuck["text"], "🚨 CHECKPOINT STUCK: waiting for human for 2h 1m");
    assert_eq!(server.rest(), 0, "each alarm once");
}

/// Covers: SP-05
#[test]
fn a_failed_request_is_repeated() {
    let server = Server::answering(&[Answer::Status(500), Answer::Status(429), Answer::Status(204)]);
    post(&server.url(), "{}", &short_timeouts()).unwrap();
    (0..3).for_each(|_| drop(server.next()));
    assert_eq!(server.rest(), 0);
    let server = Server::answering(&[Answer::Status(404)]);
    assert_eq!(post(&server.url(), "{}", &short_timeouts()), Err("HTTP status 404".to_owned()));
    server.next();
    assert_eq!(server.rest(), 0, "another attempt would not help");
    let server = Server::answering(&[Answer::Status(302)]);
    assert!(post(&server.url(), "{}", &short_timeouts()).unwrap_err().contains("redirects"));
}

/// Covers: SP-05
#[test]
fn a_server_that_hangs_delays_nothing_and_is_logged() {
    let server = Server::answering(&[Answer::Hang]);
    let world = blocked(&server.url());
    let mut watcher = world.watcher(options());
    let began = Instant::now();
    assert_eq!(watcher.check(world.now).new.len(), 1);
    assert!(began.elapsed() < short_timeouts().timeout, "the check does not wait: {:?}", began.elapsed());
    let logged = wait_for("the failure is in the log", || {
        let text = alerts(&world);
        text.contains("WEBHOOK FAILED").then_some(text)
    });
    let logged = logged.lines().last().unwrap();
    assert!(logged.contains("no response within 0.5 s (3 tries)"), "{logged}");
    assert!(logged.contains(&format!("http://127.0.0.1:{}/…", server.port)), "{logged}");
    assert!(!logged.contains("s3cr3t"), "{logged}");
    let report = watcher.check(world.now);
    assert_eq!(report.new.len(), 0);
    assert!(report.notices.iter().any(|notice| notice.contains("WEBHOOK FAILED")), "{:?}", report.notices);
}

/// Covers: SP-05
#[test]
fn a_refused_connection_and_an_invalid_address_are_reported_and_change_nothing_else() {
    for url in [format!("http://127.0.0.1:{}/s3cr3t", closed_port()), "s3cr3t".to_owned()] {
        let world = blocked(&url);
        let mut watcher = world.watcher(options());
        assert_eq!(watcher.check(world.now).new.len(), 1);
        assert!(watcher.close(Duration::from_secs(20)));
        let logged = alerts(&world);
        assert_eq!(logged.lines().count(), 2, "{logged}");
        assert!(logged.lines().next().unwrap().contains("BLOCKED: core"), "{logged}");
        assert!(logged.contains("WEBHOOK FAILED") && !logged.contains("s3cr3t"), "{logged}");
    }
}

/// Covers: SP-05
#[test]
fn https_works_only_with_certificates_that_the_system_trusts() {
    let server = Server::with_tls(&[Answer::Status(200)]);
    let project = TestProject::new();
    let url = format!("https://localhost:{}/s3cr3t", server.port);
    let untrusted = post(&url, "{}", &short_timeouts()).unwrap_err();
    assert!(untrusted.contains("certificate"), "{untrusted}");
    project.liza(&["lock", "write", ".config.escalation_webhook", &url]).ok();
    project.add_task("core");
    project.liza(&["mark-blocked", "core", "--reason", "x", "--question", "?"]).ok();
    let trusted = project.home().join("trusted.pem");
    fs::write(&trusted, CERTIFICATE).unwrap();
    let run = project.run(project.program().args(["watch", "--once"]).env("SSL_CERT_FILE", &trusted));
    run.ok();
    assert_eq!(server.next().1["event"], "blocked");
    assert!(!project.read(".liza/alerts.log").contains("WEBHOOK FAILED"));
}
