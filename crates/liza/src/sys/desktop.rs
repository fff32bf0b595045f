//! Notifications on the desktop of whoever sits before this machine, where there is one.
//!
//! Texts are arguments of a program, never part of a script or a shell's line.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::process::ProcessTree;

/// Whether there is a desktop, and a program that can show something on it.
pub fn is_there() -> bool {
    program().is_some()
}

/// Shows a notification; gives up after `limit`.
///
/// # Errors
/// When the program cannot be run, takes too long or fails.
pub fn notify(title: &str, body: &str, urgent: bool, limit: Duration) -> io::Result<()> {
    let program = program().ok_or_else(|| io::Error::other("there is no desktop"))?;
    let mut command = Command::new(program);
    if cfg!(target_os = "macos") {
        for line in
            ["on run texts", "display notification (item 2 of texts) with title (item 1 of texts)", "end run"]
        {
            command.args(["-e", line]);
        }
        command.args(["--", title, body]);
    } else {
        let urgency = if urgent { "--urgency=critical" } else { "--urgency=normal" };
        command.args(["--app-name=liza", urgency, "--", title, &plain(body)]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match ProcessTree::spawn(&mut command)?.finish(Instant::now() + limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(format!("it ended with {status}"))),
        None => Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {limit:?}"))),
    }
}

/// The program that shows notifications, if somebody can see them.
fn program() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "macos") {
        return if set("SSH_CONNECTION") { None } else { find("osascript") };
    }
    if set("DISPLAY") || set("WAYLAND_DISPLAY") { find("notify-send") } else { None }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Desktops read markup in the body: an agent's text must not become a link or a picture.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
