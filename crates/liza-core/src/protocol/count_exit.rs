//! Counts sessions that ended without a result; at the limit a coder's task is blocked.

use serde::Serialize;

use crate::model::{AgentId, Refusal, Role, Section, TaskId};
use crate::text;

use super::blocking::at_exit_limit;
use super::operation::{LoadScope, Rule};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::reply::TaskReply;
use super::tx::Tx;

/// Counts one session. At the limit a review is left to another code reviewer, by its supervisor.
#[derive(Debug, Clone, PartialEq)]
pub struct CountExit {
    /// On which task.
    pub task: TaskId,
    /// Whose session.
    pub agent: AgentId,
    /// How it ended.
    pub exit: UnproductiveExit,
}

/// How a session without a result ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnproductiveExit {
    /// It crashed.
    Crash,
    /// It exited cleanly, without submitting, blocking or handing off.
    Idle,
}

/// The count so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExitCounted {
    /// The task.
    #[serde(flatten)]
    pub task: TaskReply,
    /// How many in a row.
    pub count: u32,
    /// How many are allowed.
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
        let config = tx.config()?;
        let (counter, limit, what) = match self.exit {
            UnproductiveExit::Crash => (&mut task.record.crashes, config.max_crashes, "crashed"),
            UnproductiveExit::Idle => {
                (&mut task.record.idle_exits, config.max_idle_exits, "ended without a result")
            }
        };
        let count = counter.unwrap_or(0).saturating_add(1);
        *counter = Some(count);
        let task = if count < limit || agent.role() != Role::Coder {
            tx.put(task)
        } else {
            let times = text::count(count as usize, "time");
            at_exit_limit(tx, task, agent, &format!("{agent} {what} {times} in a row"))?
        };
        Ok(ExitCounted { task, count, limit })
    }
}
