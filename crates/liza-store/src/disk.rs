use std::path::{Component, Path, PathBuf};

use liza_core::model::Worktree;
use liza_core::rules::invariants::DiskFacts;
use liza_host::worktrees::{WORKTREES, worktrees_folder};

/// The facts that the rules need from the disk: the worktrees and specifications below the project root.
#[derive(Debug, Clone)]
pub struct ProjectDisk {
    root: PathBuf,
    skip_specs: bool,
    /// Worktrees may be on other machines.
    several_machines: bool,
}

impl ProjectDisk {
    /// With `SKIP_SPEC_FILE_CHECK=true` every specification counts as existing.
    pub fn new(root: &Path) -> Self {
        let skip_specs = std::env::var_os("SKIP_SPEC_FILE_CHECK").is_some_and(|value| value == "true");
        Self { root: root.to_owned(), skip_specs, several_machines: false }
    }

    pub fn of_several_machines(root: &Path) -> Self {
        Self { several_machines: true, ..Self::new(root) }
    }
}

impl DiskFacts for ProjectDisk {
    fn worktree_exists(&self, worktree: &Worktree) -> bool {
        let inside = Path::new(worktree.as_str()).strip_prefix(WORKTREES);
        let place = inside.map_or_else(
            |_| self.root.join(worktree.as_str()),
            |inside| worktrees_folder(&self.root).join(inside),
        );
        self.several_machines || place.is_dir()
    }

    fn spec_exists(&self, path: &str) -> bool {
        let inside =
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        self.skip_specs || (inside && self.root.join(path).is_file())
    }
}
