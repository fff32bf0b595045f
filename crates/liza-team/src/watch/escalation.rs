//! `.liza/ESCALATION` explains a checkpoint that has waited for hours. The watcher writes it, and removes it
//! when the checkpoint ends.

use std::io;
use std::path::Path;

use liza_core::model::{State, Status, Timestamp};
use liza_host::durable::{self, replace_private_file};
use liza_status::alarms::StopAge;

use crate::engine::ESCALATION;

/// Further open tasks are counted.
const MAX_LISTED: usize = 50;

/// Writes, keeps or removes the file. `fresh` means that the checkpoint has just passed an age limit.
pub(super) fn follow(
    folder: &Path,
    state: &State,
    checkpoint: Option<Timestamp>,
    fresh: bool,
    now: Timestamp,
) -> io::Result<()> {
    let path = folder.join(ESCALATION);
    let Some(since) = checkpoint else {
        return durable::remove_if_present(&path);
    };
    match StopAge::of(now.since(since)) {
        Some(age @ (StopAge::Stuck | StopAge::Abandoned)) if fresh || !path.exists() => {
            replace_private_file(&path, text(state, since, age, now).as_bytes())
        }
        Some(StopAge::Stale | StopAge::Stuck | StopAge::Abandoned) | None => Ok(()),
    }
}

/// The waiting sprint, its start, the open tasks, and the next step.
fn text(state: &State, since: Timestamp, age: StopAge, now: Timestamp) -> String {
    let sprint = state.board.sprint.ready().map_or("the sprint", |sprint| sprint.id.as_str());
    let mut lines = vec![
        format!("CHECKPOINT: {sprint} has been waiting for you since {since} ({}).", now.since(since)),
        String::new(),
    ];
    let open = |status: Option<Status>| !status.is_some_and(Status::is_terminal);
    let tasks: Vec<_> = state.board.summaries().filter(|task| open(task.status)).collect();
    if tasks.is_empty() {
        lines.push("No tasks are open.".to_owned());
    } else {
        lines.push(format!("Open tasks: {}", tasks.len()));
        lines.extend(tasks.iter().take(MAX_LISTED).map(|task| {
            let status = task.status.map_or("unknown".to_owned(), |status| status.to_string());
            format!("  {}  {status}", task.id)
        }));
        if tasks.len() > MAX_LISTED {
            lines.push(format!("  and {} more: liza status --all", tasks.len() - MAX_LISTED));
        }
    }
    lines.push(String::new());
    lines.push("Review:    .liza/sprint_summary.md, liza status".to_owned());
    lines.push("Continue:  liza resume   (or remove .liza/CHECKPOINT)".to_owned());
    match age {
        StopAge::Abandoned => lines.push(
            "Abort:     liza abort   (it has waited for more than eight hours; is the goal still wanted?)"
                .to_owned(),
        ),
        StopAge::Stale | StopAge::Stuck => lines.push("Abort:     liza abort".to_owned()),
    }
    lines.push(String::new());
    lines.push("No work starts and no task is abandoned until you decide.".to_owned());
    lines.join("\n") + "\n"
}
