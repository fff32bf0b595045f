//! The end of a team without a usable agent program.

use crate::alarms::held::sessions_before_end;
use crate::alarms::{AlarmKind, Observations};
use liza_core::model::{State, Timestamp};

use super::{NeedKind, NeedsYou};

/// Adds the end of the team to each program that waits for the human.
pub(super) fn announce_end(needs: &mut [NeedsYou], state: &State, seen: &Observations, now: Timestamp) {
    let sentence = match sessions_before_end(state, seen, now) {
        0 => return,
        1 => ". The team ends by itself after the running session".to_owned(),
        n => format!(". The team ends by itself after the {n} running sessions"),
    };
    needs
        .iter_mut()
        .filter(|need| need.kind == NeedKind::Alarm(AlarmKind::ClientHeld))
        .for_each(|need| need.text.push_str(&sentence));
}
