//! The blackboard, its log and archive, the receipts and git against each other, for `liza verify`.
//!
//! Pure: everything outside the blackboard comes in as facts. Names what differs and repairs nothing. A receipt that no merge
//! names is no finding: statements are written first, so a crash may leave one.

use std::collections::{BTreeMap, BTreeSet};

use liza_ids::{AgentId, Digest, Revision, Sha, TaskId, Timestamp};
use serde::Serialize;

use crate::model::{EventName, FIRST_OF, GoalStatus, HistoryEvent, State, Status, TaskRecord};
use crate::rules::approvals::lacks_approval;
use crate::rules::invariants::Violation;

/// The events that the log repeats, each under its own name: together they decide what is merged.
const LOGGED: [EventName; 4] =
    [EventName::Approved, EventName::Rejected, EventName::Merged, EventName::IntegrationFailed];

/// An entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedWrite<'a> {
    pub time: Timestamp,
    pub agent: &'a str,
    pub action: &'a str,
    pub task: Option<&'a str>,
    pub revision: Option<u64>,
}

/// A commit of the integration branch's own line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineStep {
    pub commit: Sha,
    pub merge: Option<LineMerge>,
}

/// The merge of a task, according to the message of its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMerge {
    pub task: TaskId,
    pub commit: Sha,
    pub approved_by: Option<String>,
}

/// An approval by an agent, as its receipt states it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatedApproval {
    pub task: TaskId,
    pub agent: String,
    pub commit: Sha,
    /// True if a merge on the line rests on it.
    pub is_named: bool,
}

/// Everything that is compared.
#[derive(Debug)]
pub struct AuditFacts<'a> {
    pub state: &'a State,
    pub violations: &'a [Violation],
    /// The tasks that the blackboard names as archived, with their records if the archive has them.
    pub archive: &'a BTreeMap<TaskId, Option<TaskRecord>>,
    pub log: &'a [LoggedWrite<'a>],
    /// The revision of the blackboard after the log was read.
    pub revision: Revision,
    /// The line, the oldest commit first.
    pub line: &'a [LineStep],
    /// The commits of the blackboard that the integration branch does not contain.
    pub off_branch: &'a BTreeSet<Sha>,
    /// The merges that references keep, whatever happens to the branch.
    pub kept: &'a BTreeMap<TaskId, Sha>,
    pub approvals: &'a BTreeSet<StatedApproval>,
    /// Receipts whose content has another digest than their name.
    pub edited: &'a [Digest],
}

/// The kinds of contradictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ContradictionKind {
    InvalidBoard,
    GoalHasOpenTask,
    MergeLost,
    MergeNotRecorded,
    MergeOfOtherTask,
    HeadOffBranch,
    BaseOffBranch,
    NoApproval,
    OwnApproval,
    ApprovedAfterMerge,
    OtherCommitApproved,
    OtherApprover,
    NotLogged,
    NotInHistory,
    LogAhead,
    LogCut,
    ArchiveMissing,
    ArchiveDiffers,
    ArchivedAndOpen,
    ReferenceElsewhere,
    ReceiptEdited,
    ReceiptMissing,
    ApprovalNotRecorded,
}

/// The source that differs from the blackboard, or the blackboard itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AuditPlace {
    Blackboard,
    Log,
    Archive,
    Branch,
    Reference,
    Receipts,
}

impl ContradictionKind {
    pub fn place(self) -> AuditPlace {
        match self {
            Self::InvalidBoard
            | Self::GoalHasOpenTask
            | Self::NoApproval
            | Self::OwnApproval
            | Self::ApprovedAfterMerge => AuditPlace::Blackboard,
            Self::MergeLost
            | Self::MergeNotRecorded
            | Self::MergeOfOtherTask
            | Self::HeadOffBranch
            | Self::BaseOffBranch
            | Self::OtherCommitApproved
            | Self::OtherApprover => AuditPlace::Branch,
            Self::NotLogged | Self::NotInHistory | Self::LogAhead | Self::LogCut => AuditPlace::Log,
            Self::ArchiveMissing | Self::ArchiveDiffers | Self::ArchivedAndOpen => AuditPlace::Archive,
            Self::ReferenceElsewhere => AuditPlace::Reference,
            Self::ReceiptEdited | Self::ReceiptMissing | Self::ApprovalNotRecorded => AuditPlace::Receipts,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    pub kind: ContradictionKind,
    pub place: AuditPlace,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub why: String,
}

struct Audit<'a> {
    facts: &'a AuditFacts<'a>,
    steps: BTreeMap<&'a Sha, (usize, &'a LineStep)>,
    found: Vec<Contradiction>,
}

/// Finds everything that differs.
pub fn audit(facts: &AuditFacts<'_>) -> Vec<Contradiction> {
    let steps = facts.line.iter().enumerate().map(|(at, step)| (&step.commit, (at, step)));
    let mut audit = Audit { facts, steps: steps.collect(), found: Vec::new() };
    audit.check_board();
    audit.check_archive();
    for (id, record) in tasks(facts) {
        audit.check_task(id, record);
    }
    audit.check_line();
    audit.check_log();
    audit.check_receipts();
    audit.found
}

/// The records of all tasks: of the blackboard, and of the archive.
fn tasks<'a>(facts: &'a AuditFacts<'a>) -> impl Iterator<Item = (&'a TaskId, &'a TaskRecord)> {
    let live = facts.state.bodies().map(|(id, body)| (id, body.record()));
    live.chain(facts.archive.iter().filter_map(|(id, record)| Some((id, record.as_ref()?))))
}

impl<'a> Audit<'a> {
    fn add(&mut self, kind: ContradictionKind, task: Option<&TaskId>, why: impl Into<String>) {
        self.found.push(Contradiction { kind, place: kind.place(), task: task.cloned(), why: why.into() });
    }

    fn check_board(&mut self) {
        // Those with an alarm are about the moment: an agent has gone, a verdict is missing.
        for violation in self.facts.violations.iter().filter(|violation| !violation.has_alarm) {
            self.add(ContradictionKind::InvalidBoard, None, violation.to_string());
        }
        let board = &self.facts.state.board;
        let Some(goal) = board.goal.ready() else { return };
        if goal.status == GoalStatus::Completed {
            let is_open = |status: Option<Status>| status.is_some_and(|status| !status.is_terminal());
            for summary in board.summaries().filter(|summary| is_open(summary.status)) {
                let why = format!("the goal {} is COMPLETED and the task is open", goal.id);
                self.add(ContradictionKind::GoalHasOpenTask, Some(&summary.id), why);
            }
        }
        if let Some(head) = goal.integration_head.as_ref().filter(|head| self.is_off(head)) {
            let why = format!("the recorded head {} is not on the integration branch", head.short());
            self.add(ContradictionKind::HeadOffBranch, None, why);
        }
    }

    fn is_off(&self, commit: &Sha) -> bool {
        self.facts.off_branch.contains(commit)
    }

    fn check_archive(&mut self) {
        let board = &self.facts.state.board;
        for (id, record) in self.facts.archive {
            let status = board.archived.get(id).copied();
            match record {
                None => {
                    self.add(ContradictionKind::ArchiveMissing, Some(id), "the archive has no record of it")
                }
                Some(record) if record.status != status => {
                    let why = "the archive and the blackboard name different ends of it";
                    self.add(ContradictionKind::ArchiveDiffers, Some(id), why);
                }
                Some(_) => {}
            }
            if board.tasks.contains_key(id) {
                self.add(
                    ContradictionKind::ArchivedAndOpen,
                    Some(id),
                    "it is archived and on the blackboard",
                );
            }
        }
    }

    fn check_task(&mut self, id: &TaskId, record: &'a TaskRecord) {
        if let Some(base) = record.base_commit.as_ref().filter(|base| self.is_off(base)) {
            let why = format!("its base {} is not on the integration branch", base.short());
            self.add(ContradictionKind::BaseOffBranch, Some(id), why);
        }
        if record.status == Some(Status::Merged) {
            self.check_merged(id, record);
        } else if record.status == Some(Status::Approved) {
            self.check_approved(id, record);
        }
    }

    fn check_approved(&mut self, id: &TaskId, record: &TaskRecord) {
        if lacks_approval(record) {
            self.add(ContradictionKind::NoApproval, Some(id), "APPROVED without an approval of its commit");
        }
        let approval = record.past().approval.and_then(|approval| approval.by);
        let (Some(agent), Some(commit)) = (approval, &record.review_commit) else { return };
        // The human's word needs no receipt.
        let is_stated = |stated: &StatedApproval| {
            stated.task == *id && stated.agent == agent && stated.commit.names_same_commit(commit)
        };
        if agent.parse::<AgentId>().is_ok() && !self.facts.approvals.iter().any(is_stated) {
            let why = format!("there is no receipt of the approval of {} by {agent}", commit.short());
            self.add(ContradictionKind::ReceiptMissing, Some(id), why);
        }
    }

    fn check_merged(&mut self, id: &TaskId, record: &'a TaskRecord) {
        let step =
            record.merge_commit.as_ref().and_then(|commit| self.steps.get(commit)).map(|(_, step)| *step);
        if let Some(commit) = record.merge_commit.as_ref().filter(|commit| self.is_off(commit)) {
            let why = format!("MERGED at {}, which is not on the integration branch", commit.short());
            self.add(ContradictionKind::MergeLost, Some(id), why);
        }
        let merge = step.and_then(|step| step.merge.as_ref());
        if let Some(other) = merge.filter(|merge| merge.task != *id) {
            let why = format!("the merge that the blackboard names is of {}", other.task);
            self.add(ContradictionKind::MergeOfOtherTask, Some(id), why);
        }
        if let (Some(kept), Some(commit)) = (self.facts.kept.get(id), &record.merge_commit)
            && !kept.names_same_commit(commit)
        {
            let why = format!("the reference of its merge is at {}, not at {}", kept.short(), commit.short());
            self.add(ContradictionKind::ReferenceElsewhere, Some(id), why);
        }
        self.check_merged_approval(id, record, merge.filter(|merge| merge.task == *id));
    }

    fn check_merged_approval(&mut self, id: &TaskId, record: &TaskRecord, merge: Option<&LineMerge>) {
        let events = record.history.as_deref().unwrap_or_default();
        let end = events.iter().rposition(|event| event.is(EventName::Merged));
        let merged = end.and_then(|end| events.get(end));
        // A merge that the human accepted with the branch needs no approval.
        if merged.is_some_and(|event| event.more.contains_key("reason")) {
            return;
        }
        let (before, after) = events.split_at(end.unwrap_or(events.len()));
        let is_enough =
            |event: &HistoryEvent| event.is(EventName::Approved) && !event.more.contains_key(FIRST_OF);
        let is_verdict = |event: &&HistoryEvent| event.is(EventName::Rejected) || is_enough(event);
        let last = before.iter().rev().find(is_verdict).filter(|event| event.is(EventName::Approved));
        let Some(approval) = last else {
            let is_late = after.iter().any(|event| event.is(EventName::Approved));
            return match is_late {
                true => self.add(ContradictionKind::ApprovedAfterMerge, Some(id), "approved after its merge"),
                false => self.add(ContradictionKind::NoApproval, Some(id), "MERGED without an approval"),
            };
        };
        if merged.is_some_and(|merged| approval.time > merged.time) {
            self.add(ContradictionKind::ApprovedAfterMerge, Some(id), "approved after its merge");
        }
        let claimed =
            before.iter().rev().find(|event| event.is_claim()).and_then(|event| event.agent.clone());
        if approval.agent.is_some() && approval.agent == claimed {
            self.add(ContradictionKind::OwnApproval, Some(id), "approved by its own coder");
        }
        let commit = merge.map(|merge| merge.commit.to_string()).or_else(|| merged?.text("commit"));
        if let (Some(merged), Some(approved)) = (&commit, approval.text("commit"))
            && *merged != approved
        {
            let why = format!("{approved} was approved and {merged} merged");
            self.add(ContradictionKind::OtherCommitApproved, Some(id), why);
        }
        let approver = merge.and_then(|merge| merge.approved_by.as_ref());
        if let Some(approver) = approver.filter(|approver| approval.agent.as_ref() != Some(*approver)) {
            let why = format!("its merge names {approver}, who is not the last to have approved it");
            self.add(ContradictionKind::OtherApprover, Some(id), why);
        }
    }

    /// Merges on the line whose task is not MERGED. The branch may be older than this blackboard and have a task of the same name:
    /// up to the recorded head only a commit that the record knows counts.
    fn check_line(&mut self) {
        let board = &self.facts.state.board;
        let head = board.goal.ready().and_then(|goal| goal.integration_head.as_ref());
        let recorded = head.and_then(|head| self.steps.get(head)).map(|(at, _)| *at);
        for (at, step) in self.facts.line.iter().enumerate() {
            let Some(merge) = &step.merge else { continue };
            let Ok(body) = board.body(&merge.task) else { continue };
            let record = body.record();
            let is_beyond = recorded.is_some_and(|recorded| at > recorded);
            let is_due = record.status == Some(Status::Approved)
                && record.review_commit.as_ref() == Some(&merge.commit);
            let counts = if is_beyond { !is_due } else { knows(record, &merge.commit) };
            if record.status != Some(Status::Merged) && counts {
                let why = format!("the branch has its merge {}, and it is not MERGED", step.commit.short());
                self.add(ContradictionKind::MergeNotRecorded, Some(&merge.task), why);
            }
        }
    }

    fn check_log(&mut self) {
        let log = self.facts.log;
        let Some(first) = log.first() else { return };
        if let Some(last) = log.iter().filter_map(|entry| entry.revision).max()
            && last > self.facts.revision.0
        {
            let why = format!("the log is at revision {last}, the blackboard at {}", self.facts.revision.0);
            self.add(ContradictionKind::LogAhead, None, why);
        }
        if first.revision.is_some_and(|revision| revision > 1) {
            self.add(ContradictionKind::LogCut, None, "the log does not begin with the first write");
        }
        let seen: BTreeSet<(Timestamp, &str, &str, &str)> = log
            .iter()
            .map(|entry| (entry.time, entry.task.unwrap_or(""), entry.action, entry.agent))
            .collect();
        let mut known = BTreeSet::new();
        for (id, record) in tasks(self.facts) {
            for event in record.events().filter(|event| is_logged(event)) {
                known.insert((event.time, id.as_str(), event.event.as_str()));
                let agent = event.agent.as_deref().unwrap_or_default();
                // What is older than the log came from another project or an older version.
                if event.time >= first.time && !seen.contains(&(event.time, id.as_str(), &event.event, agent))
                {
                    let why = format!("{} by {agent} at {} is not in the log", event.event, event.time);
                    self.add(ContradictionKind::NotLogged, Some(id), why);
                }
            }
        }
        self.check_entries(&known);
    }

    /// Entries of the log that no history has.
    fn check_entries(&mut self, known: &BTreeSet<(Timestamp, &str, &str)>) {
        let revision = self.facts.state.board.revision.0;
        let records: BTreeSet<&TaskId> = tasks(self.facts).map(|(id, _)| id).collect();
        let names: Vec<&str> = LOGGED.iter().map(|name| name.name()).collect();
        // What was written since the blackboard was read is not compared.
        let entries = self.facts.log.iter().filter(|entry| entry.revision.is_none_or(|at| at <= revision));
        for entry in entries.filter(|entry| names.contains(&entry.action)) {
            let Some(id) = entry.task.and_then(|task| task.parse::<TaskId>().ok()) else { continue };
            if records.contains(&id) && !known.contains(&(entry.time, id.as_str(), entry.action)) {
                let why = format!("the log has {} at {}, its history does not", entry.action, entry.time);
                self.add(ContradictionKind::NotInHistory, Some(&id), why);
            }
        }
    }

    fn check_receipts(&mut self) {
        for digest in self.facts.edited {
            self.add(ContradictionKind::ReceiptEdited, None, format!("the receipt {digest} was edited"));
        }
        let records: BTreeMap<&TaskId, &TaskRecord> = tasks(self.facts).collect();
        for stated in self.facts.approvals.iter().filter(|stated| stated.is_named) {
            let Some(record) = records.get(&stated.task) else { continue };
            let is_it = |event: &HistoryEvent| {
                event.is(EventName::Approved)
                    && event.agent.as_deref() == Some(stated.agent.as_str())
                    && event.text("commit").as_deref() == Some(stated.commit.as_str())
            };
            // The merge of an older task of the same name has receipts too.
            if knows(record, &stated.commit) && !record.events().any(is_it) {
                let why = format!("a receipt states an approval by {} that its history lacks", stated.agent);
                self.add(ContradictionKind::ApprovalNotRecorded, Some(&stated.task), why);
            }
        }
    }
}

/// True if the record names the commit as submitted, judged or merged.
fn knows(record: &TaskRecord, commit: &Sha) -> bool {
    record.review_commit.as_ref() == Some(commit)
        || record.events().any(|event| event.text("commit").as_deref() == Some(commit.as_str()))
}

/// True for an event that has a log entry of its own. One write accepts all merges on a branch, with one entry.
fn is_logged(event: &HistoryEvent) -> bool {
    let is_accepted = event.is(EventName::Merged) && event.more.contains_key("reason");
    !is_accepted && LOGGED.iter().any(|name| event.is(*name))
}
