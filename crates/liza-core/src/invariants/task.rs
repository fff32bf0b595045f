//! What must hold of one task's record by itself.

use std::collections::BTreeSet;

use crate::event::EventName;
use crate::ids::TaskId;
use crate::record::{Status, TaskRecord};
use crate::task::HUMAN_OVERRIDE;

use super::{Facts, Violation};

/// Adds what is wrong with the record.
pub(super) fn check(id: &TaskId, record: &TaskRecord, facts: &dyn Facts, found: &mut Vec<Violation>) {
    let mut wrong = |message: String| found.push(Violation::task(id, message));
    check_common(record, &mut wrong);
    check_definition(record, facts, &mut wrong);
    check_status(record, facts, &mut wrong);
    check_history(record, &mut wrong);
}

fn blank(text: Option<&String>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

/// Every task has a description, a status, a priority from 1 to 5 and a date.
fn check_common(record: &TaskRecord, wrong: &mut impl FnMut(String)) {
    if blank(record.description.as_ref()) {
        wrong("task has no description".to_owned());
    }
    if record.status.is_none() {
        let valid: Vec<&str> = Status::ALL.iter().map(|status| status.name()).collect();
        wrong(format!("task has no valid status: expected one of {}", valid.join(", ")));
    }
    if let Some(priority) = record.priority.filter(|priority| !(1..=5).contains(priority)) {
        wrong(format!("priority {priority} is not 1 (highest) to 5 (lowest)"));
    }
    if record.created.is_none() {
        wrong("task has no created".to_owned());
    }
}

/// What is not a draft, and was not taken off the board, says what it is measured by.
fn check_definition(record: &TaskRecord, facts: &dyn Facts, wrong: &mut impl FnMut(String)) {
    let Some(status) = record.status else { return };
    if matches!(status, Status::Draft | Status::Superseded | Status::Abandoned) {
        return;
    }
    if blank(record.done_when.as_ref()) {
        wrong(format!("{status} task has no done_when"));
    }
    match record.spec_ref.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        None => wrong(format!("{status} task has no spec_ref")),
        Some(spec_ref) => {
            let path = spec_ref.split('#').next().unwrap_or(spec_ref);
            if !facts.spec_exists(path) {
                wrong(format!("spec_ref {spec_ref}: there is no file {path} in the project"));
            }
        }
    }
}

/// What each state must have, and must not.
fn check_status(record: &TaskRecord, facts: &dyn Facts, wrong: &mut impl FnMut(String)) {
    let Some(status) = record.status else { return };
    let mut need = |present: bool, field: &str| {
        if !present {
            wrong(format!("{status} task has no {field}"));
        }
    };
    match status {
        Status::Draft => {
            if let Some(agent) = record.assigned_to {
                wrong(format!("DRAFT task is assigned to {agent}"));
            }
        }
        Status::Claimed => check_claimed(record, facts, wrong),
        Status::ReadyForReview => need(record.review_commit.is_some(), "review_commit"),
        Status::Rejected => need(!blank(record.rejection_reason.as_ref()), "rejection_reason"),
        Status::Blocked => {
            need(!blank(record.blocked_reason.as_ref()), "blocked_reason");
            // A person who forces a replan has nothing to ask.
            let forced = record.blocked_reason.as_deref().is_some_and(|why| why.trim() == HUMAN_OVERRIDE);
            let asked = record.blocked_questions.as_ref().is_some_and(|q| !q.is_empty());
            need(asked || forced, "blocked_questions");
        }
        Status::Superseded => {
            need(record.superseded_by.as_ref().is_some_and(|by| !by.is_empty()), "superseded_by");
            need(!blank(record.rescope_reason.as_ref()), "rescope_reason");
        }
        Status::Merged => {
            if let Some(worktree) = &record.worktree {
                wrong(format!("MERGED task still has the worktree {worktree}"));
            }
        }
        Status::Unclaimed | Status::Approved | Status::IntegrationFailed | Status::Abandoned => {}
    }
}

fn check_claimed(record: &TaskRecord, facts: &dyn Facts, wrong: &mut impl FnMut(String)) {
    let fixing = record.integration_fix == Some(true);
    let needs = [
        ("assigned_to", record.assigned_to.is_some()),
        ("worktree", record.worktree.is_some()),
        // That it is past is an alarm: the write that would renew it must not be refused for it.
        ("lease_expires", record.lease_expires.is_some()),
        ("base_commit", record.base_commit.is_some() || fixing),
    ];
    for (field, _) in needs.iter().filter(|(_, present)| !present) {
        wrong(format!("CLAIMED task has no {field}"));
    }
    if let Some(worktree) = record.worktree.as_ref().filter(|worktree| !facts.worktree_exists(worktree)) {
        wrong(format!("CLAIMED task's worktree {worktree} does not exist"));
    }
}

fn check_history(record: &TaskRecord, wrong: &mut impl FnMut(String)) {
    let failed = |name| record.history.iter().flatten().any(|event| event.is(name));
    if record.integration_fix == Some(true) && !failed(EventName::IntegrationFailed) {
        wrong("integration_fix is true, but the history has no integration_failed".to_owned());
    }
    let failed_by = record.failed_by.as_deref().unwrap_or_default();
    let mut seen = BTreeSet::new();
    for agent in failed_by.iter().filter(|agent| !seen.insert(**agent)) {
        wrong(format!("failed_by names {agent} twice"));
    }
}
