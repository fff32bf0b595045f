//! archive: moves finished tasks out of the live file; their names and statuses stay.

use serde::Serialize;

use crate::model::{Board, EventName, LogAction, Refusal, Section, TaskId, Timestamp};
use crate::rules::sprint::belongs_to_running;
use crate::text::count;

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

#[derive(Debug, Clone, PartialEq)]
pub struct Archive {
    pub tasks: Vec<TaskId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchivedTasks {
    pub archived: Vec<TaskId>,
}

impl Rule for Archive {
    type Reply = ArchivedTasks;
    const VERB: &'static str = "archive";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint]);

    fn other_tasks(&self, _board: &Board, _now: Timestamp) -> Vec<TaskId> {
        self.tasks.clone()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<ArchivedTasks, Refusal> {
        let sprint = tx.board.sprint()?;
        for id in &self.tasks {
            let no = |why: String| Refusal::NotArchivable { task: id.clone(), why };
            let record = tx.board.body(id)?.record().clone();
            match record.status {
                Some(status) if status.is_terminal() => {}
                Some(status) => return Err(no(format!("it is {status}"))),
                None => return Err(no("its status is unknown".to_owned())),
            }
            if belongs_to_running(tx.board, sprint, id) {
                return Err(no("it belongs to the current sprint".to_owned()));
            }
            tx.archive(id, record);
        }
        let names: Vec<&str> = self.tasks.iter().map(TaskId::as_str).collect();
        if !names.is_empty() {
            let detail = format!("{}: {}", count(names.len(), "task"), names.join(", "));
            tx.log(LogAction::Task(EventName::Archived), None, &detail);
        }
        Ok(ArchivedTasks { archived: self.tasks.clone() })
    }
}
