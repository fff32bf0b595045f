//! pre-check: a coder's intent before it starts; the code reviewer compares it with the result.

use crate::model::{EventName, Refusal, TaskId};

use super::operation::Rule;
use super::ownership::own_claim;
use super::permission::{CODING, Rights};
use super::reply::TaskReply;
use super::tx::{Tx, required};

/// Records the coder's intent in the task's history.
#[derive(Debug, Clone, PartialEq)]
pub struct PreCheck {
    pub task: TaskId,
    pub intent: Intent,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intent {
    pub intent: String,
    /// The planned proof that it works.
    pub validation: String,
    pub assumptions: Vec<String>,
    pub risks: Vec<String>,
    pub files: Vec<String>,
}

impl Rule for PreCheck {
    type Reply = TaskReply;
    const VERB: &'static str = "pre-check";
    const RIGHTS: Rights = CODING;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let mut task = tx.task(&self.task)?;
        own_claim(tx, &task)?;
        let intent = required(&self.intent.intent, "what is intended (--intent)")?;
        let validation = required(&self.intent.validation, "how it will be shown to work (--validation)")?;
        let list = |items: &[String]| (!items.is_empty()).then(|| items.to_vec());
        let event = tx
            .event(EventName::PreExecutionCheckpoint)
            .with("intent", intent)
            .with("validation", validation)
            .with_some("assumptions", list(&self.intent.assumptions))
            .with_some("risks", list(&self.intent.risks))
            .with_some("files", list(&self.intent.files));
        task.push_event(event);
        Ok(tx.save(task, EventName::PreExecutionCheckpoint, intent))
    }
}
