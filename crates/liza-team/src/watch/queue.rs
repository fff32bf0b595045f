//! A thread with a queue for slow deliveries: a webhook, a notification. The watcher never waits for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Further items are dropped and reported.
const CAPACITY: usize = 256;

/// Handles items one by one on a separate thread.
#[derive(Debug)]
pub(super) struct BackgroundQueue<T> {
    queue: SyncSender<T>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl<T: Send + 'static> BackgroundQueue<T> {
    /// Starts the thread. `handle` must limit its own time.
    pub(super) fn start(mut handle: impl FnMut(T) + Send + 'static) -> Self {
        let (queue, waiting) = sync_channel::<T>(CAPACITY);
        let (end, ended) = sync_channel(0);
        thread::spawn(move || {
            // Dropped when the thread ends, which `close` waits for.
            let _end: SyncSender<()> = end;
            waiting.into_iter().for_each(&mut handle);
        });
        Self { queue, ended }
    }

    /// Adds an item; false if the queue is full.
    pub(super) fn send(&self, item: T) -> bool {
        match self.queue.try_send(item) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// Waits until all items are handled; true if that was in time.
    pub(super) fn close(self, timeout: Duration) -> bool {
        let Self { queue, ended } = self;
        drop(queue);
        ended.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }
}
