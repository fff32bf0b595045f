//! The next step of tasks that wait for the human, for an agent between two sessions, or for a merge.

use indexmap::IndexMap;

use crate::model::{AgentId, MAX_FAILED_CODERS, Role, Status, TaskId, Timestamp};
use crate::watch::alarms::AlarmKind;
use crate::watch::forecast::{Behind, Next, What};
use crate::watch::needs_you::{NeedKind, NeedsYou, PlannerLooks};

use super::agent::AgentView;
use super::merging::MergeView;
use super::outlook::TaskPhase;
use super::task::TaskView;

/// The next step of a task whose agent is between two sessions, has another task, or waits for its program.
pub(super) fn name_when_continued(
    tasks: &mut [TaskView],
    agents: &[AgentView],
    is_paused: bool,
    now: Timestamp,
) {
    for agent in agents.iter().filter(|agent| agent.liveness.is_present()) {
        let continues = || Next::agent(agent.id, What::Continue);
        if let Some(current) = &agent.task {
            let waits = |task: &&mut TaskView| is_continued(task, agent) && task.id != *current;
            for task in tasks.iter_mut().filter(waits) {
                task.next = continues().behind(Behind::Work(current.clone()));
            }
        }
        if is_paused {
            for task in tasks.iter_mut().filter(|task| waits_for_session(task, agent)) {
                let before = task.next.after_work().cloned().map(Behind::Work);
                let next = before.into_iter().fold(continues(), Next::behind);
                task.next = next.behind(Behind::Resume);
            }
            continue;
        }
        if let Some(held) = &agent.held {
            for task in tasks.iter_mut().filter(|task| is_continued(task, agent)) {
                let before = task.next.after_work().cloned().map(Behind::Work);
                let next = continues().behind(Behind::Program(held.clone()));
                let next = next.at(held.again_in.map(|left| now + left));
                task.next = before.into_iter().fold(next, Next::behind);
            }
        } else if let Some(retry) = agent.retry.filter(|_| agent.between_sessions) {
            let own = |task: &&mut TaskView| {
                task.phase == TaskPhase::Working && Some(&task.id) == agent.task.as_ref()
            };
            let Some(task) = tasks.iter_mut().find(own) else { continue };
            task.next = continues().behind(Behind::Pause(retry.again_in)).at(Some(now + retry.again_in));
        }
    }
}

/// Whether no session of this agent works on its task now.
fn waits_for_session(task: &TaskView, agent: &AgentView) -> bool {
    let has_session = agent.is_in_session() && Some(&task.id) == agent.task.as_ref();
    task.phase == TaskPhase::Working && task.owner == Some(agent.id) && !has_session
}

/// Whether this agent's next session takes the next step of the task.
fn is_continued(task: &TaskView, agent: &AgentView) -> bool {
    let is_open = matches!(task.phase, TaskPhase::Working | TaskPhase::Reviewing);
    is_open && task.owner == Some(agent.id) && task.status != Some(Status::Approved)
}

/// The next step of a task that waits for the human is that of its entry in the list of what needs the human.
pub(super) fn name_who_answers(tasks: &mut [TaskView], needs: &[NeedsYou]) {
    let own = needs.iter().filter(|need| is_next_step(need.kind));
    let by_task: IndexMap<&TaskId, &NeedsYou> =
        own.filter_map(|need| Some((need.task.as_ref()?, need))).collect();
    for task in tasks {
        let Some(need) = by_task.get(&task.id) else { continue };
        let is_rescoped = task.failed_by.len() >= MAX_FAILED_CODERS;
        match need.planner_looks {
            Some(_) if is_rescoped => {}
            Some(when) => task.next = looks(when),
            None => {
                let answers = need.kind == NeedKind::Alarm(AlarmKind::Blocked) && !is_rescoped;
                task.next = Next::you(if answers { What::Answer } else { What::Decide });
                task.command = Some(need.command.clone());
            }
        }
        if need.kind == NeedKind::Draft {
            task.reason = Some(task.next.to_string());
            task.human_command.clone_from(&task.command);
        }
    }
}

fn looks(when: PlannerLooks) -> Next {
    let next = Next::role(Role::Planner, What::Look);
    match when {
        PlannerLooks::Now => next,
        PlannerLooks::Next => next.behind(Behind::OtherDecisions),
        PlannerLooks::AfterResume => next.behind(Behind::Resume),
        PlannerLooks::AfterHold => next.behind(Behind::Programs),
    }
}

/// Whether nothing happens to the task before the human has decided this.
fn is_next_step(kind: NeedKind) -> bool {
    match kind {
        NeedKind::Alarm(kind) => {
            matches!(kind, AlarmKind::Blocked | AlarmKind::ReviewDropped | AlarmKind::NoApproval)
        }
        NeedKind::Draft | NeedKind::DeadDependency => true,
        NeedKind::Stopped(_)
        | NeedKind::BrokenRecord
        | NeedKind::Discovery
        | NeedKind::Anomaly
        | NeedKind::Vision
        | NeedKind::Goal
        | NeedKind::Login => false,
    }
}

/// What an approved task waits for: the session that approved it, or the merge that is running.
pub(super) fn name_when_merged(tasks: &mut [TaskView], agents: &[AgentView], merge: Option<&MergeView>) {
    for task in tasks.iter_mut().filter(|task| task.is_merged_next()) {
        let ends = |agent: &&AgentView| {
            agent.is_in_session()
                && agent.ending.as_ref().is_some_and(|ending| ending.task.as_ref() == Some(&task.id))
        };
        if let Some(agent) = agents.iter().filter(|agent| task.owner == Some(agent.id)).find(ends) {
            task.next = Next::agent(agent.id, What::Merge).behind(Behind::Session(agent.id));
        } else if let Some((agent, other)) = reviews_another(task, agents) {
            task.next = Next::agent(agent, What::Merge).behind(Behind::Review(other));
        } else if let Some(merge) = merge {
            task.next = Next::role(Role::CodeReviewer, What::Merge).behind(Behind::Merge(merge.task.clone()));
        }
        task.reason = task.next.merge_words();
    }
}

/// The reviewer that merges the task, if its session is about another one.
fn reviews_another(task: &TaskView, agents: &[AgentView]) -> Option<(AgentId, TaskId)> {
    let agent = agents.iter().find(|agent| task.owner == Some(agent.id) && agent.is_in_session())?;
    let other = agent.task.clone().filter(|other| *other != task.id)?;
    Some((agent.id, other))
}
