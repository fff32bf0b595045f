//! `liza sprint`: shows the sprint, sets its deadline, starts the next one.

use std::str::FromStr;

use clap::Subcommand;
use liza_core::model::{Decision, Seconds, Section, Sprint, State, Timestamp};
use liza_core::protocol::{NewSprint, SetDeadline};
use liza_core::rules::metrics::sprint_metrics;
use liza_host::local_time::LocalTime;
use liza_team::project::now;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{cut, one_line, width, wrap};
use crate::cli::ui::output::Reply;

use super::update_sprint_metrics::figures;

/// Show the sprint, set its deadline, or start the next one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza sprint
  liza sprint deadline 2026-08-01T18:00:00Z
  liza sprint deadline +8h
  liza sprint new")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<SprintVerb>,
}

#[derive(Debug, Subcommand)]
enum SprintVerb {
    /// Show the plan, the figures, the decisions and the retrospective.
    Show,
    /// Start the next sprint with the open tasks; the last one is archived.
    New,
    /// Set when all agents stop at a checkpoint.
    Deadline {
        /// A time in UTC such as 2026-08-01T18:00:00Z, a time from now such as +90m, +8h or +2d, or none.
        #[arg(value_name = "TIME", allow_hyphen_values = true)]
        time: When,
    },
}

#[derive(Debug, Clone, Copy)]
enum When {
    Never,
    At(Timestamp),
    In(Seconds),
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "none" {
            return Ok(When::Never);
        }
        let wrong =
            || format!("{text:?} is not a time: expected 2026-08-01T18:00:00Z, +90m, +8h, +2d or none");
        let Some(length) = text.strip_prefix('+') else {
            return text.parse().map(When::At).map_err(|_| wrong());
        };
        let unit = length.chars().last().ok_or_else(wrong)?;
        let seconds: u64 = match unit {
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let number: u64 = length.trim_end_matches(unit).parse().map_err(|_| wrong())?;
        Ok(When::In(Seconds(number.saturating_mul(seconds))))
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    match args.verb.unwrap_or(SprintVerb::Show) {
        SprintVerb::Show => show(context),
        SprintVerb::New => begin_next(context),
        SprintVerb::Deadline { time } => set_deadline(time, context),
    }
}

fn begin_next(context: &Context) -> Result<Reply, CommandError> {
    context.run(NewSprint, |reply| format!("{} has started; the last sprint is archived", reply.sprint))
}

fn set_deadline(time: When, context: &Context) -> Result<Reply, CommandError> {
    let deadline = match time {
        When::Never => None,
        When::At(time) => Some(time),
        When::In(length) => Some(now() + length),
    };
    let times = context.screen.local_time();
    context.run(SetDeadline { deadline }, |_| match deadline {
        Some(time) => format!("all agents stop at a checkpoint at {}", times.full(time)),
        None => "the sprint has no deadline".to_owned(),
    })
}

fn show(context: &Context) -> Result<Reply, CommandError> {
    let state = context.project()?.store().snapshot()?;
    let sprint = state.board.sprint.get(Section::Sprint)?;
    let metrics = sprint_metrics(&state);
    let mut lines = vec![format!("{}  {}", sprint.id, sprint.status)];
    let times = context.screen.local_time();
    lines.extend(timeline(sprint, &times));
    lines.push(plan(&state, sprint));
    lines.push(figures(&metrics));
    lines.extend(decisions(sprint, context.screen.columns(), &times));
    lines.extend(retrospective(sprint, context.screen.columns()));
    let result = json!({"sprint": sprint, "metrics": metrics});
    Ok(Reply::new(lines.join("\n"), result).at(state.board.revision.0))
}

fn timeline(sprint: &Sprint, local: &LocalTime) -> Vec<String> {
    let times = &sprint.timeline;
    let named = [
        ("started", times.started),
        ("deadline", times.deadline),
        ("checkpoint", times.checkpoint_at),
        ("ended", times.ended),
    ];
    named.iter().filter_map(|(name, time)| Some(format!("{name:<10}  {}", local.full((*time)?)))).collect()
}

fn decisions(sprint: &Sprint, columns: usize, local: &LocalTime) -> Vec<String> {
    let line = |decision: &Decision| {
        let note = decision.note.as_deref().map(|note| format!(": {}", one_line(note))).unwrap_or_default();
        let text = format!("{}  {}{note}", local.full(decision.timestamp), one_line(&decision.decision));
        format!("decided   {}", cut(&text, columns.saturating_sub(10)))
    };
    sprint.decisions.iter().map(line).collect()
}

/// The retrospective, or the way to write it once the sprint has ended.
fn retrospective(sprint: &Sprint, columns: usize) -> Vec<String> {
    match &sprint.retrospective {
        Some(text) => {
            // Lines that fit keep their spaces, which tables need.
            let shown = |line: &str| {
                let plain: String = line.chars().filter(|c| !c.is_control()).collect();
                if width(&plain) <= columns { vec![plain] } else { wrap(line, columns) }
            };
            std::iter::once(String::new()).chain(text.lines().flat_map(shown)).collect()
        }
        None if sprint.status.is_terminal() => {
            vec!["no retrospective yet: liza retro --write".to_owned()]
        }
        None => Vec::new(),
    }
}

fn plan(state: &State, sprint: &Sprint) -> String {
    let line = |mark: &str, id: &liza_core::model::TaskId| {
        let status = state.board.status(id).map_or("?".to_owned(), |status| status.to_string());
        format!("  {status:<18}  {id}{mark}")
    };
    let planned = sprint.scope.planned.iter().map(|id| line("", id));
    let stretch = sprint.scope.stretch.iter().map(|id| line("  (stretch)", id));
    let tasks: Vec<String> = planned.chain(stretch).collect();
    if tasks.is_empty() { "nothing is planned yet".to_owned() } else { tasks.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_relative_to_now() {
        let seen = |text: &str| text.parse::<When>().map(|when| format!("{when:?}")).ok();
        assert_eq!(seen("+90m"), Some("In(Seconds(5400))".to_owned()));
        assert_eq!(seen("+2d"), Some("In(Seconds(172800))".to_owned()));
        assert_eq!(seen("none"), Some("Never".to_owned()));
        assert_eq!(seen("2026-08-01T18:00:00Z"), Some("At(2026-08-01T18:00:00Z)".to_owned()));
        for bad in ["", "+", "+h", "8h", "+8x", "tomorrow", "-1h", "+8é", "+99999999999999999999h"] {
            assert_eq!(seen(bad), None, "{bad:?}");
        }
    }
}
