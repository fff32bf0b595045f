//! Desktop notifications. Texts are arguments of a program, never part of a script or a shell line.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::family::ScopedFamily;
use super::find_program;

/// True if there is a desktop and a program that shows notifications.
pub fn is_available() -> bool {
    notifier().is_some()
}

/// Shows a notification; stops waiting after `limit`.
pub fn notify(title: &str, body: &str, urgent: bool, limit: Duration) -> io::Result<()> {
    let program = notifier().ok_or_else(|| io::Error::other("this machine has no desktop"))?;
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
        command.args(["--app-name=liza", urgency, "--", title, &without_markup(body)]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match ScopedFamily::spawn(&mut command)?.finish(Instant::now() + limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(format!("the notifier failed: {status}"))),
        None => {
            let message = format!("the notifier took longer than {limit:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        }
    }
}

fn notifier() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "macos") {
        return if set("SSH_CONNECTION") { None } else { find_program("osascript") };
    }
    if set("DISPLAY") || set("WAYLAND_DISPLAY") { find_program("notify-send") } else { None }
}

/// Desktops interpret markup in the body: text from an agent must not become a link or a picture.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
