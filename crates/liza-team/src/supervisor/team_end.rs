//! The reasons for which a team ends by itself: its time limit, an abort, no work, or no client. Also the
//! time that it waits for its background jobs.

use std::time::{Duration, Instant};

use liza_core::model::{AgentId, GoalStatus, Role};
use liza_core::rules::clients::waits_for_human;
use liza_sandbox::sys::family::kill_own_families;

use crate::observe::running_merge::running_merge;
use crate::project::now;
use crate::session::checkout_setup::setup_limit;

use super::event::{Event, JobOutcome, MemberIndex};
use super::member::{EndReason, Member, MemberState};
use super::message::MessageLevel;
use super::team::Team;

/// The wait after an ABORT file has ended a team, for the blackboard to record the abort.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// The wait of a team that ends, for background jobs other than merges.
const JOB_GRACE: Duration = Duration::from_secs(10);

/// The wait for killed merges to clean up.
const CLEANUP_GRACE: Duration = Duration::from_secs(5);

impl Team<'_> {
    /// The times at which a team that is ending stops waiting for a job, and for a merge.
    pub(super) fn job_ends(&self) -> [Option<Instant>; 2] {
        let test = self.config.merge_test_limit() + setup_limit(&self.config);
        // A failed test is run a second time, on the branch itself.
        [JOB_GRACE, JOB_GRACE + 2 * test].map(|grace| self.stopping.map(|since| since + grace))
    }

    /// True if the team is ending and the job of this agent has no more time. A running merge has as long as
    /// its test may take; one that waits for a merge of another process has not started.
    pub(super) fn job_time_is_over(&self, member: &Member) -> bool {
        let is_over = |end: Option<Instant>| end.is_some_and(|end| Instant::now() >= end);
        let [job, merge] = self.job_ends().map(is_over);
        let agent = Some(member.identity.agent);
        let merges = || {
            member.merging.is_some() && running_merge(&self.project).is_some_and(|merge| merge.by == agent)
        };
        self.urgent || merge || job && !merges()
    }

    /// Ends the jobs that still run. Only after every agent is deregistered: an integration test that is
    /// killed while its code reviewer is still registered counts as failed.
    pub(super) fn end_jobs(&mut self) {
        if self.stopping.is_none() {
            return;
        }
        let [job, _] = self.job_ends();
        if self.urgent || job.is_some_and(|end| Instant::now() >= end) {
            kill_own_families();
        }
        let deadline = Instant::now() + CLEANUP_GRACE;
        while self.members.iter().any(|member| member.merging.is_some()) {
            let Ok(event) = self.events.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            else {
                break;
            };
            if let Event::JobDone(index, result) = event {
                let text = match &result {
                    Ok(JobOutcome::Merged(_, text)) => Some(text.clone()),
                    Ok(_) | Err(_) => None,
                };
                self.report_killed_merge(index, text);
            }
        }
        (0..self.members.len()).for_each(|index| self.report_killed_merge(index, None));
    }

    /// Reports the end of a merge whose agent has left.
    fn report_killed_merge(&mut self, index: MemberIndex, text: Option<String>) {
        let merging = self.members.get_mut(index).and_then(|member| member.merging.take());
        if let Some(task) = merging {
            let stopped = || format!("{task}: its merge was stopped; the next liza run merges it");
            self.info(index, text.unwrap_or_else(stopped));
        }
    }

    /// True if an ABORT file has ended every agent before the blackboard records the abort. That takes a
    /// moment: a file that exists for less than a second doesn't count.
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

    /// True if the planner has failed and no agent has work: no new work would ever arrive.
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

    /// True if all clients of all agents wait for the human, and no session runs.
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
