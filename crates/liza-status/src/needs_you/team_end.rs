//! The end of a team without a usable agent program.

use crate::alarms::held::sessions_before_end;
use crate::alarms::{AlarmKind, Moment};

use super::NeedsYou;

/// Adds the end of the team to each program that waits for the human.
pub(super) fn announce_end(needs: &mut [NeedsYou], at: Moment<'_>) {
    let sentence = match sessions_before_end(at) {
        0 => return,
        1 => ". The team ends by itself after the running session".to_owned(),
        n => format!(". The team ends by itself after the {n} running sessions"),
    };
    for need in needs.iter_mut().filter(|need| need.kind == AlarmKind::ClientHeld) {
        need.text.push_str(&sentence);
    }
}
