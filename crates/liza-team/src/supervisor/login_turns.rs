//! Turns of a team's agents at a login that is about to be refreshed: one session at a time until it is.

use std::path::Path;
use std::time::{Duration, Instant};

use liza_core::model::{Seconds, Timestamp};

use crate::project::now;
use crate::session::login_turn::{LoginTurn, TakenTurn, login_turn};

/// A session that begins less than this before its login has to be refreshed starts alone. Most sessions are
/// shorter; a longer one starts again if its login is refused.
const BEFORE_REFRESH: Seconds = Seconds::minutes(30);

/// The time for which an agent waits for a refresh that is due: its program may use another login than the one in the file.
const REFRESH_PATIENCE: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(super) struct LoginTurns {
    /// Held from before its session starts until that has ended.
    taken: Option<TakenTurn>,
    /// The start of its wait for a refresh that was due.
    waiting: Option<Instant>,
}

impl LoginTurns {
    /// True if a session may start with the present login; takes the turn if it needs one.
    pub(super) fn may_use(&mut self, program: &str, file: &Path, limit: Seconds) -> bool {
        let ends = now() + Seconds(limit.0.min(BEFORE_REFRESH.0));
        // Its last turn ended with its last session.
        self.taken = None;
        let is_free = match login_turn(program, file, ends) {
            LoginTurn::Free => true,
            LoginTurn::Alone(turn) => {
                self.taken = Some(turn);
                true
            }
            LoginTurn::Busy(due) => self.is_too_long(due),
        };
        if is_free {
            self.waiting = None;
        }
        is_free
    }

    fn is_too_long(&mut self, due: Timestamp) -> bool {
        if due > now() {
            return false;
        }
        self.waiting.get_or_insert_with(Instant::now).elapsed() >= REFRESH_PATIENCE
    }
}
