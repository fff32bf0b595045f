//! wt-merge: the permission to begin a merge, and its record afterwards.
//!
//! Only a commit that was approved is ever recorded as merged.

use std::fmt;

use serde::Serialize;

use crate::model::{
    Actor, Approver, Assignment, Effect, EventName, GateChange, HIDDEN_TESTS, HeadTest, HistoryEvent,
    LogAction, Past, Refusal, Role, Section, Sha, Task, TaskId, TaskStatus, Validation, ValidationCommand,
};
use crate::rules::approvals::has_approval;
use crate::rules::claimable::{check_merger, check_not_held};
use crate::rules::holdout::RESULTS_MAX;
use crate::rules::validation::{commands, result_for};

use super::budget::refill_after_merge;
use super::operation::{LoadScope, Rule, Stage};
use super::permission::{Rights, SUPERVISION};
use super::reply::TaskReply;
use super::tx::Tx;

/// Checks that the merge may begin. It changes nothing: the merge is computed outside, then recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct BeginMerge {
    pub task: TaskId,
}

/// The integration branch contains the approved commit.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordMerge {
    pub task: TaskId,
    /// The approved commit that was merged.
    pub commit: Sha,
    pub merge_commit: Sha,
    /// Commits on the integration branch since the task's base.
    pub drift_commits: u32,
    /// The head before the merge commit; `None` if the recorded head contains that commit already.
    pub old_head: Option<Sha>,
}

/// The merge failed; the branch has not moved, and the worktree stays.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordMergeFailure {
    pub task: TaskId,
    /// The approved commit that was tried.
    pub commit: Sha,
    pub failure: MergeFailure,
}

/// The reason that a merge failed: from git to the history, and from the history to the next coder's prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeFailure {
    Conflict {
        files: Vec<String>,
    },
    /// The commit and the integration branch have no common history.
    Unrelated,
    /// The integration test failed or took too long.
    Test {
        /// One line for people.
        what: String,
        /// The file that has its output.
        output: String,
    },
    /// The acceptance tests that no session reads failed.
    Holdout {
        /// The tests that it breaks, as far as agents may know.
        names: Vec<String>,
    },
}

const CONFLICT: &str = "conflict";
const UNRELATED: &str = "no common history with the integration branch";
const HOLDOUT: &str = "the acceptance tests that no session reads";

impl fmt::Display for MergeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeFailure::Conflict { files } => write!(f, "conflict in {}", files.join(", ")),
            MergeFailure::Unrelated => f.write_str(UNRELATED),
            MergeFailure::Test { what, output } => write!(f, "{what}; see {output}"),
            MergeFailure::Holdout { names } if names.is_empty() => write!(f, "{HOLDOUT} fail"),
            MergeFailure::Holdout { names } => write!(f, "{HOLDOUT} fail: {}", names.join(", ")),
        }
    }
}

impl MergeFailure {
    fn add_to(&self, event: HistoryEvent) -> HistoryEvent {
        match self {
            MergeFailure::Conflict { files } => event.with("reason", CONFLICT).with("files", files.clone()),
            MergeFailure::Unrelated => event.with("reason", UNRELATED),
            MergeFailure::Test { what, output } => {
                event.with("reason", what.as_str()).with("output", output.as_str())
            }
            MergeFailure::Holdout { names } => {
                event.with("reason", HOLDOUT).with(HIDDEN_TESTS, names.clone())
            }
        }
    }

    /// The failure as agents may know it: three results of hidden tests name them, further ones do not.
    fn told(self, past: &Past<'_>) -> Self {
        match self {
            Self::Holdout { .. } if past.holdout_results >= RESULTS_MAX => {
                Self::Holdout { names: Vec::new() }
            }
            told @ (Self::Holdout { .. } | Self::Conflict { .. } | Self::Unrelated | Self::Test { .. }) => {
                told
            }
        }
    }

    /// The failure in an `integration_failed` event; `None` for another form by people or older versions.
    pub fn of_event(event: &HistoryEvent) -> Option<Self> {
        let text = |key: &str| event.more.get(key).map(ToString::to_string);
        let reason = text("reason")?;
        match (reason.as_str(), text("output")) {
            (CONFLICT, _) => Some(MergeFailure::Conflict { files: event.list("files") }),
            (UNRELATED, _) => Some(MergeFailure::Unrelated),
            (HOLDOUT, _) => Some(MergeFailure::Holdout { names: event.list(HIDDEN_TESTS) }),
            (_, Some(output)) => Some(MergeFailure::Test { what: reason, output }),
            (_, None) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mergeable {
    #[serde(flatten)]
    pub task: TaskReply,
    pub commit: Sha,
    /// The commit that the work started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<Sha>,
    #[serde(skip)]
    pub description: Option<String>,
    #[serde(skip)]
    pub approved_by: Option<Approver>,
    /// The integration head that the program set, or the human accepted.
    #[serde(skip)]
    pub integration_head: Option<Sha>,
    /// The result of the integration test on that head, if it was run.
    #[serde(skip)]
    pub head_test: Option<Box<HeadTest>>,
    /// The number of the gate that the merge is judged by.
    #[serde(skip)]
    pub gate_version: u32,
    /// The change of protected files that was asked about, with the human's word on it.
    #[serde(skip)]
    pub gate_change: Option<Box<GateChange>>,
    /// The commands that validate the task, and their last result on this commit.
    #[serde(skip)]
    pub commands: Vec<ValidationCommand>,
    #[serde(skip)]
    pub validated: Option<Box<Validation>>,
    /// True if the human's approval replaces these commands.
    #[serde(skip)]
    pub without_validation: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeRecorded {
    #[serde(flatten)]
    pub task: TaskReply,
    pub merge_commit: Sha,
    pub drift_commits: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeFailed {
    #[serde(flatten)]
    pub task: TaskReply,
    pub reason: String,
}

impl Rule for BeginMerge {
    type Reply = Mergeable;
    const VERB: &'static str = "wt-merge";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Starts;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Goal]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Mergeable, Refusal> {
        let task = tx.task(&self.task)?;
        let (work, commit, approved_by) = approved(tx, &task)?;
        if let (Some(agent), Some(summary)) = (tx.actor.agent(), tx.board.summary(&self.task)) {
            check_merger(tx.board, summary, agent, tx.now)?;
            check_not_held(tx.board, summary)?;
        }
        let reply = TaskReply::from(&task);
        let commands = commands(tx.config()?, &task.record);
        let validated = result_for(tx.config()?, &task.record, &commit).cloned().map(Box::new);
        let without_validation =
            task.record.past().approval.is_some_and(|approval| approval.without_validation);
        let (description, gate_change) = (task.record.description, task.record.gate_change.map(Box::new));
        let goal = tx.board.goal()?;
        Ok(Mergeable {
            task: reply,
            commit,
            base_commit: work.base,
            description,
            approved_by,
            integration_head: goal.integration_head.clone(),
            head_test: goal.head_test.clone().map(Box::new),
            gate_version: goal.gate_version,
            gate_change,
            commands,
            validated,
            without_validation,
        })
    }
}

impl Rule for RecordMerge {
    type Reply = MergeRecorded;
    const VERB: &'static str = "wt-merge (merged)";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<MergeRecorded, Refusal> {
        let (id, merge_commit, drift_commits) = (&self.task, &self.merge_commit, self.drift_commits);
        let mut task = tx.task(id)?;
        let (work, commit, by) = approved(tx, &task)?;
        check_commit(&task, &commit, &self.commit)?;
        self.move_head(tx)?;
        if task.record.gate_change.as_ref().is_some_and(|change| change.commit.names_same_commit(&commit)) {
            let goal = tx.goal()?;
            goal.gate_version = goal.gate_version.wrapping_add(1);
        }
        let mut event = HistoryEvent::new(tx.now, EventName::Merged, merger(tx, by));
        if let Some(old_head) = &self.old_head {
            event = event.with("merged_into", old_head.as_str());
        }
        let event = event
            .with("commit", commit.as_str())
            .with("merge_commit", merge_commit.as_str())
            .with("coder", work.coder.to_string());
        task.push_event(event.with("drift_commits", drift_commits));
        task.status = TaskStatus::Merged { merge_commit: Some(merge_commit.clone()) };
        tx.drop_handoff(id)?;
        task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
        refill_after_merge(tx, id, &task.record)?;
        let how = if merge_commit.names_same_commit(&commit) { "fast-forward" } else { "merge commit" };
        let detail = format!("{how} {}", merge_commit.short());
        tx.log_as(merger(tx, by), LogAction::Task(EventName::Merged), Some(id), &detail);
        tx.effect(Effect::RemoveWorktree(id.clone()));
        Ok(MergeRecorded { task: tx.put(task), merge_commit: merge_commit.clone(), drift_commits })
    }
}

impl RecordMerge {
    /// Records the new head of the branch. It never goes back: a merge below the recorded head leaves it
    /// where it is, and one onto another head is refused.
    fn move_head(&self, tx: &mut Tx<'_>) -> Result<(), Refusal> {
        let goal = tx.goal()?;
        match (&self.old_head, &goal.integration_head) {
            (None, Some(_)) => return Ok(()),
            (Some(old), Some(recorded))
                if !recorded.names_same_commit(old) && !recorded.names_same_commit(&self.merge_commit) =>
            {
                let (recorded, found) = (recorded.clone(), old.clone());
                return Err(Refusal::ForeignCommits { recorded, found });
            }
            (Some(_), Some(_)) | (_, None) => {}
        }
        goal.head_test = None;
        goal.integration_head = Some(self.merge_commit.clone());
        Ok(())
    }
}

impl Rule for RecordMergeFailure {
    type Reply = MergeFailed;
    const VERB: &'static str = "wt-merge (failed)";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<MergeFailed, Refusal> {
        let mut task = tx.task(&self.task)?;
        let (work, commit, by) = approved(tx, &task)?;
        check_commit(&task, &commit, &self.commit)?;
        let (merger, failure) = (merger(tx, by), self.failure.clone().told(&task.record.past()));
        let event = HistoryEvent::new(tx.now, EventName::IntegrationFailed, &merger);
        task.push_event(failure.add_to(event.with("commit", commit.as_str())));
        task.status = TaskStatus::IntegrationFailed { work, commit };
        let reason = failure.to_string();
        tx.log_as(merger, LogAction::Task(EventName::IntegrationFailed), Some(&task.id), &reason);
        Ok(MergeFailed { task: tx.put(task), reason })
    }
}

/// The approved work, for a caller who may merge it.
pub(super) fn approved(tx: &Tx<'_>, task: &Task) -> Result<(Assignment, Sha, Option<Approver>), Refusal> {
    if let Some(agent) = tx.actor.agent()
        && agent.role() != Role::CodeReviewer
    {
        return Err(Refusal::WrongRole { agent, wanted: Role::CodeReviewer });
    }
    let TaskStatus::Approved { work, commit, by, .. } = &task.status else {
        return Err(tx.wrong_status(task, "APPROVED"));
    };
    if !has_approval(&task.record) {
        return Err(Refusal::NoApproval { task: task.id.clone(), commit: commit.clone() });
    }
    Ok((work.clone(), commit.clone(), *by))
}

pub(super) fn check_commit(task: &Task, approved: &Sha, commit: &Sha) -> Result<(), Refusal> {
    if approved.names_same_commit(commit) {
        return Ok(());
    }
    let (task, approved, commit) = (task.id.clone(), approved.clone(), commit.clone());
    Err(Refusal::NotApprovedCommit { task, approved, commit })
}

/// The name in the log: the approver for a merge by the human, else the caller.
pub(super) fn merger(tx: &Tx<'_>, by: Option<Approver>) -> String {
    match (tx.actor, by) {
        (Actor::Human, Some(by)) => by.to_string(),
        (actor, _) => actor.to_string(),
    }
}
