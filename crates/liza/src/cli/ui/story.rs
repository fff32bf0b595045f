//! Reports the work of a team from the log: in its order, at a pace at which a person can read.
//!
//! Falls behind the team on purpose, and never delays it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use liza_core::model::Role;
use liza_store::{LogReader, LogRecord};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register;

use crate::cli::ui::log_text::{Tone, sentence_by};

use super::layout::{BOLD, CYAN, GREEN, YELLOW, clean, cut, one_line, pad, paint, style_of, wrap};
use super::output::Screen;

const PACE: Duration = Duration::from_millis(380);

/// The longest name is `code-reviewer-10`.
const NAME: usize = 16;

pub(crate) struct Story {
    ended: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
    teller: JoinHandle<()>,
}

impl Story {
    /// Begins to tell the log from now on.
    pub(crate) fn begin(screen: Screen, mut log: LogReader) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let is_last = Arc::clone(&ended);
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Without it, the story is told to its end.
            let _ = register(signal, Arc::clone(&interrupted));
        }
        let stops = Arc::clone(&interrupted);
        let teller = thread::spawn(move || {
            loop {
                // Asked before the last reading, so that the last events are told.
                let last = is_last.load(Ordering::Acquire);
                let lines: Vec<String> = log
                    .read_new()
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|entry| line(entry, &screen))
                    .collect();
                let nothing = lines.is_empty();
                for line in lines {
                    if stops.load(Ordering::Acquire) {
                        return;
                    }
                    screen.out(&line);
                    thread::sleep(PACE);
                }
                if last {
                    return;
                }
                if nothing {
                    thread::sleep(PACE / 4);
                }
            }
        });
        Self { ended, interrupted, teller }
    }

    /// Tells the rest; false if the person has interrupted it.
    pub(crate) fn finish(self) -> bool {
        self.ended.store(true, Ordering::Release);
        // If the teller has failed, the result is still printed.
        let _ = self.teller.join();
        !self.interrupted.load(Ordering::Acquire)
    }
}

fn line(entry: &LogRecord, screen: &Screen) -> Option<String> {
    let (tone, text) = told(entry)?;
    let style = style_of(tone);
    let role = entry.agent.parse().ok().map(|agent: liza_core::model::AgentId| agent.role());
    let name = match role {
        Some(Role::Planner) => CYAN,
        Some(Role::Coder) => GREEN,
        Some(Role::CodeReviewer) => YELLOW,
        None => BOLD,
    };
    let words = wrap(&clean(&text), screen.columns().saturating_sub(NAME + 1).max(20));
    let words: Vec<String> = words.iter().map(|words| paint(style, words)).collect();
    let indent = format!("\n{}", " ".repeat(NAME + 1));
    Some(format!("{} {}", paint(name, &pad(&cut(&clean(&entry.agent), NAME), NAME)), words.join(&indent)))
}

/// The event in a short sentence; none for events that only Liza needs to know.
fn told(entry: &LogRecord) -> Option<(Tone, String)> {
    let detail = cut(&one_line(&entry.detail), 160);
    let said = sentence_by(&entry.agent, &entry.action, entry.task.as_deref(), &detail);
    if !said.is_story {
        return None;
    }
    let task = entry.task.as_deref().unwrap_or_default();
    let after = |word: &str| detail.split_once(word).map_or(detail.as_str(), |(_, rest)| rest).to_owned();
    // A form that an agent has filled in is longer than what a person wants to hear.
    let text = match entry.action.as_str() {
        "rejected" if entry.agent != "system" => {
            let reason = after("[blocker] ");
            format!("rejects {task}: {}", reason.split(" Why it matters").next().unwrap_or_default())
        }
        _ => said.text(),
    };
    Some((said.tone, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(action: &str, detail: &str) -> Option<String> {
        let timestamp = "2026-11-16T04:00:00Z".parse().unwrap();
        let (agent, action, detail) = ("coder-1".to_owned(), action.to_owned(), detail.to_owned());
        let task = Some("greet".to_owned());
        told(&LogRecord { timestamp, agent, action, task, detail, revision: None }).map(|(_, text)| text)
    }

    #[test]
    fn what_happened_is_told_in_words_and_what_only_liza_needs_is_not() {
        let reasons = "Blockers: 1 - [blocker] a.sh:1 — no name Why it matters: it is asked for";
        assert_eq!(story("rejected", reasons).unwrap(), "rejects greet: a.sh:1 — no name");
        assert_eq!(story("rejected", "too slow").unwrap(), "rejects greet: too slow");
        assert_eq!(story("merged", "fast-forward").unwrap(), "greet is merged");
        assert_eq!(story("registered", "generation 2"), None);
    }
}
