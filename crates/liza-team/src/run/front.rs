//! A team with a screen runs in a process of its own; the process that the person's shell waits for only waits for it. So the
//! team can go on, sessions and all, when the person wants the terminal back.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, getppid, kill_process};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use liza_host::durable;

use crate::project::Project;

use super::detached::{leave_terminal, output_file};

/// The variable that names the process that waits for a team.
pub const FRONT: &str = "LIZA_FRONT";

/// How the wait for a team has ended.
#[derive(Debug)]
pub enum FrontEnd {
    Ended(ExitStatus),
    /// The team goes on without the terminal.
    Detached,
}

/// Runs this command as the team's process, and waits until it has ended or left the terminal.
pub fn run(mut team: Command) -> io::Result<FrontEnd> {
    // Before the team starts, so that its end is not missed.
    let mut signals = Signals::new([SIGCHLD, SIGUSR1, SIGTERM, SIGINT, SIGHUP])?;
    let mut team = team.env(FRONT, std::process::id().to_string()).spawn()?;
    for signal in signals.forever() {
        match signal {
            SIGUSR1 => return Ok(FrontEnd::Detached),
            SIGTERM => {
                if let Some(team) = i32::try_from(team.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process(team, Signal::TERM);
                }
            }
            // The others come from the terminal, which sends them to the team too.
            _ => {
                if let Some(ended) = team.try_wait()? {
                    return Ok(FrontEnd::Ended(ended));
                }
            }
        }
    }
    team.wait().map(FrontEnd::Ended)
}

/// The process that waits for this one, given the value of [`FRONT`].
pub fn waiting(value: Option<&str>) -> Option<Pid> {
    let named = Pid::from_raw(value?.parse().ok()?);
    getppid().filter(|parent| Some(*parent) == named)
}

/// Leaves the terminal to the process that waits for this one, after a last text. What this process prints from now on goes
/// to [`output_file`].
pub fn detach(project: &Project, front: Pid, text: &str) -> io::Result<()> {
    let output = durable::create(&output_file(project))?;
    let nothing = File::open(Path::new("/dev/null"))?;
    leave_terminal()?;
    let _ = writeln!(io::stdout(), "{text}");
    dup2_stdin(&nothing)?;
    dup2_stdout(&output)?;
    dup2_stderr(&output)?;
    kill_process(front, Signal::USR1).map_err(io::Error::from)
}
