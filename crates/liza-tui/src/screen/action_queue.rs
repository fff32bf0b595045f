//! Runs the actions of the screen without making it wait: those of one lane in the order of their keys, one at a time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use liza_status::action::ActionLane;
use strum::IntoEnumIterator as _;

use crate::model::Event;

use crate::{CommandLine, CommandResult};

/// An action, and the width of the terminal.
type WaitingAction = (Vec<String>, u16);

/// The actions that wait, and a thread for each lane that runs them.
pub(crate) struct ActionQueue {
    lanes: Vec<(ActionLane, Sender<WaitingAction>)>,
    events: Sender<Event>,
    /// Disconnected once all threads have ended.
    ended: Receiver<()>,
}

impl ActionQueue {
    /// Starts without actions; their results become events.
    pub(crate) fn start(commands: &Arc<dyn CommandLine>, events: Sender<Event>) -> Self {
        let (running, ended) = channel::<()>();
        let lane = |lane: ActionLane| {
            let (waiting, actions) = channel::<WaitingAction>();
            let (commands, results, running) = (Arc::clone(commands), events.clone(), running.clone());
            thread::spawn(move || {
                let _running = running;
                for (words, columns) in actions {
                    let result = commands.execute(&words, columns);
                    // Also without a screen: an action that a person asked for is done.
                    let _ = results.send(Event::Executed { words, result });
                }
            });
            (lane, waiting)
        };
        Self { lanes: ActionLane::iter().map(lane).collect(), events, ended }
    }

    /// Runs `liza WORDS` after all earlier ones of its lane, for a terminal of that width.
    pub(crate) fn add(&self, words: Vec<String>, columns: u16) {
        let own = ActionLane::of(&words);
        let Some((_, waiting)) = self.lanes.iter().find(|(lane, _)| *lane == own) else { return };
        if let Err(lost) = waiting.send((words, columns)) {
            let text = "an earlier action crashed: leave the screen and start it again".to_owned();
            let result = CommandResult { succeeded: false, text };
            let _ = self.events.send(Event::Executed { words: lost.0.0, result });
        }
    }

    /// Waits until all have run, for at most that time.
    pub(crate) fn finish(self, at_most: Duration) {
        drop(self.lanes);
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

    fn recorder() -> (Arc<Recorder>, Arc<dyn CommandLine>, Sender<()>) {
        let (end, end_slow) = channel();
        let recorder = Arc::new(Recorder { ran: Mutex::default(), end_slow: Mutex::new(end_slow) });
        (recorder.clone(), recorder, end)
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// Covers: UI-01
    #[test]
    fn actions_run_in_the_order_of_their_keys_and_the_end_waits_for_them() {
        let (recorder, commands, end) = recorder();
        let (events, results) = channel();
        let queue = ActionQueue::start(&commands, events);
        for action in ["slow", "note one", "add two"] {
            queue.add(words(action), 80);
        }
        assert!(recorder.ran.lock().unwrap().is_empty());
        end.send(()).unwrap();
        queue.finish(Duration::from_secs(60));
        assert_eq!(*recorder.ran.lock().unwrap(), ["slow", "note one", "add two"]);
        assert_eq!(results.iter().count(), 3);
    }

    /// Covers: UI-01
    #[test]
    fn what_stops_the_team_or_an_agent_does_not_wait_behind_a_slow_action() {
        let (recorder, commands, end) = recorder();
        let (events, results) = channel();
        let queue = ActionQueue::start(&commands, events);
        let stops =
            ["pause", "resume", "checkpoint", "abort", "deregister coder-1", "release-claim t --force"];
        for action in ["slow", "add one"].iter().chain(&stops) {
            queue.add(words(action), 80);
        }
        for _ in stops {
            let done = results.recv_timeout(Duration::from_secs(60)).unwrap();
            let Event::Executed { words, .. } = done else { panic!("no result of an action") };
            assert!(stops.contains(&words.join(" ").as_str()), "{words:?} ran before the slow action ended");
        }
        let ran = recorder.ran.lock().unwrap().clone();
        let of_team: Vec<&String> = ran.iter().filter(|action| !action.contains(' ')).collect();
        assert_eq!(of_team, ["pause", "resume", "checkpoint", "abort"], "in the order of their keys");
        end.send(()).unwrap();
        queue.finish(Duration::from_secs(60));
        assert_eq!(recorder.ran.lock().unwrap()[stops.len()..], ["slow", "add one"]);
    }

    /// Covers: UI-01
    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (recorder, commands, _end) = recorder();
        let queue = ActionQueue::start(&commands, channel().0);
        queue.add(words("slow"), 80);
        queue.finish(Duration::from_millis(10));
        assert!(recorder.ran.lock().unwrap().is_empty());
    }
}
