//! Reads the data of the live screens: the blackboard when it changes, everything else once a second, the new
//! lines of the log. The terminal and the browser share it; it draws nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{State, Timestamp};
use liza_status::alarms::Observations;
use liza_status::view::{View, view};
use liza_store::{LogReader, LogRecord, Watch};

use crate::observe::{observe, stop_file_times};
use crate::project::{Project, now};

/// The interval at which ages are shown again, and facts besides the blackboard are read.
const TICK: Duration = Duration::from_secs(1);

/// The shortest time between two views: faster than a person reads.
const SHORTEST: Duration = Duration::from_millis(200);

/// The wait before the next view, as a multiple of the time to make one: a large board must not use up a core.
const REST: u32 = 20;

/// The part of the log's end that is shown at first.
const LOG_TAIL: u64 = 64 << 10;

pub struct Reading {
    /// The current team, or the reason why it cannot be read.
    pub team: Result<(Arc<State>, View), String>,
    pub log: Vec<LogRecord>,
}

pub struct LiveView {
    project: Project,
    log: LogReader,
    /// The observations and their time.
    observed: Option<(Observations, Instant)>,
}

impl LiveView {
    pub fn new(project: Project) -> Self {
        let log = project.store().recent_log_reader(LOG_TAIL);
        Self { project, log, observed: None }
    }

    /// Reads until `ended`, or until `show` returns false.
    pub fn run(mut self, ended: &AtomicBool, mut show: impl FnMut(Reading) -> bool) {
        // Watched before the first read, so that no change is missed in between.
        let watch = self.project.store().watch().ok();
        while !ended.load(Ordering::Relaxed) {
            let began = Instant::now();
            if !show(self.read()) {
                return;
            }
            let pause = SHORTEST.max(began.elapsed() * REST);
            thread::sleep(pause.saturating_sub(began.elapsed()));
            wait(watch.as_ref(), TICK.saturating_sub(began.elapsed()));
        }
    }

    pub fn read(&mut self) -> Reading {
        let team = match self.project.state() {
            Ok(state) => {
                let shown = view(&state, self.observations(&state, now()), now());
                Ok((state, shown))
            }
            Err(error) => Err(error.to_string()),
        };
        Reading { team, log: self.log.read_new().unwrap_or_default() }
    }

    /// Observations besides the blackboard, not older than a tick; stop files are read each time.
    fn observations(&mut self, state: &State, now: Timestamp) -> &Observations {
        let fresh = self.observed.take().filter(|(_, at)| at.elapsed() < TICK);
        let (observed, at) = match fresh {
            Some((mut observed, at)) => {
                observed.stop_files = stop_file_times(&self.project);
                (observed, at)
            }
            None => (observe(&self.project, state, now), Instant::now()),
        };
        &self.observed.insert((observed, at)).0
    }
}

fn wait(watch: Option<&Watch>, at_most: Duration) {
    match watch {
        Some(watch) => drop(watch.wait(at_most)),
        None => thread::sleep(at_most),
    }
}
