//! The stop files that are present, and their meaning for the team.

use crate::alarms::{AlarmLevel, Observations};
use liza_core::model::{Seconds, State, StopFile, Timestamp};
use liza_core::rules::sessions::is_in_session;
use liza_core::text::count;

use super::{NeedKind, NeedsYou};
use crate::command_line::{OPEN, liza};

/// The time since which a stop file is present.
pub(super) fn since(seen: &Observations, file: StopFile) -> Option<Timestamp> {
    match file {
        StopFile::Abort => seen.stop_files.abort,
        StopFile::Checkpoint => seen.stop_files.checkpoint,
        StopFile::Pause => seen.stop_files.pause,
    }
}

pub(super) fn stops(state: &State, seen: &Observations, now: Timestamp) -> Vec<NeedsYou> {
    let need = |file: StopFile| {
        let began = since(seen, file)?;
        let (age, running) = (now.since(began), running_sessions(state, seen, began, now));
        let when = if age.0 < 2 { "just now".to_owned() } else { format!("{age} ago") };
        let (text, command) = match file {
            StopFile::Abort => (format!("Aborted {when}; all work has ended"), liza!("goal", "new", OPEN)),
            StopFile::Checkpoint => {
                let read = "Read .liza/sprint_summary.md";
                (format!("Checkpoint began {when}; no new work starts{running}. {read}"), liza!("resume"))
            }
            StopFile::Pause => (format!("Paused {when}; no new work starts{running}"), liza!("resume")),
        };
        Some(NeedsYou::new(NeedKind::Stopped(file), AlarmLevel::Critical, text, command))
    };
    // After an abort there is nothing to resume.
    let others = [StopFile::Checkpoint, StopFile::Pause].into_iter().filter_map(need);
    need(StopFile::Abort).map_or_else(|| others.collect(), |abort| vec![abort])
}

/// The sessions that still run for a while after the team was stopped.
pub(super) fn running_sessions(
    state: &State,
    seen: &Observations,
    stopped: Timestamp,
    now: Timestamp,
) -> String {
    let here = seen.presence(&state.board, now).agents();
    let running = here.filter(|(id, entry)| is_in_session(&state.board, *id, entry)).count();
    let grace = state.board.config.ready().map(|config| config.stop_grace);
    let left = grace.map(|grace| rounded_up((stopped + grace).since(now)));
    match (running, left) {
        (0, _) | (_, None | Some(Seconds(0))) => String::new(),
        (1, Some(left)) => format!("; 1 session may end its work (up to {left})"),
        (n, Some(left)) => format!("; {} may end their work (up to {left})", count(n, "session")),
    }
}

/// A limit in whole minutes, if it is longer than one: it must not seem to be over before it is.
fn rounded_up(left: Seconds) -> Seconds {
    if left.0 > 60 { Seconds(left.0.div_ceil(60) * 60) } else { left }
}
