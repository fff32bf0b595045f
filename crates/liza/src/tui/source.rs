//! Turns what is read of the project into events of the screen.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread;

use liza_core::model::Actor;
use liza_core::text::one_line;
use liza_store::LogRecord;

use crate::live_view::{LiveView, Reading};
use crate::log_text::{Tone, sentence};
use crate::project::Project;

use super::ScreenMode;
use super::model::{Event, LogLine};

/// The longest text of a log line; `liza log` has all of it.
const TEXT_MAX: usize = 500;

/// Reads the project and sends what it reads, until the screen has ended.
pub(super) fn start(project: Project, mode: ScreenMode, events: Sender<Event>, ended: Arc<AtomicBool>) {
    thread::spawn(move || LiveView::new(project).run(&ended, |reading| send(reading, mode, &events)));
}

/// Sends what was read; false once the screen is gone.
fn send(reading: Reading, mode: ScreenMode, events: &Sender<Event>) -> bool {
    let event = match reading.team {
        Ok((_, view)) => Event::View(Arc::new(view)),
        Err(why) => Event::Unreadable(why),
    };
    let human = Actor::Human.to_string();
    // A team of this process says itself what its agents do.
    let shown = |entry: &&LogRecord| mode == ScreenMode::Observer || entry.agent == human;
    let lines: Vec<LogLine> = reading.log.iter().filter(shown).map(log_line).collect();
    events.send(event).is_ok() && (lines.is_empty() || events.send(Event::Log(lines)).is_ok())
}

fn log_line(entry: &LogRecord) -> LogLine {
    let said = sentence(&entry.action, entry.task.as_deref(), &entry.detail);
    let text = one_line(&said.whole(), TEXT_MAX);
    let is_alert = said.tone == Tone::Bad || entry.action == "blocked";
    LogLine { time: entry.timestamp, who: one_line(&entry.agent, TEXT_MAX), text, is_alert, earlier: false }
}
