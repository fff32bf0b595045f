//! The integration test of a merge: on the merged result and, if it fails there, once on the integration branch itself.
//!
//! Decides whose fault a failure is; moves no branch and changes no task.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::{Actor, HeadTest, Sandbox, Sha, StopFiles, TaskId, TestFailure};
use liza_core::protocol::{BeginMerge, MergeFailure, RecordHeadTest};
use liza_core::text::one_line;

use crate::checkout_setup::{CheckoutUse, set_up};
use crate::engine::{Engine, EngineError};
use crate::git::{IntegrationTestResult, PendingMerge, TestStage};
use crate::running_merge::TEST_LOGS;
use crate::session_plan::{SessionNeeds, minimum, session_plan};

/// How many of the last lines of the output are kept, and how long each may be.
const LAST_LINES: (usize, usize) = (8, 200);

/// The test of one merge.
pub(super) struct MergeTest<'e, 'p> {
    pub(super) engine: &'e Engine<'p>,
    /// How long the test may take.
    pub(super) limit: Duration,
}

/// What the test says about a merge.
pub(super) enum MergeTestResult {
    /// It passed, or there is none.
    Passed,
    /// It fails with the task only.
    Failed(MergeFailure),
    /// It fails without the task too.
    HeadFails(TestFailure),
}

impl MergeTest<'_, '_> {
    /// Tests the merged result. `known` is the last result on a head of the integration branch.
    pub(super) fn run(
        &self,
        task: &TaskId,
        merge: &PendingMerge,
        known: Option<&HeadTest>,
    ) -> Result<MergeTestResult, EngineError> {
        let Some(failure) = self.failure(&merge.new, task.as_str())? else {
            return Ok(MergeTestResult::Passed);
        };
        let TestFailure { what, output, .. } = failure;
        let fault_of_task = MergeTestResult::Failed(MergeFailure::Test { what, output });
        // A task that adds or changes the test is judged by its own version.
        if !self.engine.repo()?.has_same_test(&merge.old, &merge.new)? {
            return Ok(fault_of_task);
        }
        // A test that was killed with its team does not start another one.
        self.engine.check(StopFiles::default(), BeginMerge { task: task.clone() })?;
        Ok(match self.head_failure(&merge.old, known)? {
            Some(failure) => MergeTestResult::HeadFails(failure),
            None => fault_of_task,
        })
    }

    /// How the test fails on the integration branch itself. It runs once per head, unless the human asks for the merge.
    fn head_failure(&self, head: &Sha, known: Option<&HeadTest>) -> Result<Option<TestFailure>, EngineError> {
        let known = known.filter(|known| known.head == *head && self.engine.actor() != Actor::Human);
        if let Some(known) = known {
            return Ok(known.failure.clone());
        }
        let failure = self.failure(head, &format!("head-{}", head.short()))?;
        self.engine.execute(RecordHeadTest { head: head.clone(), failure: failure.clone() })?;
        Ok(failure)
    }

    /// Runs the test of a commit, if it has one; returns how it failed.
    fn failure(&self, commit: &Sha, name: &str) -> Result<Option<TestFailure>, EngineError> {
        let project = self.engine.project();
        let file = next_log(&project.folder().join(TEST_LOGS), name);
        let what = match self.run_on(commit, &file)? {
            IntegrationTestResult::NoScript | IntegrationTestResult::Passed => return Ok(None),
            IntegrationTestResult::Failed { status: Some(status), .. } => {
                format!("integration test failed with exit status {status}")
            }
            IntegrationTestResult::Failed { status: None, signal } => {
                format!("integration test was killed by signal {}", signal.unwrap_or_default())
            }
            IntegrationTestResult::TimedOut => {
                format!("integration test took longer than {} s", self.limit.as_secs())
            }
        };
        let output = file.strip_prefix(project.root()).unwrap_or(&file).to_string_lossy().into_owned();
        Ok(Some(TestFailure { what, output, last_lines: last_lines(&file) }))
    }

    /// Runs it in the same confinement as a session.
    fn run_on(&self, commit: &Sha, output: &Path) -> Result<IntegrationTestResult, EngineError> {
        let (project, repo) = (self.engine.project(), self.engine.repo()?);
        let state = project.state()?;
        let config = state.board.config()?;
        let Some(test) = repo.test_checkout(commit)? else { return Ok(IntegrationTestResult::NoScript) };
        set_up(project, config, test.path(), CheckoutUse::MergeTest)?;
        if config.sandbox == Sandbox::Off {
            return Ok(repo.run_test(&test, output, self.limit, None)?);
        }
        let liza = std::env::current_exe().unwrap_or_else(|_| "liza".into());
        let caches = project.folder().join("caches").join("integration-test");
        let own = [caches.clone()];
        let plan = |checkout: &Path, scratch: &Path| {
            let needs = SessionNeeds {
                liza: &liza,
                checkout: Some(checkout),
                scratch,
                own: &own,
                files: &[],
                program: None,
                channel: None,
                network: None,
            };
            session_plan(project, config, &needs).map(Option::unwrap_or_default)
        };
        let stage = TestStage { liza: &liza, caches: &caches, minimum: minimum(config), plan: &plan };
        Ok(repo.run_test(&test, output, self.limit, Some(&stage))?)
    }
}

/// The first log file of that name that does not exist yet.
fn next_log(folder: &Path, name: &str) -> PathBuf {
    let numbered = |number: u32| folder.join(format!("{name}-{number}.log"));
    (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}

/// The end of an output, on short lines; nothing if it cannot be read.
fn last_lines(file: &Path) -> Vec<String> {
    let (number, length) = LAST_LINES;
    let text = fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<String> =
        text.lines().map(|line| one_line(line, length)).filter(|line| !line.is_empty()).collect();
    lines.into_iter().rev().take(number).rev().collect()
}
