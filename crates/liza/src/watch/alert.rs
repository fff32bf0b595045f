//! An alarm as it leaves the program: cleaned for terminals, masked, and as the object that a webhook gets.

use std::path::Path;

use liza_core::model::{State, Status, TaskId, Timestamp};
use liza_core::text::one_line;
use liza_core::watch::alarms::{Alarm, AlarmLevel};
use serde_json::{Value, json};

use crate::secrets::Masker;

/// The longest text of an alert; reasons and violations can be pages long.
const TEXT_MAX: usize = 500;

/// As many waiting tasks as are named; all of them are counted.
const NAMED_MAX: usize = 100;

/// One alarm, fit to be printed, stored and sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// When it was noticed.
    pub at: Timestamp,
    /// How loud.
    pub level: AlarmLevel,
    /// In the words of the alert, such as `LEASE EXPIRED`.
    pub kind: &'static str,
    /// The task that it is about, where it is about one.
    pub task: Option<TaskId>,
    /// Since when it stands, where the blackboard tells.
    pub since: Option<Timestamp>,
    /// The rest: one line, without secrets and control characters.
    pub text: String,
}

impl Alert {
    /// What is told of an alarm.
    pub(super) fn of(alarm: &Alarm, state: &State, now: Timestamp, masker: &Masker) -> Self {
        // An alarm about one figure of a task has the figure after a colon.
        let subject = alarm.subject.split(':').next().unwrap_or_default();
        let task = subject.parse().ok().filter(|id| state.board.knows(id));
        let text = one_line(&masker.mask(&alarm.text), TEXT_MAX);
        Self { at: now, level: alarm.level, kind: alarm.kind, task, since: alarm.since, text }
    }

    /// The whole alert.
    pub fn line(&self) -> String {
        format!("{} {}: {}", self.level.sign(), self.kind, self.text)
    }

    /// `critical` or `warning`.
    pub fn level_name(&self) -> &'static str {
        match self.level {
            AlarmLevel::Critical => "critical",
            AlarmLevel::Warning => "warning",
        }
    }

    /// A stable word for programs, such as `lease_expired`.
    pub fn event(&self) -> String {
        let words = self.kind.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
    }

    /// The alert for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "event": self.event(),
            "level": self.level_name(),
            "kind": self.kind,
            "task": self.task,
            "text": self.text,
            "timestamp": self.at,
            "since": self.since,
        })
    }
}

/// What a webhook is sent: the alert, and how the sprint stands. `text` is the whole line, which is what chat services
/// show of an object that they do not know.
pub(super) fn payload(alert: &Alert, state: &State, root: &Path) -> Value {
    let waited = alert.since.map(|since| alert.at.since(since));
    let open = |status: Option<Status>| !status.is_some_and(Status::is_terminal);
    let waiting = || state.board.summaries().filter(|head| open(head.status));
    let named: Vec<Value> = waiting()
        .take(NAMED_MAX)
        .map(|head| json!({"task": head.id, "status": head.status.map(|status| status.to_string())}))
        .collect();
    let project = root.file_name().map(|name| name.to_string_lossy().into_owned());
    json!({
        "event": alert.event(),
        "level": alert.level_name(),
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
