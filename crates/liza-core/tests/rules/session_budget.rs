//! Every run is bounded: whatever the agents do, without a merge and without the human they run out of sessions, and the
//! human sees what to decide.

use liza_core::model::{
    Actor, AgentId, AgentStatus, AnomalyType, ClientFault, FaultKind, Fields, GoalStatus, LimitReset,
    Revision, Role, Seconds, Sha, Status, TaskId, Value,
};
use liza_core::protocol::{
    AddTask, Answer, BeginMerge, ClaimTask, Command, HandoffNotes, LogAnomaly, RecordSession, Resume,
    SetStatus, SubmitVerdict, TakeHandoff, UnblockTask, UseClient, Verdict, WorktreeFacts, WriteHandoff,
    WriteNote,
};
use liza_core::rules::clients::MAX_PROBES;
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::judging_settings::failing_head;
use liza_core::rules::session_budget::SessionBudget;
use liza_core::rules::triggers::{Trigger, planner_triggers};
use liza_core::supervise::{
    Backoffs, EndedSession, SessionEnd, Situation, Step, Work, after_session, has_result, next_step,
};
use liza_status::alarms::{AlarmKind, Observations, alarms};
use liza_status::needs_you::needs_you;
use liza_testkit::worlds::*;
use proptest::prelude::*;

const MAX_SESSIONS: u32 = 6;
const MAX_PLANNER_SESSIONS: u32 = 5;
/// The client of all sessions.
const CLIENT: &str = "client";
/// How many tasks a planning session adds at most.
const MAX_ADDED: u32 = 2;

fn team() -> [AgentId; 5] {
    [planner(), coder(1), coder(2), reviewer(1), reviewer(2)]
}

/// A team whose agents choose, byte by byte, the worst that they can do. Nothing is ever merged.
struct Adversaries {
    world: World,
    choices: Vec<u8>,
    next: usize,
    sessions: u32,
    names: u32,
    commits: u32,
    /// Whether the client fails too, as the choices say.
    faulty: bool,
}

impl Adversaries {
    fn new(choices: Vec<u8>) -> Self {
        let mut world = World::new();
        world.edit_goal().integration_head = Some(head());
        world.config().max_sessions = MAX_SESSIONS;
        world.config().max_planner_sessions = MAX_PLANNER_SESSIONS;
        Self { world, choices, next: 0, sessions: 0, names: 0, commits: 0, faulty: false }
    }

    fn choose(&mut self, options: u8) -> u8 {
        self.next += 1;
        self.choices[self.next % self.choices.len()] % options
    }

    /// A commit that no one has seen.
    fn commit(&mut self) -> Sha {
        self.commits += 1;
        format!("{:040x}", self.commits + 1000).parse().unwrap()
    }

    fn try_as_agent(&mut self, agent: AgentId, command: Command) {
        let actor = self.world.agent(agent);
        let _ = self.world.run(actor, command);
    }

    fn try_as_supervisor(&mut self, agent: AgentId, command: Command) -> bool {
        let actor = self.world.supervisor(agent);
        self.world.run(actor, command).is_ok_and(|done| done.answer.is_ok())
    }

    /// Lets every agent take one step; false if none has anything to do.
    fn round(&mut self) -> bool {
        let mut busy = false;
        let clients: Vec<String> = self.faulty.then(|| CLIENT.to_owned()).into_iter().collect();
        for agent in team() {
            self.world.pass(1);
            let situation = Situation {
                state: &self.world.state,
                agent,
                stop_files: self.world.stop_files,
                found_merges: &FoundMerges::NONE,
                now: self.world.now,
                idle_since: self.world.now,
                in_team: true,
                clients: &clients,
                backoffs: &Backoffs::NONE,
            };
            busy |= match next_step(&situation) {
                Step::Work(work) => self.take_up(&work, agent),
                Step::Stop(_) | Step::Hold(_) | Step::Wait { .. } => false,
            };
        }
        busy
    }

    /// Does the first of these that can be done.
    fn take_up(&mut self, work: &[Work], agent: AgentId) -> bool {
        match work {
            [] => false,
            [Work::Merge(task), ..] => {
                let commit = self.world.record(task.as_str()).review_commit.clone().unwrap();
                self.try_as_supervisor(agent, Command::from(BeginMerge { task: task.clone() }));
                self.fail_merge(task, agent, commit)
            }
            [Work::Plan(triggers), ..] => self.plan(agent, triggers),
            [Work::Code(_) | Work::Review(_), ..] => {
                let tasks: Vec<TaskId> = work.iter().filter_map(|work| work.task().cloned()).collect();
                self.session_on(&tasks, agent)
            }
        }
    }

    /// The merge conflicts, or the integration test fails with the task, or without it too.
    fn fail_merge(&mut self, task: &TaskId, agent: AgentId, commit: Sha) -> bool {
        let known = failing_head(&self.world.state.board).is_some();
        match self.choose(3) {
            0 => return self.try_as_supervisor(agent, conflict(task.as_str(), commit)),
            1 if !known => {
                self.try_as_supervisor(agent, head_test(None));
                return self.try_as_supervisor(agent, conflict(task.as_str(), commit));
            }
            _ if !known => drop(self.try_as_supervisor(agent, head_test(Some("broken")))),
            _ => {}
        }
        self.try_as_supervisor(agent, hold(task.as_str(), commit))
    }

    /// Claims the first of these, does something, and is judged.
    fn session_on(&mut self, tasks: &[TaskId], agent: AgentId) -> bool {
        if !self.may_use_client(agent) {
            return true;
        }
        let claimed = tasks.iter().find(|task| self.claim(task, agent)).cloned();
        let Some(task) = claimed else { return true };
        self.sessions += 1;
        if self.world.record(task.as_str()).handoff_pending == Some(true) {
            self.try_as_supervisor(agent, Command::from(TakeHandoff { task: task.clone() }));
        }
        let (began_at, commits) = (self.world.state.board.revision, self.commits);
        match agent.role() {
            Role::Coder => self.code(&task, agent),
            Role::CodeReviewer | Role::Planner => self.review(&task, agent),
        }
        let end = self.end();
        if self.choose(5) == 0 {
            // The lease is lost, and with it the task.
            self.world.pass(1000);
            for other in team().into_iter().filter(|other| *other != agent) {
                self.world.heartbeat(other);
            }
        }
        let has_commits = self.commits > commits;
        self.judge(agent, Some(task), began_at, Vec::new(), end, has_commits);
        true
    }

    fn claim(&mut self, task: &TaskId, agent: AgentId) -> bool {
        let id = task.as_str();
        if agent.role() == Role::Coder {
            self.try_as_supervisor(agent, reserve(id, agent, base()))
                && self
                    .try_as_supervisor(agent, Command::from(ClaimTask { task: task.clone(), coder: agent }))
        } else {
            self.try_as_supervisor(agent, claim_review(id, agent))
        }
    }

    fn end(&mut self) -> SessionEnd {
        match self.choose(4) {
            0 => SessionEnd::Code(1),
            1 => SessionEnd::Code(42),
            2 => SessionEnd::OverTime,
            _ => SessionEnd::Code(0),
        }
    }

    fn code(&mut self, task: &TaskId, agent: AgentId) {
        let commit = self.commit();
        match self.choose(7) {
            0 | 1 => self.try_as_agent(agent, submit(task.as_str(), commit)),
            2 => self.try_as_agent(agent, block(task.as_str())),
            3 => self.hand_off(agent, Some(task.clone())),
            4 => self.ask(agent, Some(task.clone())),
            // Commits and ends without a word.
            5 => {}
            _ => self.commits -= 1,
        }
    }

    fn review(&mut self, task: &TaskId, agent: AgentId) {
        let commit = self.world.record(task.as_str()).review_commit.clone().unwrap();
        let verdict = match self.choose(6) {
            0 | 1 => Verdict::Rejected(FEEDBACK.into()),
            2 => approved(),
            3 => return self.hand_off(agent, Some(task.clone())),
            4 => return self.ask(agent, Some(task.clone())),
            _ => return,
        };
        let facts = Some(WorktreeFacts::clean(commit));
        self.try_as_agent(
            agent,
            Command::from(SubmitVerdict { task: task.clone(), verdict, facts, commit: None, moved: None }),
        );
    }

    fn plan(&mut self, agent: AgentId, triggers: &[Trigger]) -> bool {
        if !self.may_use_client(agent)
            || !self.try_as_supervisor(agent, Command::from(SetStatus::new(agent, AgentStatus::Planning)))
        {
            return true;
        }
        self.sessions += 1;
        let began_at = self.world.state.board.revision;
        for trigger in triggers {
            self.decide(agent, &trigger.subject);
        }
        match self.choose(6) {
            0 => self.hand_off(agent, None),
            1 => self.ask(agent, None),
            2 => drop(self.add(agent)),
            _ => {}
        }
        let (all, end) = (planner_triggers(&self.world.state, self.world.now), self.end());
        self.judge(agent, None, began_at, all, end, false);
        self.try_as_supervisor(agent, Command::from(SetStatus::new(agent, AgentStatus::Waiting)));
        true
    }

    /// The planner lets a blocked task loop once more, replaces it, or leaves it.
    fn decide(&mut self, agent: AgentId, subject: &str) {
        let Ok(id) = subject.parse::<TaskId>() else { return };
        if self.world.state.board.status(&id) != Some(Status::Blocked) {
            return;
        }
        let how = self.choose(6);
        let unblock = UnblockTask {
            task: id,
            reset_cycles: true,
            same_coder: how == 0,
            keep_worktree: how == 1,
            assessment: Some("try again".into()),
        };
        match how {
            0..=2 => self.try_as_agent(agent, Command::from(unblock)),
            3 | 4 => {
                let new = self.add(agent);
                self.try_as_agent(agent, supersede(subject, &[&new]));
            }
            _ => {}
        }
    }

    fn add(&mut self, agent: AgentId) -> String {
        self.names += 1;
        let name = format!("n{}", self.names);
        self.try_as_agent(agent, Command::from(AddTask { task: task(&name), new: ready() }));
        name
    }

    fn hand_off(&mut self, agent: AgentId, task: Option<TaskId>) {
        let notes = HandoffNotes {
            summary: "half".into(),
            next_action: "the rest".into(),
            ..HandoffNotes::default()
        };
        self.try_as_agent(agent, Command::from(WriteHandoff { task, notes, dirty: Vec::new() }));
    }

    fn ask(&mut self, agent: AgentId, task: Option<TaskId>) {
        let details = [("protocol_section", "any"), ("question", "what now?")];
        let details = details.map(|(key, text)| (key.to_owned(), Value::from(text)));
        let (kind, details) = (AnomalyType::SystemAmbiguity, Fields::from_iter(details));
        self.try_as_agent(agent, Command::from(LogAnomaly { kind, task, details }));
    }

    fn judge(
        &mut self,
        agent: AgentId,
        task: Option<TaskId>,
        began_at: Revision,
        triggers: Vec<Trigger>,
        end: SessionEnd,
        has_commits: bool,
    ) {
        let mut session = EndedSession { triggers, has_commits, ..EndedSession::new(agent, task, began_at) };
        session.is_clients_fault = self.faulty && self.record_session(&session);
        for command in after_session(&self.world.state, &session, end).record {
            self.try_as_supervisor(agent, command);
        }
    }

    fn may_use_client(&mut self, agent: AgentId) -> bool {
        !self.faulty
            || self.try_as_supervisor(agent, Command::from(UseClient { agent, client: CLIENT.to_owned() }))
    }

    /// Records how the session ended; whether its client was at fault.
    fn record_session(&mut self, session: &EndedSession) -> bool {
        let kind = match self.choose(8) {
            0 => Some(FaultKind::Auth),
            1..=3 => Some(FaultKind::Quota),
            4 | 5 => Some(FaultKind::Overloaded),
            _ => None,
        };
        let minutes = u64::from(self.choose(200));
        let reset = (minutes < 100).then_some(LimitReset::In(Seconds::minutes(minutes)));
        let command = RecordSession {
            end: format!("exited {}", minutes % 2),
            fault: kind.map(|kind| ClientFault { kind, message: "no".into(), reset }),
            failed: !has_result(&self.world.state, session),
            ..RecordSession::new(session.agent, session.task.clone(), CLIENT, self.world.now)
        };
        let done = self.world.must(self.world.supervisor(session.agent), Command::from(command));
        done.reply("is_clients_fault") == true
    }

    /// Whether the client is tried again by itself.
    fn waits_for_client(&self) -> bool {
        let client = self.world.sprint().clients.get(CLIENT);
        client
            .and_then(|client| client.hold.as_ref())
            .is_some_and(|hold| hold.until.is_some_and(|until| until > self.world.now))
    }

    /// Runs until no agent has anything to do; fails if there are more sessions than the budgets allow.
    fn run_out(&mut self) {
        let tasks = 1 + MAX_ADDED * MAX_PLANNER_SESSIONS;
        let charged = MAX_PLANNER_SESSIONS + (tasks + 1) * MAX_SESSIONS;
        // Between two sessions that count, each agent may fail once by its client's fault, and then come the tries.
        let bound = if self.faulty { charged * (1 + 5 + MAX_PROBES) } else { charged };
        let mut quiet = 0;
        // A lease has to run out before a lost task is free again.
        while quiet < 3 {
            quiet = if self.round() || self.waits_for_client() { 0 } else { quiet + 1 };
            assert!(self.sessions <= bound, "{} sessions, {bound} are allowed", self.sessions);
            self.world.pass(500);
            for agent in team() {
                self.world.heartbeat(agent);
            }
        }
    }

    fn needs_human(&self) -> Vec<AlarmKind> {
        let (state, now) = (&self.world.state, self.world.now + Seconds::hours(1));
        let seen = Observations { last_progress: Some(self.world.now), ..Observations::default() };
        let needs = needs_you(state, &seen, &alarms(state, &seen, now), now);
        needs.into_iter().map(|need| need.kind).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: AC-05
    #[test]
    fn without_a_merge_or_the_human_every_run_ends(choices in prop::collection::vec(any::<u8>(), 1..200)) {
        let mut team = Adversaries::new(choices);
        team.run_out();
        let open = team.world.goal().status == GoalStatus::InProgress;
        prop_assert!(!open || !team.needs_human().is_empty(), "the human is not asked");
        // The human lets it continue, and it is bounded again.
        team.sessions = 0;
        team.world.must(Actor::Human, Command::from(WriteNote { message: "go on".into(), to: None }));
        for id in team.world.state.board.in_status(Status::Blocked).collect::<Vec<_>>() {
            team.world.must(Actor::Human, Command::from(Answer { task: id, text: "go on".into() }));
        }
        team.run_out();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: SE-03, SE-04, SE-12
    #[test]
    fn a_client_that_fails_does_not_make_a_run_endless(choices in prop::collection::vec(any::<u8>(), 1..200)) {
        let mut team = Adversaries::new(choices);
        team.faulty = true;
        team.run_out();
        let open = team.world.goal().status == GoalStatus::InProgress;
        prop_assert!(!open || !team.needs_human().is_empty(), "the human is not asked");
        team.sessions = 0;
        team.world.must(Actor::Human, Command::from(Resume { decision: None, note: None }));
        team.run_out();
    }
}

/// Covers: AC-05
#[test]
fn a_used_up_budget_blocks_the_task_with_the_reason() {
    let mut world = World::new();
    world.config().max_sessions = 2;
    world.reject_again("t", coder(1));
    let actor = world.supervisor(coder(1));
    world.refused_after_write("session_budget", actor, reserve("t", coder(1), base()));
    let record = world.record("t");
    assert_eq!(record.status, Some(Status::Blocked));
    assert!(record.blocked_reason.as_ref().unwrap().contains("2 sessions"), "{:?}", record.blocked_reason);
    world.refused_with("session_budget", world.agent(planner()), unblock("t"));
    world.must(Actor::Human, Command::from(Answer { task: task("t"), text: "try once more".into() }));
    world.claim("t", coder(1));
}

/// Covers: AC-05
#[test]
fn replacements_and_later_tasks_share_a_budget() {
    let mut world = World::with_task(Status::Blocked);
    let used =
        |world: &World, id: &str| SessionBudget::of_task(&task(id), world.record(id)).used(world.sprint());
    assert_eq!(used(&world, "t"), 1);
    let planner = world.agent(planner());
    world.must(planner, Command::from(AddTask { task: task("t-v2"), new: ready() }));
    world.must(planner, supersede("t", &["t-v2"]));
    assert_eq!((used(&world, "t-v2"), world.record("t-v2").rescope_depth), (1, Some(1)));
    world.must(planner, Command::from(AddTask { task: task("more"), new: ready() }));
    world.claim("more", coder(2));
    world.must(planner, Command::from(AddTask { task: task("and-more"), new: ready() }));
    assert_eq!(used(&world, "and-more"), 1, "both use the shared budget");
}

/// Covers: AC-05
#[test]
fn chains_of_replacements_and_blocks_end_with_the_human() {
    let mut world = World::with_task(Status::Blocked);
    let planner = world.agent(planner());
    let mut last = "t".to_owned();
    for depth in 1..=3 {
        let next = format!("v{depth}");
        world.must(planner, Command::from(AddTask { task: task(&next), new: ready() }));
        world.must(planner, supersede(&last, &[&next]));
        last = next;
    }
    world.must(planner, Command::from(AddTask { task: task("v4"), new: ready() }));
    world.refused_with("rescope_limit", planner, supersede(&last, &["v4"]));
    world.must(Actor::Human, supersede(&last, &["v4"]));

    let mut world = World::new();
    let same = || {
        let assessment = Some("again".to_owned());
        let (task, same_coder) = (task("t"), true);
        Command::from(UnblockTask { task, reset_cycles: false, same_coder, keep_worktree: false, assessment })
    };
    world.config().max_blocks = 2;
    for _ in 0..2 {
        world.claim("t", coder(1));
        world.block("t", coder(1));
        if world.run(planner, same()).is_err() {
            break;
        }
    }
    world.refused_with("block_limit", planner, same());
}

/// Covers: AC-05
#[test]
fn tasks_that_are_added_before_work_begins_have_budgets_of_their_own() {
    let mut world = World::new();
    let add = |id: &str| Command::from(AddTask { task: task(id), new: ready() });
    world.must(world.agent(planner()), add("before"));
    assert_eq!(world.record("before").shared_budget, None);
    world.claim("t", coder(1));
    world.must(world.agent(planner()), add("after"));
    assert_eq!(world.record("after").shared_budget, Some(true));
}
