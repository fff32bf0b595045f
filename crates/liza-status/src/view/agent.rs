//! An agent as a screen shows it: its life, its work, and its next step.

use serde::Serialize;

use crate::alarms::held::{HeldView, held_program};
use crate::alarms::{Confinement, Moment};
use crate::forecast::{Behind, Ended, Next, Retry, What};
use liza_core::model::{
    AgentId, AgentRecord, AgentStatus, Board, Generation, Role, Seconds, SessionSummary, SprintStatus,
    TaskId, TaskSummary, Timestamp, Usage,
};
use liza_core::rules::questions::open_questions;
use liza_core::rules::sessions::{decided_since, ending_session, is_between_sessions, of_session};
use liza_core::rules::triggers::{PlannerWork, Trigger, planner_work};
use liza_core::supervise::{Work, failed_planning, planner_needs_human, unseen_triggers, work_of};

use liza_core::rules::presence::Liveness;

use super::merging::MergeView;
use super::task::LeaseView;

#[derive(Debug, Clone, Serialize)]
pub struct AgentView {
    pub id: AgentId,
    pub role: Role,
    pub status: AgentStatus,
    pub liveness: Liveness,
    pub task: Option<TaskId>,
    /// The time since its lease was renewed.
    pub heartbeat_age: Option<Seconds>,
    pub lease: Option<LeaseView>,
    /// The terminal where a person can watch it.
    pub terminal: Option<String>,
    pub generation: Option<Generation>,
    /// The machine on which it runs, if the agents are on more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    pub client: Option<String>,
    pub last_action: Option<String>,
    /// The time since its running session printed something.
    pub output_age: Option<Seconds>,
    pub last_session: Option<SessionSummary>,
    pub context_percent: Option<u32>,
    pub usage: Option<Usage>,
    /// Its present or next step.
    pub next: Next,
    /// True if the blackboard shows a running session of it.
    pub in_session: bool,
    /// The confinement of its last session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    /// Its level by its present name; the field above keeps the names of programs that read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
}

impl AgentView {
    /// True if a session of it is running, and it is not gone.
    pub fn is_in_session(&self) -> bool {
        self.liveness.is_present() && self.in_session
    }

    /// True if its session runs, or is set up, or if it merges.
    pub fn is_at_work(&self) -> bool {
        self.is_in_session() || self.merge().is_some() || self.next.what == What::SetUp
    }

    /// The task that it merges now, and the progress.
    pub fn merge(&self) -> Option<(&TaskId, bool, Seconds)> {
        let What::MergeNow { is_testing, age } = self.next.what else { return None };
        self.next.on.as_ref().filter(|_| self.liveness.is_present()).map(|task| (task, is_testing, age))
    }

    pub fn held(&self) -> Option<&HeldView> {
        self.next.held().filter(|_| self.liveness == Liveness::Live)
    }
}

fn are_on_several_machines(board: &Board) -> bool {
    let mut machines = board.agents.entries().filter_map(|(_, entry)| entry.machine.as_ref());
    let first = machines.next();
    machines.any(|machine| Some(machine) != first)
}

pub(super) fn agent_view(
    at: Moment<'_>,
    id: AgentId,
    entry: &AgentRecord,
    merge: Option<&MergeView>,
) -> AgentView {
    let Moment { state, seen, now } = at;
    let (board, activity) = (&state.board, seen.sessions.get(&id));
    let liveness = at.here().liveness(id, entry);
    let agent = Agent { at, id, entry };
    AgentView {
        id,
        role: entry.role,
        status: entry.status,
        liveness,
        task: entry.current_task.clone(),
        heartbeat_age: entry.heartbeat.map(|heard| now.since(heard)),
        lease: entry.lease_expires.map(|expires| LeaseView::new(expires, now)),
        terminal: entry.terminal.clone(),
        generation: entry.generation,
        machine: entry.machine.clone().filter(|_| are_on_several_machines(board)),
        client: entry.client.clone(),
        last_action: activity.and_then(|activity| activity.last_action.clone()),
        output_age: activity.map(|activity| now.since(activity.last_output)),
        last_session: entry.last_session.clone(),
        context_percent: entry.context_percent,
        usage: entry.usage.clone(),
        next: if liveness.is_present() { agent.next(merge) } else { Next::nothing(Ended::Left) },
        in_session: agent.is_in_session(),
        confinement: seen.confinement.get(&id).cloned(),
        level: seen.confinement.get(&id).map(|confinement| confinement.level.clone()),
    }
}

/// An agent that is here, with the data for its next step.
struct Agent<'a> {
    at: Moment<'a>,
    id: AgentId,
    entry: &'a AgentRecord,
}

impl Agent<'_> {
    fn next(&self, merge: Option<&MergeView>) -> Next {
        let next = |what: What| Next::agent(self.id, what);
        if let Some(merge) = merge.filter(|merge| merge.by == Some(self.id)) {
            let what = What::MergeNow { is_testing: merge.is_testing, age: merge.age };
            return next(what).on(Some(merge.task.clone()));
        }
        if let Some((task, since)) = self.ending() {
            return next(What::EndSession { age: self.at.now.since(since) }).on(task);
        }
        match self.is_in_session() {
            true => next(self.session()).on(self.entry.current_task.clone()),
            false => match self.setting_up() {
                Some(task) => next(What::SetUp).on(Some(task)),
                None => self.between_sessions(),
            },
        }
    }

    /// The task that its supervisor is claiming for it.
    fn setting_up(&self) -> Option<TaskId> {
        let is_own = |summary: &&TaskSummary| {
            let own = summary.reserved(self.at.now).filter(|reservation| reservation.by == self.id);
            own.is_some_and(|reservation| Some(reservation.generation) == self.entry.generation)
        };
        self.at.board().summaries().find(is_own).map(|summary| summary.id.clone())
    }

    fn is_in_session(&self) -> bool {
        let works = self.entry.status.is_in_session() && !self.holds_between_sessions();
        works || self.ending().is_some()
    }

    /// True if it holds its task while no session of it is running.
    fn holds_between_sessions(&self) -> bool {
        is_between_sessions(self.at.board(), self.id, self.entry)
    }

    /// The task and the time of a session that has submitted or decided and not ended; a planner has no task.
    fn ending(&self) -> Option<(Option<TaskId>, Timestamp)> {
        let of_task = ending_session(self.at.board(), self.id, self.entry);
        let of_task = of_task.map(|(task, since)| (Some(task), since));
        of_task.or_else(|| Some((None, decided_since(self.at.state, self.entry, self.at.now)?)))
    }

    fn session(&self) -> What {
        match self.entry.role {
            Role::Coder => What::Submit,
            Role::CodeReviewer if self.validates() => What::Validate,
            Role::CodeReviewer => What::Verdict,
            Role::Planner => self.planning(),
        }
    }

    /// True if the commands run that come before its session.
    fn validates(&self) -> bool {
        let task = self.entry.current_task.as_ref().and_then(|task| self.at.board().task(task).ok());
        let phase = task.and_then(|task| task.status.review().filter(|review| review.by == self.id)?.phase);
        phase.is_some()
    }

    fn planning(&self) -> What {
        let is_known = self.entry.session.as_ref().is_some_and(|session| !session.about.is_empty());
        let has_ended = self.at.sprint().is_some_and(|sprint| sprint.status == SprintStatus::Completed);
        match planner_work(&of_session(self.at.state, self.entry, self.at.now)) {
            PlannerWork::Judging if is_known => What::Judge,
            _ if !is_known && has_ended => What::Judge,
            PlannerWork::LookingAt(subject) => What::LookAt(subject),
            PlannerWork::Planning | PlannerWork::Judging => What::Plan { attempt: self.attempt() },
        }
    }

    /// The next session of a planner, for these triggers.
    fn planned(triggers: &[Trigger]) -> What {
        match planner_work(triggers) {
            PlannerWork::Judging => What::Judge,
            PlannerWork::LookingAt(subject) => What::LookAt(subject),
            PlannerWork::Planning => What::Plan { attempt: None },
        }
    }

    /// The number of a planner's session, if others before it had no result.
    fn attempt(&self) -> Option<(u32, u32)> {
        let failed = failed_planning(self.at.sprint()?, &unseen_triggers(self.at.state, self.at.now));
        let limit = self.at.config()?.max_crashes;
        (1..limit).contains(&failed).then_some((failed + 1, limit))
    }

    /// The best of its work, with the obstacles.
    fn between_sessions(&self) -> Next {
        let work = work_of(self.at.state, self.id, self.at.seen.found_merges(), self.at.now);
        let best = work.first();
        let next = |what: What| Next::agent(self.id, what);
        let mut step = match best {
            _ if self.holds_between_sessions() => {
                let step = next(What::Continue).on(self.entry.current_task.clone());
                if self.awaits_answer() { step.behind(Behind::Answer) } else { step }
            }
            Some(Work::Merge(task)) => next(What::Merge).on(Some(task.clone())),
            Some(Work::Code(task)) => next(What::Claim).on(Some(task.clone())),
            Some(Work::Review(task)) => next(What::Review).on(Some(task.clone())),
            Some(Work::Plan(triggers)) => next(Self::planned(triggers)),
            None if self.lacks_goal() => next(What::Wait).behind(Behind::Goal),
            None if self.awaits_verdict() => next(What::Wait).behind(Behind::Verdict),
            None if self.is_stopped_planner() => next(What::Wait).behind(Behind::StoppedPlanner),
            None if self.awaits_answer() => next(What::Wait).behind(Behind::Answer),
            None => next(What::Wait).behind(Behind::NewWork),
        };
        if self.at.seen.stop_files.is_paused() && step.what != What::Wait {
            step = step.behind(Behind::Resume);
        }
        if let Some(held) = held_program(self.at, self.id, self.entry) {
            let when = held.again_in.map(|left| self.at.now + left);
            return step.behind(Behind::Program(held)).at(when);
        }
        // An agent whose work has gone meanwhile tries nothing again.
        match Retry::of(self.at, self.id, self.entry).filter(|_| best.is_some_and(Work::needs_session)) {
            Some(retry) => step.behind(Behind::Pause(retry)).at(Some(self.at.now + retry.again_in)),
            None => step,
        }
    }

    fn awaits_verdict(&self) -> bool {
        self.entry.role == Role::Coder && self.entry.status == AgentStatus::Waiting
    }

    /// True if it has asked the human and takes nothing before the answer: a coder about the task that it holds.
    fn awaits_answer(&self) -> bool {
        let asked = open_questions(self.at.state);
        let mut own = asked.iter().filter(|question| question.is_from(self.id));
        match self.entry.role {
            Role::Coder => own.any(|question| question.task == self.entry.current_task),
            Role::Planner | Role::CodeReviewer => own.next().is_some(),
        }
    }

    /// True if there is something to plan, and only the human lets the planner do it.
    fn is_stopped_planner(&self) -> bool {
        self.entry.role == Role::Planner
            && planner_needs_human(self.at.state, self.at.now)
            && !unseen_triggers(self.at.state, self.at.now).is_empty()
    }

    fn lacks_goal(&self) -> bool {
        let goal = self.at.board().goal.ready();
        self.entry.role == Role::Planner && goal.is_some_and(|goal| goal.description.trim().is_empty())
    }
}
