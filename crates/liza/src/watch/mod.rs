//! The watcher: looks at the blackboard and the stop files, tells what is new, once per episode.
//!
//! What an alarm is, is decided in `liza-core`. Nothing here resumes, aborts or changes a task; whatever may take long
//! (webhook, desktop) goes to a thread of its own.

mod alert;
pub mod breaker;
mod courier;
mod escalation;
mod file;
mod outbox;
mod serve;
pub mod webhook;

use std::collections::BTreeSet;
use std::env;
use std::sync::Arc;
use std::time::Duration;

use liza_core::model::{Actor, BreakerStatus, Config, Seconds, State, Timestamp};
use liza_core::protocol::{Command, RecordAnalysis, Request};
use liza_core::rules::breaker::analyze;
use liza_core::text::one_line;
use liza_core::watch::alarms;
use liza_core::watch::alarms::{Alarm, Episodes};

use crate::by_files::Reconciler;
use crate::effects::run_halts_at;
use crate::project::{Project, now};
use crate::secrets::Masker;
use crate::sightings::{sightings, sightings_without_board};
use crate::work::{FileLock, WorkError};

pub use alert::Alert;
use file::Memory;
use outbox::Outbox;
pub use serve::{Wake, listen, serve};
use webhook::Patience;

/// How long a blackboard may be unreadable before somebody is alarmed: people's editors do not save in one go.
const SAVING: Seconds = Seconds(2);

/// How soon to look again while something has to stand for a moment before it counts.
const SOON: Duration = Duration::from_secs(1);

/// The longest notice.
const NOTICE_MAX: usize = 500;

/// How a watcher watches.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often to look where nothing is told to have changed; else `config.coder_poll_interval`.
    pub interval: Option<Duration>,
    /// Whether the breaker looks at every new anomaly.
    pub analyze: bool,
    /// Whether the desktop is notified, where there is one.
    pub desktop: bool,
    /// How long a webhook may take.
    pub patience: Patience,
}

impl Default for Options {
    fn default() -> Self {
        Self { interval: None, analyze: false, desktop: true, patience: Patience::default() }
    }
}

/// Why there is no watcher.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// One is enough: two would say everything twice.
    #[error("a watcher is running here already")]
    Running,
    /// The lock could not be taken.
    #[error(transparent)]
    Lock(#[from] WorkError),
}

/// What one look brought.
#[derive(Debug, Default)]
pub struct Look {
    /// What is new.
    pub alerts: Vec<Alert>,
    /// Everything that stands, told before or not.
    pub standing: Vec<Alert>,
    /// What was done or went wrong on the way, in words.
    pub notices: Vec<String>,
}

/// The one watcher of a project.
#[derive(Debug)]
pub struct Watcher {
    project: Project,
    options: Options,
    masker: Masker,
    memory: Memory,
    episodes: Episodes,
    reconciler: Reconciler,
    outbox: Outbox,
    /// The blackboard as last read.
    state: Arc<State>,
    /// Since when it cannot be read.
    blind: Option<Timestamp>,
    /// How many anomalies the breaker has looked at.
    analyzed: Option<usize>,
    /// What went wrong at the last look, so that it is told once.
    troubles: BTreeSet<String>,
    notices: Vec<String>,
    last_look: Timestamp,
    _lock: FileLock,
}

impl Watcher {
    /// Takes the project's one place for a watcher, and remembers what was said before.
    ///
    /// # Errors
    /// When another watcher has it.
    pub fn new(project: &Project, options: Options) -> Result<Self, WatchError> {
        let lock = FileLock::try_at(&project.folder().join("watch.lock"))?.ok_or(WatchError::Running)?;
        let (memory, trouble) = Memory::open(project.folder());
        let outbox = Outbox::open(project, &options);
        let episodes = memory.episodes();
        let mut watcher = Self {
            project: project.clone(),
            options,
            masker: own_masker(),
            memory,
            episodes,
            reconciler: Reconciler::default(),
            outbox,
            state: Arc::default(),
            blind: None,
            analyzed: None,
            troubles: BTreeSet::new(),
            notices: Vec::new(),
            last_look: now(),
            _lock: lock,
        };
        if let Some(trouble) = trouble {
            watcher.outbox.note(now(), &format!("⚠️ ALERTS STATE LOST: {trouble}"));
            watcher.notices.push(trouble);
        }
        Ok(watcher)
    }

    /// Looks once: follows the stop files, has the breaker look where that is wanted, tells what is new to alerts.log,
    /// webhook and desktop, and gives it to the caller to print.
    pub fn look(&mut self, now: Timestamp) -> Look {
        self.last_look = now;
        let mut look = Look { notices: std::mem::take(&mut self.notices), ..Look::default() };
        let mut troubles = BTreeSet::new();
        match self.project.look() {
            Ok(state) => {
                self.state = state;
                self.blind = None;
                self.settle(now, &mut look, &mut troubles);
                self.tell_what_stands(now, &mut look, &mut troubles);
            }
            Err(error) => self.look_blindly(&error.to_string(), now, &mut look, &mut troubles),
        }
        if !self.is_homeless()
            && let Err(error) = self.memory.keep(&self.episodes)
        {
            troubles.insert(format!("alerts.state cannot be written: {error}"));
        }
        look.notices.extend(self.outbox.failures());
        look.notices.extend(troubles.difference(&self.troubles).cloned());
        self.troubles = troubles;
        // Errors quote files that anybody may have written.
        let clean = |notice: &String| one_line(&self.masker.mask(notice), NOTICE_MAX);
        look.notices = look.notices.iter().map(clean).collect();
        look
    }

    /// How long to wait for the next look where nothing is told to have changed.
    pub fn next_look(&self) -> Duration {
        let interval = self.options.interval.unwrap_or_else(|| {
            let config = self.state.board.config.ready().map(|config| config.coder_poll_interval);
            Duration::from_secs(config.unwrap_or(Config::default().coder_poll_interval).0)
        });
        let due = self.reconciler.again(&self.state, self.last_look);
        interval
            .max(SOON)
            .min(self.unsettled().unwrap_or(interval))
            .min(due.unwrap_or(interval))
            .max(SOON / 10)
    }

    /// How soon to look again because something has to stand for a moment before it counts.
    pub fn unsettled(&self) -> Option<Duration> {
        let waits = self.reconciler.is_waiting();
        let saving = self.blind.is_some_and(|since| self.last_look.since(since) < SAVING);
        (waits || saving).then_some(SOON)
    }

    /// Whether the blackboard is no longer there.
    pub fn is_homeless(&self) -> bool {
        !self.project.folder().exists()
    }

    /// Ends; waits for what is still being sent, at most that long. Says whether everything was.
    pub fn close(self, at_most: Duration) -> bool {
        self.outbox.close(at_most)
    }

    /// Follows bare files, the deadline and, where that is wanted, new anomalies.
    fn settle(&mut self, now: Timestamp, look: &mut Look, troubles: &mut BTreeSet<String>) {
        let mut changed = false;
        if let Some(done) = self.reconciler.settle(&self.project, &self.state, now) {
            look.notices.push(done);
            changed = true;
        }
        let anomalies = self.state.journal.anomalies.len();
        if self.options.analyze && self.analyzed != Some(anomalies) {
            match self.analyze(now) {
                Ok(()) => self.analyzed = Some(anomalies),
                Err(why) => drop(troubles.insert(format!("the circuit breaker could not look: {why}"))),
            }
            changed = true;
        }
        if changed && let Ok(state) = self.project.look() {
            self.state = state;
        }
        if let Err(error) = breaker::report(&self.project, &self.state, &self.masker) {
            troubles.insert(format!("{} cannot be written: {error}", breaker::REPORT));
        }
    }

    fn analyze(&self, now: Timestamp) -> Result<(), String> {
        let triggered = |state: &State| {
            state.board.circuit_breaker.ready().map(|it| it.status) == Some(BreakerStatus::Triggered)
        };
        if triggered(&self.state) {
            return Ok(());
        }
        let (command, halt) =
            (Command::from(RecordAnalysis { findings: analyze(&self.state) }), self.project.halt());
        let request = Request { actor: Actor::Human, now, halt, if_revision: None, command };
        let outcome = self.project.submit_request(&request).map_err(|error| error.to_string())?;
        run_halts_at(&self.project, &outcome.effects, now).map_err(|error| error.to_string())
    }

    fn tell_what_stands(&mut self, now: Timestamp, look: &mut Look, troubles: &mut BTreeSet<String>) {
        let seen = sightings(&self.project, &self.state, now);
        let current = alarm::alarms(&self.state, &seen, now);
        let fresh = self.episodes.advance(&current);
        self.deliver(&fresh, &current, now, look, troubles);
        let grown = fresh.iter().any(|alarm| alarm.kind.starts_with("CHECKPOINT "));
        let folder = self.project.folder();
        if let Err(error) = escalation::follow(folder, &self.state, seen.checkpoint_since, grown, now) {
            troubles.insert(format!(".liza/ESCALATION cannot be written: {error}"));
        }
    }

    /// Where the blackboard cannot be read, what was said still stands; the files can be seen all the same.
    fn look_blindly(&mut self, why: &str, now: Timestamp, look: &mut Look, troubles: &mut BTreeSet<String>) {
        let since = *self.blind.get_or_insert(now);
        if now.since(since) < SAVING {
            return;
        }
        let seen = sightings_without_board(&self.project, why.to_owned());
        let current = alarm::alarms(&State::default(), &seen, now);
        let fresh = self.episodes.advance_blind(&current);
        self.deliver(&fresh, &current, now, look, troubles);
    }

    fn deliver(
        &self,
        fresh: &[Alarm],
        current: &[Alarm],
        now: Timestamp,
        look: &mut Look,
        troubles: &mut BTreeSet<String>,
    ) {
        let tell = |alarm: &Alarm| Alert::of(alarm, &self.state, now, &self.masker);
        look.standing.extend(current.iter().map(tell));
        look.alerts.extend(fresh.iter().map(tell));
        for alert in &look.alerts {
            if let Err(error) = self.outbox.write(now, &alert.line()) {
                troubles.insert(format!("alerts.log cannot be written: {error}"));
            }
        }
        let config = self.state.board.config.ready();
        let url = config.and_then(|config| config.escalation_webhook.as_deref()).map(str::trim);
        if let Some(url) = url.filter(|url| !url.is_empty()) {
            let payloads =
                look.alerts.iter().map(|alert| alert::payload(alert, &self.state, self.project.root()));
            payloads.for_each(|payload| self.outbox.post(now, url, &payload));
        }
        self.outbox.notify(&look.alerts);
    }
}

/// What stands now, for somebody who only wants to know: nothing is told to anybody else, nothing is remembered.
pub fn glance(project: &Project, now: Timestamp) -> Vec<Alert> {
    let (state, seen) = match project.store().snapshot() {
        Ok(state) => {
            let seen = sightings(project, &state, now);
            (state, seen)
        }
        Err(error) => (State::default(), sightings_without_board(project, error.to_string())),
    };
    let masker = own_masker();
    alarm::alarms(&state, &seen, now).iter().map(|alarm| Alert::of(alarm, &state, now, &masker)).collect()
}

/// A masker that knows the secret variables of this process.
pub fn own_masker() -> Masker {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Masker::new(env::vars_os().filter_map(text))
}
