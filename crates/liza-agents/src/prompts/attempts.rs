//! The lessons of earlier sessions on a task: its blocks, handoffs, rejections and failed merges.

use liza_core::model::{EventName, HistoryEvent, State, TaskId, TaskRecord};
use liza_core::text::{count, one_line};

use super::context::{facts, history};
use super::prompt_text::PromptText;

/// The most events in a prompt; older ones are left to `liza show`.
const EVENTS_MAX: usize = 12;

const TEXT_MAX: usize = 1000;

/// Writes the earlier attempts at a task and the tasks that it replaces, oldest first, without those in `shown`.
pub(super) fn write_attempts(
    page: &mut PromptText,
    state: &State,
    task: &TaskId,
    record: &TaskRecord,
    shown: &[&HistoryEvent],
) {
    for replaced in record.supersedes.iter().flatten() {
        if let Ok(body) = state.board.body(replaced) {
            write_events(
                page,
                &format!("EARLIER ATTEMPTS at {replaced}, which this task replaces"),
                replaced,
                body.record(),
                &[],
            );
        }
    }
    write_events(page, "EARLIER ATTEMPTS", task, record, shown);
}

fn write_events(
    page: &mut PromptText,
    heading: &str,
    task: &TaskId,
    record: &TaskRecord,
    shown: &[&HistoryEvent],
) {
    let is_shown = |event: &HistoryEvent| shown.iter().any(|other| std::ptr::eq(*other, event));
    let events: Vec<String> =
        history(record).iter().filter(|event| !is_shown(event)).filter_map(describe).collect();
    if events.is_empty() {
        return;
    }
    let skipped = events.len().saturating_sub(EVENTS_MAX);
    page.gap();
    page.line(format!("{heading}, oldest first (whole history: liza show {task}):"));
    if skipped > 0 {
        page.line(format!("({} left out)", count(skipped, "older entry")));
    }
    for event in events.iter().skip(skipped) {
        page.quote(event);
    }
}

/// The event and its lesson; `None` if it has none.
fn describe(event: &HistoryEvent) -> Option<String> {
    let (what, details): (&str, &[(&str, &str)]) = match event.name()? {
        EventName::Blocked => {
            ("blocked", &[("reason", ""), ("questions", "Questions"), ("attempted", "Tried")])
        }
        EventName::Unblocked => ("unblocked", &[("assessment", "")]),
        EventName::Rejected => ("rejected", &[("reason", "")]),
        EventName::IntegrationFailed => ("merge failed", &[("reason", ""), ("files", "Files")]),
        EventName::Handoff => (
            "handed off",
            &[
                ("summary", ""),
                ("next_action", "Next"),
                ("approach", "Approach"),
                ("blockers", "Blockers"),
                ("next_steps", "Left to do"),
            ],
        ),
        EventName::Approved => ("approved", &[("evidence", "")]),
        EventName::Superseded => ("superseded", &[("reason", ""), ("root_cause", "Root cause")]),
        EventName::Created
        | EventName::Finalized
        | EventName::Proposed
        | EventName::Claimed
        | EventName::ReclaimedAfterRejection
        | EventName::ReassignedAfterRejection
        | EventName::ClaimedForIntegrationFix
        | EventName::ReclaimedAfterExpiry
        | EventName::Resumed
        | EventName::PreExecutionCheckpoint
        | EventName::ReadyForReview
        | EventName::Merged
        | EventName::MergeHeld
        | EventName::GateAccepted
        | EventName::Abandoned
        | EventName::SessionEnded
        | EventName::Released
        | EventName::Archived => return None,
    };
    let mut text = format!("{} {} {what}", event.time, event.agent.as_deref().unwrap_or("system"));
    for (key, label) in details {
        let value = one_line(&facts(event, key).join("; "), TEXT_MAX);
        if value.is_empty() {
            continue;
        }
        text.push_str(&if label.is_empty() { format!(": {value}") } else { format!("\n  {label}: {value}") });
    }
    Some(text)
}
