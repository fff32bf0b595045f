//! wt-merge: whether it may begin, and what git did.
//!
//! Nothing that was not approved at exactly that commit is ever recorded as merged.

use crate::agent::{Actor, Role};
use crate::claimable::merge_falls_to;
use crate::command::MergeFailure;
use crate::effect::Effect;
use crate::event::{EventName, LogAction};
use crate::ids::{AgentId, Sha, TaskId};
use crate::refusal::Refusal;
use crate::task::{Task, TaskStatus, Work};
use crate::value::Value;

use super::tx::Tx;

/// The approved work, for a caller who may merge it.
fn approved(tx: &Tx<'_>, task: &Task) -> Result<(Work, Sha, Option<AgentId>), Refusal> {
    if let Some(agent) = tx.actor.agent()
        && agent.role() != Role::CodeReviewer
    {
        return Err(Refusal::WrongRole { agent, wanted: Role::CodeReviewer });
    }
    let TaskStatus::Approved { work, commit, by } = &task.status else {
        return Err(tx.wrong_status(task, "APPROVED"));
    };
    Ok((work.clone(), commit.clone(), *by))
}

/// Says whether the merge may begin. It changes nothing: the merge is computed outside, then recorded.
pub(super) fn begin(tx: &mut Tx<'_>, id: &TaskId) -> Result<(), Refusal> {
    let task = tx.task(id)?;
    let (work, commit, _) = approved(tx, &task)?;
    if let (Some(agent), Some(head)) = (tx.actor.agent(), tx.board.head(id)) {
        merge_falls_to(tx.board, head, agent, tx.now)?;
    }
    tx.reply("commit", commit.as_str());
    if let Some(base) = work.base {
        tx.reply("base_commit", base.as_str());
    }
    tx.reply_task(&task);
    Ok(())
}

fn check_commit(task: &Task, approved: &Sha, commit: &Sha) -> Result<(), Refusal> {
    if approved.names_same_commit(commit) {
        return Ok(());
    }
    Err(Refusal::NotApprovedCommit {
        task: task.id.clone(),
        approved: approved.clone(),
        commit: commit.clone(),
    })
}

/// In whose name it is logged: the supervisor's agent, else the approver.
fn merger(tx: &Tx<'_>, by: Option<AgentId>) -> String {
    match (tx.actor, by) {
        (Actor::Human, Some(by)) => by.to_string(),
        (actor, _) => actor.to_string(),
    }
}

/// The integration branch has moved.
pub(super) fn merged(
    tx: &mut Tx<'_>,
    id: &TaskId,
    commit: &Sha,
    merge_commit: &Sha,
    drift_commits: u32,
) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    let (work, approved_commit, by) = approved(tx, &task)?;
    check_commit(&task, &approved_commit, commit)?;
    let who = merger(tx, by);
    let event = tx.event(EventName::Merged).with("commit", approved_commit.as_str());
    let event = event.with("merge_commit", merge_commit.as_str()).with("coder", work.coder.to_string());
    task.remember(event.with("drift_commits", drift_commits));
    task.status = TaskStatus::Merged { merge_commit: Some(merge_commit.clone()) };
    tx.drop_handoff(id)?;
    task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
    let how = if merge_commit.names_same_commit(&approved_commit) { "fast-forward" } else { "merge commit" };
    let detail = format!("{how} {}, drift {drift_commits} commit(s)", merge_commit.short());
    tx.log_as(&who, LogAction::Task(EventName::Merged), Some(id), &detail);
    tx.effect(Effect::RemoveWorktree { task: id.clone() });
    tx.reply("merge_commit", merge_commit.as_str());
    tx.reply("drift_commits", drift_commits);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// The merge failed; the branch stands where it stood, and so does the worktree.
pub(super) fn failed(
    tx: &mut Tx<'_>,
    id: &TaskId,
    commit: &Sha,
    failure: &MergeFailure,
) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    let (work, approved_commit, by) = approved(tx, &task)?;
    check_commit(&task, &approved_commit, commit)?;
    let who = merger(tx, by);
    let event = tx.event(EventName::IntegrationFailed).with("commit", approved_commit.as_str());
    let (event, detail) = match failure {
        MergeFailure::Conflict { files } => {
            let event = event.with("reason", "conflict").with("files", files.clone());
            (event, format!("conflict in {}", files.join(", ")))
        }
        MergeFailure::Unrelated => {
            (event.with("reason", MergeFailure::UNRELATED), MergeFailure::UNRELATED.to_owned())
        }
        MergeFailure::Test { what, output } => {
            let event = event.with("reason", what.as_str()).with("output", output.as_str());
            (event, format!("{what}; see {output}"))
        }
    };
    task.remember(event);
    task.status = TaskStatus::IntegrationFailed { work, commit: approved_commit };
    tx.log_as(&who, LogAction::Task(EventName::IntegrationFailed), Some(id), &detail);
    tx.reply("reason", Value::Text(detail));
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}
