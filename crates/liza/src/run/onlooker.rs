//! The watcher inside a team: looks when the team has looked, at its own pace.

use std::time::{Duration, Instant};

use liza_core::model::State;
use liza_core::watch::alarms::INVALID_STATE;

use crate::project::now;
use crate::supervisor::{Attendant, Attended, Line, Weight};
use crate::watch::{Look, Watcher};

/// How often it looks however much is written: nobody reads alarms faster.
const PACE: Duration = Duration::from_secs(1);

/// How long the end of a team waits for what is still being sent.
const FAREWELL: Duration = Duration::from_secs(3);

/// The watcher of a team.
pub struct Onlooker {
    /// Gone when it is closed.
    watcher: Option<Watcher>,
    next: Instant,
}

impl Onlooker {
    /// Has this watcher look on.
    pub fn new(watcher: Watcher) -> Self {
        Self { watcher: Some(watcher), next: Instant::now() }
    }
}

impl Attendant for Onlooker {
    fn attend(&mut self, _: &State) -> Attended {
        let Some(watcher) = &mut self.watcher else { return Attended::default() };
        let wait = self.next.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            return Attended { lines: Vec::new(), again: Some(wait) };
        }
        let look = watcher.look(now());
        self.next = Instant::now() + PACE;
        Attended { lines: lines(look), again: Some(watcher.next_look()) }
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.close(FAREWELL);
        }
    }
}

fn lines(look: Look) -> Vec<Line> {
    // What is wrong in the file is told by the team itself, with its line.
    let alerts = look.alerts.into_iter().filter(|alert| alert.kind != INVALID_STATE);
    let alerts = alerts.map(|alert| Line { agent: None, text: alert.line(), weight: Weight::Alert });
    let notices = look.notices.into_iter().map(|text| Line { agent: None, text, weight: Weight::News });
    notices.chain(alerts).collect()
}
