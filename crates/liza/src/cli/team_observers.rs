//! The observers of `liza run`: the progress line, and the end of a team whose output is closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{Seconds, State};
use liza_team::observe::activity::session_activity;
use liza_team::project::{Project, now};
use liza_team::run::progress_line;
use liza_team::supervisor::{MessageLevel, Observed, Observer, TeamMessage};

use super::ui::console::Console;
use super::ui::event_printer::EventPrinter;

/// The interval of the progress line.
const PROGRESS: Duration = Duration::from_secs(5);

/// The interval at which the output is checked.
const OUTPUT: Duration = Duration::from_secs(1);

pub(super) struct ProgressLine {
    printer: Arc<EventPrinter>,
    project: Project,
    began: Instant,
}

impl ProgressLine {
    pub(super) fn new(printer: &Arc<EventPrinter>, project: &Project) -> Self {
        Self { printer: Arc::clone(printer), project: project.clone(), began: Instant::now() }
    }
}

impl Observer for ProgressLine {
    fn observe(&mut self, state: &State) -> Observed {
        if !self.printer.shows_progress() {
            return Observed::default();
        }
        let sessions = session_activity(&self.project, state);
        let worked = Seconds(self.began.elapsed().as_secs());
        self.printer.progress(&progress_line(state, &sessions, worked, now()));
        Observed { again_in: Some(PROGRESS), ..Observed::default() }
    }
}

/// Ends a team whose reader is gone, as in `liza run | head`: it would go on, and cost, without anyone seeing it.
pub(super) struct OutputReader {
    /// `None` if the output is no pipe, or was found closed.
    pipe: Option<Arc<dyn Console>>,
}

impl OutputReader {
    pub(super) fn new(console: &Arc<dyn Console>) -> Self {
        Self { pipe: console.is_pipe().then(|| Arc::clone(console)) }
    }
}

impl Observer for OutputReader {
    fn observe(&mut self, _: &State) -> Observed {
        let Some(pipe) = &self.pipe else { return Observed::default() };
        if !pipe.is_closed() {
            return Observed { again_in: Some(OUTPUT), ..Observed::default() };
        }
        // A second time would kill the sessions.
        self.pipe = None;
        let text = "the output is closed; stopping. To run without one: the same command with --detach";
        let messages = vec![TeamMessage::of_team(MessageLevel::Alert, text)];
        Observed { messages, end: true, again_in: None }
    }
}
