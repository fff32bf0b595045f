//! The change of a task to BLOCKED, and the limits at which the rules block it themselves.

use crate::model::{
    AgentId, AgentStatus, Block, EventName, HistoryEvent, LogAction, REVIEW_DEADLOCK, Refusal, Status, Task,
    TaskRecord, TaskStatus,
};

use super::reply::TaskReply;
use super::tx::Tx;

/// Blocks the task by the caller: coder and worktree stay until the planner decides, the agents are freed.
pub(super) fn block(
    tx: &mut Tx<'_>,
    mut task: Task,
    block: Block,
    failed: Option<AgentId>,
) -> Result<TaskReply, Refusal> {
    let holders = [task.status.prior_work().coder, task.status.review().map(|review| review.by)];
    tx.free_agents(holders.into_iter().flatten(), &task.id, AgentStatus::Idle)?;
    if let Some(coder) = failed {
        add_failure(&mut task.record, coder);
    }
    let event = tx.event(EventName::Blocked).with("reason", block.reason.as_str());
    let event = event.with("questions", block.questions.clone());
    let draft = matches!(task.status, TaskStatus::Draft).then_some(Status::Draft.name());
    let event = event.with_some("from", draft);
    let attempted = Some(block.attempted.clone()).filter(|attempted| !attempted.is_empty());
    let (event, detail) = (event.with_some("attempted", attempted), block.reason.clone());
    set_blocked(&mut task, event, block);
    Ok(tx.save(task, EventName::Blocked, &detail))
}

fn set_blocked(task: &mut Task, event: HistoryEvent, block: Block) {
    task.push_event(event);
    task.record.reservation = None;
    task.record.clear_exit_counts();
    task.status = TaskStatus::Blocked { block, prior: task.status.prior_work() };
}

fn add_failure(record: &mut TaskRecord, coder: AgentId) {
    let failed_by = record.failed_by.get_or_insert_default();
    if !failed_by.contains(&coder) {
        failed_by.push(coder);
    }
}

/// One claim too many: the task is blocked instead of claimed.
pub(super) fn at_iteration_limit(
    tx: &mut Tx<'_>,
    mut task: Task,
    coder: AgentId,
    iterations: u32,
) -> Refusal {
    let reason = "max iterations reached without approval";
    add_failure(&mut task.record, coder);
    let event = tx.system_event(EventName::Blocked).with("reason", reason).with("coder", coder.to_string());
    let question = format!("Is the task too large or unclear? {coder} had {iterations} iterations.");
    set_blocked(&mut task, event, Block::by_system(reason, [question]));
    tx.log_as("system", LogAction::Task(EventName::Blocked), Some(&task.id), reason);
    let refusal = Refusal::IterationLimit { task: task.id.clone(), iterations };
    tx.put(task);
    tx.refuse_but_write(refusal)
}

/// Coder and code reviewer do not agree: the rejection and the block are one write.
pub(super) fn at_review_limit(tx: &Tx<'_>, task: &mut Task, cycles: u32) {
    let event = tx.system_event(EventName::Blocked).with("reason", REVIEW_DEADLOCK).with("cycles", cycles);
    let questions = [
        "Does the coder not address the feedback, or are the reviewer's criteria unclear?",
        "Should the task be clarified, rescoped or abandoned?",
    ];
    set_blocked(task, event, Block::by_system(REVIEW_DEADLOCK, questions.map(str::to_owned)));
}

/// The session budget is used up: the task is blocked instead of claimed, until the human refills the budget.
pub(super) fn at_session_limit(
    tx: &mut Tx<'_>,
    mut task: Task,
    refusal: Refusal,
) -> Result<Refusal, Refusal> {
    let holders = [task.status.prior_work().coder, task.status.review().map(|review| review.by)];
    tx.free_agents(holders.into_iter().flatten(), &task.id, AgentStatus::Idle)?;
    let reason = refusal.to_string();
    let question = format!(
        "What keeps these sessions from finishing it? liza show {} has its history; liza answer {} \"...\" lets it continue.",
        task.id, task.id
    );
    let event = tx.system_event(EventName::Blocked).with("reason", reason.as_str());
    set_blocked(&mut task, event, Block::by_system(&reason, [question]));
    tx.log_as("system", LogAction::Task(EventName::Blocked), Some(&task.id), &reason);
    tx.put(task);
    Ok(tx.refuse_but_write(refusal))
}

/// Too many sessions of this agent ended without a result.
pub(super) fn at_exit_limit(
    tx: &mut Tx<'_>,
    mut task: Task,
    agent: AgentId,
    reason: &str,
    last_words: Option<&str>,
) -> Result<TaskReply, Refusal> {
    let sentence = |words: &str| match words.ends_with(['.', '!', '?', '…']) {
        true => format!(" It ended with: {words}"),
        false => format!(" It ended with: {words}."),
    };
    let said = last_words.map(sentence).unwrap_or_default();
    let question = format!(
        "What keeps {agent} from working on this task?{said} Its outputs are in .liza/agent-outputs/."
    );
    let event = tx.system_event(EventName::Blocked).with("reason", reason);
    tx.free_agents([agent], &task.id, AgentStatus::Idle)?;
    set_blocked(&mut task, event, Block::by_system(reason, [question]));
    tx.log_as("system", LogAction::Task(EventName::Blocked), Some(&task.id), reason);
    Ok(tx.put(task))
}
