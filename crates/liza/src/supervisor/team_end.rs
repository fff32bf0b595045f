//! When a team ends by itself: at its time limit, after an abort, without work, or without a client.

use std::time::{Duration, Instant};

use liza_core::model::{AgentId, GoalStatus, Role};
use liza_core::rules::clients::waits_for_human;

use crate::project::now;

use super::member::{EndReason, Member, MemberState};
use super::message::MessageLevel;
use super::team::Team;

/// How long a team that was ended by an ABORT file waits for the blackboard to record the abort.
const ABORT_GRACE: Duration = Duration::from_secs(5);

impl Team<'_> {
    /// Whether an ABORT file has ended every agent before the blackboard records the abort. That takes a moment: a file
    /// that exists for less than a second does not count.
    pub(super) fn awaits_abort(&mut self) -> bool {
        let open = self.state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::InProgress);
        if !self.stop_files.abort || !open {
            return false;
        }
        self.gone_since.get_or_insert_with(Instant::now).elapsed() < ABORT_GRACE
    }

    /// Ends the team when it reaches its time limit.
    pub(super) fn check_limit(&mut self) {
        if self.end_at.is_some_and(|end| Instant::now() >= end) {
            self.end_at = None;
            self.stopping = self.stopping.or(Some(Instant::now()));
            self.report_all(MessageLevel::Alert, "time limit reached; stopping");
        }
    }

    /// Whether the planner has failed and no agent has work: no new work would ever arrive.
    pub(super) fn is_stranded(&self) -> bool {
        let failed = |member: &Member| matches!(member.state, MemberState::Gone(EndReason::Failed(_)));
        let mut planners = self.members.iter().filter(|member| member.post.role == Role::Planner);
        let waits = self.stop_files.pause || self.stop_files.checkpoint || !self.readable || self.stale;
        if !self.in_team
            || self.stopping.is_some()
            || waits
            || !self.renewals.may_judge()
            || !planners.any(failed)
        {
            return false;
        }
        let snapshot = self.snapshot();
        let idle = self.members.iter().all(|member| member.is_gone() || member.has_no_work_in(&snapshot));
        let ours = |agent: &AgentId| self.members.iter().any(|member| member.identity.agent == *agent);
        let mut agents = self.state.board.agents.ready().into_iter().flatten();
        // An agent in another terminal may plan, or submit something.
        idle && !agents.any(|(agent, entry)| !ours(agent) && entry.holds(now()))
    }

    /// Whether all clients of all agents wait for the human, and no session runs.
    pub(super) fn has_no_client(&self) -> bool {
        let Some(sprint) = self.state.board.sprint.ready() else { return false };
        let held = |name: &String| sprint.clients.get(name).is_some_and(waits_for_human);
        let idle = |member: &Member| matches!(member.state, MemberState::Idle);
        let mut active = self.members.iter().filter(|member| !member.is_gone()).peekable();
        let any = active.peek().is_some();
        any && self.in_team
            && self.stopping.is_none()
            && !self.stale
            && active.all(|member| idle(member) && member.identity.provider.names().iter().all(held))
    }
}
