//! Decisions that only the human can make now, each with the command that answers it.
//!
//! One list for every screen: stops of the team, errors, alarms that agents cannot handle, questions of
//! agents, discoveries and anomalies. Decides nothing.

mod broken;
mod left_by_planner;
mod plan;
mod planner;
mod stops;

use std::cmp::Reverse;

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

use crate::alarms::held::sessions_before_end;
use crate::alarms::{Alarm, AlarmKind, AlarmLevel, AlarmText, MissingLogin, Moment, Observations};
use crate::command_line::{CommandLine, OPEN, liza};
use crate::forecast::Next;
use crate::task_words::{anomaly_name, facts};
use liza_core::model::{
    AgentRecord, Anomaly, Discovery, FaultKind, GoalStatus, MAX_FAILED_CODERS, Revision, Role, State, Status,
    StopFile, TaskId, TaskStatus, Timestamp, Urgency,
};
use liza_core::rules::questions::unresolved_anomalies;
use liza_core::rules::triggers::{Trigger, TriggerKind, proposed_revision};
use liza_core::supervise::{planner_needs_human, unseen_triggers};
use liza_core::text::{bounded, one_line};
use liza_ids::order::sort_by_key;

use broken::{broken_records, invalid};
use left_by_planner::{is_deciding, left_by_planner};
pub use plan::PlannedTask;
use plan::proposed_plan;
use planner::PlannerState;
use stops::{running_sessions, stops};

/// One decision that waits for the human.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NeedsYou {
    pub kind: AlarmKind,
    /// Other alarms about the same task, which agents handle.
    pub also: Vec<AlarmKind>,
    pub level: AlarmLevel,
    pub task: Option<TaskId>,
    /// The decision and its reason.
    pub text: AlarmText,
    /// The questions of a blocked task's coder, and those of others about it, in their own words.
    pub questions: Vec<String>,
    /// The plan that is to be approved, in the order in which it can be done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlannedTask>,
    pub command: CommandLine,
    /// The step of the planner that looks at it by itself, and may be faster.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "planner::is_some")]
    pub planner_looks: Option<Next>,
    /// The revision on the screen, if the answer is about exactly that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Revision>,
    /// The keys of the alarms that this entry includes: they are shown nowhere else.
    #[serde(skip)]
    pub includes: Vec<(AlarmKind, String)>,
}

impl NeedsYou {
    /// `None` if agents handle it.
    fn of(alarm: &Alarm) -> Option<Self> {
        Some(Self {
            kind: alarm.kind,
            also: Vec::new(),
            level: alarm.level,
            task: alarm.task.clone(),
            text: alarm.text.clone(),
            questions: Vec::new(),
            plan: Vec::new(),
            command: alarm.answer()?,
            planner_looks: None,
            seen: None,
            includes: vec![alarm.join_key()],
        })
    }

    fn is_used_up_budget(&self) -> bool {
        self.kind == AlarmKind::Budget && self.level == AlarmLevel::Critical
    }
}

/// The decisions that wait for the human, the most urgent first.
pub fn needs_you(state: &State, seen: &Observations, alarms: &[Alarm], now: Timestamp) -> Vec<NeedsYou> {
    let at = Moment { state, seen, now };
    let mut found = stops(at);
    found.extend(invalid(&seen.violations, alarms));
    found.extend(broken_records(state));
    found.extend(logins(at));
    let mut needs: Vec<NeedsYou> = found.iter().filter_map(NeedsYou::of).collect();
    needs.extend(answered(at, alarms));
    let discoveries = state.board.discovered.entries().filter(|found| found.is_open());
    let mut discoveries: Vec<Alarm> = discoveries.map(discovery).collect();
    sort_by_key(&mut discoveries, |found| Reverse(found.level));
    let mut found: Vec<Alarm> = goal(at).into_iter().chain(vision(at)).collect();
    found.extend(left_by_planner(at));
    found.extend(discoveries);
    found.extend(unresolved_anomalies(state).into_iter().map(anomaly));
    needs.extend(found.iter().filter_map(NeedsYou::of));
    if state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::Aborted) {
        needs.retain(|need| !is_about_work(need));
    }
    announce_end(&mut needs, at);
    include_others(&mut needs, alarms);
    announce_change(&mut needs, at);
    budgets_first(needs, at)
}

/// Adds the end of the team to each program that waits for the human.
fn announce_end(needs: &mut [NeedsYou], at: Moment<'_>) {
    let sentence = match sessions_before_end(at) {
        0 => return,
        1 => ". The team ends by itself after the running session".to_owned(),
        n => format!(". The team ends by itself after the {n} running sessions"),
    };
    for need in needs.iter_mut().filter(|need| need.kind == AlarmKind::ClientHeld) {
        need.text.push_str(&sentence);
    }
}

/// Adds to the plan that waits for approval that the planner may change it.
fn announce_change(needs: &mut [NeedsYou], at: Moment<'_>) {
    let why = match () {
        () if is_deciding(at) => "The planner is at work and may change it",
        () if planner_replans(at) => "The planner plans again first, since you wrote to it",
        () => return,
    };
    for need in needs.iter_mut().filter(|need| need.kind == AlarmKind::PlanProposed) {
        need.text.push_str(&format!(". {why}: wait for it, or approve it as it is"));
    }
}

/// True if the human has written something that a planner, which is here, takes up by itself.
fn planner_replans(at: Moment<'_>) -> bool {
    let is_written = |trigger: &Trigger| {
        matches!(trigger.kind, TriggerKind::HumanDecision | TriggerKind::QuestionAnswered)
    };
    at.here().has_role(Role::Planner)
        && !planner_needs_human(at.state, at.now)
        && unseen_triggers(at.state, at.now).iter().any(is_written)
}

/// The entries of another kind that include an alarm. Without a goal the team does nothing.
const INCLUDED: [(AlarmKind, AlarmKind); 4] = [
    (AlarmKind::InvalidState, AlarmKind::InvalidState),
    (AlarmKind::Goal, AlarmKind::Stalled),
    (AlarmKind::Discovery, AlarmKind::ImmediateDiscovery),
    (AlarmKind::Draft, AlarmKind::StaleDraft),
];

fn include_others(needs: &mut [NeedsYou], alarms: &[Alarm]) {
    for need in needs {
        // The checkpoint follows from the budget.
        let budget = need.is_used_up_budget().then_some(StopFile::Checkpoint);
        let file = budget.or(need.kind.stop_file());
        let includes = |alarm: &&Alarm| {
            let is_other = INCLUDED.contains(&(need.kind, alarm.kind));
            let is_own = is_other && (need.kind != AlarmKind::Draft || alarm.task == need.task);
            is_own || (file.is_some() && alarm.kind.stop_file() == file)
        };
        let others: Vec<_> = alarms.iter().filter(includes).map(Alarm::join_key).collect();
        need.includes.extend(others);
    }
}

/// True if it is about the next work of agents.
fn is_about_work(need: &NeedsYou) -> bool {
    let is_work = matches!(
        need.kind,
        AlarmKind::Question
            | AlarmKind::PlannerStopped
            | AlarmKind::SessionBudget
            | AlarmKind::RoleMissing
            | AlarmKind::PlanProposed
    );
    (need.task.is_some() && need.kind != AlarmKind::BrokenRecord) || is_work
}

/// A budget that is used up is the cause of its checkpoint, which nothing ends before it is raised.
fn budgets_first(mut needs: Vec<NeedsYou>, at: Moment<'_>) -> Vec<NeedsYou> {
    if needs.iter().any(NeedsYou::is_used_up_budget) {
        let running = at.seen.stop_files.checkpoint.map(|since| running_sessions(at, since));
        for need in needs.iter_mut().filter(|need| need.is_used_up_budget()) {
            need.text.push_str(running.as_deref().unwrap_or_default());
        }
        needs.retain(|need| need.kind != AlarmKind::Checkpoint);
        sort_by_key(&mut needs, |need| need.kind != AlarmKind::Abort && !need.is_used_up_budget());
    }
    needs
}

/// The alarms that the human answers, the worst first. The others about their tasks are part of their entries.
fn answered(at: Moment<'_>, alarms: &[Alarm]) -> Vec<NeedsYou> {
    // Those have entries of their own.
    let alarms = alarms
        .iter()
        .filter(|alarm| alarm.kind != AlarmKind::InvalidState && alarm.kind.stop_file().is_none());
    let blocked = alarms.clone().filter(|alarm| alarm.kind == AlarmKind::Blocked);
    let blocked: IndexSet<&TaskId> = blocked.filter_map(|alarm| alarm.task.as_ref()).collect();
    let planner = if blocked.is_empty() { PlannerState::default() } else { PlannerState::new(at) };
    // One answer to a question about a blocked task settles both.
    let is_part = |alarm: &&Alarm| {
        alarm.kind == AlarmKind::Question && alarm.task.as_ref().is_some_and(|task| blocked.contains(task))
    };
    let (asked, alarms): (Vec<&Alarm>, Vec<&Alarm>) = alarms.partition(is_part);
    let asked = by_task(asked);
    // An agent that asks the human has left it to the human.
    let is_left = |task: &TaskId| {
        asked.contains_key(task) || has_question(at, task) || planner.leaves_to_human(task.as_str())
    };
    let is_answered = |alarm: &&Alarm| {
        let is_planners = alarm.kind == AlarmKind::Blocked && !alarm.task.as_ref().is_some_and(is_left);
        !is_planners && alarm.answer().is_some()
    };
    let (answered, handled): (Vec<&Alarm>, Vec<&Alarm>) = alarms.into_iter().partition(is_answered);
    let handled = by_task(handled);
    let need = |alarm: &Alarm| {
        let mut need = NeedsYou::of(alarm)?;
        let others = alarm.task.as_ref().and_then(|task| handled.get(task)).into_iter().flatten();
        for other in others {
            need.level = need.level.max(other.level);
            need.also.push(other.kind);
            need.includes.push(other.join_key());
        }
        need.also.dedup();
        match (alarm.kind, &alarm.task) {
            (AlarmKind::Blocked, Some(task)) => {
                let others = asked.get(task).map(Vec::as_slice).unwrap_or_default();
                need.questions = own_questions(at.state, task);
                need.questions.extend(others.iter().map(|question| question.text.to_string()));
                need.includes.extend(others.iter().map(|question| question.join_key()));
                need.also.extend(others.first().map(|question| question.kind));
                let is_planners = others.is_empty() && !planner.leaves_to_human(task.as_str());
                need.planner_looks = is_planners.then(|| planner.looks_at(task.as_str()));
            }
            (AlarmKind::PlanProposed, _) => {
                need.plan = proposed_plan(at.state);
                need.seen = proposed_revision(at.state);
            }
            _ => {}
        }
        if let Some(next) = &need.planner_looks {
            let when = next.look_time();
            need.text.push_str(&format!("; the planner looks at it {when}, and you can answer it yourself"));
        }
        Some(need)
    };
    let mut needs: Vec<NeedsYou> = answered.into_iter().filter_map(need).collect();
    sort_by_key(&mut needs, |need| Reverse(need.level));
    needs
}

fn by_task(alarms: Vec<&Alarm>) -> IndexMap<&TaskId, Vec<&Alarm>> {
    let mut tasks: IndexMap<&TaskId, Vec<&Alarm>> = IndexMap::new();
    for alarm in alarms {
        if let Some(task) = &alarm.task {
            tasks.entry(task).or_default().push(alarm);
        }
    }
    tasks
}

/// The questions of a blocked task's coder.
pub(crate) fn own_questions(state: &State, task: &TaskId) -> Vec<String> {
    match state.board.body(task).ok().and_then(|body| body.status().ok()) {
        Some(TaskStatus::Blocked { block, .. }) => {
            block.questions.iter().map(|text| bounded(text).into_owned()).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// The goal, if it is not stated: the planner waits for it.
fn goal(at: Moment<'_>) -> Option<Alarm> {
    let goal = at.open_goal().filter(|goal| goal.description.trim().is_empty())?;
    Some(Alarm::new(AlarmKind::Goal, &goal.id, "no goal is stated"))
}

/// True if its coder asks something that an answer settles: after two failed coders, the planner decides.
fn has_question(at: Moment<'_>, task: &TaskId) -> bool {
    let failed = at.record(task).and_then(|record| record.failed_by.as_ref()).map_or(0, Vec::len);
    failed < MAX_FAILED_CODERS && !own_questions(at.state, task).is_empty()
}

/// The vision document, if it says nothing. An existing plan can do without; a template misleads reviewers.
fn vision(at: Moment<'_>) -> Option<Alarm> {
    let gap = at.seen.vision_gap?;
    let goal = at.open_goal().filter(|goal| !goal.description.trim().is_empty())?;
    let spec = goal.spec_ref.as_deref()?;
    // Once there is a plan, it no longer depends on it.
    let matters = at.board().summaries().all(|summary| summary.is(Status::Draft));
    let file = spec.split('#').next().unwrap_or(spec);
    let need = Alarm::new(AlarmKind::Vision, file, gap.problem(file)).answered(gap.command(file));
    matters.then_some(need)
}

/// The programs of the team that have no login, as far as it can be seen: none that has worked, and none that
/// says so itself. Of a team that has ended it is known only that nothing was used.
fn logins(at: Moment<'_>) -> impl Iterator<Item = Alarm> {
    let present: Vec<&AgentRecord> = at.here().agents().map(|(_, entry)| entry).collect();
    let has_worked = |client: &str, entry: &AgentRecord| {
        entry.last_session.as_ref().is_some_and(|last| last.client == client && !last.failed)
    };
    let is_held = move |client: &str| {
        let record = at.sprint().and_then(|sprint| sprint.clients.get(client));
        record.and_then(|record| record.hold.as_ref()).is_some_and(|hold| hold.kind == FaultKind::Auth)
    };
    let has_used =
        at.sprint().is_none_or(|sprint| sprint.usage.as_ref().is_some_and(|usage| !usage.is_none()));
    let missing = at.seen.missing_logins.iter().filter(move |login| {
        let works = match present.is_empty() {
            true => has_used,
            false => present.iter().any(|entry| has_worked(&login.client, entry)),
        };
        !works && !is_held(&login.client)
    });
    missing.map(login)
}

fn login(MissingLogin { client, command, more }: &MissingLogin) -> Alarm {
    let more = more.as_ref().map(|more| format!(" ({more})")).unwrap_or_default();
    let text = format!("no login of {client} was found; its sessions fail without one{more}");
    Alarm::new(AlarmKind::Login, client, text).answered(CommandLine::shell(command))
}

/// The longest texts of a discovery in the list, in characters; `liza show` and the pages have more.
const DISCOVERY_MAX: usize = 600;
const ADVICE_MAX: usize = 200;

fn discovery(found: &Discovery) -> Alarm {
    let by = found.by.as_deref().map(|by| format!(", found by {by}")).unwrap_or_default();
    let advice = found.recommendation.as_deref();
    let advice =
        advice.map(|text| format!(". Recommended: {}", one_line(text, ADVICE_MAX))).unwrap_or_default();
    let description = one_line(&found.description, DISCOVERY_MAX);
    let what = format!("{} ({}{by}): {description}{advice}", found.id, found.severity);
    let what = what.trim_end_matches('.');
    let text = format!("{what}. To make it a task: liza add \"...\", then dismiss it");
    let level = match found.urgency {
        Urgency::Immediate => AlarmLevel::Critical,
        Urgency::Deferred => AlarmLevel::Warning,
    };
    let need = Alarm::new(AlarmKind::Discovery, found.id, text).at(level);
    need.about(found.during.as_ref()).answered(liza!("dismiss", found.id))
}

fn anomaly(anomaly: &Anomaly) -> Alarm {
    let who = anomaly.reporter.as_deref().unwrap_or("unknown");
    let details: Vec<String> =
        facts(&anomaly.details).map(|(key, value)| format!("{key}: {value}")).collect();
    let text = format!("{who} reports {}: {}", anomaly_name(&anomaly.kind), details.join(", "));
    let command = match &anomaly.task {
        Some(task) => liza!("note", OPEN, "--for", task),
        None => liza!("note", OPEN),
    };
    Alarm::new(AlarmKind::Anomaly, who, text).about(anomaly.task.as_ref()).answered(command)
}
