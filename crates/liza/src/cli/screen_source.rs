//! The source of the terminal screen: a project, read by a thread of its own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use liza_core::model::{Actor, AgentId, TaskId, Timestamp};
use liza_core::text::one_line;
use liza_store::LogRecord;
use liza_team::observe::live_view::{LiveView, Reading};
use liza_team::project::{Project, now};
use liza_team::session::files::newest_prompt;
use liza_tui::{Feed, LogLine, ScreenMode, ScreenSource};

use crate::cli::ui::log_text::{Tone, sentence_by};

/// The longest text of a log line; `liza log` has all of it.
const TEXT_MAX: usize = 500;

pub(super) struct ProjectSource {
    project: Project,
}

impl ProjectSource {
    pub(super) fn new(project: Project) -> Self {
        Self { project }
    }
}

impl ScreenSource for ProjectSource {
    fn start(&self, mode: ScreenMode, feed: Feed, ended: Arc<AtomicBool>) {
        let (project, began) = (self.project.clone(), now());
        thread::spawn(move || {
            LiveView::new(project).run(&ended, |reading| send(reading, (mode, began), &feed))
        });
    }

    fn newest_prompt(&self, agent: Option<AgentId>, task: Option<&TaskId>) -> Option<String> {
        newest_prompt(self.project.folder(), agent, task)
    }
}

/// Sends a reading; false once the screen is gone.
fn send(reading: Reading, screen: (ScreenMode, Timestamp), feed: &Feed) -> bool {
    let lines = reading.log.iter().filter(|entry| is_shown(entry, screen)).map(log_line).collect();
    feed.view(reading.team.map(|(_, view)| view)) && feed.log(lines)
}

/// True if the screen shows an entry of the log: a team of this process reports its agents itself.
fn is_shown(entry: &LogRecord, (mode, began): (ScreenMode, Timestamp)) -> bool {
    match mode {
        ScreenMode::Observer => true,
        ScreenMode::Team => entry.timestamp < began || entry.agent == Actor::Human.to_string(),
    }
}

fn log_line(entry: &LogRecord) -> LogLine {
    let said = sentence_by(&entry.agent, &entry.action, entry.task.as_deref(), &entry.detail);
    let text = one_line(&said.whole(), TEXT_MAX);
    let is_alert = said.tone == Tone::Bad || entry.action == "blocked";
    LogLine { time: entry.timestamp, who: one_line(&entry.agent, TEXT_MAX), text, is_alert, earlier: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-01
    #[test]
    fn a_team_that_starts_again_shows_what_agents_did_before() {
        let began = Timestamp::from_unix(1_000);
        let shown = |agent: &str, time: i64, mode: ScreenMode| {
            let text = serde_json::json!({
                "timestamp": Timestamp::from_unix(time), "agent": agent, "action": "merged", "detail": ""
            });
            is_shown(&serde_json::from_value(text).unwrap(), (mode, began))
        };
        assert!(shown("coder-1", 999, ScreenMode::Team));
        assert!(!shown("coder-1", 1_000, ScreenMode::Team), "the team says it itself");
        assert!(shown("human", 1_000, ScreenMode::Team));
        assert!(shown("coder-1", 1_000, ScreenMode::Observer));
    }
}
