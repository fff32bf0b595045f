//! The loop around a watcher: checks when something may have changed, and at intervals.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::project::{Project, now};

use super::{WatchReport, Watcher};

/// What a watcher waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The blackboard or a stop file may have changed.
    Changed,
    /// The watcher has to end.
    Stop,
}

/// Changes that come this close together are checked as one.
const REST: Duration = Duration::from_millis(200);

/// Checks may take one tenth of the time, however busy the blackboard is.
const SHARE: u32 = 10;

/// The longest rest, whatever a check has cost.
const REST_MAX: Duration = Duration::from_secs(10);

/// Turns changes of the blackboard into wakes. If the system cannot watch files, the interval has to do.
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

/// Checks again and again and passes on what each check found, until it is stopped or the project is gone.
pub fn serve(watcher: &mut Watcher, wakes: &Receiver<Wake>, on_report: &mut dyn FnMut(&WatchReport)) {
    loop {
        let began = Instant::now();
        on_report(&watcher.check(now()));
        let rest = (began.elapsed() * SHARE).clamp(REST, REST_MAX);
        if watcher.is_project_gone() || !wait(wakes, watcher.next_check(), rest) {
            return;
        }
    }
}

/// Waits for a change, or that long; then for the changes that follow it. False when it is to end.
fn wait(wakes: &Receiver<Wake>, at_most: Duration, rest: Duration) -> bool {
    match wakes.recv_timeout(at_most) {
        Ok(Wake::Changed) => {}
        Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        Err(RecvTimeoutError::Timeout) => return true,
    }
    let end = Instant::now() + rest;
    loop {
        match wakes.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Wake::Changed) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}
