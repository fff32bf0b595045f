//! The loop's steps for an agent while its session runs: stops a session that must end, handles its reports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_agents::providers::guard::GuardStop;
use liza_agents::providers::stream::ClientOutcome;
use liza_agents::providers::usage::SessionUsage;
use liza_core::model::{ClientFault, FaultKind, Network, Role, Timestamp};
use liza_core::supervise::{
    EXIT_RESTART, EndedSession, SessionEnd, SessionFacts, SessionPhase, Shutdown, StopCause, is_done,
    still_owns, still_registered, stops_session,
};
use liza_sandbox::confine::{Confined, Level, RecordedSession, record_session};

use crate::project::now;

use super::background::{self, BackgroundJob};
use super::event::MemberIndex;
use super::helper_protocol::{HelperCommand, HelperReport};
use super::login_turns::LoginTurns;
use super::member::{MemberState, RunningSession};
use super::message::MessageLevel;
use super::session_result::{EndedRun, early_result};
use super::team::{Team, instant_of};

/// The exit code that shells use for a program that cannot be started.
const NOT_STARTED: i32 = 127;

/// The most restarts in a row of a session whose login has changed while it ran.
const MAX_LOGIN_RESTARTS: u32 = 3;

/// The time that a client with such an error has to end by itself.
const FAULT_GRACE: Duration = Duration::from_secs(2);

impl Team<'_> {
    /// Stops a session that must end: asks first, kills later.
    pub(super) fn check_session(&mut self, index: MemberIndex) {
        let (state, stop_files, now) = (Arc::clone(&self.state), self.stop_files, now());
        let lease = self.lease_of(index);
        let length = self.members.get(index).map_or(self.config.lease_duration, |own| self.lease_length(own));
        let (shutdown, unrenewed) = (self.shutdown(), self.renewals.frozen());
        let Some(member) = self.members.get_mut(index) else { return };
        let identity = &member.identity;
        let registered = still_registered(&state, identity.agent, identity.generation);
        let interactive = member.post.interactive;
        let MemberState::InSession(running) = &mut member.state else { return };
        running.lease_expires = lease.filter(|_| registered).unwrap_or(running.lease_expires);
        let task = running.session.task.as_ref();
        let facts = SessionFacts {
            started: running.started,
            lease_expires: running.lease_expires,
            lease: length,
            frozen: (running.frozen, unrenewed),
            owns_task: registered && still_owns(&state, identity.agent, task),
            // A person ends their own session.
            is_done: !interactive && is_done(&state, identity.agent, task),
            stop_files,
            shutdown,
            client_failed: running.guard.is_some()
                || running.fault.as_ref().is_some_and(|(_, time)| Instant::now() >= *time),
        };
        let before = running.phase;
        let step = before.advance(&facts, &self.config, now);
        running.phase = step.phase;
        let fault = running.fault.as_ref().map(|(_, time)| *time).filter(|time| Instant::now() < *time);
        let next = instant_of(step.check_again);
        member.wake = Some(fault.map_or(next, |time| time.min(next)));
        let text = apply(running, before);
        if text.is_some() {
            // It may end soon after it was asked to.
            member.wake = Some(Instant::now() + Duration::from_millis(100));
        }
        // The tasks of a plan go on while its planner still ends: what it decided is reported as it was then.
        let is_known = running.session.task.is_none() && member.reported.is_some();
        let result = early_result(&state, identity.agent, &running.session, now).filter(|_| !is_known);
        if let Some(result) = result {
            self.report_result(index, result);
        }
        if let Some(text) = text {
            self.info(index, text);
        }
    }

    /// Reports a session's achievement, once.
    pub(super) fn report_result(&mut self, index: MemberIndex, result: (Option<Timestamp>, String)) {
        let (happened, text) = result;
        let Some(member) = self.members.get_mut(index) else { return };
        if member.reported.as_ref() != Some(&text) {
            member.reported = Some(text.clone());
            self.report_at(index, MessageLevel::Info, text, happened);
        }
    }

    fn shutdown(&self) -> Option<Shutdown> {
        self.stopping.map(|_| if self.urgent { Shutdown::Immediate } else { Shutdown::Graceful })
    }

    pub(super) fn session_reported(&mut self, index: MemberIndex, report: HelperReport) {
        let end = match report {
            HelperReport::Started { pid, level, network } => {
                return self.session_started(index, pid, level, network);
            }
            HelperReport::Used(usage) => return self.session_used(index, usage),
            HelperReport::Faulted(fault) => return self.client_faulted(index, fault),
            HelperReport::Guarded(stop) => return self.session_guarded(index, stop),
            HelperReport::OutputTruncated { kept } => {
                let text = format!("too much output; only the first {} MiB are kept", kept >> 20);
                return self.alert(index, text);
            }
            HelperReport::RefusedLogin(login) => return self.alert(index, login.message()),
            HelperReport::Ended { code, signal, outcome, login_changed, .. } => {
                let signal = || SessionEnd::Signal(signal.unwrap_or(9));
                (code.map_or_else(signal, SessionEnd::Code), outcome, login_changed)
            }
            HelperReport::Failed { message } => {
                self.alert(index, message.clone());
                let outcome = ClientOutcome { said: Some(message), ..ClientOutcome::default() };
                (SessionEnd::Code(NOT_STARTED), outcome, false)
            }
        };
        let (exit, mut outcome, login_changed) = end;
        let Some(member) = self.members.get_mut(index) else { return };
        member.login_turn = LoginTurns::default();
        let MemberState::InSession(running) = &member.state else { return };
        outcome.fault = outcome.fault.or_else(|| running.fault.clone().map(|(fault, _)| fault));
        let end = match running.phase.stop_cause() {
            // A budget is no one's fault; its program may have ended by itself.
            Some(StopCause::ClientFault) | None if running.guard == Some(GuardStop::Budget) => {
                SessionEnd::Stopped
            }
            Some(StopCause::ClientFault) if running.guard.is_some() => SessionEnd::OverTime,
            Some(StopCause::OverTime) => SessionEnd::OverTime,
            Some(
                StopCause::Abort
                | StopCause::Halt
                | StopCause::TaskLost
                | StopCause::LeaseEnding
                | StopCause::Done
                | StopCause::ClientFault
                | StopCause::Shutdown,
            ) => SessionEnd::Stopped,
            None => exit,
        };
        let has_new_login = login_changed && member.login_restarts < MAX_LOGIN_RESTARTS;
        let refused = outcome.fault.take_if(|fault| fault.kind == FaultKind::Auth && has_new_login);
        member.login_restarts += u32::from(refused.is_some());
        self.session_ended(index, end, (exit, refused.is_some()), outcome);
    }

    /// Records a session's process and its confinement, for `status` and `forward`.
    fn session_started(&mut self, index: MemberIndex, process: u32, level: Level, network: Network) {
        let Some(member) = self.members.get(index) else { return };
        let in_words = format!("process {process}, confinement {}", level.describe(network));
        let session = RecordedSession::new(level, network, process);
        record_session(self.project.folder(), Confined::Session(member.identity.agent), &session);
        self.debug(index, in_words);
    }

    /// Records a session's usage; reports a session that should hand off.
    fn session_used(&mut self, index: MemberIndex, mut usage: SessionUsage) {
        let Some(member) = self.members.get_mut(index) else { return };
        let MemberState::InSession(running) = &mut member.state else { return };
        if let Some(price) = running.session.price.filter(|_| usage.usage.cost_usd == 0.0) {
            usage.usage.cost_usd = price.cost(&usage.usage);
        }
        let before = std::mem::replace(&mut running.used, usage);
        background::record_usage(&self.project, &member.identity, running.usage());
        if running.used.should_hand_over() && !before.should_hand_over() {
            let percent = running.used.context_percent.unwrap_or_default();
            self.alert(index, format!("{percent} % of its context is used; it should hand off"));
        }
    }

    /// Stops a session that a guard has to end.
    fn session_guarded(&mut self, index: MemberIndex, stop: GuardStop) {
        let Some(member) = self.members.get_mut(index) else { return };
        let MemberState::InSession(running) = &mut member.state else { return };
        running.guard = Some(stop);
        member.wake = Some(Instant::now());
    }

    /// Stops a session whose client cannot work now, although it may go on trying.
    fn client_faulted(&mut self, index: MemberIndex, fault: ClientFault) {
        let Some(member) = self.members.get_mut(index) else { return };
        let MemberState::InSession(running) = &mut member.state else { return };
        let text = format!("{}: {}", fault.kind.describe(), fault.message);
        if stops_session(&fault) && !member.post.interactive {
            let time = Instant::now() + FAULT_GRACE;
            running.fault = Some((fault, time));
            member.wake = Some(time);
        }
        self.debug(index, text);
    }

    fn session_ended(
        &mut self,
        index: MemberIndex,
        end: SessionEnd,
        (exit, has_new_login): (SessionEnd, bool),
        outcome: ClientOutcome,
    ) {
        // Read now: the session may have ended because of one that was created a moment ago.
        let halted = self.stop_files.strongest().or(self.project.stop_files().strongest()).is_some();
        let Some(member) = self.members.get_mut(index) else { return };
        let MemberState::InSession(running) = &member.state else { return };
        let session = &running.session;
        // An error of the program is why it ended; a tool that it was not allowed to use need not be.
        let is_why = |fault: &ClientFault| fault.kind != FaultKind::PermissionDenied;
        let refusal = session.last_refusal.get().filter(|_| !outcome.fault.as_ref().is_some_and(is_why));
        let run = EndedRun {
            session: EndedSession {
                crashes_before: member.crashes,
                triggers: session.triggers.clone(),
                halted,
                refusal,
                model: outcome.model,
                fault: outcome.fault.as_ref().map(|fault| fault.kind),
                ..EndedSession::new(member.identity.agent, session.task.clone(), session.began_at)
            },
            end,
            merges: member.post.once
                && member.post.role == Role::CodeReviewer
                && !self.project.forbids_merges(),
            head: session.head.clone(),
            output: session.output.clone(),
            checkout: session.checkout.clone(),
            modes: session.modes.clone(),
            usage: running.usage().settled(),
            client: session.client.clone(),
            login: session.login.clone(),
            started: running.started,
            unsubmitted: None,
            exit,
            guard: running.guard,
            has_new_login,
            outcome,
        };
        member.crashes = if is_crash(end) { member.crashes + 1 } else { 0 };
        self.debug(index, format!("session ended: {}", end_text(end)));
        self.run_job(index, BackgroundJob::Judge(Box::new(run)));
    }
}

/// Sends the helper the command for the new phase; returns the text to report.
fn apply(running: &mut RunningSession, before: SessionPhase) -> Option<String> {
    match (before, running.phase) {
        (SessionPhase::Working | SessionPhase::Ending { .. }, SessionPhase::Terminating { cause, .. }) => {
            running.session.send(HelperCommand::Terminate);
            let guard = running.guard.filter(|_| cause == StopCause::ClientFault).map(GuardStop::reason);
            let why = guard.unwrap_or_else(|| cause_text(cause).to_owned());
            Some(format!("stopping the session: {why}"))
        }
        (SessionPhase::Killed { .. }, _) => None,
        (_, SessionPhase::Killed { .. }) => {
            running.session.send(HelperCommand::Kill);
            Some("killing the session".to_owned())
        }
        (_, SessionPhase::Working | SessionPhase::Ending { .. } | SessionPhase::Terminating { .. }) => None,
    }
}

fn is_crash(end: SessionEnd) -> bool {
    match end {
        SessionEnd::Code(code) => !matches!(code, 0 | EXIT_RESTART),
        SessionEnd::Signal(_) | SessionEnd::OverTime => true,
        SessionEnd::Stopped => false,
    }
}

fn cause_text(cause: StopCause) -> &'static str {
    match cause {
        StopCause::Abort => ".liza/ABORT is present",
        StopCause::Halt => ".liza/PAUSE or .liza/CHECKPOINT is present",
        StopCause::TaskLost => "the task is no longer its own",
        StopCause::LeaseEnding => "the lease could not be renewed",
        StopCause::OverTime => "it ran too long",
        StopCause::Done => "the work is done",
        StopCause::ClientFault => "its agent program cannot work now",
        StopCause::Shutdown => "the supervisor is stopping",
    }
}

fn end_text(end: SessionEnd) -> String {
    match end {
        SessionEnd::Code(code) => format!("exit {code}"),
        SessionEnd::Signal(signal) => format!("killed by signal {signal}"),
        SessionEnd::Stopped => "stopped".to_owned(),
        SessionEnd::OverTime => "stopped because it ran too long".to_owned(),
    }
}
