//! The loop's steps for an agent between sessions: finds work, starts a job, handles its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{AgentStatus, Config, Role, State, Status, TaskId, Timestamp};
use liza_core::rules::triggers::{in_words, planner_work};
use liza_core::supervise::{
    AfterSession, Situation, Step, StopReason, WaitReason, Work, WorkKind, backoff, next_step,
    still_registered, unseen_triggers,
};
use liza_core::text::count;

use crate::lifecycle::order_reviews;
use crate::project::now;

use super::background::BackgroundJob;
use super::error::{Consequence, FailedWork, SupervisorError};
use super::event::{JobOutcome, MemberIndex, SessionVerdict};
use super::login_turns::LoginTurns;
use super::member::{EndReason, Member, MemberState, RunningSession, Snapshot};
use super::message::MessageLevel;
use super::renewals::RENEW_RETRY;
use super::team::{Team, after, instant_of};

impl Team<'_> {
    /// Takes an agent's next step, if it has one.
    pub(super) fn advance(&mut self, index: MemberIndex) {
        let Some(member) = self.members.get(index) else { return };
        match member.state {
            MemberState::Gone(_) | MemberState::Leaving(_) => {}
            // Without a registration, everything that the job still tries is refused.
            MemberState::Busy if self.job_time_is_over(member) => self.leave(index, EndReason::Signalled),
            MemberState::Busy => {}
            MemberState::InSession(_) => self.check_session(index),
            MemberState::Idle if self.no_client => self.leave(index, EndReason::NoClient),
            MemberState::Idle if self.stopping.is_some() => self.leave(index, EndReason::Signalled),
            MemberState::Idle if !self.readable => {
                self.wake_at(index, Instant::now() + Duration::from_secs(1));
            }
            MemberState::Idle if member.has_seen(&self.snapshot()) => {}
            MemberState::Idle => self.find_work(index),
        }
    }

    fn find_work(&mut self, index: MemberIndex) {
        let state = Arc::clone(&self.state);
        let Some(member) = self.members.get_mut(index) else { return };
        member.no_work_in = None;
        let identity = &member.identity;
        if !still_registered(&state, identity.agent, identity.generation) {
            member.state = MemberState::Gone(EndReason::RegistrationLost);
            self.alert(index, "no longer registered by this process; ending");
            return;
        }
        if Instant::now() < member.not_before {
            member.wake = Some(member.not_before);
            return;
        }
        let clients = if member.post.interactive { Vec::new() } else { identity.provider.names() };
        let situation = Situation {
            state: &state,
            agent: identity.agent,
            stop_files: self.stop_files,
            found_merges: &self.found_merges,
            now: now(),
            idle_since: member.idle_since,
            in_team: self.in_team,
            clients: &clients,
            backoffs: self.failing.backoffs(now()),
        };
        let step = limit_to_post(next_step(&situation), member, &situation, &self.config);
        self.carry_out(index, step);
    }

    pub(super) fn carry_out(&mut self, index: MemberIndex, step: Step) {
        if self.holding && !matches!(step, Step::Hold(_)) {
            self.holding = false;
            self.report_all(MessageLevel::Info, "resuming work");
        }
        match step {
            Step::Stop(reason) => {
                let level = match &reason {
                    StopReason::ClientHeld { .. } => MessageLevel::Alert,
                    StopReason::Aborted | StopReason::RoleComplete | StopReason::WaitedLongEnough => {
                        MessageLevel::Debug
                    }
                };
                self.report(index, level, stop_text(&reason, &self.config));
                self.leave(index, EndReason::Stop(reason));
            }
            Step::Hold(file) => {
                self.holding = true;
                let text = format!(".liza/{} is present; no new work starts", file.name());
                self.report_all(MessageLevel::Info, &text);
                self.reset_idle_time(index);
                self.rest(index, after(self.config.coder_poll_interval));
            }
            Step::Work(work) => self.take_up(index, work),
            Step::Wait { why, until } => self.wait(index, &why, until),
        }
    }

    /// Does the first of these that no other agent of the team prevents: only one of them merges at a time.
    fn take_up(&mut self, index: MemberIndex, mut work: Vec<Work>) {
        let running = self.members.iter().find_map(|other| other.merging.clone());
        let waiting = work.first().and_then(Work::task).cloned();
        if running.is_some() {
            work.retain(Work::needs_session);
        }
        match (work.first(), running, waiting) {
            (None, Some(other), Some(task)) => {
                // No event: the agent may take something else before, or another agent the merge. The list of agents shows it.
                self.debug(index, format!("waits for the merge of {other}, then merges {task}"));
                self.rest(index, after(self.config.coder_poll_interval));
            }
            (None, _, _) => self.rest(index, after(self.config.coder_poll_interval)),
            (Some(Work::Merge(task)), _, _) => self.merge(index, task.clone()),
            (Some(Work::Code(_) | Work::Review(_) | Work::Plan(_)), _, _) => self.start_work(index, work),
        }
    }

    fn start_work(&mut self, index: MemberIndex, work: Vec<Work>) {
        if !self.may_start_session(index) {
            self.debug(index, "its lease must be renewed before a session starts");
            return self.wake_at(index, Instant::now() + RENEW_RETRY);
        }
        if !self.may_use_login(index) {
            return;
        }
        let tasks: Vec<TaskId> = work.iter().filter_map(|work| work.task().cloned()).collect();
        match work.into_iter().next() {
            Some(Work::Code(_)) => self.claim(index, tasks, BackgroundJob::Code),
            Some(Work::Review(_)) => {
                let tasks = order_reviews(&self.project, tasks);
                self.claim(index, tasks, BackgroundJob::Review);
            }
            Some(Work::Plan(triggers)) => {
                self.info(index, format!("starts: {}", in_words(&triggers)));
                self.run_job(index, BackgroundJob::Plan(triggers));
            }
            Some(Work::Merge(_)) | None => {}
        }
    }

    fn merge(&mut self, index: MemberIndex, task: TaskId) {
        self.info(index, format!("merging {task}"));
        if let Some(member) = self.members.get_mut(index) {
            member.merging = Some(task.clone());
        }
        self.run_job(index, BackgroundJob::Merge(task));
    }

    /// Claims the first task that no other agent of the team is claiming.
    fn claim(&mut self, index: MemberIndex, mut tasks: Vec<TaskId>, job: fn(Vec<TaskId>) -> BackgroundJob) {
        let role = self.members.get(index).map(|member| member.post.role);
        let others = self.members.iter().filter(|other| Some(other.post.role) == role);
        let taken: Vec<&TaskId> = others.filter_map(|other| other.claiming.as_ref()).collect();
        tasks.retain(|task| !taken.contains(&task));
        let Some(first) = tasks.first().cloned() else {
            return self.rest(index, after(self.config.coder_poll_interval));
        };
        if let Some(member) = self.members.get_mut(index) {
            member.claiming = Some(first);
        }
        self.run_job(index, job(tasks));
    }

    fn wait(&mut self, index: MemberIndex, why: &WaitReason, until: Timestamp) {
        match why {
            WaitReason::Drafts(number) => {
                let drafts = count(*number, "draft");
                self.debug(index, format!("waiting: {drafts} not finalized yet"));
            }
            WaitReason::NoGoal => self.info(index, "waiting for a goal: liza goal new \"GOAL\""),
            WaitReason::NoWork => self.debug(index, "waiting for work"),
            WaitReason::BrokenConfig(why) => self.alert(index, format!("waiting: {why}")),
            WaitReason::PutOff => {
                // It has work; only the repair delays it.
                self.reset_idle_time(index);
                return self.wake_at(index, instant_of(until));
            }
            WaitReason::BudgetUsedUp(spent) => {
                self.info(index, format!("waiting: a budget is used up: {spent}"));
                self.reset_idle_time(index);
            }
            WaitReason::ClientHeld { client, hold } => {
                let until = hold.until.map_or_else(String::new, |until| format!(" until {until}"));
                // The failed session has reported it.
                self.debug(index, format!("waiting for {client}{until}: {}", hold.message));
                self.reset_idle_time(index);
            }
        }
        let Some(member) = self.members.get_mut(index) else { return };
        if member.post.role == Role::Planner && !member.shown_waiting {
            member.shown_waiting = true;
            self.run_job(index, BackgroundJob::Show(AgentStatus::Waiting));
            return;
        }
        let end = member.idle_since + self.config.coder_max_wait;
        let ends_soon = !self.in_team && end > now();
        self.rest(index, instant_of(if ends_soon { until.min(end) } else { until }));
    }

    /// Notes that the current snapshot has no work for an agent, so that it is not checked twice.
    fn rest(&mut self, index: MemberIndex, until: Instant) {
        let seen = self.snapshot();
        if let Some(member) = self.members.get_mut(index) {
            member.wake = Some(until);
            member.no_work_in = Some(seen);
            member.login_turn = LoginTurns::default();
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot { version: self.states_read, stop_files: self.stop_files, jobs_done: self.jobs_done }
    }

    fn wake_at(&mut self, index: MemberIndex, time: Instant) {
        if let Some(member) = self.members.get_mut(index) {
            member.wake = Some(time);
        }
    }

    pub(super) fn job_done(&mut self, index: MemberIndex, result: Result<JobOutcome, SupervisorError>) {
        let Some(member) = self.members.get_mut(index) else { return };
        // An agent can leave before its merge has ended.
        if !matches!(result, Ok(JobOutcome::Left(_))) {
            (member.claiming, member.merging) = (None, None);
        }
        match (&mut member.state, result) {
            (MemberState::Leaving(reason), Ok(JobOutcome::Left(error))) => {
                let reason = std::mem::replace(reason, EndReason::Signalled);
                member.state = MemberState::Gone(reason);
                match error {
                    Some(error) => self.alert(index, format!("cannot deregister: {error}")),
                    None => self.debug(index, "deregistered"),
                }
            }
            // The agent is leaving; the outcome of an earlier job no longer matters.
            (MemberState::Leaving(_) | MemberState::Gone(_), _) => {}
            (MemberState::Busy | MemberState::Idle | MemberState::InSession(_), Ok(outcome)) => {
                self.job_succeeded(index, outcome);
            }
            (MemberState::Busy | MemberState::Idle | MemberState::InSession(_), Err(error)) => {
                self.job_failed(index, error);
            }
        }
    }

    fn job_succeeded(&mut self, index: MemberIndex, outcome: JobOutcome) {
        match outcome {
            JobOutcome::Ready(notes) => {
                notes.into_iter().for_each(|note| self.info(index, note));
                self.reset_idle_time(index);
                self.idle_until(index, Instant::now());
            }
            JobOutcome::Merged(task, text) => {
                self.info(index, text);
                self.work_succeeded(index, &FailedWork { kind: WorkKind::Merge, task: Some(task) });
                self.reset_idle_time(index);
                self.idle_until(index, Instant::now());
            }
            JobOutcome::Started(session) => {
                let lease = self.lease_of(index).unwrap_or_else(now);
                let Some(member) = self.members.get(index) else { return };
                let text = work_text(member.post.role, session.task.as_ref(), &self.state);
                let kind = WorkKind::of_sessions(member.post.role);
                self.info(index, text);
                self.work_succeeded(index, &FailedWork { kind, task: session.task.clone() });
                let Some(member) = self.members.get_mut(index) else { return };
                member.shown_waiting = false;
                member.reported = None;
                let running = RunningSession::new(*session, now(), lease);
                member.state = MemberState::InSession(Box::new(running));
                self.renew_in_time();
            }
            JobOutcome::Judged(verdict) => self.session_judged(index, verdict),
            JobOutcome::StatusShown => self.idle_until(index, Instant::now()),
            JobOutcome::Left(_) => {}
        }
    }

    fn session_judged(&mut self, index: MemberIndex, verdict: SessionVerdict) {
        let SessionVerdict { task, next, gave_up, is_reported, result, notes } = verdict;
        if let Some(result) = result {
            self.report_result(index, result);
        }
        for (level, note) in notes {
            self.report(index, level, note);
        }
        let level = if next.progress { MessageLevel::Debug } else { MessageLevel::Info };
        if gave_up.is_none() && !is_reported {
            self.report(index, level, after_text(&next));
        }
        self.reset_idle_time(index);
        let Some(member) = self.members.get_mut(index) else { return };
        member.shown_waiting = member.post.role == Role::Planner;
        if next.progress {
            (member.crashes, member.login_restarts) = (0, 0);
        }
        if member.post.once {
            return self.leave(index, EndReason::Once);
        }
        if let Some(error) = gave_up {
            self.alert(index, "ends: too many sessions without a result. Logs: .liza/agent-outputs/");
            return self.leave(index, EndReason::Failed(error));
        }
        let (agent, kind) = (member.identity.agent, WorkKind::of_sessions(member.post.role));
        let subject = FailedWork { kind, task }.subject(agent);
        self.failing.put_off(kind, subject, next.pause);
        self.idle_until(index, Instant::now());
    }

    fn job_failed(&mut self, index: MemberIndex, error: SupervisorError) {
        let Some(member) = self.members.get_mut(index) else { return };
        match error.consequence() {
            Consequence::Halted => {
                self.info(index, error.to_string());
                self.idle_until(index, Instant::now() + Duration::from_millis(200));
            }
            Consequence::Fenced => {
                member.state = MemberState::Gone(EndReason::RegistrationLost);
                self.alert(index, format!("{error}; ending"));
            }
            Consequence::Locked => {
                self.alert(index, error.to_string());
                self.leave(index, EndReason::Failed(error));
            }
            Consequence::Recheck | Consequence::Inconsistent | Consequence::RetryLater => {
                // It has work; only the repair delays it.
                member.idle_since = now();
                if let Some(work) = error.work().cloned() {
                    self.work_failed(index, &work, &error);
                    return self.idle_until(index, Instant::now());
                }
                member.failures += 1;
                let pause = backoff(member.failures);
                self.alert(index, format!("{error}. Retry in {pause}"));
                self.idle_until(index, after(pause));
            }
        }
    }

    fn idle_until(&mut self, index: MemberIndex, time: Instant) {
        if let Some(member) = self.members.get_mut(index) {
            member.state = MemberState::Idle;
            member.login_turn = LoginTurns::default();
            member.not_before = time;
            member.wake = Some(time);
        }
    }

    fn reset_idle_time(&mut self, index: MemberIndex) {
        if let Some(member) = self.members.get_mut(index) {
            member.idle_since = now();
        }
    }

    pub(super) fn lease_of(&self, index: MemberIndex) -> Option<Timestamp> {
        let agent = self.members.get(index)?.identity.agent;
        self.state.board.agents.ready()?.get(&agent)?.lease_expires
    }
}

/// Fits a step to the agent's post: its named task comes first, and is the only one of an agent that runs once.
fn limit_to_post(step: Step, member: &Member, situation: &Situation<'_>, config: &Config) -> Step {
    let (Some(named), once) = (&member.post.task, member.post.once) else { return step };
    match step {
        Step::Work(mut work) => {
            let is_named = |work: &Work| work.task() == Some(named);
            work.retain(|work| !once || !work.needs_session() || is_named(work));
            work.sort_by_key(|work| (work.needs_session(), !is_named(work)));
            if work.is_empty() { nothing_for(named, situation, config) } else { Step::Work(work) }
        }
        Step::Wait { .. } if once => nothing_for(named, situation, config),
        Step::Stop(_) | Step::Hold(_) | Step::Wait { .. } => step,
    }
}

/// An agent that runs once waits for its task, unless that has ended or it has waited long enough.
fn nothing_for(named: &TaskId, situation: &Situation<'_>, config: &Config) -> Step {
    if situation.state.board.status(named).is_some_and(Status::is_terminal) {
        return Step::Stop(StopReason::RoleComplete);
    }
    let waited = situation.now.since(situation.idle_since) >= config.coder_max_wait;
    match waited && !situation.in_team {
        true => Step::Stop(StopReason::WaitedLongEnough),
        false => Step::Wait { why: WaitReason::NoWork, until: situation.now + config.coder_poll_interval },
    }
}

fn work_text(role: Role, task: Option<&TaskId>, state: &State) -> String {
    match (role, task) {
        (Role::Coder, Some(task)) => format!("working on {task}"),
        (Role::CodeReviewer, Some(task)) => format!("reviewing {task}"),
        (Role::Planner, _) | (_, None) => planner_work(&unseen_triggers(state, now())).to_string(),
    }
}

fn stop_text(reason: &StopReason, config: &Config) -> String {
    match reason {
        StopReason::Aborted => ".liza/ABORT is present, or the goal was aborted; ending".to_owned(),
        StopReason::RoleComplete => "no work is left for this role; ending".to_owned(),
        StopReason::WaitedLongEnough => {
            format!("no work for {} (coder_max_wait); ending", config.coder_max_wait)
        }
        StopReason::ClientHeld { client, why } => format!("{client} cannot be used: {why}. Ending"),
    }
}

fn after_text(next: &AfterSession) -> String {
    match (next.progress, next.pause.0) {
        (true, _) => "done".to_owned(),
        (false, 0) => "stopped".to_owned(),
        (false, pause) => {
            format!("no result. Retry in {pause} s. Logs: .liza/agent-outputs/")
        }
    }
}
