//! What no agent should do, done on request: supervisors and rules are tested with it.
//!
//! Everything here is visible from outside; nothing of it needs unsafe code.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit, setsid};

use super::stage::Stage;
use super::step::{FileText, Misdeed};
use super::{Done, RehearsalError};

/// One line of a flood, with its end 1 KiB.
const LINE: usize = 1023;

/// Does it. Some of these never return.
pub(super) fn perform(stage: &Stage, misdeed: &Misdeed) -> Done {
    match misdeed {
        Misdeed::Crash => crash(stage),
        Misdeed::Hang => {
            stage.say("hangs");
            hang(false)
        }
        Misdeed::IgnoreSigterm => ignore_sigterm(stage),
        Misdeed::LeaveChildren(count) => leave_children(stage, *count),
        Misdeed::WriteOutside(file) => write_outside(stage, file),
        Misdeed::Flood(kib) => flood(*kib),
        Misdeed::OutOfRole(arguments) => call(stage, arguments, None),
        Misdeed::OldGeneration(arguments) => {
            let own = std::env::var(crate::project::AGENT_GENERATION).ok().and_then(|own| own.parse().ok());
            let old = own.map_or(0, |own: u64| own.saturating_sub(1));
            call(stage, arguments, Some(old))
        }
    }
}

fn crash(stage: &Stage) -> ! {
    stage.say("crashes");
    // A core file would be one more thing in the worktree, and not the one that was asked for.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    std::process::abort()
}

/// Never ends by itself; in a session of its own where asked to. Says on standard error when it has begun.
pub fn hang(detached: bool) -> ! {
    if detached {
        // Fails only for the leader of a process group, whose session it already is.
        let _ = setsid();
    }
    let _ = writeln!(io::stderr(), "hanging {}", std::process::id());
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Becomes a program that was started with SIGTERM ignored: that is inherited, and the only way without a handler.
fn ignore_sigterm(stage: &Stage) -> Done {
    stage.say("ignores SIGTERM");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' TERM; exec \"$0\" rehearsal --hang"]).arg(stage.program());
    Err(RehearsalError::io("run", "sh".as_ref(), shell.exec()).into())
}

/// Each child keeps our standard output open, as a forgotten server would.
fn leave_children(stage: &Stage, count: u32) -> Done {
    let program = stage.program();
    for _ in 0..count {
        let mut child = Command::new(&program)
            .args(["rehearsal", "--hang", "--detached"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| RehearsalError::io("run", &program, error))?;
        let mut ready = String::new();
        if let Some(stderr) = child.stderr.take() {
            let _ = BufReader::new(stderr).read_line(&mut ready);
        }
        stage.say(&format!("leaves child {} behind", child.id()));
    }
    Ok(())
}

fn write_outside(stage: &Stage, file: &FileText) -> Done {
    let path = stage.prompt.project.join(&file.path);
    stage.say(&format!("writes outside its tree: {}", path.display()));
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, &file.text));
    made.map_err(|error| RehearsalError::io("write", &path, error))?;
    Ok(())
}

fn flood(kib: u64) -> Done {
    let line = [&[b'x'; LINE][..], b"\n"].concat();
    let mut out = io::stdout().lock();
    for _ in 0..kib {
        // A reader that has gone is the end of the flood, not of the session.
        if out.write_all(&line).is_err() {
            break;
        }
    }
    Ok(())
}

/// Calls what it should not, and does not listen to the answer.
fn call(stage: &Stage, arguments: &[String], generation: Option<u64>) -> Done {
    let arguments: Vec<String> = arguments.iter().map(|word| stage.fill(word)).collect();
    stage.call(&arguments, "", generation)?;
    Ok(())
}
