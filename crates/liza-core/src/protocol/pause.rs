//! pause: nothing new starts until `resume`.

use serde::Serialize;

use crate::model::{LogAction, Refusal, Section, StopFile};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

/// Pauses every agent. Sent twice, it is the same pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pause;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Paused {
    pub paused: bool,
    /// False if they were paused before.
    pub changed: bool,
}

impl Rule for Pause {
    type Reply = Paused;
    const VERB: &'static str = "pause";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Paused, Refusal> {
        let now = tx.now;
        // A sprint section that cannot be read is no reason to let the agents continue.
        let known = tx.board.sprint.ready().is_some_and(|sprint| sprint.timeline.paused_at.is_some());
        if !known && let Ok(sprint) = tx.sprint() {
            sprint.timeline.paused_at = Some(now);
        }
        tx.create_stop_file(StopFile::Pause);
        let changed = !known || !tx.stop_files.pause;
        if changed {
            tx.log(LogAction::Paused, None, "");
        }
        Ok(Paused { paused: true, changed })
    }
}
