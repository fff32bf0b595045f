//! Slow jobs: claims, merges, writes. They run on threads beside the loop, so that heartbeats and signals
//! never wait. Every write is made as the agent's supervisor, under its generation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::thread;

use liza_agents::prompts::Job;
use liza_core::model::{Actor, AgentId, AgentStatus, Generation, State, TaskId};
use liza_core::protocol::{
    Deregister, Heartbeat, LeaveReason, Operation, ReadNotes, SetStatus, TakeHandoff, UseClient,
};
use liza_core::rules::clients::{ClientChoice, choose_client};
use liza_core::rules::notes::unread;
use liza_core::rules::triggers::Trigger;
use liza_core::supervise::WorkKind;
use liza_git::ScratchCheckout;

use crate::engine::{Engine, EngineError, Exchange};
use crate::lifecycle::{
    MergeOutcome, claim_review, claim_task, recover, remove_ended_worktrees, take_new_commits, wt_merge,
};
use crate::project::{Project, now};

use super::error::{Consequence, SupervisorError};
use super::event::{Event, FailedClaim, JobOutcome};
use super::member::UsageToRecord;
use super::registration::{Identity, retry_locked};
use super::session::HelperProcess;
use super::session_result::EndedRun;
use super::start_session::{self, integration_copy, job_for};

#[derive(Debug, Clone)]
pub(super) enum BackgroundJob {
    /// Start to work; one agent of a team first repairs the damage of a crash.
    Begin {
        recover: bool,
    },
    Merge(TaskId),
    /// Claim one of these tasks and start a session on it.
    Code(Vec<TaskId>),
    /// Claim one of these reviews and start a session on it.
    Review(Vec<TaskId>),
    Plan(Vec<Trigger>),
    /// Judge a session that has ended, and record the result.
    Judge(Box<EndedRun>),
    Show(AgentStatus),
    Leave(LeaveReason),
}

/// Runs a job on a thread of its own; its outcome becomes an event.
pub(super) fn start(project: &Project, identity: &Identity, events: &Sender<Event>, job: BackgroundJob) {
    let mut runner = JobRunner::new(project, identity);
    let events = events.clone();
    thread::spawn(move || {
        let index = runner.identity.index;
        let leaves = matches!(job, BackgroundJob::Leave(_));
        let outcome = catch_panic(leaves, || runner.run(job));
        if !runner.lost_claims.is_empty() {
            let _ = events.send(Event::ClaimsLost(index, std::mem::take(&mut runner.lost_claims)));
        }
        // If the team is gone, nothing waits for the outcome.
        let _ = events.send(Event::JobDone(index, outcome));
        // After the outcome: the team must know that the session runs before it gets the session's reports.
        if let Some(helper) = runner.helper {
            helper.read_reports(|report| {
                let _ = events.send(Event::Session(index, report));
            });
        }
    });
}

/// Turns a panic into an outcome: otherwise the team would wait forever while it renews the lease.
fn catch_panic(
    leaves: bool,
    run: impl FnOnce() -> Result<JobOutcome, SupervisorError>,
) -> Result<JobOutcome, SupervisorError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| match leaves {
        true => Ok(JobOutcome::Left(Some(SupervisorError::Panicked))),
        false => Err(SupervisorError::Panicked),
    })
}

pub(super) fn merged_text(task: &TaskId) -> String {
    format!("{task} is MERGED")
}

pub(super) struct JobRunner {
    pub project: Project,
    pub identity: Identity,
    helper: Option<HelperProcess>,
    /// Tasks that other agents were faster to claim.
    lost_claims: Vec<FailedClaim>,
}

impl JobRunner {
    fn new(project: &Project, identity: &Identity) -> Self {
        let (project, identity) = (project.clone(), identity.clone());
        Self { project, identity, helper: None, lost_claims: Vec::new() }
    }

    fn run(&mut self, job: BackgroundJob) -> Result<JobOutcome, SupervisorError> {
        let agent = self.identity.agent;
        match job {
            BackgroundJob::Begin { recover } => self.begin(recover),
            BackgroundJob::Merge(task) => {
                let text = self.merge(&task).map_err(|error| error.on(WorkKind::Merge, Some(&task)))?;
                Ok(JobOutcome::Merged(task, text))
            }
            BackgroundJob::Code(tasks) => {
                let claim = |engine: &Engine<'_>, task: &TaskId| claim_task(engine, task, agent).map(drop);
                self.claim_and_start(WorkKind::Code, &tasks, claim)
            }
            BackgroundJob::Review(tasks) => {
                let claim = |engine: &Engine<'_>, task: &TaskId| claim_review(engine, task, agent).map(drop);
                let started = self.claim_and_start(WorkKind::Review, &tasks, claim);
                // A result, although no session has begun.
                let validation = started.as_ref().err().and_then(SupervisorError::validation);
                validation.map_or(started, |note| Ok(JobOutcome::Ready(vec![note])))
            }
            BackgroundJob::Plan(triggers) => {
                self.plan(triggers).map_err(|error| error.on(WorkKind::Plan, None))
            }
            BackgroundJob::Judge(run) => self.judge(*run),
            BackgroundJob::Show(status) => {
                self.execute(&SetStatus::new(agent, status))?;
                Ok(JobOutcome::StatusShown)
            }
            BackgroundJob::Leave(because) => Ok(JobOutcome::Left(self.leave(because).err())),
        }
    }

    fn engine(&self) -> Engine<'_> {
        Engine::new(&self.project, Actor::Supervisor(self.identity.agent, self.identity.generation))
    }

    /// Executes a command, with several tries for the lock. A worktree that it cannot remove is left to `recover`.
    pub(super) fn execute<C: Operation + Clone>(&self, command: &C) -> Result<C::Reply, SupervisorError> {
        retry_locked(|| Ok(self.engine().execute(command.clone())?.reply))
    }

    fn begin(&self, recover_first: bool) -> Result<JobOutcome, SupervisorError> {
        let mut notes = Vec::new();
        if recover_first {
            let report = retry_locked(|| Ok(recover(&self.engine())?))?;
            notes.extend(report.repaired.iter().map(|finding| format!("repaired {finding}")));
            notes.extend(report.left.iter().map(|finding| format!("could not repair {finding}")));
        }
        self.execute(&SetStatus::new(self.identity.agent, AgentStatus::Idle))?;
        Ok(JobOutcome::Ready(notes))
    }

    pub(super) fn merge(&self, task: &TaskId) -> Result<String, SupervisorError> {
        match retry_locked(|| Ok(wt_merge(&self.engine(), task)?))? {
            MergeOutcome::Merged(_) => Ok(merged_text(task)),
            // Recorded on the blackboard; a coder fixes it.
            MergeOutcome::Failed(failure) => Ok(format!("{task} could not be merged: {failure}")),
            MergeOutcome::Held(failure) => Ok(format!(
                "{task} stays APPROVED: the {} even without its change. liza status shows what to do",
                failure.what
            )),
            MergeOutcome::GateChanged(change) => Ok(format!(
                "{task} stays APPROVED: it changes what judges it ({}). liza status shows what to do",
                change.files.join(", ")
            )),
            MergeOutcome::CheckoutRefused { path, message } => {
                Err(SupervisorError::CheckoutRefused { task: task.clone(), path, message })
            }
        }
    }

    fn claim_and_start(
        &mut self,
        kind: WorkKind,
        tasks: &[TaskId],
        claim: impl Fn(&Engine<'_>, &TaskId) -> Result<(), EngineError>,
    ) -> Result<JobOutcome, SupervisorError> {
        self.choose_client().map_err(|error| error.on(kind, None))?;
        let task = self.claim_first(kind, tasks, claim)?;
        self.start_on(&task).map_err(|error| error.on(kind, Some(&task)))
    }

    /// Claims the first task that is still claimable. Another failure ends the job; the next one leaves it out.
    fn claim_first(
        &mut self,
        kind: WorkKind,
        tasks: &[TaskId],
        claim: impl Fn(&Engine<'_>, &TaskId) -> Result<(), EngineError>,
    ) -> Result<TaskId, SupervisorError> {
        let mut last: Option<(&TaskId, SupervisorError)> = None;
        for task in tasks {
            // The last error is reported as that of the job.
            self.lost_claims.extend(last.take().map(|(task, error)| {
                let (task, why) = (task.clone(), error.to_string());
                FailedClaim { kind, task, why }
            }));
            match retry_locked(|| Ok(claim(&self.engine(), task)?)) {
                Ok(()) => return Ok(task.clone()),
                Err(error) if error.validation().is_some() => return Err(error),
                Err(error) if error.consequence() == Consequence::Recheck => last = Some((task, error)),
                Err(error) => return Err(error.on(kind, Some(task))),
            }
        }
        Err(last.map_or(SupervisorError::NothingToClaim, |(task, error)| error.on(kind, Some(task))))
    }

    fn start_on(&mut self, task: &TaskId) -> Result<JobOutcome, SupervisorError> {
        let state = self.project.state()?;
        let job = job_for(&self.project, &state, &self.identity, task)?;
        if state.board.summary(task).is_some_and(|summary| summary.handoff_pending) {
            self.execute(&TakeHandoff { task: task.clone() })?;
        }
        self.start_session(&state, &job, None)
    }

    /// Chooses the client of the next session. Only one session of the team tries a held one.
    fn choose_client(&mut self) -> Result<(), SupervisorError> {
        if self.identity.interactive {
            return Ok(());
        }
        let (agent, state, names) =
            (self.identity.agent, self.project.state()?, self.identity.provider.names());
        let choice = choose_client(state.board.sprint()?, &names, now());
        let index = match choice {
            ClientChoice::Use(index) | ClientChoice::Probe(index) => index,
            ClientChoice::Held { .. } => 0,
        };
        let Some(provider) = self.identity.provider.nth(index).cloned() else { return Ok(()) };
        provider.check_budget(state.board.config()?)?;
        let client = provider.name().to_owned();
        let entry = state.board.agents.ready().and_then(|agents| agents.get(&agent));
        let known = entry.is_some_and(|entry| entry.client.as_ref() == Some(&client));
        if !known || !matches!(choice, ClientChoice::Use(_)) {
            self.execute(&UseClient { agent, client })?;
        }
        self.identity.provider = provider;
        Ok(())
    }

    fn plan(&mut self, triggers: Vec<Trigger>) -> Result<JobOutcome, SupervisorError> {
        self.choose_client()?;
        if let Some(exchange) = Exchange::of(&self.project)? {
            exchange.follow()?;
        }
        // Before the session is charged: a failed set-up counts against no one.
        let copy = integration_copy(&self.project, &*self.project.state()?)?;
        self.execute(&SetStatus::planning(self.identity.agent, &triggers))?;
        let state = self.project.state()?;
        self.start_session(&state, &Job::Plan { triggers }, copy)
    }

    fn start_session(
        &mut self,
        state: &State,
        job: &Job,
        copy: Option<ScratchCheckout>,
    ) -> Result<JobOutcome, SupervisorError> {
        let (session, helper) = start_session::start(&self.project, state, &self.identity, job, copy)?;
        self.helper = Some(helper);
        self.record_notes(state, session.task.as_ref());
        Ok(JobOutcome::Started(Box::new(session)))
    }

    /// Records the notes in the prompt as read. If that fails, the session is told of them with its first command.
    fn record_notes(&self, state: &State, task: Option<&TaskId>) {
        let agent = self.identity.agent;
        if !unread(state, agent, task).is_empty() {
            let number = state.journal.human_notes.len();
            let _ = self.execute(&ReadNotes { agent, task: task.cloned(), number });
        }
    }

    fn leave(&self, because: LeaveReason) -> Result<(), SupervisorError> {
        match self.execute(&Deregister { because, ..Deregister::any(self.identity.agent) }) {
            // The registration of another process stays.
            Err(error) if error.consequence() == Consequence::Fenced => Ok(()),
            result => result.map(drop),
        }
    }
}

/// Records the usage of a running session, beside the loop. If that fails, it is recorded when the session ends.
pub(super) fn record_usage(project: &Project, identity: &Identity, usage: UsageToRecord) {
    let runner = JobRunner::new(project, identity);
    thread::spawn(move || runner.record_usage(&usage));
}

/// Renews the leases of the whole team in one write, beside the loop.
pub(super) fn renew_leases(project: &Project, team: &[Identity], events: &Sender<Event>) {
    let team: Vec<(AgentId, Generation)> =
        team.iter().map(|identity| (identity.agent, identity.generation)).collect();
    let (project, events) = (project.clone(), events.clone());
    thread::spawn(move || {
        let (claims, result) = match renew(&project, &team) {
            Ok(claims) => (claims, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let _ = events.send(Event::LeasesRenewed(result));
        // After the event: a large worktree must not delay the next renewal. One at a time is enough.
        if let Ok(_turn) = TAKING.try_lock() {
            take_new_commits(&project, &claims);
            remove_ended_worktrees(&project);
        }
    });
}

static TAKING: Mutex<()> = Mutex::new(());

/// Tries each member as the sender, which must be registered itself, so that one lost registration doesn't
/// cost the others their leases. Returns the renewed claims.
fn renew(
    project: &Project,
    team: &[(AgentId, Generation)],
) -> Result<Vec<(TaskId, Generation)>, SupervisorError> {
    let mut result = Ok(Vec::new());
    for (agent, generation) in team {
        let agents = team.iter().map(|(agent, generation)| (*agent, Some(*generation))).collect();
        let engine = Engine::new(project, Actor::Supervisor(*agent, *generation));
        let renewed = engine.execute(Heartbeat { agents, length: None });
        result = renewed.map(|done| done.reply.claims).map_err(SupervisorError::from);
        let fenced = |error: &SupervisorError| error.consequence() == Consequence::Fenced;
        if !result.as_ref().is_err_and(fenced) {
            break;
        }
    }
    result
}

#[cfg(test)]
pub(super) mod tests {
    use liza_core::model::Loaded;
    use liza_core::protocol::Register;

    use super::*;

    fn panics() -> Result<JobOutcome, SupervisorError> {
        std::panic::resume_unwind(Box::new(()))
    }

    /// A project with a blackboard and no agents.
    pub(crate) fn project(root: &std::path::Path) -> Project {
        let (mut state, now) = (State::default(), now());
        state.board.revision = liza_core::model::Revision(1);
        let goal = serde_json::json!({"id": "goal-1", "description": "x", "status": "IN_PROGRESS"});
        state.board.goal = Loaded::Ready(serde_json::from_value(goal).unwrap());
        state.board.agents = Loaded::Ready(Default::default());
        state.board.config = Loaded::Ready(Default::default());
        state.board.sprint = Loaded::Ready(liza_core::model::Sprint::begin(1, "goal-1", now));
        state.board.circuit_breaker = Loaded::Ready(Default::default());
        state.board.discovered = Loaded::Ready(Vec::new());
        state.board.handoff = Loaded::Ready(Default::default());
        let [agent, action, detail] = ["human", "goal_created", "x"].map(str::to_owned);
        let log = liza_core::model::LogEntry { timestamp: now, agent, action, task: None, detail };
        liza_store::Store::create(root, &state, &log).unwrap();
        Project::open(root).unwrap()
    }

    /// Covers: CL-07, CL-10
    #[test]
    fn a_lost_registration_does_not_cost_the_others_their_leases() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let engine = Engine::new(&project, Actor::Human);
        let register = |name: &str| {
            let agent: AgentId = name.parse().unwrap();
            let command = Register {
                agent,
                terminal: String::new(),
                machine: None,
                proven_dead: None,
                generation: None,
            };
            (agent, engine.execute(command).unwrap().reply.generation)
        };
        let (lost, here) = (register("planner-1"), register("coder-1"));
        let _ = engine.execute(Deregister::any(lost.0)).unwrap();
        assert!(renew(&project, &[lost, here]).is_ok());
        assert_eq!(renew(&project, &[lost]).unwrap_err().consequence(), Consequence::Fenced);
    }

    /// Covers: AG-05
    #[test]
    fn a_job_that_panics_has_an_outcome() {
        assert!(matches!(catch_panic(false, panics), Err(SupervisorError::Panicked)));
        let left = catch_panic(true, panics);
        assert!(matches!(left, Ok(JobOutcome::Left(Some(SupervisorError::Panicked)))));
        let fine = catch_panic(false, || Ok(JobOutcome::StatusShown));
        assert!(matches!(fine, Ok(JobOutcome::StatusShown)));
    }
}
