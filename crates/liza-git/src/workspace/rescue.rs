//! Saves work that would be lost: unmerged commits and uncommitted files go to a new branch
//! `rescue/<task>-<n>`. Works on its own index, so the worktree, its index, HEAD and branch do not change.

use std::fs;
use std::path::{Path, PathBuf};

use liza_ids::{Sha, TaskId};
use liza_sandbox::sys::untrusted::{UntrustedFolder, take_rights};

use crate::program::command::GitCommand;
use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::{NO_COMMIT, Repo, path, same_path, sha};
use crate::workspace::agent_repo::{AgentRepo, linked_place};
use crate::workspace::snapshot::{Removals, Snapshot};
use crate::workspace::status::{FileChange, UntrackedFiles, WorktreeStatus};
use crate::workspace::view::View;

pub(crate) const STAGED: &str = "liza: what was staged";

/// Work that was saved, now or by an earlier call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescue {
    pub branch: Branch,
    pub commit: Sha,
    /// True if it includes uncommitted files.
    pub uncommitted: bool,
    /// Branches with the work inside submodules and nested repositories.
    pub nested: Vec<Branch>,
}

/// Revisions whose commits are safe and need no rescue.
#[derive(Debug, Clone)]
pub(crate) struct SafeRevisions(Vec<String>);

impl SafeRevisions {
    pub(crate) fn of(base: Option<&Sha>, integration: &Branch) -> Self {
        Self(base.map(ToString::to_string).into_iter().chain([integration.full()]).collect())
    }

    pub(crate) fn in_commit(commit: &Sha) -> Self {
        Self(vec![commit.to_string()])
    }

    pub(crate) fn and(mut self, commit: Option<&Sha>) -> Self {
        self.0.extend(commit.map(ToString::to_string));
        self
    }
}

/// A folder that may contain unsaved work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RescueSource<'a> {
    /// A checkout with its own repository; `start` is its last commit that the project has, if any.
    Checkout { folder: &'a Path, start: Option<&'a Sha> },
    /// A linked worktree of the original system.
    Linked(&'a Path),
    /// A folder without a usable repository; it was created from `start`.
    LooseFolder { folder: &'a Path, start: &'a Sha },
}

#[derive(Debug, Default)]
struct UnsavedWork {
    /// A tree of the current files, if some are uncommitted.
    uncommitted: Option<Sha>,
    /// Commits; the files are compared with the first.
    tips: Vec<Sha>,
    nested: Vec<Branch>,
    left_out: Vec<PathBuf>,
}

struct RescueBranch {
    number: u32,
    commit: Sha,
    tree: String,
    parents: String,
}

impl Repo {
    /// Saves the work in `source` and `tips` beyond `safe`; `None` when there is provably nothing. `known`
    /// commits are in the project with everything that they contain.
    pub(crate) fn rescue_work(
        &self,
        task: &TaskId,
        source: Option<RescueSource<'_>>,
        (tips, known): (&[Sha], &[Sha]),
        safe: &SafeRevisions,
    ) -> Result<Option<Rescue>, GitError> {
        let mut work = match source {
            Some(RescueSource::Checkout { folder, start }) => {
                self.work_in_checkout(task, folder, start, known)?
            }
            Some(RescueSource::Linked(folder)) => self.work_in_linked(task, folder)?,
            Some(RescueSource::LooseFolder { folder, start }) => {
                UnsavedWork { tips: vec![start.clone()], ..self.loose_work(folder, start)? }
            }
            None => UnsavedWork::default(),
        };
        work.tips.extend(tips.iter().cloned());
        let only_commits = work.uncommitted.is_none() && work.nested.is_empty();
        if only_commits && !self.has_unsafe_commits(task, &work.tips, safe)? {
            return Ok(None);
        }
        self.save(task, work).map(Some)
    }

    /// The work in a checkout. One with a damaged repository still has its files.
    fn work_in_checkout(
        &self,
        task: &TaskId,
        folder: &Path,
        start: Option<&Sha>,
        known: &[Sha],
    ) -> Result<UnsavedWork, GitError> {
        let agent =
            AgentRepo::of(folder).ok_or_else(|| GitError::ForeignFolder { path: folder.to_owned() })?;
        let head = agent.head().map(|head| head.commit).ok();
        let Some(like) = head.as_ref().or(start) else {
            return Err(GitError::NoCommits { path: folder.to_owned() });
        };
        let mut work = self.commits_of(task, &agent, head.as_ref(), like, known)?;
        self.save_large_files(&agent)?;
        let Some(known) = work.tips.first().or(start) else {
            return Err(GitError::NoCommits { path: folder.to_owned() });
        };
        let view = self.view_of_worktree(folder, known)?;
        self.work_in_files(task, &view, &mut work)?;
        Ok(work)
    }

    /// Brings all commits of a checkout except the `known` ones into the project. Its HEAD is the first,
    /// unless an object of it is missing.
    fn commits_of(
        &self,
        task: &TaskId,
        agent: &AgentRepo,
        head: Option<&Sha>,
        like: &Sha,
        known: &[Sha],
    ) -> Result<UnsavedWork, GitError> {
        let quarantine = self.quarantine(agent, like)?;
        let mut named: Vec<Sha> = head.into_iter().cloned().collect();
        named.extend(agent.branches());
        named.extend(agent.in_progress());
        named.extend(head.and_then(|head| quarantine.commit_staged(agent, head)));
        let mut seen = Vec::new();
        named.retain(|commit| {
            !seen.contains(commit) && {
                seen.push(commit.clone());
                true
            }
        });
        let others: Vec<Sha> =
            quarantine.own_tips()?.into_iter().filter(|commit| !named.contains(commit)).collect();
        let named = quarantine.transfer_what_is_whole(named, known)?;
        let others = quarantine.transfer_what_is_whole(others, known)?;
        for commit in self.independent(others)? {
            let reachable = named.iter().any(|tip| self.is_ancestor(&commit, tip).unwrap_or(false));
            if !reachable {
                self.keep_as_unreferenced(task, &commit)?;
            }
        }
        Ok(UnsavedWork { tips: named, ..UnsavedWork::default() })
    }

    /// The work in a linked worktree of the original system: its commits are in the project already.
    fn work_in_linked(&self, task: &TaskId, folder: &Path) -> Result<UnsavedWork, GitError> {
        let git_dir = self.linked_git_dir(folder).ok_or_else(|| not_linked(folder))?;
        let command = |action: &str| self.command(action).env("GIT_DIR", &git_dir);
        let head = command("reading a worktree's HEAD").args(["rev-parse", "--verify", "HEAD^{commit}"]);
        let head = head.read_with(sha)?;
        let mut work = UnsavedWork { tips: vec![head.clone()], ..UnsavedWork::default() };
        let staged = command("saving staged work").arg("write-tree").read_with(sha);
        if let Ok(tree) = staged
            && tree != self.tree_of(&head)?
        {
            let command = always_the_same(self.command("saving staged work"));
            work.tips.push(command.commit(STAGED, &tree, std::slice::from_ref(&head), &[])?);
        }
        work.tips.extend(commits_in_progress(&git_dir));
        let view = self.view_of_worktree(folder, &head)?;
        self.work_in_files(task, &view, &mut work)?;
        Ok(work)
    }

    /// Adds the files that differ from the view's commit, nested repositories and ignored files.
    fn work_in_files(&self, task: &TaskId, view: &View<'_>, work: &mut UnsavedWork) -> Result<(), GitError> {
        if let Ok(folder) = UntrustedFolder::open(view.tree()) {
            // Git reports no change in a folder that it cannot read.
            take_rights(&folder);
        }
        let status = view.status(UntrackedFiles::ShowIgnored)?;
        self.save_ignored(task, view, &status)?;
        let is_ignored = |change: &FileChange| matches!(change, FileChange::Ignored { .. });
        let changes = status.changes.into_iter().filter(|change| !is_ignored(change)).collect();
        let status = WorktreeStatus { changes, ..status };
        work.nested = self.save_nested(task, view.tree())?;
        if !status.changes.is_empty() {
            let snapshot = self.snapshot(view, Removals::Saved, &status)?;
            (work.uncommitted, work.left_out) = (Some(snapshot.tree), snapshot.left_out);
        }
        Ok(())
    }

    /// The files of a folder without a repository; missing ones are taken from `start`.
    fn loose_work(&self, folder: &Path, start: &Sha) -> Result<UnsavedWork, GitError> {
        let view = self.view_of_worktree(folder, start)?;
        let status = WorktreeStatus { head: None, branch: None, changes: Vec::new() };
        let Snapshot { tree, left_out } = self.snapshot(&view, Removals::Ignored, &status)?;
        let uncommitted = (tree != self.tree_of(start)?).then_some(tree);
        Ok(UnsavedWork { uncommitted, left_out, ..UnsavedWork::default() })
    }

    /// Creates the branch, or finds the one that an earlier, interrupted rescue created.
    fn save(&self, task: &TaskId, work: UnsavedWork) -> Result<Rescue, GitError> {
        let parents = self.independent(work.tips)?;
        let existing = self.rescues(task)?;
        let uncommitted = work.uncommitted.is_some();
        let (commit, known) = match (work.uncommitted, parents.as_slice()) {
            (None, [tip]) => (tip.clone(), existing.iter().find(|old| old.commit == *tip)),
            (tree, _) => {
                let tree = match (tree, parents.first()) {
                    (Some(tree), _) => tree,
                    (None, Some(tip)) => self.tree_of(tip)?,
                    (None, None) => return Err(GitError::NoCommits { path: self.worktree_path(task) }),
                };
                let names = parents.iter().map(Sha::as_str).collect::<Vec<_>>().join(" ");
                match existing.iter().find(|old| old.tree == tree.as_str() && old.parents == names) {
                    Some(old) => (old.commit.clone(), Some(old)),
                    None => (self.rescue_commit(task, &tree, &parents, &work.left_out)?, None),
                }
            }
        };
        let next = existing.iter().map(|old| old.number).max().unwrap_or(0) + 1;
        let number = match known {
            Some(old) => old.number,
            None => self.create_numbered(next, &commit, |number| Branch::rescue(task, number))?,
        };
        Ok(Rescue { branch: Branch::rescue(task, number), commit, uncommitted, nested: work.nested })
    }

    /// Creates the first free branch of a numbered series.
    pub(crate) fn create_numbered(
        &self,
        first: u32,
        commit: &Sha,
        name: impl Fn(u32) -> Branch,
    ) -> Result<u32, GitError> {
        let mut number = first;
        loop {
            match self.update_ref(&name(number).full(), commit.as_str(), NO_COMMIT, "liza: rescue") {
                Ok(()) => return Ok(number),
                // Another process took the number.
                Err(error) if self.tip(&name(number))?.is_none() || number > first + 100 => {
                    return Err(error);
                }
                Err(_) => number += 1,
            }
        }
    }

    /// True if some tip has a commit that is neither safe nor on a rescue branch.
    fn has_unsafe_commits(
        &self,
        task: &TaskId,
        tips: &[Sha],
        safe: &SafeRevisions,
    ) -> Result<bool, GitError> {
        if tips.is_empty() {
            return Ok(false);
        }
        let command = self
            .command("looking for unmerged commits")
            .args(["rev-list", "--max-count=1", "--ignore-missing"])
            .args(tips.iter().map(Sha::as_str))
            .arg("--not")
            .args(&safe.0)
            .arg(format!("--branches=rescue/{task}-*"))
            .arg("--");
        Ok(!command.read()?.is_empty())
    }

    /// The commits without those that another one contains, in the same order.
    pub fn independent(&self, mut commits: Vec<Sha>) -> Result<Vec<Sha>, GitError> {
        let mut seen = Vec::new();
        commits.retain(|commit| {
            !seen.contains(commit) && {
                seen.push(commit.clone());
                true
            }
        });
        if commits.len() < 2 {
            return Ok(commits);
        }
        let command = self.command("comparing commits").args(["merge-base", "--independent"]);
        let output = command.args(commits.iter().map(Sha::as_str)).read_text()?;
        // The first always stays: the saved files are compared with it.
        let first = commits.first().cloned();
        commits.retain(|commit| {
            Some(commit) == first.as_ref() || output.lines().any(|line| line == commit.as_str())
        });
        Ok(commits)
    }

    fn rescues(&self, task: &TaskId) -> Result<Vec<RescueBranch>, GitError> {
        let prefix = format!("refs/heads/rescue/{task}-");
        let format = "--format=%(refname) %(objectname) %(tree) %(parent)";
        let command = self.command("listing rescue branches");
        let command = command.args(["for-each-ref", format, &format!("{prefix}*")]);
        let parse = |line: &str| {
            let mut words = line.splitn(4, ' ');
            // `rescue/a-1-1` belongs to task `a-1`, not to `a`.
            let number = words.next()?.strip_prefix(&prefix)?.parse().ok()?;
            let (commit, tree) = (words.next()?.parse().ok()?, words.next()?.to_owned());
            Some(RescueBranch { number, commit, tree, parents: words.next().unwrap_or_default().to_owned() })
        };
        Ok(command.read_text()?.lines().filter_map(parse).collect())
    }

    fn rescue_commit(
        &self,
        task: &TaskId,
        tree: &Sha,
        parents: &[Sha],
        left_out: &[PathBuf],
    ) -> Result<Sha, GitError> {
        let names: String =
            left_out.iter().map(|path| format!("  {}\n", path.to_string_lossy().escape_debug())).collect();
        let left_out = match names.is_empty() {
            true => String::new(),
            false => format!("Not saved (longer than a GiB, with less than a MiB of data):\n{names}\n"),
        };
        let message = format!(
            "liza: rescued work of {task}\n\nSaved before its worktree was changed or removed.\n\n{left_out}Liza-Task: {task}\n"
        );
        self.commit_tree(&message, tree, parents)
    }

    /// Commits as Liza and unsigned: saving work must not fail because git has no identity.
    pub(crate) fn commit_tree(&self, message: &str, tree: &Sha, parents: &[Sha]) -> Result<Sha, GitError> {
        as_liza(self.command("saving work")).commit(message, tree, parents, &[])
    }

    pub fn tree_of(&self, commit: &Sha) -> Result<Sha, GitError> {
        let command =
            self.command("reading a commit").args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]);
        let output = if commit.is_full() { self.ask(&command)? } else { command.read()? };
        sha(&output).ok_or_else(|| command.unexpected(&output))
    }

    /// The git folder of a linked worktree of this project, as the original system made them. Found without
    /// git: the link is a file that an agent can write, and could name any repository.
    pub(crate) fn linked_git_dir(&self, tree: &Path) -> Option<PathBuf> {
        let link = UntrustedFolder::open(tree).ok()?.read(Path::new(".git"), 4 << 10).ok()?;
        let named = tree.join(linked_place(&link)?);
        let name = named.file_name()?;
        let git_dir = self.common_dir().join("worktrees").join(name);
        let back = fs::read_to_string(git_dir.join("gitdir")).ok()?;
        let back = Path::new(back.trim_end());
        // In both directions; git may have written either of them through a link.
        let is_linked = same_path(&named, &git_dir) && same_path(back.parent()?, tree);
        is_linked.then_some(git_dir)
    }

    /// The folder in which git keeps the index and HEAD of one worktree of a person.
    pub(crate) fn git_dir_of(&self, folder: &Path) -> Result<PathBuf, GitError> {
        let command = self.command_in("finding a worktree's git folder", folder);
        let command = command.args(["rev-parse", "--path-format=absolute", "--git-dir"]);
        let mut output = command.read()?;
        output.pop_if(|last| *last == b'\n');
        Ok(path(&output))
    }
}

impl GitCommand {
    pub fn commit(
        self,
        message: &str,
        tree: &Sha,
        parents: &[Sha],
        options: &[&str],
    ) -> Result<Sha, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let command = self
            .arg("commit-tree")
            .args(options)
            .arg(tree.as_str())
            .args(parents)
            .args(["-F", "-"])
            .stdin(message);
        command.read_with(sha)
    }
}

/// The error for a folder whose `.git` is neither a folder nor a link of this project.
pub(crate) fn not_linked(folder: &Path) -> GitError {
    GitError::DamagedWorktree {
        path: folder.to_owned(),
        why: "its .git is not its own repository".to_owned(),
    }
}

/// Sets Liza as author and committer.
pub(crate) fn as_liza(command: GitCommand) -> GitCommand {
    command
        .env("GIT_AUTHOR_NAME", "Liza")
        .env("GIT_AUTHOR_EMAIL", "liza@localhost")
        .env("GIT_COMMITTER_NAME", "Liza")
        .env("GIT_COMMITTER_EMAIL", "liza@localhost")
}

/// Sets Liza as author and committer with a fixed date, so that the same content gives the same commit and an
/// interrupted rescue finds its earlier one.
pub(crate) fn always_the_same(command: GitCommand) -> GitCommand {
    const DATE: &str = "2000-01-01T00:00:00Z";
    as_liza(command).env("GIT_AUTHOR_DATE", DATE).env("GIT_COMMITTER_DATE", DATE)
}

/// Commits that only an unfinished merge or rebase may refer to.
fn commits_in_progress(git_dir: &Path) -> Vec<Sha> {
    const FILES: [&str; 6] = [
        "MERGE_HEAD",
        "rebase-merge/orig-head",
        "rebase-merge/autostash",
        "rebase-apply/orig-head",
        "rebase-apply/autostash",
        "MERGE_AUTOSTASH",
    ];
    let read = FILES.iter().filter_map(|file| fs::read_to_string(git_dir.join(file)).ok());
    read.flat_map(|text| text.lines().filter_map(|line| line.trim().parse().ok()).collect::<Vec<Sha>>())
        .filter(Sha::is_full)
        .collect()
}
