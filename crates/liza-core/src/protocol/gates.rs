//! The conditions of a claimable task, for add-task, edit-task, finalize and supersede-task.

use crate::model::{Actor, EventName, PRIORITIES, PriorWork, Refusal, Task, TaskId, TaskRecord, TaskStatus};

use super::tx::{Tx, required};

pub(super) fn check_dependencies(tx: &Tx<'_>, task: &TaskId, depends_on: &[TaskId]) -> Result<(), Refusal> {
    match depends_on.iter().find(|dependency| *dependency == task || !tx.knows(dependency)) {
        Some(own) if own == task => {
            Err(Refusal::BadText { what: "depends_on", problem: format!("{task} cannot depend on itself") })
        }
        Some(unknown) => Err(Refusal::UnknownDependency { task: task.clone(), dependency: unknown.clone() }),
        None => Ok(()),
    }
}

pub(super) fn check_gates(task: &TaskId, record: &TaskRecord) -> Result<(), Refusal> {
    let missing = missing_gates(record, true);
    if missing.is_empty() { Ok(()) } else { Err(Refusal::GatesMissing { task: task.clone(), missing }) }
}

/// The commands of a task as they are kept: one line each, each once.
pub(super) fn check_commands(lines: &[String]) -> Result<Vec<String>, Refusal> {
    const MAX: usize = 20;
    let bad = |problem: String| Refusal::BadText { what: "--validate", problem };
    let mut commands: Vec<String> = Vec::new();
    for line in lines {
        let line = required(line, "the command that shows that it is done (--validate)")?;
        if line.contains('\n') {
            return Err(bad("a command is one line; put more into a script".to_owned()));
        }
        if !commands.iter().any(|command| command == line) {
            commands.push(line.to_owned());
        }
    }
    if commands.len() > MAX { Err(bad(format!("at most {MAX} commands"))) } else { Ok(commands) }
}

/// The result for a draft that passes all gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Claimable,
    /// It stays a DRAFT until the human approves it.
    Proposed,
}

impl Readiness {
    pub(super) fn event(self) -> EventName {
        match self {
            Readiness::Claimable => EventName::Finalized,
            Readiness::Proposed => EventName::Proposed,
        }
    }
}

/// Makes a draft UNCLAIMED if it passes all gates, or proposes it to the human if the human approves plans.
pub(super) fn make_claimable(tx: &Tx<'_>, task: &mut Task) -> Result<Readiness, Refusal> {
    check_gates(&task.id, &task.record)?;
    check_dependencies(tx, &task.id, task.record.depends_on.as_deref().unwrap_or_default())?;
    if needs_approval(tx)? {
        return Ok(Readiness::Proposed);
    }
    task.status = TaskStatus::Unclaimed { prior: PriorWork::default() };
    Ok(Readiness::Claimable)
}

/// True if the human has to approve the plans of this caller.
pub(super) fn needs_approval(tx: &Tx<'_>) -> Result<bool, Refusal> {
    Ok(tx.actor != Actor::Human && tx.board.config()?.plan_approval)
}

/// The gaps that keep a task in DRAFT; a blocked one may lack a scope.
pub(super) fn missing_gates(record: &TaskRecord, with_scope: bool) -> Vec<&'static str> {
    let blank = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim().is_empty());
    let gates = [
        ("spec_ref", blank(&record.spec_ref)),
        ("done_when", blank(&record.done_when)),
        ("scope", with_scope && blank(&record.scope)),
    ];
    gates.iter().filter(|(_, missing)| *missing).map(|(name, _)| *name).collect()
}

/// A specification is a file of the project, never one of Liza's or git's: a refusal would tell whether that one exists.
pub fn check_spec(reference: &str) -> Result<(), Refusal> {
    const KEPT: [&str; 3] = [".liza", ".git", ".worktrees"];
    let file = reference.split('#').next().unwrap_or(reference);
    let is_kept = |part: &str| KEPT.iter().any(|name| part.eq_ignore_ascii_case(name));
    match file.split(['/', '\\']).map(str::trim).find(|part| is_kept(part)) {
        Some(folder) => Err(Refusal::BadSpec { spec: reference.to_owned(), folder: folder.to_owned() }),
        None => Ok(()),
    }
}

pub(super) fn check_priority(priority: i64) -> Result<i64, Refusal> {
    if PRIORITIES.contains(&priority) {
        return Ok(priority);
    }
    let problem = format!("{priority} is not 1 (highest) to 5 (lowest)");
    Err(Refusal::BadText { what: "priority", problem })
}
