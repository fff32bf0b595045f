use std::collections::BTreeMap;

use liza_core::model::{AgentId, AgentStatus, Seconds, State, Timestamp};
use liza_core::text::one_line;
use liza_status::alarms::SessionActivity;
use liza_status::view::Progress;
use liza_status::words::not_merged;

const ACTION_MAX: usize = 30;

/// The progress line: merged tasks, open work, active agents, running time, each session's action.
pub fn progress_line(
    state: &State,
    sessions: &BTreeMap<AgentId, SessionActivity>,
    worked: Seconds,
    now: Timestamp,
) -> String {
    let Some(sprint) = state.board.sprint.ready() else { return String::new() };
    let progress = Progress::of(state, sprint, now);
    let agents = state.board.agents.ready();
    let busy = agents.map_or(0, |agents| agents.values().filter(|entry| is_busy(entry.status)).count());
    let mut parts = vec![format!("{} of {} merged", progress.merged, progress.to_merge())];
    parts.extend(not_merged(&progress).map(|(_, text)| text));
    parts.extend([format!("{busy} active"), clock(worked)]);
    parts.extend(sessions.iter().map(|(agent, activity)| action(*agent, activity, now)));
    parts.join(" · ")
}

/// An agent's action, and the time since its last output.
fn action(agent: AgentId, activity: &SessionActivity, now: Timestamp) -> String {
    let last = one_line(activity.last_action.as_deref().unwrap_or("started"), ACTION_MAX);
    format!("{agent} {last} ({})", now.since(activity.last_output))
}

fn is_busy(status: AgentStatus) -> bool {
    match status {
        AgentStatus::Working | AgentStatus::Reviewing | AgentStatus::Planning => true,
        AgentStatus::Starting | AgentStatus::Idle | AgentStatus::Waiting | AgentStatus::Handoff => false,
    }
}

fn clock(worked: Seconds) -> String {
    let (hours, minutes, seconds) = (worked.0 / 3600, worked.0 / 60 % 60, worked.0 % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}
