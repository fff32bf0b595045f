//! mark-blocked, and the limits at which the rules themselves block a task.

use crate::agent::{Actor, AgentStatus, Role};
use crate::command::FruitlessExit;
use crate::event::{EventName, LogAction, one_line};
use crate::ids::{AgentId, TaskId};
use crate::record::{Status, TaskRecord};
use crate::refusal::Refusal;
use crate::task::{Block, HUMAN_OVERRIDE, OVERRIDE_QUESTION, REVIEW_DEADLOCK, Task, TaskStatus};

use super::own::check_speaks_for;
use super::own::own_claim;
use super::tx::{Tx, required};

const QUESTIONS_MAX: usize = 3;

/// The coder cannot go on, or a person wants the planner to think again.
pub(super) fn mark_blocked(
    tx: &mut Tx<'_>,
    id: &TaskId,
    reason: &str,
    questions: &[String],
    attempted: &[String],
) -> Result<(), Refusal> {
    match tx.actor {
        Actor::Human => override_block(tx, id, reason, questions, attempted),
        Actor::Agent(..) | Actor::Operator(_) | Actor::Supervisor(..) => {
            block_own(tx, id, reason, questions, attempted)
        }
    }
}

/// The coder's own block counts as its failure; its supervisor's, made when sessions bring nothing, does not.
fn block_own(
    tx: &mut Tx<'_>,
    id: &TaskId,
    reason: &str,
    questions: &[String],
    attempted: &[String],
) -> Result<(), Refusal> {
    let task = tx.task(id)?;
    let (coder, _) = own_claim(tx, &task)?;
    let reason = required(reason, "the reason for blocking (--reason)")?;
    let questions = said(questions)?;
    if questions.is_empty() {
        return Err(Refusal::Missing { what: "a question that would unblock it (--question, 1 to 3)" });
    }
    let block = Block { reason: reason.to_owned(), questions, attempted: attempted.to_vec() };
    let by_coder = !matches!(tx.actor, Actor::Supervisor(..));
    block_task(tx, task, block, by_coder.then_some(coder))
}

/// The questions that say something; more than three are no help to anybody.
fn said(questions: &[String]) -> Result<Vec<String>, Refusal> {
    let said: Vec<String> = questions.iter().map(|q| q.trim().to_owned()).filter(|q| !q.is_empty()).collect();
    if said.len() <= QUESTIONS_MAX {
        return Ok(said);
    }
    let problem = format!("1 to {QUESTIONS_MAX} are asked for, {} were given", said.len());
    Err(Refusal::BadText { what: "questions", problem })
}

/// A person may block anything that is not over.
fn override_block(
    tx: &mut Tx<'_>,
    id: &TaskId,
    reason: &str,
    questions: &[String],
    attempted: &[String],
) -> Result<(), Refusal> {
    let task = tx.task(id)?;
    let status = task.status.name();
    if status.is_terminal() || matches!(task.status, TaskStatus::Blocked { .. }) {
        return Err(tx.wrong_status(&task, "a state that is neither BLOCKED nor final"));
    }
    // A draft that is blocked and unblocked again must not have slipped past its gates.
    let missing = missing_gates(&task.record, status == Status::Draft);
    if !missing.is_empty() {
        return Err(Refusal::GatesMissing { task: id.clone(), missing });
    }
    let reason = if reason.trim().is_empty() { HUMAN_OVERRIDE } else { reason.trim() };
    let mut questions = said(questions)?;
    if questions.is_empty() {
        questions.push(OVERRIDE_QUESTION.to_owned());
    }
    let block = Block { reason: reason.to_owned(), questions, attempted: attempted.to_vec() };
    block_task(tx, task, block, None)
}

/// What a task needs before it can leave DRAFT; a blocked one can do without a scope.
pub(super) fn missing_gates(record: &TaskRecord, with_scope: bool) -> Vec<&'static str> {
    let blank = |text: &Option<String>| text.as_deref().is_none_or(|text| text.trim().is_empty());
    let gates = [
        ("spec_ref", blank(&record.spec_ref)),
        ("done_when", blank(&record.done_when)),
        ("scope", with_scope && blank(&record.scope)),
    ];
    gates.iter().filter(|(_, missing)| *missing).map(|(name, _)| *name).collect()
}

/// Sets BLOCKED: coder and worktree stay until the planner decides, the agents are freed.
fn block_task(tx: &mut Tx<'_>, mut task: Task, block: Block, failed: Option<AgentId>) -> Result<(), Refusal> {
    let kept = task.status.kept();
    let holders = [kept.coder, task.status.review().map(|review| review.by)];
    for agent in holders.into_iter().flatten() {
        tx.free_agent(agent, &task.id, AgentStatus::Idle)?;
    }
    if let Some(coder) = failed {
        add_failure(&mut task.record, coder);
    }
    let event = tx.event(EventName::Blocked).with("reason", block.reason.as_str());
    task.remember(event.with("questions", block.questions.clone()));
    let detail = block.reason.clone();
    settle_blocked(&mut task, block);
    tx.settle(task, EventName::Blocked, &detail);
    Ok(())
}

fn settle_blocked(task: &mut Task, block: Block) {
    let kept = task.status.kept();
    task.record.reservation = None;
    task.record.crashes = None;
    task.record.idle_exits = None;
    task.status = TaskStatus::Blocked { block, kept };
}

pub(super) fn add_failure(record: &mut TaskRecord, coder: AgentId) {
    let failed_by = record.failed_by.get_or_insert_default();
    if !failed_by.contains(&coder) {
        failed_by.push(coder);
    }
}

/// One claim too many: the task is blocked in place of being claimed.
pub(super) fn at_iteration_limit(
    tx: &mut Tx<'_>,
    mut task: Task,
    coder: AgentId,
    iterations: u32,
) -> Result<(), Refusal> {
    let reason = "max iterations reached without approval";
    add_failure(&mut task.record, coder);
    task.remember(
        tx.system_event(EventName::Blocked).with("reason", reason).with("coder", coder.to_string()),
    );
    let questions = vec![format!("Is the task too large or unclear? {coder} had {iterations} iterations.")];
    settle_blocked(&mut task, Block { reason: reason.to_owned(), questions, attempted: Vec::new() });
    tx.refuse(Refusal::IterationLimit { task: task.id.clone(), iterations });
    tx.log_as("system", LogAction::Task(EventName::Blocked), Some(&task.id), reason);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// Coder and code reviewer have not come to terms: the rejection and the block are one write.
pub(super) fn at_review_limit(tx: &Tx<'_>, task: &mut Task, cycles: u32) {
    task.remember(tx.system_event(EventName::Blocked).with("reason", REVIEW_DEADLOCK).with("cycles", cycles));
    let questions = vec![
        "Does the coder not address the feedback, or are the reviewer's criteria unclear?".to_owned(),
        "Should the task be clarified, rescoped or abandoned?".to_owned(),
    ];
    let block = Block { reason: REVIEW_DEADLOCK.to_owned(), questions, attempted: Vec::new() };
    settle_blocked(task, block);
}

/// Counts a session that brought nothing; at the limit a coder's task is blocked, a review is left to another.
pub(super) fn count_exit(
    tx: &mut Tx<'_>,
    id: &TaskId,
    agent: AgentId,
    exit: FruitlessExit,
) -> Result<(), Refusal> {
    check_speaks_for(tx, agent)?;
    let mut task = tx.task(id)?;
    let config = tx.config()?;
    let (counter, limit, what) = match exit {
        FruitlessExit::Crash => (&mut task.record.crashes, config.max_crashes, "crashed"),
        FruitlessExit::Idle => (&mut task.record.idle_exits, config.max_idle_exits, "ended without a result"),
    };
    let count = counter.unwrap_or(0).saturating_add(1);
    *counter = Some(count);
    tx.reply("count", count);
    tx.reply("limit", limit);
    if !task.status.is_held_by(agent) {
        return Err(Refusal::TaskLost {
            task: id.clone(),
            agent,
            now_with: format!("it is {}", task.status.name()),
        });
    }
    if count < limit || agent.role() != Role::Coder {
        tx.reply_task(&task);
        tx.put(task);
        return Ok(());
    }
    let reason = format!("{agent} {what} {count} times in a row");
    let questions = vec![format!(
        "What keeps {agent} from working on this task? Its outputs are in .liza/agent-outputs/."
    )];
    task.remember(tx.system_event(EventName::Blocked).with("reason", one_line(&reason, 200)));
    tx.free_agent(agent, id, AgentStatus::Idle)?;
    settle_blocked(&mut task, Block { reason: reason.clone(), questions, attempted: Vec::new() });
    tx.log_as("system", LogAction::Task(EventName::Blocked), Some(id), &reason);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}
