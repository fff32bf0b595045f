//! The usage of a session: tokens, money, context.

use crate::model::{AgentId, Board, Refusal, Section, TaskId, Timestamp, Usage};
use crate::rules::spending::add_to_day;

use super::operation::{LoadScope, Rule};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::reply::Nothing;
use super::tx::Tx;

/// Adds to the usage of an agent, its task, the sprint, the day and the goal; keeps the last context share.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordUsage {
    pub agent: AgentId,
    pub task: Option<TaskId>,
    /// The usage since the last report.
    pub usage: Usage,
    pub context_percent: Option<u32>,
    /// The midnight at which the day ends in the human's time zone.
    pub day_ends: Timestamp,
}

impl Rule for RecordUsage {
    type Reply = Nothing;
    const VERB: &'static str = "record-usage";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal, Section::Sprint]);

    fn other_tasks(&self, _board: &Board, _now: Timestamp) -> Vec<TaskId> {
        self.task.clone().into_iter().collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        check_acts_for(tx, self.agent)?;
        let mut entry = tx.agent(self.agent)?;
        entry.usage.get_or_insert_default().add(&self.usage);
        entry.context_percent = self.context_percent.or(entry.context_percent);
        tx.put_agent(self.agent, entry);
        // A task that is broken or archived must not cost the agent its own figures.
        if let Some(mut task) = self.task.as_ref().and_then(|id| tx.task(id).ok()) {
            task.record.usage.get_or_insert_default().add(&self.usage);
            tx.put_quietly(task);
        }
        // Nor must a broken section.
        if tx.board.sprint.ready().is_some() {
            let now = tx.now;
            let sprint = tx.sprint()?;
            sprint.usage.get_or_insert_default().add(&self.usage);
            sprint.today = Some(add_to_day(sprint.today.take(), &self.usage, self.day_ends, now));
        }
        if tx.board.goal.ready().is_some() {
            tx.goal()?.usage.get_or_insert_default().add(&self.usage);
        }
        Ok(Nothing {})
    }
}
