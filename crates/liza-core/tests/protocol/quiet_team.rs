//! A team in which nobody can do anything more: the screens say what a person has to do.
//!
//! From any board that random commands reach, a team of any size works as its supervisors decide, with sessions that do
//! their worst: they ask, leave things as they are, or end without a result. The team comes to rest, since sessions are
//! limited. Whatever is then still open is explained to the person.

use liza_core::model::{
    Actor, AgentId, AgentStatus, AnomalyType, ClientFault, FaultKind, Fields, GoalStatus, Refusal, Revision,
    Role, Seconds, StopFileTimes, StopFiles, TaskId, Timestamp, Value,
};
use liza_core::protocol::{
    AbandonTask, Align, Command, CompleteGoal, Deregister, EditTask, Finalize, Heartbeat, LogAnomaly,
    MarkBlocked, RecordSession, SetStatus, TaskEdit, UnblockTask, UseClient,
};
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::triggers::{Trigger, TriggerKind};
use liza_core::supervise::stop_files::reconcile;
use liza_core::supervise::{
    Backoffs, EndedSession, SessionEnd, Situation, Step, WaitReason, Work, after_session, has_result,
    next_step,
};
use liza_status::alarms::{AlarmKind, Observations};
use liza_status::forecast::{Next, Who};
use liza_status::view::{TaskPhase, TaskView, View, view};
use liza_status::words::next_steps;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::random::{run_sequence, steps};
use crate::world::World;

/// How many times each agent is asked what it does next; session limits end it long before.
const ROUNDS: usize = 600;
const PROGRAM: &str = "codex";

/// The mood of sessions that do good work.
pub(crate) const GOOD: u8 = 7;

/// What the sessions of a team do: each one takes the next number.
pub(crate) struct Moods<'a> {
    numbers: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    /// The tasks of which the last step was refused what the board alone does not show, or their sessions were used up.
    pub(crate) refused: Vec<TaskId>,
}

impl<'a> Moods<'a> {
    pub(crate) fn new(numbers: &'a [u8]) -> Self {
        Self { numbers: numbers.iter().cycle(), refused: Vec::new() }
    }

    fn next(&mut self) -> u8 {
        self.numbers.next().copied().unwrap_or(0)
    }
}

fn decide(world: &World, who: AgentId) -> Step {
    next_step(&Situation {
        state: &world.state,
        agent: who,
        stop_files: StopFiles::default(),
        found_merges: &FoundMerges::NONE,
        now: world.now,
        idle_since: world.now,
        in_team: true,
        clients: &[PROGRAM.to_owned()],
        backoffs: &Backoffs::NONE,
    })
}

/// One session: its agent has started it.
pub(crate) struct Session {
    who: AgentId,
    pub(crate) task: Option<TaskId>,
    pub(crate) triggers: Vec<Trigger>,
    mood: u8,
    began_at: Revision,
    pub(crate) started: Timestamp,
}

impl Session {
    fn start(
        world: &mut World,
        (who, mood): (AgentId, u8),
        task: Option<TaskId>,
        triggers: Vec<Trigger>,
    ) -> Self {
        let (began_at, started) = (world.state.board.revision, world.now);
        let program = UseClient { agent: who, client: PROGRAM.to_owned() };
        let _ = world.run(world.supervisor(who), Command::from(program));
        Self { who, task, triggers, mood, began_at, started }
    }

    /// Ends; its supervisor records it.
    pub(crate) fn end(self, world: &mut World) {
        let (began_at, started) = (self.began_at, self.started);
        let supervisor = world.supervisor(self.who);
        let triggers = self.triggers.clone();
        let mut ended = EndedSession { triggers, ..EndedSession::new(self.who, self.task.clone(), began_at) };
        let failed = !has_result(&world.state, &ended);
        let refused = failed && self.mood % 64 == 56;
        let fault =
            ClientFault { kind: FaultKind::Auth, message: "401 Unauthorized".to_owned(), reset: None };
        let record = RecordSession {
            fault: refused.then_some(fault),
            failed,
            ..RecordSession::new(self.who, self.task.clone(), PROGRAM, started)
        };
        let _ = world.run(supervisor, Command::from(record));
        ended.is_clients_fault = refused;
        let end = SessionEnd::Code(i32::from(self.mood / 64 == 1));
        for command in after_session(&world.state, &ended, end).record {
            let _ = world.run(supervisor, command);
        }
        if self.who.role() == Role::Planner {
            let waits = SetStatus::new(self.who, AgentStatus::Waiting);
            let _ = world.run(supervisor, Command::from(waits));
        }
    }

    /// Does something, or nothing.
    pub(crate) fn act(&self, world: &mut World) {
        let by = world.session(self.who);
        match (self.who.role(), &self.task, self.mood % 8) {
            (_, None, GOOD) => self.decide(world),
            (_, _, 0) | (_, None, 3..) => {}
            (_, _, 1) => self.ask(world, &by),
            // A planner that records something, and leaves everything as it is.
            (_, None, 2) => match self.triggers.first().and_then(|trigger| trigger.subject.parse().ok()) {
                Some(task) => self.unblock(world, &by, task),
                None => self.ask(world, &by),
            },
            (Role::Coder, Some(task), 2) => {
                let (reason, questions) = ("unclear".to_owned(), vec!["Which?".to_owned()]);
                let block = MarkBlocked { task: task.clone(), reason, questions, attempted: Vec::new() };
                let _ = world.run(by, Command::from(block));
            }
            (Role::CodeReviewer, Some(task), mood) => drop(world.verdict(task, self.who, mood > 4)),
            (_, Some(task), _) => drop(world.submit(task, self.who)),
        }
    }

    /// A planner that decides everything that it was woken for.
    fn decide(&self, world: &mut World) {
        let by = world.session(self.who);
        for trigger in &self.triggers {
            let task: Option<TaskId> = trigger.subject.parse().ok();
            match (trigger.kind, task) {
                (TriggerKind::SprintCompleted, _) => drop(world.run(by, Command::from(CompleteGoal))),
                (TriggerKind::BlockedTasks, Some(task)) => self.unblock(world, &by, task),
                (TriggerKind::NewDraft, Some(task)) => {
                    let text = || Some("all".to_owned());
                    let edit = TaskEdit { done_when: text(), scope: text(), ..TaskEdit::default() };
                    let _ = world.run(by, Command::from(EditTask { task: task.clone(), edit }));
                    let _ =
                        world.run(by, Command::from(Finalize { tasks: vec![task], unchanged_since: None }));
                }
                (TriggerKind::QuestionAnswered | TriggerKind::HumanDecision, _) | (_, None) => {
                    let align = Align { summary: "as planned".to_owned() };
                    let _ = world.run(by, Command::from(align));
                }
                (_, Some(task)) => {
                    let drop_it = AbandonTask { task, reason: "hopeless".to_owned() };
                    let _ = world.run(by, Command::from(drop_it));
                }
            }
        }
    }

    fn ask(&self, world: &mut World, by: &Actor) {
        let kind = match self.who.role() {
            Role::Planner => AnomalyType::SpecGap,
            Role::Coder | Role::CodeReviewer => AnomalyType::SystemAmbiguity,
        };
        let details = Fields::from_iter([("question".to_owned(), Value::from("Which?"))]);
        let _ = world.run(*by, Command::from(LogAnomaly { kind, task: self.task.clone(), details }));
    }

    fn unblock(&self, world: &mut World, by: &Actor, task: TaskId) {
        let unblock = UnblockTask {
            task,
            reset_cycles: true,
            same_coder: false,
            keep_worktree: false,
            assessment: Some("clearer now".to_owned()),
        };
        let _ = world.run(*by, Command::from(unblock));
    }
}

/// What an agent did when it was asked what it does next.
pub(crate) enum Move {
    /// Nothing.
    Nothing,
    /// Something that needs no session, or it waits for its program.
    Done,
    /// It has started a session.
    Started(Session),
}

/// One step of an agent, with the whole session if it starts one; whether it did anything.
fn step(world: &mut World, who: AgentId, moods: &mut Moods<'_>) -> bool {
    match begin(world, who, moods) {
        Move::Nothing => false,
        Move::Done => true,
        Move::Started(session) => {
            session.act(world);
            session.end(world);
            true
        }
    }
}

/// Lets an agent take its next step, or begin it.
pub(crate) fn begin(world: &mut World, who: AgentId, moods: &mut Moods<'_>) -> Move {
    let done = |is_done: bool| if is_done { Move::Done } else { Move::Nothing };
    let work = match decide(world, who) {
        Step::Work(work) => work,
        Step::Stop(_) => {
            let _ = world.run(Actor::Human, Command::from(Deregister::any(who)));
            return Move::Nothing;
        }
        // It tries again by itself.
        Step::Wait { why: WaitReason::ClientHeld { hold, .. }, .. } => return done(hold.until.is_some()),
        Step::Hold(_) | Step::Wait { .. } => return Move::Nothing,
    };
    moods.refused.clear();
    for work in work {
        let (begun, task, triggers) = match work {
            Work::Merge(task) => {
                return done(world.merge(&task, who, !moods.next().is_multiple_of(3)).is_ok());
            }
            Work::Code(task) => (world.claim(&task, who), Some(task), Vec::new()),
            Work::Review(task) => (world.claim_review(&task, who), Some(task), Vec::new()),
            Work::Plan(triggers) => {
                let plans = SetStatus::planning(who, &triggers);
                (world.run(world.supervisor(who), Command::from(plans)).map(drop), None, triggers)
            }
        };
        match begun {
            Ok(()) => return Move::Started(Session::start(world, (who, moods.next()), task, triggers)),
            Err(Refusal::SessionBudget { .. } | Refusal::IterationLimit { .. }) => {
                moods.refused.extend(task);
            }
            Err(_) => {}
        }
    }
    Move::Nothing
}

/// Starts an agent that is not running.
pub(crate) fn start(world: &mut World, who: AgentId) {
    let _ = world.register(who);
    let begins = SetStatus::new(who, AgentStatus::Idle);
    let _ = world.run(world.supervisor(who), Command::from(begins));
}

/// Lets the team work until nobody can do anything more; whether it came to rest. A program that fails in all sessions is
/// tried for ever, and is shown as held.
pub(crate) fn settle(world: &mut World, team: &[AgentId], moods: &mut Moods<'_>) -> bool {
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        // A minute: what waits only for a short time is over when nobody has moved for three.
        world.now = world.now + Seconds(60);
        for who in team {
            let beat = Command::from(Heartbeat { agents: vec![(*who, None)], length: None });
            let _ = world.run(world.supervisor(*who), beat);
        }
        if let Some(command) = reconcile(&world.state, StopFileTimes::default(), world.now) {
            let _ = world.run(Actor::Human, command);
        }
        let moved = team.iter().filter(|who| step(world, **who, moods)).count();
        quiet = if moved == 0 { quiet + 1 } else { 0 };
        if quiet == 3 {
            return true;
        }
    }
    let sprint = world.state.board.sprint.ready().unwrap();
    assert!(!sprint.clients.is_empty(), "the team never comes to rest: {sprint:#?}");
    false
}

pub(crate) fn shown(world: &World) -> View {
    let seen = Observations { last_progress: Some(world.now), ..Observations::default() };
    view(&world.state, &seen, world.now)
}

/// Whether a person can see what an open task waits for: a decision about it or about the whole team, another task that is
/// open, or an agent that is not there.
fn is_explained(view: &View, task: &TaskView) -> bool {
    let is_open =
        |id: &TaskId| view.tasks.iter().any(|task| task.id == *id && task.phase != TaskPhase::Ended);
    let named = view.needs_you.iter().any(|need| need.task.as_ref() == Some(&task.id));
    let waits = task.waits_for.iter().any(|other| is_open(&other.task));
    let needs = |kind: AlarmKind| view.needs_you.iter().any(|need| need.kind == kind);
    let role = match task.phase {
        TaskPhase::Ready | TaskPhase::Stopped | TaskPhase::Working => Role::Coder,
        TaskPhase::Reviewing => Role::CodeReviewer,
        TaskPhase::Stuck | TaskPhase::Waiting | TaskPhase::Draft | TaskPhase::Ended => Role::Planner,
    };
    let start = format!("liza agent {}", role.id_prefix());
    let steps = next_steps(view);
    let mut commands =
        steps.iter().map(|(_, step)| *step).chain(view.needs_you.iter().map(|need| need.command.as_str()));
    let is_missing = !view.has_team() || commands.any(|command| command == start);
    let no_planner =
        role == Role::Planner && (needs(AlarmKind::PlannerStopped) || needs(AlarmKind::SessionBudget));
    named || waits || is_missing || no_planner || needs(AlarmKind::ClientHeld)
}

/// Whether the next step sounds as if an agent would take it now.
fn is_promise(next: &Next) -> bool {
    matches!(next.who, Who::Agent(_) | Who::Role(_)) && next.behind.is_empty()
}

/// What is wrong with what a person is told about a team that rests.
fn dishonest(view: &View) -> Vec<String> {
    let mut wrong = Vec::new();
    let busy = view.agents.iter().filter(|agent| agent.is_at_work());
    wrong.extend(busy.map(|agent| format!("{} is shown at work", agent.id)));
    let retrying =
        view.agents.iter().filter(|agent| agent.next.retry().is_some() && agent.liveness.is_present());
    wrong.extend(retrying.map(|agent| format!("{} says that it tries again", agent.id)));
    let looking = view
        .needs_you
        .iter()
        .filter(|need| need.planner_looks.as_ref().is_some_and(|next| next.behind.is_empty()));
    wrong.extend(looking.map(|need| format!("the planner looks at it: {}", need.text)));
    if view.goal.as_ref().is_none_or(|goal| goal.status != GoalStatus::InProgress) {
        return wrong;
    }
    if view.needs_you.is_empty() && next_steps(view).is_empty() {
        wrong.push("nobody works, and nothing needs the person".to_owned());
    }
    let open = view.tasks.iter().filter(|task| task.phase != TaskPhase::Ended);
    let promised = open.clone().filter(|task| is_promise(&task.next));
    wrong.extend(promised.map(|task| format!("nobody does it: {}: {}", task.id, task.next)));
    let unexplained = open.filter(|task| !is_explained(view, task));
    wrong.extend(unexplained.map(|task| format!("{}: {:?}, next: {}", task.id, task.status, task.next)));
    wrong
}

/// How large the team is, its limits, and what its sessions do.
#[derive(Debug, Clone)]
pub(crate) struct Team {
    coders: u32,
    reviewers: u32,
    planners: u32,
    few_sessions: bool,
    pub(crate) moods: Vec<u8>,
}

pub(crate) fn teams() -> impl Strategy<Value = Team> {
    let moods = proptest::collection::vec(any::<u8>(), 1..40);
    let team = (0u32..3, 0u32..3, 0u32..2, any::<bool>(), moods);
    team.prop_map(|(coders, reviewers, planners, few_sessions, moods)| Team {
        coders,
        reviewers,
        planners,
        few_sessions,
        moods,
    })
}

impl Team {
    pub(crate) fn agents(&self) -> Vec<AgentId> {
        let ids = |role, n| (1..=n).map(move |number| AgentId::new(role, number));
        ids(Role::Coder, self.coders)
            .chain(ids(Role::CodeReviewer, self.reviewers))
            .chain(ids(Role::Planner, self.planners))
            .collect()
    }

    /// The same with at least one agent of each role.
    pub(crate) fn whole(&self) -> Self {
        let at_least_one = |number: u32| number.max(1);
        Self {
            coders: at_least_one(self.coders),
            reviewers: at_least_one(self.reviewers),
            planners: at_least_one(self.planners),
            ..self.clone()
        }
    }

    /// Lets it work until nobody moves; whether that came about.
    pub(crate) fn rest(&self, world: &mut World) -> bool {
        self.join(world);
        settle(world, &self.agents(), &mut Moods::new(&self.moods))
    }

    /// Starts its agents.
    pub(crate) fn join(&self, world: &mut World) {
        if self.few_sessions {
            let config = world.config();
            (config.max_sessions, config.max_planner_sessions, config.max_crashes) = (4, 3, 2);
        }
        // What earlier agents held has ended.
        world.now = world.now + Seconds::hours(1);
        self.agents().into_iter().for_each(|who| start(world, who));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Covers: UI-03
    #[test]
    fn a_team_in_which_nobody_can_go_on_says_what_it_needs(steps in steps(), team in teams()) {
        let mut world = run_sequence(&steps);
        let rests = team.rest(&mut world);
        let view = shown(&world);
        let wrong = if rests { dishonest(&view) } else { Vec::new() };
        prop_assert_eq!(wrong, Vec::<String>::new(), "{:?}", view.needs_you);
    }
}
