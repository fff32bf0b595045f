//! What a human should hear about: every alarm condition as a pure function of state, files and `now`.
//!
//! An alarm is raised once per episode: [`Episodes`] remembers what stands, and forgets it when the condition ends.

mod stalled;
mod task;

use std::collections::BTreeSet;

use crate::agent::AgentRecord;
use crate::board::State;
use crate::breaker::BreakerStatus;
use crate::ids::AgentId;
use crate::invariants::Violation;
use crate::metrics::sprint_metrics;
use crate::notes::{Anomaly, AnomalyType};
use crate::time::{Seconds, Timestamp};

/// How loud an alarm is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Look at it when you can.
    Warning,
    /// Look at it now.
    Critical,
}

impl Level {
    /// The sign before the text.
    pub fn sign(self) -> &'static str {
        match self {
            Level::Warning => "⚠️",
            Level::Critical => "🚨",
        }
    }
}

/// One thing that a human should hear about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// How loud.
    pub level: Level,
    /// What kind, in the words of the alert, such as `LEASE EXPIRED`.
    pub kind: &'static str,
    /// What it is about, for telling episodes apart.
    pub subject: String,
    /// Since when it stands, where the blackboard tells: what ended and came again is another episode, even where
    /// nobody looked in between.
    pub since: Option<Timestamp>,
    /// The rest of the alert.
    pub text: String,
}

#[allow(clippy::needless_pass_by_value, reason = "subjects are small, and the calls read better")]
impl Alarm {
    fn warning(kind: &'static str, subject: impl ToString, text: impl Into<String>) -> Self {
        Self { level: Level::Warning, kind, subject: subject.to_string(), since: None, text: text.into() }
    }

    fn critical(kind: &'static str, subject: impl ToString, text: impl Into<String>) -> Self {
        Self { level: Level::Critical, kind, subject: subject.to_string(), since: None, text: text.into() }
    }

    fn since(mut self, since: impl Into<Option<Timestamp>>) -> Self {
        self.since = since.into();
        self
    }

    /// What tells this episode from others.
    pub fn key(&self) -> String {
        let since = self.since.map(|since| format!("@{since}")).unwrap_or_default();
        format!("{}:{}{since}", self.kind, self.subject)
    }

    /// The whole alert.
    pub fn line(&self) -> String {
        format!("{} {}: {}", self.level.sign(), self.kind, self.text)
    }
}

/// What the watcher has seen beside the blackboard.
#[derive(Debug, Clone, Default)]
pub struct Sightings {
    /// Since when `.liza/PAUSE` stands.
    pub pause_since: Option<Timestamp>,
    /// Since when `.liza/CHECKPOINT` stands.
    pub checkpoint_since: Option<Timestamp>,
    /// Since when `.liza/ABORT` stands.
    pub abort_since: Option<Timestamp>,
    /// The last task, sprint or note event in the log; heartbeats and registrations do not count.
    pub last_progress: Option<Timestamp>,
    /// What is wrong with the blackboard.
    pub violations: Vec<Violation>,
    /// The file cannot be read at all, and why.
    pub unreadable: Option<String>,
    /// Hand edits that were based on an older revision, by the file that keeps them.
    pub stale_edits: Vec<String>,
}

/// The kind of alarm that tells of a violation.
pub const INVALID_STATE: &str = "INVALID STATE";

/// How long a stop may stand before somebody is reminded.
const STALE: Seconds = Seconds::minutes(30);
/// When a reminder becomes urgent.
const STUCK: Seconds = Seconds::hours(2);
/// When it looks as if nobody comes back.
const FORSAKEN: Seconds = Seconds::hours(8);

/// Everything that stands now.
pub fn alarms(state: &State, seen: &Sightings, now: Timestamp) -> Vec<Alarm> {
    let mut found = Vec::new();
    if let Some(error) = &seen.unreadable {
        found.push(Alarm::critical(INVALID_STATE, "file", error));
    }
    for violation in &seen.violations {
        found.push(Alarm::critical(INVALID_STATE, violation, violation.to_string()));
    }
    for (id, record) in state.records() {
        task::alarms(state, id, record, now, &mut found);
    }
    for discovery in state.board.discovered.ready().into_iter().flatten().filter(|d| d.is_pressing()) {
        let text = format!("{} — {} (Planner should wake)", discovery.id, discovery.description);
        found.push(Alarm::critical("IMMEDIATE DISCOVERY", discovery.id, text));
    }
    found.extend(contexts(state, now));
    found.extend(stalled::alarm(state, seen, now));
    found.extend(checkpoint(seen, now));
    found.extend(pause(seen, now));
    found.extend(governance(state, now));
    for file in &seen.stale_edits {
        let text = format!(
            "your save was based on an older revision; it is kept in {file}; liza edit --from {file} merges it"
        );
        found.push(Alarm::warning("STALE EDIT", file, text));
    }
    found.extend(strays(state));
    found
}

/// Changes that a supervisor saw outside any task, in this sprint and since a human last looked at it.
fn strays(state: &State) -> Vec<Alarm> {
    let Some(sprint) = state.board.sprint.ready() else { return Vec::new() };
    let looked = sprint.decisions.last().map(|decision| decision.timestamp);
    let stray = |anomaly: &&Anomaly| {
        anomaly.kind == AnomalyType::ScopeDeviation.name()
            && anomaly.task.is_none()
            && sprint.timeline.started.is_none_or(|started| anomaly.timestamp >= started)
            && looked.is_none_or(|looked| anomaly.timestamp > looked)
    };
    let told = |anomaly: &Anomaly| {
        let who = anomaly.reporter.as_deref().unwrap_or("somebody");
        let what = anomaly.details.get("deviation").map(ToString::to_string).unwrap_or_default();
        Alarm::critical("STRAY CHANGES", who, format!("{who} — {what}")).since(anomaly.timestamp)
    };
    state.journal.anomalies.iter().filter(stray).map(told).collect()
}

/// Sessions whose context is nearly used up.
fn contexts(state: &State, now: Timestamp) -> Vec<Alarm> {
    let told = |(agent, entry): (&AgentId, &AgentRecord)| {
        let percent = entry.context_used_up(now)?;
        let task = entry.current_task.as_ref().map(|task| format!(" on {task}")).unwrap_or_default();
        let text = format!("{agent}{task} — {percent} % of its context is used, it should hand over");
        Some(Alarm::warning("CONTEXT FULL", agent, text))
    };
    state.board.agents.ready().into_iter().flatten().filter_map(told).collect()
}

/// How long a checkpoint has waited for the human.
fn checkpoint(seen: &Sightings, now: Timestamp) -> Option<Alarm> {
    let since = seen.checkpoint_since?;
    let waited = now.since(since);
    let text = |advice: &str| format!("waiting for human for {waited}{advice}");
    let found = match Neglect::of(waited)? {
        Neglect::Forsaken => {
            Alarm::critical("CHECKPOINT ABANDONED?", "8h", text("; liza resume to go on, liza abort to stop"))
        }
        Neglect::Stuck => Alarm::critical("CHECKPOINT STUCK", "2h", text("")),
        Neglect::Stale => Alarm::warning("CHECKPOINT STALE", "30min", text("")),
    };
    Some(found.since(since))
}

/// How long a stop has waited for somebody to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Neglect {
    /// More than half an hour.
    Stale,
    /// More than two hours: a checkpoint is escalated.
    Stuck,
    /// More than eight hours: it looks as if nobody comes back.
    Forsaken,
}

impl Neglect {
    /// What a wait of that length amounts to.
    pub fn of(waited: Seconds) -> Option<Self> {
        let all = [(FORSAKEN, Neglect::Forsaken), (STUCK, Neglect::Stuck), (STALE, Neglect::Stale)];
        all.into_iter().find(|(limit, _)| waited > *limit).map(|(_, neglect)| neglect)
    }
}

/// How long PAUSE has stood.
fn pause(seen: &Sightings, now: Timestamp) -> Option<Alarm> {
    let since = seen.pause_since?;
    let waited = now.since(since);
    let text = format!("PAUSE file exists for {}min", waited.in_minutes());
    let found = match Neglect::of(waited)? {
        Neglect::Forsaken | Neglect::Stuck => Alarm::critical("FORGOTTEN PAUSE", "2h", text),
        Neglect::Stale => Alarm::warning("STALE PAUSE", "30min", text),
    };
    Some(found.since(since))
}

/// The breaker, the deadline and reviews that look like rubber stamps.
fn governance(state: &State, now: Timestamp) -> Vec<Alarm> {
    let mut found = Vec::new();
    if let Some(breaker) = state.board.circuit_breaker.ready()
        && breaker.status == BreakerStatus::Triggered
    {
        let trigger = breaker.current_trigger.as_ref();
        let pattern = trigger.map_or("unknown pattern", |trigger| trigger.pattern.as_str());
        let text = format!("{pattern}; see .liza/circuit_breaker_report.md, then liza resolve");
        let when = trigger.map(|trigger| trigger.timestamp);
        found.push(Alarm::critical("CIRCUIT BREAKER", pattern, text).since(when));
    }
    if let Some(sprint) = state.board.sprint.ready().filter(|sprint| !sprint.status.is_terminal()) {
        if let Some(deadline) = sprint.timeline.deadline.filter(|deadline| *deadline <= now) {
            let text = format!("{} was due at {deadline}", sprint.id);
            found.push(Alarm::warning("SPRINT DEADLINE", &sprint.id, text).since(deadline));
        }
        let metrics = sprint_metrics(state);
        if metrics.looks_rubber_stamped() {
            let text = format!(
                "{} of {} verdicts are approvals: does anybody read the code?",
                metrics.review_verdict_approvals, metrics.review_verdict_count
            );
            found.push(Alarm::warning("RUBBER STAMP", &sprint.id, text));
        }
    }
    found
}

/// What already has been said, as the keys of what stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Episodes(pub BTreeSet<String>);

impl Episodes {
    /// The alarms that are new, and what stands from now on. A condition that ended may be raised again.
    pub fn advance(&mut self, current: &[Alarm]) -> Vec<Alarm> {
        let fresh = current.iter().filter(|alarm| !self.0.contains(&alarm.key())).cloned().collect();
        self.0 = current.iter().map(Alarm::key).collect();
        fresh
    }

    /// The same where the blackboard could not be read: what is not seen may still stand, so nothing is forgotten.
    pub fn advance_blind(&mut self, current: &[Alarm]) -> Vec<Alarm> {
        let before = std::mem::take(&mut self.0);
        let fresh = current.iter().filter(|alarm| !before.contains(&alarm.key())).cloned().collect();
        self.0 = before.into_iter().chain(current.iter().map(Alarm::key)).collect();
        fresh
    }
}
