//! Invariants of one task's record by itself.

use std::collections::BTreeSet;

use crate::model::{PRIORITIES, Status, TaskId, TaskRecord, missing_fields, task_out_of_range};

use super::{DiskFacts, Violation};

pub(super) fn check(id: &TaskId, record: &TaskRecord, facts: &dyn DiskFacts, found: &mut Vec<Violation>) {
    let mut wrong = |message: String| found.push(Violation::task(id, message));
    check_common(record, &mut wrong);
    check_definition(record, facts, &mut wrong);
    check_status(record, facts, &mut wrong);
    check_history(record, &mut wrong);
}

fn blank(text: Option<&String>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

/// Every task has a description, a status, a priority from 1 to 5, a date, and limits in their ranges.
fn check_common(record: &TaskRecord, wrong: &mut impl FnMut(String)) {
    if blank(record.description.as_ref()) {
        wrong("task has no description".to_owned());
    }
    if record.status.is_none() {
        let valid: Vec<&str> = Status::ALL.iter().map(|status| status.name()).collect();
        wrong(format!("task has no valid status: expected one of {}", valid.join(", ")));
    }
    if let Some(priority) = record.priority.filter(|priority| !PRIORITIES.contains(priority)) {
        wrong(format!("priority {priority} is not 1 (highest) to 5 (lowest)"));
    }
    if record.created.is_none() {
        wrong("task has no created".to_owned());
    }
    task_out_of_range(record).iter().map(ToString::to_string).for_each(wrong);
}

/// A task that is neither a draft nor dropped names its criteria.
fn check_definition(record: &TaskRecord, facts: &dyn DiskFacts, wrong: &mut impl FnMut(String)) {
    let Some(status) = record.status else { return };
    if matches!(status, Status::Draft | Status::Superseded | Status::Abandoned) || record.is_blocked_draft() {
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
                wrong(format!("spec_ref {spec_ref}: the project has no file {path}"));
            }
        }
    }
}

/// The fields that each status must have, and must not.
fn check_status(record: &TaskRecord, facts: &dyn DiskFacts, wrong: &mut impl FnMut(String)) {
    let Some(status) = record.status else { return };
    missing_fields(record).into_iter().for_each(&mut *wrong);
    match status {
        Status::Draft => {
            if let Some(agent) = record.assigned_to {
                wrong(format!("DRAFT task is assigned to {agent}"));
            }
        }
        // An expired lease is an alarm: the write that would renew it must not be refused for it.
        Status::Claimed => {
            if record.base_commit.is_none() && record.integration_fix != Some(true) {
                wrong("CLAIMED task has no base_commit".to_owned());
            }
            let worktree = record.worktree.as_ref();
            if let Some(missing) = worktree.filter(|worktree| !facts.worktree_exists(worktree)) {
                wrong(format!("CLAIMED task's worktree {missing} does not exist"));
            }
        }
        Status::Merged => {
            if let Some(worktree) = &record.worktree {
                wrong(format!("MERGED task still has the worktree {worktree}"));
            }
        }
        Status::Unclaimed
        | Status::ReadyForReview
        | Status::Rejected
        | Status::Approved
        | Status::IntegrationFailed
        | Status::Blocked
        | Status::Superseded
        | Status::Abandoned => {}
    }
}

fn check_history(record: &TaskRecord, wrong: &mut impl FnMut(String)) {
    if record.integration_fix == Some(true) && record.past().failed_merges == 0 {
        wrong("integration_fix is true, but the history has no integration_failed".to_owned());
    }
    let failed_by = record.failed_by.as_deref().unwrap_or_default();
    let mut seen = BTreeSet::new();
    for agent in failed_by.iter().filter(|agent| !seen.insert(**agent)) {
        wrong(format!("failed_by names {agent} twice"));
    }
}
