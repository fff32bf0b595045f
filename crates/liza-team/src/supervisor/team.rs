//! The event loop of a team; a lone agent is a team of one. Waits for the next event and starts what
//! `liza_core::supervise` decides. Never blocks: slow work runs in `background`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{Config, Seconds, State, Status, StopFiles, Timestamp};
use liza_core::protocol::LeaveReason;
use liza_core::rules::clients::no_client_left;
use liza_core::rules::found_merges::FoundMerges;
use liza_core::supervise::{can_be_renewed, renewal_interval};
use liza_host::local_time::wall_clock;
use liza_sandbox::sys::process::ignores_hangup;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::channel::SessionCommands;
use crate::engine::mark_stopping;
use crate::lifecycle::found_merges;
use crate::project::{Project, now};

use super::background::{self, BackgroundJob, merged_text};
use super::channels::Channels;
use super::error::SupervisorError;
use super::event::{Event, MemberIndex};
use super::failing::Failing;
use super::login_turns::LoginTurns;
use super::manual_changes::ManualChanges;
use super::member::{AgentEnd, EndReason, Member, MemberState, Post};
use super::message::{MessageLevel, TeamMessage};
use super::observer::{Observer, ObserverThread};
use super::registration::Identity;
use super::renewals::Renewals;

pub struct SupervisorOptions {
    /// The liza program itself, which sessions call and which is their helper.
    pub program: PathBuf,
    /// True if agents keep waiting in situations in which a lone agent would end.
    pub in_team: bool,
    pub commands: Arc<dyn SessionCommands>,
    pub observers: Vec<Box<dyn Observer>>,
    pub limit: Option<Duration>,
}

impl SupervisorOptions {
    /// For a lone agent without observers.
    pub fn alone(program: PathBuf, commands: Arc<dyn SessionCommands>) -> Self {
        Self { program, in_team: false, commands, observers: Vec::new(), limit: None }
    }
}

pub(super) struct Team<'t> {
    pub project: Project,
    pub members: Vec<Member>,
    sender: Sender<Event>,
    pub events: Receiver<Event>,
    pub program: PathBuf,
    pub channels: Channels,
    pub in_team: bool,
    observers: ObserverThread,
    on_message: &'t dyn Fn(&TeamMessage),
    /// As last read.
    pub state: Arc<State>,
    pub config: Arc<Config>,
    /// Tasks whose merge is on the integration branch and not on the blackboard.
    pub found_merges: FoundMerges,
    pub failing: Failing,
    /// The number of different states that were read.
    pub states_read: u64,
    /// As last seen.
    pub stop_files: StopFiles,
    /// The state or the stop files may have changed since then.
    pub stale: bool,
    /// The system reports when they change.
    watched: bool,
    pub jobs_done: u64,
    pub readable: bool,
    /// The latest end of the whole team.
    pub end_at: Option<Instant>,
    /// The time since which all agents are gone.
    pub gone_since: Option<Instant>,
    /// The time since which the team has been ending.
    pub stopping: Option<Instant>,
    /// It ends because no agent program can be used.
    pub no_client: bool,
    /// It ends without waiting for sessions and jobs.
    pub urgent: bool,
    pub renewals: Renewals,
    /// PAUSE or CHECKPOINT has been reported.
    pub holding: bool,
    /// It is not repeated.
    last_message: String,
}

/// Supervises agents in these posts until all of them have ended.
pub fn run(
    project: &Project,
    posts: Vec<Post>,
    options: SupervisorOptions,
    on_message: &dyn Fn(&TeamMessage),
) -> Result<Vec<AgentEnd>, SupervisorError> {
    let mut team = Team::new(project, options, on_message)?;
    let signals = send_signals(team.sender.clone()).map_err(SupervisorError::io("wait for signals"))?;
    let registered = team.add_members(posts);
    if registered.is_err() {
        team.stopping = Some(Instant::now());
    }
    team.watch_blackboard();
    team.serve();
    signals.close();
    registered.map(|()| team.members.into_iter().map(Member::into_end).collect())
}

/// The settings of a blackboard; broken ones are as bad as a blackboard that cannot be read.
fn with_config(state: Arc<State>) -> Result<(Arc<State>, Config), SupervisorError> {
    let config = state.board.config()?.clone();
    Ok((state, config))
}

/// Turns signals to this process into events.
fn send_signals(events: Sender<Event>) -> std::io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    // A process started with nohup outlives its terminal.
    if !ignores_hangup() {
        handle.add_signal(SIGHUP)?;
    }
    thread::spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal { interrupt: signal == SIGINT }).is_err() {
                return;
            }
        }
    });
    Ok(handle)
}

impl<'t> Team<'t> {
    fn new(
        project: &Project,
        options: SupervisorOptions,
        on_message: &'t dyn Fn(&TeamMessage),
    ) -> Result<Self, SupervisorError> {
        let (sender, events) = channel();
        let state = project.state()?;
        let config = state.board.config()?.clone();
        let failing = Failing::begin(project.folder(), &state);
        let mut observers = options.observers;
        observers.insert(0, Box::new(ManualChanges::new(project)));
        Ok(Team {
            project: project.clone(),
            members: Vec::new(),
            observers: ObserverThread::new(observers, &sender),
            sender,
            events,
            program: options.program,
            channels: Channels::new(options.commands)?,
            in_team: options.in_team,
            on_message,
            state,
            config: Arc::new(config),
            found_merges: FoundMerges::NONE,
            failing,
            states_read: 0,
            stop_files: project.stop_files(),
            stale: true,
            watched: false,
            jobs_done: 0,
            readable: true,
            end_at: options.limit.map(|limit| Instant::now() + limit),
            gone_since: None,
            stopping: None,
            no_client: false,
            urgent: false,
            renewals: Renewals::new(now(), Instant::now()),
            holding: false,
            last_message: String::new(),
        })
    }
}

impl Team<'_> {
    /// Turns changes of the blackboard into events. If the system cannot watch files, the poll interval applies.
    fn watch_blackboard(&mut self) {
        let Ok(watch) = self.project.store().watch() else { return };
        self.watched = true;
        let events = self.sender.clone();
        thread::spawn(move || {
            loop {
                if watch.wait(Duration::from_secs(3600)) && events.send(Event::Changed).is_err() {
                    return;
                }
            }
        });
    }

    fn serve(&mut self) {
        loop {
            if std::mem::take(&mut self.stale) {
                self.read_blackboard();
            }
            self.check_limit();
            self.advance_all((now(), Instant::now()));
            if self.is_stranded() {
                self.stopping = Some(Instant::now());
                let text = "the planner has ended and no agent has work; stopping";
                self.report_all(MessageLevel::Alert, text);
                continue;
            }
            if self.has_no_client() {
                (self.stopping, self.no_client) = (Some(Instant::now()), true);
                let why = self.state.board.sprint.ready().map(no_client_left).unwrap_or_default();
                self.report_all(
                    MessageLevel::Alert,
                    &format!("the team ends: {why}. What to fix: liza status"),
                );
                continue;
            }
            if self.members.iter().all(Member::is_gone) && !self.awaits_abort() {
                // Only after every agent is deregistered: an integration test that is killed while its code
                // reviewer is still registered counts as failed.
                return self.end_jobs();
            }
            let wait = self.renewals.wait(self.wait_time());
            let event = self.events.recv_timeout(wait).unwrap_or(Event::Timer);
            self.handle(event);
            while let Ok(event) = self.events.try_recv() {
                self.handle(event);
            }
        }
    }

    /// Reads the blackboard. If it cannot be read, no agent is started and none is stopped.
    fn read_blackboard(&mut self) {
        self.stop_files = self.project.stop_files();
        match self.project.state().map_err(SupervisorError::from).and_then(with_config) {
            Ok((state, config)) => {
                self.config = Arc::new(config);
                // A person's edit has no revision of its own.
                self.states_read += u64::from(!Arc::ptr_eq(&self.state, &state));
                self.state = state;
                let found = found_merges(&self.project, &self.state);
                self.states_read += u64::from(self.found_merges != found);
                self.found_merges = found;
                if !self.readable {
                    self.readable = true;
                    self.report_all(MessageLevel::Info, "the blackboard is readable again");
                }
            }
            Err(error) => {
                if self.project.root().try_exists().is_ok_and(|exists| !exists) {
                    // Nothing will ever be readable again.
                    self.stopping = self.stopping.or(Some(Instant::now()));
                }
                if self.readable {
                    self.readable = false;
                    let text =
                        format!("cannot read the blackboard; no agent starts until it is fixed: {error}");
                    self.report_all(MessageLevel::Alert, &text);
                }
            }
        }
        self.report_merges();
        self.observers.show(&self.state);
    }

    /// Reports merges that the blackboard has: others act on them before the job of the merge has ended.
    fn report_merges(&mut self) {
        for index in 0..self.members.len() {
            let merging = self.members.get(index).and_then(|member| member.merging.clone());
            if let Some(task) = merging.filter(|task| self.state.board.status(task) == Some(Status::Merged)) {
                self.info(index, merged_text(&task));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Changed | Event::Timer => self.stale = true,
            // The session's changes of the blackboard arrive as a separate event.
            Event::Session(index, report) => self.session_reported(index, report),
            Event::JobDone(index, result) => {
                self.stale = true;
                self.jobs_done += 1;
                self.job_done(index, result);
            }
            Event::ClaimsLost(index, lost) => self.claims_lost(index, lost),
            Event::LeasesRenewed(result) => self.leases_renewed(result),
            Event::Observed(messages) => messages.iter().for_each(|message| (self.on_message)(message)),
            // Ctrl-C in an interactive session is meant for its program.
            Event::Signal { interrupt: true } if self.members.iter().any(Member::is_interactive) => {}
            Event::Signal { .. } => {
                self.urgent = self.stopping.is_some();
                self.stopping = self.stopping.or(Some(Instant::now()));
                self.note_stopping();
                let text = if self.urgent {
                    "killing sessions"
                } else {
                    "stopping; press Ctrl-C again to kill the sessions"
                };
                self.report_all(MessageLevel::Info, text);
            }
        }
    }

    /// Lets another `liza stop` know that the team is stopping.
    fn note_stopping(&mut self) {
        if self.in_team
            && let Err(error) = mark_stopping(self.project.folder())
        {
            self.report_all(MessageLevel::Alert, &error.to_string());
        }
    }

    /// Takes every agent's next step. After a suspend or a freeze every lease looks expired, so they are renewed first.
    fn advance_all(&mut self, (time_of_day, running): (Timestamp, Instant)) {
        let frozen = self.renewals.look(time_of_day, running);
        if frozen.0 > 0 {
            for member in &mut self.members {
                if let MemberState::InSession(running) = &mut member.state {
                    running.frozen.0 = running.frozen.0.saturating_add(frozen.0);
                }
            }
            let text = format!("nothing ran for {frozen}; renewing the leases");
            self.report_all(MessageLevel::Info, &text);
        }
        if self.renewals.may_judge() {
            (0..self.members.len()).for_each(|index| self.advance(index));
        }
        self.renew_leases();
    }

    fn leases_renewed(&mut self, result: Result<(), SupervisorError>) {
        self.stale = true;
        match result {
            // The next failure is reported again.
            Ok(()) if self.renewals.succeeded() => self.last_message.clear(),
            Ok(()) => {}
            Err(error) => {
                self.renewals.fail(Instant::now());
                self.report_all(MessageLevel::Alert, &format!("cannot renew the leases: {error}"));
            }
        }
    }

    /// Renews all leases in one write when that is due.
    fn renew_leases(&mut self) {
        if !self.renewals.is_due(Instant::now()) {
            return;
        }
        let registered = self.members.iter().filter(|member| member.is_registered());
        let registered: Vec<Identity> = registered.map(|member| member.identity.clone()).collect();
        self.renewals.start(!registered.is_empty(), Instant::now(), self.renewal_interval());
        if !registered.is_empty() {
            background::renew_leases(&self.project, &registered, &self.sender);
        }
    }

    pub(super) fn renewal_interval(&self) -> Duration {
        let leases = self.members.iter().map(|member| self.lease_length(member));
        let shortest = leases.min().unwrap_or(self.config.lease_duration);
        Duration::from_secs(renewal_interval(&self.config, shortest).0)
    }

    /// The lease duration of an agent: of its task, or of the config.
    pub(super) fn lease_length(&self, member: &Member) -> Seconds {
        let task = match &member.state {
            MemberState::InSession(running) => running.session.task.as_ref(),
            MemberState::Idle | MemberState::Busy | MemberState::Leaving(_) | MemberState::Gone(_) => None,
        };
        let body = task.and_then(|task| self.state.board.body(task).ok());
        body.map_or(self.config.lease_duration, |body| self.config.lease(body.record()))
    }

    /// Renews earlier if an agent now has a shorter lease.
    pub(super) fn renew_in_time(&mut self) {
        self.renewals.not_after(Instant::now() + self.renewal_interval());
    }

    /// True if an agent's lease can be renewed before it ends; if not, renews it first.
    pub(super) fn may_start_session(&mut self, index: MemberIndex) -> bool {
        let lease = self.config.lease_duration;
        let safe = self.lease_of(index).is_some_and(|expires| can_be_renewed(expires, lease, now()));
        if !safe {
            self.renewals.at(Instant::now());
        }
        safe && !self.renewals.has_failed()
    }

    fn wait_time(&self) -> Duration {
        let wakes = self.members.iter().filter(|member| !member.is_gone()).filter_map(|member| member.wake);
        let stop = self.job_ends().into_iter().flatten().filter(|time| *time > Instant::now());
        let soon = self.gone_since.map(|_| Instant::now() + Duration::from_millis(200));
        let first = wakes.chain(stop).chain(self.renewals.next()).chain(self.end_at).chain(soon).min();
        let wait = first.map(|time| time.saturating_duration_since(Instant::now()));
        let poll = (!self.watched).then_some(self.config.coder_poll_interval);
        at_most(poll, wait.unwrap_or(Duration::from_secs(1)))
    }

    /// Starts a job for an agent, which is busy until the job has ended.
    pub(super) fn run_job(&mut self, index: MemberIndex, job: BackgroundJob) {
        if let Some(member) = self.members.get_mut(index) {
            member.state = MemberState::Busy;
        }
        self.start_job(index, job);
    }

    pub(super) fn start_job(&mut self, index: MemberIndex, job: BackgroundJob) {
        let Some(member) = self.members.get_mut(index) else { return };
        member.wake = None;
        background::start(&self.project, &member.identity, &self.sender, job);
    }

    pub(super) fn leave(&mut self, index: MemberIndex, reason: EndReason) {
        let no_client = matches!(reason, EndReason::NoClient);
        let because = if no_client { LeaveReason::NoClient } else { LeaveReason::Ended };
        if let Some(member) = self.members.get_mut(index) {
            member.state = MemberState::Leaving(reason);
            member.login_turn = LoginTurns::default();
        }
        self.start_job(index, BackgroundJob::Leave(because));
    }

    pub(super) fn debug(&mut self, index: MemberIndex, text: impl Into<String>) {
        self.report(index, MessageLevel::Debug, text.into());
    }

    pub(super) fn info(&mut self, index: MemberIndex, text: impl Into<String>) {
        self.report(index, MessageLevel::Info, text.into());
    }

    pub(super) fn alert(&mut self, index: MemberIndex, text: impl Into<String>) {
        self.report(index, MessageLevel::Alert, text.into());
    }

    pub(super) fn report(&mut self, index: MemberIndex, level: MessageLevel, text: String) {
        self.report_at(index, level, text, None);
    }

    /// Reports an event of that time, or of now.
    pub(super) fn report_at(
        &mut self,
        index: MemberIndex,
        level: MessageLevel,
        text: String,
        happened: Option<Timestamp>,
    ) {
        let Some(member) = self.members.get_mut(index) else { return };
        if member.last_message != text {
            let agent = Some(member.identity.agent);
            (self.on_message)(&TeamMessage { agent, text: text.clone(), level, happened, alarm: None });
            member.last_message = text;
        }
    }

    /// Does not repeat the last message.
    pub(super) fn report_all(&mut self, level: MessageLevel, text: &str) {
        if self.last_message != text {
            text.clone_into(&mut self.last_message);
            let agent = self.members.first().filter(|_| !self.in_team).map(|member| member.identity.agent);
            (self.on_message)(&TeamMessage {
                agent,
                text: text.to_owned(),
                level,
                happened: None,
                alarm: None,
            });
        }
    }
}

/// Limits the wait to the poll interval, if there is one.
fn at_most(poll: Option<Seconds>, wait: Duration) -> Duration {
    let longest = poll.map_or(wait, |poll| Duration::from_secs(poll.0));
    wait.min(longest).max(Duration::from_millis(5))
}

/// The instant at which a blackboard time is reached.
pub(super) fn instant_of(time: Timestamp) -> Instant {
    let left = time.unix().saturating_mul(1000).saturating_sub(wall_clock().as_millisecond());
    Instant::now() + Duration::from_millis(u64::try_from(left).unwrap_or(0).saturating_add(1))
}

pub(super) fn after(pause: Seconds) -> Instant {
    Instant::now() + Duration::from_secs(pause.0)
}

#[cfg(test)]
#[path = "team_tests.rs"]
mod tests;
