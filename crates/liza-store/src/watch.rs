//! Reports by file events when the blackboard may have changed.
//!
//! Watches the folder and not the file: every write replaces the file, so a watch on it would see only one change.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::StoreError;
use crate::store::Store;

/// A change is reported at once; changes during this time after it are reported together.
const COALESCE: Duration = Duration::from_millis(20);

/// A watch on the folder of the blackboard, until dropped.
#[derive(Debug)]
pub struct Watch {
    events: Receiver<()>,
    reported: Cell<Option<Instant>>,
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Waits for a change, at most this long. Returns whether there was or may have been one.
    pub fn wait(&self, at_most: Duration) -> bool {
        if self.events.recv_timeout(at_most).is_err() {
            return false;
        }
        let earliest = self.reported.get().map(|last| last + COALESCE);
        loop {
            let left = earliest.map_or(Duration::ZERO, |time| time.saturating_duration_since(Instant::now()));
            match self.events.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        self.reported.set(Some(Instant::now()));
        true
    }
}

impl Store {
    /// Watches the folder of the blackboard: the state and the stop files.
    ///
    /// # Errors
    /// When the system has no watches left. The caller then has to poll.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        self.watch_for(|name| !is_internal(name) && name != LOG)
    }

    /// Watches the log, which is written after the state.
    ///
    /// # Errors
    /// As [`Store::watch`].
    pub fn watch_log(&self) -> Result<Watch, StoreError> {
        self.watch_for(|name| name == LOG)
    }

    fn watch_for(&self, matches: fn(&str) -> bool) -> Result<Watch, StoreError> {
        let (sender, events) = channel();
        let handler = move |event: notify::Result<notify::Event>| {
            let is_relevant = |event: notify::Event| {
                !matches!(event.kind, EventKind::Access(_))
                    && (event.need_rescan() || event.paths.iter().any(|path| matches(&name_of(path))))
            };
            if event.map_or(true, is_relevant) {
                // Fails only if the watch was dropped.
                let _ = sender.send(());
            }
        };
        let failed =
            |error: notify::Error| StoreError::io("watch", self.folder())(std::io::Error::other(error));
        let mut watcher = notify::recommended_watcher(handler).map_err(failed)?;
        watcher.watch(self.folder(), RecursiveMode::NonRecursive).map_err(failed)?;
        Ok(Watch { events, reported: Cell::new(None), _watcher: watcher })
    }
}

const LOG: &str = "log.yaml";

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a file is internal: temporary files of the store, locks, and the alert files of `liza watch`.
fn is_internal(name: &str) -> bool {
    (name.starts_with("state.yaml.") && !name.starts_with("state.yaml.stale-"))
        || name.starts_with("alerts.")
        || name.ends_with(".lock")
}
