//! Code that runs beside a team's loop: the watcher, the progress line, the check of manual changes.
//! Observers run when the blackboard may have changed and when they asked to. They share one thread, so that
//! a slow one doesn't delay the team.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use liza_core::model::State;

use super::event::Event;
use super::message::{MessageLevel, TeamMessage};

pub trait Observer: Send {
    fn observe(&mut self, state: &State) -> Observed;
}

#[derive(Debug, Default)]
pub struct Observed {
    pub messages: Vec<TeamMessage>,
    /// The time to the next call even if nothing has changed.
    pub again_in: Option<Duration>,
    /// True to end the team, as after Ctrl-C.
    pub end: bool,
}

/// The observers' thread. When it is dropped, they see the last state and end.
pub(super) struct ObserverThread {
    states: Option<Sender<Arc<State>>>,
    thread: Option<JoinHandle<()>>,
}

impl ObserverThread {
    pub(super) fn new(mut observers: Vec<Box<dyn Observer>>, events: &Sender<Event>) -> Self {
        if observers.is_empty() {
            return Self { states: None, thread: None };
        }
        let (states, received) = channel::<Arc<State>>();
        let events = events.clone();
        let observe = move || {
            let Ok(mut state) = received.recv() else { return };
            loop {
                let next = match observe_all(&mut observers, &state, &events) {
                    Some(time) => received.recv_timeout(time.saturating_duration_since(Instant::now())),
                    None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match next {
                    Ok(newer) => state = newer,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                // Only the newest state matters.
                while let Ok(newer) = received.try_recv() {
                    state = newer;
                }
            }
        };
        Self { states: Some(states), thread: Some(thread::spawn(observe)) }
    }

    pub(super) fn show(&self, state: &Arc<State>) {
        if let Some(states) = &self.states {
            let _ = states.send(Arc::clone(state));
        }
    }
}

impl Drop for ObserverThread {
    fn drop(&mut self) {
        self.states = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Calls every observer; returns the time of the next call. One that panics is reported and dropped.
fn observe_all(
    observers: &mut Vec<Box<dyn Observer>>,
    state: &State,
    events: &Sender<Event>,
) -> Option<Instant> {
    let mut next: Option<Instant> = None;
    observers.retain_mut(|observer| {
        let result = catch_unwind(AssertUnwindSafe(|| observer.observe(state)));
        let survived = result.is_ok();
        let Observed { messages, again_in, end } =
            result.unwrap_or_else(|_| Observed { messages: vec![panicked()], ..Observed::default() });
        if !messages.is_empty() {
            let _ = events.send(Event::Observed(messages));
        }
        if end {
            let _ = events.send(Event::Signal { interrupt: false });
        }
        let due = again_in.map(|pause| Instant::now() + pause);
        next = [next, due].into_iter().flatten().min();
        survived
    });
    next
}

fn panicked() -> TeamMessage {
    let text = "internal error in liza, see the message above. Alerts may be missing: restart liza";
    TeamMessage::of_team(MessageLevel::Alert, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;

    impl Observer for Panics {
        fn observe(&mut self, _: &State) -> Observed {
            std::panic::resume_unwind(Box::new(()))
        }
    }

    struct Works;

    impl Observer for Works {
        fn observe(&mut self, _: &State) -> Observed {
            let messages = vec![TeamMessage::of_team(MessageLevel::Info, "observed")];
            Observed { messages, ..Observed::default() }
        }
    }

    /// Covers: AG-16
    #[test]
    fn an_observer_that_panics_is_reported_and_the_others_continue() {
        let (sender, events) = channel();
        let observers = ObserverThread::new(vec![Box::new(Panics), Box::new(Works)], &sender);
        observers.show(&Arc::default());
        let reported = || match events.recv_timeout(Duration::from_secs(30)) {
            Ok(Event::Observed(messages)) => {
                messages.into_iter().next().map(|message| message.text).unwrap_or_default()
            }
            other => format!("{other:?}"),
        };
        assert!(reported().starts_with("internal error in liza"));
        assert_eq!(reported(), "observed");
        observers.show(&Arc::default());
        assert_eq!(reported(), "observed");
    }
}
