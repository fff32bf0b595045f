//! Reports by file events when the blackboard may have changed. Watches the folder and not the file: every
//! write replaces the file, so a watch on it would see only one change.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::StoreError;

/// A change is reported at once; changes during this time after it are reported together.
const COALESCE: Duration = Duration::from_millis(20);

/// Watches until dropped.
#[derive(Debug)]
pub struct Watch {
    events: Receiver<()>,
    /// For other sources of events than the folder.
    sender: Sender<()>,
    /// Other sources stop when it is gone.
    alive: Arc<()>,
    reported: Cell<Option<Instant>>,
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// The channel for another source of events; fails once the watch was dropped.
    pub fn sender(&self) -> Sender<()> {
        self.sender.clone()
    }

    pub fn alive(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }

    /// Waits for a change, at most this long. True if there was or may have been one.
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

/// Watches the state and the stop files.
pub(crate) fn watch_folder(folder: &Path) -> Result<Watch, StoreError> {
    watch_for(folder, |name| !is_internal(name) && name != LOG)
}

/// Watches the log, which is written after the state.
pub(crate) fn watch_log(folder: &Path) -> Result<Watch, StoreError> {
    watch_for(folder, |name| name == LOG)
}

fn watch_for(folder: &Path, matches: fn(&str) -> bool) -> Result<Watch, StoreError> {
    let (sender, events) = channel();
    let on_change = sender.clone();
    let handler = move |event: notify::Result<notify::Event>| {
        let is_relevant = |event: notify::Event| {
            !matches!(event.kind, EventKind::Access(_))
                && (event.need_rescan() || event.paths.iter().any(|path| matches(&name_of(path))))
        };
        if event.map_or(true, is_relevant) {
            // Fails only if the watch was dropped.
            let _ = on_change.send(());
        }
    };
    let failed = |error: notify::Error| StoreError::io("watch", folder)(std::io::Error::other(error));
    let mut watcher = notify::recommended_watcher(handler).map_err(failed)?;
    watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed)?;
    Ok(Watch { events, sender, alive: Arc::new(()), reported: Cell::new(None), _watcher: watcher })
}

const LOG: &str = "log.yaml";

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// True for temporary files of the store, locks, and the alert files of `liza watch`.
fn is_internal(name: &str) -> bool {
    (name.starts_with("state.yaml.") && !name.starts_with("state.yaml.stale-"))
        || name.starts_with("alerts.")
        || name.ends_with(".lock")
}
