//! wt-merge: exactly the approved commit, computed without a checkout, tested, made visible in one step, recorded.
//!
//! One merge at a time. A crash between git and the blackboard is repaired from git's own record. What the blackboard
//! does not accept is taken back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::{Board, Sha, Status, StopFiles, TaskId, TaskStatus};
use liza_core::protocol::{
    BeginMerge, MergeFailure, MergeRecorded, Mergeable, RecordMerge, RecordMergeFailure,
};

use crate::engine::{Engine, EngineError, Executed, FileLock, Submitted, integration_branch};
use crate::git::{Branch, IntegrationTestResult, MergeError, MergeMessage, PendingMerge};

/// How often a merge is computed again if the branch has moved under it.
const RETRIES: u32 = 3;

/// How long a merge waits for another, beyond the time that the other's test may take.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// How a merge went.
#[derive(Debug)]
pub enum MergeOutcome {
    /// It is on the branch and on the blackboard.
    Merged(Executed<MergeRecorded>),
    /// It failed; the branch has not moved, the task is INTEGRATION_FAILED.
    Failed(MergeFailure),
    /// A checkout of the branch could not be updated; the branch has not moved, the task stays APPROVED.
    CheckoutRefused {
        /// The folder of the checkout.
        path: PathBuf,
        /// Git's own message.
        message: String,
    },
    /// The branch moved under the merge each time; the task stays APPROVED.
    Overtaken {
        /// How often.
        times: u32,
    },
}

/// What is to be merged where.
struct MergeJob<'e, 'p> {
    engine: &'e Engine<'p>,
    task: &'e TaskId,
    /// The approved commit.
    commit: Sha,
    /// The commit that the work started from.
    base: Option<Sha>,
    integration: Branch,
    test_limit: Duration,
}

/// How a commit got onto the branch.
struct OnBranch {
    merge_commit: Sha,
    /// The commit of the branch before.
    old: Option<Sha>,
    /// The move, if it was made just now.
    moved: Option<PendingMerge>,
}

/// Why a commit did not get onto the branch.
enum NotOnBranch {
    Failed(MergeFailure),
    Git(MergeError),
    Engine(EngineError),
}

impl From<EngineError> for NotOnBranch {
    fn from(error: EngineError) -> Self {
        NotOnBranch::Engine(error)
    }
}

/// Merges an approved task.
///
/// # Errors
/// When the rules refuse it, or git or the blackboard fails.
pub fn wt_merge(engine: &Engine<'_>, task: &TaskId) -> Result<MergeOutcome, EngineError> {
    // Checked before the wait for other merges, so that what may not be merged is refused at once.
    engine.check(engine.project().stop_files(), BeginMerge { task: task.clone() })?;
    let limit = test_limit(&engine.read(&[])?);
    let lock = FileLock::at(&FileLock::of_merges(engine.project().folder()), limit + LOCK_TIMEOUT)?;
    let approved = engine.check(engine.project().stop_files(), BeginMerge { task: task.clone() })?;
    let job = MergeJob::new(engine, task, approved.commit.clone(), approved.base_commit.clone())?;
    for _ in 0..=RETRIES {
        let error = match job.attempt(&approved) {
            Ok(landed) => {
                let recorded = job.record(&landed)?;
                drop(lock);
                return finish(engine, recorded);
            }
            Err(NotOnBranch::Engine(error)) => return Err(error),
            Err(NotOnBranch::Failed(failure)) => return job.record_failure(failure),
            Err(NotOnBranch::Git(error)) => error,
        };
        match error {
            MergeError::BranchMoved => {}
            MergeError::AlreadyMerged { merge_commit } => {
                let recorded = job.record(&job.found_on_branch(merge_commit)?)?;
                drop(lock);
                return finish(engine, recorded);
            }
            MergeError::Conflict { files } => {
                let files = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
                return job.record_failure(MergeFailure::Conflict { files });
            }
            MergeError::Unrelated => return job.record_failure(MergeFailure::Unrelated),
            MergeError::NoBranch { branch } => return Err(EngineError::NoIntegrationBranch { branch }),
            MergeError::CheckoutRefused { path, message } => {
                return Ok(MergeOutcome::CheckoutRefused { path, message });
            }
            MergeError::Git(error) => return Err(error.into()),
        }
    }
    Ok(MergeOutcome::Overtaken { times: RETRIES + 1 })
}

/// Records a merge that a crash kept from the blackboard, by the holder of the merge lock; false if there is none.
pub(super) fn record_found_merge(
    engine: &Engine<'_>,
    task: &TaskId,
    _: &FileLock,
) -> Result<bool, EngineError> {
    // Git has decided that it is merged; the rules are only asked to record it.
    let TaskStatus::Approved { work, commit, .. } = engine.read(&[task])?.task(task)?.status else {
        return Ok(false);
    };
    let job = MergeJob::new(engine, task, commit, work.base)?;
    let Some(merge_commit) = engine.repo()?.find_merge(&job.integration, task, &job.commit)? else {
        return Ok(false);
    };
    let recorded = job.record(&job.found_on_branch(merge_commit)?)?;
    finish(engine, recorded).map(|_| true)
}

fn finish(engine: &Engine<'_>, recorded: Submitted<MergeRecorded>) -> Result<MergeOutcome, EngineError> {
    Ok(MergeOutcome::Merged(engine.finish(recorded)?))
}

impl<'e, 'p> MergeJob<'e, 'p> {
    fn new(
        engine: &'e Engine<'p>,
        task: &'e TaskId,
        commit: Sha,
        base: Option<Sha>,
    ) -> Result<Self, EngineError> {
        let board = engine.read(&[])?;
        let (integration, test_limit) = (integration_branch(&board)?, test_limit(&board));
        Ok(Self { engine, task, commit, base, integration, test_limit })
    }

    /// Computes the merge, tests it and moves the branch.
    fn attempt(&self, approved: &Mergeable) -> Result<OnBranch, NotOnBranch> {
        let (repo, task) = (self.engine.repo()?, self.task);
        let approved_by = approved.approved_by.map(|by| by.to_string());
        let title = approved.description.as_deref();
        let message = MergeMessage { task, title, approved_by: approved_by.as_deref() };
        let merge = repo.prepare_merge(&self.integration, &self.commit, &message);
        let merge = merge.map_err(NotOnBranch::Git)?;
        if let Some(failure) = self.test(&merge.new)? {
            return Err(NotOnBranch::Failed(failure));
        }
        self.confirm()?;
        repo.move_branch(&self.integration, &merge, task).map_err(NotOnBranch::Git)?;
        Ok(OnBranch { merge_commit: merge.new.clone(), old: Some(merge.old.clone()), moved: Some(merge) })
    }

    /// Checks once more before the branch moves: the test may have taken long. PAUSE does not stop what has begun.
    fn confirm(&self) -> Result<(), EngineError> {
        let abort = self.engine.project().stop_files().abort;
        let stop_files = StopFiles { abort, ..StopFiles::default() };
        self.engine.check(stop_files, BeginMerge { task: self.task.clone() }).map(drop)
    }

    fn found_on_branch(&self, merge_commit: Sha) -> Result<OnBranch, EngineError> {
        let old = self.engine.repo()?.tip_before_merge(&self.integration, self.task)?;
        Ok(OnBranch { merge_commit, old, moved: None })
    }

    /// Runs the integration test of the merged result, if it has one; gives why it failed.
    fn test(&self, merged: &Sha) -> Result<Option<MergeFailure>, EngineError> {
        let project = self.engine.project();
        let file = next_log(&project.folder().join("integration-tests"), self.task);
        let what = match self.engine.repo()?.run_integration_test(merged, &file, self.test_limit)? {
            IntegrationTestResult::NoScript | IntegrationTestResult::Passed => return Ok(None),
            IntegrationTestResult::Failed { status: Some(status), .. } => {
                format!("integration test failed with exit status {status}")
            }
            IntegrationTestResult::Failed { status: None, signal } => {
                format!("integration test was killed by signal {}", signal.unwrap_or_default())
            }
            IntegrationTestResult::TimedOut => {
                format!("integration test took longer than {} s", self.test_limit.as_secs())
            }
        };
        let output = file.strip_prefix(project.root()).unwrap_or(&file).to_string_lossy().into_owned();
        Ok(Some(MergeFailure::Test { what, output }))
    }

    fn record_failure(&self, failure: MergeFailure) -> Result<MergeOutcome, EngineError> {
        let (task, commit) = (self.task.clone(), self.commit.clone());
        self.engine.execute(RecordMergeFailure { task, commit, failure: failure.clone() })?;
        Ok(MergeOutcome::Failed(failure))
    }

    fn record(&self, landed: &OnBranch) -> Result<Submitted<MergeRecorded>, EngineError> {
        let (task, commit) = (self.task.clone(), self.commit.clone());
        let (merge_commit, drift_commits) = (landed.merge_commit.clone(), self.drift(landed)?);
        let recorded = self.engine.submit(RecordMerge { task, commit, merge_commit, drift_commits });
        if let (Err(EngineError::Refused(_)), Some(merge)) = (&recorded, &landed.moved)
            && self.engine.read(&[self.task])?.status(self.task) != Some(Status::Merged)
        {
            // The blackboard changed while the branch moved: what is not recorded is taken back.
            self.engine.repo()?.undo_merge(&self.integration, merge)?;
        }
        recorded
    }

    /// Commits that the integration branch had gained since the task began.
    fn drift(&self, landed: &OnBranch) -> Result<u32, EngineError> {
        let (Some(base), Some(old)) = (&self.base, &landed.old) else { return Ok(0) };
        // A base that a shallow clone or a person's rebase has lost is no reason not to record the merge.
        let count = self.engine.repo()?.count_commits(base, old).unwrap_or(0);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

fn test_limit(board: &Board) -> Duration {
    let config = board.config.ready().cloned().unwrap_or_default();
    Duration::from_secs(config.integration_test_limit.0)
}

/// The first log file of the task that does not exist yet.
fn next_log(folder: &Path, task: &TaskId) -> PathBuf {
    let named = |number: u32| folder.join(format!("{task}-{number}.log"));
    (1..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}
