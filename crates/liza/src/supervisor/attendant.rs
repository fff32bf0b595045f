//! Who looks on while a team works: the watcher, and whoever settles what people do by hand.
//!
//! They are called when the blackboard may have changed and when they asked to be; they share one thread beside the
//! loop, so that a slow look delays nobody's work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use liza_core::model::State;

use super::event::{Event, Line, Weight};

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

/// One look by everybody; says when the next one is due. One who makes a mistake is told of and looks on no more: the
/// others do.
fn round(attendants: &mut Vec<Box<dyn Attendant>>, state: &State, events: &Sender<Event>) -> Option<Instant> {
    let mut next: Option<Instant> = None;
    attendants.retain_mut(|attendant| {
        let looked = catch_unwind(AssertUnwindSafe(|| attendant.attend(state)));
        let well = looked.is_ok();
        let Attended { lines, again } =
            looked.unwrap_or_else(|_| Attended { lines: vec![mistake()], again: None });
        if !lines.is_empty() {
            let _ = events.send(Event::Attended(lines));
        }
        let due = again.map(|pause| Instant::now() + pause);
        next = [next, due].into_iter().flatten().min();
        well
    });
    next
}

fn mistake() -> Line {
    let text = "a mistake in liza itself, told above: not everybody looks on any more, start it again";
    Line { agent: None, text: text.to_owned(), weight: Weight::Alert }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Mistaken;

    impl Attendant for Mistaken {
        fn attend(&mut self, _: &State) -> Attended {
            std::panic::resume_unwind(Box::new(()))
        }
    }

    struct Well;

    impl Attendant for Well {
        fn attend(&mut self, _: &State) -> Attended {
            let line = Line { agent: None, text: "all is well".to_owned(), weight: Weight::News };
            Attended { lines: vec![line], again: None }
        }
    }

    /// Covers: AG-16
    #[test]
    fn who_makes_a_mistake_is_told_of_and_the_others_look_on() {
        let (sender, events) = channel();
        let attendance = Attendance::new(vec![Box::new(Mistaken), Box::new(Well)], &sender);
        attendance.call(&Arc::default());
        let told = || match events.recv_timeout(Duration::from_secs(30)) {
            Ok(Event::Attended(lines)) => lines.into_iter().next().map(|line| line.text).unwrap_or_default(),
            other => format!("{other:?}"),
        };
        assert!(told().starts_with("a mistake in liza itself"));
        assert_eq!(told(), "all is well");
        attendance.call(&Arc::default());
        assert_eq!(told(), "all is well");
    }
}
