//! `TestRepo`: a repository in a temporary folder, with a fixed identity and clock and no inherited settings.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use liza_git::{
    Branch, Git, MergeError, MergeKind, MergeMessage, PendingMerge, PreparedWorktree, Repo, WorktreeMode,
};
use liza_ids::{Digest, Generation, Sha, TaskId};

pub(crate) struct TestRepo {
    pub(crate) home: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) repo: Repo,
}

/// The variables that every git of a test gets.
pub(crate) fn variables(home: &Path) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap();
    vec![
        ("PATH".into(), path),
        ("HOME".into(), home.into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ("GIT_CONFIG_GLOBAL".into(), home.join("gitconfig").into()),
    ]
}

/// Git with that home folder; this test is no keeper of filters, so a program of its own is.
fn program_in(home: &Path) -> Git {
    Git::with_environment(variables(home)).with_keeper(env!("CARGO_BIN_EXE_keep-filter-for-tests"))
}

pub(crate) fn task(name: &str) -> TaskId {
    name.parse().unwrap()
}

pub(crate) fn branch(name: &str) -> Branch {
    name.parse().unwrap()
}

pub(crate) fn integration() -> Branch {
    branch("integration")
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

pub(crate) fn script(path: &Path, text: &str) {
    write(path, &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A merge onto the integration branch, with its commit.
pub(crate) fn prepare_merge(repo: &Repo, name: &str, commit: &Sha) -> Result<PendingMerge, MergeError> {
    let old = repo.tip(&integration())?.unwrap();
    let draft = repo.draft_merge(&old, commit)?;
    let (task, statement) = (task(name), Digest::of(b"a statement"));
    let (kind, title) = (MergeKind::Task(&task), Some("Add retry"));
    let approved_by = Some("code-reviewer-1");
    let message = MergeMessage { kind, title, approved_by, statement: &statement };
    Ok(repo.commit_draft(&draft, &message)?)
}

/// Runs git as a person would; returns whether it succeeded and what it printed.
pub(crate) fn git_in(home: &Path, folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables(home))
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    (output.status.success(), text.join("\n").trim().to_owned())
}

impl TestRepo {
    /// A repository with files `a` and `b`, branch `main` checked out, and an integration branch.
    pub(crate) fn new() -> Self {
        Self::at("project")
    }

    /// The same in a folder of that name.
    pub(crate) fn at(name: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join(name);
        fs::create_dir(&root).unwrap();
        let config = "[user]\nname = Test\nemail = test@example.com\n[init]\ndefaultBranch = main\n";
        fs::write(home.path().join("gitconfig"), config).unwrap();
        let git = |arguments: &[&str]| assert!(git_in(home.path(), &root, arguments).0, "{arguments:?}");
        git(&["init", "-q"]);
        write(&root.join("a"), "a\n");
        write(&root.join("b"), "b\n");
        write(&root.join(".gitignore"), "*.tmp\n");
        git(&["add", "."]);
        git(&["commit", "-qm", "start"]);
        git(&["branch", "integration"]);
        let repo = Repo::open(&program_in(home.path()), &root).unwrap();
        repo.exclude(&["/.worktrees/", "/.liza/"]).unwrap();
        Self { home, root, repo }
    }

    /// Opens the repository again, from any folder.
    pub(crate) fn open(&self, from: &Path) -> Repo {
        Repo::open(&self.program(), from).unwrap()
    }

    pub(crate) fn program(&self) -> Git {
        program_in(self.home.path())
    }

    /// Runs git in a folder; must succeed.
    pub(crate) fn git_at(&self, folder: &Path, arguments: &[&str]) -> String {
        let (ok, text) = git_in(self.home.path(), folder, arguments);
        assert!(ok, "git {arguments:?}: {text}");
        text
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_at(&self.root, arguments)
    }

    pub(crate) fn sha(&self, revision: &str) -> Sha {
        self.git(&["rev-parse", revision]).parse().unwrap()
    }

    /// Commits one file in a folder; returns the commit. In a task's worktree it is taken, as a supervisor does.
    pub(crate) fn commit(&self, folder: &Path, file: &str, text: &str) -> Sha {
        write(&folder.join(file), text);
        self.git_at(folder, &["add", "-A"]);
        self.git_at(folder, &["commit", "-qm", &format!("change {file}")]);
        self.take(folder);
        self.git_at(folder, &["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Takes the commits of a folder, if it is a task's worktree.
    fn take(&self, folder: &Path) {
        let is_worktree = folder.parent().is_some_and(|parent| parent.ends_with(".worktrees"));
        let name = folder.file_name().and_then(|name| name.to_str()?.parse::<TaskId>().ok());
        if let Some(task) = name.filter(|_| is_worktree) {
            self.open(folder).take_work(&task, Generation(7)).unwrap();
        }
    }

    /// Commits one file on the integration branch, without a checkout of it.
    pub(crate) fn advance(&self, file: &str, text: &str) -> Sha {
        let folder = self.home.path().join("elsewhere");
        let _ = fs::remove_dir_all(&folder);
        self.git(&["worktree", "add", "-q", "-f", "--detach", folder.to_str().unwrap(), "integration"]);
        let commit = self.commit(&folder, file, text);
        self.git(&["update-ref", "refs/heads/integration", commit.as_str()]);
        self.git(&["worktree", "remove", "--force", folder.to_str().unwrap()]);
        commit
    }

    pub(crate) fn base(&self) -> Sha {
        self.sha("integration")
    }

    pub(crate) fn prepare_worktree(&self, name: &str, mode: WorktreeMode) -> PreparedWorktree {
        self.repo.prepare_worktree(&task(name), &self.base(), mode, &integration()).unwrap()
    }

    /// A new worktree's folder.
    pub(crate) fn worktree(&self, name: &str) -> PathBuf {
        self.prepare_worktree(name, WorktreeMode::Keep).path
    }

    /// A linked worktree, as the original system made them.
    pub(crate) fn linked_worktree(&self, name: &str) -> PathBuf {
        let path = self.root.join(".worktrees").join(name);
        let branch = format!("task/{name}");
        self.git(&["worktree", "add", "-q", "-b", &branch, path.to_str().unwrap(), "integration"]);
        path
    }

    pub(crate) fn prepare_merge(&self, name: &str, commit: &Sha) -> Result<PendingMerge, MergeError> {
        prepare_merge(&self.repo, name, commit)
    }

    /// A merge that must be possible.
    pub(crate) fn pending_merge(&self, name: &str, commit: &Sha) -> PendingMerge {
        self.prepare_merge(name, commit).unwrap()
    }

    pub(crate) fn move_branch(&self, merge: &PendingMerge, name: &str) -> Result<(), MergeError> {
        self.repo.move_branch(&integration(), merge, &task(name))
    }

    /// The content of a file in a revision.
    pub(crate) fn show(&self, revision: &str, file: &str) -> String {
        self.git(&["show", &format!("{revision}:{file}")])
    }

    pub(crate) fn branches(&self, pattern: &str) -> Vec<String> {
        let text = self.git(&["for-each-ref", "--format=%(refname:short)", &format!("refs/heads/{pattern}")]);
        text.lines().map(str::to_owned).collect()
    }

    /// Git's list of worktrees, to compare before and after.
    pub(crate) fn worktree_list(&self) -> String {
        self.git(&["worktree", "list", "--porcelain"])
    }
}
