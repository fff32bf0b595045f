//! The output and the end of a git command.

#[derive(Debug)]
pub struct GitOutput {
    /// `None` when a signal ended it.
    pub status: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The reason why a program of the repository's configuration did not run.
    pub advice: Option<String>,
}

impl GitOutput {
    /// Git's own message: standard error, or standard output where that is empty.
    pub fn message(&self) -> String {
        let message = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        match String::from_utf8_lossy(message.trim_ascii()) {
            // The limit of a file's size ends a program without a word.
            nothing if nothing.is_empty() && self.status.is_none() => "a signal ended git".to_owned(),
            said => said.into_owned(),
        }
    }

    /// True if another git was in the way: it held a lock, or removed its worktree during a listing.
    pub(crate) fn was_disturbed(&self) -> bool {
        let message = String::from_utf8_lossy(&self.stderr);
        let locked = message.contains("Unable to create '") && message.contains(".lock': File exists");
        let vanished = message.contains("/worktrees/")
            && ["Invalid path '", "failed to read "].iter().any(|part| message.contains(part));
        self.status != Some(0) && (locked || vanished || message.contains("could not lock config file"))
    }
}
