//! What takes its time: claims, merges, writes. Done apart from the loop, so that heartbeats and signals never wait.
//!
//! Every write is made in the name of the agent's supervisor, under its generation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::mpsc::Sender;
use std::thread;

use liza_core::model::{Actor, AgentId, AgentStatus, AnomalyType, Fields, Generation, Role, State, TaskId, Value};
use liza_core::protocol::{Command, CompleteSprint, Deregister, Heartbeat, LogAnomaly, MarkTriggersSeen, RecordUsage, Register, SetStatus, TakeHandoff, UpdateSprintMetrics};
use liza_core::rules::metrics::sprint_metrics;
use liza_core::rules::triggers::Trigger;
use liza_core::watch::supervise::{AfterSession, EXIT_RESTART, EndedSession as Judged, SessionEnd, after_session};

use crate::effects::{remove_worktree, run_halts, to_remove};
use crate::project::Project;
use crate::prompts::Job;
use crate::work::{Work, WorkError};

use super::event::{Event, Outcome};
use super::member::Account;
use super::prepare::{self, Who, job_for};
use super::registration::patiently;
use super::session::Follower;
use super::told;
use super::trouble::Trouble;

/// Something to do.
#[derive(Debug, Clone)]
pub(super) enum Errand {
    /// Settle what crashes have left, where nobody of this team has yet, and begin to look for work.
    Begin { recover: bool },
    /// Merge what was approved.
    Merge(TaskId),
    /// Claim one of these and start a session on it.
    Code(Vec<TaskId>),
    /// Claim one of these reviews and start a session on it.
    Review(Vec<TaskId>),
    /// Start a planning session.
    Plan(Vec<Trigger>),
    /// Judge a session that has ended, and write down what follows.
    Judge {
        session: Judged,
        ending: SessionEnd,
        triggers: Vec<String>,
        checkout: Option<String>,
        account: Account,
    },
    /// Show what the agent does.
    Show(AgentStatus),
    /// Take the agent off the board.
    Leave,
}

/// Does an errand on a thread of its own; what comes of it is an event.
pub(super) fn send(project: &Project, who: &Who, events: &Sender<Event>, errand: Errand) {
    let runner = Runner { project: project.clone(), who: who.clone(), follower: None };
    let events = events.clone();
    thread::spawn(move || {
        let mut runner = runner;
        let seat = runner.who.seat;
        let leaves = matches!(errand, Errand::Leave);
        let done = guarded(leaves, || runner.run(errand));
        // The team is gone: then nobody has to know.
        let _ = events.send(Event::Done(seat, done));
        // Only now: a session's reports mean nothing to whoever does not know that it runs.
        if let Some(follower) = runner.follower {
            follower.follow(seat, &events);
        }
    });
}

/// Even a mistake of ours has an end that is told: nobody would wait for it otherwise, while the lease is renewed for ever.
fn guarded(leaves: bool, act: impl FnOnce() -> Result<Outcome, Trouble>) -> Result<Outcome, Trouble> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        let trouble = Trouble::Failed("a mistake in liza itself, told above: please report it".to_owned());
        if leaves { Ok(Outcome::Left(Some(trouble))) } else { Err(trouble) }
    })
}

struct Runner {
    project: Project,
    who: Who,
    /// The reports of the session that was started.
    follower: Option<Follower>,
}

impl Runner {
    fn run(&mut self, errand: Errand) -> Result<Outcome, Trouble> {
        match errand {
            Errand::Begin { recover } => self.begin(recover),
            Errand::Merge(task) => self.merge(&task),
            Errand::Code(tasks) => {
                let task = self.first_of(&tasks, |work, task| work.claim(task, self.who.agent).map(drop))?;
                self.start_on(&task)
            }
            Errand::Review(tasks) => {
                let task =
                    self.first_of(&tasks, |work, task| work.claim_review(task, self.who.agent).map(drop))?;
                self.start_on(&task)
            }
            Errand::Plan(triggers) => self.plan(triggers),
            Errand::Judge { session, ending, triggers, checkout, account } => {
                let trouble = self.book(&account).err();
                let mut judged = self.judge(&session, ending, triggers, checkout.as_deref())?;
                if let (Some(trouble), Outcome::Judged { notes, .. }) = (trouble, &mut judged) {
                    notes.push(format!("what it used could not be written down: {trouble}"));
                }
                Ok(judged)
            }
            Errand::Show(status) => {
                self.submit(&Command::from(SetStatus { agent: self.who.agent, status }))?;
                Ok(Outcome::Shown)
            }
            Errand::Leave => Ok(Outcome::Left(self.leave().err())),
        }
    }

    fn actor(&self) -> Actor {
        Actor::Supervisor(self.who.agent, self.who.generation)
    }

    /// Writes, patiently, and does in the world what follows.
    fn submit(&self, command: &Command) -> Result<Fields, Trouble> {
        let outcome = patiently(|| Ok(self.project.submit(self.actor(), None, command.clone())?))?;
        run_halts(&self.project, &outcome.effects)?;
        for task in to_remove(&outcome.effects) {
            // What is left of it is settled at the next start.
            let _ = remove_worktree(&self.project, task);
        }
        match outcome.refusal {
            Some(refusal) => Err(refusal.into()),
            None => Ok(outcome.reply),
        }
    }

    fn begin(&self, recover: bool) -> Result<Outcome, Trouble> {
        let mut notes = Vec::new();
        if recover {
            let report = patiently(|| Ok(Work::new(&self.project, self.actor()).recover()?))?;
            let tell = |what: &str, finding: &crate::work::Finding| {
                format!("{what} {}: {}, {}", finding.subject, finding.found, finding.done)
            };
            notes.extend(report.settled.iter().map(|finding| tell("settled", finding)));
            notes.extend(report.left.iter().map(|finding| tell("could not settle", finding)));
        }
        self.submit(&Command::from(SetStatus { agent: self.who.agent, status: AgentStatus::Idle }))?;
        // Whoever had ended the last task may have been killed before it could end the sprint.
        self.complete_sprint();
        Ok(Outcome::Ready(notes))
    }

    fn merge(&self, task: &TaskId) -> Result<Outcome, Trouble> {
        let merged = patiently(|| match Work::new(&self.project, self.actor()).merge(task) {
            Ok(_) => Ok(format!("{task} is merged")),
            // The blackboard says so by now: it is a coder's turn.
            Err(
                error @ (WorkError::Conflict { .. }
                | WorkError::Unrelated { .. }
                | WorkError::TestFailed { .. }),
            ) => Ok(format!("{task} could not be merged: {error}")),
            Err(error) => Err(error.into()),
        })?;
        self.complete_sprint();
        Ok(Outcome::Merged(merged))
    }

    /// Ends the sprint where it has come to its end; refused as long as it has not.
    fn complete_sprint(&self) {
        if self.submit(&Command::from(CompleteSprint)).is_ok()
            && let Ok(state) = self.project.store().snapshot()
        {
            // The archive keeps the last figures; a failure is made good by the next count.
            let _ = self.submit(&Command::from(UpdateSprintMetrics { metrics: sprint_metrics(&state) }));
        }
    }

    /// The first of the tasks that can be had; every loss is on the log.
    fn first_of(
        &self,
        tasks: &[TaskId],
        claim: impl Fn(&Work<'_>, &TaskId) -> Result<(), WorkError>,
    ) -> Result<TaskId, Trouble> {
        let mut lost = Trouble::Refused("nothing could be claimed".to_owned());
        for task in tasks {
            let claimed = patiently(|| Ok(claim(&Work::new(&self.project, self.actor()), task)?));
            match claimed {
                Ok(()) => return Ok(task.clone()),
                Err(trouble @ Trouble::Refused(_)) => lost = trouble,
                Err(trouble) => return Err(trouble),
            }
        }
        Err(lost)
    }

    /// Starts a session on a task that is the agent's.
    fn start_on(&mut self, task: &TaskId) -> Result<Outcome, Trouble> {
        let state = self.project.look()?;
        let job = job_for(&self.project, &state, &self.who, task)?;
        let pending = state.board.summary(task).is_some_and(|head| head.handoff_pending);
        if pending {
            self.submit(&Command::from(TakeHandoff { task: task.clone() }))?;
        }
        let (session, follower) = prepare::start(&self.project, &state, &self.who, &job)?;
        self.follower = Some(follower);
        Ok(Outcome::Started(Box::new(session)))
    }

    fn plan(&mut self, triggers: Vec<Trigger>) -> Result<Outcome, Trouble> {
        self.submit(&Command::from(SetStatus { agent: self.who.agent, status: AgentStatus::Planning }))?;
        let state = self.project.look()?;
        let job = Job::Plan { triggers };
        let (session, follower) = prepare::start(&self.project, &state, &self.who, &job)?;
        self.follower = Some(follower);
        Ok(Outcome::Started(Box::new(session)))
    }

    fn judge(
        &self,
        session: &Judged,
        ending: SessionEnd,
        triggers: Vec<String>,
        checkout: Option<&str>,
    ) -> Result<Outcome, Trouble> {
        let state = patiently(|| Ok(self.project.look()?))?;
        let next = after_session(&state, session, ending);
        let (mut notes, mut leave) = (Vec::new(), None);
        notes.extend(told::of_session(&state, session, next.progress));
        for command in &next.record {
            match self.submit(command) {
                Ok(reply) if self.at_limit(command, &reply, &mut notes) => leave = session.task.clone(),
                Ok(_) => {}
                // It is no longer the agent's: then there is nothing to count.
                Err(Trouble::Refused(text) | Trouble::Halted(text)) => notes.push(text),
                Err(trouble) => return Err(trouble),
            }
        }
        if session.agent.role() == Role::Planner {
            self.after_planning(&state, ending, triggers, checkout, &mut notes)?;
        }
        Ok(Outcome::Judged { next, leave, notes })
    }

    /// Whether a code reviewer has come to the end of its tries at a task.
    fn at_limit(&self, command: &Command, reply: &Fields, notes: &mut Vec<String>) -> bool {
        if !matches!(command, Command::CountExit(_)) {
            return false;
        }
        let number = |key: &str| match reply.get(key) {
            Some(Value::Int(number)) => *number,
            _ => 0,
        };
        let (count, limit) = (number("count"), number("limit"));
        notes.push(format!("session without a result: {count} of {limit}"));
        self.who.agent.role() == Role::CodeReviewer && limit > 0 && count >= limit
    }

    fn after_planning(
        &self,
        state: &State,
        ending: SessionEnd,
        triggers: Vec<String>,
        checkout: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<(), Trouble> {
        if matches!(ending, SessionEnd::Code(0 | EXIT_RESTART)) {
            self.submit(&Command::from(MarkTriggersSeen { keys: triggers }))?;
        }
        let after = prepare::checkout(&self.project, state);
        if let (Some(before), Some(after)) = (checkout, after)
            && before != after
        {
            let what = "the project's own checkout changed during a planning session";
            notes.push(format!("ALERT: {what}"));
            let details = Fields::from_iter([("deviation".to_owned(), Value::from(what))]);
            self.submit(&Command::from(LogAnomaly {
                kind: AnomalyType::ScopeDeviation,
                task: None,
                details,
            }))?;
        }
        self.submit(&Command::from(SetStatus { agent: self.who.agent, status: AgentStatus::Waiting }))?;
        // The planner may have given up the last task, and its own session kept the sprint open.
        self.complete_sprint();
        Ok(())
    }

    /// Writes down what a session has used since that was last done.
    fn book(&self, account: &Account) -> Result<(), Trouble> {
        let mut booked = account.booked.lock().unwrap_or_else(PoisonError::into_inner);
        let used = &account.used;
        // Whoever was faster has written more.
        if used.events <= booked.events {
            return Ok(());
        }
        self.submit(&Command::from(RecordUsage {
            agent: self.who.agent,
            task: account.task.clone(),
            usage: used.usage.since(&booked.usage),
            context_percent: used.context_percent,
        }))?;
        *booked = used.clone();
        Ok(())
    }

    fn leave(&self) -> Result<(), Trouble> {
        match self.submit(&Command::from(Deregister { agent: self.who.agent })) {
            // Another's registration is not ours to remove.
            Ok(_) | Err(Trouble::Fenced(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}

/// Writes down what a session that runs has used so far, apart from the loop. Where that fails, the end of the session
/// makes up for it.
pub(super) fn book(project: &Project, who: &Who, account: Account) {
    let runner = Runner { project: project.clone(), who: who.clone(), follower: None };
    thread::spawn(move || runner.book(&account));
}

/// Renews the leases of the whole team in one write, apart from the loop.
pub(super) fn beat(project: &Project, team: &[Who], events: &Sender<Event>) {
    let team: Vec<(AgentId, Generation)> = team.iter().map(|who| (who.agent, who.generation)).collect();
    let (project, events) = (project.clone(), events.clone());
    thread::spawn(move || {
        let _ = events.send(Event::Beaten(renew(&project, &team)));
    });
}

/// Whoever speaks for the team must be registered itself; one that no longer is must not cost the others their leases.
fn renew(project: &Project, team: &[(AgentId, Generation)]) -> Result<(), Trouble> {
    let mut renewed = Ok(());
    for (agent, generation) in team {
        let agents = team.iter().map(|(agent, generation)| (*agent, Some(*generation))).collect();
        let command = Command::from(Heartbeat { agents, length: None });
        renewed = match project.submit(Actor::Supervisor(*agent, *generation), None, command) {
            Ok(outcome) => outcome.refusal.map_or(Ok(()), |refusal| Err(refusal.into())),
            Err(error) => Err(error.into()),
        };
        if !matches!(renewed, Err(Trouble::Fenced(_))) {
            break;
        }
    }
    renewed
}

/// The next thing to do after [`AfterSession`], in words.
pub(super) fn in_words(next: &AfterSession) -> String {
    match (next.progress, next.pause.0) {
        (true, _) => "done".to_owned(),
        (false, 0) => "stopped".to_owned(),
        (false, pause) => {
            format!("no result; next look in {pause} s, what it said is in .liza/agent-outputs/")
        }
    }
}

#[cfg(test)]
mod tests {
    use liza_core::model::Loaded;

    use super::*;
    use crate::project::now;

    fn mistaken() -> Result<Outcome, Trouble> {
        std::panic::resume_unwind(Box::new(()))
    }

    fn project(root: &std::path::Path) -> Project {
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
    fn one_whose_registration_is_lost_does_not_cost_the_others_their_leases() {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path());
        let register = |name: &str| {
            let agent: AgentId = name.parse().unwrap();
            let command = Command::from(Register { agent, terminal: String::new(), proven_dead: None });
            let done = project.submit(Actor::Human, None, command).unwrap();
            (agent, Generation(done.revision.0))
        };
        let (lost, here) = (register("planner-1"), register("coder-1"));
        let _ = project.submit(Actor::Human, None, Command::from(Deregister { agent: lost.0 })).unwrap();
        assert_eq!(renew(&project, &[lost, here]), Ok(()));
        assert!(matches!(renew(&project, &[lost]), Err(Trouble::Fenced(_))));
    }

    /// Covers: AG-05
    #[test]
    fn an_errand_that_ends_by_a_mistake_is_told() {
        assert!(matches!(guarded(false, mistaken), Err(Trouble::Failed(_))));
        assert!(matches!(guarded(true, mistaken), Ok(Outcome::Left(Some(Trouble::Failed(_))))));
        assert!(matches!(guarded(false, || Ok(Outcome::Shown)), Ok(Outcome::Shown)));
    }
}
