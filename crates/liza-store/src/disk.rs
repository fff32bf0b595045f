use std::path::{Component, Path, PathBuf};

use liza_core::model::Worktree;
use liza_core::rules::invariants::DiskFacts;

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
        self.several_machines || self.root.join(worktree.as_str()).is_dir()
    }

    fn spec_exists(&self, path: &str) -> bool {
        let inside =
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        self.skip_specs || (inside && self.root.join(path).is_file())
    }
}
