//! Decisions that only the human can make now, each with the command that answers it.
//!
//! One list for every screen: stops of the team, errors, alarms that agents cannot handle, questions of
//! agents, discoveries and anomalies. Decides nothing.

mod broken;
mod left_by_planner;
mod plan;
mod planner;
mod stops;
mod team_end;

use std::cmp::Reverse;
use std::fmt;

use indexmap::{IndexMap, IndexSet};
use serde::{Serialize, Serializer};

use crate::alarms::task::verdict_command;
use crate::alarms::{
    Alarm, AlarmKind, AlarmLevel, AlarmSubject, AlarmText, Answer, MissingLogin, Observations,
    TeamFileChange, budget_subject,
};
use crate::alarms::{failing, refused, setup};
use crate::command_line::{CommandLine, OPEN, liza};
use crate::task_words::{anomaly_name, facts};
use liza_core::model::{
    AgentRecord, Anomaly, ClientHold, Discovery, FaultKind, Fields, GoalStatus, MAX_FAILED_CODERS, Revision,
    Role, Severity, State, Status, StopFile, TEAM_FILE, TaskBody, TaskId, TaskStatus, Timestamp, Urgency,
};
use liza_core::rules::clients::{first_verb, waits_for_human};
use liza_core::rules::questions::unresolved_anomalies;
use liza_core::rules::spending::{Spending, spending};
use liza_core::rules::triggers::{Trigger, TriggerKind, proposed_revision};
use liza_core::supervise::{planner_needs_human, unseen_triggers};
use liza_core::text::{bounded, one_line};
use liza_ids::order::sort_by_key;

use broken::{broken_records, invalid};
use left_by_planner::{is_deciding, left_by_planner};
pub use plan::PlannedTask;
use plan::proposed_plan;
pub use planner::PlannerLooks;
use planner::PlannerState;
use stops::{running_sessions, since, stops};
use team_end::announce_end;

/// One decision that waits for the human.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NeedsYou {
    pub kind: NeedKind,
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
    /// The time at which the planner looks at it by itself, and may be faster.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "planner::is_some")]
    pub planner_looks: Option<PlannerLooks>,
    /// The revision on the screen, if the answer is about exactly that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Revision>,
    /// The keys of the alarms that this entry includes: they are shown nowhere else.
    #[serde(skip)]
    pub includes: Vec<(AlarmKind, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedKind {
    Stopped(StopFile),
    /// An alarm that agents cannot handle.
    Alarm(AlarmKind),
    BrokenRecord,
    /// A finding that is not a task yet.
    Discovery,
    /// An agent's report that the human has not commented on.
    Anomaly,
    /// The vision document is not written.
    Vision,
    Goal,
    /// No login of an agent program is found.
    Login,
    /// A draft that no agent finishes.
    Draft,
    /// A task that waits for one that will never be merged.
    DeadDependency,
}

impl NeedKind {
    pub fn alarm(self) -> Option<AlarmKind> {
        match self {
            NeedKind::Alarm(kind) => Some(kind),
            NeedKind::Stopped(_)
            | NeedKind::BrokenRecord
            | NeedKind::Discovery
            | NeedKind::Anomaly
            | NeedKind::Vision
            | NeedKind::Goal
            | NeedKind::Login
            | NeedKind::Draft
            | NeedKind::DeadDependency => None,
        }
    }
}

impl fmt::Display for NeedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NeedKind::Stopped(file) => f.pad(file.name()),
            NeedKind::Alarm(kind) => kind.fmt(f),
            NeedKind::BrokenRecord => f.pad("BROKEN RECORD"),
            NeedKind::Discovery => f.pad("DISCOVERY"),
            NeedKind::Anomaly => f.pad("ANOMALY"),
            NeedKind::Vision => f.pad("VISION"),
            NeedKind::Goal => f.pad("GOAL"),
            NeedKind::Login => f.pad("LOGIN"),
            NeedKind::Draft => f.pad("DRAFT"),
            NeedKind::DeadDependency => f.pad("DEAD DEPENDENCY"),
        }
    }
}

impl Serialize for NeedKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl NeedsYou {
    fn new(kind: NeedKind, level: AlarmLevel, text: impl Into<AlarmText>, command: CommandLine) -> Self {
        let text = text.into();
        Self {
            kind,
            also: Vec::new(),
            level,
            task: None,
            text,
            questions: Vec::new(),
            plan: Vec::new(),
            command,
            planner_looks: None,
            seen: None,
            includes: Vec::new(),
        }
    }

    fn about(self, task: Option<&TaskId>) -> Self {
        Self { task: task.cloned(), ..self }
    }
}

/// The decisions that wait for the human, the most urgent first.
pub fn needs_you(state: &State, seen: &Observations, alarms: &[Alarm], now: Timestamp) -> Vec<NeedsYou> {
    let is_stop = |alarm: &Alarm| alarm.kind.stop_file().is_some_and(|file| since(seen, file).is_some());
    let rest = alarms.iter().filter(|alarm| alarm.kind != AlarmKind::InvalidState && !is_stop(alarm));
    let discoveries = state.board.discovered.entries().filter(|found| found.is_open());
    let mut discoveries: Vec<NeedsYou> = discoveries.map(discovery).collect();
    sort_by_key(&mut discoveries, |need| Reverse(need.level));
    let mut needs = stops(state, seen, now);
    needs.extend(invalid(&seen.violations, alarms));
    needs.extend(broken_records(state));
    needs.extend(logins(state, seen, now));
    needs.extend(Answers::new(state, seen, rest.collect(), now).needs(state));
    needs.extend(goal(state));
    needs.extend(vision(state, seen));
    needs.extend(left_by_planner(state, seen, now));
    needs.extend(discoveries);
    needs.extend(unresolved_anomalies(state).into_iter().map(anomaly));
    if state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::Aborted) {
        needs.retain(|need| !is_about_work(need));
    }
    announce_end(&mut needs, state, seen, now);
    include_others(&mut needs, alarms);
    let replans = || {
        planner_replans(state, seen, now).then_some(". The planner plans again first, since you wrote to it")
    };
    let decides = is_deciding(state, seen, now).then_some(". The planner is at work and may change it");
    if let Some(why) = decides.or_else(replans) {
        let is_plan = |need: &&mut NeedsYou| need.kind == NeedKind::Alarm(AlarmKind::PlanProposed);
        let changes = format!("{why}: wait for it, or approve it as it is");
        needs.iter_mut().filter(is_plan).for_each(|need| need.text.push_str(&changes));
    }
    let running = seen.stop_files.checkpoint.map(|since| running_sessions(state, seen, since, now));
    budgets_first(needs, &running.unwrap_or_default())
}

/// True if the human has written something that a planner, which is here, takes up by itself.
fn planner_replans(state: &State, seen: &Observations, now: Timestamp) -> bool {
    let is_written = |trigger: &Trigger| {
        matches!(trigger.kind, TriggerKind::HumanDecision | TriggerKind::QuestionAnswered)
    };
    seen.presence(&state.board, now).has_role(Role::Planner)
        && !planner_needs_human(state, now)
        && unseen_triggers(state, now).iter().any(is_written)
}

/// Adds the alarms that an entry of another kind includes.
fn include_others(needs: &mut [NeedsYou], alarms: &[Alarm]) {
    for need in needs {
        let task = need.task.as_ref();
        let is_same: &dyn Fn(&Alarm) -> bool = match need.kind {
            NeedKind::Stopped(file) => &move |alarm| alarm.kind.stop_file() == Some(file),
            // The checkpoint follows from the budget.
            NeedKind::Alarm(AlarmKind::Budget) if need.level == AlarmLevel::Critical => {
                &|alarm| alarm.kind.stop_file() == Some(StopFile::Checkpoint)
            }
            NeedKind::Alarm(AlarmKind::InvalidState) => &|alarm| alarm.kind == AlarmKind::InvalidState,
            // Without a goal the team does nothing.
            NeedKind::Goal => &|alarm| alarm.kind == AlarmKind::Stalled,
            NeedKind::Draft => {
                &move |alarm| alarm.kind == AlarmKind::StaleDraft && alarm.subject.task() == task
            }
            NeedKind::Discovery => &|alarm| alarm.kind == AlarmKind::ImmediateDiscovery,
            NeedKind::Alarm(_)
            | NeedKind::BrokenRecord
            | NeedKind::Anomaly
            | NeedKind::Vision
            | NeedKind::Login
            | NeedKind::DeadDependency => continue,
        };
        let others: Vec<_> = alarms.iter().filter(|alarm| is_same(alarm)).map(Alarm::join_key).collect();
        need.includes.extend(others);
    }
}

/// True if it is about the next work of agents.
fn is_about_work(need: &NeedsYou) -> bool {
    let is_work = |kind: AlarmKind| {
        matches!(
            kind,
            AlarmKind::Question
                | AlarmKind::PlannerStopped
                | AlarmKind::SessionBudget
                | AlarmKind::RoleMissing
                | AlarmKind::PlanProposed
        )
    };
    (need.task.is_some() && need.kind != NeedKind::BrokenRecord) || need.kind.alarm().is_some_and(is_work)
}

/// A budget that is used up is the cause of its checkpoint, which nothing ends before it is raised.
fn budgets_first(mut needs: Vec<NeedsYou>, running: &str) -> Vec<NeedsYou> {
    let is_used_up = |need: &NeedsYou| {
        need.kind == NeedKind::Alarm(AlarmKind::Budget) && need.level == AlarmLevel::Critical
    };
    if needs.iter().any(is_used_up) {
        needs.iter_mut().filter(|need| is_used_up(need)).for_each(|need| need.text.push_str(running));
        needs.retain(|need| need.kind != NeedKind::Stopped(StopFile::Checkpoint));
        sort_by_key(&mut needs, |need| need.kind != NeedKind::Stopped(StopFile::Abort) && !is_used_up(need));
    }
    needs
}

/// The alarms with the command that answers each; agents handle those without one.
struct Answers<'a> {
    alarms: Vec<(&'a Alarm, Option<CommandLine>)>,
    /// Questions about a blocked task: they are part of its entry, and one answer settles both.
    asked: IndexMap<&'a TaskId, Vec<&'a Alarm>>,
    handled: IndexMap<&'a TaskId, Vec<&'a Alarm>>,
    planner: PlannerState,
}

impl<'a> Answers<'a> {
    fn new(state: &State, seen: &Observations, alarms: Vec<&'a Alarm>, now: Timestamp) -> Self {
        let blocked: IndexSet<&TaskId> = about(&alarms, AlarmKind::Blocked).map(|(task, _)| task).collect();
        let planner =
            if blocked.is_empty() { PlannerState::default() } else { PlannerState::new(state, seen, now) };
        let mut asked: IndexMap<&TaskId, Vec<&Alarm>> = IndexMap::new();
        for (task, alarm) in about(&alarms, AlarmKind::Question).filter(|(task, _)| blocked.contains(task)) {
            asked.entry(task).or_default().push(alarm);
        }
        let alarms: Vec<&Alarm> = alarms.into_iter().filter(|alarm| !is_part(alarm, &asked)).collect();
        let answer = |alarm: &Alarm| {
            let is_asked = alarm.kind == AlarmKind::Blocked
                && alarm.subject.task().is_some_and(|task| asked.contains_key(task));
            // An agent that asks the human has left it to the human.
            let answer = is_asked.then(|| answer_command(&alarm.subject));
            answer.or_else(|| command(state, seen, alarm, &planner, now))
        };
        let alarms: Vec<_> = alarms.into_iter().map(|alarm| (alarm, answer(alarm))).collect();
        let mut handled: IndexMap<&TaskId, Vec<&Alarm>> = IndexMap::new();
        for (alarm, answer) in &alarms {
            if let (Some(task), None) = (alarm.subject.task(), answer) {
                handled.entry(task).or_default().push(alarm);
            }
        }
        Self { alarms, asked, handled, planner }
    }

    fn needs(&self, state: &State) -> Vec<NeedsYou> {
        let need = |(alarm, answer): &(&Alarm, Option<CommandLine>)| {
            let task = alarm.subject.task();
            let others = task.and_then(|task| self.handled.get(task)).map(Vec::as_slice).unwrap_or_default();
            let level = others.iter().map(|other| other.level).max().unwrap_or(alarm.level).max(alarm.level);
            let mut also: Vec<AlarmKind> = others.iter().map(|other| other.kind).collect();
            also.dedup();
            let mut includes: Vec<(AlarmKind, String)> =
                [*alarm].into_iter().chain(others.iter().copied()).map(Alarm::join_key).collect();
            let mut questions = Vec::new();
            if alarm.kind == AlarmKind::Blocked {
                let others = task.and_then(|task| self.asked.get(task)).into_iter().flatten();
                questions = asked(state, task);
                questions.extend(others.clone().map(|question| question.text.to_string()));
                includes.extend(others.clone().map(|question| question.join_key()));
                also.extend(others.map(|question| question.kind).take(1));
            }
            let (mut text, planner_looks) = (alarm.text.clone(), self.planner_looks(alarm));
            if let Some(when) = planner_looks {
                let when = when.words();
                text.push_str(&format!("; the planner looks at it {when}, and you can answer it yourself"));
            }
            let need = NeedsYou::new(NeedKind::Alarm(alarm.kind), level, text, answer.clone()?);
            let is_plan = alarm.kind == AlarmKind::PlanProposed;
            let seen = is_plan.then(|| proposed_revision(state)).flatten();
            let plan = if is_plan { proposed_plan(state) } else { Vec::new() };
            Some(NeedsYou { also, questions, plan, planner_looks, seen, includes, ..need.about(task) })
        };
        let mut needs: Vec<NeedsYou> = self.alarms.iter().filter_map(need).collect();
        sort_by_key(&mut needs, |need| Reverse(need.level));
        needs
    }

    /// The time at which the planner looks at a new blocked task, if no one has asked the human.
    fn planner_looks(&self, alarm: &Alarm) -> Option<PlannerLooks> {
        let is_asked = alarm.subject.task().is_some_and(|task| self.asked.contains_key(task));
        let looks =
            alarm.kind == AlarmKind::Blocked && !is_asked && !self.planner.leaves_to_human(&alarm.subject);
        looks.then(|| self.planner.looks_at(&alarm.subject))
    }
}

/// The alarms of that kind about a task, with the task.
fn about<'a>(alarms: &[&'a Alarm], kind: AlarmKind) -> impl Iterator<Item = (&'a TaskId, &'a Alarm)> {
    let own = alarms.iter().filter(move |alarm| alarm.kind == kind);
    own.filter_map(|alarm| Some((alarm.subject.task()?, *alarm)))
}

/// True if it is a question about a task whose entry has it.
fn is_part(alarm: &Alarm, asked: &IndexMap<&TaskId, Vec<&Alarm>>) -> bool {
    alarm.kind == AlarmKind::Question && alarm.subject.task().is_some_and(|task| asked.contains_key(task))
}

/// The questions of a blocked task's coder.
fn asked(state: &State, task: Option<&TaskId>) -> Vec<String> {
    let body = task.and_then(|task| state.board.body(task).ok());
    let status = body.and_then(|body| body.status().ok());
    if let Some(TaskStatus::Blocked { block, .. }) = status {
        block.questions.iter().map(|text| bounded(text).into_owned()).collect()
    } else {
        Vec::new()
    }
}

/// The goal, if it is not stated: the planner waits for it.
fn goal(state: &State) -> Option<NeedsYou> {
    let goal = state.board.goal.ready().filter(|goal| goal.status == GoalStatus::InProgress)?;
    let (text, command) = ("no goal is stated".to_owned(), liza!("goal", "new", OPEN));
    let missing = goal.description.trim().is_empty();
    missing.then(|| NeedsYou::new(NeedKind::Goal, AlarmLevel::Warning, text, command))
}

/// True if its coder asks something that an answer settles: after two failed coders, the planner decides.
fn has_question(state: &State, task: Option<&TaskId>) -> bool {
    let record = task.and_then(|task| state.board.body(task).ok()).map(TaskBody::record);
    let failed = record.and_then(|record| record.failed_by.as_ref()).map_or(0, Vec::len);
    failed < MAX_FAILED_CODERS && !asked(state, task).is_empty()
}

/// The vision document, if it says nothing. An existing plan can do without; a template misleads reviewers.
fn vision(state: &State, seen: &Observations) -> Option<NeedsYou> {
    let gap = seen.vision_gap?;
    let goal = state.board.goal.ready().filter(|goal| goal.status == GoalStatus::InProgress)?;
    let spec = goal.spec_ref.as_deref().filter(|_| !goal.description.trim().is_empty())?;
    // Once there is a plan, it no longer depends on it.
    let matters = state.board.summaries().all(|summary| summary.is(Status::Draft));
    let file = spec.split('#').next().unwrap_or(spec);
    let (text, command) = (gap.problem(file), gap.command(file));
    matters.then(|| NeedsYou::new(NeedKind::Vision, AlarmLevel::Warning, text, command))
}

/// The programs of the team that have no login, as far as it can be seen: none that has worked, and none that
/// says so itself. Of a team that has ended it is known only that nothing was used.
fn logins<'a>(
    state: &'a State,
    seen: &'a Observations,
    now: Timestamp,
) -> impl Iterator<Item = NeedsYou> + use<'a> {
    let present: Vec<&AgentRecord> =
        seen.presence(&state.board, now).agents().map(|(_, entry)| entry).collect();
    let has_worked = |client: &str, entry: &AgentRecord| {
        entry.last_session.as_ref().is_some_and(|last| last.client == client && !last.failed)
    };
    let is_held = |client: &str| {
        let record = state.board.sprint.ready().and_then(|sprint| sprint.clients.get(client));
        record.and_then(|record| record.hold.as_ref()).is_some_and(|hold| hold.kind == FaultKind::Auth)
    };
    let sprint = state.board.sprint.ready();
    let has_used = sprint.is_none_or(|sprint| sprint.usage.as_ref().is_some_and(|usage| !usage.is_none()));
    let missing = seen.missing_logins.iter().filter(move |login| {
        let works = match present.is_empty() {
            true => has_used,
            false => present.iter().any(|entry| has_worked(&login.client, entry)),
        };
        !works && !is_held(&login.client)
    });
    missing.map(login)
}

fn login(missing: &MissingLogin) -> NeedsYou {
    let more = missing.more.as_ref().map(|more| format!(" ({more})")).unwrap_or_default();
    let text = format!("no login of {} was found; its sessions fail without one{more}", missing.client);
    NeedsYou::new(NeedKind::Login, AlarmLevel::Critical, text, CommandLine::shell(&missing.command))
}

/// The longest texts of a discovery in the list, in characters; `liza show` and the pages have more.
const DISCOVERY_MAX: usize = 600;
const ADVICE_MAX: usize = 200;

fn discovery(found: &Discovery) -> NeedsYou {
    let by = found.by.as_deref().map(|by| format!(", found by {by}")).unwrap_or_default();
    let advice = found.recommendation.as_deref();
    let advice =
        advice.map(|text| format!(". Recommended: {}", one_line(text, ADVICE_MAX))).unwrap_or_default();
    let description = one_line(&found.description, DISCOVERY_MAX);
    let what = format!("{} ({}{by}): {description}{advice}", found.id, severity(found.severity));
    let what = what.trim_end_matches('.');
    let text = format!("{what}. To make it a task: liza add \"...\", then dismiss it");
    let level = match found.urgency {
        Urgency::Immediate => AlarmLevel::Critical,
        Urgency::Deferred => AlarmLevel::Warning,
    };
    let command = liza!("dismiss", found.id);
    NeedsYou::new(NeedKind::Discovery, level, text, command).about(found.during.as_ref())
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
    }
}

fn anomaly(anomaly: &Anomaly) -> NeedsYou {
    let who = anomaly.reporter.as_deref().unwrap_or("unknown");
    let text = format!("{who} reports {}: {}", anomaly_name(&anomaly.kind), details(&anomaly.details));
    let command = match &anomaly.task {
        Some(task) => liza!("note", OPEN, "--for", task),
        None => liza!("note", OPEN),
    };
    NeedsYou::new(NeedKind::Anomaly, AlarmLevel::Warning, text, command).about(anomaly.task.as_ref())
}

fn details(details: &Fields) -> String {
    facts(details).map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>().join(", ")
}

/// The command that raises a budget that is used up.
fn raise_budget(state: &State, subject: &AlarmSubject, now: Timestamp) -> Option<CommandLine> {
    let spent = spending(&state.board, now).into_iter().filter(Spending::is_used_up);
    let spent = spent.into_iter().find(|spent| budget_subject(spent) == *subject)?;
    Some(liza!("config", spent.setting(), OPEN))
}

fn answer_command(subject: &AlarmSubject) -> CommandLine {
    match subject.task() {
        Some(task) => liza!("answer", task, OPEN),
        None => liza!("note", OPEN),
    }
}

/// The command that accepts a task's change of the gate.
pub(crate) fn accept_gate(state: &State, task: &TaskId) -> CommandLine {
    let change = state.board.body(task).ok().and_then(|body| body.record().gate_change.clone());
    let fails = change.is_some_and(|change| change.old_failure.is_some());
    let words = ["accept-gate", task.as_str()].into_iter().chain(fails.then_some("--old-fails"));
    CommandLine::liza(words)
}

/// `None` if agents handle the alarm.
fn command(
    state: &State,
    seen: &Observations,
    alarm: &Alarm,
    planner: &PlannerState,
    now: Timestamp,
) -> Option<CommandLine> {
    match alarm.kind.answer() {
        Answer::Agents => None,
        Answer::Human(words) => Some(CommandLine::liza(words)),
        Answer::About(words) => {
            let words = words.iter().map(ToString::to_string);
            Some(CommandLine::liza(words.chain([alarm.subject.to_string()])))
        }
        Answer::Question => Some(answer_command(&alarm.subject)),
        Answer::Verdict => {
            let task = alarm.subject.task()?;
            Some(verdict_command(task, state.board.body(task).ok()?.record()))
        }
        Answer::Blocked => (has_question(state, alarm.subject.task())
            || planner.leaves_to_human(&alarm.subject))
        .then(|| answer_command(&alarm.subject)),
        Answer::Planner => Some(start_planner(state, seen, now)),
        Answer::Budget if alarm.level == AlarmLevel::Warning => None,
        Answer::Budget => raise_budget(state, &alarm.subject, now),
        Answer::Setup => Some(setup::command(state, &alarm.subject)),
        Answer::Port => Some(refused::command(state, &alarm.subject)),
        Answer::Work => Some(failing::command(seen, &alarm.subject)),
        Answer::Remote => seen.remote_problem.as_ref().map(|problem| problem.command.clone()),
        Answer::TeamFile => seen.team_file_change.as_ref().map(|change| match change {
            TeamFileChange::CheckedOut => liza!("config", "--trust"),
            TeamFileChange::OnBranch(branch) => {
                CommandLine::shell(format!("git diff HEAD {branch} -- {TEAM_FILE}"))
            }
        }),
        Answer::Gate => alarm.subject.task().map(|task| accept_gate(state, task)),
        Answer::Client => waiting_hold(state, &alarm.subject).map(|hold| {
            match seen.presence(&state.board, now).has_team() {
                true => liza!(first_verb(hold)),
                false => seen.start.run.clone(),
            }
        }),
    }
}

/// The command that lets a planner try again. One that runs reads a note; each new one begins from zero.
fn start_planner(state: &State, seen: &Observations, now: Timestamp) -> CommandLine {
    let here = seen.presence(&state.board, now);
    match here.has_team() {
        false => seen.start.run.clone(),
        true if here.has_role(Role::Planner) => liza!("note", OPEN),
        true => seen.start.agent(Role::Planner).clone(),
    }
}

/// The hold of a client that only the human lets continue.
fn waiting_hold<'s>(state: &'s State, client: &AlarmSubject) -> Option<&'s ClientHold> {
    let clients = &state.board.sprint.ready()?.clients;
    clients.get(&client.to_string()).filter(|client| waits_for_human(client))?.hold.as_ref()
}
