//! What supervisors try again and again is shown, with the task, the reason and a command.

use liza_core::model::{Generation, Status};
use liza_core::watch::alarms::{AlarmKind, FailingJob, FailingJobs, Observations};
use liza_core::watch::needs_you::NeedKind;
use liza_core::watch::view::view;

use crate::fixture::*;

fn failing(count: u32, on: Option<&str>) -> Observations {
    let message = "its new objects are larger than 2 GiB".to_owned();
    let job = FailingJob { task: on.map(task), count, message, since: now() };
    let coder = agent("coder-1");
    let jobs = FailingJobs { generation: generation(coder), jobs: vec![job] };
    Observations { failing_jobs: [(coder, jobs)].into(), ..Observations::default() }
}

fn shown(status: Status, seen: &Observations) -> Option<(String, String)> {
    let needs = view(&state_with(status), seen, now()).needs_you;
    let own = needs.into_iter().find(|need| need.kind == NeedKind::Alarm(AlarmKind::WorkFails));
    own.map(|need| (need.text, need.command))
}

/// Covers: AG-05, UI-03
#[test]
fn no_job_is_retried_for_ever_in_silence() {
    assert_eq!(shown(Status::Unclaimed, &failing(2, Some("t"))), None, "twice may be chance");
    let text = "coder-1 has failed 3 times in a row at t: its new objects are larger than 2 GiB. It tries again by itself";
    let expected = Some((text.to_owned(), "liza show t".to_owned()));
    assert_eq!(shown(Status::Unclaimed, &failing(3, Some("t"))), expected);
    let (text, command) = shown(Status::Unclaimed, &failing(3, None)).unwrap();
    assert!(text.starts_with("coder-1 has failed 3 times in a row: its new"), "{text}");
    assert_eq!(command, "liza doctor");
    // Its task has ended, or another registration of the name failed at it.
    assert_eq!(shown(Status::Merged, &failing(3, Some("t"))), None);
    let mut earlier = failing(3, Some("t"));
    earlier.failing_jobs.values_mut().for_each(|failing| failing.generation = Generation(999));
    assert_eq!(shown(Status::Unclaimed, &earlier), None);
}
