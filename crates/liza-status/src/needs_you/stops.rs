//! The stop files that are present, and their meaning for the team.

use crate::alarms::{Alarm, AlarmKind, Moment};
use liza_core::model::{Seconds, StopFile, Timestamp};
use liza_core::rules::sessions::is_in_session;
use liza_core::text::count;

pub(super) fn stops(at: Moment<'_>) -> Vec<Alarm> {
    let need = |file: StopFile| {
        let began = at.seen.stop_files.since(file)?;
        let (age, running) = (at.now.since(began), running_sessions(at, began));
        let when = if age.0 < 2 { "just now".to_owned() } else { format!("{age} ago") };
        let (kind, text) = match file {
            StopFile::Abort => (AlarmKind::Abort, format!("Aborted {when}; all work has ended")),
            StopFile::Checkpoint => {
                let text = format!("Checkpoint began {when}; no new work starts{running}");
                (AlarmKind::Checkpoint, format!("{text}. Read .liza/sprint_summary.md"))
            }
            StopFile::Pause => (AlarmKind::Pause, format!("Paused {when}; no new work starts{running}")),
        };
        Some(Alarm::new(kind, file.name(), text))
    };
    // After an abort there is nothing to resume.
    let others = [StopFile::Checkpoint, StopFile::Pause].into_iter().filter_map(need);
    need(StopFile::Abort).map_or_else(|| others.collect(), |abort| vec![abort])
}

/// The sessions that still run for a while after the team was stopped.
pub(super) fn running_sessions(at: Moment<'_>, stopped: Timestamp) -> String {
    let running = at.here().agents().filter(|(id, entry)| is_in_session(at.board(), *id, entry)).count();
    let left = at.config().map(|config| rounded_up((stopped + config.stop_grace).since(at.now)));
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
