//! wt-merge: merges exactly the approved commit without a checkout, tests it, moves the branch in one step,
//! records it. One merge at a time. A crash between git and the blackboard is repaired from git's own record.
//! A merge that the blackboard refuses is undone.

use std::path::PathBuf;
use std::time::Duration;

use liza_core::model::{Board, GateChange, Refusal, Sha, Status, StopFiles, TaskId, TaskStatus, TestFailure};
use liza_core::protocol::{
    AdoptIntegration, BeginMerge, HoldCause, HoldMerge, MergeFailure, MergeRecorded, Mergeable, RecordMerge,
    RecordMergeFailure,
};
use liza_git::{Branch, MergeError, MergeMessage, PendingMerge};

use crate::engine::{Engine, EngineError, Exchange, Executed, FileLock, Submitted, integration_branch};
use crate::session::checkout_setup::setup_limit;

use super::merge_test::{MergeTest, MergeTestResult};
use super::review::refuse_reserved_path;

/// The wait for another merge, in addition to the time limit of its tests.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub enum MergeOutcome {
    /// It is on the branch and on the blackboard.
    Merged(Executed<MergeRecorded>),
    /// The branch has not moved, the task is INTEGRATION_FAILED.
    Failed(MergeFailure),
    /// The integration test fails without the task too; the branch has not moved, the task stays APPROVED.
    Held(TestFailure),
    /// It changes protected files; the branch has not moved, the task stays APPROVED until the human decides.
    GateChanged(Box<GateChange>),
    /// A checkout of the branch could not be updated; the branch has not moved, the task stays APPROVED.
    CheckoutRefused { path: PathBuf, message: String },
}

pub(super) struct MergeJob<'e, 'p> {
    pub engine: &'e Engine<'p>,
    pub task: &'e TaskId,
    pub commit: Sha,
    base: Option<Sha>,
    pub integration: Branch,
}

pub(super) struct OnBranch {
    pub merge_commit: Sha,
    /// The commit of the branch before the merge, if it is known.
    pub before: Option<Sha>,
    /// The recorded head that the merge was made onto; `None` if that head contains the merge already.
    pub old_head: Option<Sha>,
    /// The move of the branch, here or on the remote, if this process made it and can undo it.
    pub moved: Option<PendingMerge>,
}

/// The reason why a commit is not on the branch.
pub(super) enum NotOnBranch {
    /// It is on the branch and recorded, by another machine.
    Recorded,
    Failed(MergeFailure),
    /// The integration test fails on this head without the task too.
    HeadFails(Sha, TestFailure),
    /// It changes protected files; the gate that it was judged by has this number.
    GateChanged(u32, Box<GateChange>),
    Git(MergeError),
    Engine(EngineError),
}

impl From<EngineError> for NotOnBranch {
    fn from(error: EngineError) -> Self {
        NotOnBranch::Engine(error)
    }
}

pub fn wt_merge(engine: &Engine<'_>, task: &TaskId) -> Result<MergeOutcome, EngineError> {
    // Checked before waiting for other merges, so that a refusal comes immediately.
    engine.check(engine.project().stop_files(), BeginMerge { task: task.clone() })?;
    let board = engine.read(&[])?;
    let limit = test_limit(&board)? + setup_limit(board.config()?);
    // A failed test is run a second time, on the branch itself.
    let lock = FileLock::at(&FileLock::of_merges(engine.project().folder()), 2 * limit + LOCK_TIMEOUT)?;
    let agent = engine.actor().agent().map(|agent| agent.to_string());
    // Only for people.
    let _ = lock.note(&format!("{task} {}", agent.unwrap_or_default()));
    let mut approved = engine.check(engine.project().stop_files(), BeginMerge { task: task.clone() })?;
    refuse_changed_programs(engine)?;
    let job = MergeJob::new(engine, task, approved.commit.clone(), approved.base_commit.clone())?;
    let exchange = Exchange::of(engine.project())?;
    if approved.integration_head.is_none() {
        let head = engine.integration_head(&job.integration)?;
        approved.integration_head = Some(engine.execute(AdoptIntegration { head })?.reply.integration_head);
    }
    let attempt = match &exchange {
        Some(exchange) => job.attempt_shared(exchange, &approved),
        None => job.attempt(&approved),
    };
    let on_branch = match attempt {
        Ok(on_branch) => on_branch,
        Err(NotOnBranch::Recorded) => return job.recorded_elsewhere(),
        Err(NotOnBranch::Engine(error)) => return Err(error),
        Err(NotOnBranch::Failed(failure)) => return job.record_failure(failure),
        Err(NotOnBranch::HeadFails(head, failure)) => {
            job.hold(HoldCause::HeadFails { head })?;
            return Ok(MergeOutcome::Held(failure));
        }
        Err(NotOnBranch::GateChanged(version, change)) => {
            job.hold(HoldCause::Gate { version, change: (*change).clone() })?;
            return Ok(MergeOutcome::GateChanged(change));
        }
        Err(NotOnBranch::Git(error)) => match error {
            // With a remote, the recorded head was brought to that of the branch already.
            MergeError::AlreadyMerged { merge_commit } => job.found_on_branch(merge_commit, None)?,
            MergeError::Conflict { files } => {
                let files = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
                return job.record_failure(MergeFailure::Conflict { files });
            }
            MergeError::Unrelated => return job.record_failure(MergeFailure::Unrelated),
            // Only one merge runs at a time, so something else moved the branch.
            MergeError::BranchMoved => return Err(job.moved(&approved)?),
            MergeError::NoBranch { branch } => return Err(EngineError::NoIntegrationBranch { branch }),
            MergeError::CheckoutRefused { path, message } => {
                return Ok(MergeOutcome::CheckoutRefused { path, message });
            }
            MergeError::Git(error) | MergeError::UpdateFailed(error) => return Err(error.into()),
        },
    };
    let recorded = match job.record(&on_branch, exchange.as_ref()) {
        // Another machine found the merge on the remote and recorded it.
        Err(EngineError::Refused(_)) if exchange.is_some() && job.is_merged()? => {
            return job.recorded_elsewhere();
        }
        recorded => recorded?,
    };
    drop(lock);
    finish(engine, recorded)
}

/// Records a merge that a crash kept from being recorded; false if there is none. The caller holds the merge lock.
pub(super) fn record_found_merge(
    engine: &Engine<'_>,
    task: &TaskId,
    _: &FileLock,
) -> Result<bool, EngineError> {
    // In git it is merged already; this only records it.
    let TaskStatus::Approved { work, commit, .. } = engine.read(&[task])?.task(task)?.status else {
        return Ok(false);
    };
    let job = MergeJob::new(engine, task, commit, work.base)?;
    let repo = engine.repo()?;
    let found = repo.find_merge(&job.integration, task, &job.commit)?;
    // A person's merge is not tested yet: that is the work of a merge.
    let Some(merge_commit) = found.filter(|found| repo.is_kept_merge(task, found).unwrap_or(false)) else {
        return Ok(false);
    };
    let expected =
        engine.project().state()?.board.goal.ready().and_then(|goal| goal.integration_head.clone());
    if expected.as_ref().is_some_and(|expected| job.check_found(expected, &merge_commit).is_err()) {
        // Not a merge of ours: the human decides.
        return Ok(false);
    }
    let recorded = job.record(&job.found_on_branch(merge_commit, expected.as_ref())?, None)?;
    finish(engine, recorded).map(|_| true)
}

pub(super) fn finish(
    engine: &Engine<'_>,
    recorded: Submitted<MergeRecorded>,
) -> Result<MergeOutcome, EngineError> {
    Ok(MergeOutcome::Merged(engine.finish(recorded)?))
}

impl<'e, 'p> MergeJob<'e, 'p> {
    pub(super) fn new(
        engine: &'e Engine<'p>,
        task: &'e TaskId,
        commit: Sha,
        base: Option<Sha>,
    ) -> Result<Self, EngineError> {
        let board = engine.read(&[])?;
        let integration = integration_branch(&board)?;
        Ok(Self { engine, task, commit, base, integration })
    }

    fn attempt(&self, approved: &Mergeable) -> Result<OnBranch, NotOnBranch> {
        let (repo, task) = (self.engine.repo()?, self.task);
        let approved_by = approved.approved_by.map(|by| by.to_string());
        let title = approved.description.as_deref();
        let message = MergeMessage { task, title, approved_by: approved_by.as_deref() };
        let merge = match repo.prepare_merge(&self.integration, &self.commit, &message) {
            Err(MergeError::AlreadyMerged { merge_commit }) => return self.found(approved, merge_commit),
            merge => merge.map_err(NotOnBranch::Git)?,
        };
        self.check_head(approved, &merge.old)?;
        self.check_result(approved, &merge)?;
        repo.move_branch(&self.integration, &merge, task).map_err(NotOnBranch::Git)?;
        let (merge_commit, old) = (merge.new.clone(), Some(merge.old.clone()));
        Ok(OnBranch { merge_commit, before: old.clone(), old_head: old, moved: Some(merge) })
    }

    /// Tests the computed merge, and checks that it may still be made.
    pub(super) fn check_result(&self, approved: &Mergeable, merge: &PendingMerge) -> Result<(), NotOnBranch> {
        refuse_reserved_path(self.engine, self.task, &merge.new)?;
        let test = MergeTest::new(self.engine)?;
        match test.run(merge, approved)? {
            MergeTestResult::Passed => Ok(self.confirm()?),
            MergeTestResult::Failed(failure) => Err(NotOnBranch::Failed(failure)),
            MergeTestResult::HeadFails(failure) => Err(NotOnBranch::HeadFails(merge.old.clone(), failure)),
            MergeTestResult::GateChanged(change) => {
                Err(NotOnBranch::GateChanged(approved.gate_version, Box::new(change)))
            }
        }
    }

    /// Refuses to merge onto a head that neither a merge nor the human set.
    fn check_head(&self, approved: &Mergeable, found: &Sha) -> Result<(), EngineError> {
        match &approved.integration_head {
            Some(recorded) if recorded != found => Err(foreign(recorded, found)),
            Some(_) | None => Ok(()),
        }
    }

    fn moved(&self, approved: &Mergeable) -> Result<EngineError, EngineError> {
        let found = self.engine.integration_head(&self.integration)?;
        Ok(foreign(approved.integration_head.as_ref().unwrap_or(&found), &found))
    }

    /// Refuses a merge found on the branch, unless it is ours: exactly the recorded head and the approved commit.
    fn check_found(&self, recorded: &Sha, merge_commit: &Sha) -> Result<(), EngineError> {
        let repo = self.engine.repo()?;
        let tip = self.engine.integration_head(&self.integration)?;
        let ours =
            tip == *recorded || (tip == *merge_commit && repo.is_merge_of(&tip, recorded, &self.commit)?);
        if ours { Ok(()) } else { Err(foreign(recorded, &tip)) }
    }

    /// Checks again before the branch moves: the test may have taken long. PAUSE does not stop a merge that has started.
    fn confirm(&self) -> Result<(), EngineError> {
        let abort = self.engine.project().stop_files().abort;
        let stop_files = StopFiles { abort, ..StopFiles::default() };
        self.engine.check(stop_files, BeginMerge { task: self.task.clone() }).map(drop)
    }

    /// A merge that the branch contains already; one that a person made is tested first.
    fn found(&self, approved: &Mergeable, merge_commit: Sha) -> Result<OnBranch, NotOnBranch> {
        let recorded = approved.integration_head.as_ref();
        if let Some(recorded) = recorded {
            self.check_found(recorded, &merge_commit)?;
        }
        let is_tested =
            self.engine.repo().map_err(NotOnBranch::from)?.is_kept_merge(self.task, &merge_commit);
        let is_tested = is_tested.map_err(EngineError::from)?;
        let found = self.found_on_branch(merge_commit, recorded)?;
        if !is_tested {
            let new = self.engine.integration_head(&self.integration)?;
            let old = found.old_head.clone().or_else(|| found.before.clone()).unwrap_or_else(|| new.clone());
            self.check_result(approved, &PendingMerge { old, new, fast_forward: true })?;
        }
        Ok(found)
    }

    /// A merge that the branch contains already. If the branch is at the recorded head, that head stays.
    fn found_on_branch(&self, merge_commit: Sha, recorded: Option<&Sha>) -> Result<OnBranch, EngineError> {
        let before = self.engine.repo()?.tip_before_merge(&self.integration, self.task)?;
        let tip = self.engine.integration_head(&self.integration)?;
        let old_head = recorded.filter(|recorded| **recorded != tip).cloned();
        Ok(OnBranch { merge_commit, before, old_head, moved: None })
    }

    fn record_failure(&self, failure: MergeFailure) -> Result<MergeOutcome, EngineError> {
        let (task, commit) = (self.task.clone(), self.commit.clone());
        self.engine.execute(RecordMergeFailure { task, commit, failure: failure.clone() })?;
        Ok(MergeOutcome::Failed(failure))
    }

    fn hold(&self, cause: HoldCause) -> Result<(), EngineError> {
        let (task, commit) = (self.task.clone(), self.commit.clone());
        self.engine.execute(HoldMerge { task, commit, cause }).map(drop)
    }

    fn record(
        &self,
        on_branch: &OnBranch,
        exchange: Option<&Exchange<'_>>,
    ) -> Result<Submitted<MergeRecorded>, EngineError> {
        let (task, commit) = (self.task.clone(), self.commit.clone());
        let (merge_commit, drift_commits) = (on_branch.merge_commit.clone(), self.drift(on_branch)?);
        let old_head = on_branch.old_head.clone();
        let recorded =
            self.engine.submit(RecordMerge { task, commit, merge_commit, drift_commits, old_head });
        if let (Err(EngineError::Refused(refusal)), Some(merge)) = (&recorded, &on_branch.moved) {
            self.take_back(merge, exchange, refusal)?;
        }
        recorded
    }

    /// Undoes a merge that cannot be recorded: the blackboard changed while the branch moved.
    fn take_back(
        &self,
        merge: &PendingMerge,
        exchange: Option<&Exchange<'_>>,
        refusal: &Refusal,
    ) -> Result<(), EngineError> {
        let status = self.engine.read(&[self.task])?.status(self.task);
        match (status, exchange) {
            // Another machine has found and recorded it, or will: only this caller was refused.
            (Some(Status::Merged), _) | (Some(Status::Approved), Some(_)) => {}
            // A merge that the remote keeps is a foreign commit: merges wait for the human.
            (_, Some(exchange)) => {
                exchange.take_back(self.task, merge).map_err(|error| EngineError::NotTakenBack {
                    refusal: Box::new(refusal.clone()),
                    remote: exchange.remote().to_owned(),
                    branch: self.integration.clone(),
                    merge: merge.new.clone(),
                    source: Box::new(error),
                })?
            }
            (_, None) => {
                if self.engine.repo()?.undo_merge(&self.integration, merge)? {
                    self.engine.repo()?.forget_merge(self.task)?;
                }
            }
        }
        Ok(())
    }

    /// The number of commits that the integration branch gained since the claim.
    fn drift(&self, on_branch: &OnBranch) -> Result<u32, EngineError> {
        let (Some(base), Some(old)) = (&self.base, &on_branch.before) else { return Ok(0) };
        // The merge counts even if the base is unknown, after a rebase or in a shallow clone.
        let count = self.engine.repo()?.count_commits(base, old).unwrap_or(0);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

/// Filters and merge drivers decide the content of merges, and signing settings their signatures: the human
/// must have accepted them.
fn refuse_changed_programs(engine: &Engine<'_>) -> Result<(), EngineError> {
    let keys = engine.repo()?.changed_programs()?.keys();
    if keys.is_empty() { Ok(()) } else { Err(Refusal::GitProgramsChanged { keys }.into()) }
}

pub(super) fn foreign(recorded: &Sha, found: &Sha) -> EngineError {
    let (recorded, found) = (recorded.clone(), found.clone());
    EngineError::Refused(Box::new(Refusal::ForeignCommits { recorded, found }))
}

fn test_limit(board: &Board) -> Result<Duration, EngineError> {
    Ok(Duration::from_secs(board.config()?.integration_test_limit.0))
}
