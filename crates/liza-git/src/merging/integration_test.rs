//! Runs the project's `scripts/integration-test.sh` on a commit, in a separate checkout. Leaves no process
//! and no checkout behind. The script's exit status and the time limit alone decide the result.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use liza_host::private;
use liza_ids::{SandboxMin, Sha};
use liza_sandbox::confine::{Plan, ProgramRun, RunEnd, RunStage};
use liza_sandbox::sys::remove_tree::remove_tree;

use crate::merging::protected::{Protected, SCRIPT};
use crate::program::error::GitError;
use crate::program::leftovers::{leftovers, temporary_name};
use crate::program::refs::Branch;
use crate::program::repo::{Repo, sha};
use crate::workspace::nested_settings::FOLDER;
use crate::workspace::own_repo::NewCheckout;
use crate::workspace::rescue::as_liza;
use crate::workspace::view::Files;

/// The prefix of our checkouts; no task ID starts with a dot.
const PREFIX: &str = ".integration-test-";

const ACTION: &str = "running the integration test";
const SHELL: &str = "/bin/sh";

#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the branch must not move after a failed test"]
pub enum IntegrationTestResult {
    NoScript,
    Passed,
    Failed {
        /// `None` when a signal killed it.
        status: Option<i32>,
        signal: Option<i32>,
    },
    /// It was killed with everything that it had started.
    TimedOut,
    /// It exited with status 0, but the files that it runs from were changed meanwhile.
    Changed {
        paths: Vec<PathBuf>,
    },
}

impl IntegrationTestResult {
    /// The failure in words that follow its name; `None` if it passed.
    pub fn in_words(&self, limit: u64, changed: &str) -> Option<String> {
        Some(match self {
            IntegrationTestResult::NoScript | IntegrationTestResult::Passed => return None,
            IntegrationTestResult::Failed { status: Some(status), .. } => {
                format!("failed with exit status {status}")
            }
            IntegrationTestResult::Failed { status: None, signal } => {
                format!("was killed by signal {}", signal.unwrap_or_default())
            }
            IntegrationTestResult::TimedOut => format!("took longer than {limit} s"),
            IntegrationTestResult::Changed { paths } => {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                format!("{changed} ({})", paths.join(", "))
            }
        })
    }
}

/// The reason why a test doesn't test merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnusedTest {
    /// It is committed, but not on the integration branch.
    NotOnBranch,
    NotCommitted,
}

impl UnusedTest {
    pub fn problem(self) -> String {
        match self {
            UnusedTest::NotOnBranch => {
                format!(
                    "{SCRIPT} is on your branch but not on the integration branch, so merges are not tested"
                )
            }
            UnusedTest::NotCommitted => format!("{SCRIPT} is not committed, so merges are not tested"),
        }
    }

    pub fn fix(self) -> String {
        match self {
            UnusedTest::NotOnBranch => "liza sync".to_owned(),
            UnusedTest::NotCommitted => {
                format!("git add {SCRIPT} && git commit -m \"Add the integration test\", then: liza sync")
            }
        }
    }
}

/// A checkout of one commit, removed on drop.
#[derive(Debug)]
pub struct ScratchCheckout {
    path: PathBuf,
    shown: Option<PathBuf>,
}

impl ScratchCheckout {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path that programs know: a room may show it at another place.
    pub fn shown(&self) -> &Path {
        self.shown.as_deref().unwrap_or(&self.path)
    }

    /// Its plans show it at this place.
    pub fn show_at(&mut self, place: &Path) {
        self.shown = Some(place.to_owned());
    }
}

impl Drop for ScratchCheckout {
    fn drop(&mut self) {
        // A later process removes what is left; the result of the test doesn't depend on it.
        let _ = remove_tree(&self.path);
    }
}

/// Makes the plan for a checkout and a folder for temporary files; `None` if a run is not confined.
pub type MakePlan<'a> = dyn Fn(&Path, &Path) -> Result<Option<Plan>, GitError> + 'a;

pub struct TestStage<'a> {
    /// The liza program, which is also the stage that confines itself.
    pub liza: &'a Path,
    pub caches: &'a Path,
    pub minimum: Option<SandboxMin>,
    /// Ends the run at once when it becomes true.
    pub cancelled: Option<&'a AtomicBool>,
    pub plan: &'a MakePlan<'a>,
}

impl Repo {
    /// A commit on no branch: `base` with the test of the person's checkout, as it is there now.
    pub fn commit_with_test(&self, base: &Sha) -> Result<Sha, GitError> {
        let file = self.root().join(SCRIPT);
        let unread = |error| GitError::io("reading the integration test", &file, error);
        let (text, data) = (fs::read(&file).map_err(unread)?, fs::metadata(&file).map_err(unread)?);
        let mode = if data.permissions().mode() & 0o111 == 0 { "100644" } else { "100755" };
        let isolated = self.isolated_from_settings(base)?;
        let command = |words: &[&str]| isolated.command("preparing the test").args(words);
        let blob = command(&["hash-object", "-w", "--stdin"]).stdin(text).read_with(sha)?;
        command(&["read-tree", base.as_str()]).check()?;
        let entry = format!("{mode},{blob},{SCRIPT}");
        command(&["update-index", "--add", "--cacheinfo", &entry]).check()?;
        let tree = command(&["write-tree"]).read_with(sha)?;
        let parents = std::slice::from_ref(base);
        as_liza(isolated.command("preparing the test")).commit("The test, tried once\n", &tree, parents, &[])
    }

    /// True if the commit has a test.
    pub fn is_tested(&self, commit: &Sha) -> Result<bool, GitError> {
        Ok(self.test_script(commit)?.is_some())
    }

    /// Runs the test of a commit in its checkout, confined if there is a plan. Writes the protected files first, as stored.
    pub fn run_test(
        &self,
        (commit, checkout): (&Sha, &ScratchCheckout),
        protected: &Protected,
        output: &Path,
        limit: Duration,
        stage: &TestStage<'_>,
    ) -> Result<IntegrationTestResult, GitError> {
        let script = checkout.shown().join(SCRIPT);
        let shell = || (PathBuf::from(SHELL), vec![script.to_string_lossy().into_owned()]);
        let is_executable = self.test_script(commit)? == Some(true);
        let program = if is_executable { (script.clone(), Vec::new()) } else { shell() };
        self.judge(checkout, program, protected, output, limit, stage)
    }

    /// Runs a line of the shell in a checkout, as a test is run.
    pub fn run_line(
        &self,
        checkout: &ScratchCheckout,
        line: &str,
        protected: &Protected,
        output: &Path,
        limit: Duration,
        stage: &TestStage<'_>,
    ) -> Result<IntegrationTestResult, GitError> {
        let program = (PathBuf::from(SHELL), vec!["-c".to_owned(), line.to_owned()]);
        self.judge(checkout, program, protected, output, limit, stage)
    }

    fn judge(
        &self,
        checkout: &ScratchCheckout,
        (program, arguments): (PathBuf, Vec<String>),
        protected: &Protected,
        output: &Path,
        limit: Duration,
        stage: &TestStage<'_>,
    ) -> Result<IntegrationTestResult, GitError> {
        let TestStage { liza, caches, minimum, cancelled, plan } = *stage;
        let scratch = scratch_in(checkout.path().parent().unwrap_or(self.root()))?;
        let directory = checkout.shown();
        let plan = plan(directory, &scratch.path)?;
        let stage = plan.map(|plan| RunStage { liza, caches, scratch: &scratch.path, minimum, plan });
        let gate = self.lay_out(checkout.path(), protected)?;
        let stage = stage.map(|mut stage| {
            stage.plan.placed.extend(gate.sealed(directory));
            stage
        });
        gate.settle();
        let mut environment = self.git().environment().to_vec();
        // Else a gate in Python would change its own folder.
        environment.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        let environment = &environment;
        let run = ProgramRun { program, arguments, directory, environment, output, limit, stage, cancelled };
        Ok(match run.run().map_err(|error| GitError::io(ACTION, output, error))? {
            RunEnd::Exited(status) => match gate.changed() {
                paths if status.success() && !paths.is_empty() => IntegrationTestResult::Changed { paths },
                _ => result_of(status),
            },
            RunEnd::TimedOut => IntegrationTestResult::TimedOut,
            RunEnd::NotStarted(error) => not_started(output, &error),
        })
    }

    /// A folder for temporary files, removed like a checkout.
    pub fn scratch_folder(&self) -> Result<ScratchCheckout, GitError> {
        self.check_worktrees_folder()?;
        scratch_in(&self.worktrees_folder())
    }

    /// Removes scratch checkouts of dead processes; returns them.
    pub(crate) fn remove_test_leftovers(&self) -> Vec<PathBuf> {
        let folders = [self.worktrees_folder(), self.root().join(FOLDER)];
        let left: Vec<PathBuf> = folders.iter().flat_map(|folder| leftovers(folder, PREFIX)).collect();
        for path in &left {
            let _ = remove_tree(path);
        }
        left
    }

    /// True if merges onto this branch are tested.
    pub fn has_test(&self, integration: &Branch) -> Result<bool, GitError> {
        let Some(tip) = self.tip(integration)? else { return Ok(false) };
        Ok(self.script_entry(&tip)?.is_some())
    }

    /// The reason why the test in the person's checkout doesn't test merges onto this branch, if there is one.
    pub fn unused_test(&self, integration: &Branch) -> Result<Option<UnusedTest>, GitError> {
        let Some(tip) = self.tip(integration)? else { return Ok(None) };
        if self.script_entry(&tip)?.is_some() {
            return Ok(None);
        }
        if self.script_entry(&self.head()?.commit)?.is_some() {
            return Ok(Some(UnusedTest::NotOnBranch));
        }
        Ok(self.root().join(SCRIPT).exists().then_some(UnusedTest::NotCommitted))
    }

    /// True if the commit's script is executable; `None` without a script.
    fn test_script(&self, commit: &Sha) -> Result<Option<bool>, GitError> {
        Ok(self.script_entry(commit)?.map(|entry| !entry.starts_with(b"100644")))
    }

    /// The mode and the object of the commit's script; `None` without a script.
    fn script_entry(&self, commit: &Sha) -> Result<Option<Vec<u8>>, GitError> {
        let (command, commit) = (self.command("looking for the integration test"), self.full_hash(commit)?);
        let output =
            self.ask(&command.args(["ls-tree", "-z", "--full-tree", commit.as_str(), "--", SCRIPT]))?;
        let is_file = output.starts_with(b"100") || output.starts_with(b"120000");
        Ok(is_file.then_some(output))
    }

    pub fn scratch_checkout(&self, commit: &Sha) -> Result<ScratchCheckout, GitError> {
        self.scratch_checkout_in(&self.worktrees_folder(), commit)
    }

    /// The same where no session can read it, nor the temporary files of what runs in it.
    pub fn hidden_checkout(&self, commit: &Sha) -> Result<ScratchCheckout, GitError> {
        self.scratch_checkout_in(&self.root().join(FOLDER), commit)
    }

    /// `folder` is one of the root, as that of the worktrees: a checkout names the project's objects from there.
    fn scratch_checkout_in(&self, folder: &Path, commit: &Sha) -> Result<ScratchCheckout, GitError> {
        self.remove_test_leftovers();
        let path = folder.join(temporary_name(PREFIX));
        self.create_checkout(&NewCheckout {
            place: &path,
            commit,
            branch: None,
            integration: None,
            files: Files::All,
            keeps_index: false,
        })?;
        Ok(ScratchCheckout { path, shown: None })
    }
}

fn scratch_in(folder: &Path) -> Result<ScratchCheckout, GitError> {
    let path = folder.join(temporary_name(PREFIX));
    private::create_folder(&path).map_err(|error| GitError::io("creating a folder", &path, error))?;
    Ok(ScratchCheckout { path, shown: None })
}

/// As a shell does: the reason goes to the output, and the status is 126.
fn not_started(output: &Path, error: &io::Error) -> IntegrationTestResult {
    let _ = fs::write(output, format!("it could not be started: {error}\n"));
    IntegrationTestResult::Failed { status: Some(126), signal: None }
}

fn result_of(status: ExitStatus) -> IntegrationTestResult {
    if status.success() {
        IntegrationTestResult::Passed
    } else {
        IntegrationTestResult::Failed { status: status.code(), signal: status.signal() }
    }
}
