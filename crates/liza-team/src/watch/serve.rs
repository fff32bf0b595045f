//! The watcher's loop: checks when something may have changed, and at intervals.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::project::{Project, now};

use super::{WatchReport, Watcher};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The blackboard or a stop file may have changed.
    Changed,
    Stop,
}

/// The shortest pause between two checks; changes in between are checked together.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// The pause after a check is this many times as long as the check, so that a busy blackboard costs little.
const PAUSE_FACTOR: u32 = 10;

/// The longest pause between two checks.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Turns changes of the blackboard into wakes. If the system cannot watch files, the interval applies.
pub fn send_changes(project: &Project, wakes: Sender<Wake>) {
    let Ok(watch) = project.store().watch() else { return };
    thread::spawn(move || {
        loop {
            if watch.wait(Duration::from_secs(3600)) && wakes.send(Wake::Changed).is_err() {
                return;
            }
        }
    });
}

/// Checks repeatedly and passes on each report, until it is stopped or the project is gone.
pub fn serve(watcher: &mut Watcher, wakes: &Receiver<Wake>, on_report: &mut dyn FnMut(&WatchReport)) {
    loop {
        let began = Instant::now();
        on_report(&watcher.check(now()));
        let pause = (began.elapsed() * PAUSE_FACTOR).clamp(PAUSE_MIN, PAUSE_MAX);
        if watcher.is_project_gone() || !wait(wakes, watcher.next_check(), pause) {
            return;
        }
    }
}

/// Waits for a change or the timeout; after a change, pauses to collect further ones. False if the watcher must end.
fn wait(wakes: &Receiver<Wake>, timeout: Duration, pause: Duration) -> bool {
    match wakes.recv_timeout(timeout) {
        Ok(Wake::Changed) => {}
        Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        Err(RecvTimeoutError::Timeout) => return true,
    }
    let end = Instant::now() + pause;
    loop {
        match wakes.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Wake::Changed) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}
