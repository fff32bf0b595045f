//! Says when the blackboard may have changed, by file events on its folder.
//!
//! Watches the folder and not the file: every write replaces the file, and a watch on it would see one change only.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::error::StoreError;
use crate::store::Store;

/// Changes that come this close together are told as one.
const COALESCE: Duration = Duration::from_millis(20);

/// A running watch; ends when dropped.
#[derive(Debug)]
pub struct Watch {
    events: Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Waits for a change, at most that long. True where there was one, or may have been.
    pub fn wait(&self, at_most: Duration) -> bool {
        if self.events.recv_timeout(at_most).is_err() {
            return false;
        }
        let end = Instant::now() + COALESCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return true,
            }
        }
    }
}

impl Store {
    /// Begins to watch the folder of the blackboard: the state, the log, and the files by which people stop everybody.
    ///
    /// # Errors
    /// When the system has no more watches to give; the caller then has to look by itself now and then.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        let (sender, events) = channel();
        let told = move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| matters(&event)) {
                // Nobody listens any more: then there is nobody to tell.
                let _ = sender.send(());
            }
        };
        let failed = |error: notify::Error| {
            StoreError::io("watch", self.folder())(std::io::Error::other(error.to_string()))
        };
        let mut watcher = notify::recommended_watcher(told).map_err(failed)?;
        watcher.watch(self.folder(), RecursiveMode::NonRecursive).map_err(failed)?;
        Ok(Watch { events, _watcher: watcher })
    }
}

/// Whether an event is more than our own steps on the way to a change, or the watcher's notes about what it told.
fn matters(event: &notify::Event) -> bool {
    let step = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.starts_with("state.yaml.") && !name.starts_with("state.yaml.stale-"))
            || name.starts_with("alerts.")
    };
    !matches!(event.kind, EventKind::Access(_))
        && (event.need_rescan() || !event.paths.iter().all(|path| step(path)))
}
