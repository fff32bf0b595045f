//! Work is conserved: an agent that is free takes work that its role may take, whatever else cannot go on.
//!
//! The work that an agent may take is computed by `apply`, not by the lists that `next_step` uses. The boards are those of the random
//! sequences, with sessions under way, statuses that a person wrote into the file, merges and programs that are held.

use std::collections::{BTreeMap, BTreeSet};

use crate::quiet_team::{GOOD, Moods, Move, Session, Team, begin, teams};
use crate::random::{run_sequence, steps};
use crate::world::{World, number_sha};
use liza_core::model::BranchSteps;
use liza_core::model::{
    Actor, AgentId, Approver, ClientHold, ClientRecord, FaultKind, HeadTest, Loaded, MergeHold, Role,
    Seconds, Status, StopFiles, TaskId, TestFailure,
};
use liza_core::protocol::{
    Answer, BeginMerge, ClaimReview, Command, MarkBlocked, Operation, Request, ReserveTask, SetStatus, apply,
};
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::questions::open_questions;
use liza_core::supervise::{
    Backoffs, Situation, Step, Work, WorkKind, WorkSubject, next_step, unseen_triggers,
};
use liza_status::alarms::{AlarmKind, Observations};
use liza_status::view::{View, view};
use liza_testkit::team::{agent, task};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const PROGRAM: &str = "codex";

type Item = (WorkKind, Option<TaskId>);

/// A team at some moment, and what has failed by the environment.
struct Moment {
    world: World,
    team: Vec<AgentId>,
    running: BTreeMap<AgentId, Session>,
    foreign: bool,
    put_off: BTreeSet<Item>,
}

impl Moment {
    fn found_merges(&self) -> FoundMerges {
        let steps = BranchSteps { merges: Vec::new(), has_others: self.foreign };
        FoundMerges::new(&self.world.state.board, &steps)
    }

    fn is_accepted<C: Operation>(&self, who: AgentId, about: Option<&TaskId>, command: C) -> bool {
        let (actor, now) = (self.world.supervisor(who), self.world.now);
        let request = Request { actor, now, stop_files: StopFiles::default(), if_revision: None, command };
        match apply(&self.world.state.board, &request) {
            // A limit that is reached, or a submission that moved, changes the task as well.
            Ok(decided) => {
                decided.answer.is_ok() || about.is_some_and(|task| decided.change.tasks.contains_key(task))
            }
            Err(_) => false,
        }
    }

    fn program_is_held(&self) -> bool {
        let sprint = self.world.state.board.sprint.ready().unwrap();
        let hold = sprint.clients.get(PROGRAM).and_then(|client| client.hold.as_ref());
        hold.is_some_and(|hold| hold.until.is_none_or(|until| until > self.world.now))
    }

    /// The tasks about which the agent waits for an answer.
    fn asked(&self, who: AgentId) -> Vec<TaskId> {
        let own = open_questions(&self.world.state).into_iter().filter(|question| question.is_from(who));
        own.filter_map(|question| question.task).collect()
    }

    /// The work that the rules accept from this agent's supervisor and that nothing holds.
    fn enabled(&self, who: AgentId) -> BTreeSet<Item> {
        let (board, asked) = (&self.world.state.board, self.asked(who));
        let waits = who.role() == Role::Coder && board.held_by(who).is_some_and(|task| asked.contains(task));
        let mut found = BTreeSet::new();
        for (id, slot) in &board.tasks {
            let is_asked = waits || asked.contains(id);
            let has_dropped = slot.summary.review_dropped_by.contains(&who);
            let kinds = match who.role() {
                Role::Coder => {
                    let head = number_sha(self.world.integration);
                    let claim = ReserveTask { task: id.clone(), coder: who, head };
                    vec![(WorkKind::Code, !is_asked && self.is_accepted(who, Some(id), claim))]
                }
                Role::CodeReviewer => {
                    let (task, setup_failure) = (id.clone(), None);
                    let claim =
                        ClaimReview { task, reviewer: who, setup_failure, integration: None, gate: None };
                    let review = !is_asked && !has_dropped && self.is_accepted(who, Some(id), claim);
                    let merge = !self.foreign && self.is_accepted(who, None, BeginMerge { task: id.clone() });
                    vec![(WorkKind::Review, review), (WorkKind::Merge, merge)]
                }
                Role::Planner => Vec::new(),
            };
            found.extend(kinds.into_iter().filter(|(_, is)| *is).map(|(kind, _)| (kind, Some(id.clone()))));
        }
        let triggers = unseen_triggers(&self.world.state, self.world.now);
        if who.role() == Role::Planner
            && !triggers.is_empty()
            && !self.needs(AlarmKind::PlannerStopped)
            && self.is_accepted(who, None, SetStatus::planning(who, &triggers))
        {
            found.insert((WorkKind::Plan, None));
        }
        let is_possible = |(kind, _): &Item| *kind == WorkKind::Merge || !self.program_is_held();
        found.into_iter().filter(|item| is_possible(item) && !self.put_off.contains(item)).collect()
    }

    fn candidates(&self, who: AgentId) -> Vec<Item> {
        let (found_merges, now) = (self.found_merges(), self.world.now);
        let mut backoffs = Backoffs::NONE;
        for (kind, task) in &self.put_off {
            let subject = task.clone().map_or(WorkSubject::Agent(who), WorkSubject::Task);
            backoffs.put_off(*kind, subject, now + Seconds(5));
        }
        let step = next_step(&Situation {
            state: &self.world.state,
            agent: who,
            stop_files: StopFiles::default(),
            found_merges: &found_merges,
            now,
            idle_since: now,
            in_team: true,
            clients: &[PROGRAM.to_owned()],
            backoffs: &backoffs,
        });
        let Step::Work(work) = step else { return Vec::new() };
        assert!(!work.is_empty(), "a step of nothing");
        work.iter().map(|work: &Work| (work.kind(), work.task().cloned())).collect()
    }

    fn free(&self) -> impl Iterator<Item = AgentId> {
        self.team.iter().copied().filter(|who| !self.running.contains_key(who))
    }

    /// Agents that have work and do not take it.
    fn idle(&self) -> Vec<String> {
        let wrong = self.free().filter_map(|who| {
            let (enabled, taken) = (self.enabled(who), self.candidates(who));
            let takes = taken.iter().any(|item| enabled.contains(item));
            (!enabled.is_empty() && !takes)
                .then(|| format!("{who} may take {enabled:?}, and takes {taken:?}"))
        });
        wrong.collect()
    }

    /// Agents that try again and again what the environment refuses, instead of the rest.
    fn stuck(&mut self, who: AgentId, refused: &[u8]) -> Option<String> {
        let enabled: Vec<Item> = self.enabled(who).into_iter().collect();
        let fails = |at: usize| refused.get(at % refused.len().max(1)).is_some_and(|number| number % 2 == 0);
        let (fail, rest): (Vec<_>, Vec<_>) =
            enabled.iter().cloned().enumerate().partition(|(at, _)| fails(*at));
        let (fail, rest): (BTreeSet<Item>, BTreeSet<Item>) = (
            fail.into_iter().map(|(_, item)| item).collect(),
            rest.into_iter().map(|(_, item)| item).collect(),
        );
        if rest.is_empty() {
            return None;
        }
        let before = self.put_off.clone();
        let mut tried = Vec::new();
        for _ in 0..=fail.len() {
            let taken =
                self.candidates(who).into_iter().find(|item| fail.contains(item) || rest.contains(item));
            if taken.as_ref().is_some_and(|item| rest.contains(item)) {
                self.put_off = before;
                return None;
            }
            tried.extend(taken.clone());
            self.put_off.extend(taken);
        }
        self.put_off = before;
        Some(format!("{who} tries {tried:?}, and never one of {rest:?}"))
    }

    fn shown(&self) -> View {
        let seen = Observations { last_progress: Some(self.world.now), ..Observations::default() };
        view(&self.world.state, &seen, self.world.now)
    }

    fn needs(&self, kind: AlarmKind) -> bool {
        self.shown().needs_you.iter().any(|need| need.kind == kind)
    }
}

impl Moment {
    /// The same moment when this agent no longer has its task.
    fn once_free(&self, who: AgentId) -> Self {
        let mut world = self.world.clone();
        let held: Vec<TaskId> = world.state.board.tasks.keys().cloned().collect();
        for id in held {
            let mut record = world.state.board.body(&id).unwrap().record().clone();
            if record.status == Some(Status::Claimed) && record.assigned_to == Some(who) {
                record.assigned_to = Some(AgentId::new(Role::Coder, 99));
                world.state.board.put(id, record);
            }
        }
        world.edit_agent(who, |entry| entry.current_task = None);
        let (team, running, put_off) = (self.team.clone(), BTreeMap::new(), self.put_off.clone());
        Self { world, team, running, foreign: self.foreign, put_off }
    }

    /// Open tasks that wait for nothing that ends, and for nothing that a person is asked for.
    fn forgotten(&self) -> Vec<String> {
        let (board, view) = (&self.world.state.board, self.shown());
        let once_free: Vec<BTreeSet<Item>> =
            self.team.iter().map(|who| self.once_free(*who).enabled(*who)).collect();
        let is_enabled = |id: &TaskId| {
            let mut items = once_free.iter().flatten();
            items.any(|(kind, task)| task.as_ref() == Some(id) || *kind == WorkKind::Plan)
        };
        let asks = |kinds: &[AlarmKind]| view.needs_you.iter().any(|need| kinds.contains(&need.kind));
        let whole_team = [AlarmKind::ClientHeld, AlarmKind::PlannerStopped, AlarmKind::SessionBudget];
        let open = board.summaries().filter(|task| !task.status.is_some_and(Status::is_terminal));
        let forgotten = open.filter(|task| {
            let owners = [task.assigned_to, task.reviewing_by];
            let is_held = |who: &AgentId| task.is_held_by(*who) || task.is(Status::Rejected);
            let has_owner = owners.into_iter().flatten().any(|who| is_held(&who) && self.team.contains(&who));
            let ends = self.put_off.iter().any(|(_, put_off)| put_off.as_ref() == Some(&task.id))
                || task.reserved(self.world.now).is_some();
            let named = view.needs_you.iter().any(|need| need.task.as_ref() == Some(&task.id));
            let merges_wait =
                task.is(Status::Approved) && (self.foreign || asks(&[AlarmKind::IntegrationTestBroken]));
            let planner_works = self.running.keys().any(|who| who.role() == Role::Planner)
                && matches!(task.status, Some(Status::Draft | Status::Blocked | Status::IntegrationFailed));
            let program_waits = planner_works || self.program_is_held();
            !(has_owner
                || ends
                || named
                || merges_wait
                || program_waits
                || board.unmet(task).next().is_some()
                || asks(&whole_team)
                || is_enabled(&task.id))
        });
        forgotten.map(|task| format!("{} is {:?} and waits for no one", task.id, task.status)).collect()
    }
}

/// What a person or the environment does to a board besides commands.
#[derive(Debug, Clone, Copy)]
struct Disturbance {
    what: u8,
    which: u8,
}

fn disturbances() -> impl Strategy<Value = Vec<Disturbance>> {
    let one = (any::<u8>(), any::<u8>()).prop_map(|(what, which)| Disturbance { what, which });
    proptest::collection::vec(one, 0..6)
}

impl Disturbance {
    fn is_command(self) -> bool {
        self.what % 7 == 6
    }

    fn apply_to(self, moment: &mut Moment) {
        let board = &moment.world.state.board;
        let open: Vec<TaskId> = board
            .summaries()
            .filter(|task| !task.status.is_some_and(Status::is_terminal))
            .map(|task| task.id.clone())
            .collect();
        let Some(id) = open.get(usize::from(self.which) % open.len().max(1)) else { return };
        let id = id.clone();
        match self.what % 7 {
            0 | 1 => self.set_approved(&mut moment.world, id),
            2 => hold_merge(&mut moment.world, &id),
            3 => moment.foreign = true,
            4 => self.hold_program(&mut moment.world),
            5 => {
                let kind = [WorkKind::Merge, WorkKind::Review, WorkKind::Code][usize::from(self.which % 3)];
                moment.put_off.insert((kind, Some(id)));
            }
            // A task that was blocked is answered.
            _ => {
                let (reason, questions) = ("unclear".to_owned(), vec!["Which?".to_owned()]);
                let block = MarkBlocked { task: id.clone(), reason, questions, attempted: Vec::new() };
                let _ = moment.world.run(Actor::Human, Command::from(block));
                let answer = Answer { task: id, text: "this one".to_owned() };
                let _ = moment.world.run(Actor::Human, Command::from(answer));
            }
        }
    }

    /// A person writes APPROVED into the file, with or without a commit.
    fn set_approved(self, world: &mut World, id: TaskId) {
        let board = &mut world.state.board;
        let mut record = board.body(&id).unwrap().record().clone();
        record.status = Some(Status::Approved);
        (record.reviewing_by, record.review_lease_expires, record.lease_expires) = (None, None, None);
        record.review_commit = self.what.is_multiple_of(7).then(|| number_sha(7));
        record.approved_by = self.which.is_multiple_of(2).then(|| Approver::Agent(agent("code-reviewer-1")));
        if let Loaded::Ready(agents) = &mut board.agents {
            let holders = agents.values_mut().filter(|entry| entry.current_task.as_ref() == Some(&id));
            holders.for_each(|entry| entry.current_task = None);
        }
        board.put(id, record);
    }

    fn hold_program(self, world: &mut World) {
        let until = self.which.is_multiple_of(2).then(|| world.now + Seconds(90));
        let (kind, message) = (FaultKind::Quota, "limit".to_owned());
        let hold = ClientHold { kind, message, repair: None, since: world.now, until, probes: 0 };
        if let (Loaded::Ready(sprint), 0 | 1) = (&mut world.state.board.sprint, self.which % 5) {
            sprint.clients.insert(PROGRAM.to_owned(), ClientRecord { hold: Some(hold), failures: None });
        }
    }
}

/// The integration test fails without the task too.
fn hold_merge(world: &mut World, id: &TaskId) {
    let (time, head) = (world.now, number_sha(99));
    let (what, output) = ("test failed".to_owned(), "x".to_owned());
    let failure = Some(TestFailure { what, output, last_lines: Vec::new() });
    world.edit_goal().integration_head = Some(head.clone());
    world.edit_goal().head_test = Some(HeadTest { head: head.clone(), time, failure, settings: Vec::new() });
    if world.status(id.as_str()) == Status::Approved {
        world.edit_record(id.as_str(), |record| record.merge_held = Some(MergeHold::HeadFails(head)));
    }
}

/// A team of which some agents work.
fn moment(mut world: World, team: &Team, busy: &[u8], disturbances: &[Disturbance]) -> Moment {
    let team = team.whole();
    team.join(&mut world);
    let (agents, numbers) = (team.agents(), [GOOD]);
    let mut moods = Moods::new(&numbers);
    let mut running = BTreeMap::new();
    for number in busy {
        let who = agents[usize::from(*number) % agents.len()];
        if running.contains_key(&who) {
            continue;
        }
        if let Move::Started(session) = begin(&mut world, who, &mut moods) {
            running.insert(who, session);
        }
    }
    let mut moment = Moment { world, team: agents, running, foreign: false, put_off: BTreeSet::new() };
    // Commands first: the world checks what they do to a board that no person has edited.
    let (commands, edits): (Vec<&Disturbance>, Vec<_>) =
        disturbances.iter().partition(|one| one.is_command());
    commands.into_iter().chain(edits).for_each(|disturbance| disturbance.apply_to(&mut moment));
    moment
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 512, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Covers: AX-01, AX-02
    #[test]
    fn a_free_agent_takes_work_whatever_else_cannot_go_on(
        steps in steps(),
        team in teams(),
        busy in proptest::collection::vec(any::<u8>(), 0..6),
        disturbances in disturbances(),
        refused in proptest::collection::vec(any::<u8>(), 1..8),
    ) {
        let mut moment = moment(run_sequence(&steps), &team, &busy, &disturbances);
        let free: Vec<AgentId> = moment.free().collect();
        let stuck: Vec<String> = free.into_iter().filter_map(|who| moment.stuck(who, &refused)).collect();
        prop_assert_eq!(moment.idle(), Vec::<String>::new());
        prop_assert_eq!(stuck, Vec::<String>::new());
        prop_assert_eq!(moment.forgotten(), Vec::<String>::new());
    }
}

/// A team of two coders and two code reviewers with two submissions that wait for a review, and an approved task.
fn with_submissions() -> Moment {
    let mut world = World::new();
    let team = ["coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"].map(agent);
    team.iter().for_each(|who| world.register(*who).unwrap());
    for (id, coder) in [("merged-first", team[0]), ("one", team[0]), ("two", team[1])] {
        world.add(&task(id), false, Vec::new()).unwrap();
        world.claim(&task(id), coder).unwrap();
        world.submit(&task(id), coder).unwrap();
    }
    world.claim_review(&task("merged-first"), team[2]).unwrap();
    world.verdict(&task("merged-first"), team[2], true).unwrap();
    let (running, put_off) = (BTreeMap::new(), BTreeSet::new());
    Moment { world, team: team.to_vec(), running, foreign: false, put_off }
}

/// What an agent takes if all merges fail here.
fn taken_when_merges_fail(moment: &mut Moment, who: &str) -> Vec<Item> {
    for _ in 0..3 {
        let taken = moment.candidates(agent(who));
        match taken.first() {
            Some(item @ (WorkKind::Merge, _)) => drop(moment.put_off.insert(item.clone())),
            _ => return taken,
        }
    }
    Vec::new()
}

fn reviews() -> Vec<Item> {
    ["one", "two"].map(|id| (WorkKind::Review, Some(task(id)))).to_vec()
}

/// Covers: AX-01, AX-03
#[test]
fn an_approved_task_without_an_approval_keeps_no_one_from_reviews() {
    for (who, commit) in [("code-reviewer-1", Some(number_sha(7))), ("code-reviewer-2", None)] {
        let mut moment = with_submissions();
        moment.world.edit_record("merged-first", |record| {
            (record.review_commit, record.approved_by) = (commit, None);
        });
        assert_eq!(moment.candidates(agent(who)), reviews());
    }
}

/// Covers: AX-01
#[test]
fn a_merge_that_fails_keeps_no_one_from_reviews() {
    let mut moment = with_submissions();
    assert_eq!(moment.candidates(agent("code-reviewer-1"))[0], (WorkKind::Merge, Some(task("merged-first"))));
    assert_eq!(taken_when_merges_fail(&mut moment, "code-reviewer-1"), reviews());
}

/// Covers: AX-01
#[test]
fn a_foreign_commit_on_the_integration_branch_keeps_no_one_from_reviews() {
    let mut moment = with_submissions();
    moment.foreign = true;
    assert_eq!(moment.candidates(agent("code-reviewer-1")), reviews());
}

/// Covers: AX-02
#[test]
fn an_answered_task_whose_coder_is_busy_is_open_to_every_coder() {
    let mut moment = with_submissions();
    let world = &mut moment.world;
    for id in ["asked", "long-1"] {
        world.add(&task(id), false, Vec::new()).unwrap();
    }
    world.claim(&task("asked"), agent("coder-1")).unwrap();
    let (reason, questions) = ("unclear".to_owned(), vec!["Which?".to_owned()]);
    let block = MarkBlocked { task: task("asked"), reason, questions, attempted: Vec::new() };
    world.run(world.session(agent("coder-1")), Command::from(block)).unwrap();
    let answer = || Command::from(Answer { task: task("asked"), text: "this one".to_owned() });
    world.claim(&task("long-1"), agent("coder-1")).unwrap();
    world.run(Actor::Human, answer()).unwrap();
    let asked = vec![(WorkKind::Code, Some(task("asked")))];
    assert_eq!(moment.candidates(agent("coder-2")), asked);
    // Its coder takes it up once it is free, and only then comes first.
    moment.world.submit(&task("long-1"), agent("coder-1")).unwrap();
    assert_eq!(moment.candidates(agent("coder-1")), asked);
    assert_eq!(moment.candidates(agent("coder-2")), Vec::new());
}
