//! A repository as a project uses it: where it is, what its branches point to, who has them checked out.
//!
//! Changes nothing but the list of excluded files and, on request, a branch that is not there yet.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use liza_core::model::{Sha, TaskId, Worktree};

use super::error::GitError;
use super::refs::Branch;
use super::run::{Call, Git};

/// The old value of a reference that must not exist yet.
pub(crate) const ABSENT: &str = "0000000000000000000000000000000000000000";

/// What is being done when the list of excluded files is at hand.
const EXCLUDING: &str = "excluding files from git";

/// A git repository, seen from a project's root.
#[derive(Debug, Clone)]
pub struct Repo {
    git: Git,
    root: PathBuf,
    common_dir: PathBuf,
}

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit.
    pub commit: Sha,
    /// The branch; `None` when HEAD is detached.
    pub branch: Option<String>,
}

/// A lock that keeps git from pruning a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lock {
    /// `git worktree add` has not ended, or was killed.
    Initializing,
    /// Somebody locked it, with or without saying why.
    Other(String),
}

/// One worktree as git knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, or was.
    pub path: PathBuf,
    /// Its commit.
    pub head: Option<Sha>,
    /// Its branch, in full; `None` when HEAD is detached.
    pub branch: Option<String>,
    /// Whether and why it is locked.
    pub lock: Option<Lock>,
    /// Why git would prune it: its folder is not there.
    pub prunable: Option<String>,
}

/// Where git says that a folder belongs.
struct Place {
    git_dir: PathBuf,
    common_dir: PathBuf,
    root: PathBuf,
}

impl Repo {
    /// Opens the repository of the project that `from` is in, also from inside a task's worktree.
    ///
    /// # Errors
    ///
    /// [`GitError::NotARepository`], [`GitError::NoCheckout`]; [`GitError::Failed`] when git refuses the folder.
    pub fn open(git: &Git, from: &Path) -> Result<Self, GitError> {
        let here = locate(git, from)?;
        let outer = project_around(&here).and_then(|outer| locate(git, &outer).ok());
        // The folders may be named so by chance: it is ours only if it is the same repository.
        let place = outer.filter(|outer| outer.common_dir == here.common_dir).unwrap_or(here);
        Ok(Self { git: git.clone(), root: place.root, common_dir: place.common_dir })
    }

    /// The project's root: the top of its checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git that is used.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The folder that all worktrees of the repository share.
    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Where a task's worktree is, whether it exists or not.
    pub fn worktree_path(&self, task: &TaskId) -> PathBuf {
        self.root.join(Worktree::of(task).as_str())
    }

    /// Begins a call of git in some folder of this repository.
    pub(crate) fn call(&self, doing: impl Into<String>, cwd: &Path) -> Call {
        self.git.call(doing, cwd)
    }

    /// Begins a call of git in the project's root.
    pub(crate) fn here(&self, doing: impl Into<String>) -> Call {
        self.git.call(doing, &self.root)
    }

    /// What is checked out in the project's root.
    ///
    /// # Errors
    ///
    /// [`GitError::NoCommits`] in an empty repository.
    pub fn head(&self) -> Result<Head, GitError> {
        let call = self.here("reading HEAD").args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let reply = call.run()?;
        if reply.status != Some(0) {
            return Err(GitError::NoCommits { path: self.root.clone() });
        }
        let commit = sha(&reply.stdout).ok_or_else(|| call.unreadable(&reply.stdout))?;
        let named = self.here("reading HEAD").args(["symbolic-ref", "--quiet", "--short", "HEAD"]).run()?;
        let name = String::from_utf8_lossy(named.stdout.trim_ascii()).into_owned();
        Ok(Head { commit, branch: (named.status == Some(0)).then_some(name) })
    }

    /// The whole name of a commit of which some digits are known.
    ///
    /// # Errors
    ///
    /// [`GitError::UnknownCommit`] when it names none, several, or something else.
    pub fn resolve(&self, commit: &Sha) -> Result<Sha, GitError> {
        let unknown = |message: String| GitError::UnknownCommit { name: commit.to_string(), message };
        let call = self
            .here("looking up a commit")
            .args(["rev-parse", "--verify"])
            .arg(format!("{commit}^{{commit}}"));
        let reply = call.run()?;
        if reply.status != Some(0) {
            return Err(unknown(reply.message()));
        }
        let found = sha(&reply.stdout).ok_or_else(|| call.unreadable(&reply.stdout))?;
        // A branch or tag may be called like the digits, and git would prefer it.
        if found.names_same_commit(commit) {
            Ok(found)
        } else {
            Err(unknown("a branch or tag has that name".into()))
        }
    }

    /// The same, without asking git when all digits are there.
    pub(crate) fn full(&self, commit: &Sha) -> Result<Sha, GitError> {
        if commit.is_full() { Ok(commit.clone()) } else { self.resolve(commit) }
    }

    /// The commit that a branch points to; `None` when there is no such branch.
    ///
    /// # Errors
    ///
    /// When git cannot tell.
    pub fn tip(&self, branch: &Branch) -> Result<Option<Sha>, GitError> {
        let name = format!("{}^{{commit}}", branch.full());
        let call =
            self.here(format!("reading branch {branch}")).args(["rev-parse", "--verify", "--quiet", &name]);
        let reply = call.run()?;
        match reply.status {
            Some(0) => sha(&reply.stdout).map(Some).ok_or_else(|| call.unreadable(&reply.stdout)),
            Some(1) => Ok(None),
            _ => Err(call.failed(&reply)),
        }
    }

    /// Whether `ancestor` is `commit` or is contained in it.
    ///
    /// # Errors
    ///
    /// When one of them is not here.
    pub fn is_ancestor(&self, ancestor: &Sha, commit: &Sha) -> Result<bool, GitError> {
        let call = self.here("comparing commits").args(["merge-base", "--is-ancestor"]);
        let call = call.args([ancestor.as_str(), commit.as_str()]);
        let reply = call.run()?;
        match reply.status {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(call.failed(&reply)),
        }
    }

    /// How many commits `to` has that `from` has not: the drift of a branch since a base.
    ///
    /// # Errors
    ///
    /// When one of them is not here.
    pub fn count(&self, from: &Sha, to: &Sha) -> Result<u64, GitError> {
        let range = format!("{from}..{to}");
        let call = self.here("counting commits").args(["rev-list", "--count", &range, "--"]);
        let answer = call.text()?;
        answer.parse().map_err(|_| call.unreadable(answer.as_bytes()))
    }

    /// Makes a branch at a commit if there is none of that name; says whether it did.
    ///
    /// # Errors
    ///
    /// When git refuses the name or the commit.
    pub fn create_branch(&self, branch: &Branch, at: &Sha) -> Result<bool, GitError> {
        if self.tip(branch)?.is_some() {
            return Ok(false);
        }
        match self.update_ref(&branch.full(), at.as_str(), ABSENT, "liza: create") {
            Ok(()) => Ok(true),
            // Somebody else was faster.
            Err(error) => self.tip(branch)?.map(|_| false).ok_or(error),
        }
    }

    /// Deletes a branch that still points to `at`: a commit that came since then must not be lost.
    ///
    /// # Errors
    ///
    /// When it points elsewhere, or git refuses.
    pub fn delete_branch(&self, branch: &Branch, at: &Sha) -> Result<(), GitError> {
        let call = self.here(format!("deleting branch {branch}"));
        call.args(["update-ref", "-d", "--", &branch.full(), at.as_str()]).ok().map(drop)
    }

    /// Moves a reference from one value to another, if it still has the first.
    pub(crate) fn update_ref(&self, name: &str, new: &str, old: &str, why: &str) -> Result<(), GitError> {
        let call = self.here(format!("moving {name}")).args(["update-ref", "-m", why, "--", name, new, old]);
        call.ok().map(drop)
    }

    /// Keeps paths out of git's sight in this repository, without touching files of the project; says whether
    /// anything had to be added.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written.
    pub fn exclude(&self, patterns: &[&str]) -> Result<bool, GitError> {
        let (file, old) = self.excluded()?;
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

    /// Whether all of these are kept out of git's sight.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn excludes(&self, patterns: &[&str]) -> Result<bool, GitError> {
        let (_, old) = self.excluded()?;
        Ok(patterns.iter().all(|pattern| old.lines().any(|line| line == *pattern)))
    }

    /// The list of excluded files, and what is in it.
    fn excluded(&self) -> Result<(PathBuf, String), GitError> {
        let call =
            self.here(EXCLUDING).args(["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"]);
        let file = self.root.join(call.text()?);
        match fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((file, String::new())),
            Err(error) => Err(GitError::io(EXCLUDING, &file, error)),
            Ok(text) => Ok((file, text)),
        }
    }

    /// In whose name git commits here.
    ///
    /// # Errors
    ///
    /// [`GitError::NoIdentity`] when it does not know.
    pub fn identity(&self) -> Result<String, GitError> {
        let call = self.here("asking who commits here").args(["-c", "user.useConfigOnly=true"]);
        let reply = call.args(["var", "GIT_COMMITTER_IDENT"]).run()?;
        let text = String::from_utf8_lossy(&reply.stdout).into_owned();
        match text.rsplit_once('>').filter(|_| reply.status == Some(0)) {
            Some((name, _)) => Ok(format!("{name}>")),
            None => {
                // Git goes on for ten lines, which say what the error says.
                let message = reply.message().lines().next().unwrap_or_default().to_owned();
                Err(GitError::NoIdentity { message })
            }
        }
    }

    /// What a person has begun in the project's checkout and not ended, by the name of the git command.
    ///
    /// # Errors
    ///
    /// When git cannot tell.
    pub fn unfinished(&self) -> Result<Option<&'static str>, GitError> {
        let git_dir = self.git_dir_of(&self.root)?;
        let signs = [
            ("MERGE_HEAD", "merge"),
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
        ];
        Ok(signs.into_iter().find(|(file, _)| git_dir.join(file).exists()).map(|(_, name)| name))
    }

    /// Every worktree that git knows, the main one first.
    ///
    /// # Errors
    ///
    /// When git cannot tell.
    pub fn worktrees(&self) -> Result<Vec<Entry>, GitError> {
        let call = self.here("listing worktrees").args(["worktree", "list", "--porcelain", "-z"]);
        let answer = call.ok()?;
        parse_entries(&answer).ok_or_else(|| call.unreadable(&answer))
    }

    /// The folders in which a branch is checked out.
    ///
    /// # Errors
    ///
    /// When git cannot tell.
    pub fn holders(&self, branch: &Branch) -> Result<Vec<PathBuf>, GitError> {
        let full = branch.full();
        let holds = |entry: &Entry| entry.branch.as_deref() == Some(&full) && entry.path.is_dir();
        Ok(self.worktrees()?.into_iter().filter(holds).map(|entry| entry.path).collect())
    }
}

/// The project whose task worktree this looks like.
fn project_around(place: &Place) -> Option<PathBuf> {
    let name = place.root.file_name()?.to_str()?;
    let folder = place.root.parent()?;
    let linked = place.git_dir != place.common_dir;
    let named_so = name.parse::<TaskId>().is_ok() && folder.file_name()? == OsStr::new(".worktrees");
    (linked && named_so).then(|| folder.parent().map(Path::to_owned)).flatten()
}

fn locate(git: &Git, from: &Path) -> Result<Place, GitError> {
    let call = git.call("opening the repository", from).args([
        "rev-parse",
        "--path-format=absolute",
        "--git-dir",
        "--git-common-dir",
        "--show-toplevel",
    ]);
    let reply = call.run()?;
    let message = reply.message();
    if reply.status != Some(0) {
        let path = from.to_owned();
        return Err(match () {
            () if message.contains("not a git repository") => GitError::NotARepository { path },
            () if message.contains("must be run in a work tree") => GitError::NoCheckout { path },
            () => call.failed(&reply),
        });
    }
    let answer = reply.stdout.strip_suffix(b"\n").unwrap_or(&reply.stdout);
    // Only the last can hold a line break without being misread; a git folder with one is hopeless anyway.
    let mut lines = answer.splitn(3, |byte| *byte == b'\n').map(path);
    match (lines.next(), lines.next(), lines.next()) {
        (Some(git_dir), Some(common_dir), Some(root)) if root.is_absolute() => {
            Ok(Place { git_dir, common_dir, root })
        }
        _ => Err(call.unreadable(answer)),
    }
}

fn parse_entries(answer: &[u8]) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in answer.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let (name, value) = (words.next()?, words.next().unwrap_or_default());
        if name == b"worktree" {
            entries.push(Entry { path: path(value), head: None, branch: None, lock: None, prunable: None });
            continue;
        }
        let entry = entries.last_mut()?;
        let text = String::from_utf8_lossy(value);
        match name {
            // A half-made worktree has no commit yet, which git shows as zeros.
            b"HEAD" => entry.head = text.parse().ok().filter(|head: &Sha| head.as_str() != ABSENT),
            b"branch" => entry.branch = Some(text.into_owned()),
            b"locked" if text == "initializing" => entry.lock = Some(Lock::Initializing),
            b"locked" => entry.lock = Some(Lock::Other(text.into_owned())),
            b"prunable" => entry.prunable = Some(text.into_owned()),
            _ => {}
        }
    }
    Some(entries)
}

/// The object name that a line of output is.
pub(crate) fn sha(line: &[u8]) -> Option<Sha> {
    std::str::from_utf8(line.trim_ascii()).ok()?.parse().ok().filter(Sha::is_full)
}

/// The path that some bytes of output are.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
