//! Runs a program to its end and captures its output. The time limit is the supervisor's, for the session.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

pub(crate) struct Finished {
    /// The exit code; -1 for a signal.
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Finished {
    /// Returns all output, standard output first.
    pub(crate) fn output(&self) -> String {
        let text = String::from_utf8_lossy(&self.stdout) + String::from_utf8_lossy(&self.stderr);
        text.trim_end().to_owned()
    }
}

pub(crate) fn run(command: &mut Command, input: &str) -> io::Result<Finished> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input may close it early; that is not an error.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    let code = output.status.code().unwrap_or(-1);
    Ok(Finished { code, stdout: output.stdout, stderr: output.stderr })
}

/// Formats a command as a person would type it.
pub(crate) fn command_line<S: AsRef<str>>(program: &str, arguments: &[S]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=#*".contains(c);
    let quoted = |text: &str| match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("{text:?}"),
    };
    let arguments = arguments.iter().map(|argument| quoted(argument.as_ref()));
    std::iter::once(program.to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}
