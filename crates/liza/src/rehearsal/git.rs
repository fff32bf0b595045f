//! Git as an agent uses it: in its worktree, with the user's own identity.

use std::path::PathBuf;

use super::RehearsalError;
use super::stage::{Called, Stage, line};
use crate::git::{Git, GitCommand, GitError, GitOutput};

impl Stage {
    /// Runs git where the work is; it has to succeed.
    pub(super) fn git(&self, arguments: &[&str]) -> Result<String, RehearsalError> {
        Ok(self.git_call(arguments).read_text()?)
    }

    /// The same, told to whoever listens, and its answer is the caller's to judge.
    pub(super) fn try_git(&self, arguments: &[&str]) -> Result<GitOutput, GitError> {
        let reply = self.git_call(arguments).run()?;
        let words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let called = Called { code: reply.status.unwrap_or(-1), words: reply.message() };
        self.told(&line("git", &words), &called);
        Ok(reply)
    }

    fn git_call(&self, arguments: &[&str]) -> GitCommand {
        Git::new().command("playing a scene", self.place()).args(arguments)
    }

    /// Whether git knows that name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.git_call(&["rev-parse", "--quiet", "--verify", name]).run().is_ok_and(|it| it.status == Some(0))
    }

    /// The commit that the worktree is at.
    pub(super) fn head(&self) -> Result<String, RehearsalError> {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits everything; says whether there was anything.
    pub(super) fn commit_all(&self, message: &[&str]) -> Result<bool, RehearsalError> {
        self.git(&["add", "--all"])?;
        if self.git(&["status", "--porcelain"])?.is_empty() && !self.knows("MERGE_HEAD") {
            return Ok(false);
        }
        let arguments = [&["commit", "--quiet"], message].concat();
        let reply = self.try_git(&arguments)?;
        match reply.status {
            Some(0) => Ok(true),
            status => Err(RehearsalError::Failed {
                command: "git commit".to_owned(),
                code: status.unwrap_or(-1),
                words: reply.message(),
            }),
        }
    }

    /// The files that git names, one for each NUL.
    pub(super) fn git_files(&self, arguments: &[&str]) -> Result<Vec<String>, RehearsalError> {
        let answer = self.git(arguments)?;
        Ok(answer.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// The whole change, whatever is in it.
    pub(super) fn try_diff(&self, range: &str) -> Result<Vec<u8>, RehearsalError> {
        Ok(self.git_call(&["diff", range]).read()?)
    }

    /// A path of the playbook inside the worktree.
    pub(super) fn inside(&self, path: &std::path::Path) -> Result<PathBuf, RehearsalError> {
        use std::path::Component;
        let path = PathBuf::from(self.fill(&path.to_string_lossy()));
        let harmless = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        match path.components().all(harmless) {
            true => Ok(self.place().join(path)),
            false => Err(RehearsalError::Outside(path)),
        }
    }
}
