//! The one read model: the blackboard as status, the screens and programs show it.
//!
//! A pure function of state, observations and `now`; decides nothing and formats nothing for a screen.
//! Liveness is derived from leases here, so no screen can show a dead agent as working.

mod agent;
mod charts;
mod detail;
mod graph;
mod merging;
mod next_step;
mod outlook;
mod task;

use std::collections::BTreeMap;

use indexmap::IndexMap;

use serde::Serialize;

use crate::alarms::{Alarm, AlarmKind, AlarmLevel, AlarmText, MainBranch, Moment, Observations, alarms};
use crate::command_line::{CommandLine, StartCommands};
use crate::needs_you::{NeedsYou, needs_you};
use liza_core::evidence::ReviewerRates;
use liza_core::model::{
    Board, ClientRecord, Discovery, Goal, Metrics, Revision, Sprint, SprintStatus, State, Status, StopFile,
    TaskId, Timestamp, Usage,
};
use liza_core::rules::claimable::{claimable, reviewable};
use liza_core::rules::clients::{Continuation, describe_hold};
use liza_core::rules::metrics::sprint_metrics;
use liza_core::rules::spending::{Spending, spending};
use liza_core::rules::sprint::planned_with_replacements;
use liza_core::rules::triggers::planner_triggers;
use liza_ids::order::sort_by_key;

pub use crate::alarms::held::HeldView;
pub use agent::AgentView;
pub use charts::{AgentCost, BurnUpPoint, Charts, CycleTime, ReviewerFigures, charts};
pub use detail::{TaskDetail, task_detail};
pub use graph::{DependencyNode, dependency_graph};
pub use liza_core::rules::presence::Liveness;
pub use merging::MergeView;
pub use outlook::TaskPhase;
pub use task::{LeaseView, TaskView, UnmetDependency};

#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub revision: Revision,
    pub now: Timestamp,
    pub goal: Option<Goal>,
    pub sprint: Option<SprintView>,
    pub stopped: Vec<StopView>,
    /// All tasks on the board, first those that need a decision.
    pub tasks: Vec<TaskView>,
    pub agents: Vec<AgentView>,
    /// The worst first.
    pub alerts: Vec<Alert>,
    pub needs_you: Vec<NeedsYou>,
    pub held_clients: Vec<HeldClient>,
    /// The merge that is running here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeView>,
    /// The best first.
    pub claimable: Vec<TaskId>,
    /// The best first.
    pub reviewable: Vec<TaskId>,
    /// The most urgent first.
    pub planner_triggers: Vec<TriggerView>,
    /// Discoveries that have not become tasks.
    pub discoveries: Vec<Discovery>,
    /// The number of tasks in the archive.
    pub archived: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Spending>,
    /// The distance of the result from the main branch, once the goal is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_branch: Option<MainBranch>,
    #[serde(skip)]
    pub start: StartCommands,
    /// What drills say of the reviewers of this project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drilled: Vec<ReviewerRates>,
}

impl View {
    /// True if an agent waits for a program that is tried again by itself, or now if the human says so.
    pub fn can_try_now(&self) -> bool {
        let held = self.agents.iter().filter_map(AgentView::held);
        held.into_iter().any(|held| held.again_in.is_some())
    }

    pub fn result_is_taken(&self) -> bool {
        let goal = self.goal.as_ref();
        let taken = goal.and_then(|goal| goal.taken.as_ref()).map(|taken| &taken.head);
        let head = goal.and_then(|goal| goal.integration_head.as_ref());
        (taken.is_some() && taken == head) || self.main_branch.as_ref().is_some_and(|main| main.ahead == 0)
    }

    /// True if the team is stopping: all agents have left but the one that merges.
    pub fn is_stopping(&self) -> bool {
        let present = || self.agents.iter().filter(|agent| agent.liveness.is_present());
        let merge = self.merge.as_ref().filter(|merge| merge.team_leaves);
        merge.is_some_and(|merge| present().all(|agent| merge.by == Some(agent.id))) && self.has_team()
    }

    /// True if an entry of `needs_you` says what its row would: the question of a blocked task, or its part of a plan.
    pub fn is_in_needs(&self, task: &TaskView) -> bool {
        let asks = |need: &NeedsYou| task.phase == TaskPhase::Stuck && need.task.as_ref() == Some(&task.id);
        let lists = |need: &NeedsYou| need.plan.iter().any(|planned| planned.task == task.id);
        self.needs_you.iter().any(|need| asks(need) || (task.phase == TaskPhase::Draft && lists(need)))
    }

    /// True if an agent may be at work.
    pub fn has_team(&self) -> bool {
        self.agents.iter().any(|agent| agent.liveness.is_present())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StopView {
    pub file: StopFile,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Serialize)]
pub struct SprintView {
    pub id: String,
    pub status: SprintStatus,
    pub started: Option<Timestamp>,
    /// The latest time at which a person wants to review it.
    pub deadline: Option<Timestamp>,
    /// Seconds to the deadline; below zero when it is past.
    pub deadline_left: Option<i64>,
    /// Its planned tasks with their replacements.
    pub progress: Progress,
    pub metrics: Metrics,
    pub usage: Option<Usage>,
    /// True if its tasks have ended and the planner has not judged the goal.
    #[serde(skip)]
    pub goal_is_open: bool,
}

/// The planned tasks with their replacements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    pub total: usize,
    pub merged: usize,
    pub replaced: usize,
    pub abandoned: usize,
    /// Open when the goal was aborted.
    #[serde(skip_serializing_if = "is_zero")]
    pub with_goal: usize,
    /// The numbers of the others, as the board's sections have them.
    pub open: BTreeMap<TaskPhase, usize>,
}

impl Progress {
    /// The tasks that are or will be merged: all but the replaced and the abandoned ones.
    pub fn to_merge(&self) -> usize {
        self.total - self.replaced - self.abandoned
    }

    /// The number of open tasks in these phases.
    pub fn in_phases(&self, phases: &[TaskPhase]) -> usize {
        phases.iter().filter_map(|phase| self.open.get(phase)).sum()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    pub level: AlarmLevel,
    /// Such as `LEASE EXPIRED`.
    pub kind: AlarmKind,
    pub task: Option<TaskId>,
    /// The rest of the alert.
    pub text: AlarmText,
    /// The command that most likely fixes it.
    pub command: Option<CommandLine>,
    /// True if it is part of an entry in `View::needs_you`.
    #[serde(skip)]
    pub needs_you: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldClient {
    pub name: String,
    pub since: Timestamp,
    /// `None` if only the human lets it continue.
    pub until: Option<Timestamp>,
    /// The reason and the remedy.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriggerView {
    pub kind: String,
    /// A task, discovery, sprint or goal.
    pub subject: String,
    pub detail: String,
    /// True if the planner has already been woken for it.
    pub seen: bool,
}

pub fn view(state: &State, seen: &Observations, now: Timestamp) -> View {
    let (board, at) = (&state.board, Moment { state, seen, now });
    let mut tasks = task::tasks(at);
    let alarms = alarms(state, seen, now);
    let needs_you = needs_you(state, seen, &alarms, now);
    next_step::name_who_answers(&mut tasks, &needs_you);
    let alerts = alerts(alarms, &needs_you, &tasks);
    let merge = merging::merge_view(&mut tasks, at);
    let agents = board.agents.entries();
    let agents: Vec<AgentView> =
        agents.map(|(id, entry)| agent::agent_view(at, *id, entry, merge.as_ref())).collect();
    next_step::name_when_continued(&mut tasks, &agents);
    next_step::name_when_merged(&mut tasks, &agents, merge.as_ref());
    tasks.iter_mut().for_each(|task| task.human_command = next_step::human_command(task, at));
    let stop = |file| Some(StopView { file, since: seen.stop_files.since(file)? });
    let discoveries = board.discovered.entries().filter(|discovery| discovery.is_open());
    View {
        revision: board.revision,
        now,
        goal: board.goal.ready().cloned(),
        sprint: at.sprint().map(|sprint| sprint_view(at, sprint, &tasks)),
        stopped: StopFile::ALL.into_iter().filter_map(stop).collect(),
        agents,
        merge,
        alerts,
        needs_you,
        held_clients: held_clients(at),
        claimable: seen.found_merges().without_waiting(claimable(board, now)),
        reviewable: seen.found_merges().without_waiting(reviewable(board, now)),
        planner_triggers: triggers(at),
        discoveries: discoveries.map(Discovery::bounded).collect(),
        archived: board.archived.len(),
        budgets: spending(board, now),
        main_branch: seen.main_branch.clone(),
        start: seen.start.clone(),
        drilled: seen.drilled.clone(),
        tasks,
    }
}

impl View {
    /// The alerts that are in no entry of `needs_you`.
    pub fn other_alerts(&self) -> impl Iterator<Item = &Alert> {
        self.alerts.iter().filter(|alert| !alert.needs_you)
    }
}

fn held_clients(at: Moment<'_>) -> Vec<HeldClient> {
    let then = Continuation { has_team: true, run: &at.seen.start.run };
    let held = |(name, client): (&String, &ClientRecord)| {
        let hold = client.hold.as_ref()?;
        let (name, text) = (name.clone(), describe_hold(hold, then, at.now));
        Some(HeldClient { name, since: hold.since, until: hold.until, text })
    };
    at.sprint().into_iter().flat_map(|sprint| &sprint.clients).filter_map(held).collect()
}

fn sprint_view(at: Moment<'_>, sprint: &Sprint, tasks: &[TaskView]) -> SprintView {
    SprintView {
        id: sprint.id.clone(),
        status: sprint.status,
        started: sprint.timeline.started,
        deadline: sprint.timeline.deadline,
        deadline_left: sprint.timeline.deadline.map(|deadline| deadline.unix() - at.now.unix()),
        progress: Progress::of_tasks(at.board(), sprint, tasks),
        metrics: sprint_metrics(at.state),
        usage: sprint.usage.clone(),
        goal_is_open: sprint.status == SprintStatus::Completed && at.open_goal().is_some(),
    }
}

impl Progress {
    /// Counts the sprint's planned tasks as screens show them.
    pub fn of(state: &State, sprint: &Sprint, now: Timestamp) -> Self {
        let at = Moment { state, seen: &Observations::default(), now };
        Self::of_tasks(&state.board, sprint, &task::tasks(at))
    }

    fn of_tasks(board: &Board, sprint: &Sprint, tasks: &[TaskView]) -> Self {
        let mut progress = Self::default();
        let phases: IndexMap<&TaskId, TaskPhase> = tasks.iter().map(|task| (&task.id, task.phase)).collect();
        for task in planned_with_replacements(board, sprint) {
            progress.total += 1;
            let phase = phases.get(&task).copied();
            *match (phase.filter(|phase| *phase != TaskPhase::Ended), board.status(&task)) {
                (Some(open), _) => progress.open.entry(open).or_default(),
                (None, Some(Status::Merged)) => &mut progress.merged,
                (None, Some(Status::Superseded)) => &mut progress.replaced,
                (None, Some(Status::Abandoned)) => &mut progress.abandoned,
                (None, _) if phase.is_some() => &mut progress.with_goal,
                (None, _) => progress.open.entry(TaskPhase::Waiting).or_default(),
            } += 1;
        }
        progress
    }
}

/// The worst first; each with the next step of the task that it is about.
fn alerts(mut found: Vec<Alarm>, needs: &[NeedsYou], tasks: &[TaskView]) -> Vec<Alert> {
    sort_by_key(&mut found, |alarm| std::cmp::Reverse(alarm.level));
    let by_id: IndexMap<&TaskId, &TaskView> = match found.is_empty() {
        true => IndexMap::new(),
        false => tasks.iter().map(|task| (&task.id, task)).collect(),
    };
    // With the entry that has its command, if that is the alarm's own.
    let mut included: IndexMap<&(AlarmKind, String), Option<&NeedsYou>> = IndexMap::new();
    for need in needs {
        for key in &need.includes {
            let own = included.entry(key).or_default();
            *own = own.or((need.kind == key.0).then_some(need));
        }
    }
    let alert = |alarm: Alarm| {
        let task = alarm.task.as_ref().and_then(|id| by_id.get(id));
        // An alarm about a task that was dropped with its goal needs nothing more.
        if task.is_some_and(|task| task.is_dropped()) {
            return None;
        }
        let need = included.get(&alarm.join_key());
        let command = need.copied().flatten().map(|need| need.command.clone());
        // The planner may be faster; a person answers the question, and does not only unblock.
        let answer = alarm.answer().filter(|_| alarm.kind == AlarmKind::Blocked);
        let command = command.or(answer).or_else(|| task?.command.clone());
        Some(Alert {
            level: alarm.level,
            kind: alarm.kind,
            task: task.map(|task| task.id.clone()),
            needs_you: need.is_some(),
            text: alarm.text,
            command,
        })
    };
    found.into_iter().filter_map(alert).collect()
}

fn triggers(at: Moment<'_>) -> Vec<TriggerView> {
    let seen = at.sprint().map(|sprint| sprint.seen_triggers.as_slice()).unwrap_or_default();
    let views = planner_triggers(at.state, at.now).into_iter().map(|trigger| TriggerView {
        kind: trigger.kind.to_string(),
        seen: seen.contains(&trigger.key),
        subject: trigger.subject,
        detail: trigger.detail,
    });
    views.collect()
}
