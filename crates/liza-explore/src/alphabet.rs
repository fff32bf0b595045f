//! What can happen in a world: a finite list of actions, each carried out with the shipped rules.

use std::cell::LazyCell;

use liza_core::model::{
    Actor, AgentId, AgentRecord, AgentStatus, BranchMerge, GateChange, Refusal, ReviewPhase, Revision, Role,
    Sha, Status, TaskId, TestFailure, Timestamp, Validation, ValidationResult,
};
use liza_core::protocol::{
    AbandonTask, AcceptGate, AcceptIntegration, Answer, BeginMerge, BeginReview, CancelReservation,
    ClaimReview, ClaimRole, ClaimTask, ClearStaleReviewClaims, Command, CompleteGoal, CountExit, Deregister,
    Heartbeat, HoldCause, HoldMerge, MarkBlocked, MergeFailure, RecordHeadTest, RecordMerge,
    RecordMergeFailure, RecordValidation, ReleaseClaim, ReleaseReview, ReserveTask, Resume, RetryValidation,
    SetStatus, SubmitForReview, SubmitVerdict, UnblockTask, UnproductiveExit, Verdict, WorktreeFacts,
};
use liza_core::rules::judging_settings::{failing_head, judging_settings};
use liza_core::rules::triggers::{Trigger, unseen_triggers};
use liza_core::supervise::{EndedSession, SessionEnd, after_session, planner_needs_human};
use liza_testkit::worlds::FEEDBACK;

use crate::asked::asked_for;
use crate::edits::Edit;
use crate::world::{Accepted, LONG, SHORT, Size, Tooth, World, register, sha};

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A supervisor died and a new one has proof of it.
    Restart(AgentId),
    Leave(AgentId),
    Renew(AgentId),
    Reserve(AgentId, TaskId),
    Claim(AgentId, TaskId),
    CancelReservation(AgentId, TaskId),
    /// The coder commits and submits.
    Submit(AgentId, TaskId),
    /// It submits what it submitted before.
    SubmitAgain(AgentId, TaskId),
    Block(AgentId, TaskId),
    /// A session ends without a result.
    Idle(AgentId, TaskId),
    Crash(AgentId, TaskId),
    ClaimReview(AgentId, TaskId),
    Validate(AgentId, TaskId, Outcome),
    BeginReview(AgentId, TaskId),
    ReleaseReview(AgentId, TaskId),
    Approve(AgentId, TaskId),
    Reject(AgentId, TaskId),
    Merge(AgentId, TaskId),
    MergeConflict(AgentId, TaskId),
    /// The merge is on the branch, and its record is lost.
    LoseMerge(AgentId, TaskId),
    /// The integration test fails with the task, and on the head without it.
    HoldMerge(AgentId, TaskId),
    /// The task changes protected files.
    HoldGate(AgentId, TaskId),
    HeadPasses(AgentId),
    ClearStale(AgentId),
    /// A session of an earlier registration speaks.
    LateSubmit(AgentId, TaskId),
    LateApproval(AgentId, TaskId),
    /// A planning session begins, and ends with or without a result.
    PlannerStarts,
    PlannerStops,
    PlannerUnblocks(TaskId),
    PlannerAbandons(TaskId),
    PlannerEndsGoal,
    HumanBlocks(TaskId),
    HumanUnblocks(TaskId),
    HumanApproves(TaskId),
    HumanRejects(TaskId),
    HumanReleases(TaskId),
    HumanAbandons(TaskId),
    HumanRetriesValidation(TaskId),
    HumanAcceptsGate(TaskId),
    HumanAnswers(TaskId),
    HumanResumes,
    HumanAcceptsIntegration,
    /// A person edits the file.
    Edit(TaskId, Edit),
    /// Live leases come into their grace.
    Long,
    /// Leases in their grace end.
    Short,
}

/// The outcome of a validation; the commands themselves are not run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Green,
    Red,
    Held,
    /// Of an older commit.
    Stale,
}

impl Action {
    /// Everything that could happen; most of it is refused at any moment.
    pub fn all(world: &World) -> Vec<Action> {
        let asked = LazyCell::new(|| asked_for(world));
        Self::all_if(world, &|action| action.is_asked(&asked))
    }

    /// The same, where the caller knows what people are asked for.
    pub(crate) fn all_if(world: &World, is_asked: &dyn Fn(&Action) -> bool) -> Vec<Action> {
        let size = world.size;
        let mut all = vec![
            Action::HumanResumes,
            Action::HumanAcceptsIntegration,
            Action::PlannerStarts,
            Action::PlannerStops,
            Action::PlannerEndsGoal,
        ];
        if size.expiry {
            all.push(Action::Long);
        }
        // Where the grace is the end, it has no end of its own.
        if size.expiry && size.grace() > 0 {
            all.push(Action::Short);
        }
        for agent in size.coder_ids().chain(size.reviewer_ids()) {
            all.extend([Action::Restart(agent), Action::Leave(agent), Action::Renew(agent)]);
        }
        for reviewer in size.reviewer_ids() {
            all.extend([Action::HeadPasses(reviewer), Action::ClearStale(reviewer)]);
        }
        for task in size.task_ids() {
            all.extend(size.coder_ids().flat_map(|coder| of_coder(coder, &task)));
            all.extend(size.reviewer_ids().flat_map(|reviewer| of_reviewer(reviewer, &task, size)));
            if size.edits && !world.is_edited {
                all.extend(Edit::ALL.map(|edit| Action::Edit(task.clone(), edit)));
            }
            all.extend(of_people(&task, size.validation));
        }
        if !size.people {
            all.retain(|one| !one.is_humans() || matches!(one, Action::Edit(..)) || is_asked(one));
        }
        all
    }

    /// True if NEEDS YOU names its command.
    pub fn is_asked(&self, asked: &[String]) -> bool {
        asked.iter().any(|command| command.contains(self.verb()))
    }

    /// True for the end of a session that had no result.
    pub fn is_vain(&self) -> bool {
        matches!(self, Action::Idle(..) | Action::Crash(..) | Action::PlannerStops)
    }

    /// Its name and what it is about, for people.
    pub fn words(&self) -> String {
        let mut words = String::new();
        for letter in format!("{self:?}").chars() {
            match letter {
                '(' => words.push(' '),
                '"' | ',' | ')' => {}
                _ if letter.is_uppercase() && words.ends_with(char::is_lowercase) => {
                    words.extend([' ', letter.to_ascii_lowercase()]);
                }
                _ => words.push(letter.to_ascii_lowercase()),
            }
        }
        words
    }

    pub fn is_humans(&self) -> bool {
        matches!(
            self,
            Action::HumanBlocks(_)
                | Action::HumanUnblocks(_)
                | Action::HumanApproves(_)
                | Action::HumanRejects(_)
                | Action::HumanReleases(_)
                | Action::HumanAbandons(_)
                | Action::HumanRetriesValidation(_)
                | Action::HumanAcceptsGate(_)
                | Action::HumanAnswers(_)
                | Action::HumanResumes
                | Action::HumanAcceptsIntegration
                | Action::Edit(..)
        )
    }

    /// True for a command of an agent that has been replaced.
    pub fn is_late(&self) -> bool {
        matches!(self, Action::LateSubmit(..) | Action::LateApproval(..))
    }

    /// The command by which a person does it.
    pub fn verb(&self) -> &'static str {
        match self {
            Action::HumanBlocks(_) => "liza mark-blocked",
            Action::HumanUnblocks(_) => "liza unblock-task",
            Action::HumanApproves(_) | Action::HumanRejects(_) => "liza submit-verdict",
            Action::HumanReleases(_) => "liza release-claim",
            Action::HumanAbandons(_) => "liza abandon-task",
            Action::HumanRetriesValidation(_) => "liza retry-validation",
            Action::HumanAcceptsGate(_) => "liza accept-gate",
            Action::HumanAnswers(_) => "liza answer",
            Action::HumanResumes => "liza resume",
            Action::HumanAcceptsIntegration => "liza accept-integration",
            // Nobody is ever asked to do the rest.
            _ => "nothing",
        }
    }
}

fn of_coder(coder: AgentId, task: &TaskId) -> Vec<Action> {
    let kinds: [fn(AgentId, TaskId) -> Action; 9] = [
        Action::Reserve,
        Action::Claim,
        Action::CancelReservation,
        Action::Submit,
        Action::SubmitAgain,
        Action::Block,
        Action::Idle,
        Action::Crash,
        Action::LateSubmit,
    ];
    kinds.map(|kind| kind(coder, task.clone())).to_vec()
}

fn of_reviewer(reviewer: AgentId, task: &TaskId, size: Size) -> Vec<Action> {
    let kinds: [fn(AgentId, TaskId) -> Action; 10] = [
        Action::ClaimReview,
        Action::ReleaseReview,
        Action::Approve,
        Action::Reject,
        Action::Merge,
        Action::MergeConflict,
        Action::HoldMerge,
        Action::Idle,
        Action::Crash,
        Action::LateApproval,
    ];
    let mut all = kinds.map(|kind| kind(reviewer, task.clone())).to_vec();
    if size.loses_records {
        all.push(Action::LoseMerge(reviewer, task.clone()));
    }
    if size.validation {
        let outcomes = [Outcome::Green, Outcome::Red, Outcome::Held, Outcome::Stale];
        all.extend(outcomes.map(|outcome| Action::Validate(reviewer, task.clone(), outcome)));
        all.extend([Action::BeginReview(reviewer, task.clone()), Action::HoldGate(reviewer, task.clone())]);
    }
    all
}

fn of_people(task: &TaskId, validation: bool) -> Vec<Action> {
    let kinds: [fn(TaskId) -> Action; 9] = [
        Action::HumanAnswers,
        Action::PlannerUnblocks,
        Action::PlannerAbandons,
        Action::HumanBlocks,
        Action::HumanUnblocks,
        Action::HumanApproves,
        Action::HumanRejects,
        Action::HumanReleases,
        Action::HumanAbandons,
    ];
    let mut all = kinds.map(|kind| kind(task.clone())).to_vec();
    if validation {
        all.extend([Action::HumanRetriesValidation(task.clone()), Action::HumanAcceptsGate(task.clone())]);
    }
    all
}

/// Carries it out on a copy; `None` if it was refused or changed nothing.
pub fn step(world: &World, action: &Action) -> Result<World, Refusal> {
    let mut next = world.clone();
    let done = next.take(action)?;
    match (done.is_empty, done.answer) {
        (false, _) => Ok(next),
        (true, Err(refusal)) => Err(refusal),
        (true, Ok(())) => Err(Refusal::NothingToDo { what: "change" }),
    }
}

const NOTHING: Refusal = Refusal::NothingToDo { what: "change" };
const DONE: Result<Accepted, Refusal> = Ok(Accepted { is_empty: false, answer: Ok(()) });

impl World {
    fn submitted(&self, task: &TaskId) -> Result<Sha, Refusal> {
        self.state.board.body(task).ok().and_then(|body| body.record().review_commit.clone()).ok_or(NOTHING)
    }

    fn take(&mut self, action: &Action) -> Result<Accepted, Refusal> {
        match action {
            Action::Restart(agent) => {
                let dead = self
                    .state
                    .board
                    .agents
                    .ready()
                    .and_then(|all| all.get(agent))
                    .and_then(|entry| entry.generation);
                self.run(Actor::Operator(*agent), register(*agent, dead))
            }
            Action::Leave(agent) => self.run(Actor::Human, Command::from(Deregister::any(*agent))),
            Action::Renew(agent) => self.renew(*agent),
            Action::HumanResumes => {
                let is_stopped = failing_head(&self.state.board).is_some();
                let needs = planner_needs_human(&self.state, self.now);
                // A person resumes what has stopped.
                if !is_stopped && !needs {
                    return Err(NOTHING);
                }
                self.run(Actor::Human, Command::from(Resume { decision: None, note: None }))
            }
            Action::HumanAcceptsIntegration => self.accept_integration(),
            Action::Edit(task, edit) => {
                edit.write(self, task);
                self.is_edited = true;
                DONE
            }
            Action::Long | Action::Short => self.pass(*action == Action::Short),
            Action::PlannerStarts | Action::PlannerStops | Action::PlannerEndsGoal => self.plan(action),
            Action::HeadPasses(reviewer) => {
                let (head, failure) = (sha(self.integration), None);
                let last = self.state.board.goal.ready().and_then(|goal| goal.head_test.as_ref());
                // Supervisors test a head again only if it failed.
                if !last.is_some_and(|test| test.head == head && test.failure.is_some()) {
                    return Err(NOTHING);
                }
                self.run(
                    self.supervisor(*reviewer),
                    Command::from(RecordHeadTest { head, failure, settings: self.settings() }),
                )
            }
            Action::ClearStale(reviewer) => {
                self.run(self.supervisor(*reviewer), Command::from(ClearStaleReviewClaims))
            }
            Action::Reserve(agent, task)
            | Action::Claim(agent, task)
            | Action::CancelReservation(agent, task)
            | Action::Submit(agent, task)
            | Action::SubmitAgain(agent, task)
            | Action::Block(agent, task)
            | Action::LateSubmit(agent, task) => self.code(action, *agent, task),
            Action::Idle(agent, task) => self.exit(*agent, task, UnproductiveExit::Idle),
            Action::Crash(agent, task) => self.exit(*agent, task, UnproductiveExit::Crash),
            Action::ClaimReview(agent, task)
            | Action::Validate(agent, task, _)
            | Action::BeginReview(agent, task)
            | Action::ReleaseReview(agent, task)
            | Action::Approve(agent, task)
            | Action::Reject(agent, task)
            | Action::LateApproval(agent, task) => self.review(action, *agent, task),
            Action::Merge(agent, task)
            | Action::MergeConflict(agent, task)
            | Action::LoseMerge(agent, task)
            | Action::HoldMerge(agent, task)
            | Action::HoldGate(agent, task) => self.merge(action, *agent, task),
            Action::PlannerUnblocks(task)
            | Action::PlannerAbandons(task)
            | Action::HumanBlocks(task)
            | Action::HumanUnblocks(task)
            | Action::HumanApproves(task)
            | Action::HumanRejects(task)
            | Action::HumanReleases(task)
            | Action::HumanAbandons(task)
            | Action::HumanAnswers(task)
            | Action::HumanAcceptsGate(task)
            | Action::HumanRetriesValidation(task) => self.decide(action, task),
        }
    }

    fn renew(&mut self, agent: AgentId) -> Result<Accepted, Refusal> {
        let agents = vec![(agent, Some(self.generation(agent)))];
        self.run(self.supervisor(agent), Command::from(Heartbeat { agents, length: None }))
    }

    /// Time passes. The planner's supervisor is always alive.
    fn pass(&mut self, is_short: bool) -> Result<Accepted, Refusal> {
        let leases = self.leases();
        let in_grace = |lease: &Timestamp| *lease < self.now;
        let is_over = |lease: &Timestamp| self.now.since(*lease) > SHORT && *lease < self.now;
        let is_possible = match is_short {
            true => leases.iter().any(|lease| in_grace(lease) && !is_over(lease)),
            false => leases.iter().any(|lease| *lease > self.now),
        };
        if !is_possible {
            return Err(NOTHING);
        }
        // A supervisor that lives renews its leases more often than the short step lasts. The planner's always lives.
        let agents = self.state.board.agents.ready().into_iter().flatten();
        let live =
            |entry: &AgentRecord| is_short && entry.lease_expires.is_some_and(|lease| lease > self.now);
        let renewed: Vec<AgentId> = agents
            .filter(|(id, entry)| **id == self.size.planner() || live(entry))
            .map(|(id, _)| *id)
            .collect();
        self.now = self.now + if is_short { SHORT } else { LONG };
        for agent in renewed {
            let _ = self.renew(agent);
        }
        DONE
    }

    /// The leases of agents, claims, reviews and reservations, without the planner's.
    fn leases(&self) -> Vec<Timestamp> {
        let board = &self.state.board;
        let agents = board.agents.ready().into_iter().flatten();
        let agents =
            agents.filter(|(id, _)| **id != self.size.planner()).filter_map(|(_, entry)| entry.lease_expires);
        let records = self.state.bodies().map(|(_, body)| body.record());
        let tasks = records.flat_map(|record| {
            let reserved = record.reservation.as_ref().map(|reservation| reservation.expires);
            [record.lease_expires, record.review_lease_expires, reserved].into_iter().flatten()
        });
        agents.chain(tasks).collect()
    }

    fn code(&mut self, action: &Action, coder: AgentId, task: &TaskId) -> Result<Accepted, Refusal> {
        let supervisor = self.supervisor(coder);
        let id = task.clone();
        match action {
            Action::Reserve(..) => {
                let head = sha(self.integration);
                self.run(supervisor, Command::from(ReserveTask { task: id, coder, head }))
            }
            Action::Claim(..) => self.run(supervisor, Command::from(ClaimTask { task: id, coder })),
            Action::CancelReservation(..) => {
                self.run(supervisor, Command::from(CancelReservation { task: id, coder }))
            }
            Action::Block(..) => self.run(self.session(coder), block(id)),
            _ => {
                if *action != Action::SubmitAgain(coder, id.clone())
                    && self.state.board.status(task) == Some(Status::Claimed)
                {
                    self.commit(task);
                }
                let actor = if action.is_late() { self.late(coder) } else { self.session(coder) };
                let commit = self.head(task);
                let (facts, authors) = (Some(WorktreeFacts::clean(commit.clone())), Vec::new());
                self.run(actor, Command::from(SubmitForReview { task: id, commit, facts, authors }))
            }
        }
    }

    fn exit(&mut self, agent: AgentId, task: &TaskId, exit: UnproductiveExit) -> Result<Accepted, Refusal> {
        // A supervisor counts the end of a session that it has started.
        let entry = self.state.board.agents.ready().and_then(|all| all.get(&agent)).ok_or(NOTHING)?;
        let phase = self.state.board.body(task).ok().and_then(|body| body.record().review_phase);
        let has_begun = agent.role() != Role::CodeReviewer || phase != Some(ReviewPhase::Validation);
        if entry.current_task.as_ref() != Some(task) || !has_begun {
            return Err(NOTHING);
        }
        let count = CountExit {
            task: task.clone(),
            agent,
            exit,
            last_words: None,
            pause: liza_core::model::Seconds(0),
        };
        self.run(self.supervisor(agent), Command::from(count))
    }

    fn review(&mut self, action: &Action, reviewer: AgentId, task: &TaskId) -> Result<Accepted, Refusal> {
        let supervisor = self.supervisor(reviewer);
        let id = task.clone();
        match action {
            Action::ClaimReview(..) => {
                let (integration, gate) =
                    (Some(sha(self.integration)), self.size.validation.then(|| self.gate()));
                let claim = ClaimReview { task: id, reviewer, setup_failure: None, integration, gate };
                self.run(supervisor, Command::from(claim))
            }
            Action::Validate(_, _, outcome) => {
                let validation = self.validation(task, *outcome)?;
                self.run(supervisor, Command::from(RecordValidation { task: id, reviewer, validation }))
            }
            Action::BeginReview(..) => {
                self.run(supervisor, Command::from(BeginReview { task: id, reviewer, gate: self.gate() }))
            }
            Action::ReleaseReview(..) => {
                self.run(supervisor, Command::from(ReleaseReview { task: id, reviewer }))
            }
            _ => {
                let actor = if action.is_late() { self.late(reviewer) } else { self.session(reviewer) };
                let verdict = match action {
                    Action::Reject(..) => Verdict::Rejected(FEEDBACK.to_owned()),
                    _ => Verdict::Approved(Some("cargo test: passed".to_owned())),
                };
                let facts = self.submitted(task).ok().map(WorktreeFacts::clean);
                let command = SubmitVerdict { task: id, verdict, facts, commit: None, moved: None };
                self.run(actor, Command::from(command))
            }
        }
    }

    fn validation(&self, task: &TaskId, outcome: Outcome) -> Result<Validation, Refusal> {
        let result = match outcome {
            Outcome::Green | Outcome::Stale => ValidationResult::Green,
            Outcome::Red => ValidationResult::Red,
            Outcome::Held => ValidationResult::Held,
        };
        let commit = match outcome {
            Outcome::Stale => sha(9_999_999),
            Outcome::Green | Outcome::Red | Outcome::Held => self.submitted(task)?,
        };
        let is_green = result == ValidationResult::Green;
        Ok(Validation {
            commit,
            result,
            commands: vec!["cargo test".to_owned()],
            gate: self.gate(),
            tree: None,
            time: self.now,
            command: (!is_green).then(|| "cargo test".to_owned()),
            failure: (!is_green).then(failure),
            flaky: Vec::new(),
            head: (result == ValidationResult::Held).then(|| sha(self.integration)),
            settings: Vec::new(),
            receipt: None,
        })
    }

    fn settings(&self) -> String {
        judging_settings(self.state.board.config().unwrap())
    }

    fn merge(&mut self, action: &Action, reviewer: AgentId, task: &TaskId) -> Result<Accepted, Refusal> {
        let supervisor = self.supervisor(reviewer);
        let (id, commit) = (task.clone(), self.submitted(task)?);
        if self.record_found(supervisor)? == Some(id.clone()) {
            return DONE;
        }
        let begun = self.run(supervisor, Command::from(BeginMerge { task: id.clone() }))?;
        begun.answer?;
        match action {
            Action::Merge(..) => {
                let (old, new) = (self.integration, self.commits + 1);
                let (merge_commit, old_head) = (sha(new), Some(sha(old)));
                let command = RecordMerge { task: id, commit, merge_commit, drift_commits: 0, old_head };
                let done = self.run(supervisor, Command::from(command))?;
                (self.commits, self.integration) = (new, new);
                Ok(done)
            }
            Action::LoseMerge(..) => {
                let (old, new) = (self.integration, self.commits + 1);
                (self.commits, self.integration) = (new, new);
                self.unrecorded = Some((BranchMerge { task: id, commit, merge_commit: sha(new) }, old));
                DONE
            }
            Action::HoldMerge(..) => {
                let head = sha(self.integration);
                let tested = RecordHeadTest {
                    head: head.clone(),
                    failure: Some(failure()),
                    settings: self.settings(),
                };
                let _ = self.run(supervisor, Command::from(tested));
                let cause = HoldCause::HeadFails { head };
                self.run(supervisor, Command::from(HoldMerge { task: id, commit, cause }))
            }
            Action::HoldGate(..) => {
                let record = self.state.board.body(task).map_err(|_| NOTHING)?.record();
                let version = self.state.board.goal.ready().map_or(0, |goal| goal.gate_version);
                let is_accepted = |known: &GateChange| known.accepted.is_some() && known.commit == commit;
                if record.gate_change.as_ref().is_some_and(is_accepted) {
                    return Err(NOTHING);
                }
                let cause = HoldCause::Gate { version, change: gate_change(commit.clone()) };
                self.run(supervisor, Command::from(HoldMerge { task: id, commit, cause }))
            }
            _ => {
                let failure = MergeFailure::Conflict { files: vec!["x".to_owned()] };
                self.run(supervisor, Command::from(RecordMergeFailure { task: id, commit, failure }))
            }
        }
    }

    /// A supervisor records what it finds on the branch before it merges, unless a person has to settle it.
    fn record_found(&mut self, supervisor: Actor) -> Result<Option<TaskId>, Refusal> {
        let found = self.unrecorded.clone().filter(|_| self.tooth != Some(Tooth::ForgetsLostMerge));
        let Some((BranchMerge { task, commit, merge_commit }, old)) = found else { return Ok(None) };
        let (id, old_head) = (task.clone(), Some(sha(old)));
        let command = RecordMerge { task, commit, merge_commit, drift_commits: 0, old_head };
        self.run(supervisor, Command::from(command))?.answer?;
        self.unrecorded = None;
        Ok(Some(id))
    }

    fn accept_integration(&mut self) -> Result<Accepted, Refusal> {
        let Some((found, _)) = self.unrecorded.take() else { return Err(NOTHING) };
        let (head, detail) = (found.merge_commit.clone(), "accepted".to_owned());
        self.run(Actor::Human, Command::from(AcceptIntegration { head, detail, merged: vec![found] }))
    }

    fn plan(&mut self, action: &Action) -> Result<Accepted, Refusal> {
        let planner = self.size.planner();
        let supervisor = self.supervisor(planner);
        if self.tooth == Some(Tooth::AsksNobody) {
            return Err(NOTHING);
        }
        match (action, self.planning.clone()) {
            (Action::PlannerStarts, None) => {
                let triggers = unseen_triggers(&self.state, self.now);
                if triggers.is_empty() || planner_needs_human(&self.state, self.now) {
                    return Err(NOTHING);
                }
                let began_at = self.state.board.revision;
                let done = self.run(supervisor, Command::from(SetStatus::planning(planner, &triggers)))?;
                self.planning = Some((began_at, triggers));
                Ok(done)
            }
            (Action::PlannerEndsGoal, Some(_)) => {
                self.run(self.session(planner), Command::from(CompleteGoal))
            }
            (Action::PlannerStops, Some((began_at, triggers))) => {
                self.planning = None;
                let ended = ended_planning(planner, began_at, triggers);
                for command in after_session(&self.state, &ended, SessionEnd::Code(0)).record {
                    let _ = self.run(supervisor, command);
                }
                let waits = SetStatus::new(planner, AgentStatus::Waiting);
                let _ = self.run(supervisor, Command::from(waits));
                DONE
            }
            _ => Err(NOTHING),
        }
    }

    fn decide(&mut self, action: &Action, task: &TaskId) -> Result<Accepted, Refusal> {
        let id = task.clone();
        let planner = self.session(self.size.planner());
        let unblock = |reset_cycles, assessment: Option<String>| {
            let (same_coder, keep_worktree) = (false, false);
            Command::from(UnblockTask {
                task: task.clone(),
                reset_cycles,
                same_coder,
                keep_worktree,
                assessment,
            })
        };
        let because = || "not worth it".to_owned();
        match action {
            Action::PlannerUnblocks(_) | Action::PlannerAbandons(_) if self.planning.is_none() => {
                Err(NOTHING)
            }
            Action::PlannerUnblocks(_) => self.run(planner, unblock(true, Some("it can be done".to_owned()))),
            Action::PlannerAbandons(_) => {
                self.run(planner, Command::from(AbandonTask { task: id, reason: because() }))
            }
            Action::HumanBlocks(_) => self.run(Actor::Human, block(id)),
            Action::HumanUnblocks(_) => self.run(Actor::Human, unblock(true, Some("go on".to_owned()))),
            Action::HumanApproves(_) | Action::HumanRejects(_) => {
                let verdict = match action {
                    Action::HumanRejects(_) => Verdict::Rejected("Blockers: 1".to_owned()),
                    _ => Verdict::Approved(None),
                };
                let facts = self.submitted(task).ok().map(WorktreeFacts::clean);
                let command = SubmitVerdict { task: id, verdict, facts, commit: None, moved: None };
                self.run(Actor::Human, Command::from(command))
            }
            Action::HumanReleases(_) => {
                let command = ReleaseClaim { task: id, role: ClaimRole::Both, force: true, reason: None };
                self.run(Actor::Human, Command::from(command))
            }
            Action::HumanAnswers(_) => {
                let text = "this one".to_owned();
                self.run(Actor::Human, Command::from(Answer { task: id, text }))
            }
            Action::HumanRetriesValidation(_) => {
                self.run(Actor::Human, Command::from(RetryValidation { task: id }))
            }
            Action::HumanAcceptsGate(_) => {
                self.run(Actor::Human, Command::from(AcceptGate { task: id, old_fails: false }))
            }
            _ => self.run(Actor::Human, Command::from(AbandonTask { task: id, reason: because() })),
        }
    }
}

fn ended_planning(agent: AgentId, began_at: Revision, triggers: Vec<Trigger>) -> EndedSession {
    EndedSession { triggers, ..EndedSession::new(agent, None, began_at) }
}

fn gate_change(commit: Sha) -> GateChange {
    let (before, after) = ("before".to_owned(), "after".to_owned());
    GateChange { commit, before, after, files: vec!["gate.sh".to_owned()], old_failure: None, accepted: None }
}

fn failure() -> TestFailure {
    TestFailure { what: "failed".to_owned(), output: "log".to_owned(), last_lines: Vec::new() }
}

fn block(task: TaskId) -> Command {
    let (reason, questions) = ("the spec is silent".to_owned(), vec!["Which?".to_owned()]);
    Command::from(MarkBlocked { task, reason, questions, attempted: vec!["read the spec".to_owned()] })
}
