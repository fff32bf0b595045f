//! `liza archive`: moves tasks that ended a while ago out of the blackboard.

use std::str::FromStr;

use liza_core::model::{Seconds, Section, State, TaskId, TaskRecord, Timestamp};
use liza_core::protocol::Archive;
use liza_core::rules::sprint::belongs_to_running;
use liza_team::project::now;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Move tasks that ended a while ago to the archive.
///
/// Tasks of the current sprint stay. To print an archived task: liza show TASK. The blackboard keeps the ID and the final
/// status of each archived task, so that dependencies on it remain met and its ID is not reused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza archive
  liza archive --older-than 12h --dry-run")]
pub(crate) struct Args {
    /// Minimum time since the task ended: a number with s, m, h or d.
    #[arg(long, value_name = "D", default_value = "7d")]
    older_than: Age,
    /// Print what would be moved, without moving it.
    #[arg(long)]
    dry_run: bool,
}

/// A duration as people type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Age(Seconds);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration: expected something like 7d, 12h, 30m or 90s");
        let unit = text.trim().chars().last().ok_or_else(wrong)?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let number: u64 = text.trim().trim_end_matches(unit).parse().map_err(|_| wrong())?;
        Ok(Self(Seconds(number.saturating_mul(seconds))))
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let tasks = old(&state, args.older_than.0, now())?;
    let names: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    if names.is_empty() || args.dry_run {
        let text = match names.is_empty() {
            true => format!("no task outside the current sprint ended more than {} ago", args.older_than.0),
            false => format!("would be moved: {}", names.join(", ")),
        };
        // Checked here because no command is sent that could be refused.
        context.human_only("archive")?;
        return Ok(Reply::new(text, json!({"archived": [], "would_archive": names})));
    }
    context.run_in(&project, Archive { tasks }, |_| format!("moved to the archive: {}", names.join(", ")))
}

/// The tasks that ended at least that long ago and are not in the current sprint.
fn old(state: &State, age: Seconds, now: Timestamp) -> Result<Vec<TaskId>, CommandError> {
    let sprint = state.board.sprint.get(Section::Sprint)?;
    let stays = |id: &TaskId| belongs_to_running(&state.board, sprint, id);
    let ended = |record: &TaskRecord| record.history.iter().flatten().map(|event| event.time).max();
    let over = |record: &TaskRecord| {
        record.status.is_some_and(|status| status.is_terminal())
            && ended(record).or(record.created).is_none_or(|ended| now.since(ended) >= age)
    };
    let old = state.bodies().filter(|(id, body)| over(body.record()) && !stays(id));
    Ok(old.map(|(id, _)| id.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_numbers_with_a_unit() {
        let age = |text: &str| text.parse::<Age>().map(|age| age.0.0).ok();
        assert_eq!((age("7d"), age("12h"), age("0s")), (Some(604_800), Some(43_200), Some(0)));
        for bad in ["", "7", "d", "-1d", "7w", "1.5h", "é"] {
            assert_eq!(age(bad), None, "{bad:?}");
        }
    }
}
