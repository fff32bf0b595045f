//! Runs the acceptance tests that no session reads (`config.holdout`), on the files of a merge before the branch
//! moves. Agents learn names from a list that was read before, and nothing that the tests print.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use liza_core::model::{Config, Sha, TaskId};
use liza_core::rules::holdout::{HoldoutResult, HoldoutRun, judge, names};
use liza_core::text::shell_word;
use liza_git::{PendingMerge, Protected, copy_tree};
use liza_host::durable;
use liza_host::random_text::random_hex;
use liza_sandbox::sys::remove_tree::{fresh_folder, remove_tree};

use crate::engine::EngineError;
use crate::project::Project;
use crate::session::plan::holdout_folder;

use super::test_run::TestRun;

/// The program in the folder that runs the tests, and the list of their names.
const PROGRAM: &str = "run";
const NAMES: &str = "names";

/// The folder in `.liza` with the copy that a run uses; no session reads there.
const COPIES: &str = "holdout";

/// The folder of `config.holdout`, with what it needs.
#[derive(Debug)]
pub struct Holdout {
    folder: PathBuf,
    names: BTreeSet<String>,
}

impl Holdout {
    /// `None` if the settings name none; the problem in words if it cannot be used.
    pub fn of(project: &Project, config: &Config) -> Option<Result<Self, String>> {
        holdout_folder(config).map(|folder| Self::at(project, &folder))
    }

    fn at(project: &Project, folder: &Path) -> Result<Self, String> {
        let unusable = |problem: &str| format!("{}: {problem}", folder.display());
        let real = folder.canonicalize().ok().filter(|real| folder.is_absolute() && real.is_dir());
        let folder = real.ok_or_else(|| unusable("not a folder with an absolute path"))?;
        let contains = |outer: &Path, inner: &Path| {
            outer.canonicalize().is_ok_and(|outer| inner.starts_with(outer)) || outer.starts_with(inner)
        };
        if contains(project.root(), &folder) || contains(project.folder(), &folder) {
            return Err(unusable("it must be outside of the project, where sessions read"));
        }
        let program = fs::metadata(folder.join(PROGRAM));
        if !program.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0) {
            return Err(unusable("it needs an executable file `run`"));
        }
        let text = durable::read_text(&folder.join(NAMES)).unwrap_or_default();
        match names(&text) {
            names if names.is_empty() => {
                Err(unusable("it needs a file `names` with the names of the tests, one per line"))
            }
            names => Ok(Self { folder, names }),
        }
    }

    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// Runs the tests on one commit. Their folder is copied to a random place, so that code cannot know it before.
    fn run(
        &self,
        project: &Project,
        config: &Config,
        (task, commit): (&TaskId, &Sha),
        gate: &Protected,
    ) -> Result<HoldoutRun, EngineError> {
        let copies = project.folder().join(COPIES);
        let copied = || -> io::Result<PathBuf> {
            // Merges wait for each other, so what is there was left by a killed one.
            fresh_folder(&copies)?;
            let copy = copies.join(random_hex(16)?);
            copy_tree(&self.folder, &fs::symlink_metadata(&self.folder)?, &copy, None)?;
            Ok(copy)
        };
        let copy = copied().map_err(EngineError::io("copy config.holdout to", &copies))?;
        let line = format!("exec {}", shell_word(&copy.join(PROGRAM).to_string_lossy()));
        let run = TestRun::of_merge(project, config, (Some(task), commit))?.reading(&copy);
        let ended = run.line(commit, gate, &format!("{task}-holdout"), &line);
        let _ = remove_tree(&copies);
        let (passed, output) = ended?;
        let text = durable::read_file(&output).map_err(EngineError::io("read", &output))?;
        Ok(HoldoutRun::new(passed, &String::from_utf8_lossy(&text), &self.names))
    }
}

/// Judges a merge whose other tests passed; the branch itself is run only if the merge fails. `goes_on` refuses the
/// second run if the merge was ended meanwhile.
pub(super) fn judge_merge(
    project: &Project,
    config: &Config,
    task: &TaskId,
    (merge, before, after): (&PendingMerge, &Protected, &Protected),
    goes_on: impl FnOnce() -> Result<(), EngineError>,
) -> Result<HoldoutResult, EngineError> {
    let Some(holdout) = Holdout::of(project, config) else { return Ok(HoldoutResult::Passed) };
    let holdout = holdout.map_err(|problem| EngineError::Holdout { problem })?;
    let merged = holdout.run(project, config, (task, &merge.new), after)?;
    if merged.passed {
        return Ok(HoldoutResult::Passed);
    }
    goes_on()?;
    let branch = holdout.run(project, config, (task, &merge.old), before)?;
    Ok(judge(&merged, &branch))
}
