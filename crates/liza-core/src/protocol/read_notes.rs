//! read-notes: a session has been given the notes of the human.

use crate::model::{AgentId, Board, Refusal, Section, TaskId, Timestamp};

use super::operation::{LoadScope, Rule};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::reply::Nothing;
use super::tx::Tx;

/// Records that an agent has read the notes that were there, in its prompt or with the answer to a command.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadNotes {
    pub agent: AgentId,
    /// `None` for a planner.
    pub task: Option<TaskId>,
    /// The length of the whole list of notes. Times would not do: they are in seconds.
    pub number: usize,
}

impl Rule for ReadNotes {
    type Reply = Nothing;
    const VERB: &'static str = "read-notes";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn other_tasks(&self, _board: &Board, _now: Timestamp) -> Vec<TaskId> {
        self.task.clone().into_iter().collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        check_acts_for(tx, self.agent)?;
        match &self.task {
            Some(task) => {
                let mut task = tx.task(task)?;
                task.record.notes_read.get_or_insert_default().insert(self.agent, self.number);
                tx.put_quietly(task);
            }
            None => drop(tx.sprint()?.notes_read.insert(self.agent, self.number)),
        }
        Ok(Nothing {})
    }
}
