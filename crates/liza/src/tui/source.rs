//! Reads what the screen shows: the blackboard when it changes, everything else once a second, the new lines of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{Actor, State, Timestamp};
use liza_core::text::one_line;
use liza_core::watch::alarms::Observations;
use liza_core::watch::view::view;
use liza_store::{LogReader, LogRecord, Watch};

use crate::observations::observe;
use crate::project::{Project, now};

use super::ScreenMode;
use super::model::{Event, LogLine};

/// How often ages are shown again, and what the blackboard does not report is read.
const TICK: Duration = Duration::from_secs(1);

/// The shortest time between two views: faster than a person reads.
const SHORTEST: Duration = Duration::from_millis(200);

/// How much longer than it took to make a view the screen waits for the next one: a large board must not use up a core.
const REST: u32 = 20;

/// How much of the end of the log is shown at first.
const LOG_TAIL: u64 = 64 << 10;

/// The longest text of a log line; `liza log` has all of it.
const TEXT_MAX: usize = 500;

/// Reads the project and sends what it reads.
pub(super) struct DataSource {
    project: Project,
    mode: ScreenMode,
    events: Sender<Event>,
    ended: Arc<AtomicBool>,
    log: LogReader,
    /// What was observed, when, and for which state.
    observed: Option<(Observations, Instant)>,
}

impl DataSource {
    /// Reads until the screen has ended.
    pub(super) fn start(project: Project, mode: ScreenMode, events: Sender<Event>, ended: Arc<AtomicBool>) {
        let log = project.store().recent_log_reader(LOG_TAIL);
        let mut source = Self { project, mode, events, ended, log, observed: None };
        thread::spawn(move || source.run());
    }

    fn run(&mut self) {
        // Watched before the first read, so that no change is missed in between.
        let watch = self.project.store().watch().ok();
        while !self.ended.load(Ordering::Relaxed) {
            let began = Instant::now();
            if !self.send_view() || !self.send_log() {
                return;
            }
            let pause = SHORTEST.max(began.elapsed() * REST);
            thread::sleep(pause.saturating_sub(began.elapsed()));
            wait(watch.as_ref(), TICK.saturating_sub(began.elapsed()));
        }
    }

    /// Sends the team as it is now; false once the screen is gone.
    fn send_view(&mut self) -> bool {
        let event = match self.project.state() {
            Ok(state) => Event::View(Arc::new(view(&state, self.observations(&state, now()), now()))),
            Err(error) => Event::Unreadable(error.to_string()),
        };
        self.events.send(event).is_ok()
    }

    /// What can be observed besides the blackboard, not older than a tick; stop files are read each time.
    fn observations(&mut self, state: &State, now: Timestamp) -> &Observations {
        let fresh = self.observed.take().filter(|(_, at)| at.elapsed() < TICK);
        let (observed, at) = match fresh {
            Some((mut observed, at)) => {
                observed.stop_files = crate::observations::stop_file_times(&self.project);
                (observed, at)
            }
            None => (observe(&self.project, state, now), Instant::now()),
        };
        &self.observed.insert((observed, at)).0
    }

    /// Sends the new lines of the log; false once the screen is gone.
    fn send_log(&mut self) -> bool {
        let human = Actor::Human.to_string();
        // Beside a team, its own messages say what the agents do.
        let shown = |entry: &LogRecord| self.mode == ScreenMode::Observer || entry.agent == human;
        let entries = self.log.read_new().unwrap_or_default();
        let lines: Vec<LogLine> = entries.iter().filter(|entry| shown(entry)).map(log_line).collect();
        lines.is_empty() || self.events.send(Event::Log(lines)).is_ok()
    }
}

fn wait(watch: Option<&Watch>, at_most: Duration) {
    match watch {
        Some(watch) => drop(watch.wait(at_most)),
        None => thread::sleep(at_most),
    }
}

fn log_line(entry: &LogRecord) -> LogLine {
    let task = entry.task.as_deref().map(|task| format!("{task} ")).unwrap_or_default();
    let text = one_line(&format!("{} {task}{}", entry.action, entry.detail), TEXT_MAX);
    let is_alert =
        matches!(entry.action.as_str(), "blocked" | "integration_failed" | "circuit_breaker" | "aborted");
    LogLine { time: entry.timestamp, who: one_line(&entry.agent, TEXT_MAX), text, is_alert }
}
