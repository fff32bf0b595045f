//! `liza edit`: opens a copy of the blackboard in an editor and merges the changes block by block.

use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use liza_core::model::{LogAction, TaskId};
use liza_host::durable;
use liza_host::private;
use liza_store::{Conflicts, StoreError, infer_base, read_state, task_range, three_way_merge};
use liza_team::project::{Project, now};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::console::Stream;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

use super::lock::{as_refusal, begin_edit, log_entry};

/// Edit the blackboard, or one task, in your editor.
///
/// You edit a copy. When you close the editor, your changes are merged with what others wrote in the meantime, and
/// validated. If someone else changed the same place, or your change is not valid, nothing is written: you are asked
/// whether to fix it, and your copy is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza edit
  EDITOR='code --wait' liza edit retry-orders
  liza edit --from .liza/state.yaml.stale-1      (merge an outdated save)")]
pub(crate) struct Args {
    /// Edit only this task.
    task: Option<TaskId>,
    /// Merge this version of the blackboard, without an editor.
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    from: Option<PathBuf>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("edit")?;
    let project = context.project()?;
    match &args.from {
        Some(file) => merge_file(&project, &context.directory.join(file), context),
        None => edit(&project, args.task.as_ref(), context),
    }
}

fn edit(project: &Project, task: Option<&TaskId>, context: &Context) -> Result<Reply, CommandError> {
    let base = project.store().text()?;
    let part = match task {
        Some(task) => part_of(project, &base, task)?,
        None => 0..base.len(),
    };
    let copy = Copy::make(project, task, &base[part.clone()])?;
    let detail =
        task.map_or("the blackboard, in an editor".to_owned(), |task| format!("{task}, in an editor"));
    loop {
        copy.open_editor(context)?;
        let edited = copy.read()?;
        if edited.trim_end() == base[part.clone()].trim_end() {
            copy.remove();
            return Ok(Reply::new("nothing was changed", json!({"changed": false})));
        }
        // Editors add a final newline; the rest of the file brings its own.
        let edited = if task.is_some() { edited.trim_end() } else { &edited };
        let yours = format!("{}{edited}{}", &base[..part.start], &base[part.end..]);
        match merge(project, &base, &yours, &detail, context) {
            Ok(written) => {
                copy.remove();
                return Ok(Reply::new("change applied", json!({"changed": true})).at(written));
            }
            Err(error) if wants_to_fix(&error, context) => {}
            Err(error) => {
                let kept = format!("your copy is kept in {}; to start again: liza edit", copy.path.display());
                return Err(error.hint(kept).with("copy", json!(copy.path)));
            }
        }
    }
}

/// Asks a person at a terminal whether to open the copy again; a program gets the error.
fn wants_to_fix(error: &CommandError, context: &Context) -> bool {
    let console = &context.screen.console;
    let at_terminal = console.is_terminal(Stream::Input) && console.is_terminal(Stream::Error);
    if !at_terminal || context.screen.json || error.exit == Exit::Locked {
        return false;
    }
    context.screen.note(&format!("liza: {}", error.message));
    context.screen.note("open your copy again to fix it? [Y/n]");
    // End of input means no: there is no one to fix anything.
    let answer = console.read_line().unwrap_or_default();
    !answer.is_empty() && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

fn part_of(project: &Project, text: &str, task: &TaskId) -> Result<Range<usize>, CommandError> {
    let state = project.store().snapshot()?;
    state.board.body(task)?;
    let odd = || {
        let message = format!("the layout of the file does not allow editing {task} alone");
        CommandError::refused("odd_layout", message).hint("edit the whole blackboard: liza edit")
    };
    task_range(text, task.as_str()).ok_or_else(odd)
}

/// Merges a save that was based on an older version: blocks that no one else changed since then are applied.
fn merge_file(project: &Project, file: &Path, context: &Context) -> Result<Reply, CommandError> {
    let failed = |error: io::Error| {
        CommandError::refused("no_file", format!("cannot read {}: {error}", file.display()))
    };
    let yours = fs::read_to_string(file).map_err(failed)?;
    // An error in it is reported with its own name, not as one of the blackboard.
    read_state(file).map_err(as_refusal)?;
    let ours = project.store().text()?;
    let base = infer_base(&yours, &ours).ok_or_else(|| {
        let message = format!("{} cannot be split into sections", file.display());
        CommandError::refused("odd_layout", message).hint("copy what is missing by hand: liza edit")
    })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let written = merge(project, &base, &yours, &format!("merged {name}"), context)?;
    if let Some(number) = name.strip_prefix("state.yaml.stale-") {
        // Renamed, so that it is kept but no longer reported.
        let _ = fs::rename(file, file.with_file_name(format!("state.yaml.merged-{number}")));
    }
    let text = "changes applied, except where others had changed the same block; check: liza show TASK";
    Ok(Reply::new(text, json!({"changed": true})).at(written))
}

/// Merges under the lock and writes; returns the new revision.
fn merge(
    project: &Project,
    base: &str,
    yours: &str,
    detail: &str,
    context: &Context,
) -> Result<u64, CommandError> {
    let mut attempts = 0;
    let edited = loop {
        attempts += 1;
        let session = begin_edit(project, context, "edit")?;
        let merged = three_way_merge(base, yours, &session.text()?).map_err(|places| conflict(&places))?;
        match session.replace(&merged, &log_entry(context, LogAction::Edit, detail)?, now()) {
            // Saved at the same moment: merge into that.
            Err(StoreError::Overtaken { .. }) if attempts < 20 => {}
            other => break other.map_err(as_refusal)?,
        }
    };
    context.report_notices(&edited.notices);
    context.warn_of_misspelled_keys(&edited.misspelled);
    Ok(edited.revision.0)
}

fn conflict(places: &Conflicts) -> CommandError {
    let message = format!("someone else has changed the same places: {}", places.join(", "));
    CommandError::refused("conflict", message).exit(Exit::Inconsistent).with("places", json!(places))
}

/// The copy that a person edits. It is kept beside the blackboard, so that nothing is lost with a temporary folder.
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn make(project: &Project, task: Option<&TaskId>, text: &str) -> Result<Self, CommandError> {
        let folder = project.folder().join("edits");
        let name = task.map_or("state", TaskId::as_str);
        let path = folder.join(format!("{name}-{}.yaml", std::process::id()));
        let ended = if text.ends_with('\n') { "" } else { "\n" };
        let written = private::create_folder(&folder).and_then(|()| {
            let mut file = durable::create(&path)?;
            file.write_all(format!("{text}{ended}").as_bytes())
        });
        written.map_err(|error| {
            CommandError::refused("io", format!("cannot write a copy to {}: {error}", path.display()))
        })?;
        Ok(Self { path })
    }

    fn read(&self) -> Result<String, CommandError> {
        durable::read_text(&self.path).map_err(|error| {
            CommandError::refused("io", format!("cannot read {}: {error}", self.path.display()))
        })
    }

    fn remove(&self) {
        // A leftover copy does no harm.
        let _ = durable::remove_if_present(&self.path);
        let _ = self.path.parent().map(fs::remove_dir);
    }

    fn open_editor(&self, context: &Context) -> Result<(), CommandError> {
        let environment = &context.environment;
        let editor = environment.text("VISUAL").or_else(|| environment.text("EDITOR")).unwrap_or("vi");
        let message = match self.run_editor(editor, context) {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) if status.code() == Some(127) => {
                self.remove();
                return Err(CommandError::refused("no_program", format!("cannot run the editor {editor}"))
                    .hint("set EDITOR to your editor")
                    .exit(Exit::Missing));
            }
            Ok(status) => format!("the editor failed ({status}); nothing was changed"),
            Err(error) => format!("cannot run the editor: {error}"),
        };
        self.remove();
        Err(CommandError::refused("editor_failed", message))
    }

    /// Runs the editor with the caller's own streams: below a screen or a page there are none.
    fn run_editor(&self, editor: &str, context: &Context) -> io::Result<ExitStatus> {
        let console = &context.screen.console;
        // Run by the shell, since the variables may contain options; the path is passed as an argument.
        Command::new("sh")
            .args(["-c", &format!("{editor} \"$1\""), "sh"])
            .arg(&self.path)
            .current_dir(&context.directory)
            .stdin(console.for_child(Stream::Input)?)
            .stdout(console.for_child(Stream::Output)?)
            .stderr(console.for_child(Stream::Error)?)
            .status()
    }
}
