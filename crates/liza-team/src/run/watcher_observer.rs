//! The watcher inside a team: checks when the blackboard has changed, at most once a second.

use std::time::{Duration, Instant};

use liza_core::model::{State, Timestamp};
use liza_status::alarms::AlarmKind;

use crate::project::now;
use crate::supervisor::{MessageLevel, Observed, Observer, TeamMessage};
use crate::watch::{AlertMessage, WatchReport, Watcher};

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The longest wait of a team that ends for pending deliveries.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

pub struct WatcherObserver {
    /// `None` once it is closed.
    watcher: Option<Watcher>,
    next: Instant,
    started: Timestamp,
}

impl WatcherObserver {
    pub fn new(watcher: Watcher) -> Self {
        Self { watcher: Some(watcher), next: Instant::now(), started: now() }
    }
}

impl Observer for WatcherObserver {
    fn observe(&mut self, _: &State) -> Observed {
        let Some(watcher) = &mut self.watcher else { return Observed::default() };
        let wait = self.next.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            return Observed { again_in: Some(wait), ..Observed::default() };
        }
        let report = watcher.check(now());
        self.next = Instant::now() + CHECK_INTERVAL;
        Observed {
            messages: messages(report, self.started),
            again_in: Some(watcher.next_check()),
            ..Observed::default()
        }
    }
}

impl Drop for WatcherObserver {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            // The team may end with what it has to report.
            watcher.check(now());
            watcher.close(CLOSE_TIMEOUT);
        }
    }
}

fn messages(report: WatchReport, started: Timestamp) -> Vec<TeamMessage> {
    // The team itself reports violations with their line, and the reason of a hold that its session caused.
    let is_reported = |alert: &AlertMessage| {
        let is_new = alert.since.is_some_and(|since| since >= started);
        alert.kind == AlarmKind::InvalidState || alert.kind == AlarmKind::ClientHeld && is_new
    };
    let alerts = report.new.into_iter().filter(|alert| !is_reported(alert));
    let alerts = alerts.map(|alert| {
        let said = TeamMessage::of_team(MessageLevel::Alert, alert.words());
        TeamMessage { alarm: Some(alert.level), ..said }
    });
    let notices = report.notices.into_iter().map(|text| TeamMessage::of_team(MessageLevel::Info, text));
    notices.chain(alerts).collect()
}
