//! What approved tasks wait for, as a screen shows it.

use crate::model::{AgentId, Status, TaskId};

use super::agent::AgentView;
use super::merging::MergeView;
use super::task::TaskView;

/// What an approved task waits for: the session that approved it, or the merge that is running.
pub(super) fn name_when_merged(tasks: &mut [TaskView], agents: &[AgentView], merge: Option<&MergeView>) {
    // One with a reason waits for something else, or is merged now.
    let waits = |task: &&mut TaskView| task.status == Some(Status::Approved) && task.reason.is_none();
    for task in tasks.iter_mut().filter(waits) {
        let ends = |agent: &&AgentView| {
            agent.is_in_session()
                && agent.ending.as_ref().is_some_and(|ending| ending.task.as_ref() == Some(&task.id))
        };
        if let Some(agent) = agents.iter().filter(|agent| task.owner == Some(agent.id)).find(ends) {
            task.next = format!("{} merges it when its session ends", agent.id);
            task.reason = Some(format!("merged when {}'s session ends", agent.id));
        } else if let Some((agent, other)) = reviews_another(task, agents) {
            task.next = format!("{agent} merges it after its review of {other}");
            task.reason = Some(format!("merged after {agent}'s review of {other}"));
        } else if let Some(merge) = merge {
            task.next = format!("merged after {}", merge.task);
            task.reason = Some(task.next.clone());
        }
    }
}

/// The reviewer that merges the task, if its session is about another one.
fn reviews_another(task: &TaskView, agents: &[AgentView]) -> Option<(AgentId, TaskId)> {
    let agent = agents.iter().find(|agent| task.owner == Some(agent.id) && agent.is_in_session())?;
    let other = agent.task.clone().filter(|other| *other != task.id)?;
    Some((agent.id, other))
}
