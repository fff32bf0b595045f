//! The second half of a task in a team: validation, reviews, merge, and the oracles at the end.

use liza_core::model::{
    Actor, AgentId, EventName, GateChange, HistoryEvent, Refusal, Sha, Status, TestFailure, Validation,
    ValidationResult,
};
use liza_core::protocol::{
    BeginMerge, BeginReview, ClaimReview, HoldCause, HoldMerge, MergeFailure, RecordMerge,
    RecordMergeFailure, RecordValidation, Reply, SubmitVerdict, Verdict, WorktreeFacts,
};
use liza_core::supervise::SessionEnd;

use crate::arms::{Ablation, Arm, Script};
use crate::board::sha;
use crate::dice::Die;
use crate::facts::GATE_FILE;
use crate::outcome::{Outcome, Speaker, Spoken};
use crate::team::{TEST, Team, approval, coder_id, slot};
use crate::work::{Content, Defect, Flaw};

const GATE: &str = "gate";
const REASON: &str = "Blockers: 1\nPrior Feedback Status:\n- STILL PRESENT: all of it";
/// The gap of a template that no one has filled.
const FORGED: &str = "[command and its result]";

fn failure() -> TestFailure {
    TestFailure { what: "failed".to_owned(), output: "log".to_owned(), last_lines: Vec::new() }
}

impl Team<'_> {
    pub(crate) fn review(&mut self, reviewer: AgentId) -> Result<(), Refusal> {
        let (task, integration) = (self.task.clone(), Some(sha(self.git.head)));
        let gate = self.setting.arm.has_gate().then(|| GATE.to_owned());
        let claim = ClaimReview { task: task.clone(), reviewer, setup_failure: None, integration, gate };
        let Reply::ClaimReview(claimed) = self.board.send(self.board.supervisor(reviewer), claim)? else {
            return Ok(());
        };
        let content = self.git.content(&claimed.commit);
        if claimed.validates {
            let validation = self.validation(claimed.commit, &content);
            let record = RecordValidation { task: task.clone(), reviewer, validation };
            self.board.send(self.board.supervisor(reviewer), record)?;
            if content.is_red() {
                self.outcome.found_by_tests = true;
                return Ok(());
            }
            let begin = BeginReview { task, reviewer, gate: GATE.to_owned() };
            self.board.send(self.board.supervisor(reviewer), begin)?;
        }
        self.session(reviewer, |team| team.read(reviewer, &content));
        Ok(())
    }

    /// The result of the visible tests.
    fn validation(&self, commit: Sha, content: &Content) -> Validation {
        let is_red = content.is_red();
        Validation {
            commit,
            result: if is_red { ValidationResult::Red } else { ValidationResult::Green },
            commands: vec![TEST.to_owned()],
            gate: GATE.to_owned(),
            tree: None,
            time: self.board.now,
            command: is_red.then(|| TEST.to_owned()),
            failure: is_red.then(failure),
            flaky: Vec::new(),
            head: None,
            settings: Vec::new(),
            receipt: None,
        }
    }

    /// A code reviewer's session.
    fn read(&mut self, reviewer: AgentId, content: &Content) -> SessionEnd {
        let slot = slot(reviewer);
        let reviews = &mut self.reviews[usize::from(slot)];
        *reviews += 1;
        let (number, is_first) = (*reviews, self.reviews.iter().sum::<u32>() == 1);
        if is_first && self.is_script(Script::LateVerdict) {
            self.send_late_verdict(reviewer);
            // Its process has ended with its supervisor.
            return SessionEnd::Code(0);
        }
        if is_first && self.is_script(Script::ForgesEvidence) {
            let forged = Verdict::Approved(Some(FORGED.to_owned()));
            self.give(self.board.session(reviewer), Speaker::default(), forged);
        }
        let is_blind = self.is_blind(slot);
        let verdict = match !is_blind && self.rejects(content, slot, number) {
            true => {
                self.outcome.found_by_review |= content.defect.is_some();
                Verdict::Rejected(REASON.to_owned())
            }
            false => approval(),
        };
        let speaker = Speaker { is_blind, ..Speaker::default() };
        self.give(self.board.session(reviewer), speaker, verdict);
        SessionEnd::Code(0)
    }

    /// True if the reviewer approves without reading.
    fn is_blind(&self, slot: u8) -> bool {
        let stamps = slot == 0 && self.is_script(Script::ApprovesEverything);
        stamps || self.setting.arm == Arm::NoReview
    }

    /// The judgement of a reviewer that reads: its dice, or its mutants.
    fn rejects(&mut self, content: &Content, slot: u8, number: u32) -> bool {
        let arm = self.setting.arm;
        match arm {
            Arm::MutantReview => {
                self.asks_for_tests = self.coder.material.has_survivors() && !content.has_more_tests;
                self.asks_for_tests
            }
            Arm::Solo
            | Arm::SoloTests
            | Arm::SoloBudget
            | Arm::NoReview
            | Arm::Review
            | Arm::Limits
            | Arm::Gate
            | Arm::SecondSame
            | Arm::SecondOther => {
                let throw = self.coder.dice.roll(Die::Review(slot), number);
                content.is_rejected(self.setting.rates, arm.is_other_program(slot), throw)
            }
        }
    }

    /// Its supervisor has died and was replaced; the old session goes on and approves.
    fn send_late_verdict(&mut self, reviewer: AgentId) {
        let old = self.board.generation(reviewer);
        self.board.register(reviewer, Some(old));
        let sender = match self.is_without(Ablation::NoFencing) {
            true => self.board.session(reviewer),
            false => Actor::Agent(reviewer, old),
        };
        let is_replaced = self.board.generation(reviewer) != old;
        self.give(sender, Speaker { is_replaced, ..Speaker::default() }, approval());
    }

    /// Sends a verdict in the name of somebody, and notes the process that speaks.
    pub(crate) fn give(&mut self, sender: Actor, speaker: Speaker, verdict: Verdict) {
        let (approves, is_unfilled) = match &verdict {
            Verdict::Approved(evidence) | Verdict::WithoutValidation(evidence) => {
                (true, evidence.as_ref().is_some_and(|text| text.starts_with('[')))
            }
            Verdict::Rejected(_) => (false, false),
        };
        let commit = self.board.record(&self.task).and_then(|record| record.review_commit.clone());
        let facts = commit.map(WorktreeFacts::clean);
        let task = self.task.clone();
        let command = SubmitVerdict { task, verdict, facts, commit: None, moved: None };
        let is_accepted = self.board.send(sender, command).is_ok();
        self.seen.verdicts.push(Spoken { speaker, approves, is_unfilled, is_accepted });
    }

    pub(crate) fn merge(&mut self, agent: AgentId) -> Result<(), Refusal> {
        let (task, merger) = (self.task.clone(), self.board.supervisor(agent));
        let Reply::BeginMerge(approved) = self.board.send(merger, BeginMerge { task: task.clone() })? else {
            return Ok(());
        };
        let commit = approved.commit.clone();
        let content = self.git.content(&commit);
        let has_gate = self.setting.arm.has_gate();
        if has_gate && content.defect.is_some_and(|defect| defect.flaw == Flaw::Gate) {
            let cause = HoldCause::Gate { version: approved.gate_version, change: gate_change(&commit) };
            return self.board.send(merger, HoldMerge { task, commit, cause }).map(drop);
        }
        let is_tested = has_gate && !self.is_without(Ablation::NoHeadTest);
        if is_tested && (content.is_red() || self.git.clashes) {
            let failure = MergeFailure::Test { what: "failed".to_owned(), output: "log".to_owned() };
            self.outcome.found_by_tests = true;
            return self.board.send(merger, RecordMergeFailure { task, commit, failure }).map(drop);
        }
        let merged = match self.is_without(Ablation::NoCommitBinding) {
            true => self.git.content(&sha(self.git.worktree)),
            false => content,
        };
        let clash = Defect { flaw: Flaw::Clash, is_visible: true, blind: [false; 2] };
        let defect = merged.defect.or(self.git.clashes.then_some(clash));
        let old_head = Some(sha(self.git.head));
        self.git.head = self.git.commit(Content { defect, ..merged });
        let merge_commit = sha(self.git.head);
        let record = RecordMerge { task, commit, merge_commit, drift_commits: 0, old_head };
        self.board.send(merger, record).map(drop)
    }

    /// The oracles: hidden tests on the merged head, and git against the log.
    pub(crate) fn judge(mut self) -> Outcome {
        let status = self.status();
        let is_wrong = self.submitted().defect.is_some();
        let head = self.git.content(&sha(self.git.head));
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.seen = std::mem::take(&mut self.seen);
        outcome.merged = status == Some(Status::Merged);
        outcome.defective = outcome.merged && head.defect.is_some();
        outcome.harmed = self.coder.has_harmed;
        outcome.false_block = status == Some(Status::Blocked) && !is_wrong && self.has_submitted;
        outcome.asked |= status == Some(Status::Blocked);
        outcome.faults = std::mem::take(&mut self.board.faults);
        if outcome.merged && self.setting.ablation.is_none() && !self.is_approved_merge() {
            outcome
                .faults
                .push("merged without an approval of exactly that commit by another agent".to_owned());
        }
        if outcome.merged && self.setting.ablation.is_none() && self.has_foreign_content(&head) {
            outcome.faults.push("the branch has a content that no approved commit has".to_owned());
        }
        outcome
    }

    /// Git against the log: the last approvals are of the merged commit, as many as needed, and not by its coder.
    fn is_approved_merge(&self) -> bool {
        let Some(record) = self.board.record(&self.task) else { return false };
        let merged = record.last_event(EventName::Merged).and_then(|event| event.text("commit"));
        let is_of_it = |event: &&HistoryEvent| {
            event.is(EventName::Approved)
                && event.text("commit") == merged
                && event.agent.as_deref() != Some(coder_id().to_string().as_str())
        };
        let approvals = record.events().filter(is_of_it).count();
        merged.is_some() && approvals >= usize::from(self.setting.arm.reviewers())
    }

    fn has_foreign_content(&self, head: &Content) -> bool {
        let clash = |content: &Content| content.defect.is_some_and(|defect| defect.flaw == Flaw::Clash);
        *head != self.submitted_at_merge() && !clash(head)
    }

    /// The content of the commit that the log calls merged.
    fn submitted_at_merge(&self) -> Content {
        let record = self.board.record(&self.task);
        let event = record.and_then(|record| record.last_event(EventName::Merged));
        let commit = event.and_then(|event| event.text("commit")).and_then(|commit| commit.parse().ok());
        commit.map(|commit: Sha| self.git.content(&commit)).unwrap_or_default()
    }
}

fn gate_change(commit: &Sha) -> GateChange {
    GateChange {
        commit: commit.clone(),
        before: GATE.to_owned(),
        after: "changed".to_owned(),
        files: vec![GATE_FILE.to_owned()],
        old_failure: None,
        accepted: None,
    }
}
