//! Forbidden actions on request, to test supervisors and rules.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit, setsid};

use crate::error::{RehearsalError, StepResult};
use crate::files;
use crate::playbook::{FileContent, Misbehaviour};
use crate::session::Session;

/// The length of a flood's line without its line break.
const FLOOD_LINE: usize = 1023;

/// Some of these never return.
pub(crate) fn perform(session: &Session, it: &Misbehaviour) -> StepResult {
    match it {
        Misbehaviour::Crash => crash(session),
        Misbehaviour::Hang => {
            session.say("hangs");
            hang(false)
        }
        Misbehaviour::IgnoreSigterm => ignore_sigterm(session),
        Misbehaviour::LeaveChildren(count) => leave_children(session, *count),
        Misbehaviour::WriteOutside(file) => write_outside(session, file),
        Misbehaviour::Flood(kib) => {
            flood(*kib);
            Ok(())
        }
        Misbehaviour::OutOfRole(arguments) => call_and_ignore(session, arguments, None),
        Misbehaviour::OldGeneration(arguments) => {
            let old = session.generation.unwrap_or(0).saturating_sub(1);
            call_and_ignore(session, arguments, Some(old))
        }
    }
}

fn crash(session: &Session) -> ! {
    session.say("crashes");
    // Without a core file, which would be left in the worktree.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    std::process::abort()
}

/// Never returns. Prints its process ID on standard error first; `detached` moves it into a session of its own.
pub fn hang(detached: bool) -> ! {
    if detached {
        // Fails only for the leader of a process group, which needs no new session.
        let _ = setsid();
    }
    let _ = writeln!(io::stderr(), "hanging {}", std::process::id());
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Replaces this process by one that ignores SIGTERM. Ignored signals stay ignored across `exec`, so a shell
/// does it without unsafe code.
fn ignore_sigterm(session: &Session) -> StepResult {
    session.say("ignores SIGTERM");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' TERM; exec \"$0\" rehearsal --hang"]).arg(session.liza_path());
    Err(RehearsalError::io("run", Path::new("sh"))(shell.exec()).into())
}

/// Starts children that keep standard output open, as a forgotten server does.
fn leave_children(session: &Session, count: u32) -> StepResult {
    let program = session.liza_path();
    for _ in 0..count {
        let mut child = Command::new(&program)
            .args(["rehearsal", "--hang", "--detached"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(RehearsalError::io("run", &program))?;
        if let Some(stderr) = child.stderr.take() {
            // The first line says that the child runs.
            let _ = BufReader::new(stderr).read_line(&mut String::new());
        }
        session.say(&format!("leaves child {} behind", child.id()));
    }
    Ok(())
}

fn write_outside(session: &Session, file: &FileContent) -> StepResult {
    let path = session.prompt.project.join(&file.path);
    session.say(&format!("writes outside its worktree: {}", path.display()));
    Ok(files::write(&path, &file.text)?)
}

fn flood(kib: u64) {
    let line = [&[b'x'; FLOOD_LINE][..], b"\n"].concat();
    let mut out = io::stdout().lock();
    for _ in 0..kib {
        // A closed pipe ends the flood, not the session.
        if out.write_all(&line).is_err() {
            break;
        }
    }
}

/// Runs a `liza` command and ignores its result.
fn call_and_ignore(session: &Session, arguments: &[String], generation: Option<u64>) -> StepResult {
    let arguments: Vec<String> = arguments.iter().map(|word| session.expand(word)).collect();
    session.liza_once(&arguments, "", generation)?;
    Ok(())
}
