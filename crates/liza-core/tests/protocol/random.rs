//! Random command sequences of a team: several agents, valid and invalid commands, jumps in time, crashes.
//!
//! After every step all invariants hold; at the end every task can still be completed.

use std::collections::{BTreeMap, BTreeSet};

use liza_core::model::{
    Actor, AgentId, Change, Effect, Generation, Loaded, Refusal, RefusalClass, Role, Seconds, Sha, State,
    Status, StopFiles, TaskId, Timestamp, Worktree,
};
use liza_core::protocol::{
    AbandonTask, AddTask, BeginMerge, ClaimReview, ClaimRole, ClaimTask, ClearStaleReviewClaims, Command,
    CountExit, Decided, Deregister, EditTask, Finalize, HandoffNotes, Heartbeat, MarkBlocked, MergeFailure,
    NewTask, RecordMerge, RecordMergeFailure, Register, ReleaseClaim, Reply, Request, ReserveTask,
    SubmitForReview, SubmitVerdict, SupersedeTask, TaskEdit, UnblockTask, UnproductiveExit, Verdict,
    WorktreeFacts, WriteHandoff, apply,
};
use liza_core::rules::invariants::{DiskFacts, introduced, validate};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::fixture::{agent, empty_state, task};

const TASKS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const AGENTS: [&str; 6] =
    ["planner-1", "coder-1", "coder-2", "coder-3", "code-reviewer-1", "code-reviewer-2"];

fn number_sha(number: u64) -> Sha {
    format!("{number:040x}").parse().unwrap()
}

/// A team, its blackboard, its clock, and the part of git that the rules need.
struct World {
    state: State,
    now: Timestamp,
    worktrees: BTreeMap<TaskId, u64>,
    commits: u64,
    integration: u64,
    approved: BTreeSet<(TaskId, Sha)>,
    merged: BTreeSet<TaskId>,
    written: usize,
}

impl DiskFacts for World {
    fn worktree_exists(&self, worktree: &Worktree) -> bool {
        self.worktrees.keys().any(|id| Worktree::of(id) == *worktree)
    }

    fn spec_exists(&self, _: &str) -> bool {
        true
    }
}

impl World {
    fn new() -> Self {
        let mut state = empty_state();
        state.board.agents = Loaded::Ready(indexmap::IndexMap::new());
        let now = crate::fixture::now();
        Self {
            state,
            now,
            worktrees: BTreeMap::new(),
            commits: 1,
            integration: 1,
            approved: BTreeSet::new(),
            merged: BTreeSet::new(),
            written: 0,
        }
    }

    fn generation(&self, id: AgentId) -> Generation {
        let agents = self.state.board.agents.ready().unwrap();
        agents.get(&id).and_then(|entry| entry.generation).unwrap_or_default()
    }

    fn supervisor(&self, id: AgentId) -> Actor {
        Actor::Supervisor(id, self.generation(id))
    }

    fn session(&self, id: AgentId) -> Actor {
        Actor::Agent(id, self.generation(id))
    }

    /// Runs a command, checks everything that must hold, and carries out its effects.
    fn run(&mut self, actor: Actor, command: Command) -> Result<(), Refusal> {
        let request =
            Request { actor, now: self.now, stop_files: StopFiles::default(), if_revision: None, command };
        let decided = apply(&self.state.board, &request)?;
        self.check_scope(&request, &decided);
        let worktrees = self.worktrees.clone();
        self.prepare(&decided);
        let Decided { change, answer } = decided;
        let new = introduced(&self.state.board, &change, self, self.now);
        if !new.is_empty() {
            // A dependency cycle or an unknown dependency: the store refuses the write, so nothing happened.
            assert!(is_about_dependencies(&request.command), "{:?} made {new:?}", request.command);
            self.worktrees = worktrees;
            return Err(Refusal::NothingToDo { what: "write: the invariants forbid it" });
        }
        self.check_change(&request, &change);
        self.state.apply(&change);
        self.written += 1;
        self.clean_up(&change);
        self.check_board(&request);
        answer.map(drop)
    }

    /// The board that the store would load for this command has the same outcome.
    fn check_scope(&self, request: &Request<Command>, decided: &Decided<Reply>) {
        let mut lean = self.state.board.clone();
        let bodies = request.bodies(&self.state.board);
        for (id, slot) in &mut lean.tasks {
            if !bodies.contains(id) {
                slot.body = None;
            }
        }
        if let Some(only) = request.summaries(&lean) {
            lean.tasks.retain(|id, _| only.contains(id));
        }
        assert_eq!(apply(&lean, request).as_ref(), Ok(decided), "{:?}", request.command);
    }

    /// Worktrees that are created before the write, for the second step of a claim.
    fn prepare(&mut self, decided: &Decided<Reply>) {
        if let Ok(Reply::ReserveTask(reserved)) = &decided.answer {
            let head = u64::from_str_radix(reserved.base_commit.as_str(), 16).unwrap_or(1);
            self.worktrees.entry(reserved.task.task.clone()).or_insert(head);
        }
    }

    fn clean_up(&mut self, change: &Change) {
        for effect in &change.effects {
            if let Effect::RemoveWorktree(task) = effect {
                self.worktrees.remove(task);
            }
        }
    }

    /// History only grows, terminal tasks stay, every changed task has the new revision.
    fn check_change(&mut self, request: &Request<Command>, change: &Change) {
        assert_eq!(change.revision, self.state.board.revision.next());
        for (id, record) in &change.tasks {
            let Ok(old) = self.state.board.body(id) else { continue };
            let past = old.record().history.clone().unwrap_or_default();
            let present = record.history.clone().unwrap_or_default();
            assert!(present.starts_with(&past), "{:?} rewrote the history of {id}", request.command);
            let (from, to) = (old.record().status.unwrap(), record.status.unwrap());
            assert!(!from.is_terminal() || from == to, "{id}: {from} → {to} by {:?}", request.command);
            if from != to {
                assert!(present.len() > past.len(), "{id}: {from} → {to} without an event");
                assert!(change.log.is_some(), "{id}: {from} → {to} without a log entry");
            }
            if to == Status::Approved && from != to {
                self.approved.insert((id.clone(), record.review_commit.clone().unwrap()));
            }
            if to == Status::Merged && from != to {
                let commit = record.review_commit.clone().unwrap();
                assert!(self.approved.contains(&(id.clone(), commit)), "{id} merged without approval");
                assert!(self.merged.insert(id.clone()), "{id} merged twice");
            }
        }
    }

    fn check_board(&self, request: &Request<Command>) {
        let wrong: Vec<String> = validate(&self.state, self, self.now)
            .iter()
            .map(ToString::to_string)
            // An expired lease is an alarm, not the result of a command.
            .filter(|text| !text.contains("lease ended"))
            .collect();
        assert_eq!(wrong, Vec::<String>::new(), "after {:?}", request.command);
        for (id, entry) in self.state.board.agents.ready().unwrap() {
            let Some(held) = &entry.current_task else { continue };
            let task = self.state.board.task(held).unwrap();
            assert!(
                task.status.is_held_by(*id),
                "{id} names {held} as its task, after {:?}",
                request.command
            );
        }
    }

    fn facts(&self, id: &TaskId) -> WorktreeFacts {
        let head = self.worktrees.get(id).copied().unwrap_or(0);
        WorktreeFacts {
            head: number_sha(head),
            on_task_branch: true,
            dirty: Vec::new(),
            changed_tracked: Vec::new(),
            has_base: true,
        }
    }

    /// The coder commits in its worktree.
    fn commit(&mut self, id: &TaskId) {
        self.commits += 1;
        let commit = self.commits;
        if let Some(head) = self.worktrees.get_mut(id) {
            *head = commit;
        }
    }

    fn add(&mut self, id: &TaskId, draft: bool, depends_on: Vec<TaskId>) -> Result<(), Refusal> {
        let text = |text: &str| Some(text.to_owned());
        let new = NewTask {
            description: "do it".to_owned(),
            spec_ref: text("specs/x.md"),
            done_when: text("done"),
            scope: text("all"),
            depends_on,
            draft,
            ..NewTask::default()
        };
        self.run(Actor::Human, Command::from(AddTask { task: id.clone(), new }))
    }

    fn register(&mut self, id: AgentId) -> Result<(), Refusal> {
        self.run(
            Actor::Operator(id),
            Command::from(Register {
                agent: id,
                terminal: String::new(),
                machine: None,
                proven_dead: None,
                generation: None,
            }),
        )
    }

    fn claim(&mut self, id: &TaskId, coder: AgentId) -> Result<(), Refusal> {
        let head = number_sha(self.integration);
        self.run(self.supervisor(coder), Command::from(ReserveTask { task: id.clone(), coder, head }))?;
        self.run(self.supervisor(coder), Command::from(ClaimTask { task: id.clone(), coder }))
    }

    fn submit(&mut self, id: &TaskId, coder: AgentId) -> Result<(), Refusal> {
        if self.state.board.status(id) == Some(Status::Claimed) {
            self.commit(id);
        }
        let facts = self.facts(id);
        let commit = facts.head.clone();
        self.run(
            self.session(coder),
            Command::from(SubmitForReview { task: id.clone(), commit, facts: Some(facts) }),
        )
    }

    fn claim_review(&mut self, id: &TaskId, reviewer: AgentId) -> Result<(), Refusal> {
        let head = self.worktrees.get(id).map(|head| number_sha(*head));
        self.run(self.supervisor(reviewer), Command::from(ClaimReview { task: id.clone(), reviewer, head }))
    }

    fn verdict(&mut self, id: &TaskId, reviewer: AgentId, good: bool) -> Result<(), Refusal> {
        let reason = "Blockers: 1\nPrior Feedback Status:\n- STILL PRESENT: all of it";
        let verdict = if good {
            Verdict::Approved(Some("cargo test: passed".into()))
        } else {
            Verdict::Rejected(reason.to_owned())
        };
        let facts = self.facts(id);
        self.run(
            self.session(reviewer),
            Command::from(SubmitVerdict { task: id.clone(), verdict, facts: Some(facts) }),
        )
    }

    fn merge(&mut self, id: &TaskId, reviewer: AgentId, clean: bool) -> Result<(), Refusal> {
        self.run(self.supervisor(reviewer), Command::from(BeginMerge { task: id.clone() }))?;
        let commit = self.state.board.body(id).unwrap().record().review_commit.clone().unwrap();
        let command = if clean {
            self.commits += 1;
            self.integration = self.commits;
            let merge_commit = number_sha(self.integration);
            Command::from(RecordMerge {
                task: id.clone(),
                commit,
                merge_commit,
                drift_commits: 0,
                old_head: None,
            })
        } else {
            let failure = MergeFailure::Conflict { files: vec!["x".to_owned()] };
            Command::from(RecordMergeFailure { task: id.clone(), commit, failure })
        };
        self.run(self.supervisor(reviewer), command)
    }
}

fn is_about_dependencies(command: &Command) -> bool {
    matches!(command, Command::EditTask(_) | Command::SupersedeTask(_) | Command::AddTask(_))
}

/// One random step: action, agent, task, time since the last step.
#[derive(Debug, Clone)]
struct Step {
    what: u8,
    who: u8,
    which: u8,
    other: u8,
    later: u16,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let later = prop_oneof![12 => 0u16..20, 2 => 20u16..400, 1 => 400u16..4000];
    let step = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), later);
    let step = step.prop_map(|(what, who, which, other, later)| Step { what, who, which, other, later });
    proptest::collection::vec(step, 200..400)
}

fn pick<'a>(names: &[&'a str], number: u8) -> &'a str {
    names[usize::from(number) % names.len()]
}

/// Mostly an agent that can act, sometimes any agent.
fn pair_for(world: &World, id: &TaskId, step: &Step) -> (AgentId, AgentId) {
    let head = world.state.board.summary(id).filter(|_| !step.other.is_multiple_of(4));
    let coder = head.and_then(|head| head.assigned_to);
    let reviewer = head.and_then(|head| head.reviewing_by.or(head.approved_by));
    let any = |role, of| AgentId::new(role, u32::from(step.who % of) + 1);
    (coder.unwrap_or(any(Role::Coder, 3)), reviewer.unwrap_or(any(Role::CodeReviewer, 2)))
}

/// Does the step. Many steps are invalid at that moment, on purpose.
fn take(world: &mut World, step: &Step) {
    world.now = world.now + Seconds(u64::from(step.later));
    let id = task(pick(&TASKS, step.which));
    let other = task(pick(&TASKS, step.other));
    let who = agent(pick(&AGENTS, step.who));
    let (coder, reviewer) = pair_for(world, &id, step);
    let planner = world.session(agent("planner-1"));
    let odd = step.other % 2 == 1;
    let text = || "because".to_owned();
    let outcome = match step.what % 40 {
        0 => world.add(&id, odd, if step.other.is_multiple_of(3) { vec![other] } else { Vec::new() }),
        1 => world.run(Actor::Human, Command::from(Finalize { tasks: Vec::new(), unchanged_since: None })),
        2 | 3 => world.register(who),
        4 => world.run(Actor::Human, Command::from(Deregister { agent: who })),
        5 | 6 => {
            let beat = Command::from(Heartbeat { agents: vec![(who, None)], length: None });
            world.run(world.supervisor(who), beat)
        }
        7..=9 => world.claim(&id, coder),
        10 | 11 => world.claim(&id, AgentId::new(Role::Coder, u32::from(step.who % 3) + 1)),
        12 => {
            let head = number_sha(world.integration);
            world.run(world.supervisor(coder), Command::from(ReserveTask { task: id, coder, head }))
        }
        13 => world.run(world.supervisor(coder), Command::from(ClaimTask { task: id, coder })),
        14..=16 => world.submit(&id, coder),
        17 | 18 | 32 => world.claim_review(&id, reviewer),
        19 | 33 | 34 => world.verdict(&id, reviewer, true),
        20 | 21 => world.verdict(&id, reviewer, false),
        22 | 23 | 35..=38 => world.merge(&id, reviewer, !step.which.is_multiple_of(4)),
        24 => {
            let (questions, attempted) = (vec!["Which?".to_owned()], Vec::new());
            let by = if odd { Actor::Human } else { world.session(coder) };
            world.run(by, Command::from(MarkBlocked { task: id, reason: text(), questions, attempted }))
        }
        25 => {
            let unblock = Command::from(UnblockTask {
                task: id,
                reset_cycles: odd,
                same_coder: step.other.is_multiple_of(3),
                keep_worktree: step.other % 3 == 1,
                assessment: Some(text()),
            });
            world.run(planner, unblock)
        }
        26 if step.other % 4 == 1 => {
            let (reason, root_cause) = (text(), text());
            let supersede =
                Command::from(SupersedeTask { task: id, by: vec![other], reason, root_cause, summary: None });
            world.run(planner, supersede)
        }
        27 if step.other.is_multiple_of(8) => {
            world.run(planner, Command::from(AbandonTask { task: id, reason: text() }))
        }
        26 | 27 => {
            let edit = TaskEdit { depends_on: Some(vec![other]), ..TaskEdit::default() };
            world.run(planner, Command::from(EditTask { task: id, edit }))
        }
        28 => world.run(
            Actor::Human,
            Command::from(ReleaseClaim { task: id, role: ClaimRole::Both, force: odd, reason: None }),
        ),
        29 => {
            let notes = HandoffNotes { summary: text(), next_action: text(), ..HandoffNotes::default() };
            let by = world.session(if odd { coder } else { reviewer });
            world.run(by, Command::from(WriteHandoff { task: Some(id), notes, dirty: Vec::new() }))
        }
        30 => {
            let exit = if odd { UnproductiveExit::Crash } else { UnproductiveExit::Idle };
            world.run(
                world.supervisor(coder),
                Command::from(CountExit { task: id, agent: coder, exit, last_words: None }),
            )
        }
        _ if odd => world.run(Actor::Human, Command::from(ClearStaleReviewClaims)),
        // The coder commits again after it has submitted.
        _ => {
            world.commit(&id);
            return;
        }
    };
    if let Err(refusal) = outcome {
        assert_ne!(refusal.code(), "not_loaded", "{step:?}");
        assert_ne!(refusal.code(), "broken_task", "{step:?}: {refusal}");
        assert!(
            refusal.class() != RefusalClass::Inconsistent || refusal.code() == "worktree_missing",
            "{refusal}"
        );
    }
}

/// Completes a task as a correct team would. It may be abandoned only if two coders failed or it has a dead
/// dependency.
fn finish(world: &mut World, id: &TaskId) {
    let (coder, reviewer) = (AgentId::new(Role::Coder, 9), AgentId::new(Role::CodeReviewer, 9));
    for _ in 0..40 {
        let Some(status) = world.state.board.status(id) else { return };
        if status.is_terminal() {
            return;
        }
        let head = world.state.board.summary(id).unwrap().clone();
        let dead = |dependency: &TaskId| {
            matches!(world.state.board.status(dependency), Some(Status::Abandoned | Status::Superseded))
        };
        let hopeless = head.failed_by.len() >= 2 || head.depends_on.iter().any(dead);
        let give_up = Command::from(AbandonTask { task: id.clone(), reason: "hopeless".to_owned() });
        let outcome = match status {
            _ if hopeless && status != Status::Claimed && world.run(Actor::Human, give_up).is_ok() => return,
            Status::Draft => world.run(
                Actor::Human,
                Command::from(Finalize { tasks: vec![id.clone()], unchanged_since: None }),
            ),
            Status::Unclaimed | Status::Rejected | Status::IntegrationFailed => world.claim(id, coder),
            Status::Claimed => world.claim(id, coder).and_then(|_| world.submit(id, coder)),
            Status::ReadyForReview => {
                world.claim_review(id, reviewer).and_then(|_| world.verdict(id, reviewer, true))
            }
            Status::Approved => world.merge(id, reviewer, true),
            Status::Blocked => {
                let unblock = Command::from(UnblockTask {
                    task: id.clone(),
                    reset_cycles: true,
                    same_coder: false,
                    keep_worktree: false,
                    assessment: Some("clearer now".to_owned()),
                });
                world.run(Actor::Human, unblock)
            }
            Status::Merged | Status::Abandoned | Status::Superseded => return,
        };
        // `recover` restores a worktree that a crash lost; here it just exists again.
        if let Err(Refusal::WorktreeMissing { .. }) = outcome {
            let commit = world.state.board.body(id).unwrap().record().review_commit.clone().unwrap();
            let head = u64::from_str_radix(commit.as_str(), 16).unwrap();
            world.worktrees.insert(id.clone(), head);
        }
    }
    panic!("{id} is wedged: {:#?}", world.state.board.body(id));
}

/// Tasks sorted so that each comes after its dependencies.
fn by_dependency(world: &World) -> Vec<TaskId> {
    let mut rest: Vec<TaskId> = world.state.board.tasks.keys().cloned().collect();
    let mut order: Vec<TaskId> = Vec::new();
    while !rest.is_empty() {
        let ready = |id: &TaskId| {
            let head = world.state.board.summary(id).unwrap();
            head.depends_on.iter().all(|dependency| order.contains(dependency))
        };
        let next = rest.iter().position(ready).expect("the dependencies go in a circle");
        order.push(rest.remove(next));
    }
    order
}

/// Runs a random sequence to its last step.
fn run_sequence(steps: &[Step]) -> World {
    let mut world = World::new();
    for name in AGENTS {
        let _ = world.register(agent(name));
    }
    for id in &TASKS[..3] {
        let _ = world.add(&task(id), false, Vec::new());
    }
    for step in steps {
        take(&mut world, step);
    }
    world
}

/// Guards against shallow sequences: together they produce every event except archiving.
///
/// Covers: TS-04
#[test]
fn every_event_happens_in_some_sequence() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for _ in 0..400 {
        let world = run_sequence(&steps().new_tree(&mut runner).unwrap().current());
        let histories = world.state.bodies().flat_map(|(_, body)| body.record().events());
        seen.extend(histories.map(|event| event.event.clone()));
    }
    let all = [
        "abandoned",
        "approved",
        "blocked",
        "claimed",
        "claimed_for_integration_fix",
        "created",
        "finalized",
        "handoff",
        "integration_failed",
        "merged",
        "ready_for_review",
        "reassigned_after_rejection",
        "reclaimed_after_expiry",
        "reclaimed_after_rejection",
        "rejected",
        "released",
        "resumed",
        "superseded",
        "unblocked",
    ];
    assert_eq!(seen, all.map(str::to_owned).into());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: TS-01, TS-04, CL-10, RV-10, IV-09, IV-16
    #[test]
    fn no_sequence_breaks_an_invariant_or_leaves_a_task_stuck(steps in steps()) {
        let mut world = run_sequence(&steps);
        prop_assert!(world.written > 20, "only {} steps did anything", world.written);

        // All agents are gone; two new ones can still finish everything.
        world.now = world.now + Seconds::hours(1);
        for id in by_dependency(&world) {
            for name in ["coder-9", "code-reviewer-9"] {
                let _ = world.register(agent(name));
                let beat = Command::from(Heartbeat { agents: vec![(agent(name), None)], length: None });
                let _ = world.run(world.supervisor(agent(name)), beat);
            }
            finish(&mut world, &id);
        }
    }
}
