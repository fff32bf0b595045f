//! `liza edit`: a person's editor on a copy of the blackboard, merged block by block into what others wrote meanwhile.

use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use liza_core::model::TaskId;
use liza_store::private;
use liza_store::{Conflicts, infer_base, misspelled_keys, task_range, three_way_merge};
use serde_json::json;

use crate::project::{Project, now};

use super::lock::{as_refusal, begin_edit, log_entry};
use crate::cli::context::Context;
use crate::cli::ui::console::Stream;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Edit the blackboard, or one task of it, in your editor.
///
/// You edit a copy. When you leave the editor, what you changed is merged into what others have written meanwhile, and
/// validated. Where both changed the same thing, or what you wrote is not valid, nothing is written: you are asked whether
/// to mend it, and your copy is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza edit
  EDITOR='code --wait' liza edit retry-orders
  liza edit --from .liza/state.yaml.stale-1      (merge a save that came too late)")]
pub(crate) struct Args {
    /// Only this task.
    task: Option<TaskId>,
    /// Merge this version of the blackboard, without an editor.
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    from: Option<PathBuf>,
}

/// Runs it.
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
        // An editor ends the last line; the rest of the file goes on by itself.
        let edited = if task.is_some() { edited.trim_end() } else { &edited };
        let yours = format!("{}{edited}{}", &base[..part.start], &base[part.end..]);
        match merge(project, &base, &yours, &detail, context) {
            Ok(written) => {
                copy.remove();
                return Ok(Reply::new("change applied", json!({"changed": true})).at(written));
            }
            Err(error) if wants_to_fix(&error, context) => {}
            Err(error) => {
                let kept = format!("your copy is kept in {}; liza edit begins anew", copy.path.display());
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
    // No answer is a no: nobody is there to fix anything.
    let answer = console.read_line().unwrap_or_default();
    !answer.is_empty() && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

fn part_of(project: &Project, text: &str, task: &TaskId) -> Result<Range<usize>, CommandError> {
    let state = project.store().snapshot()?;
    state.board.body(task)?;
    let odd = || {
        let message = format!("{task} cannot be cut out of the file as it is written");
        CommandError::refused("odd_layout", message).hint("liza edit, without a task")
    };
    task_range(text, task.as_str()).ok_or_else(odd)
}

/// A save that was based on an older version: what nobody else can have changed since counts, the rest stands.
fn merge_file(project: &Project, file: &Path, context: &Context) -> Result<Reply, CommandError> {
    let failed = |error: io::Error| {
        CommandError::refused("no_file", format!("cannot read {}: {error}", file.display()))
    };
    let yours = fs::read_to_string(file).map_err(failed)?;
    let ours = project.store().text()?;
    let base = infer_base(&yours, &ours).ok_or_else(|| {
        let message = format!("{} does not say which revision it was made from", file.display());
        CommandError::refused("no_revision", message).hint("liza edit, and put in by hand what is missing")
    })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let written = merge(project, &base, &yours, &format!("merged {name}"), context)?;
    if let Some(number) = name.strip_prefix("state.yaml.stale-") {
        // No longer an open matter, but still there.
        let _ = fs::rename(file, file.with_file_name(format!("state.yaml.merged-{number}")));
    }
    let text = "what nobody else had changed since was taken over; liza show TASK shows how it stands";
    Ok(Reply::new(text, json!({"changed": true})).at(written))
}

/// Merges under the lock and writes; gives the new revision.
fn merge(
    project: &Project,
    base: &str,
    yours: &str,
    detail: &str,
    context: &Context,
) -> Result<u64, CommandError> {
    let session = begin_edit(project, context, "edit")?;
    let merged = three_way_merge(base, yours, &session.text()?).map_err(|places| conflict(&places))?;
    let known = misspelled_keys(&session.path()).unwrap_or_default();
    let written = session.replace(&merged, &log_entry(context, detail)?, now()).map_err(as_refusal)?;
    context.warn_of_misspelled_keys(project, &known);
    Ok(written.0)
}

fn conflict(places: &Conflicts) -> CommandError {
    let message = format!("somebody else has changed the same meanwhile: {}", places.join(", "));
    CommandError::refused("conflict", message).exit(Exit::Inconsistent).with("places", json!(places))
}

/// The copy that a person edits. It lies beside the blackboard, so that nothing is lost with a temporary folder.
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
            let mut file = private::file_options().write(true).create(true).truncate(true).open(&path)?;
            file.write_all(format!("{text}{ended}").as_bytes())
        });
        written.map_err(|error| {
            CommandError::refused("io", format!("cannot write a copy to {}: {error}", path.display()))
        })?;
        Ok(Self { path })
    }

    fn read(&self) -> Result<String, CommandError> {
        fs::read_to_string(&self.path).map_err(|error| {
            CommandError::refused("io", format!("cannot read {}: {error}", self.path.display()))
        })
    }

    fn remove(&self) {
        // A copy too many does no harm.
        let _ = fs::remove_file(&self.path);
        let _ = self.path.parent().map(fs::remove_dir);
    }

    fn open_editor(&self, context: &Context) -> Result<(), CommandError> {
        let environment = &context.environment;
        let editor = environment.text("VISUAL").or_else(|| environment.text("EDITOR")).unwrap_or("vi");
        // By the shell, since people put options into these variables; the path is an argument, not text.
        let ended = Command::new("sh")
            .args(["-c", &format!("{editor} \"$1\""), "sh"])
            .arg(&self.path)
            .current_dir(&context.directory)
            .status();
        let message = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) if status.code() == Some(127) => {
                self.remove();
                return Err(CommandError::refused("no_program", format!("cannot run the editor {editor}"))
                    .hint("EDITOR says which editor to use")
                    .exit(Exit::Missing));
            }
            Ok(status) => format!("the editor failed ({status}); nothing was changed"),
            Err(error) => format!("cannot run the editor: {error}"),
        };
        self.remove();
        Err(CommandError::refused("editor_failed", message))
    }
}
