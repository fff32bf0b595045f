//! Alarms about stops that last long: nothing happens until the human comes back.

use liza_core::model::{Seconds, Timestamp};

use super::{Alarm, AlarmKind, Observations};

/// The length of a stop before a reminder.
pub(super) const STALE: Seconds = Seconds::minutes(30);
/// The length of a stop before an urgent reminder.
const STUCK: Seconds = Seconds::hours(2);
/// The length of a stop after which probably no one is coming back.
const ABANDONED: Seconds = Seconds::hours(8);

/// A checkpoint that waits for the human.
pub(super) fn checkpoint(seen: &Observations, now: Timestamp) -> Option<Alarm> {
    let since = seen.stop_files.checkpoint?;
    let waited = now.since(since);
    let text = |advice: &str| format!("waiting for human for {waited}{advice}");
    let found = match StopAge::of(waited)? {
        StopAge::Abandoned => Alarm::critical(
            AlarmKind::CheckpointAbandoned,
            "8h",
            text("; liza resume to continue, liza abort to stop"),
        ),
        StopAge::Stuck => Alarm::critical(AlarmKind::CheckpointStuck, "2h", text("")),
        StopAge::Stale => Alarm::warning(AlarmKind::CheckpointStale, "30min", text("")),
    };
    Some(found.since(since))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopAge {
    /// More than half an hour.
    Stale,
    /// More than two hours: a checkpoint is escalated.
    Stuck,
    /// More than eight hours: it looks as if no one is coming back.
    Abandoned,
}

impl StopAge {
    pub fn of(waited: Seconds) -> Option<Self> {
        let all = [(ABANDONED, StopAge::Abandoned), (STUCK, StopAge::Stuck), (STALE, StopAge::Stale)];
        all.into_iter().find(|(limit, _)| waited > *limit).map(|(_, age)| age)
    }
}

/// A long PAUSE.
pub(super) fn pause(seen: &Observations, now: Timestamp) -> Option<Alarm> {
    let since = seen.stop_files.pause?;
    let waited = now.since(since);
    let text = format!("PAUSE file exists for {}min", waited.in_minutes());
    let found = match StopAge::of(waited)? {
        StopAge::Abandoned | StopAge::Stuck => Alarm::critical(AlarmKind::ForgottenPause, "2h", text),
        StopAge::Stale => Alarm::warning(AlarmKind::StalePause, "30min", text),
    };
    Some(found.since(since))
}
