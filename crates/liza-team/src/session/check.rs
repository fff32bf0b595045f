//! Code under test of a session: in a copy of the checkout that `liza check` makes with the rights of the session, and outside of
//! the session, if that is confined ([`super::check_door`]).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Role};
use liza_git::{CHECK_COPY, CheckCopy, CopyLife, prepared_of, take_turn};
use liza_host::worktrees::checkout_around;
use liza_host::{durable, private};
use liza_sandbox::confine::environment::{EnvironmentUse, passed_environment};
use liza_sandbox::confine::plan::Plan;
use liza_sandbox::confine::streams::{copy_stream, send_streams};
use liza_sandbox::sys::family::{ProcessFamily, ProgramExit};
use liza_sandbox::sys::find_program;
use liza_sandbox::sys::remove_tree::remove_tree;

use crate::channel::{receive, send_message};
use crate::project::AGENT_ID;
use crate::session::check_door::{CHECK_DOOR, CheckAnswer, CheckOrder};
use crate::session::check_keeper::Caller;
use crate::session::git_settings::remove_inert_git;

pub const PLAN_VARIABLE: &str = "LIZA_PLAN";

/// The commands that validate the task of a session, one on each line.
pub const VALIDATION_VARIABLE: &str = "LIZA_VALIDATION";

/// The longest wait for another check of the same session, and the pause between two looks.
const TURN_LIMIT: Duration = Duration::from_secs(600);
const TURN_PAUSE: Duration = Duration::from_millis(100);

/// Variables that only the session itself needs.
const OWN_VARIABLES: [&str; 5] =
    ["LIZA_CHANNEL", "LIZA_AGENT_ID", "LIZA_AGENT_GENERATION", PLAN_VARIABLE, CHECK_DOOR];

/// The longest silence: code under test may run for as long as its session.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// True if this session is confined: its checks run outside of it.
pub fn is_outside() -> bool {
    std::env::var_os(PLAN_VARIABLE).is_some()
}

/// Runs a command of a confined session in a copy of its checkout and a room of its own; returns its exit code.
/// Nothing else comes back. The command ends with this process.
pub fn run_outside(command: &[OsString]) -> io::Result<u8> {
    let (name, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let file = std::env::var_os(PLAN_VARIABLE).ok_or(io::ErrorKind::NotFound)?;
    let plan: Plan =
        serde_json::from_str(&durable::read_text(Path::new(&file))?).map_err(io::Error::other)?;
    let here = std::env::current_dir()?;
    let caches = plan.check_caches.as_deref().ok_or(io::ErrorKind::NotFound)?;
    // One after the other: they use the same place. The last one may still be ending outside.
    let own = Path::new(&file).parent().unwrap_or(caches);
    let _turn = wait_for_turn(own, TURN_LIMIT)?;
    drop(wait_for_turn(caches, TURN_LIMIT)?);
    // A planner that looks at the project has no checkout of its own.
    let copied = plan.checkout.as_deref().filter(|_| plan.copied.is_none());
    let copy = copied.map(|checkout| make_copy(checkout, caches)).transpose()?;
    let top = copy.as_ref().map(CheckCopy::path).or(plan.copied.as_deref());
    let (mut name, mut directory) = (PathBuf::from(name), here.clone());
    if let (Some(top), Some(checkout)) = (top, &plan.checkout) {
        directory = folder_in(top, here.strip_prefix(checkout).unwrap_or(Path::new("")));
        std::env::set_current_dir(&directory)?;
        if let Ok(inside) = name.strip_prefix(checkout) {
            name = top.join(inside);
        }
    }
    let order = CheckOrder {
        program: program(&name)?,
        arguments: arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        directory,
        environment: environment(&plan.pass_env),
    };
    let ended = ask(&order);
    drop(copy);
    match ended? {
        CheckAnswer::Ended(code) => Ok(code),
        CheckAnswer::Failed(why) => Err(io::Error::other(why)),
    }
}

/// A program as an absolute path.
fn program(name: &Path) -> io::Result<PathBuf> {
    let text = name.to_string_lossy();
    let found = find_program(&text).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("{text} is not a program on the PATH"))
    })?;
    std::path::absolute(found)
}

/// The variables of this session that code under test gets.
fn environment(pass_env: &[String]) -> Vec<(String, String)> {
    let passed = passed_environment(std::env::vars_os(), EnvironmentUse::CodeUnderTest, pass_env);
    let mut command = Command::new("");
    without_own(command.env_clear().envs(passed));
    let text = |word: &OsStr| word.to_str().map(str::to_owned);
    command.get_envs().filter_map(|(name, value)| Some((text(name)?, text(value?)?))).collect()
}

/// Has the supervisor run the command, and copies its output, which it writes to pipes: nothing of this session is its.
fn ask(order: &CheckOrder) -> io::Result<CheckAnswer> {
    let door = std::env::var_os(CHECK_DOOR).ok_or(io::ErrorKind::NotFound)?;
    let mut connection = UnixStream::connect(door)?;
    send_message(&mut connection, order, TURN_LIMIT)?;
    let ((output, output_end), (errors, errors_end)) = (io::pipe()?, io::pipe()?);
    send_streams(&connection, [output_end.as_fd(), errors_end.as_fd()])?;
    drop((output_end, errors_end));
    let copies = [
        thread::spawn(move || copy_stream(output, io::stdout())),
        thread::spawn(move || copy_stream(errors, io::stderr())),
    ];
    let answer = receive(&mut connection, ANSWER_MAX, FOREVER)?;
    for copy in copies {
        let _ = copy.join();
    }
    Ok(answer)
}

/// The longest answer: an exit code or a reason.
const ANSWER_MAX: usize = 1 << 20;

/// Runs a command that is not confined: of a person where they are, or of a session in a copy of its checkout.
pub fn run_here(root: &Path, command: &[OsString], caller: Option<&Caller>) -> io::Result<u8> {
    let (name, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let here = std::env::current_dir()?;
    // Outside a session a person runs it where they are.
    let checkout = std::env::var_os(AGENT_ID).and_then(|_| checkout_around(root, &here));
    // One after the other: they use the same place.
    let _turn = checkout.as_deref().map(|place| wait_for_turn(place, TURN_LIMIT)).transpose()?;
    let scratch = OwnScratch::create()?;
    let (mut name, mut copy) = (name.clone(), None);
    if let Some(checkout) = &checkout {
        let made = make_copy(checkout, &std::env::temp_dir())?;
        let below = here.strip_prefix(checkout).unwrap_or(Path::new(""));
        std::env::set_current_dir(folder_in(made.path(), below))?;
        if let Ok(inside) = Path::new(&name).strip_prefix(checkout) {
            name = made.path().join(inside).into();
        }
        copy = Some(made);
    }
    let mut command = Command::new(&name);
    let command = without_own(command.args(arguments)).env("TMPDIR", &scratch.0).stdin(stdin_of(caller));
    let family = ProcessFamily::spawn(command, false)?;
    caller.map_or(Ok(()), |caller| caller.watch(&family))?;
    // No process of the command is left then that could use the copy.
    let ended = family.wait_for_all();
    drop(copy);
    Ok(match ended {
        ProgramExit::Code(code) => u8::try_from(code).unwrap_or(1),
        ProgramExit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
    })
}

/// Copies the session's checkout; a review's is copied as it was set up, and from nothing each time.
fn make_copy(checkout: &Path, place: &Path) -> io::Result<CheckCopy> {
    let prepared = prepared_of(checkout).filter(|prepared| prepared.is_dir());
    let place = place.join(CHECK_COPY);
    let life = if is_reviewer() { CopyLife::OneRun } else { CopyLife::Builds };
    CheckCopy::of(prepared.as_deref().unwrap_or(checkout), &place, life)
}

/// The folder of a copy for one of the checkout; its top if the copy has no such folder.
fn folder_in(top: &Path, below: &Path) -> PathBuf {
    let folder = top.join(below);
    if folder.is_dir() { folder } else { top.to_owned() }
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

/// Waits until no other check of the session runs; the lock ends with this process. A session cannot remove
/// the folder, so it cannot remove the lock.
fn wait_for_turn(place: &Path, limit: Duration) -> io::Result<File> {
    let deadline = Instant::now() + limit;
    let mut has_said = false;
    loop {
        if let Some(turn) = take_turn(place)? {
            return Ok(turn);
        }
        if Instant::now() >= deadline {
            let minutes = limit.as_secs() / 60;
            return Err(io::Error::other(format!(
                "another `liza check` of this session has not ended within {minutes} minutes; end it first"
            )));
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

/// Takes away the variables that only the session itself needs.
fn without_own(command: &mut Command) -> &mut Command {
    for name in OWN_VARIABLES {
        command.env_remove(name);
    }
    remove_inert_git(command);
    command
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Covers: IS-13
    #[test]
    fn a_second_check_waits_at_a_lock_that_cannot_be_deleted_and_not_for_ever() {
        let project = tempfile::tempdir().unwrap();
        let top = project.path().join(".review-t1");
        fs::create_dir_all(top.join("src/deep")).unwrap();
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
}
