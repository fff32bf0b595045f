//! Liza's own view of a worktree: the current files, compared by an index that no agent can write.
//!
//! An agent's index can hide changes (`skip-worktree`, forged times), and its configuration can name
//! programs. So Liza keeps an index for each worktree, from the moment at which it wrote the files, and reads
//! them through a git folder of the project. A view exists for one question and never changes the worktree.
//! Git runs confined in it: it cannot change the project, so saved objects arrive as a pack.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use liza_ids::Sha;
use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::program::borrowed_git_dir::BorrowedGitDir;
use crate::program::command::{GitCommand, TREE_LIMIT};
use crate::program::error::GitError;
use crate::program::known_settings::SHARED;
use crate::program::leftovers::{VIEW, temporary_name};
use crate::program::repo::{Repo, sha};
use crate::program::room::RoomUse;
use crate::workspace::agent_repo::AgentRepo;
use crate::workspace::giant_files::remove_giant_settings;
use crate::workspace::status::{FileChange, UntrackedFiles, WorktreeStatus, parse};

/// The number of bytes at the end of an index that are compared.
const CHECKSUM: usize = 20;

/// The prefix of packs that a view saves. In the folder in which git begins to write them: older kernels
/// don't let a restricted program move a file to another one.
const SAVED: &str = "objects/pack/saved";

/// The folder, in the repository's git folder, of the indexes that Liza keeps.
const INDEXES: &str = "liza/index";

/// The folder of the notes with the commit of each kept index.
const INDEX_COMMITS: &str = "liza/index-commit";

/// A git folder with its own HEAD, index and new objects, which borrows those of the project; deleted on drop.
pub struct View<'a> {
    repo: &'a Repo,
    git_dir: BorrowedGitDir<'a>,
    tree: PathBuf,
    head: Option<Sha>,
}

/// The files of a commit that a checkout has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    All,
    /// Those of the project's own checkout, which may be sparse.
    AsInProject,
}

impl Repo {
    /// The index that Liza keeps for the worktree with that folder name.
    pub(crate) fn kept_index(&self, name: &str) -> PathBuf {
        self.common_dir().join(INDEXES).join(name)
    }

    pub(crate) fn forget_index(&self, name: &str) {
        let _ = fs::remove_file(self.kept_index(name));
        let _ = fs::remove_file(self.common_dir().join(INDEX_COMMITS).join(name));
    }

    /// A view of the files in `tree`, compared with `head`, which the project must have, or with nothing.
    pub fn view(&self, tree: &Path, head: Option<&Sha>, files: Files) -> Result<View<'_>, GitError> {
        let git_dir = BorrowedGitDir::create(self, VIEW, "looking at a worktree", head)?;
        git_dir.write("commondir", SHARED)?;
        git_dir.borrow(Path::new("../objects"))?;
        git_dir.make_folder("objects/pack")?;
        if let Some(patterns) = self.sparse_patterns().filter(|_| files == Files::AsInProject) {
            git_dir.write("info/sparse-checkout", &patterns)?;
        }
        Ok(View { repo: self, git_dir, tree: tree.to_owned(), head: head.cloned() })
    }

    /// Uses the index that Liza keeps for this worktree.
    pub(crate) fn view_of_worktree(&self, tree: &Path, head: &Sha) -> Result<View<'_>, GitError> {
        remove_giant_settings(tree)?;
        let view = self.view(tree, Some(head), Files::AsInProject)?;
        if let Some(name) = tree.file_name().and_then(|name| name.to_str()) {
            // Without one, git reads every file.
            let kept = fs::File::open(self.kept_index(name));
            let _ = kept.and_then(|kept| copy_with_time(&kept, &view.index()));
            if view.is_noted(name, head) {
                return Ok(view);
            }
        }
        view.command("reading a commit").args(["read-tree", "-i", "-m", head.as_str()]).check()?;
        Ok(view)
    }

    /// Tries git as it runs on agents' files.
    pub fn try_room(&self) -> Result<(), GitError> {
        let head = self.head()?.commit;
        let view = self.view(self.root(), Some(&head), Files::All)?;
        view.command("trying git as it runs on agents' files").args(["read-tree", head.as_str()]).check()
    }

    fn sparse_patterns(&self) -> Option<Vec<u8>> {
        let patterns = fs::read(self.git_dir().join("info/sparse-checkout")).ok()?;
        let setting = self.command("looking for a sparse checkout");
        let setting = setting.args(["config", "--type=bool", "--get", "core.sparseCheckout"]).run().ok()?;
        (setting.stdout.trim_ascii() == b"true").then_some(patterns)
    }
}

impl View<'_> {
    /// True if a note has the view's commit for exactly this index.
    fn is_noted(&self, name: &str, head: &Sha) -> bool {
        let note = fs::read_to_string(self.repo.common_dir().join(INDEX_COMMITS).join(name));
        let expected = self.checksum().map(|checksum| format!("{head} {checksum}\n"));
        note.is_ok_and(|note| Some(note) == expected)
    }

    /// `None` if git wrote no checksum.
    fn checksum(&self) -> Option<String> {
        let mut end = [0; CHECKSUM];
        let mut file = self.index_file().ok()?;
        file.seek(SeekFrom::End(-i64::try_from(CHECKSUM).ok()?)).ok()?;
        file.read_exact(&mut end).ok()?;
        (end != [0; CHECKSUM]).then(|| end.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Programs in the room could have put a link in its place.
    pub(crate) fn index_file(&self) -> io::Result<fs::File> {
        UntrustedFolder::open(self.git_dir())?.file(Path::new("index"))
    }

    pub fn index(&self) -> PathBuf {
        self.git_dir().join("index")
    }

    pub fn git_dir(&self) -> &Path {
        self.git_dir.path()
    }

    /// True if only a part of the files is checked out.
    pub(crate) fn is_sparse(&self) -> bool {
        self.git_dir().join("info/sparse-checkout").exists()
    }

    /// A git command that sees the worktree's files and this view's index.
    pub fn command(&self, action: &str) -> GitCommand {
        self.command_at(action, &self.tree)
    }

    /// The same with a copy of some of the files.
    pub(crate) fn command_at(&self, action: &str, files: &Path) -> GitCommand {
        let command =
            self.free_command(action, files).env("GIT_OBJECT_DIRECTORY", self.git_dir().join("objects"));
        command.in_room(self.repo.room([self.git_dir().to_owned()]))
    }

    /// A git command that writes the commit's files as stored; it fetches missing objects of a partial clone.
    pub(crate) fn raw_checkout_command(&self, action: &str) -> GitCommand {
        self.free_command(action, &self.tree).without_filters()
    }

    pub(crate) fn checkout_command(&self, action: &str) -> GitCommand {
        let writable = [self.git_dir().to_owned(), self.tree.clone()];
        self.free_command(action, &self.tree).in_room(self.repo.room_for(RoomUse::CheckingOut, writable))
    }

    fn free_command(&self, action: &str, files: &Path) -> GitCommand {
        let sparse = if self.is_sparse() { "core.sparseCheckout=true" } else { "core.sparseCheckout=false" };
        let command = self.git_dir.command_in(action, files);
        // Times of files can be set back, but not the time of that change.
        let exact = ["-c", "core.trustctime=true", "-c", "core.checkStat=default"];
        // The index leaves this folder, and must be whole.
        let command = command.args(["-c", "core.splitIndex=false"]);
        command.env("GIT_WORK_TREE", files).args(["-c", sparse]).args(exact)
    }

    /// The differences of the files from the commit.
    pub fn status(&self, untracked: UntrackedFiles) -> Result<WorktreeStatus, GitError> {
        let command = self
            .command("looking for uncommitted changes")
            // Git would otherwise start itself in each submodule, with the submodule's configuration.
            .args(["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=dirty"])
            .args(untracked.options())
            // It writes the index of this view, so that the next view need not read the same files again.
            .env("GIT_OPTIONAL_LOCKS", "1")
            .limit(TREE_LIMIT);
        let mut status = command.read_with(parse)?;
        for path in self.changed_submodules(&status)? {
            let (staged, unstaged, submodule) = (false, true, true);
            status.changes.push(FileChange::Tracked { path, staged, unstaged, submodule });
        }
        Ok(status)
    }

    /// Submodules whose own files or commits differ, besides those that are listed.
    fn changed_submodules(&self, status: &WorktreeStatus) -> Result<Vec<PathBuf>, GitError> {
        if !self.tree.join(".gitmodules").exists() {
            return Ok(Vec::new());
        }
        let listed = |path: &PathBuf| status.changes.iter().any(|change| change.path() == path);
        let mut changed = Vec::new();
        let submodules = self.repo.submodules(self)?.into_iter().map(|(path, _)| path);
        for path in submodules.filter(|path| !listed(path)) {
            if let Some(inner) = self.repo.nested(&self.tree, &path)?
                && inner.is_changed()?
            {
                changed.push(path);
            }
        }
        Ok(changed)
    }

    pub(crate) fn write_tree(&self, action: &str) -> Result<Sha, GitError> {
        let tree = self.command(action).arg("write-tree").read_with(sha)?;
        self.adopt(action, &tree)?;
        Ok(tree)
    }

    /// Brings a tree, with its content, into the project.
    pub fn adopt(&self, action: &str, tree: &Sha) -> Result<(), GitError> {
        let known = self.head.iter().map(|head| format!("^{head}\n")).collect::<String>();
        let wanted = format!("{tree}\n{known}");
        let pack = self.command(action).args(["-c", "pack.packSizeLimit=0", "pack-objects", "--quiet"]);
        let pack = pack.args(["--revs", "--local", "--non-empty"]).arg(self.git_dir().join(SAVED));
        let name = pack.stdin(wanted.clone()).limit(TREE_LIMIT).read_text()?;
        if name.is_empty() {
            return Ok(());
        }
        let place = PathBuf::from(format!("{SAVED}-{name}.pack"));
        let file = UntrustedFolder::open(self.git_dir()).and_then(|folder| folder.file(&place));
        let file = file.map_err(|error| GitError::io(action, &self.git_dir().join(&place), error))?;
        let receive = self.repo.command(action).args(["index-pack", "--stdin"]).stdin_file(file);
        let receive = receive.in_room(self.repo.room([self.repo.objects_folder()]));
        receive.runs_no_program().limit(TREE_LIMIT).check()?;
        let whole = self.repo.command(action).args(["rev-list", "--objects", "--quiet", "--stdin"]);
        whole.stdin(wanted).limit(TREE_LIMIT).check()
    }

    /// Gives a worktree's repository this view's index, in the place of a damaged one.
    pub(crate) fn give_index(&self, agent: &AgentRepo) -> Result<(), GitError> {
        let index = self.index();
        let give = || {
            let mut content = Vec::new();
            self.index_file()?.read_to_end(&mut content)?;
            agent.folder().write(Path::new("index"), &content)
        };
        give().map_err(|error| GitError::io("repairing the index of a worktree", &index, error))
    }

    /// Keeps this view's index as Liza's for the worktree, so that the next view is quick.
    pub(crate) fn keep_index(&self) -> Result<(), GitError> {
        let Some(name) = self.tree.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
        let failed =
            |error| GitError::io("keeping the index of a worktree", &self.repo.kept_index(name), error);
        self.keep_index_as(name).map_err(failed)
    }

    /// Keeps this view's index, which has its commit, for the worktree with that folder name.
    pub(crate) fn keep_index_as(&self, name: &str) -> io::Result<()> {
        let (place, checksum) = (self.repo.kept_index(name), self.checksum());
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        let temporary = place.with_file_name(temporary_name(".new-"));
        copy_with_time(&self.index_file()?, &temporary)?;
        fs::rename(&temporary, &place)?;
        let notes = self.repo.common_dir().join(INDEX_COMMITS);
        // Without a note, git compares the index with the commit.
        let _ = fs::create_dir_all(&notes);
        let _ = match self.head.as_ref().zip(checksum) {
            Some((head, checksum)) => fs::write(notes.join(name), format!("{head} {checksum}\n")),
            None => fs::remove_file(notes.join(name)),
        };
        Ok(())
    }

    pub fn tree(&self) -> &Path {
        &self.tree
    }
}

/// Copies an index with its time of change: by that time git knows which files changed in the moment in which
/// the index was written, and reads them again.
fn copy_with_time(mut from: &fs::File, to: &Path) -> io::Result<()> {
    let mut copy = fs::File::create(to)?;
    io::copy(&mut from, &mut copy)?;
    copy.set_modified(from.metadata()?.modified()?)
}
