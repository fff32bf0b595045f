//! Counts sessions without a result. At the limit, a task is blocked, or its code reviewer drops the review.

use serde::Serialize;

use crate::model::{
    AgentId, LogAction, ModelEnd, PlannerExits, Refusal, Role, Seconds, Section, Task, TaskId,
};
use crate::rules::session_budget::SessionBudget;
use crate::text;

use super::blocking::at_exit_limit;
use super::claim_review::give_back;
use super::operation::{LoadScope, Rule, Stage};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::reply::{Nothing, TaskReply};
use super::tx::Tx;

#[derive(Debug, Clone, PartialEq)]
pub struct CountExit {
    pub task: TaskId,
    pub agent: AgentId,
    pub exit: UnproductiveExit,
    /// The reason it ended, or the last lines that it printed.
    pub last_words: Option<String>,
    /// The wait of its supervisor before the next try.
    pub pause: Seconds,
}

/// Counts one planning session; a planner at the limit of crashes ends, and the human is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct CountPlannerExit {
    pub agent: AgentId,
    /// The reason it ended, or the last lines that it printed.
    pub last_words: Option<String>,
    /// The reason it was started, for a person.
    pub woken_because: Option<String>,
    /// The matters that it was started for.
    pub woken_for: Vec<String>,
    /// The wait of its supervisor before the next try.
    pub pause: Seconds,
}

/// Records the time of the next try, which screens name.
fn put_off(tx: &mut Tx<'_>, agent: AgentId, pause: Seconds) -> Result<(), Refusal> {
    let mut entry = tx.agent(agent)?;
    if let Some(last) = &mut entry.last_session {
        last.again = Some(tx.now + pause);
        tx.put_agent(agent, entry);
    }
    Ok(())
}

/// Takes a session back from its budget, because its agent was not at fault.
#[derive(Debug, Clone, PartialEq)]
pub struct RefundSession {
    pub agent: AgentId,
    /// `None` for a planner.
    pub task: Option<TaskId>,
}

/// The ending of a session without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnproductiveExit {
    Crash,
    /// It exited cleanly, without submitting, blocking or handing off.
    Idle,
    /// Liza refused its result. Counts as idle.
    Refused,
    /// The model did not do its work. Counts as idle, and is asked for it once more.
    ByModel(ModelEnd),
}

/// A model that leaves no result is asked for it once.
const MODEL_EXITS: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExitCounted {
    #[serde(flatten)]
    pub task: TaskReply,
    /// The exits in a row.
    pub count: u32,
    pub limit: u32,
}

impl Rule for CountExit {
    type Reply = ExitCounted;
    const VERB: &'static str = "count-exit";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<ExitCounted, Refusal> {
        let agent = self.agent;
        check_acts_for(tx, agent)?;
        let mut task = tx.task(&self.task)?;
        if !task.status.is_held_by(agent) {
            let now_with = format!("it is {}", task.status.name());
            return Err(Refusal::TaskLost { task: self.task.clone(), agent, now_with });
        }
        put_off(tx, agent, self.pause)?;
        let config = tx.config()?;
        let (counter, limit, what) = match self.exit {
            UnproductiveExit::Crash => (&mut task.record.crashes, config.max_crashes, "crashed"),
            UnproductiveExit::Idle | UnproductiveExit::Refused | UnproductiveExit::ByModel(_) => {
                (&mut task.record.idle_exits, config.max_idle_exits, "ended without a result")
            }
        };
        let (limit, why) = match self.exit {
            UnproductiveExit::Crash | UnproductiveExit::Idle => (limit, None),
            UnproductiveExit::Refused => (limit, self.last_words.as_deref()),
            UnproductiveExit::ByModel(cause) => (limit.min(MODEL_EXITS), Some(cause.describe())),
        };
        let count = counter.unwrap_or(0).saturating_add(1);
        *counter = Some(count);
        let times = text::count(count as usize, "time");
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let reason = format!("{agent} {what} {times} in a row{why}");
        let task = match (agent.role(), count < limit) {
            (Role::Coder | Role::Planner, true) => tx.put(task),
            (Role::Coder | Role::Planner, false) => {
                at_exit_limit(tx, task, agent, &reason, self.last_words.as_deref())?
            }
            // The review goes back in the same write: a second one may be lost, and no one else could take it.
            (Role::CodeReviewer, true) => give_back(tx, task, agent)?,
            (Role::CodeReviewer, false) => drop_review(tx, task, agent, &reason)?,
        };
        Ok(ExitCounted { task, count, limit })
    }
}

/// This code reviewer no longer takes the review; another one begins with a count of its own.
fn drop_review(
    tx: &mut Tx<'_>,
    mut task: Task,
    reviewer: AgentId,
    reason: &str,
) -> Result<TaskReply, Refusal> {
    let dropped = task.record.review_dropped_by.get_or_insert_default();
    if !dropped.contains(&reviewer) {
        dropped.push(reviewer);
    }
    task.record.clear_exit_counts();
    let id = task.id.clone();
    let reply = give_back(tx, task, reviewer)?;
    tx.log_as("system", LogAction::ReviewDropped, Some(&id), reason);
    Ok(reply)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannerExitCounted {
    /// The exits in a row.
    pub count: u32,
    pub limit: u32,
}

impl CountPlannerExit {
    /// True if the sessions before it were for one of the same matters.
    fn is_about_the_same(&self, exits: &PlannerExits) -> bool {
        exits.woken_for.is_empty() || self.woken_for.iter().any(|matter| exits.woken_for.contains(matter))
    }
}

impl Rule for CountPlannerExit {
    type Reply = PlannerExitCounted;
    const VERB: &'static str = "count-planner-exit";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<PlannerExitCounted, Refusal> {
        check_acts_for(tx, self.agent)?;
        put_off(tx, self.agent, self.pause)?;
        let limit = tx.config()?.max_crashes;
        let exits = &mut tx.sprint()?.planner_exits;
        exits.count = if self.is_about_the_same(exits) { exits.count.saturating_add(1) } else { 1 };
        exits.last_words.clone_from(&self.last_words);
        exits.woken_because.clone_from(&self.woken_because);
        exits.woken_for.clone_from(&self.woken_for);
        let count = exits.count;
        if count >= limit {
            let words = self.last_words.as_deref().unwrap_or("it printed nothing");
            let times = text::count(count as usize, "time");
            let detail = format!("{} ended {times} in a row without a result: {words}", self.agent);
            tx.log_as("system", LogAction::PlannerStopped, None, &detail);
        }
        Ok(PlannerExitCounted { count, limit })
    }
}

impl Rule for RefundSession {
    type Reply = Nothing;
    const VERB: &'static str = "refund-session";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Leaves;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        check_acts_for(tx, self.agent)?;
        let budget = match &self.task {
            Some(task) => SessionBudget::of_task(task, tx.board.body(task)?.record()),
            None => SessionBudget::Planner,
        };
        if budget.used(tx.board.sprint()?) > 0 {
            budget.refund(&mut tx.sprint()?.sessions);
        }
        Ok(Nothing {})
    }
}
