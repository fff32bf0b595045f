//! retro: the lessons of the sprint.

use crate::model::{LogAction, Refusal, Section};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::reply::Nothing;
use super::tx::{Tx, required};

#[derive(Debug, Clone, PartialEq)]
pub struct WriteRetro {
    pub text: String,
}

impl Rule for WriteRetro {
    type Reply = Nothing;
    const VERB: &'static str = "retro";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        tx.sprint()?.retrospective = Some(required(&self.text, "the retrospective")?.to_owned());
        tx.log(LogAction::SprintUpdated, None, "retrospective written");
        Ok(Nothing {})
    }
}
