//! Checkouts with their own repository, which borrows the project's objects: for tasks, reviews, tests and
//! planners.
//!
//! Nothing done in one changes the project's repository. Its files are written here, without `git init`:
//! HEAD, an allow-list of the project's configuration, references, and the place of the project's objects. It
//! is complete before it gets its name.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use liza_host::worktrees;
use liza_ids::{Sha, TaskId};
use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};

use crate::diff::isolated::{format_settings, setting_lines};
use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::leftovers::TemporaryFolder;
use crate::program::programs::{LocalSettings, is_run_on_files};
use crate::program::refs::Branch;
use crate::program::refs_on_disk::refs_below;
use crate::program::repo::Repo;
use crate::workspace::agent_repo::AgentRepo;
use crate::workspace::giant_files::remove_giant_files;
use crate::workspace::unfinished::remove_unknown;
use crate::workspace::view::Files;

const SPARSE_MAX: u64 = 16 << 20;

/// The prefix of folders that are not complete yet; no task ID starts with a dot.
pub(crate) const UNFINISHED: &str = ".new-";

/// The name under which a checkout sees the integration branch.
pub(crate) const INTEGRATION: &str = "refs/remotes/liza/integration";

const ACTION: &str = "creating a worktree";

const USING: &str = "using the folder of worktrees";

/// Settings of the project that apply in its checkouts: identity, and the writing and comparison of files. No
/// remotes, credentials, addresses or includes.
const COPIED: [&str; 18] = [
    "user.",
    "author.",
    "committer.",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.filemode",
    "core.ignorecase",
    "core.symlinks",
    "core.precomposeunicode",
    "core.quotepath",
    "core.whitespace",
    "core.attributesfile",
    "core.excludesfile",
    "filter.",
    "diff.",
    "commit.gpgsign",
    "gpg.format",
];

#[derive(Debug, Clone, Copy)]
pub(crate) struct NewCheckout<'a> {
    pub place: &'a Path,
    pub commit: &'a Sha,
    /// `None` for a detached HEAD.
    pub branch: Option<&'a Branch>,
    /// The integration branch, of which it has a copy; `None` for copies of all branches.
    pub integration: Option<&'a Branch>,
    pub files: Files,
    /// Liza will inspect it later, and keeps an index for that.
    pub keeps_index: bool,
}

impl Repo {
    /// Its folder must not exist.
    pub(crate) fn create_checkout(&self, new: &NewCheckout<'_>) -> Result<(), GitError> {
        let parent = new.place.parent().unwrap_or(self.root());
        self.check_worktrees_folder()?;
        let folder = TemporaryFolder::name_in(parent, UNFINISHED);
        self.fill_checkout(new, folder.path())?;
        fs::rename(folder.path(), new.place).map_err(|error| GitError::io(ACTION, new.place, error))
    }

    /// Rewrites the required files of the worktree's repository, with the present integration head.
    pub(crate) fn refresh_worktree(&self, task: &TaskId, integration: &Branch) -> Result<(), GitError> {
        let path = self.worktree_path(task);
        let Some(agent) = AgentRepo::of(&path) else { return Ok(()) };
        remove_giant_files(&path)?;
        let commit = agent.head()?.commit;
        self.write_git_folder(agent.folder(), &commit)?;
        if !agent.has_index() {
            self.view_of_worktree(&path, &commit)?.give_index(&agent)?;
        }
        let Some(head) = self.tip(integration)? else { return Ok(()) };
        self.keep_borrowed(task, &head)?;
        self.write_integration(agent.folder(), integration, &head)
    }

    /// Writes the settings of a worktree's repository as they were made, and removes what is not on the list of what it keeps: git
    /// then starts nothing of an agent for a person who enters it or a repository inside. A `.git` that only leads to another
    /// repository is removed.
    pub fn restore_settings(&self, task: &TaskId) -> Result<(), GitError> {
        let path = self.worktree_path(task);
        let nested = self.restore_nested(&path);
        let failed = |error| GitError::io("restoring the settings of a worktree", &path, error);
        if let Some(agent) = AgentRepo::of(&path) {
            let removed = remove_unknown(agent.folder()).map_err(failed);
            self.write_git_folder(agent.folder(), &self.head()?.commit)?;
            return removed.and(nested);
        }
        let Ok(files) = UntrustedFolder::open(&path) else { return Ok(()) };
        if self.linked_git_dir(&path).is_none() {
            files.remove(Path::new(".git")).map_err(failed)?;
        }
        nested
    }

    /// Checks that `.worktrees` is a folder: behind a link, checkouts would be outside the confinement. One that is
    /// outside the project is made.
    pub(crate) fn check_worktrees_folder(&self) -> Result<(), GitError> {
        let folder = self.worktrees_folder();
        worktrees::prepare(self.root()).map_err(|error| GitError::io(USING, &folder, error))?;
        if !fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_symlink()) {
            return Ok(());
        }
        let link = io::Error::other("it is a link; remove it, Liza makes a folder there");
        Err(GitError::io(USING, &folder, link))
    }

    fn fill_checkout(&self, new: &NewCheckout<'_>, folder: &Path) -> Result<(), GitError> {
        let git_dir = folder.join(".git");
        let io = |error| GitError::io(ACTION, &git_dir, error);
        fs::create_dir_all(git_dir.join("objects/pack")).map_err(io)?;
        let files = UntrustedFolder::open(&git_dir).map_err(io)?;
        self.write_git_folder(&files, new.commit)?;
        let refs = self.checkout_refs(new.integration);
        files.write(Path::new("packed-refs"), refs.as_bytes()).map_err(io)?;
        let head = match new.branch {
            Some(branch) => {
                write_ref(&files, &branch.full(), new.commit).map_err(io)?;
                format!("ref: {}\n", branch.full())
            }
            None => format!("{}\n", new.commit),
        };
        files.write(Path::new("HEAD"), head.as_bytes()).map_err(io)?;
        self.check_out(new, folder)?;
        Ok(())
    }

    /// Writes the files of the commit, through a view of ours: the project's accepted configuration applies.
    fn check_out(&self, new: &NewCheckout<'_>, folder: &Path) -> Result<(), GitError> {
        let view = self.view(folder, Some(new.commit), new.files)?;
        let write = ["read-tree", "-u", "--reset", new.commit.as_str()];
        let command = view.checkout_command(ACTION).args(write).limit(TREE_LIMIT);
        command.check_after(|| {
            // A first time elsewhere: git fetches only with your logins, and then it runs no filter.
            let other = TemporaryFolder::name_in(folder.parent().unwrap_or(folder), UNFINISHED);
            let other = other.path();
            fs::create_dir(other).map_err(|error| GitError::io(ACTION, other, error))?;
            let view = self.view(other, Some(new.commit), new.files)?;
            view.raw_checkout_command(ACTION).args(write).limit(TREE_LIMIT).check()
        })?;
        let name = new.place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let place = self.kept_index(name);
        let keep = || {
            // A filter could have put links there.
            let git = UntrustedFolder::open(folder)?.folder(Path::new(".git"))?;
            let mut index = Vec::new();
            view.index_file()?.read_to_end(&mut index)?;
            git.write(Path::new("index"), &index)?;
            if view.is_sparse() {
                let patterns = Path::new("info/sparse-checkout");
                let text = UntrustedFolder::open(view.git_dir())?.read(patterns, SPARSE_MAX)?;
                git.make_folder(Path::new("info"))?;
                git.write(patterns, &text)?;
            }
            if new.keeps_index { view.keep_index_as(name) } else { Ok(()) }
        };
        keep().map_err(|error| GitError::io(ACTION, &place, error))
    }

    /// Writes the required files of a checkout's repository, over an agent's changes: configuration, the
    /// place of the project's objects, excluded files.
    fn write_git_folder(&self, files: &UntrustedFolder, commit: &Sha) -> Result<(), GitError> {
        let config = self.checkout_config(&self.local_settings()?, commit);
        let copies = ["info/exclude", "info/attributes"]
            .map(|name| (name, fs::read(self.common_dir().join(name)).ok()));
        let shallow = fs::read(self.common_dir().join("shallow")).ok();
        let write = || {
            files.make_folder(Path::new("objects/info"))?;
            files.make_folder(Path::new("objects/pack"))?;
            files.make_folder(Path::new("refs/heads"))?;
            files.make_folder(Path::new("info"))?;
            // Git would read settings elsewhere, or further ones.
            for name in ["commondir", "config.worktree", "info/attributes", "info/grafts"] {
                files.remove(Path::new(name))?;
            }
            files.write(Path::new("config"), config.as_bytes())?;
            files.write(Path::new("objects/info/alternates"), &self.alternates())?;
            for (name, text) in copies.into_iter().chain([("shallow", shallow)]) {
                if let Some(text) = text {
                    files.write(Path::new(name), &text)?;
                }
            }
            Ok(())
        };
        write().map_err(|error| GitError::io(ACTION, &self.worktrees_folder(), error))
    }

    fn write_integration(
        &self,
        files: &UntrustedFolder,
        integration: &Branch,
        head: &Sha,
    ) -> Result<(), GitError> {
        for name in [INTEGRATION, &integration.full()] {
            write_ref(files, name, head)
                .map_err(|error| GitError::io(ACTION, &self.worktrees_folder(), error))?;
        }
        Ok(())
    }

    /// The line that names the project's objects; relative, where the project may be moved with its checkouts.
    pub fn alternates(&self) -> Vec<u8> {
        let objects = self.common_dir().join("objects");
        let place = match objects.strip_prefix(self.root()) {
            Ok(inside) if self.worktrees_folder().starts_with(self.root()) => {
                Path::new("../../../..").join(inside)
            }
            Ok(_) | Err(_) => objects,
        };
        let mut line = place.into_os_string().into_encoded_bytes();
        line.push(b'\n');
        line
    }

    fn checkout_config(&self, settings: &LocalSettings, commit: &Sha) -> String {
        let allowed =
            |key: &str| COPIED.iter().any(|one| key == *one || one.ends_with('.') && key.starts_with(one));
        let is_safe = |(key, value): &(&str, &str)| {
            !is_run_on_files(key) || self.accepted().may_run_among_agents_files(value.as_bytes())
        };
        let own = settings.entries().filter(|(key, _)| allowed(key)).filter(is_safe);
        let mut text = format_settings(commit).replace("bare = true", "bare = false");
        text.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdetachedHead = false\n");
        text.push_str(&setting_lines(("core.usereplacerefs", "false")));
        text.push_str(&setting_lines(("core.hookspath", &self.hooks_place(settings))));
        if settings.get("core.sparsecheckout").is_some_and(|value| value == "true") {
            text.push_str(&setting_lines(("core.sparsecheckout", "true")));
            let cone = settings.get("core.sparsecheckoutcone").unwrap_or("false");
            text.push_str(&setting_lines(("core.sparsecheckoutcone", cone)));
        }
        if settings.get("extensions.partialclone").is_some() {
            // Objects that the project has not fetched are missing here too; git must expect that.
            let url = self.common_dir().to_string_lossy().into_owned();
            let lines = [("extensions.partialclone", "project"), ("remote.project.promisor", "true")];
            lines.into_iter().chain([("remote.project.url", url.as_str())]).for_each(|line| {
                text.push_str(&setting_lines(line));
            });
        }
        own.for_each(|line| text.push_str(&setting_lines(line)));
        text
    }

    /// Git would look for a relative place among the work's files.
    fn hooks_place(&self, settings: &LocalSettings) -> String {
        let place = match settings.get("core.hookspath") {
            Some(named) if named.starts_with(['~', '%']) => return named.to_owned(),
            Some(named) => self.root().join(named),
            None => self.common_dir().join("hooks"),
        };
        place.to_string_lossy().into_owned()
    }

    /// The project's tags and remote branches, and copies of branches, as a packed list.
    fn checkout_refs(&self, integration: Option<&Branch>) -> String {
        let branch = integration.map(Branch::full);
        let branches = branch.as_deref().unwrap_or("refs/heads");
        let mut refs = refs_below(self.common_dir(), &["refs/tags", "refs/remotes", branches]);
        refs.retain(|name, _| !name.starts_with("refs/remotes/liza/"));
        let integration = branch.and_then(|branch| refs.get(&branch).cloned());
        refs.extend(integration.map(|head| (INTEGRATION.to_owned(), head)));
        let header = "# pack-refs with: sorted \n".to_owned();
        refs.iter().fold(header, |text, (name, commit)| format!("{text}{commit} {name}\n"))
    }

    /// True if a folder is a checkout that Liza made with its own repository.
    pub(crate) fn is_own_checkout(&self, folder: &Path) -> bool {
        let Some(agent) = AgentRepo::of(folder) else { return false };
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let place = agent.folder().read(Path::new("objects/info/alternates"), 4 << 10);
        self.kept_index(name).exists() || place.is_ok_and(|place| place == self.alternates())
    }

    /// True if a checkout's repository has not been used since it was created.
    pub(crate) fn is_unused(&self, agent: &AgentRepo, commit: &Sha) -> Result<bool, GitError> {
        const NAMES: [&str; 8] =
            ["HEAD", "config", "index", "info", "objects", "packed-refs", "refs", "shallow"];
        let Ok(entries) = agent.folder().entries() else { return Ok(false) };
        let known = |(name, kind): &(std::ffi::OsString, EntryKind)| {
            *kind != EntryKind::Other && name.to_str().is_some_and(|name| NAMES.contains(&name))
        };
        let config = self.checkout_config(&self.local_settings()?, commit);
        let is = |name: &str, text: &[u8]| {
            agent.folder().read(Path::new(name), 1 << 20).is_ok_and(|found| found == text)
        };
        let same = is("config", config.as_bytes()) && is("objects/info/alternates", &self.alternates());
        Ok(same && entries.iter().all(known) && agent.has_index() && agent.has_no_objects())
    }

    fn local_settings(&self) -> Result<LocalSettings, GitError> {
        Ok(LocalSettings::parse(&self.settings()?))
    }
}

fn write_ref(files: &UntrustedFolder, name: &str, commit: &Sha) -> io::Result<()> {
    let name = Path::new(name);
    files.make_folder(name.parent().unwrap_or(name))?;
    files.write(name, format!("{commit}\n").as_bytes())
}
