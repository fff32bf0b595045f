//! What only the human can decide now, each with the command that answers it.

use serde::Serialize;

use crate::model::{Role, State, TaskId, Timestamp};
use crate::rules::clients::waits_for_human;
use crate::watch::alarms::{Alarm, AlarmKind, AlarmLevel, AlarmSubject};
use crate::watch::supervise::{planner_needs_human, unseen_triggers};

/// One decision that waits for the human.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NeedsYou {
    /// Such as `QUESTION`.
    pub kind: AlarmKind,
    /// The task that it is about, if any.
    pub task: Option<TaskId>,
    /// What has to be decided, and why.
    pub text: String,
    /// The command that answers it.
    pub command: String,
}

/// What waits for the human, of everything that is true now.
pub fn needs_you(state: &State, alarms: &[Alarm], now: Timestamp) -> Vec<NeedsYou> {
    let entry = |alarm: &Alarm| {
        let command = command(state, alarm, now)?;
        let (task, text) = (alarm.subject.task().cloned(), alarm.text.clone());
        Some(NeedsYou { kind: alarm.kind, task, text, command })
    };
    alarms.iter().filter_map(entry).collect()
}

/// The command that answers an alarm; `None` if agents handle it.
fn command(state: &State, alarm: &Alarm, now: Timestamp) -> Option<String> {
    let about = |subject: &AlarmSubject| match subject.task() {
        Some(task) => format!("liza answer {task} \"...\""),
        None => "liza note \"...\"".to_owned(),
    };
    match alarm.kind {
        AlarmKind::InvalidState => Some("liza validate".to_owned()),
        AlarmKind::Question | AlarmKind::ReviewDropped => Some(about(&alarm.subject)),
        AlarmKind::Blocked => is_left_to_human(state, alarm, now).then(|| about(&alarm.subject)),
        AlarmKind::PlannerStopped | AlarmKind::SessionBudget => Some("liza note \"...\"".to_owned()),
        AlarmKind::Budget => (alarm.level == AlarmLevel::Critical).then(|| "liza edit".to_owned()),
        AlarmKind::SetupFailed => Some("liza edit".to_owned()),
        AlarmKind::RoleMissing => Some(format!("liza agent {}", alarm.subject)),
        AlarmKind::DirectEdit => Some(format!("liza dismiss {}", alarm.subject)),
        AlarmKind::PlanProposed => Some("liza plan --approve".to_owned()),
        AlarmKind::ForeignCommits => Some("liza accept-integration".to_owned()),
        AlarmKind::CheckpointAbandoned
        | AlarmKind::CheckpointStuck
        | AlarmKind::CheckpointStale
        | AlarmKind::ForgottenPause
        | AlarmKind::StalePause
        | AlarmKind::SprintDeadline => Some("liza resume".to_owned()),
        AlarmKind::CircuitBreaker => Some("liza resolve \"...\"".to_owned()),
        AlarmKind::ClientHeld => waits(state, &alarm.subject).then(|| "liza resume".to_owned()),
        AlarmKind::StaleEdit => Some(format!("liza edit --from {}", alarm.subject)),
        AlarmKind::LeaseExpired
        | AlarmKind::ReviewLeaseExpired
        | AlarmKind::StaleDraft
        | AlarmKind::OrphanedRejected
        | AlarmKind::IntegrationFailed
        | AlarmKind::Reassigned
        | AlarmKind::HypothesisExhaustion
        | AlarmKind::ReviewLoop
        | AlarmKind::ApproachingLimit
        | AlarmKind::ImmediateDiscovery
        | AlarmKind::ContextFull
        | AlarmKind::Stalled
        | AlarmKind::RubberStamp
        | AlarmKind::StrayChanges
        | AlarmKind::QuietSession => None,
    }
}

/// Whether only the human lets this client continue.
fn waits(state: &State, client: &AlarmSubject) -> bool {
    let clients = state.board.sprint.ready().map(|sprint| &sprint.clients);
    clients.and_then(|clients| clients.get(&client.to_string())).is_some_and(waits_for_human)
}

/// Whether a blocked task waits for the human: the planner has seen it and left it, cannot act, or is not running.
fn is_left_to_human(state: &State, alarm: &Alarm, now: Timestamp) -> bool {
    let subject = alarm.subject.to_string();
    let pending = unseen_triggers(state, now).iter().any(|trigger| trigger.subject == subject);
    let mut agents = state.board.agents.ready().into_iter().flatten();
    let planner = agents.any(|(_, entry)| entry.role == Role::Planner && entry.holds(now));
    !pending || !planner || planner_needs_human(state)
}
