//! A long page in the person's pager, as git shows a diff, on the terminal of a person's command line and
//! nowhere else.
//!
//! Only the person's own settings count: a repository's configuration could come from an agent.

use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;

use crate::cli::context::{Context, Environment};

use super::ui::console::{OwnTerminal, Stream};

/// Shows the text in the pager; false if it has to be written as usual.
pub(crate) fn show(context: &Context, text: &str) -> bool {
    let screen = &context.screen;
    let Some(terminal) = screen.console.own_terminal() else { return false };
    if screen.json || screen.quiet || context.environment.text("TERM") == Some("dumb") {
        return false;
    }
    match pager(&context.environment, own_setting) {
        Some(pager) => run(&terminal, &pager, context, &screen.printable(Stream::Output, text)),
        None => false,
    }
}

/// The pager in the order of git: for diffs, GIT_PAGER, core.pager, PAGER, less.
fn pager(environment: &Environment, setting: impl Fn(&str) -> Option<String>) -> Option<String> {
    let of_diffs = setting("pager.diff");
    let general = || {
        let named = environment.text("GIT_PAGER").map(str::to_owned);
        let named = named.or_else(|| setting("core.pager"));
        named.or_else(|| environment.text("PAGER").map(str::to_owned)).unwrap_or_else(|| "less".to_owned())
    };
    let pager = match of_diffs.as_deref() {
        Some("false" | "no" | "off" | "0") => return None,
        None | Some("true" | "yes" | "on" | "1") => general(),
        Some(named) => named.to_owned(),
    };
    Some(pager).filter(|pager| !pager.is_empty() && pager != "cat")
}

/// A setting of the person, or of the machine.
fn own_setting(name: &str) -> Option<String> {
    let read = |place: &str| {
        let output =
            Command::new("git").args(["config", place, "--includes", "--get", name]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(text.trim_end().to_owned())
    };
    read("--global").or_else(|| read("--system"))
}

fn run(terminal: &OwnTerminal, pager: &str, context: &Context, text: &str) -> bool {
    // Ctrl-C is for the pager: it must not outlive this program in the same terminal.
    let stays = signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    let mut command = Command::new("sh");
    command.args(["-c", pager]).current_dir(&context.directory);
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if context.environment.raw(name).is_none() {
            command.env(name, value);
        }
    }
    let Ok(mut child) = terminal.start(&mut command) else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A person may leave before the end.
        let _ = input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n"));
    }
    let ended = child.wait();
    if let Ok(stays) = stays {
        signal_hook::low_level::unregister(stays);
    }
    // The shell found no such program.
    ended.is_ok_and(|status| status.code() != Some(127))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-01
    #[test]
    fn the_pager_is_the_one_that_git_uses() {
        let environment = |pairs: &[(&str, &str)]| {
            Environment::default().with(pairs.iter().map(|(name, value)| (*name, Some(*value))))
        };
        let none = |_: &str| None;
        let core = |name: &str| (name == "core.pager").then(|| "delta".to_owned());
        let both = [("GIT_PAGER", "most"), ("PAGER", "more")];
        assert_eq!(pager(&environment(&[]), none).as_deref(), Some("less"));
        assert_eq!(pager(&environment(&both), core).as_deref(), Some("most"));
        assert_eq!(pager(&environment(&both[1..]), core).as_deref(), Some("delta"));
        assert_eq!(pager(&environment(&both[1..]), none).as_deref(), Some("more"));
        assert_eq!(pager(&environment(&[("PAGER", "cat")]), none), None);
        for (setting, expected) in
            [("false", None), ("true", Some("less")), ("diff-so-fancy", Some("diff-so-fancy"))]
        {
            let of_diffs = |name: &str| (name == "pager.diff").then(|| setting.to_owned());
            assert_eq!(pager(&environment(&[]), of_diffs).as_deref(), expected);
        }
    }
}
