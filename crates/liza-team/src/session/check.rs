//! Code under test inside a session: in a copy of the checkout, confined again, without the session's login,
//! and unable to use its channel. The process that runs it adopts its orphans, so that all of it is found below `liza check`.

use std::ffi::OsString;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Role};
use liza_git::prepared_of;
use liza_host::{durable, private};
use liza_sandbox::confine::caches::cache_variables;
use liza_sandbox::confine::environment::{EnvironmentUse, passed_environment};
use liza_sandbox::confine::plan::Plan;
use liza_sandbox::confine::stage::{StageInput, StageOrder};
use liza_sandbox::confine::start::{NO_SPEAKER, stage_command};
use liza_sandbox::sys::family::{ProcessFamily, ProgramExit};
use liza_sandbox::sys::find_program;
use liza_sandbox::sys::remove_tree::remove_tree;

use crate::project::AGENT_ID;
use crate::session::check_copy::{CheckCopy, CopyLife};
use crate::session::check_keeper::Caller;
use crate::session::git_settings::remove_inert_git;

pub const PLAN_VARIABLE: &str = "LIZA_PLAN";

/// The commands that validate the task of a session, one on each line.
pub const VALIDATION_VARIABLE: &str = "LIZA_VALIDATION";

/// The folder of the copy, beside the caches of code under test.
const COPY: &str = "tree";

/// The longest wait for another check of the same session, and the pause between two looks.
const TURN_LIMIT: Duration = Duration::from_secs(600);
const TURN_PAUSE: Duration = Duration::from_millis(100);

/// Variables that only the session itself needs.
const OWN_VARIABLES: [&str; 4] = ["LIZA_CHANNEL", "LIZA_AGENT_ID", "LIZA_AGENT_GENERATION", PLAN_VARIABLE];

/// Runs a command in a copy of the session's checkout; returns its exit code. Nothing else comes back.
pub fn run_check(liza: &Path, command: &[OsString], caller: Option<&Caller>) -> io::Result<u8> {
    let (name, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let plan = session_plan()?;
    let here = std::env::current_dir()?;
    let checkout = match &plan {
        Some(plan) => plan.checkout.clone(),
        // Outside a session a person runs it where they are.
        None => std::env::var_os(AGENT_ID).and_then(|_| top_of(&here)),
    };
    // One after the other: they use the same place.
    let turn = private_folder().or_else(|| checkout.clone());
    let _turn = turn.map(|place| wait_for_turn(&place, TURN_LIMIT)).transpose()?;
    let scratch = OwnScratch::create()?;
    let (mut name, mut copy) = (name.clone(), None);
    if let Some(checkout) = &checkout {
        let made = make_copy(checkout, plan.as_ref())?;
        std::env::set_current_dir(made.folder(here.strip_prefix(checkout).unwrap_or(Path::new(""))))?;
        if let Ok(inside) = Path::new(&name).strip_prefix(checkout) {
            name = made.path().join(inside).into();
        }
        copy = Some(made);
    }
    let family = match plan {
        Some(plan) => {
            let plan = nested(plan, &scratch.0, copy.as_ref().map(CheckCopy::path));
            start_confined(liza, plan, &name, arguments, &scratch.0)?
        }
        None => {
            let mut command = Command::new(&name);
            let command = own(command.args(arguments), &scratch.0).stdin(stdin_of(caller));
            ProcessFamily::spawn(command, false)?
        }
    };
    caller.map_or(Ok(()), |caller| caller.watch(&family))?;
    // No process of the command is left then that could use the copy.
    Ok(match family.wait_for_all() {
        ProgramExit::Code(code) => u8::try_from(code).unwrap_or(1),
        ProgramExit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
    })
}

/// Copies the session's checkout; a review's is copied as it was set up, and from nothing each time.
fn make_copy(checkout: &Path, plan: Option<&Plan>) -> io::Result<CheckCopy> {
    let prepared = prepared_of(checkout).filter(|prepared| prepared.is_dir());
    let caches = plan.and_then(|plan| plan.check_caches.clone());
    let place = caches.unwrap_or_else(std::env::temp_dir).join(COPY);
    let life = if is_reviewer() { CopyLife::OneRun } else { CopyLife::Builds };
    CheckCopy::of(prepared.as_deref().unwrap_or(checkout), &place, life)
}

/// A folder for the temporary files of one command.
struct OwnScratch(PathBuf);

impl OwnScratch {
    fn create() -> io::Result<Self> {
        let scratch = std::env::temp_dir().join(format!("check-{}", std::process::id()));
        private::create_folder(&scratch)?;
        Ok(Self(scratch))
    }
}

impl Drop for OwnScratch {
    fn drop(&mut self) {
        let _ = remove_tree(&self.0);
    }
}

/// A folder of the session that no other session and no code under test can open, to hold its lock for ever.
fn private_folder() -> Option<PathBuf> {
    let plan = PathBuf::from(std::env::var_os(PLAN_VARIABLE)?);
    plan.parent().map(Path::to_owned)
}

/// The checkout that a folder is in.
fn top_of(folder: &Path) -> Option<PathBuf> {
    let is_top = |above: &&Path| above.parent().is_some_and(|parent| parent.ends_with(".worktrees"));
    folder.ancestors().find(is_top).map(Path::to_owned)
}

/// Waits until no other check of the session runs; the lock ends with this process. A session cannot remove
/// the folder, so it cannot remove the lock.
fn wait_for_turn(place: &Path, limit: Duration) -> io::Result<fs::File> {
    let (folder, deadline) = (fs::File::open(place)?, Instant::now() + limit);
    let mut has_said = false;
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                let minutes = limit.as_secs() / 60;
                return Err(io::Error::other(format!(
                    "another `liza check` of this session has not ended within {minutes} minutes; end it first"
                )));
            }
            Err(TryLockError::WouldBlock) => {}
        }
        if !has_said {
            eprintln!("liza: waiting until the other `liza check` of this session has ended");
            has_said = true;
        }
        thread::sleep(TURN_PAUSE);
    }
}

fn is_reviewer() -> bool {
    let agent = std::env::var(AGENT_ID).ok().and_then(|agent| agent.parse::<AgentId>().ok());
    agent.is_some_and(|agent| agent.role() == Role::CodeReviewer)
}

/// A keeper's own input is its connection to the caller.
fn stdin_of(caller: Option<&Caller>) -> Stdio {
    if caller.is_some() { Stdio::null() } else { Stdio::inherit() }
}

/// `None` if the session is not confined.
fn session_plan() -> io::Result<Option<Plan>> {
    let Some(file) = std::env::var_os(PLAN_VARIABLE) else { return Ok(None) };
    let text = durable::read_text(Path::new(&file))?;
    serde_json::from_str(&text).map(Some).map_err(io::Error::other)
}

/// Reduces a session's plan: without its private files and its checkout, and with another folder for
/// temporary files.
fn nested(mut plan: Plan, scratch: &Path, copy: Option<&Path>) -> Plan {
    let is_private = |path: &PathBuf| plan.private.iter().any(|private| path.starts_with(private));
    plan.grants.read.retain(|path| !is_private(path));
    plan.grants.write.retain(|path| !is_private(path) && Some(path) != plan.checkout.as_ref());
    plan.checkout = copy.map(Path::to_owned);
    plan.grants.write.push(scratch.to_owned());
    plan.grants.sockets.clear();
    plan.channel = None;
    plan
}

fn start_confined(
    liza: &Path,
    plan: Plan,
    name: &OsString,
    arguments: &[OsString],
    scratch: &Path,
) -> io::Result<ProcessFamily> {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let program = find_program(&text(name)).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("{} is not a program on the PATH", text(name)))
    })?;
    let (mut command, socket) = stage_command(liza)?;
    // The session has the key of its agent program in a variable.
    command.env_clear();
    command.envs(passed_environment(std::env::vars_os(), EnvironmentUse::CodeUnderTest, &plan.pass_env));
    command.env("XDG_CONFIG_HOME", scratch);
    if let Some(caches) = &plan.check_caches {
        command.envs(cache_variables(caches));
    }
    let family = ProcessFamily::spawn(own(&mut command, scratch), false)?;
    drop(command);
    let order = StageOrder {
        plan,
        minimum: None,
        program: Some(program),
        arguments: arguments.iter().map(text).collect(),
        directory: None,
        input: StageInput::Nothing,
    };
    socket.start(&order, NO_SPEAKER)?;
    Ok(family)
}

fn own<'c>(command: &'c mut Command, scratch: &Path) -> &'c mut Command {
    for name in OWN_VARIABLES {
        command.env_remove(name);
    }
    remove_inert_git(command);
    command.env("TMPDIR", scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use liza_sandbox::sys::confinement::Grants;

    /// Covers: IS-13
    #[test]
    fn a_second_check_waits_at_a_lock_that_cannot_be_deleted_and_not_for_ever() {
        let project = tempfile::tempdir().unwrap();
        let top = project.path().join(".worktrees/.review-t1");
        fs::create_dir_all(top.join("src/deep")).unwrap();
        assert_eq!((top_of(&top.join("src/deep")), top_of(project.path())), (Some(top.clone()), None));
        let first = wait_for_turn(&top, Duration::ZERO).unwrap();
        // Whatever the session deletes.
        for entry in fs::read_dir(&top).unwrap() {
            remove_tree(&entry.unwrap().path()).unwrap();
        }
        let error = wait_for_turn(&top, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("has not ended within 0 minutes; end it first"), "{error}");
        drop(first);
        wait_for_turn(&top, Duration::ZERO).unwrap();
    }

    /// Covers: IS-13
    #[test]
    fn code_under_test_gets_neither_the_login_nor_the_channel() {
        let grants = Grants {
            read: vec!["/usr".into(), "/p/.liza/prompt.md".into()],
            write: [
                "/p/.worktrees/t1",
                "/p/.liza/clients/a",
                "/p/.liza/tmp/a",
                "/p/.liza/caches/code-reviewer",
                "/p/.liza/caches/code-reviewer-check",
            ]
            .map(PathBuf::from)
            .into(),
            sockets: vec!["/run/channel".into()],
            ..Grants::default()
        };
        let private = ["clients/a", "tmp/a", "caches/code-reviewer", "prompt.md"];
        let private = private.map(|name| Path::new("/p/.liza").join(name)).to_vec();
        let check_caches = Some("/p/.liza/caches/code-reviewer-check".into());
        let channel = Some("/run/channel".into());
        let checkout = Some("/p/.worktrees/t1".into());
        let plan = Plan { grants, private, channel, check_caches, checkout, ..Plan::default() };
        let copy = Path::new("/p/.liza/caches/code-reviewer-check/tree");
        let nested = nested(plan, Path::new("/p/.liza/tmp/a/check-1"), Some(copy));
        let write = ["/p/.liza/caches/code-reviewer-check", "/p/.liza/tmp/a/check-1"].map(PathBuf::from);
        assert_eq!((nested.grants.write, nested.checkout.as_deref()), (write.into(), Some(copy)));
        assert_eq!(nested.grants.read, [PathBuf::from("/usr")]);
        assert_eq!((nested.channel, nested.grants.sockets.len()), (None, 0));
    }
}
