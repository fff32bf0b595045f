//! What supervisors try again and again is shown, with the task, the reason, what to do and a command.

use liza_core::model::{Loaded, Status};
use liza_core::supervise::WorkKind;
use liza_status::alarms::{AlarmKind, FailingJob, Observations, Remedy};
use liza_status::command_line::CommandLine;
use liza_status::view::view;
use liza_testkit::team::*;

fn failing(count: u32, on: Option<&str>) -> FailingJob {
    let message = "its new objects are larger than 2 GiB".to_owned();
    let (kind, agent, task) = (WorkKind::Code, agent("coder-1"), on.map(task));
    FailingJob { kind, agent, task, count, message, remedy: None, since: now() }
}

fn shown(status: Status, job: FailingJob, has_team: bool) -> Option<(String, String)> {
    let seen = Observations { failing_jobs: vec![job], ..Observations::default() };
    let mut state = state_with(status);
    if !has_team {
        state.board.agents = Loaded::Ready(Default::default());
    }
    let needs = view(&state, &seen, now()).needs_you;
    let own = needs.into_iter().find(|need| need.kind == AlarmKind::WorkFails);
    own.map(|need| (need.text.to_string(), need.command.to_string()))
}

/// Covers: AG-05, UI-03, AX-04
#[test]
fn no_job_is_retried_for_ever_in_silence() {
    assert_eq!(shown(Status::Unclaimed, failing(2, Some("t")), true), None, "twice may be chance");
    let text = "coder-1 has failed 3 times in a row at t: its new objects are larger than 2 GiB. It tries again by itself";
    let expected = Some((text.to_owned(), "liza show t".to_owned()));
    assert_eq!(shown(Status::Unclaimed, failing(3, Some("t")), true), expected);
    let (text, command) = shown(Status::Unclaimed, failing(3, None), true).unwrap();
    assert!(text.starts_with("coder-1 has failed 3 times in a row: its new"), "{text}");
    assert_eq!(command, "liza doctor");
    // Its task no longer waits for that.
    assert_eq!(shown(Status::Merged, failing(3, Some("t")), true), None);
    assert_eq!(shown(Status::ReadyForReview, failing(3, Some("t")), true), None);
}

/// Covers: AX-04
#[test]
fn what_to_do_about_a_job_that_fails_is_shown_after_its_team_has_ended() {
    let advice = "Commit, stash or move what git names".to_owned();
    let remedy = Remedy { advice, command: CommandLine::shell("git -C here status") };
    let merge = |count| FailingJob {
        kind: WorkKind::Merge,
        agent: agent("code-reviewer-1"),
        message: "git refuses to update the checkout in here: a.txt is in the way".to_owned(),
        remedy: Some(remedy.clone()),
        ..failing(count, Some("t"))
    };
    assert_eq!(shown(Status::Approved, merge(2), false), None);
    let text = "code-reviewer-1 has failed 3 times in a row at t: git refuses to update the checkout in here: a.txt is \
                in the way. Commit, stash or move what git names. The next liza run tries again";
    let expected = Some((text.to_owned(), "git -C here status".to_owned()));
    assert_eq!(shown(Status::Approved, merge(3), false), expected);
    assert_eq!(shown(Status::Merged, merge(3), false), None, "it was merged");
    assert_eq!(shown(Status::IntegrationFailed, merge(3), false), None, "a coder fixes it");
}
