//! An alarm as it leaves the program: masked, without control characters, as a line or as JSON.

use std::path::Path;

use liza_core::model::{State, Status, TaskId, Timestamp};
use liza_core::text::one_line;
use liza_host::secrets::Masker;
use liza_status::alarms::{Alarm, AlarmKind, AlarmLevel};
use serde_json::{Value, json};

/// The maximum length of an alert; reasons and violations can be pages long.
const TEXT_MAX: usize = 500;

/// Further open tasks are only counted.
const NAMED_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertMessage {
    pub at: Timestamp,
    pub level: AlarmLevel,
    /// Such as LEASE EXPIRED.
    pub kind: AlarmKind,
    pub task: Option<TaskId>,
    /// The start of the condition, if known.
    pub since: Option<Timestamp>,
    /// One line, without secrets and control characters.
    pub text: String,
}

impl AlertMessage {
    pub fn new(alarm: &Alarm, now: Timestamp, masker: &Masker) -> Self {
        let task = alarm.task.clone();
        let text = one_line(&masker.mask(&alarm.text), TEXT_MAX);
        Self { at: now, level: alarm.level, kind: alarm.kind, task, since: alarm.since, text }
    }

    pub fn line(&self) -> String {
        format!("{} {}", self.level.sign(), self.words())
    }

    /// The alert without its sign.
    pub fn words(&self) -> String {
        format!("{}: {}", self.kind, self.text)
    }

    /// A stable identifier for programs, such as `lease_expired`.
    pub fn event(&self) -> String {
        let kind = self.kind.to_string();
        let words = kind.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
    }

    pub fn to_json(&self) -> Value {
        json!({
            "event": self.event(),
            "level": self.level,
            "kind": self.kind,
            "task": self.task,
            "text": self.text,
            "timestamp": self.at,
            "since": self.since,
        })
    }
}

/// The message to a webhook: the alert and the open tasks. Chat services show only `text` of an unknown
/// object, so it is the whole line.
pub(super) fn payload(alert: &AlertMessage, state: &State, root: &Path) -> Value {
    let waited = alert.since.map(|since| alert.at.since(since));
    let open = |status: Option<Status>| !status.is_some_and(Status::is_terminal);
    let waiting = || state.board.summaries().filter(|task| open(task.status));
    let named: Vec<Value> = waiting()
        .take(NAMED_MAX)
        .map(|task| json!({"task": task.id, "status": task.status.map(|status| status.to_string())}))
        .collect();
    let project = root.file_name().map(|name| name.to_string_lossy().into_owned());
    json!({
        "event": alert.event(),
        "level": alert.level,
        "text": alert.line(),
        "task": alert.task,
        "timestamp": alert.at,
        "since": alert.since,
        "duration": waited.map(|waited| waited.to_string()),
        "duration_seconds": waited.map(|waited| waited.0),
        "project": project,
        "goal": state.board.goal.ready().map(|goal| &goal.id),
        "sprint": state.board.sprint.ready().map(|sprint| &sprint.id),
        "tasks_waiting": named,
        "tasks_waiting_count": waiting().count(),
    })
}
