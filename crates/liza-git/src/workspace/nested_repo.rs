//! A repository inside an agent's worktree: a submodule, or one that an agent made.
//!
//! Git is never started in it: it would run the programs of the agent's configuration, also in the submodules
//! of a submodule. Its references are read as plain files, and its files are compared through a git folder of
//! ours that borrows its objects. Changes nothing in it.

use std::io;
use std::path::{Path, PathBuf};

use liza_ids::Sha;
use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::diff::isolated::format_settings;
use crate::program::borrowed_git_dir::BorrowedGitDir;
use crate::program::command::{GitCommand, TREE_LIMIT};
use crate::program::error::GitError;
use crate::program::leftovers::VIEW;
use crate::program::repo::{Repo, path, sha};
use crate::workspace::agent_repo::AgentRepo;
use crate::workspace::staged_copy::{StagedCopy, listed_files, nul_list};
use crate::workspace::status::{FileChange, UntrackedFiles, parse};
use crate::workspace::view::Files;

const ACTION: &str = "looking at a repository inside a worktree";

/// The depth to which submodules of submodules are inspected.
const DEEPEST: usize = 8;

/// Our git folder for it is deleted on drop.
pub struct NestedRepo<'a> {
    project: &'a Repo,
    agent: AgentRepo,
    tree: PathBuf,
    /// The path of its files in the worktree.
    path: PathBuf,
    git_dir: BorrowedGitDir<'a>,
    head: Option<Sha>,
}

impl Repo {
    /// The repository at `path` in a worktree; `None` if none is completely inside the worktree.
    pub fn nested(&self, tree: &Path, path: &Path) -> Result<Option<NestedRepo<'_>>, GitError> {
        let linked = || AgentRepo::inside(tree, path, &self.linked_git_dir(tree)?);
        let Some(agent) = AgentRepo::inside(tree, path, tree).or_else(linked) else { return Ok(None) };
        let head = agent.head().ok().map(|head| head.commit);
        let git_dir = self.borrow_objects(&agent, head.as_ref())?;
        let (tree, path) = (tree.to_owned(), path.to_owned());
        Ok(Some(NestedRepo { project: self, agent, tree, path, git_dir, head }))
    }

    fn borrow_objects(&self, agent: &AgentRepo, head: Option<&Sha>) -> Result<BorrowedGitDir<'_>, GitError> {
        let made = BorrowedGitDir::create(self, VIEW, ACTION, head)?;
        let like = head.cloned().or_else(|| agent.branches().into_iter().next());
        let format = like.as_ref().map_or_else(String::new, format_settings);
        made.write("config", format.as_bytes())?;
        made.make_folder("refs")?;
        made.borrow(&agent.path().join("objects"))?;
        if let Some(shallow) = agent.shallow() {
            made.write("shallow", &shallow)?;
        }
        Ok(made)
    }

    /// The repositories in a folder of a worktree, ignored ones included, without nested ones.
    pub(crate) fn repositories_in(&self, folder: &Path) -> Result<Vec<PathBuf>, GitError> {
        let output = self
            .view(folder, None, Files::All)?
            .command(ACTION)
            .args(["ls-files", "--others", "-z"])
            .limit(TREE_LIMIT)
            .read()?;
        let folders = output.split(|byte| *byte == 0).filter_map(|name| name.strip_suffix(b"/"));
        Ok(folders.map(path).collect())
    }

    /// The files of a folder of a worktree as a tree of the project: all that are not ignored, and `links`
    /// instead of the repositories in it.
    pub(crate) fn tree_of_folder(
        &self,
        tree: &Path,
        path: &Path,
        links: &[(PathBuf, Sha)],
    ) -> Result<Sha, GitError> {
        const ACTION: &str = "saving a repository inside a worktree";
        let folder = tree.join(path);
        let view = self.view(&folder, None, Files::All)?;
        let list = view.command(ACTION).args(["ls-files", "--others", "--exclude-standard", "-z"]);
        let list = list.limit(TREE_LIMIT).read()?;
        // Git lists a repository as a folder; it would record only the hash of its commit.
        let files = UntrustedFolder::open(tree).and_then(|tree| tree.folder(path));
        let files = files.map_err(|error| GitError::io(ACTION, &folder, error))?;
        let copy = StagedCopy::of(self, &files, &listed_files(&list), u64::MAX)?;
        if let Some(path) = copy.unreadable.first() {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(GitError::io(ACTION, &folder.join(path), error));
        }
        let add = view.command_at(ACTION, copy.folder()).args(["update-index", "--add", "-z", "--stdin"]);
        if !copy.copied.is_empty() {
            add.stdin(nul_list(&copy.copied)).limit(TREE_LIMIT).check()?;
        }
        for (path, commit) in links {
            let add = view.command(ACTION).args(["update-index", "--add", "--cacheinfo", "160000"]);
            add.arg(commit.as_str()).arg(path).check()?;
        }
        view.write_tree(ACTION)
    }
}

impl NestedRepo<'_> {
    /// A git command that sees its files, its objects, and nothing else of it.
    fn command(&self, action: &str) -> GitCommand {
        let files = self.files();
        let room = self.project.room([self.git_dir.path().to_owned()]);
        self.git_dir.command_in(action, &files).env("GIT_WORK_TREE", files).in_room(room)
    }

    pub fn tree(&self) -> &Path {
        &self.tree
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn files(&self) -> PathBuf {
        self.tree.join(&self.path)
    }

    pub fn agent(&self) -> &AgentRepo {
        &self.agent
    }

    /// The differences of its files from its commit, without those of its own submodules.
    pub fn changes(&self) -> Result<Vec<FileChange>, GitError> {
        if let Some(head) = &self.head {
            self.command(ACTION).args(["read-tree", head.as_str()]).limit(TREE_LIMIT).check()?;
        }
        let command = self.command(ACTION);
        let command = command
            // Git would start itself in each of its submodules.
            .args(["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=dirty"])
            .args(UntrackedFiles::Show.options())
            .limit(TREE_LIMIT);
        Ok(command.read_with(parse)?.changes)
    }

    /// True if anything in it, or in its submodules, is not committed.
    pub fn is_changed(&self) -> Result<bool, GitError> {
        self.is_changed_to(DEEPEST)
    }

    fn is_changed_to(&self, depth: usize) -> Result<bool, GitError> {
        if !self.changes()?.is_empty() {
            return Ok(true);
        }
        for (path, _) in self.submodules()? {
            let inner = self.project.nested(&self.tree, &self.path.join(path))?;
            if let Some(inner) = inner.filter(|_| depth > 0)
                && inner.is_changed_to(depth - 1)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Its own submodules with the recorded commits; call it after [`NestedRepo::changes`].
    pub fn submodules(&self) -> Result<Vec<(PathBuf, Sha)>, GitError> {
        let output = self.command("listing submodules").args(["ls-files", "--stage", "-z"]).read()?;
        Ok(submodule_entries(&output))
    }

    /// True if a commit is on one of its remotes, as it last saw them.
    pub(crate) fn is_published(&self, commit: &Sha) -> Result<bool, GitError> {
        let known = self.command(ACTION).args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).run()?;
        if known.status != Some(0) {
            return Ok(false);
        }
        let remote = self.agent.remote_branches();
        let list: String = remote.iter().map(|known| format!("^{known}\n")).collect();
        let command = self.command("looking for unpublished commits");
        let command = command.args(["rev-list", "--max-count=1", "--ignore-missing", "--stdin"]);
        Ok(command.stdin(format!("{commit}\n{list}")).read()?.is_empty())
    }

    /// Its commits that are not known to be on a remote: its HEAD, its branches and its stash.
    pub(crate) fn unpublished(&self) -> Vec<Sha> {
        let mut left = Vec::new();
        for tip in self.head.iter().cloned().chain(self.agent.branches()) {
            if !left.contains(&tip) && !self.is_published(&tip).unwrap_or(false) {
                left.push(tip);
            }
        }
        left
    }
}

/// The submodules in the output of `git ls-files --stage -z`.
pub(crate) fn submodule_entries(output: &[u8]) -> Vec<(PathBuf, Sha)> {
    let lines = output.split(|byte| *byte == 0).filter_map(|line| line.strip_prefix(b"160000 "));
    let entry = |line: &[u8]| {
        let (head, name) = line.split_at_checked(line.iter().position(|byte| *byte == b'\t')?)?;
        let commit = head.split(|byte| *byte == b' ').next().and_then(sha)?;
        Some((path(name.get(1..)?), commit))
    };
    lines.filter_map(entry).collect()
}
