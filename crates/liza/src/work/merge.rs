//! wt-merge: exactly the approved commit, computed without a checkout, tested, made visible in one step, recorded.
//!
//! One merge at a time. A crash between git and the blackboard is settled from git's own record. What the
//! blackboard does not take is taken back.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use liza_core::Command;
use liza_core::board::Board;
use liza_core::command::{Halt, MergeFailure};
use liza_core::ids::{Sha, TaskId};
use liza_core::metrics::sprint_metrics;
use liza_core::record::{Status, TaskRecord};

use crate::git::{Branch, IntegrationTestResult, MergeError, MergeMessage, PendingMerge, Rescue};

use super::error::WorkError;
use super::locks::FileLock;
use super::tree::{Discarded, discard_in};
use super::{Work, Written, integration_branch};

/// How often a merge is computed anew when the branch has moved under it.
const RETRIES: u32 = 3;

/// How long a merge waits for another, beyond the time that the other's test may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A merge that is on the branch and on the blackboard.
#[derive(Debug)]
pub struct Merged {
    /// What the rules told.
    pub written: Written,
    /// Work beside the merged commit that was saved when the worktree was removed.
    pub rescued: Option<Rescue>,
    /// What could not be done afterwards; `recover` does it.
    pub left: Option<WorkError>,
}

/// What is to be merged.
struct Approved {
    task: TaskId,
    commit: Sha,
    base: Option<Sha>,
    title: Option<String>,
    by: Option<String>,
    integration: Branch,
    test_limit: Duration,
}

/// How it got onto the branch.
struct Landed {
    merge_commit: Sha,
    /// Where the branch was before.
    old: Option<Sha>,
    /// The move, where it was made just now.
    moved: Option<PendingMerge>,
}

impl Work<'_> {
    /// Merges an approved task.
    ///
    /// # Errors
    ///
    /// When the rules refuse it; when it conflicts or its test is red, which the blackboard then says; when a
    /// checkout of the branch cannot follow.
    pub fn merge(&self, task: &TaskId) -> Result<Merged, WorkError> {
        let limit = test_limit(&self.glance(&[])?);
        // Before the wait for others, so that what may not be merged is refused at once.
        self.submit(Command::BeginMerge { task: task.clone() })?;
        let lock = FileLock::at(&FileLock::of_merges(self.project.folder()), limit + PATIENCE)?;
        self.submit(Command::BeginMerge { task: task.clone() })?;
        let approved = self.approved(task)?;
        let landed = self.land(&approved)?;
        let written = self.record_merge(&approved, &landed)?;
        drop(lock);
        Ok(self.clear_up(task, written))
    }

    /// Records a merge that a crash kept from the blackboard; by the holder of the lock of merges.
    pub(super) fn settle_merge(&self, task: &TaskId, _: &FileLock) -> Result<Option<Merged>, WorkError> {
        let approved = self.approved(task)?;
        let repo = self.repo()?;
        let Some(merge_commit) = repo.find_merge(&approved.integration, task, &approved.commit)? else {
            return Ok(None);
        };
        let old = repo.tip_before_merge(&approved.integration, task)?;
        let written = self.record_merge(&approved, &Landed { merge_commit, old, moved: None })?;
        Ok(Some(self.clear_up(task, written)))
    }

    /// What the blackboard says is to be merged; the rules have been asked before.
    fn approved(&self, task: &TaskId) -> Result<Approved, WorkError> {
        let board = self.glance(&[task])?;
        let record = board.body(task).map_err(|refusal| WorkError::Refused(Box::new(refusal)))?;
        let TaskRecord { review_commit, base_commit, description, approved_by, .. } = record.record.clone();
        let unknown = || WorkError::Refused(Box::new(liza_core::Refusal::UnknownTask { task: task.clone() }));
        Ok(Approved {
            task: task.clone(),
            commit: review_commit.ok_or_else(unknown)?,
            base: base_commit,
            title: description,
            by: approved_by.map(|by| by.to_string()),
            integration: integration_branch(&board)?,
            test_limit: test_limit(&board),
        })
    }

    /// Brings the commit onto the branch, or finds it there.
    fn land(&self, approved: &Approved) -> Result<Landed, WorkError> {
        let Approved { task, integration, .. } = approved;
        for _ in 0..=RETRIES {
            match self.attempt(approved)? {
                Ok(landed) => return Ok(landed),
                Err(MergeError::BranchMoved) => {}
                Err(MergeError::AlreadyMerged { merge_commit }) => {
                    let old = self.repo()?.tip_before_merge(integration, task)?;
                    return Ok(Landed { merge_commit, old, moved: None });
                }
                Err(MergeError::Conflict { files }) => return Err(self.record_conflict(approved, &files)),
                Err(MergeError::Unrelated) => {
                    let error = WorkError::Unrelated { task: task.clone() };
                    return Err(self.record_failure(approved, MergeFailure::Unrelated, error));
                }
                Err(MergeError::NoBranch { branch }) => {
                    return Err(WorkError::NoIntegrationBranch { branch });
                }
                Err(MergeError::CheckoutRefused { path, message }) => {
                    return Err(WorkError::CheckoutRefused { path, message });
                }
                Err(MergeError::Git(error)) => return Err(error.into()),
            }
        }
        Err(WorkError::Overtaken { task: task.clone(), times: RETRIES + 1 })
    }

    /// Computes the merge, tests it and moves the branch; the inner error says why git did not.
    fn attempt(&self, approved: &Approved) -> Result<Result<Landed, MergeError>, WorkError> {
        let Approved { task, commit, title, by, integration, .. } = approved;
        let repo = self.repo()?;
        let message = MergeMessage { task, title: title.as_deref(), approved_by: by.as_deref() };
        let merge = match repo.prepare_merge(integration, commit, &message) {
            Ok(merge) => merge,
            Err(error) => return Ok(Err(error)),
        };
        self.test(approved, &merge.new)?;
        self.confirm(task)?;
        Ok(repo.move_branch(integration, &merge, task).map(|()| {
            let (merge_commit, old) = (merge.new.clone(), Some(merge.old.clone()));
            Landed { merge_commit, old, moved: Some(merge) }
        }))
    }

    /// Asks once more before the branch moves: the test may have taken long. PAUSE does not stop what has begun.
    fn confirm(&self, task: &TaskId) -> Result<(), WorkError> {
        let halt = Halt { pause: false, checkpoint: false, ..self.project.halt() };
        self.submit_under(halt, Command::BeginMerge { task: task.clone() }).map(drop)
    }

    /// Runs the integration test of the merged result, if it has one.
    fn test(&self, approved: &Approved, merged: &Sha) -> Result<(), WorkError> {
        let folder = self.project.folder().join("integration-tests");
        let file = next_log(&folder, &approved.task);
        let result = self.repo()?.run_integration_test(merged, &file, approved.test_limit)?;
        let what = match result {
            IntegrationTestResult::NoScript | IntegrationTestResult::Passed => return Ok(()),
            IntegrationTestResult::Failed { status: Some(status), .. } => {
                format!("integration test failed with exit status {status}")
            }
            IntegrationTestResult::Failed { status: None, signal } => {
                format!("integration test was ended by signal {}", signal.unwrap_or_default())
            }
            IntegrationTestResult::TimedOut => {
                format!("integration test took longer than {} s", approved.test_limit.as_secs())
            }
        };
        let output = file.strip_prefix(self.project.root()).unwrap_or(&file).to_string_lossy().into_owned();
        let failure = MergeFailure::Test { what: what.clone(), output: output.clone() };
        let error = WorkError::TestFailed { task: approved.task.clone(), what, output };
        Err(self.record_failure(approved, failure, error))
    }

    fn record_conflict(&self, approved: &Approved, files: &[PathBuf]) -> WorkError {
        let files: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        let error = WorkError::Conflict { task: approved.task.clone(), files: files.clone() };
        self.record_failure(approved, MergeFailure::Conflict { files }, error)
    }

    /// Writes down why the merge failed; the error is then that, or why it could not be written.
    fn record_failure(&self, approved: &Approved, failure: MergeFailure, error: WorkError) -> WorkError {
        let (task, commit) = (approved.task.clone(), approved.commit.clone());
        match self.submit(Command::RecordMergeFailure { task, commit, failure }) {
            Ok(_) => error,
            Err(unwritten) => unwritten,
        }
    }

    fn record_merge(&self, approved: &Approved, landed: &Landed) -> Result<Written, WorkError> {
        let drift_commits = self.drift(approved, landed)?;
        let (task, commit) = (approved.task.clone(), approved.commit.clone());
        let merge_commit = landed.merge_commit.clone();
        let recorded = self.submit(Command::RecordMerge { task, commit, merge_commit, drift_commits });
        if let (Err(WorkError::Refused(_)), Some(merge)) = (&recorded, &landed.moved)
            && !self.is_recorded(&approved.task)?
        {
            // The rules changed their mind while the branch moved: what is not recorded does not stand.
            self.repo()?.undo_merge(&approved.integration, merge)?;
        }
        recorded
    }

    fn is_recorded(&self, task: &TaskId) -> Result<bool, WorkError> {
        Ok(self.glance(&[task])?.status(task) == Some(Status::Merged))
    }

    /// Commits that the integration branch had gained since the task began.
    fn drift(&self, approved: &Approved, landed: &Landed) -> Result<u32, WorkError> {
        let (Some(base), Some(old)) = (&approved.base, &landed.old) else { return Ok(0) };
        // A base that a shallow clone or a person's rebase has lost is no reason not to record the merge.
        let count = self.repo()?.count_commits(base, old).unwrap_or(0);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The worktree and the figures. The merge stands, whatever comes of these.
    fn clear_up(&self, task: &TaskId, written: Written) -> Merged {
        let repo = self.repo().cloned();
        let project = self.project;
        // Deleting thousands of files waits for the disk, counting through all histories does not.
        let (discarded, counted) = thread::scope(|scope| {
            let removal = scope.spawn(|| discard_in(project, &repo?, task));
            let counted = self.update_metrics();
            (removal.join(), counted)
        });
        let (rescued, undone) = match discarded {
            Ok(Ok(Discarded::Removed(removed))) => (removed.rescued, None),
            Ok(Ok(Discarded::Needed)) => (None, None),
            Ok(Err(error)) => (None, Some(error)),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        Merged { written, rescued, left: undone.or(counted.err()) }
    }

    fn update_metrics(&self) -> Result<(), WorkError> {
        let metrics = sprint_metrics(&self.snapshot()?);
        self.submit(Command::UpdateMetrics { metrics }).map(drop)
    }
}

fn test_limit(board: &Board) -> Duration {
    let config = board.config.ready().cloned().unwrap_or_default();
    Duration::from_secs(config.integration_test_limit.0)
}

/// The first log file of the task that is not there yet.
fn next_log(folder: &Path, task: &TaskId) -> PathBuf {
    let named = |number: u32| folder.join(format!("{task}-{number}.log"));
    (1..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}
