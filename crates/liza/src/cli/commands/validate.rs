//! `liza validate`: everything that is wrong with the blackboard.

use std::path::{Path, PathBuf};

use liza_core::model::{State, Status, Task, TaskId};
use liza_core::rules::invariants;
use liza_core::rules::invariants::{Subject, Violation};
use liza_core::text::count;
use liza_store::{ProjectDisk, StoreError, misspelled_keys, read_state};
use serde_json::json;

use crate::project::{Project, now};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::clean;
use crate::cli::ui::output::Reply;

/// Check the blackboard against every rule.
///
/// Prints VALID, or a line INVALID: … for each violation, and exits 1. Warnings tell of tasks that hold all rules but
/// lack what commands on them need, and of keys that look misspelled.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza validate
  liza validate copy-of-state.yaml
  SKIP_SPEC_FILE_CHECK=true liza validate")]
pub(crate) struct Args {
    /// Another state file than the project's own.
    #[arg(value_name = "STATE.yaml")]
    state: Option<PathBuf>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let (state, root, file) = read(&args, context)?;
    let (violations, warnings) = match &state {
        Ok(state) => {
            let found = invariants::validate(state, &ProjectDisk::new(&root), now());
            let misspelled = misspelled_keys(&file).unwrap_or_default();
            let mut warnings = warnings(state, &found);
            warnings.extend(misspelled.iter().map(ToString::to_string));
            (found.iter().map(ToString::to_string).collect(), warnings)
        }
        // A file that cannot be read at all has one violation, and is inconsistent rather than refused.
        Err(error) => (vec![error.to_string()], Vec::new()),
    };
    tell(&violations, &warnings, state.is_ok(), context)
}

type Read = (Result<State, StoreError>, PathBuf, PathBuf);

fn read(args: &Args, context: &Context) -> Result<Read, CommandError> {
    match &args.state {
        None => {
            let project = context.project()?;
            let store = project.store();
            Ok((broken_only(store.snapshot())?, project.root().to_owned(), store.state_file()))
        }
        Some(file) => {
            let path = context.directory.join(file);
            // Specifications and worktrees are looked for in the project that the file belongs to.
            let folder = path.parent().unwrap_or(Path::new("."));
            let root = Project::find(folder).or_else(|| Project::find(&context.directory));
            let root = root.unwrap_or_else(|| context.directory.clone());
            Ok((broken_only(read_state(&path))?, root, path))
        }
    }
}

/// What cannot be understood is a finding; what cannot be reached is an error.
fn broken_only(read: Result<State, StoreError>) -> Result<Result<State, StoreError>, CommandError> {
    match read {
        Err(error @ StoreError::Broken(_)) => Ok(Err(error)),
        Err(error) => Err(error.into()),
        Ok(state) => Ok(Ok(state)),
    }
}

/// Tasks that hold the rules but lack what commands on them need.
fn warnings(state: &State, found: &[Violation]) -> Vec<String> {
    let told = |id: &TaskId| found.iter().any(|violation| violation.subject == Subject::Task(id.clone()));
    let over = |status: Option<Status>| status.is_some_and(Status::is_terminal);
    let tasks = state.board.tasks.iter().filter(|(id, slot)| !over(slot.summary.status) && !told(id));
    let wrong = tasks.filter_map(|(id, slot)| {
        let body = slot.body.as_ref()?;
        Task::from_body(id, body).err().map(|refusal| refusal.to_string())
    });
    wrong.collect()
}

fn tell(
    violations: &[String],
    warnings: &[String],
    readable: bool,
    context: &Context,
) -> Result<Reply, CommandError> {
    for warning in warnings.iter().filter(|_| !context.screen.json) {
        context.screen.note(&clean(&format!("WARNING: {warning}")));
    }
    if violations.is_empty() {
        return Ok(Reply::new("VALID", json!({"valid": true, "violations": [], "warnings": warnings})));
    }
    if !context.screen.json {
        let lines: Vec<String> = violations.iter().map(|violation| format!("INVALID: {violation}")).collect();
        context.screen.out(&clean(&lines.join("\n")));
    }
    let count = count(violations.len(), "violation");
    let hint = if readable {
        "liza edit opens it in your editor"
    } else {
        "fix a copy of the file with an editor, then put it in place"
    };
    Err(CommandError::refused("invalid", count)
        .hint(hint)
        .with("valid", json!(false))
        .with("violations", json!(violations))
        .with("warnings", json!(warnings)))
}
