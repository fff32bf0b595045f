//! Says when the blackboard may have changed, by file events on its folder.
//!
//! Watches the folder and not the file: every write replaces the file, and a watch on it would see one change only.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::StoreError;
use crate::store::Store;

/// A change is told at once, but the next one not sooner than this, with all that came meanwhile.
const COALESCE: Duration = Duration::from_millis(20);

/// A running watch; ends when dropped.
#[derive(Debug)]
pub struct Watch {
    events: Receiver<()>,
    told: Cell<Option<Instant>>,
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Waits for a change, at most that long. True where there was one, or may have been.
    pub fn wait(&self, at_most: Duration) -> bool {
        if self.events.recv_timeout(at_most).is_err() {
            return false;
        }
        let earliest = self.told.get().map(|told| told + COALESCE);
        loop {
            let left = earliest.map_or(Duration::ZERO, |time| time.saturating_duration_since(Instant::now()));
            match self.events.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        self.told.set(Some(Instant::now()));
        true
    }
}

impl Store {
    /// Begins to watch the folder of the blackboard: the state, and the files by which people stop everybody.
    ///
    /// # Errors
    /// When the system has no more watches to give; the caller then has to look by itself now and then.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        self.watch_for(|name| !is_step(name) && name != LOG)
    }

    /// Begins to watch the log, which is written after the state.
    ///
    /// # Errors
    /// As [`Store::watch`].
    pub fn watch_log(&self) -> Result<Watch, StoreError> {
        self.watch_for(|name| name == LOG)
    }

    fn watch_for(&self, matters: fn(&str) -> bool) -> Result<Watch, StoreError> {
        let (sender, events) = channel();
        let told = move |event: notify::Result<notify::Event>| {
            let counts = |event: notify::Event| {
                !matches!(event.kind, EventKind::Access(_))
                    && (event.need_rescan() || event.paths.iter().any(|path| matters(&name_of(path))))
            };
            if event.map_or(true, counts) {
                // Nobody listens any more: then there is nobody to tell.
                let _ = sender.send(());
            }
        };
        let failed = |error: notify::Error| {
            StoreError::io("watch", self.folder())(std::io::Error::other(error.to_string()))
        };
        let mut watcher = notify::recommended_watcher(told).map_err(failed)?;
        watcher.watch(self.folder(), RecursiveMode::NonRecursive).map_err(failed)?;
        Ok(Watch { events, told: Cell::new(None), _watcher: watcher })
    }
}

const LOG: &str = "log.yaml";

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Our own steps on the way to a change, locks, and the watcher's notes about what it told.
fn is_step(name: &str) -> bool {
    (name.starts_with("state.yaml.") && !name.starts_with("state.yaml.stale-"))
        || name.starts_with("alerts.")
        || name.ends_with(".lock")
}
