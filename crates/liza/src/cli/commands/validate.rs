//! `liza validate`: checks the blackboard and reports every violation.

use std::path::{Path, PathBuf};

use liza_core::model::{State, Status, Task, TaskId};
use liza_core::rules::invariants;
use liza_core::rules::invariants::{Subject, Violation, count_violations};
use liza_core::rules::misspelled::MisspelledKey;
use liza_core::text::count;
use liza_store::{ProjectDisk, StoreError, misspelled_keys, read_state};
use liza_team::observe;
use liza_team::project::{Project, now};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::clean;
use crate::cli::ui::output::Reply;

/// Check the blackboard against every rule.
///
/// Prints VALID, or one line INVALID: … per violation and exits 1. Warnings name tasks that satisfy all rules but
/// lack fields that commands need, and keys that look misspelled.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza validate
  liza validate copy-of-state.yaml
  SKIP_SPEC_FILE_CHECK=true liza validate")]
pub(crate) struct Args {
    /// The state file; default the project's own.
    #[arg(value_name = "STATE.yaml")]
    state: Option<PathBuf>,
}

impl Args {
    /// True if it checks another file than the project's own.
    pub(crate) fn has_file(&self) -> bool {
        self.state.is_some()
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let (state, root) = read(&args, context)?;
    let (violations, counted, warnings) = match &state {
        Ok((state, misspelled)) => {
            let found = match args.state {
                None => observe::violations(&context.project()?, state, now()),
                Some(_) => invariants::validate(state, &ProjectDisk::new(&root), now()),
            };
            let mut warnings = warnings(state, &found);
            warnings.extend(misspelled.iter().map(ToString::to_string));
            (found.iter().map(ToString::to_string).collect(), count_violations(&found), warnings)
        }
        // A file that cannot be parsed has one violation.
        Err(error) => (vec![error.to_string()], count(1, "violation"), Vec::new()),
    };
    let damaged = if args.state.is_none() { context.project()?.store().log_faults()? } else { Vec::new() };
    let warnings: Vec<String> = warnings.into_iter().chain(damaged).collect();
    report((&violations, counted), &warnings, state.is_ok(), context)
}

/// A blackboard and its keys that are probably misspelled.
type Checked = Result<(State, Vec<MisspelledKey>), StoreError>;

/// The blackboard, and the root of its project.
fn read(args: &Args, context: &Context) -> Result<(Checked, PathBuf), CommandError> {
    match &args.state {
        None => {
            let project = context.project()?;
            Ok((broken_only(project.store().writable_snapshot())?, project.root().to_owned()))
        }
        Some(file) => {
            let path = context.directory.join(file);
            // Specifications and worktrees are checked in the project that the file belongs to.
            let folder = path.parent().unwrap_or(Path::new("."));
            let root = Project::find(folder).or_else(|| Project::find(&context.directory));
            let root = root.unwrap_or_else(|| context.directory.clone());
            let read = read_state(&path).map(|state| (state, misspelled_keys(&path).unwrap_or_default()));
            Ok((broken_only(read)?, root))
        }
    }
}

/// A file that cannot be parsed is a finding; one that cannot be read is an error.
fn broken_only(read: Checked) -> Result<Checked, CommandError> {
    match read {
        Err(error @ (StoreError::Broken(_) | StoreError::NewerVersion { .. })) => Ok(Err(error)),
        Err(error) => Err(error.into()),
        Ok(checked) => Ok(Ok(checked)),
    }
}

/// Tasks that satisfy the rules but lack fields that commands need.
fn warnings(state: &State, found: &[Violation]) -> Vec<String> {
    let reported = |id: &TaskId| found.iter().any(|violation| violation.subject == Subject::Task(id.clone()));
    let over = |status: Option<Status>| status.is_some_and(Status::is_terminal);
    let tasks = state.board.tasks.iter().filter(|(id, slot)| !over(slot.summary.status) && !reported(id));
    let wrong = tasks.filter_map(|(id, slot)| {
        let body = slot.body.as_ref()?;
        Task::from_body(id, body).err().map(|refusal| refusal.to_string())
    });
    wrong.collect()
}

fn report(
    (violations, counted): (&[String], String),
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
    let hint = if readable {
        "fix it in your editor: liza edit"
    } else {
        "fix a copy of the file in an editor, then replace the file with it"
    };
    Err(CommandError::refused("invalid", counted)
        .hint(hint)
        .with("valid", json!(false))
        .with("violations", json!(violations))
        .with("warnings", json!(warnings)))
}
