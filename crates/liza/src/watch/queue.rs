//! A thread with a queue for what may take long: a webhook, a notification. The watcher never waits for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// How many items may wait; more are dropped, which is reported.
const CAPACITY: usize = 256;

/// Handles one item after the other on a thread of its own.
#[derive(Debug)]
pub(super) struct BackgroundQueue<T> {
    queue: SyncSender<T>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl<T: Send + 'static> BackgroundQueue<T> {
    /// Starts the thread. `handle` has to limit its own time.
    pub(super) fn start(mut handle: impl FnMut(T) + Send + 'static) -> Self {
        let (queue, waiting) = sync_channel::<T>(CAPACITY);
        let (end, ended) = sync_channel(0);
        thread::spawn(move || {
            // Dropped with the thread, which is what `close` waits for.
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

    /// Waits until every item has been handled, at most that long; returns whether it has.
    pub(super) fn close(self, at_most: Duration) -> bool {
        let Self { queue, ended } = self;
        drop(queue);
        ended.recv_timeout(at_most) == Err(RecvTimeoutError::Disconnected)
    }
}
