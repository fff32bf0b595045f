//! A program in a tmux session of its own.

use std::process::Command;

use crate::support::TestProject;
use crate::support::process::wait_for;

/// A terminal with a program in it; ended with the test.
pub(crate) struct Tmux<'p> {
    project: &'p TestProject,
}

impl<'p> Tmux<'p> {
    /// Starts a shell command in a terminal of that size.
    pub(crate) fn start(project: &'p TestProject, size: (u16, u16), line: &str) -> Self {
        let tmux = Self { project };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        // The status line would take a row.
        project.write("../tmux.conf", "set -g status off\n");
        tmux.run(&["new-session", "-d", "-x", &columns, "-y", &rows, line]);
        tmux
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.project.command("tmux");
        let config = self.project.home().join("tmux.conf");
        command.env("TMUX_TMPDIR", self.project.home()).env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        command.args(["-u", "-L", "screen", "-f"]).arg(config).args(words);
        command
    }

    /// Runs a tmux command; returns what it prints.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> String {
        self.project.run(&mut self.command(words)).ok().to_owned()
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits until the screen shows that text; returns the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        wait_for(&format!("{text:?} on the screen"), || {
            let screen = self.screen();
            screen.contains(text).then_some(screen)
        })
    }

    /// Waits until the screen no longer shows that text.
    #[track_caller]
    pub(crate) fn wait_until_gone(&self, text: &str) -> String {
        wait_for(&format!("{text:?} gone from the screen"), || {
            let screen = self.screen();
            (!screen.contains(text)).then_some(screen)
        })
    }

    /// Presses keys by their tmux names.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub(crate) fn enter_text(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Pastes a text as a terminal does, in brackets.
    pub(crate) fn paste(&self, text: &str) {
        self.run(&["set-buffer", text]);
        self.run(&["paste-buffer", "-p"]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// A format of tmux for the pane, such as `#{alternate_on}`.
    pub(crate) fn pane(&self, format: &str) -> String {
        self.run(&["display-message", "-p", format]).trim().to_owned()
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}
