//! wt-merge: merges exactly the approved commit without a checkout, tests it, moves the branch in one step,
//! states and records it. One merge at a time. A crash between git and the blackboard is repaired by the statement.
//! A merge that the blackboard refuses is undone.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use liza_core::model::{Board, GateChange, Refusal, Sha, Status, StopFiles, TaskId, TaskStatus, TestFailure};
use liza_core::protocol::{
    AdoptIntegration, BeginMerge, HoldCause, HoldMerge, MergeFailure, MergeRecorded, Mergeable, RecordMerge,
    RecordMergeFailure,
};
use liza_git::{Branch, BuiltCheckout, MergeDraft, MergeError, MergeKind, PendingMerge};
use liza_ids::Digest;

use crate::engine::{
    Engine, EngineError, Exchange, Executed, FileLock, MergeWords, Submitted, integration_branch,
    is_stated_merge,
};
use crate::session::checkout_setup::setup_limit;

use super::judged_copy::head_builds;
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
    without_validation: bool,
    /// What its test has built.
    built: RefCell<Option<BuiltCheckout>>,
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

impl OnBranch {
    pub(super) fn moved(merge: PendingMerge) -> Self {
        let (merge_commit, old) = (merge.new.clone(), Some(merge.old.clone()));
        Self { merge_commit, before: old.clone(), old_head: old, moved: Some(merge) }
    }
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
    merge(engine, task, false)
}

/// The same without the commands that validate the task: the human's word replaces them. The gate still judges.
pub fn merge_without_validation(engine: &Engine<'_>, task: &TaskId) -> Result<MergeOutcome, EngineError> {
    merge(engine, task, true)
}

fn merge(engine: &Engine<'_>, task: &TaskId, without_validation: bool) -> Result<MergeOutcome, EngineError> {
    if engine.project().forbids_merges() {
        let (actor, allowed) = (engine.actor().to_string(), "no one: this is the copy of a drill".to_owned());
        return Err(Refusal::NotPermitted { actor, verb: "wt-merge", allowed }.into());
    }
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
    let mut job = MergeJob::new(engine, task, approved.commit.clone(), approved.base_commit.clone())?;
    if without_validation || approved.without_validation {
        job.without_validation = !approved.commands.is_empty();
        approved.commands.clear();
    }
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
    // Nothing but time depends on it, so the next merge does not wait for it.
    if let Some(built) = job.built.take().filter(|_| on_branch.moved.is_some()) {
        built.keep(engine.repo()?, &head_builds(engine.project()), &on_branch.merge_commit);
    }
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
    let expected =
        engine.project().state()?.board.goal.ready().and_then(|goal| goal.integration_head.clone());
    // Without its statement it is no merge of ours: the human decides.
    let Some(found) = expected.map(|expected| job.found(&expected)).transpose()?.flatten() else {
        return Ok(false);
    };
    let recorded = job.record(&found, None)?;
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
        Ok(Self {
            engine,
            task,
            commit,
            base,
            integration,
            without_validation: false,
            built: RefCell::default(),
        })
    }

    fn attempt(&self, approved: &Mergeable) -> Result<OnBranch, NotOnBranch> {
        let repo = self.engine.repo()?;
        let head = self.engine.integration_head(&self.integration)?;
        if let Some(recorded) = approved.integration_head.as_ref().filter(|recorded| **recorded != head) {
            // Neither a merge of this task nor the human set this head.
            return self.found(recorded)?.ok_or_else(|| foreign(recorded, &head).into());
        }
        let draft = repo.draft_merge(&head, &self.commit).map_err(NotOnBranch::Git)?;
        let merge = self.judge(approved, &draft)?;
        repo.move_branch(&self.integration, &merge, self.task).map_err(NotOnBranch::Git)?;
        Ok(OnBranch::moved(merge))
    }

    /// Tests a computed merge, and states it.
    pub(super) fn judge(
        &self,
        approved: &Mergeable,
        draft: &MergeDraft,
    ) -> Result<PendingMerge, NotOnBranch> {
        let evidence = self.check_result(approved, &draft.trial)?;
        let (kind, title) = (MergeKind::Task(self.task), approved.description.as_deref());
        let (approved_by, without_validation) = (approved.approved_by, self.without_validation);
        let words = MergeWords { kind, title, approved_by, without_validation };
        Ok(self.engine.state_merge(draft, &words, evidence)?)
    }

    /// Tests the computed merge, and checks that it may still be made; returns the statements on which it rests.
    fn check_result(&self, approved: &Mergeable, merge: &PendingMerge) -> Result<Vec<Digest>, NotOnBranch> {
        refuse_reserved_path(self.engine, self.task, &merge.new)?;
        let test = MergeTest::new(self.engine)?;
        match test.run(merge, approved)? {
            MergeTestResult::Passed(built) => {
                *self.built.borrow_mut() = built;
                self.confirm()?;
                self.evidence()
            }
            MergeTestResult::Failed(failure) => Err(NotOnBranch::Failed(failure)),
            MergeTestResult::HeadFails(failure) => Err(NotOnBranch::HeadFails(merge.old.clone(), failure)),
            MergeTestResult::GateChanged(change) => {
                Err(NotOnBranch::GateChanged(approved.gate_version, Box::new(change)))
            }
        }
    }

    /// The statements about the approved commit.
    fn evidence(&self) -> Result<Vec<Digest>, NotOnBranch> {
        let board = self.engine.read(&[self.task])?;
        let record = board.body(self.task).map_err(EngineError::from)?.record();
        let agents = record.past().approvers(&self.commit);
        let validated = record.validated.as_ref().and_then(|validated| validated.receipt.as_deref());
        Ok(self.engine.evidence(self.task, &self.commit, &agents, validated)?)
    }

    fn moved(&self, approved: &Mergeable) -> Result<EngineError, EngineError> {
        let found = self.engine.integration_head(&self.integration)?;
        Ok(foreign(approved.integration_head.as_ref().unwrap_or(&found), &found))
    }

    /// Checks again before the branch moves: the test may have taken long. PAUSE does not stop a merge that has started.
    fn confirm(&self) -> Result<(), EngineError> {
        let abort = self.engine.project().stop_files().abort;
        let stop_files = StopFiles { abort, ..StopFiles::default() };
        self.engine.check(stop_files, BeginMerge { task: self.task.clone() }).map(drop)
    }

    /// The merge of this task onto the recorded head, if a crash kept it from being recorded: its statement says that it was judged.
    fn found(&self, recorded: &Sha) -> Result<Option<OnBranch>, EngineError> {
        let repo = self.engine.repo()?;
        let head = self.engine.integration_head(&self.integration)?;
        let steps = repo.steps_between(recorded, &head).unwrap_or_default();
        let [step] = steps.as_slice() else { return Ok(None) };
        let is_about =
            |(task, commit): &(TaskId, Sha)| task == self.task && commit.names_same_commit(&self.commit);
        let is_ours = step.before.as_ref() == Some(recorded)
            && step.merged.as_ref().is_some_and(is_about)
            && is_stated_merge(repo, step)?;
        let old = Some(recorded.clone());
        let found =
            OnBranch { merge_commit: step.commit.clone(), before: old.clone(), old_head: old, moved: None };
        Ok(is_ours.then_some(found))
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

/// The longest time of the tests of a merge, of which each may run a second time.
fn test_limit(board: &Board) -> Result<Duration, EngineError> {
    Ok(board.config()?.merge_test_limit())
}
