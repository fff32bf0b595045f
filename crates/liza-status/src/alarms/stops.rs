//! Alarms about stops that last long: nothing happens until the human comes back.

use liza_core::model::Seconds;

use super::{Alarm, AlarmKind, Moment};

/// The length of a stop before a reminder.
pub(super) const STALE: Seconds = Seconds::minutes(30);
/// The length of a stop before an urgent reminder.
const STUCK: Seconds = Seconds::hours(2);
/// The length of a stop after which probably no one is coming back.
const ABANDONED: Seconds = Seconds::hours(8);

/// A checkpoint that waits for the human.
pub(super) fn checkpoint(at: Moment<'_>) -> Option<Alarm> {
    let since = at.seen.stop_files.checkpoint?;
    let waited = at.now.since(since);
    let (kind, limit, advice) = match StopAge::of(waited)? {
        StopAge::Abandoned => {
            (AlarmKind::CheckpointAbandoned, "8h", "; liza resume to continue, liza abort to stop")
        }
        StopAge::Stuck => (AlarmKind::CheckpointStuck, "2h", ""),
        StopAge::Stale => (AlarmKind::CheckpointStale, "30min", ""),
    };
    Some(Alarm::new(kind, limit, format!("waiting for human for {waited}{advice}")).since(since))
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
pub(super) fn pause(at: Moment<'_>) -> Option<Alarm> {
    let since = at.seen.stop_files.pause?;
    let waited = at.now.since(since);
    let (kind, limit) = match StopAge::of(waited)? {
        StopAge::Abandoned | StopAge::Stuck => (AlarmKind::ForgottenPause, "2h"),
        StopAge::Stale => (AlarmKind::StalePause, "30min"),
    };
    Some(Alarm::new(kind, limit, format!("PAUSE file exists for {}min", waited.in_minutes())).since(since))
}
