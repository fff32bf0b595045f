//! The answers of a task's history to the rules.
//!
//! Rules ask nothing else of the history: two boards that are equal apart from their histories, and whose pasts are
//! equal, have equal outcomes for every command. The exploration of the protocol rests on that, and a test tries it.

use std::collections::{BTreeMap, BTreeSet};

use liza_ids::{AgentId, Role, Sha, Timestamp};
use serde::Serialize;

use crate::model::event::{EventName, HistoryEvent};
use crate::model::value::Value;

/// The key of an approval that is not enough: the number of those that are needed.
pub const FIRST_OF: &str = "first_of";

/// The key of a failed merge that hidden tests failed: the names that agents were told.
pub const HIDDEN_TESTS: &str = "tests";

/// The key of the human's approval whose word replaces the commands that validate the task.
pub const WITHOUT_VALIDATION: &str = "without_validation";

/// One pass over the history gives all of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Past<'a> {
    pub creator: Option<&'a str>,
    /// True if a planner has done anything with it, as files of earlier versions show it.
    pub by_planner: bool,
    /// The last time that the planner put it before the human.
    pub proposed: Option<Timestamp>,
    pub is_finalized: bool,
    /// The coders that have claimed it, each once.
    pub coders: Vec<&'a str>,
    pub claims: u32,
    pub first_claim: Option<Timestamp>,
    pub last_coder: Option<&'a str>,
    /// The files that its coders have named in their pre-checks.
    pub planned_files: Vec<String>,
    pub submissions: u32,
    pub last_submission: Option<Timestamp>,
    pub approvals: u32,
    /// Verdicts of code reviewers and of the human; a submission that the system sent back is none.
    pub rejections: u32,
    /// Who gave the last verdict, the system included.
    pub last_verdict_by: Option<Option<&'a str>>,
    /// The last approval that is enough, unless a rejection came after it.
    pub approval: Option<Judgement<'a>>,
    /// All approvals since the last rejection, also those that are not enough.
    pub approved: Vec<Judgement<'a>>,
    /// The last rejection that is not the system's.
    pub rejection: Option<Judgement<'a>>,
    pub failed_merges: usize,
    /// Those of hidden tests.
    #[serde(skip_serializing_if = "is_zero")]
    pub holdout_results: usize,
    pub last_failed_merge: Option<Timestamp>,
    /// The last failed merge, unless somebody has unblocked the task since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_merge: Option<&'a HistoryEvent>,
    pub blocks: u32,
    /// Blocks since the human last unblocked it.
    pub blocks_since_human: usize,
    pub last_block: Option<PastBlock<'a>>,
    /// The last block, unless a coder has started since.
    pub block_since_start: Option<PastBlock<'a>>,
    pub unblocked_by_human: Vec<Timestamp>,
    /// The last merge, replacement or end.
    pub end: Option<Timestamp>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_merged: bool,
    /// The last traces of each agent.
    pub traces: BTreeMap<&'a str, Trace>,
}

/// A verdict about a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement<'a> {
    pub by: Option<&'a str>,
    pub commit: Option<String>,
    /// True for an approval by which the human's word replaces the commands that validate the task.
    pub without_validation: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PastBlock<'a> {
    pub by: Option<&'a str>,
    pub time: Timestamp,
    /// The status before it.
    pub from: Option<String>,
}

/// The last events of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    pub last: Timestamp,
    /// True if nothing was left to do for the session that recorded the last one.
    pub is_result: bool,
    /// True if its session ended after it had last started.
    pub is_session_over: bool,
}

impl<'a> Past<'a> {
    /// Reads a history, oldest first.
    pub fn of(history: &'a [HistoryEvent]) -> Self {
        let mut past = Self::default();
        for event in history {
            let name = event.name();
            past.see_agent(event, name);
            // A person's own word, or one of another version: no rule asks for it.
            if let Some(name) = name {
                past.see(event, name);
            }
        }
        past
    }

    pub fn has_claimed(&self, agent: AgentId) -> bool {
        self.coders.contains(&agent.to_string().as_str())
    }

    pub fn is_by_human(&self) -> bool {
        self.creator == Some("human")
    }

    /// Those who have approved a commit, and whose approval no rejection has taken back.
    pub fn approvers(&self, commit: &Sha) -> BTreeSet<&'a str> {
        let of_commit = |approval: &&Judgement<'a>| approval.commit.as_deref() == Some(commit.as_str());
        self.approved.iter().filter(of_commit).filter_map(|approval| approval.by).collect()
    }

    fn see_agent(&mut self, event: &'a HistoryEvent, name: Option<EventName>) {
        let Some(agent) = event.agent.as_deref() else { return };
        self.by_planner |= agent.parse::<AgentId>().is_ok_and(|agent| agent.role() == Role::Planner);
        let trace = Trace::after(self.traces.get(agent), event.time, name);
        self.traces.insert(agent, trace);
    }

    fn see(&mut self, event: &'a HistoryEvent, name: EventName) {
        let (by, time) = (event.agent.as_deref(), event.time);
        if name.is_claim() {
            self.see_claim(event);
        }
        match name {
            EventName::Created if self.creator.is_none() => self.creator = by,
            EventName::Finalized => self.is_finalized = true,
            EventName::Proposed => self.proposed = Some(time),
            EventName::Resumed => self.block_since_start = None,
            EventName::PreExecutionCheckpoint => self.planned_files.extend(files(event)),
            EventName::ReadyForReview => {
                self.submissions += 1;
                self.last_submission = Some(time);
            }
            EventName::Approved | EventName::Rejected => self.see_verdict(event, name),
            EventName::IntegrationFailed => {
                self.failed_merges += 1;
                self.holdout_results += usize::from(event.more.contains_key(HIDDEN_TESTS));
                (self.last_failed_merge, self.failed_merge) = (Some(time), Some(event));
            }
            EventName::Blocked => self.see_block(event),
            EventName::Unblocked => self.see_unblock(event),
            EventName::Merged | EventName::Superseded | EventName::Abandoned => {
                self.end = Some(time);
                self.is_merged |= name == EventName::Merged;
            }
            EventName::Created
            | EventName::Claimed
            | EventName::ReclaimedAfterRejection
            | EventName::ReassignedAfterRejection
            | EventName::ClaimedForIntegrationFix
            | EventName::ReclaimedAfterExpiry
            | EventName::MergeHeld
            | EventName::GateAccepted
            | EventName::Handoff
            | EventName::SessionEnded
            | EventName::Released
            | EventName::Archived => {}
        }
    }

    fn see_claim(&mut self, event: &'a HistoryEvent) {
        let by = event.agent.as_deref();
        self.claims += 1;
        self.first_claim = self.first_claim.or(Some(event.time));
        (self.last_coder, self.block_since_start) = (by, None);
        self.coders.extend(by.filter(|coder| !self.coders.contains(coder)));
    }

    fn see_verdict(&mut self, event: &'a HistoryEvent, name: EventName) {
        let by = event.agent.as_deref();
        let without_validation = by == Some("human") && event.more.contains_key(WITHOUT_VALIDATION);
        let judgement = || Some(Judgement { by, commit: event.text("commit"), without_validation });
        self.last_verdict_by = Some(by);
        if name == EventName::Approved {
            self.approvals += 1;
            self.approval = judgement().filter(|_| !event.more.contains_key(FIRST_OF));
            self.approved.extend(judgement());
            return;
        }
        self.approval = None;
        self.approved.clear();
        if by != Some("system") {
            self.rejections += 1;
            self.rejection = judgement();
        }
    }

    fn see_block(&mut self, event: &'a HistoryEvent) {
        self.blocks += 1;
        self.blocks_since_human += 1;
        let block = PastBlock { by: event.agent.as_deref(), time: event.time, from: event.text("from") };
        self.last_block = Some(block.clone());
        self.block_since_start = Some(block);
    }

    fn see_unblock(&mut self, event: &'a HistoryEvent) {
        self.failed_merge = None;
        if event.agent.as_deref() == Some("human") {
            self.unblocked_by_human.push(event.time);
            self.blocks_since_human = 0;
        }
    }
}

impl Trace {
    fn after(before: Option<&Self>, last: Timestamp, name: Option<EventName>) -> Self {
        let was_over = before.is_some_and(|trace| trace.is_session_over);
        let starts = name.is_some_and(|name| name.is_claim() || name == EventName::Resumed);
        let is_session_over = !starts && (was_over || name == Some(EventName::SessionEnded));
        Self { last, is_result: name.is_some_and(is_result), is_session_over }
    }

    /// The trace of one agent alone, as in [`Past::traces`]: screens ask for it of every task and agent.
    pub(super) fn of(history: &[HistoryEvent], agent: AgentId) -> Option<Self> {
        let name = agent.to_string();
        let own = history.iter().filter(|event| event.agent.as_deref() == Some(name.as_str()));
        own.fold(None, |before, event| Some(Self::after(before.as_ref(), event.time, event.name())))
    }
}

/// True if nothing is left to do for the session that recorded it.
fn is_result(name: EventName) -> bool {
    matches!(name, EventName::ReadyForReview | EventName::Approved | EventName::Rejected | EventName::Blocked)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn files(event: &HistoryEvent) -> Vec<String> {
    match event.more.get("files") {
        Some(Value::List(files)) => files.iter().map(ToString::to_string).collect(),
        Some(_) | None => Vec::new(),
    }
}
