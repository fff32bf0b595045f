//! Links to the contract, under the names that agent programs read on their own.
//!
//! Never touches existing files, and excludes the links from git: they belong to this machine, not to the
//! project.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use liza_agents::contracts::CORE_NAME;
use liza_git::{Branch, GitError, Repo};
use serde_json::json;

use super::ui::error::CommandError;

/// The names that agent programs read in a project's root.
const NAMES: [&str; 3] = ["CLAUDE.md", "AGENTS.md", "GEMINI.md"];

#[derive(Debug, Default)]
pub(crate) struct ContractLinks {
    /// The contract that they point to; `None` if none is installed yet.
    target: Option<PathBuf>,
    made: Vec<&'static str>,
    /// The files that existed already.
    kept: Vec<&'static str>,
    /// The reason why some could not be made.
    failed: Option<String>,
}

/// Makes the missing links in a project whose approved work goes to that branch.
pub(crate) fn link(repo: &Repo, integration: &Branch, home: Option<&Path>) -> ContractLinks {
    let Some(target) = contract(repo.root(), home) else { return ContractLinks::default() };
    let mut links = ContractLinks { target: Some(target.clone()), ..ContractLinks::default() };
    if let Err(error) = links.make(repo, integration, &target) {
        links.failed = Some(error);
    }
    links
}

/// Those of the names that are links to a contract.
pub(crate) fn made_by_liza(root: &Path) -> Vec<&'static str> {
    let is_ours = |name: &&str| {
        let target = std::fs::read_link(root.join(name));
        target.is_ok_and(|target| target.file_name().is_some_and(|file| file == CORE_NAME))
    };
    NAMES.into_iter().filter(is_ours).collect()
}

/// Removes the links to a contract, and lets git see such files again.
pub(crate) fn unlink(repo: &Repo) -> Result<Vec<&'static str>, CommandError> {
    let ours = made_by_liza(repo.root());
    for name in &ours {
        let path = repo.root().join(name);
        std::fs::remove_file(&path).map_err(|error| {
            CommandError::refused("io", format!("cannot remove {}: {error}", path.display()))
        })?;
        repo.include_again(&[&format!("/{name}")])?;
    }
    Ok(ours)
}

/// The contract that applies: the project's own, else the installed one.
fn contract(root: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let own = Path::new("contracts").join(CORE_NAME);
    if root.join(&own).is_file() {
        return Some(own);
    }
    home.map(|home| home.join(".liza").join(CORE_NAME)).filter(|path| path.is_file())
}

impl ContractLinks {
    fn make(&mut self, repo: &Repo, integration: &Branch, target: &Path) -> Result<(), String> {
        let tracked = tracked(repo, integration).map_err(|error| error.to_string())?;
        for name in NAMES {
            let path = repo.root().join(name);
            // A dangling link may be intended, and a tracked file comes back with the next checkout.
            if path.symlink_metadata().is_ok() || tracked.iter().any(|known| known == name) {
                self.kept.push(name);
                continue;
            }
            // Excluded before it exists, so that no commit can include it.
            repo.exclude(&[&format!("/{name}")]).map_err(|error| error.to_string())?;
            match symlink(target, &path) {
                Ok(()) => self.made.push(name),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.kept.push(name),
                Err(error) => return Err(format!("cannot link {}: {error}", path.display())),
            }
        }
        Ok(())
    }

    pub(crate) fn in_words(&self) -> String {
        let Some(target) = &self.target else {
            return "not installed; run liza setup here to install and link it".to_owned();
        };
        let list = |names: &[&str]| names.join(", ");
        let made = match self.made.as_slice() {
            [] => None,
            made => Some(format!("{} → {} (excluded from git)", list(made), target.display())),
        };
        let kept = match self.kept.as_slice() {
            [] => None,
            [one] => Some(format!("{one} exists and is kept")),
            kept => Some(format!("{} exist and are kept", list(kept))),
        };
        [made, kept, self.failed.clone()].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn as_json(&self) -> serde_json::Value {
        json!({"to": self.target, "made": self.made, "kept": self.kept, "failed": self.failed})
    }
}

/// Those of the names that git tracks, here or on the integration branch.
fn tracked(repo: &Repo, integration: &Branch) -> Result<Vec<String>, GitError> {
    let doing = "looking for files of the project";
    let index = repo.command(doing).args(["ls-files", "--"]).args(NAMES).read_text()?;
    let tree = match repo.tip(integration)? {
        Some(tip) => repo
            .command(doing)
            .args(["ls-tree", "--name-only", tip.as_str(), "--"])
            .args(NAMES)
            .read_text()?,
        None => String::new(),
    };
    Ok(index.lines().chain(tree.lines()).map(str::to_owned).collect())
}
