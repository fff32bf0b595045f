//! `.liza/ESCALATION`: what a human finds who comes back after hours. Written by the watcher, gone with the checkpoint.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use liza_core::model::{State, Status, Timestamp};
use liza_core::watch::alarms::StopAge;
use liza_store::durable::replace_file;

use crate::effects::ESCALATION;

/// As many tasks as are listed.
const LISTED: usize = 50;

/// Writes, keeps or removes the file as the checkpoint stands. `fresh` says that a limit has just been passed.
pub(super) fn follow(
    folder: &Path,
    state: &State,
    checkpoint: Option<Timestamp>,
    fresh: bool,
    now: Timestamp,
) -> io::Result<()> {
    let path = folder.join(ESCALATION);
    let Some(since) = checkpoint else {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Err(_) | Ok(()) => Ok(()),
        };
    };
    match StopAge::of(now.since(since)) {
        Some(neglect @ (StopAge::Stuck | StopAge::Forsaken)) if fresh || !path.exists() => {
            replace_file(&path, text(state, since, neglect, now).as_bytes())
        }
        Some(StopAge::Stale | StopAge::Stuck | StopAge::Forsaken) | None => Ok(()),
    }
}

/// Since when, which sprint, what waits, and the ways on.
fn text(state: &State, since: Timestamp, neglect: StopAge, now: Timestamp) -> String {
    let sprint = state.board.sprint.ready().map_or("the sprint", |sprint| sprint.id.as_str());
    let mut lines = vec![
        format!("CHECKPOINT: {sprint} has waited for a human since {since} ({}).", now.since(since)),
        String::new(),
    ];
    let open = |status: Option<Status>| !status.is_some_and(Status::is_terminal);
    let waiting: Vec<_> = state.board.summaries().filter(|head| open(head.status)).collect();
    if waiting.is_empty() {
        lines.push("No task is open.".to_owned());
    } else {
        lines.push(format!("Waiting tasks: {}", waiting.len()));
        lines.extend(waiting.iter().take(LISTED).map(|head| {
            let status = head.status.map_or("unknown".to_owned(), |status| status.to_string());
            format!("  {}  {status}", head.id)
        }));
        if waiting.len() > LISTED {
            lines.push(format!("  and {} more: liza status --all", waiting.len() - LISTED));
        }
    }
    lines.push(String::new());
    lines.push("To look:   .liza/sprint_summary.md, liza status".to_owned());
    lines.push("To go on:  liza resume --decision continue   (or remove .liza/CHECKPOINT)".to_owned());
    match neglect {
        StopAge::Forsaken => lines.push(
            "To stop:   liza abort. Eight hours have passed: if nobody wants this goal any more, abort it."
                .to_owned(),
        ),
        StopAge::Stale | StopAge::Stuck => lines.push("To stop:   liza abort".to_owned()),
    }
    lines.push(String::new());
    lines.push("Nothing goes on and nothing is given up until you decide.".to_owned());
    lines.join("\n") + "\n"
}
