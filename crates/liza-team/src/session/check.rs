//! Code under test inside a session: confined again, without the session's login, and unable to use its
//! channel. The process that runs it adopts its orphans, so that all of it is found below `liza check`.

use std::ffi::OsString;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Role};
use liza_host::{durable, private};
use liza_sandbox::confine::caches::cache_variables;
use liza_sandbox::confine::environment::{EnvironmentUse, passed_environment};
use liza_sandbox::confine::plan::Plan;
use liza_sandbox::confine::stage::{StageInput, StageOrder};
use liza_sandbox::confine::start::{NO_SPEAKER, stage_command};
use liza_sandbox::sys::family::{ProcessFamily, ProgramExit};
use liza_sandbox::sys::find_program;
use liza_sandbox::sys::remove_tree::remove_tree;
use liza_sandbox::sys::untrusted::{UntrustedFolder, take_rights};

use crate::project::AGENT_ID;
use crate::session::check_keeper::Caller;
use crate::session::git_settings::remove_inert_git;
use crate::session::nested_repositories::remove_nested_repositories;
use crate::session::repository_guard::{GuardExtent, RepositoryGuard};
use crate::session::settings_guard::SettingsGuard;

pub const PLAN_VARIABLE: &str = "LIZA_PLAN";

/// The longest wait for another check of the same session, and the pause between two looks.
const TURN_LIMIT: Duration = Duration::from_secs(600);
const TURN_PAUSE: Duration = Duration::from_millis(100);

/// Variables that only the session itself needs.
const OWN_VARIABLES: [&str; 4] = ["LIZA_CHANNEL", "LIZA_AGENT_ID", "LIZA_AGENT_GENERATION", PLAN_VARIABLE];

#[derive(Debug)]
pub struct CheckEnd {
    pub code: u8,
    /// Files that it had changed in the repository of the checkout.
    pub restored: Vec<PathBuf>,
}

/// Runs a command. In a review, new files that `is_setting` are removed.
pub fn run_check(
    liza: &Path,
    command: &[OsString],
    caller: Option<&Caller>,
    is_setting: fn(&Path) -> bool,
) -> io::Result<CheckEnd> {
    let (name, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let plan = session_plan()?;
    // Outside a session a person may change their repository at the same time. Wherever the command starts,
    // it can write to the checkout.
    let checkout = plan.as_ref().and_then(|plan| plan.checkout.clone());
    let folder = checkout.or_else(|| std::env::current_dir().ok());
    let folder = folder.filter(|_| std::env::var_os(AGENT_ID).is_some());
    // A second one would remember, and restore, the changes of the first one.
    let place = |folder: &Path| private_folder().unwrap_or_else(|| top_of(folder).to_owned());
    let _turn = folder.as_deref().map(|folder| wait_for_turn(&place(folder), TURN_LIMIT)).transpose()?;
    let scratch = std::env::temp_dir().join(format!("check-{}", std::process::id()));
    private::create_folder(&scratch)?;
    let extent = if is_reviewer() { GuardExtent::Everything } else { GuardExtent::Settings };
    let reviewed = plan.as_ref().and_then(|plan| plan.checkout.clone());
    let written = plan.as_ref().map_or_else(|| vec!["/".into()], |plan| plan.grants.write.clone());
    let reviewed = reviewed.filter(|_| extent == GuardExtent::Everything);
    let guards = Guards {
        settings: reviewed.as_deref().map(|top| SettingsGuard::of(top, is_setting)).transpose()?,
        repositories: folder.map(|folder| RepositoryGuard::around(&folder, extent)).unwrap_or_default(),
        reviewed,
        written,
    };
    let family = match plan {
        Some(plan) => start_confined(liza, nested(plan, &scratch), name, arguments, &scratch),
        None => ProcessFamily::spawn(
            own(Command::new(name).args(arguments), &scratch).stdin(stdin_of(caller)),
            false,
        ),
    };
    let exit = family.and_then(|family| {
        caller.map_or(Ok(()), |caller| caller.watch(&family))?;
        Ok(family.wait_for_all())
    });
    // No process of the command is left that could change it again.
    let restored = guards.restore();
    let _ = remove_tree(&scratch);
    let code = match exit? {
        ProgramExit::Code(code) => u8::try_from(code).unwrap_or(1),
        ProgramExit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
    };
    Ok(CheckEnd { code, restored: restored? })
}

/// The parts that are restored after a command.
#[derive(Debug)]
struct Guards {
    /// The checkout of a review.
    reviewed: Option<PathBuf>,
    /// The settings of agent programs, in a review.
    settings: Option<SettingsGuard>,
    repositories: Vec<RepositoryGuard>,
    /// The folders that the command could write.
    written: Vec<PathBuf>,
}

impl Guards {
    /// Restores everything; other repositories below a checkout of a review are removed. If that fails, the
    /// checkout's repository is removed, so that no verdict is possible.
    fn restore(&self) -> io::Result<Vec<PathBuf>> {
        self.restore_all().map_err(|error| {
            let _ = self.reviewed.as_ref().map(|checkout| remove_tree(&checkout.join(".git")));
            io::Error::other(format!("the checkout cannot be used any more, end this session: {error}"))
        })
    }

    fn restore_all(&self) -> io::Result<Vec<PathBuf>> {
        let mut restored = Vec::new();
        if let Some(checkout) = &self.reviewed {
            take_rights(&UntrustedFolder::open(checkout)?);
            restored.extend(remove_nested_repositories(checkout, &self.repositories, &self.written)?);
        }
        for guard in &self.repositories {
            restored.extend(guard.restore()?);
        }
        if let Some(settings) = &self.settings {
            restored.extend(settings.restore(|_| false)?);
        }
        Ok(restored)
    }
}

/// A folder of the session that no other session and no code under test can open, to hold its lock for ever.
fn private_folder() -> Option<PathBuf> {
    let plan = PathBuf::from(std::env::var_os(PLAN_VARIABLE)?);
    plan.parent().map(Path::to_owned)
}

fn top_of(folder: &Path) -> &Path {
    let is_top = |above: &&Path| above.parent().is_some_and(|parent| parent.ends_with(".worktrees"));
    folder.ancestors().find(is_top).unwrap_or(folder)
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

/// Reduces a session's plan: without its private files, and with another folder for temporary files.
fn nested(mut plan: Plan, scratch: &Path) -> Plan {
    let is_private = |path: &PathBuf| plan.private.iter().any(|private| path.starts_with(private));
    plan.grants.read.retain(|path| !is_private(path));
    plan.grants.write.retain(|path| !is_private(path));
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
        assert_eq!(top_of(&top.join("src/deep")), top);
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
    fn a_checkout_that_cannot_be_restored_ends_the_review() {
        let project = tempfile::tempdir().unwrap();
        let top = project.path().join(".worktrees/.review-t1");
        fs::create_dir_all(top.join(".git/hooks")).unwrap();
        fs::write(top.join(".git/hooks/x"), "ours").unwrap();
        let repositories = RepositoryGuard::around(&top, GuardExtent::Everything);
        let written = Vec::new();
        let guards = Guards { reviewed: Some(top.clone()), settings: None, repositories, written };
        assert_eq!(guards.restore().unwrap(), Vec::<PathBuf>::new());
        // Nothing can be made below a file.
        fs::remove_dir_all(&top).unwrap();
        fs::write(&top, "").unwrap();
        let guards = Guards { reviewed: None, ..guards };
        let error = guards.restore().unwrap_err().to_string();
        assert!(error.contains("cannot be used any more") && error.contains("cannot restore"), "{error}");
        fs::remove_file(&top).unwrap();
        fs::create_dir(&top).unwrap();
        fs::write(top.join(".git"), "").unwrap();
        std::os::unix::fs::symlink(&top, project.path().join("link")).unwrap();
        let guards = Guards { reviewed: Some(project.path().join("link")), ..guards };
        guards.restore().unwrap_err();
        assert!(!top.join(".git").exists(), "no verdict is possible");
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
        let plan = Plan { grants, private, channel, check_caches, ..Plan::default() };
        let nested = nested(plan, Path::new("/p/.liza/tmp/a/check-1"));
        let write = ["/p/.worktrees/t1", "/p/.liza/caches/code-reviewer-check", "/p/.liza/tmp/a/check-1"];
        let write = write.map(PathBuf::from);
        assert_eq!(nested.grants.write, write);
        assert_eq!(nested.grants.read, [PathBuf::from("/usr")]);
        assert_eq!((nested.channel, nested.grants.sockets.len()), (None, 0));
    }
}
