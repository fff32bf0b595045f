//! Parts of messages and hints that depend on lists and states.

use liza_ids::{AgentId, Timestamp};

use crate::model::notes::{AnomalyType, DetailType};
use crate::model::record::Status;

/// The command that a task in this state most likely needs next, and its argument after the task.
pub(super) fn next_step(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Draft => ("finalize", ""),
        Status::Unclaimed | Status::Rejected | Status::IntegrationFailed => ("claim-task", " AGENT"),
        Status::Claimed => ("submit-for-review", " COMMIT"),
        Status::ReadyForReview => ("claim-review", " AGENT"),
        Status::Approved => ("wt-merge", ""),
        Status::Blocked => ("unblock-task", ""),
        Status::Merged | Status::Superseded | Status::Abandoned => ("show", ""),
    }
}

/// True if a task in this state has work that is not abandoned at once.
pub(super) fn has_work(status: Status) -> bool {
    matches!(status, Status::Claimed | Status::ReadyForReview | Status::Approved)
}

/// The options that fill the gates of a task.
pub(super) fn gate_options(missing: &[&str]) -> String {
    let option = |gate: &&str| match *gate {
        "spec_ref" => "--spec REF",
        "done_when" => "--done TEXT",
        _ => "--scope TEXT",
    };
    missing.iter().map(option).collect::<Vec<_>>().join(" ")
}

/// The details that a kind of anomaly needs, as options.
pub(super) fn detail_options(kind: AnomalyType) -> String {
    let option = |(name, wanted): &(&str, DetailType)| match wanted {
        DetailType::Text => format!(" --detail {name}=TEXT"),
        DetailType::Number => format!(" --detail {name}=N"),
        DetailType::Flag => format!(" --detail {name}=true"),
    };
    kind.required().iter().map(option).collect()
}

pub(super) fn names(agents: &[AgentId]) -> String {
    agents.iter().map(AgentId::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) fn held_until(until: Option<Timestamp>) -> String {
    until.map_or("until you run liza resume".to_owned(), |until| format!("until {until}"))
}

pub(super) fn are(tasks: usize) -> String {
    if tasks == 1 { "1 task is".to_owned() } else { format!("{tasks} tasks are") }
}

pub(super) fn short_list(items: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN {
        text.push_str(&format!(" and {} more", items.len() - SHOWN));
    }
    text
}
