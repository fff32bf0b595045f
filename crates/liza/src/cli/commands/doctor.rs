//! `liza doctor`: checks the setup and reports how to fix problems.

use liza_git::Git;
use liza_store::{Address, installed_client};
use liza_team::lifecycle::{RecoveryReport, recover as recover_project};
use liza_team::project::Project;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::layout::wrap;
use crate::cli::ui::output::Reply;
use crate::doctor::{Check, Health, check, fix};

use super::recover;

/// Check git, the repository, the blackboard and the agent programs.
///
/// Prints a fix for each problem.
///
/// Exits 1 if something is broken. Works outside a project too, with fewer checks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza doctor
  liza doctor --fix")]
pub(crate) struct Args {
    /// Run `liza recover`, then create what is missing: the integration branch and the lines in .git/info/exclude.
    #[arg(long)]
    fix: bool,
    /// Try whether a database lets a client in without a password: what a doctor runs in a stage.
    #[arg(long, hide = true, value_name = "ADDRESS", conflicts_with = "fix")]
    reach: Option<Address>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    if let Some(address) = &args.reach {
        let exit = if installed_client()?.lets_anyone_in(address) { Exit::Success } else { Exit::Refused };
        return Ok(Reply::already_written().exit(exit));
    }
    let project = Project::find(&context.directory).map(|root| Project::open(&root)).transpose()?;
    let report = match (&project, args.fix) {
        (Some(project), true) => {
            let engine = context.engine(project)?;
            // First, so that a caller without permission is refused before anything is created.
            let report = context.reported(&engine, recover_project(&engine))?;
            fix(project)?;
            Some(report)
        }
        (None, true) => return Err(CommandError::no_project(&context.directory)),
        (_, false) => None,
    };
    let checks = check(&Git::new(), &context.directory, project.as_ref(), &context.program);
    Ok(reply(&checks, report.as_ref(), context.screen.page_columns()))
}

/// A column of texts with less room than this is hard to read.
const LEAST_TEXT: usize = 20;

fn reply(checks: &[Check], report: Option<&RecoveryReport>, columns: usize) -> Reply {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let line = |check: &Check| {
        let head = format!("{:4}  {:width$}  ", check.health.name(), check.name);
        // In a narrow terminal the texts are below the name.
        let below = columns < head.len() + LEAST_TEXT;
        let indent = if below { 6 } else { head.len() };
        let head = if below { format!("{}\n{}", head.trim_end(), " ".repeat(indent)) } else { head };
        let room = columns.saturating_sub(indent).max(LEAST_TEXT);
        let fix = check.fix.as_ref().map(|fix| format!("fix: {fix}"));
        let texts = std::iter::once(&check.found).chain(&fix);
        let lines: Vec<String> = texts.flat_map(|text| wrap(text, room)).collect();
        format!("{head}{}", lines.join(&format!("\n{}", " ".repeat(indent))))
    };
    let mut lines: Vec<String> = report.into_iter().map(recover::in_words).collect();
    lines.extend(checks.iter().map(line));
    let healthy = checks.iter().all(|check| check.health != Health::Broken);
    let one = |check: &Check| {
        let Check { name, health, found, fix } = check;
        json!({"name": name, "health": health.name(), "found": found, "fix": fix})
    };
    let checks: Vec<_> = checks.iter().map(one).collect();
    let result = json!({"healthy": healthy, "checks": checks, "recovered": report.map(recover::as_json)});
    let exit = if healthy { Exit::Success } else { Exit::Refused };
    Reply::new(lines.join("\n"), result).exit(exit)
}
