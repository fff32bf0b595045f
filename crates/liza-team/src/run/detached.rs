//! A team or an agent without a terminal: started in a separate session, with its lines in a file.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use liza_host::durable;

use crate::project::Project;

pub fn output_file(project: &Project) -> PathBuf {
    project.folder().join("run.out")
}

/// Starts `liza run` in the background; its output goes to [`output_file`].
pub fn start(project: &Project, program: &Path, arguments: &[String]) -> io::Result<Child> {
    start_verb(project, program, ("run", arguments), &output_file(project))
}

/// Starts a verb in the background; its output goes to this file.
pub fn start_verb(
    project: &Project,
    program: &Path,
    (verb, arguments): (&str, &[String]),
    output: &Path,
) -> io::Result<Child> {
    let output = durable::create(output)?;
    let mut command = Command::new(program);
    command.arg("-C").arg(project.root()).arg(verb).args(arguments);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()
}

/// Leaves the terminal, so that closing it doesn't end this process.
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid().map(drop).map_err(io::Error::from)
}
