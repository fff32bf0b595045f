//! abort: every agent stops, goal and sprint end for good.

use crate::model::{Refusal, Section};

use super::goal::{GoalReply, abort};
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

/// Ends goal and sprint, as `goal abort` does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Abort;

impl Rule for Abort {
    type Reply = GoalReply;
    const VERB: &'static str = "abort";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<GoalReply, Refusal> {
        abort(tx)
    }
}
