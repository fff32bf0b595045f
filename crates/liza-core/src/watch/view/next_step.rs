//! The next step of tasks that wait for the human, or for an agent between two sessions.

use indexmap::IndexMap;

use crate::model::{MAX_FAILED_CODERS, Status, TaskId};
use crate::watch::alarms::AlarmKind;
use crate::watch::needs_you::{NeedKind, NeedsYou};

use super::agent::AgentView;
use super::outlook::TaskPhase;
use super::task::{AFTER_RESUME, TaskView};

/// The next step of a task whose agent is between two sessions, has another task, or waits for its program.
pub(super) fn name_when_continued(tasks: &mut [TaskView], agents: &[AgentView], is_paused: bool) {
    for agent in agents.iter().filter(|agent| agent.liveness.is_present()) {
        if let Some(current) = &agent.task {
            let waits = |task: &&mut TaskView| is_continued(task, agent) && task.id != *current;
            for task in tasks.iter_mut().filter(waits) {
                task.next = format!("{} continues with it after {current}", agent.id);
                task.continued_after = Some(current.clone());
            }
        }
        if is_paused {
            tasks.iter_mut().filter(|task| waits_for_session(task, agent)).for_each(continue_after_resume);
            continue;
        }
        if let Some(held) = &agent.held {
            for task in tasks.iter_mut().filter(|task| is_continued(task, agent)) {
                task.next = format!("{} continues: {}", agent.id, held.text());
            }
        } else if let Some(retry) = agent.retry.filter(|_| agent.between_sessions) {
            let own = |task: &&mut TaskView| {
                task.phase == TaskPhase::Working && Some(&task.id) == agent.task.as_ref()
            };
            let Some(task) = tasks.iter_mut().find(own) else { continue };
            task.next = format!("{} tries again {}: its last session failed", agent.id, retry.again());
        }
    }
}

/// Whether no session of this agent works on its task now.
fn waits_for_session(task: &TaskView, agent: &AgentView) -> bool {
    let has_session = agent.is_in_session() && Some(&task.id) == agent.task.as_ref();
    task.phase == TaskPhase::Working && task.owner == Some(agent.id) && !has_session
}

fn continue_after_resume(task: &mut TaskView) {
    task.after_resume = true;
    task.next = match (task.owner, &task.continued_after) {
        (Some(owner), None) => format!("{owner} continues with it{AFTER_RESUME}"),
        _ => format!("{}{AFTER_RESUME}", task.next),
    };
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
            Some(when) => {
                task.next = format!("the planner looks at it {}; you can answer it yourself", when.words());
            }
            None => {
                let answers = need.kind == NeedKind::Alarm(AlarmKind::Blocked) && !is_rescoped;
                task.next = if answers { "you answer it" } else { "you decide" }.to_owned();
                task.command = Some(need.command.clone());
            }
        }
        if need.kind == NeedKind::Draft {
            task.reason = Some(task.next.clone());
            task.human_command.clone_from(&task.command);
        }
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
