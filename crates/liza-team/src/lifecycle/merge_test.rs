//! The integration test of a merge: on the merged result; with the protected files of the integration branch,
//! if the merge changes them; and, if it fails, once on the integration branch itself. Decides who is to
//! blame for a failure; moves no branch and changes no task.

use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::{Actor, Config, GateChange, HeadTest, Sandbox, Sha, StopFiles, TaskId, TestFailure};
use liza_core::protocol::{BeginMerge, MergeFailure, Mergeable, RecordHeadTest};
use liza_core::text::one_line;
use liza_git::{GitError, IntegrationTestResult, PendingMerge, Protected, TestStage};
use liza_host::{durable, private};
use liza_ids::gate::GatePatterns;

use crate::engine::{Engine, EngineError};
use crate::project::Project;
use crate::project::accepted_gate::gate_here;
use crate::session::checkout_setup::{CheckoutUse, SetupError, prepare, set_up};
use crate::session::plan::{SessionNeeds, minimum, session_plan};

pub const TEST_LOGS: &str = "integration-tests";

/// The number of last lines of the output that are kept, and their longest length.
const LAST_LINES: (usize, usize) = (8, 200);

pub(super) struct MergeTest<'e, 'p> {
    engine: &'e Engine<'p>,
    limit: Duration,
    /// The files that judge work, as the person of this machine accepted them; never as the work names them.
    patterns: GatePatterns,
}

pub(super) enum MergeTestResult {
    /// It passed, or there is none.
    Passed,
    /// It fails with the task only.
    Failed(MergeFailure),
    /// It fails without the task too.
    HeadFails(TestFailure),
    /// It passes, but the merge changes protected files, and the human has not accepted that.
    GateChanged(GateChange),
}

struct Gates {
    before: Protected,
    after: Protected,
}

impl<'e, 'p> MergeTest<'e, 'p> {
    pub(super) fn new(engine: &'e Engine<'p>, limit: Duration) -> Result<Self, EngineError> {
        let project = engine.project();
        let patterns = GatePatterns::new(&gate_here(project, &project.state()?.board.config()?.gate)?);
        Ok(Self { engine, limit, patterns })
    }

    /// If the merge changes protected files, it is tested with both versions of them.
    pub(super) fn run(
        &self,
        merge: &PendingMerge,
        approved: &Mergeable,
    ) -> Result<MergeTestResult, EngineError> {
        let (repo, task) = (self.engine.repo()?, &approved.task.task);
        let gates = Gates {
            before: repo.protected(&merge.old, &self.patterns)?,
            after: repo.protected(&merge.new, &self.patterns)?,
        };
        if let Some(link) = gates.after.new_outside(&gates.before) {
            let what =
                format!("{} is a protected file and a link that leads out of the repository", link.display());
            return Ok(MergeTestResult::Failed(self.without_test(task, what)?));
        }
        if let Some(failure) = self.failure(&merge.new, &gates.after, task.as_str())? {
            return self.blame(failure, merge, &gates.before, approved);
        }
        match gates.after.changes(&gates.before) {
            true => self.judge_change(merge, &gates, approved),
            false => Ok(MergeTestResult::Passed),
        }
    }

    /// A failure for which no test has to run; the log has it as its output.
    fn without_test(&self, task: &TaskId, what: String) -> Result<MergeFailure, EngineError> {
        let project = self.engine.project();
        let file = next_log(&project.folder().join(TEST_LOGS), task.as_str());
        let write = || {
            file.parent().map_or(Ok(()), private::create_folder)?;
            durable::replace_private_file(&file, format!("{what}\n").as_bytes())
        };
        write().map_err(|error| GitError::io("writing why a merge failed", &file, error))?;
        let output = file.strip_prefix(project.root()).unwrap_or(&file).to_string_lossy().into_owned();
        Ok(MergeFailure::Test { what, output })
    }

    /// Decides who is to blame for a failure.
    fn blame(
        &self,
        failure: TestFailure,
        merge: &PendingMerge,
        gate: &Protected,
        approved: &Mergeable,
    ) -> Result<MergeTestResult, EngineError> {
        // A test that was killed with its team does not start another one.
        self.engine.check(StopFiles::default(), BeginMerge { task: approved.task.task.clone() })?;
        let TestFailure { what, output, .. } = failure;
        Ok(match self.head_failure(&merge.old, gate, approved.head_test.as_ref())? {
            Some(failure) => MergeTestResult::HeadFails(failure),
            None => MergeTestResult::Failed(MergeFailure::Test { what, output }),
        })
    }

    /// Tests the merge with the protected files of the integration branch, and asks the human unless their
    /// decision on exactly this change is known.
    fn judge_change(
        &self,
        merge: &PendingMerge,
        gates: &Gates,
        approved: &Mergeable,
    ) -> Result<MergeTestResult, EngineError> {
        let (repo, Gates { before, after }) = (self.engine.repo()?, gates);
        let mut change = GateChange {
            commit: approved.commit.clone(),
            before: repo.digest(before)?,
            after: repo.digest(after)?,
            files: after.differing(before),
            old_failure: None,
            accepted: None,
        };
        let known = approved.gate_change.as_deref().filter(|known| known.is_same(&change));
        let accepted = known.and_then(|known| known.accepted.as_ref());
        if accepted.is_some_and(|accepted| accepted.old_fails) {
            return Ok(MergeTestResult::Passed);
        }
        if before.has_test() {
            let judged = repo.judged_commit(merge, before, after)?;
            let name = format!("{}-old-gate", approved.task.task);
            change.old_failure = self.failure(&judged, before, &name)?;
        }
        match (accepted, &change.old_failure) {
            (Some(_), None) => Ok(MergeTestResult::Passed),
            (Some(_), Some(_)) | (None, _) => Ok(MergeTestResult::GateChanged(change)),
        }
    }

    /// The failure on the integration branch itself. Tested once per head, unless the human asks for the merge.
    fn head_failure(
        &self,
        head: &Sha,
        gate: &Protected,
        known: Option<&HeadTest>,
    ) -> Result<Option<TestFailure>, EngineError> {
        let known = known.filter(|known| known.head == *head && self.engine.actor() != Actor::Human);
        if let Some(known) = known {
            return Ok(known.failure.clone());
        }
        let failure = self.failure(head, gate, &format!("head-{}", head.short()))?;
        self.engine.execute(RecordHeadTest { head: head.clone(), failure: failure.clone() })?;
        Ok(failure)
    }

    /// Runs the test of a commit with these protected files, if it has one; returns its failure.
    fn failure(
        &self,
        commit: &Sha,
        gate: &Protected,
        name: &str,
    ) -> Result<Option<TestFailure>, EngineError> {
        let project = self.engine.project();
        let state = project.state()?;
        let config = state.board.config()?;
        TestRun { project, config, limit: self.limit, prepare: set_up }.failure(commit, gate, name)
    }
}

/// Tries the test of a commit once, prepared with these settings, as a merge would; returns its failure, if
/// there is one. Records nothing: neither on the blackboard nor for an alarm.
pub fn try_test(
    project: &Project,
    config: &Config,
    commit: &Sha,
) -> Result<Option<TestFailure>, EngineError> {
    let gate = project.repo()?.protected(commit, &GatePatterns::new(&gate_here(project, &config.gate)?))?;
    let limit = Duration::from_secs(config.integration_test_limit.0);
    match (TestRun { project, config, limit, prepare }).failure(commit, &gate, "trial") {
        Err(EngineError::Setup(error)) => {
            let output = error.output().unwrap_or_default().to_owned();
            let last_lines = last_lines(&project.root().join(&output));
            Ok(Some(TestFailure { what: error.to_string(), output, last_lines }))
        }
        ended => ended,
    }
}

type Prepare = fn(&Project, &Config, &Path, CheckoutUse<'_>) -> Result<(), SetupError>;

struct TestRun<'p> {
    project: &'p Project,
    config: &'p Config,
    limit: Duration,
    prepare: Prepare,
}

impl TestRun<'_> {
    fn failure(
        &self,
        commit: &Sha,
        gate: &Protected,
        name: &str,
    ) -> Result<Option<TestFailure>, EngineError> {
        let project = self.project;
        let file = next_log(&project.folder().join(TEST_LOGS), name);
        let what = match self.run_on(commit, gate, &file)? {
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
            IntegrationTestResult::Changed { paths } => {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                format!(
                    "integration test does not count, since what it tests changed its files ({})",
                    paths.join(", ")
                )
            }
        };
        let output = file.strip_prefix(project.root()).unwrap_or(&file).to_string_lossy().into_owned();
        Ok(Some(TestFailure { what, output, last_lines: last_lines(&file) }))
    }

    /// Runs it in the same confinement as a session.
    fn run_on(
        &self,
        commit: &Sha,
        gate: &Protected,
        output: &Path,
    ) -> Result<IntegrationTestResult, EngineError> {
        let (project, repo, config) = (self.project, self.project.repo()?, self.config);
        let Some(test) = repo.test_checkout(commit)? else { return Ok(IntegrationTestResult::NoScript) };
        (self.prepare)(project, config, test.path(), CheckoutUse::MergeTest)?;
        if config.sandbox == Sandbox::Off {
            return Ok(repo.run_test(&test, gate, output, self.limit, None)?);
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
        Ok(repo.run_test(&test, gate, output, self.limit, Some(&stage))?)
    }
}

/// The first log file of that name that doesn't exist yet.
fn next_log(folder: &Path, name: &str) -> PathBuf {
    let numbered = |number: u32| folder.join(format!("{name}-{number}.log"));
    (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}

/// The end of an output, on short lines; nothing if it cannot be read.
fn last_lines(file: &Path) -> Vec<String> {
    let (number, length) = LAST_LINES;
    let text = durable::read_file(file)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<String> =
        text.lines().map(|line| one_line(line, length)).filter(|line| !line.is_empty()).collect();
    lines.into_iter().rev().take(number).rev().collect()
}
