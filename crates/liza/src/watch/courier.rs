//! A thread with a queue for what may take long: a webhook, a notification. Whoever looks never waits for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// As much as waits at most; more is dropped and told.
const QUEUE: usize = 256;

/// Carries one thing after the other.
#[derive(Debug)]
pub(super) struct Courier<T> {
    queue: SyncSender<T>,
    /// Ends when the thread does.
    ended: Receiver<()>,
}

impl<T: Send + 'static> Courier<T> {
    /// Begins with what carries one thing; that has to limit its own time.
    pub(super) fn start(mut carry: impl FnMut(T) + Send + 'static) -> Self {
        let (queue, waiting) = sync_channel::<T>(QUEUE);
        let (end, ended) = sync_channel(0);
        thread::spawn(move || {
            // Dropped with the thread, which is what `close` waits for.
            let _end: SyncSender<()> = end;
            waiting.into_iter().for_each(&mut carry);
        });
        Self { queue, ended }
    }

    /// Hands something over; false when too much waits already.
    pub(super) fn send(&self, thing: T) -> bool {
        match self.queue.try_send(thing) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// Waits until everything has been carried, at most that long; says whether it has.
    pub(super) fn close(self, at_most: Duration) -> bool {
        let Self { queue, ended } = self;
        drop(queue);
        ended.recv_timeout(at_most) == Err(RecvTimeoutError::Disconnected)
    }
}
