//! The loop around a watcher: looks when something may have changed, and now and then by itself.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::project::{Project, now};

use super::{Look, Watcher};

/// What a watcher waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The blackboard or a stop file may have changed.
    Changed,
    /// It is to end.
    Stop,
}

/// Changes that come this close together are looked at as one.
const REST: Duration = Duration::from_millis(200);

/// A look may cost this share of the time at most, however busy the blackboard is: one tenth.
const SHARE: u32 = 10;

/// The longest rest, whatever a look has cost.
const REST_MAX: Duration = Duration::from_secs(10);

/// Makes changes of the blackboard wakes; where the system cannot watch, the interval has to do.
pub fn listen(project: &Project, wakes: Sender<Wake>) {
    let Ok(watch) = project.store().watch() else { return };
    thread::spawn(move || {
        loop {
            if watch.wait(Duration::from_secs(3600)) && wakes.send(Wake::Changed).is_err() {
                return;
            }
        }
    });
}

/// Looks again and again and tells what each look brought, until it is stopped or the project is gone.
pub fn serve(watcher: &mut Watcher, wakes: &Receiver<Wake>, tell: &mut dyn FnMut(&Look)) {
    loop {
        let began = Instant::now();
        let look = watcher.look(now());
        tell(&look);
        let rest = (began.elapsed() * SHARE).clamp(REST, REST_MAX);
        if watcher.is_homeless() || !wait(wakes, watcher.next_look(), rest) {
            return;
        }
    }
}

/// Waits for a change, or that long; then for the rest of the changes that come with it. False when it is over.
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
