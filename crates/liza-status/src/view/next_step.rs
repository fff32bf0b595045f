//! The next step of tasks that wait for the human, for an agent between two sessions, or for a merge.

use indexmap::IndexMap;

use crate::alarms::{AlarmKind, Moment};
use crate::command_line::{CommandLine, OPEN, liza};
use crate::forecast::{Behind, Ended, Next, What};
use crate::needs_you::NeedsYou;
use liza_core::model::{MAX_FAILED_CODERS, Role, Status, TaskId};

use super::agent::AgentView;
use super::merging::MergeView;
use super::outlook::TaskPhase;
use super::task::TaskView;

/// The next step of a task whose agent has no session on it: behind the agent's other task and obstacles.
pub(super) fn name_when_continued(tasks: &mut [TaskView], agents: &[AgentView]) {
    for agent in agents.iter().filter(|agent| agent.liveness.is_present()) {
        for task in tasks.iter_mut().filter(|task| is_continued(task, agent)) {
            let is_current = agent.task.as_ref() == Some(&task.id);
            let other = agent.task.clone().filter(|_| !is_current).map(Behind::Work);
            let keeps = |behind: &&Behind| {
                matches!(behind, Behind::Resume | Behind::Program(_) | Behind::Answer)
                    || is_current && matches!(behind, Behind::Pause(_))
            };
            let own = agent.next.behind.iter().filter(keeps);
            let when = own.clone().next().and(agent.next.when);
            let behind: Vec<Behind> = other.into_iter().chain(own.cloned()).collect();
            if !behind.is_empty() {
                task.next = Next { behind, when, ..Next::agent(agent.id, What::Continue) };
            }
        }
    }
}

/// True if this agent's next session takes the next step of the task.
fn is_continued(task: &TaskView, agent: &AgentView) -> bool {
    let is_open = matches!(task.phase, TaskPhase::Working | TaskPhase::Reviewing);
    is_open && task.owner == Some(agent.id) && task.status != Some(Status::Approved)
}

/// The next step of a task that waits for the human is that of its entry in `needs_you`.
pub(super) fn name_who_answers(tasks: &mut [TaskView], needs: &[NeedsYou]) {
    let own = needs.iter().filter(is_next_step);
    let by_task: IndexMap<&TaskId, &NeedsYou> =
        own.filter_map(|need| Some((need.task.as_ref()?, need))).collect();
    for task in tasks {
        let Some(need) = by_task.get(&task.id) else { continue };
        let is_rescoped = task.failed_by.len() >= MAX_FAILED_CODERS;
        match &need.planner_looks {
            Some(_) if is_rescoped => {}
            Some(next) => task.next = next.clone(),
            None => {
                let answers = need.kind == AlarmKind::Blocked && !is_rescoped;
                task.next = Next::you(if answers { What::Answer } else { What::Decide });
                task.command = Some(need.command.clone());
            }
        }
        if need.kind == AlarmKind::Draft {
            task.reason = Some(task.next.to_string());
        }
    }
}

/// The human's next command on a task: answer, look at the work, or start a missing agent.
pub(super) fn human_command(task: &TaskView, at: Moment<'_>) -> Option<CommandLine> {
    let (id, next) = (&task.id, &task.next);
    match (&next.what, next.missing_role()) {
        (
            What::FixRecord | What::RecordMerge(_) | What::AcceptGate | What::FixTest | What::FixValidation,
            _,
        ) => task.command.clone(),
        (What::Nothing(Ended::Merged), _) => Some(liza!("diff", id)),
        (What::Nothing(Ended::ReplacedBy(by)), _) => by.first().map(|by| liza!("show", by)),
        (What::Nothing(_), _) => None,
        _ if task.status == Some(Status::Blocked) => Some(liza!("answer", id, OPEN)),
        (What::ApprovePlan, _) => Some(liza!("plan")),
        (What::Wait | What::Decide | What::DecideWithout(_) | What::Return, _) => task.command.clone(),
        (What::Merge, Some(_)) => Some(liza!("wt-merge", id)),
        (What::Merge, None) if next.is_after_resume() => Some(liza!("resume")),
        (_, Some(role)) => Some(at.start(role).clone()),
        (What::Finalize, None) => Some(liza!("edit-task", id, "--help")),
        _ if task.status == Some(Status::Claimed) && task.phase == TaskPhase::Working => {
            task.owner.map(|owner| liza!("tail", owner))
        }
        _ if matches!(task.status, Some(Status::Unclaimed | Status::Claimed)) => None,
        (_, None) => Some(liza!("diff", id)),
    }
}

/// True if nothing happens to the task before the human has decided this.
fn is_next_step(need: &&NeedsYou) -> bool {
    matches!(
        need.kind,
        AlarmKind::Blocked
            | AlarmKind::ReviewDropped
            | AlarmKind::SecondReviewer
            | AlarmKind::NoApproval
            | AlarmKind::Draft
            | AlarmKind::DeadDependency
    )
}

/// An approved task waits for the session of the agent that approved it, or for the merge that is running.
pub(super) fn name_when_merged(tasks: &mut [TaskView], agents: &[AgentView], merge: Option<&MergeView>) {
    for task in tasks.iter_mut().filter(|task| task.is_merged_next()) {
        let owner = agents.iter().find(|agent| task.owner == Some(agent.id) && agent.is_in_session());
        if let Some((agent, behind)) = owner.and_then(|agent| Some((agent, session_before(agent, &task.id)?)))
        {
            task.next = Next::agent(agent.id, What::Merge).behind(behind);
        } else if let Some(merge) = merge {
            task.next = Next::role(Role::CodeReviewer, What::Merge).behind(Behind::Merge(merge.task.clone()));
        }
        task.reason = task.next.merge_words();
    }
}

/// The session that an agent ends before it merges the task.
fn session_before(agent: &AgentView, task: &TaskId) -> Option<Behind> {
    match &agent.next.on {
        Some(on) if on == task => Some(Behind::Session(agent.id)),
        _ => agent.task.clone().filter(|other| other != task).map(Behind::Review),
    }
}
