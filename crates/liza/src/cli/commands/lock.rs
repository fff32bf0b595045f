//! `liza lock`: reads and changes the blackboard as text, beyond the other commands.
//!
//! Every change is made under the lock and validated before it is applied.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use liza_core::model::{Actor, LogAction, LogEntry, Revision, Section};
use liza_core::protocol::manual_edit::ManualEdit;
use liza_core::text::one_line;
use liza_store::{EditSession, LOCK_HELD_ENV, StoreError, ValueSyntax};
use liza_team::project::{Project, now};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::editing_program::{not_run, not_successful, shell_or_program};
use crate::cli::input::Text;
use crate::cli::masked_addresses::MaskedAddresses;
use crate::cli::ui::console::Stream;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Read or change the blackboard itself, under its lock.
///
/// Changes are validated before they are applied. People may make any valid change; agents may set fields that Liza
/// does not know, and the notes (blocked_reason, blocked_questions, attempted) of their own task. For everything else there is a command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza lock read
  liza lock write .config.max_review_cycles 3
  liza lock write '.tasks[] | select(.id == \"task-3\") | .labels' '[api, urgent]' --yaml
  liza lock modify \"yq -i '.config.lease_duration = 600' .liza/state.yaml\"")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: LockVerb,
}

#[derive(Debug, clap::Subcommand)]
enum LockVerb {
    /// Print the blackboard, unchanged but for the addresses of webhooks.
    Read {
        /// Also print the addresses of webhooks.
        #[arg(long)]
        secrets: bool,
    },
    /// Set the value at a path: keys, [n], [], select(.key == "value"), "quoted keys".
    Write {
        /// The path.
        path: String,
        /// The value. A known field has its own type, an unknown one is text. `-` reads standard input.
        #[arg(allow_hyphen_values = true)]
        value: Text,
        /// Read the value as YAML.
        #[arg(long)]
        yaml: bool,
    },
    /// Run a command that changes .liza/state.yaml while the lock is held; the result is validated.
    ///
    /// One argument is run by `sh -c`, several are run as a program with arguments. It runs in the project's root, and
    /// LIZA_STATE names the file.
    Modify {
        /// The command.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
        command: Vec<String>,
    },
    /// Print the blackboard and its revision, for `lock modify` in a session.
    #[command(hide = true)]
    Copy,
    /// Replace the blackboard with standard input, for `lock modify` in a session.
    #[command(hide = true)]
    Apply {
        /// The revision that the text is based on.
        #[arg(long, value_name = "N")]
        at: u64,
        /// The command that changed the copy, for the log.
        #[arg(long, value_name = "CMD")]
        command: String,
    },
}

impl Args {
    pub(crate) fn modify_command(&self) -> Option<&[String]> {
        match &self.verb {
            LockVerb::Modify { command } => Some(command),
            LockVerb::Read { .. } | LockVerb::Write { .. } | LockVerb::Copy | LockVerb::Apply { .. } => None,
        }
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    match args.verb {
        LockVerb::Read { secrets } => read(secrets, context),
        LockVerb::Write { path, value, yaml } => write(&path, value, yaml, context),
        LockVerb::Modify { command } => modify(&command, context),
        LockVerb::Copy => copy(context),
        LockVerb::Apply { at, command } => apply(Revision(at), &command, context),
    }
}

fn read(secrets: bool, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let addresses = masked_addresses(&project, secrets, context)?;
    let result = match context.screen.json {
        true => json!(project.store().read_path(".")?.first()),
        false => serde_json::Value::Null,
    };
    Ok(Reply::new(addresses.mask(&project.store().text()?), addresses.mask_json(result)))
}

/// The addresses that are masked in what the caller reads: none for a person who asks for them.
pub(super) fn masked_addresses(
    project: &Project,
    secrets: bool,
    context: &Context,
) -> Result<MaskedAddresses, CommandError> {
    if secrets {
        context.human_only("--secrets")?;
        return Ok(MaskedAddresses::default());
    }
    Ok(MaskedAddresses::in_text(&project.store().text()?))
}

/// The text with the addresses that its masks mean.
pub(super) fn unmasked(project: &Project, text: String) -> Result<String, CommandError> {
    match MaskedAddresses::are_masked_in(&text) {
        true => Ok(MaskedAddresses::in_text(&project.store().text()?).unmask(&text)),
        false => Ok(text),
    }
}

fn write(path: &str, value: Text, yaml: bool, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let value = unmasked(&project, value.read_unmasked(context)?)?;
    let session = begin_edit(&project, context, "lock write")?;
    let syntax = if yaml { ValueSyntax::Yaml } else { ValueSyntax::BySchema };
    let log = log_entry(context, LogAction::Edit, &format!("lock write {path} {value}"))?;
    let edited = session.set(path, &value, syntax, &log, now()).map_err(as_refusal)?;
    context.report_notices(&edited.notices);
    context.warn_of_misspelled_keys(&edited.misspelled);
    Ok(Reply::new(format!("{path} is set"), json!({"path": path})).at(edited.revision.0))
}

fn copy(context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let session = begin_edit(&project, context, "lock modify")?;
    let (text, revision) = (session.text()?, session.revision());
    let text = MaskedAddresses::in_text(&text).mask(&text);
    Ok(Reply::new(text.clone(), json!({"text": text})).at(revision.0))
}

fn apply(at: Revision, command: &str, context: &Context) -> Result<Reply, CommandError> {
    let input = context.screen.console.read_input(u64::MAX);
    let text = input.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    let text = text.map_err(|error| CommandError::refused("bad_text", format!("standard input: {error}")))?;
    let project = context.project()?;
    let session = begin_edit(&project, context, "lock modify")?;
    if session.revision() != at {
        let message = format!("the blackboard has changed since revision {at}");
        return Err(CommandError::refused("stale_revision", message)
            .exit(Exit::Inconsistent)
            .hint("run lock modify again"));
    }
    let text = MaskedAddresses::in_text(&session.text()?).unmask(&text);
    let log = log_entry(context, LogAction::Edit, &format!("lock modify {command}"))?;
    let edited = session.replace(&text, &log, now()).map_err(as_refusal)?;
    context.report_notices(&edited.notices);
    context.warn_of_misspelled_keys(&edited.misspelled);
    Ok(Reply::new("change applied", json!({"changed": true})).at(edited.revision.0))
}

fn modify(command: &[String], context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let mut session = begin_edit(&project, context, "lock modify")?;
    let before = session.text();
    session.begin_modify(now())?;
    let copy = session.path();
    let ended = run_inside(command, &project, &copy, context);
    match ended {
        Ok(Some(status)) if status.success() => {}
        Ok(None) => {
            session.undo_modify()?;
            let message = "the command took too long and was ended: it holds the lock, and all others wait";
            return Err(
                CommandError::refused("too_slow", message).hint("prepare the change before lock modify")
            );
        }
        Ok(Some(status)) => {
            session.undo_modify()?;
            return Err(not_successful(status));
        }
        Err(error) => {
            session.undo_modify()?;
            return Err(not_run(command, &error));
        }
    }
    let before = before.unwrap_or_default();
    let after = liza_host::durable::read_text(&copy).unwrap_or_default();
    if !before.is_empty() && before == after.trim_start_matches('\u{feff}') {
        session.undo_modify()?;
        return Ok(Reply::new("nothing was changed", json!({"changed": false})));
    }
    // A command may contain the address that it replaces, and the one that it sets.
    let command = MaskedAddresses::in_text(&format!("{before}\n{after}")).mask(&command.join(" "));
    let log = log_entry(context, LogAction::Edit, &format!("lock modify {command}"))?;
    let edited = session.finish_modify(&log, now()).map_err(as_refusal)?;
    context.report_notices(&edited.notices);
    context.warn_of_misspelled_keys(&edited.misspelled);
    Ok(Reply::new("change applied", json!({"changed": true})).at(edited.revision.0))
}

/// The longest time that a command of an agent may hold the lock.
const AGENT_LIMIT: Duration = Duration::from_secs(5);

/// The time limit of the command: an agent's ends before the others give up waiting for the lock.
fn limit(project: &Project, context: &Context) -> Option<Duration> {
    if matches!(context.actor(), Ok(Actor::Human)) {
        return None;
    }
    let board = project.store().read_parts(&[Section::Config], &[]).ok();
    let config = board.and_then(|board| board.config.ready().cloned()).unwrap_or_default();
    Some(AGENT_LIMIT.min(Duration::from_secs(config.lock_timeout.0) / 2))
}

/// Waits for a command; ends it and everything that it started when its time is over.
fn wait(mut child: Child, limit: Option<Duration>) -> io::Result<Option<ExitStatus>> {
    let Some(limit) = limit else { return child.wait().map(Some) };
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may just have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()?;
    Ok(None)
}

/// Runs the command in the project's root; `None` if it took too long. A nested liza learns that the lock is
/// held, and does not wait for it.
fn run_inside(
    command: &[String],
    project: &Project,
    copy: &Path,
    context: &Context,
) -> io::Result<Option<ExitStatus>> {
    let mut child = shell_or_program(command)?;
    let console = &context.screen.console;
    // With --json, standard output belongs to the one JSON object.
    let output = if context.screen.json { Stream::Error } else { Stream::Output };
    let limit = limit(project, context);
    if limit.is_some() {
        child.process_group(0);
    }
    let child = child
        .stdin(console.for_child(Stream::Input)?)
        .stdout(console.for_child(output)?)
        .stderr(console.for_child(Stream::Error)?)
        .current_dir(project.root())
        .env(LOCK_HELD_ENV, project.folder())
        .env("LIZA_STATE", copy)
        .spawn()?;
    wait(child, limit)
}

/// If the new text cannot be read as a blackboard, the caller is at fault; the blackboard itself is unchanged.
pub(crate) fn as_refusal(error: StoreError) -> CommandError {
    if matches!(error, StoreError::Lost { .. }) {
        let message = "the command left no state.yaml, or an empty one";
        return CommandError::refused("invalid", message).hint("the blackboard is unchanged");
    }
    let broken = matches!(error, StoreError::Broken(_));
    let refusal = CommandError::from(error);
    if !broken {
        return refusal;
    }
    CommandError::refused("invalid", refusal.message).hint("the blackboard is unchanged")
}

/// `lock modify 'a shell command' --json`: options after a shell command are not part of it, so global
/// options are moved to where the parser finds them.
pub(crate) fn options_first(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = arguments.windows(2).position(|pair| pair[0] == "lock" && pair[1] == "modify") else {
        return arguments;
    };
    let line = arguments.get(at + 2).map(|line| line.to_string_lossy().contains(char::is_whitespace));
    let options = arguments.get(at + 3..).unwrap_or_default();
    let known = options.iter().all(|option| ["--json", "--quiet", "-q"].iter().any(|known| option == known));
    if line == Some(true) && known {
        let options = arguments.split_off(at + 3);
        arguments.splice(at..at, options);
    }
    arguments
}

/// Takes the lock for an edit, restricted to the caller's rights.
pub(crate) fn begin_edit<'p>(
    project: &'p Project,
    context: &Context,
    verb: &'static str,
) -> Result<EditSession<'p>, CommandError> {
    let (actor, if_revision) = (context.actor()?, context.if_revision);
    let session = project.store().begin_edit()?;
    // Not before the lock is held: a stop file may be created during the wait.
    let (now, stop_files) = (now(), project.stop_files());
    let session = session.restricted_to(ManualEdit { actor, now, stop_files, if_revision, verb });
    context.report_notices(session.notices());
    Ok(session)
}

pub(crate) fn log_entry(
    context: &Context,
    action: LogAction,
    detail: &str,
) -> Result<LogEntry, CommandError> {
    let detail = MaskedAddresses::in_text(detail).mask(detail);
    Ok(LogEntry {
        timestamp: now(),
        agent: context.actor()?.to_string(),
        action: action.name().to_owned(),
        task: None,
        // Masked before it is cut: half a secret is no longer recognized.
        detail: one_line(&context.environment.masker().mask(&detail), 200),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_after_a_shell_command_are_global_options() {
        let line = |words: &[&str]| options_first(words.iter().map(OsString::from).collect());
        assert_eq!(
            line(&["liza", "lock", "modify", "a b", "--json"]),
            ["liza", "--json", "lock", "modify", "a b"]
        );
        for own in [&["liza", "lock", "modify", "grep", "-q"][..], &["liza", "lock", "modify", "a b", "-x"]] {
            assert_eq!(line(own), own);
        }
        assert_eq!(line(&["liza", "lock", "modify"]), ["liza", "lock", "modify"]);
    }
}
