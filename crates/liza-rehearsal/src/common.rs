//! The steps that every role has: waiting, anomalies, discoveries, handoffs.

use std::thread;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::error::StepResult;
use crate::playbook::{Anomaly, Discover, Handoff, WaitFor};
use crate::session::Session;

/// The default limit of `wait-for`.
const DEFAULT_WAIT_SECONDS: u64 = 30;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) fn wait(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// A task is polled less often: a session may send only ten commands a second.
const TASK_INTERVAL: Duration = Duration::from_millis(250);

/// Waits until a file and a branch exist and a task has begun, or until the time limit of the step.
pub(crate) fn wait_for(session: &Session, it: &WaitFor) {
    let begun = |task: &String| {
        let path = format!(".tasks[] | select(.id == \"{task}\") | .status");
        let status = session.try_liza(Arguments::new(["get", &path]), "");
        status.is_ok_and(|status| !matches!(status.output().trim(), "" | "null" | "DRAFT" | "UNCLAIMED"))
    };
    let interval = if it.task.is_some() { TASK_INTERVAL } else { POLL_INTERVAL };
    let exist = || {
        let file = it.file.as_ref().is_none_or(|file| session.prompt.project.join(file).exists());
        let branch = |name: &String| session.git_resolves(&format!("refs/heads/{}", session.expand(name)));
        file && it.branch.as_ref().is_none_or(branch) && it.task.as_ref().is_none_or(begun)
    };
    let mut left = Duration::from_secs(it.seconds.unwrap_or(DEFAULT_WAIT_SECONDS));
    while !exist() {
        if left.is_zero() {
            return session.say("timed out waiting; continuing");
        }
        thread::sleep(interval.min(left));
        left = left.saturating_sub(interval);
    }
    session.say("found what it waited for");
}

pub(crate) fn anomaly(session: &Session, it: &Anomaly) -> StepResult {
    let details: Vec<String> = it.details.iter().map(|(key, value)| format!("{key}={value}")).collect();
    session.liza(
        Arguments::new(["anomaly", &it.kind])
            .option("--task", session.prompt.task())
            .repeated("--detail", &details),
    )
}

pub(crate) fn discover(session: &Session, it: &Discover) -> StepResult {
    session.liza(
        Arguments::new(["discover", "--desc", &it.desc, "--severity", &it.severity])
            .option("--task", session.prompt.task())
            .option("--urgency", it.urgency.as_deref())
            .option("--recommendation", it.recommendation.as_deref()),
    )
}

/// `liza handoff`; the planner's is about no task.
pub(crate) fn handoff(session: &Session, it: &Handoff) -> StepResult {
    let task: Vec<String> = session.prompt.task().map(str::to_owned).into_iter().collect();
    session.liza(
        Arguments::new(["handoff"])
            .words(&task)
            .option("--summary", Some(&it.summary))
            .option("--next-action", Some(&it.next_action))
            .option("--approach", it.approach.as_deref())
            .repeated("--file", &it.files)
            .repeated("--next-step", &it.next_steps),
    )
}
