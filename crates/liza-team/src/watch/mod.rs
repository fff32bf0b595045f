//! The watcher: checks the blackboard and the stop files, and reports each alarm once per episode.
//! `liza-core` decides about alarms. Nothing here resumes, aborts or changes a task; slow deliveries
//! (webhook, desktop) run on separate threads.

mod alert;
mod alert_files;
pub mod breaker;
mod escalation;
#[cfg(feature = "webhook")]
pub mod http;
#[cfg(not(feature = "webhook"))]
#[path = "no_http.rs"]
pub mod http;
mod outbox;
mod queue;
mod serve;
pub mod webhook;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use liza_core::model::{Actor, BreakerStatus, Config, Seconds, State, StopFile, Timestamp};
use liza_core::protocol::RecordAnalysis;
use liza_core::rules::breaker::analyze;
use liza_core::text::one_line;
use liza_host::secrets::Masker;
use liza_status::alarms::{Alarm, Episodes, alarms, is_seen_late};
use liza_store::RaisedAlarms;

use crate::engine::{Engine, EngineError, FileLock};
use crate::observe::reconcile::Reconciler;
use crate::observe::{observe, observe_unreadable};
use crate::project::{Project, now};

pub use alert::AlertMessage;
use alert_files::ReportedAlerts;
use outbox::Outbox;
pub use serve::{Wake, send_changes, serve};
use webhook::RetryPolicy;

/// The time for which the blackboard may be unreadable before an alarm is raised: editors don't save atomically.
const SAVE_TIME: Seconds = Seconds(2);

/// The pause before the next check while a change must last for a moment before it counts.
const SOON: Duration = Duration::from_secs(1);

const NOTICE_MAX: usize = 500;

#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// The interval of checks if no change is reported; if absent, `config.coder_poll_interval`.
    pub interval: Option<Duration>,
    /// The circuit breaker checks every new anomaly.
    pub analyze: bool,
    /// Show desktop notifications, if there is a desktop.
    pub desktop: bool,
    pub webhook_policy: RetryPolicy,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self { interval: None, analyze: false, desktop: true, webhook_policy: RetryPolicy::default() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// Two watchers would report every alarm twice.
    #[error("a watcher is already running in this project")]
    Running,
    #[error("config.escalation_webhook is set, but this liza was built without webhooks")]
    NoWebhooks,
    #[error(transparent)]
    Lock(#[from] EngineError),
}

fn has_webhook(project: &Project) -> bool {
    let state = project.state();
    let config = state.as_ref().ok().and_then(|state| state.board.config().ok());
    config.is_some_and(|config| config.escalation_webhook.is_some())
}

#[derive(Debug, Default)]
pub struct WatchReport {
    /// Alarms that are new to this watcher; another machine may have raised them.
    pub new: Vec<AlertMessage>,
    pub current: Vec<AlertMessage>,
    /// The actions and the failures of the check.
    pub notices: Vec<String>,
    problems: BTreeSet<String>,
}

#[derive(Debug)]
pub struct Watcher {
    project: Project,
    options: WatchOptions,
    masker: Masker,
    reported: ReportedAlerts,
    episodes: Episodes,
    /// The alarms that follow from the blackboard, as last shared with the watchers of other machines.
    shared: Option<BTreeSet<String>>,
    reconciler: Reconciler,
    outbox: Outbox,
    /// As last read.
    state: Arc<State>,
    /// The time since which it cannot be read.
    unreadable_since: Option<Timestamp>,
    /// The number of anomalies that the breaker has checked.
    analyzed: Option<usize>,
    /// The failures of the last check.
    problems: BTreeSet<String>,
    notices: Vec<String>,
    last_check: Timestamp,
    _lock: FileLock,
}

impl Watcher {
    /// Takes the project's watcher lock and reads the alarms that were reported before.
    pub fn new(project: &Project, options: WatchOptions) -> Result<Self, WatchError> {
        // A configured webhook never fails in silence.
        if !cfg!(feature = "webhook") && has_webhook(project) {
            return Err(WatchError::NoWebhooks);
        }
        let lock = FileLock::try_at(&project.folder().join("watch.lock"))?.ok_or(WatchError::Running)?;
        let (reported, problem) = ReportedAlerts::open(project.folder());
        let outbox = Outbox::open(project, &options);
        if project.store().is_in_database() {
            // The time of the database counts, and it is known after the first read.
            let _ = project.state();
        }
        if let Some(problem) = &problem {
            outbox.note(now(), &format!("⚠️ ALERTS STATE LOST: {problem}"));
        }
        Ok(Self {
            project: project.clone(),
            options,
            masker: Masker::of_process(),
            episodes: reported.episodes(),
            reported,
            shared: None,
            reconciler: Reconciler::default(),
            outbox,
            state: Arc::default(),
            unreadable_since: None,
            analyzed: None,
            problems: BTreeSet::new(),
            notices: problem.into_iter().collect(),
            last_check: now(),
            _lock: lock,
        })
    }

    /// Checks once: follows stop files, analyzes anomalies if asked to, delivers new alerts to alerts.log,
    /// webhook and desktop, and returns them.
    pub fn check(&mut self, now: Timestamp) -> WatchReport {
        self.last_check = now;
        let mut report = WatchReport { notices: std::mem::take(&mut self.notices), ..WatchReport::default() };
        match self.project.state() {
            Ok(state) => {
                report.notices.extend(self.went_back(&state, now));
                self.state = state;
                self.unreadable_since = None;
                self.follow_changes(now, &mut report);
                self.report_alarms(now, &mut report);
            }
            Err(error) => self.report_unreadable(&error.to_string(), now, &mut report),
        }
        if !self.is_project_gone()
            && let Err(error) = self.reported.save(&self.episodes)
        {
            report.problems.insert(format!("cannot write .liza/alerts.state: {error}"));
        }
        report.notices.extend(self.outbox.failures());
        report.notices.extend(report.problems.difference(&self.problems).cloned());
        self.problems.clone_from(&report.problems);
        // Error messages quote files with untrusted content.
        let clean = |notice: &String| one_line(&self.masker.mask(notice), NOTICE_MAX);
        report.notices = report.notices.iter().map(clean).collect();
        report
    }

    /// Notes that the blackboard is older than before: a database has failed over to a copy that lacks the
    /// last commits, or a backup was restored.
    fn went_back(&self, state: &State, now: Timestamp) -> Option<String> {
        let (before, after) = (self.state.board.revision, state.board.revision);
        let text = format!(
            "the blackboard went back from revision {before} to {after}: an older copy is in use, and what was written since \
             is lost. Check the tasks, your answers and the stop files: liza status"
        );
        (after < before).then(|| {
            self.outbox.note(now, &format!("⚠️ BLACKBOARD WENT BACK: {text}"));
            text
        })
    }

    /// The wait for the next check if no change is reported.
    pub fn next_check(&self) -> Duration {
        let interval = self.options.interval.unwrap_or_else(|| {
            let config = self.state.board.config.ready().map(|config| config.coder_poll_interval);
            Duration::from_secs(config.unwrap_or(Config::default().coder_poll_interval).0)
        });
        let due = self.reconciler.next_check(&self.state, self.last_check);
        interval.max(SOON).min(self.pending().unwrap_or(interval)).min(due.unwrap_or(interval)).max(SOON / 10)
    }

    /// The wait for the next check while a change must last for a moment before it counts.
    pub fn pending(&self) -> Option<Duration> {
        let saving = self.unreadable_since.is_some_and(|since| self.last_check.since(since) < SAVE_TIME);
        (self.reconciler.is_pending() || saving).then_some(SOON)
    }

    pub fn is_project_gone(&self) -> bool {
        !self.project.folder().exists()
    }

    /// Ends the watcher after waiting for pending deliveries. True if all were made in time.
    pub fn close(self, timeout: Duration) -> bool {
        self.outbox.close(timeout)
    }

    /// Follows stop files and the deadline, and analyzes new anomalies if asked to.
    fn follow_changes(&mut self, now: Timestamp, report: &mut WatchReport) {
        let mut changed = false;
        if let Some(done) = self.reconciler.reconcile(&self.project, &self.state, now) {
            report.notices.push(done);
            changed = true;
        }
        let anomalies = self.state.journal.anomalies.len();
        if self.options.analyze && self.analyzed != Some(anomalies) {
            match self.analyze(now) {
                Ok(()) => self.analyzed = Some(anomalies),
                Err(error) => {
                    report.problems.insert(format!("the circuit breaker analysis failed: {error}"));
                }
            }
            changed = true;
        }
        if changed && let Ok(state) = self.project.state() {
            self.state = state;
        }
        if let Err(error) = breaker::report(&self.project, &self.state, &self.masker) {
            report.problems.insert(format!("cannot write {}: {error}", breaker::REPORT));
        }
    }

    fn analyze(&self, now: Timestamp) -> Result<(), EngineError> {
        let breaker = self.state.board.circuit_breaker.ready();
        if breaker.is_some_and(|breaker| breaker.status == BreakerStatus::Triggered) {
            return Ok(());
        }
        let findings = analyze(&self.state);
        Engine::new(&self.project, Actor::Human).at(now).execute(RecordAnalysis { findings }).map(drop)
    }

    fn report_alarms(&mut self, now: Timestamp, report: &mut WatchReport) {
        let seen = observe(&self.project, &self.state, now);
        let current = alarms(&self.state, &seen, now);
        let Some(elsewhere) = self.raised_elsewhere(&current, now, report) else {
            // The next check sees the newer blackboard; alarms of only this machine don't wait for it.
            let own = current.iter().filter(|alarm| alarm.kind.is_of_one_machine()).cloned();
            let new = self.episodes.advance_blind(&own.collect::<Vec<_>>());
            self.list(&current, now, report);
            report.new.extend(new.iter().map(|alarm| self.message(alarm, now)));
            self.deliver(&new, now, report);
            return;
        };
        let new = self.episodes.advance(&current);
        let own: Vec<Alarm> = new.iter().filter(|alarm| !elsewhere.contains(&alarm.key())).cloned().collect();
        self.list(&current, now, report);
        report.new.extend(new.iter().map(|alarm| self.message(alarm, now)));
        self.deliver(&own, now, report);
        let fresh = new.iter().any(|alarm| alarm.kind.stop_file() == Some(StopFile::Checkpoint));
        let checkpoint = seen.stop_files.checkpoint;
        if let Err(error) = escalation::follow(self.project.folder(), &self.state, checkpoint, fresh, now) {
            report.problems.insert(format!("cannot write .liza/ESCALATION: {error}"));
        }
    }

    /// While the blackboard is unreadable, earlier alarms stay active; stop files are still checked.
    fn report_unreadable(&mut self, why: &str, now: Timestamp, report: &mut WatchReport) {
        let since = *self.unreadable_since.get_or_insert(now);
        if now.since(since) < SAVE_TIME {
            return;
        }
        let seen = observe_unreadable(&self.project, why.to_owned());
        let current = alarms(&State::default(), &seen, now);
        let new = self.episodes.advance_blind(&current);
        self.list(&current, now, report);
        report.new.extend(new.iter().map(|alarm| self.message(alarm, now)));
        self.deliver(&new, now, report);
    }

    /// The alarms that the watcher of another machine has raised. `None` if it has seen a newer blackboard.
    /// In doubt, an alarm is raised twice rather than not at all.
    fn raised_elsewhere(
        &mut self,
        current: &[Alarm],
        now: Timestamp,
        report: &mut WatchReport,
    ) -> Option<BTreeSet<String>> {
        let of_all = current.iter().filter(|alarm| !alarm.kind.is_of_one_machine());
        let keys: BTreeSet<String> = of_all.map(Alarm::key).collect();
        if self.shared.as_ref() == Some(&keys) {
            return Some(BTreeSet::new());
        }
        let recorded = self.state.board.goal.ready().and_then(|goal| goal.integration_head.as_ref());
        let stays = |key: &str| is_seen_late(key, recorded);
        match self.project.store().raise_alarms(&keys, &stays, (self.state.board.revision, now)) {
            Ok(None) => Some(BTreeSet::new()),
            Ok(Some(RaisedAlarms::Outdated)) => None,
            Ok(Some(RaisedAlarms::New(new))) => {
                let elsewhere = keys.difference(&new).cloned().collect();
                self.shared = Some(keys);
                Some(elsewhere)
            }
            Err(error) => {
                report.problems.insert(format!("cannot share alerts with other machines: {error}"));
                Some(BTreeSet::new())
            }
        }
    }

    fn message(&self, alarm: &Alarm, now: Timestamp) -> AlertMessage {
        AlertMessage::new(alarm, now, &self.masker)
    }

    fn list(&self, current: &[Alarm], now: Timestamp, report: &mut WatchReport) {
        report.current.extend(current.iter().map(|alarm| self.message(alarm, now)));
    }

    /// Raises alarms: in alerts.log, by the webhook, on the desktop.
    fn deliver(&self, alarms: &[Alarm], now: Timestamp, report: &mut WatchReport) {
        let alerts: Vec<AlertMessage> = alarms.iter().map(|alarm| self.message(alarm, now)).collect();
        for alert in &alerts {
            if let Err(error) = self.outbox.write(now, &alert.line()) {
                report.problems.insert(format!("cannot write .liza/alerts.log: {error}"));
            }
        }
        let config = self.state.board.config.ready();
        let url = config.and_then(|config| config.escalation_webhook.as_deref()).map(str::trim);
        if let Some(url) = url.filter(|url| !url.is_empty()) {
            for alert in &alerts {
                self.outbox.post(now, url, &alert::payload(alert, &self.state, self.project.root()));
            }
        }
        self.outbox.notify(&alerts);
    }
}

/// All active alarms. Nothing is delivered or recorded.
pub fn current_alerts(project: &Project) -> Vec<AlertMessage> {
    let read = project.store().snapshot();
    let now = now();
    let (state, seen) = match read {
        Ok(state) => {
            let seen = observe(project, &state, now);
            (state, seen)
        }
        Err(error) => (State::default(), observe_unreadable(project, error.to_string())),
    };
    let masker = Masker::of_process();
    alarms(&state, &seen, now).iter().map(|alarm| AlertMessage::new(alarm, now, &masker)).collect()
}
