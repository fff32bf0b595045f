//! Who looks on while a team works: the watcher, and whoever settles what people do by hand.
//!
//! They are called when the blackboard may have changed and when they asked to be; they share one thread beside the
//! loop, so that a slow look delays nobody's work.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use liza_core::State;

use super::event::{Event, Line};

/// Somebody who looks on.
pub trait Attendant: Send {
    /// Looks at the blackboard as it is now.
    fn attend(&mut self, state: &State) -> Attended;
}

/// What came of a look.
#[derive(Debug, Default)]
pub struct Attended {
    /// What people should know.
    pub lines: Vec<Line>,
    /// When to look again though nothing changes.
    pub again: Option<Duration>,
}

/// The thread of those who look on; ends, after a last look, when it is dropped.
pub(super) struct Attendance {
    calls: Option<Sender<Arc<State>>>,
    thread: Option<JoinHandle<()>>,
}

impl Attendance {
    pub(super) fn new(mut attendants: Vec<Box<dyn Attendant>>, events: &Sender<Event>) -> Self {
        if attendants.is_empty() {
            return Self { calls: None, thread: None };
        }
        let (calls, called) = channel::<Arc<State>>();
        let events = events.clone();
        let attend = move || {
            let Ok(mut state) = called.recv() else { return };
            loop {
                let again = round(&mut attendants, &state, &events);
                let next = match again {
                    Some(time) => called.recv_timeout(time.saturating_duration_since(Instant::now())),
                    None => called.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match next {
                    Ok(newer) => state = newer,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                // Only the last one counts.
                while let Ok(newer) = called.try_recv() {
                    state = newer;
                }
            }
        };
        Self { calls: Some(calls), thread: Some(thread::spawn(attend)) }
    }

    /// Has everybody look at this.
    pub(super) fn call(&self, state: &Arc<State>) {
        if let Some(calls) = &self.calls {
            let _ = calls.send(Arc::clone(state));
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One look by everybody; says when the next one is due.
fn round(attendants: &mut [Box<dyn Attendant>], state: &State, events: &Sender<Event>) -> Option<Instant> {
    let mut next: Option<Instant> = None;
    for attendant in attendants {
        let Attended { lines, again } = attendant.attend(state);
        if !lines.is_empty() {
            let _ = events.send(Event::Attended(lines));
        }
        let due = again.map(|pause| Instant::now() + pause);
        next = [next, due].into_iter().flatten().min();
    }
    next
}
