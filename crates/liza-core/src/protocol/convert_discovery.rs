//! convert-discovery: a discovery has become a task.

use serde::Serialize;

use crate::model::{DiscoveryId, LogAction, Refusal, Section, TaskId};

use super::operation::{LoadScope, Rule};
use super::permission::{PLANNING, Rights};
use super::tx::Tx;

/// Links a discovery to the task that came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertDiscovery {
    pub discovery: DiscoveryId,
    pub task: TaskId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Converted {
    pub discovery: DiscoveryId,
    pub task: TaskId,
}

impl Rule for ConvertDiscovery {
    type Reply = Converted;
    const VERB: &'static str = "convert-discovery";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope = LoadScope::all(&[Section::Discovered]);

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Converted, Refusal> {
        let Self { discovery: id, task } = self;
        tx.check_known(Some(task))?;
        let found = tx.discovered()?.iter_mut().find(|found| found.id == *id);
        let found = found.ok_or(Refusal::UnknownDiscovery { discovery: *id })?;
        if let Some(earlier) = &found.converted_to_task {
            return Err(Refusal::AlreadyConverted { discovery: *id, task: earlier.clone() });
        }
        found.converted_to_task = Some(task.clone());
        tx.log(LogAction::Discovered, Some(task), &format!("{id} became {task}"));
        Ok(Converted { discovery: *id, task: task.clone() })
    }
}
