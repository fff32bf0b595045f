//! Runs the actions of the screen in the order of their keys, one at a time, so that the screen does not wait for them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::model::Event;
use super::{CommandLine, CommandResult};

/// The actions that wait, and the thread that runs them.
pub(super) struct ActionQueue {
    waiting: Sender<(Vec<String>, u16)>,
    events: Sender<Event>,
    /// Disconnected once the thread has ended.
    ended: Receiver<()>,
}

impl ActionQueue {
    /// Starts without actions; their results become events.
    pub(super) fn start(commands: Arc<dyn CommandLine>, events: Sender<Event>) -> Self {
        let (waiting, actions) = channel::<(Vec<String>, u16)>();
        let (running, ended) = channel::<()>();
        let results = events.clone();
        thread::spawn(move || {
            let _running = running;
            for (words, columns) in actions {
                let result = commands.execute(&words, columns);
                // Also without a screen: what a person has asked for is done.
                let _ = results.send(Event::Executed { words, result });
            }
        });
        Self { waiting, events, ended }
    }

    /// Runs `liza WORDS` after all earlier ones, for a terminal of that width.
    pub(super) fn add(&self, words: Vec<String>, columns: u16) {
        if let Err(lost) = self.waiting.send((words, columns)) {
            let text = "an earlier action crashed: leave the screen and start it again".to_owned();
            let result = CommandResult { succeeded: false, text };
            let _ = self.events.send(Event::Executed { words: lost.0.0, result });
        }
    }

    /// Waits until all have run, but not longer than that.
    pub(super) fn finish(self, at_most: Duration) {
        drop(self.waiting);
        let _ = self.ended.recv_timeout(at_most);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Keeps what ran; `slow` runs until the test ends it.
    struct Recorder {
        ran: Mutex<Vec<String>>,
        end_slow: Mutex<Receiver<()>>,
    }

    impl CommandLine for Recorder {
        fn execute(&self, words: &[String], _columns: u16) -> CommandResult {
            if words == ["slow"] {
                let _ = self.end_slow.lock().unwrap().recv();
            }
            self.ran.lock().unwrap().push(words.join(" "));
            CommandResult { succeeded: true, text: String::new() }
        }
    }

    fn recorder() -> (Arc<Recorder>, Sender<()>) {
        let (end, end_slow) = channel();
        (Arc::new(Recorder { ran: Mutex::default(), end_slow: Mutex::new(end_slow) }), end)
    }

    /// Covers: UI-01
    #[test]
    fn actions_run_in_the_order_of_their_keys_and_the_end_waits_for_them() {
        let (recorder, end) = recorder();
        let (events, results) = channel();
        let queue = ActionQueue::start(recorder.clone(), events);
        for verb in ["slow", "pause", "resume"] {
            queue.add(vec![verb.to_owned()], 80);
        }
        assert!(recorder.ran.lock().unwrap().is_empty());
        end.send(()).unwrap();
        queue.finish(Duration::from_secs(60));
        assert_eq!(*recorder.ran.lock().unwrap(), ["slow", "pause", "resume"]);
        assert_eq!(results.iter().count(), 3);
    }

    /// Covers: UI-01
    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (recorder, _end) = recorder();
        let queue = ActionQueue::start(recorder.clone(), channel().0);
        queue.add(vec!["slow".to_owned()], 80);
        queue.finish(Duration::from_millis(10));
        assert!(recorder.ran.lock().unwrap().is_empty());
    }
}
