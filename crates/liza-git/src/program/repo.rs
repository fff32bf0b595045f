//! The repository of a project: its place, its branches, and their checkouts. Changes only the list of
//! excluded files and, on request, a branch.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use liza_host::worktrees::{self, WORKTREES};
use liza_ids::{Sha, TaskId};
use liza_sandbox::confine::RoomRules;

use crate::program::accepted_programs::AcceptedPrograms;
use crate::program::command::{Git, GitCommand};
use crate::program::error::GitError;
use crate::program::known_answers::KnownAnswers;
use crate::program::known_settings::KnownSettings;
use crate::program::programs::Overrides;
use crate::program::refs::{Branch, RESERVED};
use crate::program::room::{Room, RoomUse};

/// The old value of a reference that must not exist yet, for hashes of any length.
pub(crate) const NO_COMMIT: &str = "";

pub(crate) const EXCLUDING: &str = "excluding files from git";

#[derive(Debug, Clone)]
pub struct Repo {
    git: Git,
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    accepted: Arc<AcceptedPrograms>,
    rules: Arc<RoomRules>,
    known: Arc<KnownAnswers>,
    known_settings: Arc<KnownSettings>,
    name: Arc<OnceLock<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub commit: Sha,
    /// `None` when HEAD is detached.
    pub branch: Option<String>,
}

struct Location {
    git_dir: PathBuf,
    common_dir: PathBuf,
    root: PathBuf,
}

impl Repo {
    /// Opens the repository of the project that contains `from`, which may be inside a task's worktree.
    pub fn open(git: &Git, from: &Path) -> Result<Self, GitError> {
        let real = from.canonicalize().unwrap_or_else(|_| from.to_owned());
        if real.as_os_str().as_bytes().contains(&b'\n') {
            return Err(GitError::LineBreakInPath { path: real });
        }
        for (project, folder) in projects_around(&real) {
            let Ok(place) = locate(git, &project) else { continue };
            let repo = Self::at(git, place);
            // The folder names may be a coincidence: it is the project only if the checkout is one of its own.
            if same_path(repo.root(), &project) && repo.is_checkout_of(&folder) {
                return Ok(repo);
            }
        }
        Ok(Self::at(git, locate(git, from)?))
    }

    fn at(git: &Git, place: Location) -> Self {
        let Location { git_dir, common_dir, root } = place;
        let accepted = AcceptedPrograms::of(git.home(), &common_dir, &root);
        let rules = Arc::new(RoomRules::default());
        let (accepted, known) = (Arc::new(accepted), Arc::default());
        let known_settings = Arc::new(git.known_settings(&root, &git_dir, &common_dir));
        let name = Arc::default();
        Self { git: git.clone(), root, git_dir, common_dir, accepted, rules, known, known_settings, name }
    }

    /// Confines git on agents' files by these rules.
    pub fn with_room_rules(mut self, rules: RoomRules) -> Self {
        self.rules = Arc::new(rules);
        self
    }

    /// True if a folder is a checkout that Liza made for this project, with its own repository or linked.
    fn is_checkout_of(&self, folder: &Path) -> bool {
        if self.is_own_checkout(folder) {
            return true;
        }
        let link = fs::read_to_string(folder.join(".git")).unwrap_or_default();
        let place = link.trim_end().strip_prefix("gitdir: ").map(Path::new);
        place.is_some_and(|place| place.starts_with(self.common_dir.join("worktrees")))
    }

    pub fn accepted(&self) -> &AcceptedPrograms {
        &self.accepted
    }

    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The top of the project's checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The folder that all worktrees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The folder with the checkouts of agents, below the root or outside.
    pub fn worktrees_folder(&self) -> PathBuf {
        worktrees::worktrees_folder(&self.root)
    }

    pub fn worktree_path(&self, task: &TaskId) -> PathBuf {
        self.worktrees_folder().join(task.as_str())
    }

    pub(crate) fn command_in(&self, action: impl Into<String>, folder: &Path) -> GitCommand {
        let command = self.git.command(action, folder).accepting(Arc::clone(&self.accepted));
        command.knowing(Arc::clone(&self.known_settings))
    }

    /// The output of `git config --list --show-scope -z` in the project's root.
    pub(crate) fn settings(&self) -> Result<Vec<u8>, GitError> {
        Ok(self.command("reading the configuration").settings()?.list)
    }

    /// A git command that runs in the project's root.
    pub fn command(&self, action: impl Into<String>) -> GitCommand {
        self.command_in(action, &self.root)
    }

    /// The answer to a question about objects, named by their whole hashes, that this process may have asked before.
    pub(crate) fn ask(&self, question: &GitCommand) -> Result<Vec<u8>, GitError> {
        question.read_known(&self.known)
    }

    /// The random name of the project, once this process has read it.
    pub(crate) fn known_name(&self) -> &OnceLock<String> {
        &self.name
    }

    /// It may be a link.
    pub(crate) fn objects_folder(&self) -> PathBuf {
        let objects = self.common_dir.join("objects");
        objects.canonicalize().unwrap_or(objects)
    }

    /// A room for git that reads agents' files.
    pub fn room(&self, writable: impl Into<Vec<PathBuf>>) -> Arc<Room> {
        self.room_for(RoomUse::Reading, writable)
    }

    pub(crate) fn room_for(&self, used_for: RoomUse, writable: impl Into<Vec<PathBuf>>) -> Arc<Room> {
        let (root, git) = (self.root.clone(), self.common_dir.clone());
        Arc::new(Room { used_for, root, git, writable: writable.into(), rules: Arc::clone(&self.rules) })
    }

    pub fn head(&self) -> Result<Head, GitError> {
        let command =
            self.command("reading HEAD").args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let output = command.run()?;
        if output.status != Some(0) {
            return Err(GitError::NoCommits { path: self.root.clone() });
        }
        let commit = sha(&output.stdout).ok_or_else(|| command.unexpected(&output.stdout))?;
        let symbolic =
            self.command("reading HEAD").args(["symbolic-ref", "--quiet", "--short", "HEAD"]).run()?;
        let name = String::from_utf8_lossy(symbolic.stdout.trim_ascii()).into_owned();
        Ok(Head { commit, branch: (symbolic.status == Some(0)).then_some(name) })
    }

    /// The full hash of a commit, which may be abbreviated.
    pub fn resolve(&self, commit: &Sha) -> Result<Sha, GitError> {
        let unknown = |message: String| GitError::UnknownCommit { name: commit.to_string(), message };
        let command = self
            .command("looking up a commit")
            .args(["rev-parse", "--verify"])
            .arg(format!("{commit}^{{commit}}"));
        let output = command.run()?;
        if output.status != Some(0) {
            return Err(unknown(output.message()));
        }
        let found = sha(&output.stdout).ok_or_else(|| command.unexpected(&output.stdout))?;
        // A branch or tag may have the abbreviated hash as its name, and git would prefer it.
        if found.names_same_commit(commit) {
            Ok(found)
        } else {
            Err(unknown("a branch or tag has that name".into()))
        }
    }

    pub fn full_hash(&self, commit: &Sha) -> Result<Sha, GitError> {
        if commit.is_full() { Ok(commit.clone()) } else { self.resolve(commit) }
    }

    /// `None` when there is no such branch.
    pub fn tip(&self, branch: &Branch) -> Result<Option<Sha>, GitError> {
        let name = format!("{}^{{commit}}", branch.full());
        let command = self.command(format!("reading branch {branch}"));
        let command = command.args(["rev-parse", "--verify", "--quiet", &name]);
        let output = command.run()?;
        match output.status {
            Some(0) => sha(&output.stdout).map(Some).ok_or_else(|| command.unexpected(&output.stdout)),
            Some(1) => Ok(None),
            _ => Err(command.failed(&output)),
        }
    }

    pub fn has_commit(&self, commit: &Sha) -> Result<bool, GitError> {
        let command = self.command("looking up a commit").args(["cat-file", "-e"]);
        Ok(command.arg(format!("{commit}^{{commit}}")).run()?.status == Some(0))
    }

    /// True if `ancestor` is `commit` or one of its ancestors.
    pub fn is_ancestor(&self, ancestor: &Sha, commit: &Sha) -> Result<bool, GitError> {
        let command = self.command("comparing commits").args(["merge-base", "--is-ancestor"]);
        let command = command.args([ancestor.as_str(), commit.as_str()]);
        let output = command.run()?;
        match output.status {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(command.failed(&output)),
        }
    }

    /// The number of commits in `to` that are not in `from`: the drift of a branch since a base.
    pub fn count_commits(&self, from: &Sha, to: &Sha) -> Result<u64, GitError> {
        let range = format!("{from}..{to}");
        let command = self.command("counting commits").args(["rev-list", "--count", &range, "--"]);
        let output = command.read_text()?;
        output.parse().map_err(|_| command.unexpected(output.as_bytes()))
    }

    /// The commits that `to` has and `from` does not, newest first, one line each with hash, author and subject.
    pub fn list_commits(&self, from: &Sha, to: &Sha) -> Result<Vec<String>, GitError> {
        let range = format!("{from}..{to}");
        let format = "--format=%h %an: %s";
        let command = self.command("listing commits").args(["log", "--max-count=20", format, &range, "--"]);
        Ok(command.read_text()?.lines().map(str::to_owned).collect())
    }

    /// Creates a branch at a commit; false if there is already one of that name.
    pub fn create_branch(&self, branch: &Branch, at: &Sha) -> Result<bool, GitError> {
        if self.tip(branch)?.is_some() {
            return Ok(false);
        }
        match self.update_ref(&branch.full(), at.as_str(), NO_COMMIT, "liza: create") {
            Ok(()) => Ok(true),
            // Another process was faster.
            Err(error) => self.tip(branch)?.map(|_| false).ok_or(error),
        }
    }

    /// Deletes a branch that still points to `at`, so that a newer commit is not lost.
    pub fn delete_branch(&self, branch: &Branch, at: &Sha) -> Result<(), GitError> {
        let command = self.command(format!("deleting branch {branch}"));
        command.args(["update-ref", "-d", "--", &branch.full(), at.as_str()]).check()
    }

    pub fn blocking_branch(&self) -> Result<Option<&'static str>, GitError> {
        for name in RESERVED {
            if self.has_ref(&format!("refs/heads/{name}"))? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn has_ref(&self, name: &str) -> Result<bool, GitError> {
        let command =
            self.command("looking for a branch").args(["show-ref", "--verify", "--quiet", "--", name]);
        Ok(command.run()?.status == Some(0))
    }

    /// True if `git replace` shows some object as another one; Liza itself ignores that.
    pub fn has_replacements(&self) -> Result<bool, GitError> {
        let command =
            self.command("looking for replacements").args(["for-each-ref", "--count=1", "refs/replace/"]);
        Ok(!command.read()?.is_empty())
    }

    /// The repository's own settings that name a program; Liza does not run them.
    pub fn ignored_programs(&self) -> Result<Vec<String>, GitError> {
        let output = self.settings()?;
        let accepted = self.accepted.read();
        Ok(Overrides::parse(&output, |setting, local| !local || self.accepted.may_run(setting, &accepted))
            .ignored)
    }

    /// Moves a reference that is still at `old`.
    pub(crate) fn update_ref(&self, name: &str, new: &str, old: &str, reason: &str) -> Result<(), GitError> {
        let command =
            self.command(format!("moving {name}")).args(["update-ref", "-m", reason, "--", name, new, old]);
        command.check()
    }

    /// Adds patterns to this repository's own ignore list, not to the project's; false if all were present.
    pub fn exclude(&self, patterns: &[&str]) -> Result<bool, GitError> {
        let (file, old) = self.exclude_file()?;
        let missing = patterns.iter().filter(|pattern| !old.lines().any(|line| line == **pattern));
        let lines: String = missing.map(|pattern| format!("{pattern}\n")).collect();
        if lines.is_empty() {
            return Ok(false);
        }
        let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
        let append = || {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(&file)?
                .write_all(format!("{gap}{lines}").as_bytes())
        };
        append().map(|()| true).map_err(|error| GitError::io(EXCLUDING, &file, error))
    }

    /// True if all these patterns are in the repository's list of ignored files.
    pub fn excludes(&self, patterns: &[&str]) -> Result<bool, GitError> {
        let (_, old) = self.exclude_file()?;
        Ok(patterns.iter().all(|pattern| old.lines().any(|line| line == *pattern)))
    }

    pub fn is_ignored(&self, path: &Path) -> Result<bool, GitError> {
        let command = self.command("checking what git ignores").args(["check-ignore", "-q", "--"]).arg(path);
        let output = command.run()?;
        match output.status {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(command.failed(&output)),
        }
    }

    pub(crate) fn exclude_file(&self) -> Result<(PathBuf, String), GitError> {
        let command = self.command(EXCLUDING).args(["rev-parse", "--path-format=absolute"]);
        let file = self.root.join(command.args(["--git-path", "info/exclude"]).read_text()?);
        match fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((file, String::new())),
            Err(error) => Err(GitError::io(EXCLUDING, &file, error)),
            Ok(text) => Ok((file, text)),
        }
    }

    /// The words that tracked files contain, once for each place.
    pub fn words_in_files(&self, words: &[&str]) -> Result<Vec<String>, GitError> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let command = self.command("searching the files").args(["grep", "-I", "-h", "-o", "-w", "-F"]);
        let words = words.iter().flat_map(|word| ["-e", word]);
        // Exits with 1 where there is none.
        let output = command.args(words).run()?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }

    /// The names of the remotes, each with the address to which it is pushed.
    pub fn remotes(&self) -> Result<Vec<(String, String)>, GitError> {
        let command = self.command("listing the remotes").args(["config", "-z", "--get-regexp"]);
        let output = command.arg("^remote\\..*\\.(push)?url$").run()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let entry = |entry: &str| {
            let (key, address) = entry.split_once('\n')?;
            let name = key.strip_prefix("remote.")?.rsplit_once('.')?.0;
            Some((name.to_owned(), address.to_owned()))
        };
        // Exits with 1 where there is none.
        Ok(text.split('\0').filter_map(entry).collect())
    }

    /// The name and email address with which git commits here.
    pub fn identity(&self) -> Result<String, GitError> {
        let command =
            self.command("reading the identity of the committer").args(["-c", "user.useConfigOnly=true"]);
        let output = command.args(["var", "GIT_COMMITTER_IDENT"]).run()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.rsplit_once('>').filter(|_| output.status == Some(0)) {
            Some((name, _)) => Ok(format!("{name}>")),
            None => {
                // Git's next ten lines repeat what our error says.
                let message = output.message().lines().next().unwrap_or_default().to_owned();
                Err(GitError::NoIdentity { message })
            }
        }
    }
}

/// Projects in whose checkout a path may lie, with that checkout: the path up to `.worktrees`, or the project that is
/// named there, and one name more.
fn projects_around(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let is_checkout = |folder: &&Path| {
        folder.parent().and_then(Path::file_name).is_some_and(|name| name == OsStr::new(WORKTREES))
    };
    let pair = |folder: &Path| {
        let project = worktrees::project_around(folder);
        Some((project.or_else(|| Some(folder.parent()?.parent()?.to_owned()))?, folder.to_owned()))
    };
    path.ancestors().filter(is_checkout).filter_map(pair).collect()
}

fn locate(git: &Git, from: &Path) -> Result<Location, GitError> {
    let command = git.command("opening the repository", from).args(["rev-parse", "--path-format=absolute"]);
    let command = command.args(["--git-dir", "--git-common-dir", "--show-toplevel"]);
    let output = command.run()?;
    let message = output.message();
    if output.status != Some(0) {
        let path = from.to_owned();
        return Err(match () {
            () if message.contains("not a git repository") => GitError::NotARepository { path },
            () if message.contains("must be run in a work tree") => GitError::NoCheckout { path },
            () => command.failed(&output),
        });
    }
    let output = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    // Only the last path may contain a line break; git itself does not support one in the path of a git folder.
    let mut lines = output.splitn(3, |byte| *byte == b'\n').map(path);
    match (lines.next(), lines.next(), lines.next()) {
        // Branches are read, and repositories for agents made, without git.
        (Some(_), Some(common_dir), Some(root)) if common_dir.join("reftable").is_dir() => {
            Err(GitError::Reftable { path: root })
        }
        (Some(git_dir), Some(common_dir), Some(root)) if root.is_absolute() => {
            Ok(Location { git_dir, common_dir, root })
        }
        _ => Err(command.unexpected(output)),
    }
}

pub(crate) fn sha(line: &[u8]) -> Option<Sha> {
    std::str::from_utf8(line.trim_ascii()).ok()?.parse().ok().filter(Sha::is_full)
}

pub fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// True if two paths lead to the same place, symbolic links resolved.
pub(crate) fn same_path(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}
