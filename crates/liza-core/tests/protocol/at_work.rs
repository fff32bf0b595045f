//! A team at work, seen at every moment: what the screens say of agents, tasks and questions is what happens.
//!
//! As in `quiet_team`, but sessions take time and run beside each other: between any two steps a person looks.

use std::collections::BTreeMap;

use liza_core::model::{Actor, AgentId, EventName, HistoryEvent, Role, Seconds, StopFileTimes, TaskId};
use liza_core::protocol::{AddTask, Command, Heartbeat, NewTask, WriteNote};
use liza_core::rules::triggers::{PlannerWork, Trigger, TriggerKind, planner_triggers, planner_work};
use liza_core::supervise::stop_files::reconcile;
use liza_status::alarms::AlarmKind;
use liza_status::forecast::{Behind, Next, What, Who};
use liza_status::needs_you::NeedsYou;
use liza_status::view::{Liveness, TaskPhase, View};
use liza_status::words::{agent_doing, task_facts};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::quiet_team::{GOOD, Moods, Move, Session, Team, begin, shown, teams};
use crate::random::{run_sequence, steps};
use crate::world::World;

/// How long it takes from one step to the next.
const STEP: Seconds = Seconds(7);

/// How many commands lead to a board of which a good team reaches the goal while a person looks.
const FEW_STEPS: usize = 12;

/// From this number on, not an agent takes the next step, but a person.
const INTERRUPTS: u8 = 236;

/// The worlds of a run: few in the gate, as many as asked for by hand (`just worlds 10000`), then with random seeds.
fn cases() -> u32 {
    worlds().unwrap_or(64)
}

fn seed() -> RngSeed {
    if worlds().is_some() { RngSeed::Random } else { RngSeed::Fixed(7) }
}

fn worlds() -> Option<u32> {
    std::env::var("LIZA_WORLDS").ok()?.parse().ok()
}

/// A session that runs, and whether it has done what it does.
struct Running {
    session: Session,
    has_acted: bool,
}

/// A team at work.
struct Work<'m> {
    world: World,
    team: Vec<AgentId>,
    moods: Moods<'m>,
    running: BTreeMap<AgentId, Running>,
}

impl Work<'_> {
    /// A while later.
    fn wait(&mut self) {
        self.world.now = self.world.now + STEP;
        for agent in &self.team {
            let beat = Command::from(Heartbeat { agents: vec![(*agent, None)], length: None });
            let _ = self.world.run(self.world.supervisor(*agent), beat);
        }
        if let Some(command) = reconcile(&self.world.state, StopFileTimes::default(), self.world.now) {
            let _ = self.world.run(Actor::Human, command);
        }
    }

    /// The next step of an agent: to begin, to act, or to end. Says what else was announced.
    fn step(&mut self, who: AgentId, before: &View) -> Vec<String> {
        let announced = before.agents.iter().find(|agent| agent.id == who);
        let announced =
            announced.filter(|agent| agent.liveness == Liveness::Live).map(|agent| agent.next.clone());
        let is_so = match self.running.remove(&who) {
            None => match begin(&mut self.world, who, &mut self.moods) {
                Move::Started(session) => {
                    let is_so = announced.as_ref().is_none_or(|next| begins(next, session.task.as_ref()));
                    self.running.insert(who, Running { session, has_acted: false });
                    is_so
                }
                Move::Done => {
                    announced.as_ref().is_none_or(|next| next.what == What::Merge || next.held().is_some())
                }
                Move::Nothing => announced.as_ref().is_none_or(rests),
            },
            Some(Running { session, has_acted: false }) => {
                let is_so = announced.as_ref().is_none_or(|next| works(next, session.task.as_ref()));
                session.act(&mut self.world);
                self.running.insert(who, Running { session, has_acted: true });
                is_so
            }
            Some(Running { session, has_acted: true }) => {
                session.end(&mut self.world);
                true
            }
        };
        let is_refused = |next: &Next| next.on.as_ref().is_some_and(|task| self.moods.refused.contains(task));
        let wrong = announced.filter(|next| !is_so && !is_refused(next));
        wrong.map(|next| format!("announced: {next:?}")).into_iter().collect()
    }

    /// A person who adds to the work while it goes on.
    fn interrupt(&mut self, number: u8) -> Vec<String> {
        match number % 2 {
            0 => {
                let task: TaskId = format!("extra-{number}").parse().unwrap();
                let (description, spec_ref) = ("one more thing".to_owned(), Some("specs/x.md".to_owned()));
                let new = NewTask { description, spec_ref, draft: true, ..NewTask::default() };
                let _ = self.world.run(Actor::Human, Command::from(AddTask { task, new }));
            }
            _ => {
                let note = WriteNote { message: "Use metres".to_owned(), to: None };
                let _ = self.world.run(Actor::Human, Command::from(note));
            }
        }
        Vec::new()
    }

    /// What the screens say that is not so.
    fn untrue(&self, view: &View) -> Vec<String> {
        let mut wrong = self.agents(view);
        wrong.extend(self.tasks(view));
        wrong.extend(self.questions(view));
        wrong.extend(answers(view));
        wrong
    }

    /// Sessions run exactly where they are shown.
    fn agents(&self, view: &View) -> Vec<String> {
        let mut wrong = Vec::new();
        for agent in view.agents.iter().filter(|agent| agent.liveness.is_present()) {
            let runs = self.running.get(&agent.id);
            if agent.is_in_session() != runs.is_some() {
                let about = runs.map(|running| (&running.session.task, running.has_acted));
                wrong.push(format!("{}: {}; its session: {about:?}", agent.id, agent_doing(agent)));
            }
            let triggers = runs.map(|running| running.session.triggers.as_slice()).unwrap_or_default();
            let is_deciding = runs.is_some_and(|running| !running.has_acted) && !triggers.is_empty();
            let doing = agent_doing(agent);
            let current = planner_triggers(&self.world.state, self.world.now);
            let needs_decision = |trigger: &Trigger| {
                let is_told =
                    matches!(trigger.kind, TriggerKind::QuestionAnswered | TriggerKind::HumanDecision);
                !is_told && current.iter().any(|open| open.key == trigger.key)
            };
            // Others may have settled what it was to look at first.
            let looks_at = |trigger: &Trigger| doing.starts_with(&format!("LOOKING at {}", trigger.subject));
            let is_so = match planner_work(triggers) {
                PlannerWork::Planning => doing.starts_with("PLANNING"),
                PlannerWork::Judging => doing.starts_with("JUDGING"),
                PlannerWork::LookingAt(_) => triggers.iter().any(|trigger| match trigger.kind {
                    TriggerKind::NewDraft => doing.starts_with("PLANNING"),
                    // It plans with what it was told, if all that needed a decision is settled.
                    TriggerKind::QuestionAnswered | TriggerKind::HumanDecision => {
                        doing.starts_with("PLANNING") && !triggers.iter().any(needs_decision)
                    }
                    _ => looks_at(trigger),
                }),
            };
            if is_deciding && !is_so {
                wrong.push(format!("{}: {doing}, it was woken for {triggers:?}", agent.id));
            }
        }
        wrong
    }

    /// A task with a session is shown with it, and one without does not look so.
    fn tasks(&self, view: &View) -> Vec<String> {
        let mut wrong = Vec::new();
        for task in &view.tasks {
            let on = |who: &AgentId| {
                let running = self.running.get(who).filter(|running| !running.has_acted);
                running.is_some_and(|running| running.session.task.as_ref() == Some(&task.id))
            };
            let owner = self.running.keys().find(|who| on(who)).copied();
            let waits = !task.next.behind.is_empty();
            if owner.is_some() && (task.owner != owner || waits) {
                wrong.push(format!("{owner:?} works on {}: {:?}", task.id, task_facts(task)));
            }
            let busy = |who: AgentId| self.running.get(&who).is_some_and(|running| !running.has_acted);
            if task.phase == TaskPhase::Working && owner.is_none() && !waits && task.owner.is_some_and(busy) {
                wrong.push(format!("{} works on something else: {:?}", task.id, task_facts(task)));
            }
        }
        wrong
    }

    /// What the planner is said to have left, no session of it takes up.
    fn taken_up(&self, before: &View) -> Vec<String> {
        let left = before.needs_you.iter().filter(|need| {
            matches!(need.kind, AlarmKind::Draft | AlarmKind::DeadDependency) && need.planner_looks.is_none()
        });
        let planner = self.running.iter().find(|(who, _)| who.role() == Role::Planner);
        let new = planner.filter(|(_, running)| running.session.started == self.world.now);
        // For another matter of the task it may be woken.
        let takes = |need: &NeedsYou| {
            let kind = match need.kind {
                AlarmKind::Draft => TriggerKind::NewDraft,
                _ => TriggerKind::DeadDependency,
            };
            let mut triggers = new.into_iter().flat_map(|(_, running)| &running.session.triggers);
            let subject = need.task.as_ref().map(ToString::to_string);
            triggers.any(|trigger| trigger.kind == kind && Some(&trigger.subject) == subject.as_ref())
        };
        left.filter(|need| takes(need))
            .map(|need| format!("the planner takes it up: {}", need.text))
            .collect()
    }

    /// What the planner is said to look at now, it looks at; what it looks at next, not yet.
    fn questions(&self, view: &View) -> Vec<String> {
        let planner = self.running.iter().find(|(who, _)| who.role() == Role::Planner);
        let blocked = |task: &TaskId| {
            let record = self.world.state.board.body(task).ok()?.record();
            record.last_event(EventName::Blocked).map(|event| event.time)
        };
        // What was blocked again since it began is not what it was woken for.
        let is_asked = |task: &TaskId| {
            planner.is_some_and(|(_, running)| {
                let session = &running.session;
                session.triggers.iter().any(|trigger| trigger.subject == task.as_str())
                    && blocked(task).is_none_or(|time| time <= session.started)
            })
        };
        // Woken for one matter of a task, it has not yet looked at another one.
        let current = planner_triggers(&self.world.state, self.world.now);
        let is_other = |trigger: &&Trigger| {
            planner.is_some_and(|(_, running)| {
                running
                    .session
                    .triggers
                    .iter()
                    .all(|known| (known.kind, &known.subject) != (trigger.kind, &trigger.subject))
            })
        };
        let has_other =
            |task: &TaskId| current.iter().filter(is_other).any(|trigger| trigger.subject == task.as_str());
        let mut wrong = Vec::new();
        for need in &view.needs_you {
            let (Some(looks), Some(task)) = (&need.planner_looks, &need.task) else { continue };
            let is_true = match looks.behind.first() {
                // Without a session it begins one at once.
                None => planner.is_none() || is_asked(task),
                Some(Behind::OtherDecisions) => planner.is_some() && (!is_asked(task) || has_other(task)),
                Some(_) => true,
            };
            if !is_true {
                wrong.push(format!("{task}: {looks}: {}", need.text));
            }
        }
        wrong
    }
}

/// True if this announces a session on that task; a planner's is about none.
fn begins(next: &Next, task: Option<&TaskId>) -> bool {
    let is_kind = match next.what {
        What::Claim | What::SetUp | What::Review | What::Continue => task.is_some(),
        What::Plan { .. } | What::Judge | What::LookAt(_) => task.is_none(),
        _ => false,
    };
    let is_held = next.held().is_some_and(|held| held.again_in != Some(Seconds(0)));
    is_kind && next.on.as_ref() == task && !is_held
}

/// True if this announces what a session on that task does; what it was for may have ended meanwhile.
fn works(next: &Next, task: Option<&TaskId>) -> bool {
    match next.what {
        What::Submit | What::Validate | What::Verdict => next.on.as_ref() == task,
        What::Plan { .. } | What::Judge | What::LookAt(_) => task.is_none(),
        What::EndSession { .. } => true,
        _ => false,
    }
}

/// True if this announces that nothing happens now.
fn rests(next: &Next) -> bool {
    next.what == What::Wait || !next.behind.is_empty()
}

/// Entries of NEEDS YOU that are no alarms.
const DECISIONS: [AlarmKind; 6] = [
    AlarmKind::BrokenRecord,
    AlarmKind::Discovery,
    AlarmKind::Anomaly,
    AlarmKind::Goal,
    AlarmKind::Draft,
    AlarmKind::DeadDependency,
];

/// An alarm that the human answers has the same command in both lists.
fn answers(view: &View) -> Vec<String> {
    let is_same = |need: &NeedsYou| {
        let mut alerts =
            view.alerts.iter().filter(|alert| alert.kind == need.kind && alert.task == need.task);
        alerts.any(|alert| alert.command.as_deref() == Some(&need.command))
    };
    let is_alarm = |need: &&NeedsYou| !DECISIONS.contains(&need.kind);
    let lost = view.needs_you.iter().filter(is_alarm).filter(|need| !is_same(need));
    lost.map(|need| format!("no alert has its command: {need:?}")).collect()
}

/// The agent whose step is next, as each open task names it.
fn promised(view: &View) -> BTreeMap<TaskId, (AgentId, String)> {
    let open = view.tasks.iter().filter(|task| task.phase != TaskPhase::Ended);
    let named = open.filter_map(|task| {
        let Who::Agent(who) = task.next.who else { return None };
        Some((task.id.clone(), (who, task.next.to_string())))
    });
    named.collect()
}

/// The last thing that an agent did to a task.
fn last_event(world: &World, task: &TaskId) -> Option<HistoryEvent> {
    let record = world.state.board.body(task).ok()?.record();
    let by_agent = |event: &&HistoryEvent| {
        !event.is(EventName::SessionEnded)
            && event.agent.as_deref().is_some_and(|name| name.parse::<AgentId>().is_ok())
    };
    record.events().rev().find(by_agent).cloned()
}

/// Lets a team work, and says what was untrue at some moment.
fn watch(world: World, team: &Team, moods: &[u8], order: &[u8], is_good: bool) -> Vec<String> {
    let agents = team.agents();
    let mut work = Work { world, team: agents.clone(), moods: Moods::new(moods), running: BTreeMap::new() };
    for number in order.iter().filter(|_| !agents.is_empty()) {
        work.wait();
        let before = shown(&work.world);
        let promises = promised(&before);
        let seen: Vec<_> = promises.keys().map(|task| last_event(&work.world, task)).collect();
        let mut wrong = match number.checked_sub(INTERRUPTS) {
            Some(what) => work.interrupt(what),
            None => work.step(agents[usize::from(*number) % agents.len()], &before),
        };
        let view = shown(&work.world);
        wrong.extend(work.untrue(&view));
        wrong.extend(work.taken_up(&before));
        for ((task, (who, text)), seen) in promises.iter().zip(seen).filter(|_| is_good) {
            let event = last_event(&work.world, task);
            let by = event.as_ref().and_then(|event| event.agent.clone());
            if event != seen && by != Some(who.to_string()) {
                wrong.push(format!("{task}: {text}, but it was {event:?}"));
            }
        }
        if !wrong.is_empty() {
            return wrong;
        }
    }
    Vec::new()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 64, failure_persistence: None, rng_seed: seed(), ..ProptestConfig::default() })]

    /// Covers: UI-01, UI-03
    #[test]
    fn what_the_screens_say_of_a_team_at_work_is_so(
        steps in steps(),
        team in teams(),
        order in proptest::collection::vec(any::<u8>(), 1..240),
        is_good in any::<bool>(),
    ) {
        // A team that reaches its goal, or any other one.
        let few = steps.len().min(FEW_STEPS);
        let mut world = run_sequence(if is_good { &steps[..few] } else { &steps });
        let (team, moods) = if is_good { (team.whole(), vec![GOOD]) } else { (team.clone(), team.moods) };
        team.join(&mut world);
        let wrong = watch(world, &team, &moods, &order, is_good);
        prop_assert_eq!(wrong, Vec::<String>::new());
    }
}
