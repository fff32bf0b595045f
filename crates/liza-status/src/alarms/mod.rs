//! Alarms for the human: every condition is a pure function of state, files and `now`.
//!
//! An alarm is raised once per episode: [`Episodes`] remembers a true condition, and forgets it at its end.

mod episodes;
pub(crate) mod failing;
pub(crate) mod held;
mod held_merges;
mod kinds;
mod observations;
mod plan;
pub(super) mod refused;
pub(super) mod setup;
mod stalled;
mod stops;
pub(crate) mod task;
mod team;
mod text;

use std::fmt;

use serde::Serialize;

use liza_core::model::{
    AgentId, AgentRecord, Anomaly, AnomalyType, BreakerStatus, DirectEdit, DiscoveryId, State, TaskId,
    Timestamp,
};
use liza_core::rules::metrics::sprint_metrics;
use liza_core::text::count;

pub use episodes::{Episodes, is_seen_late};
pub use failing::is_open;
pub use kinds::AlarmKind;
pub(crate) use kinds::Answer;
pub use observations::{
    Confinement, FailedReviewSetup, FailingJob, ForeignCommits, KeptVersion, MainBranch, MissingLogin,
    Observations, RefusedPort, Remedy, RemoteProblem, RunningMerge, SessionActivity, TeamFileChange,
    VisionGap,
};
pub use stops::StopAge;
pub(super) use team::budget_subject;
pub use team::sessions_without_result;
pub use text::AlarmText;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AlarmLevel {
    /// Look at it when you can.
    Warning,
    Critical,
}

impl AlarmLevel {
    /// The sign before the text.
    pub fn sign(self) -> &'static str {
        match self {
            AlarmLevel::Warning => "⚠️",
            AlarmLevel::Critical => "🚨",
        }
    }
}

/// The subject of an alarm; part of the key of its episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlarmSubject {
    Task(TaskId),
    /// One figure of a task.
    Figure(TaskId, &'static str),
    Agent(AgentId),
    Discovery(DiscoveryId),
    /// A sprint, a goal, a file, a length of time: anything else with a name.
    Name(String),
}

impl AlarmSubject {
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            AlarmSubject::Task(task) | AlarmSubject::Figure(task, _) => Some(task),
            AlarmSubject::Agent(_) | AlarmSubject::Discovery(_) | AlarmSubject::Name(_) => None,
        }
    }
}

impl fmt::Display for AlarmSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlarmSubject::Task(task) => task.fmt(f),
            AlarmSubject::Figure(task, figure) => write!(f, "{task}:{figure}"),
            AlarmSubject::Agent(agent) => agent.fmt(f),
            AlarmSubject::Discovery(discovery) => discovery.fmt(f),
            AlarmSubject::Name(name) => f.write_str(name),
        }
    }
}

impl From<&TaskId> for AlarmSubject {
    fn from(task: &TaskId) -> Self {
        AlarmSubject::Task(task.clone())
    }
}

impl From<AgentId> for AlarmSubject {
    fn from(agent: AgentId) -> Self {
        AlarmSubject::Agent(agent)
    }
}

impl From<DiscoveryId> for AlarmSubject {
    fn from(discovery: DiscoveryId) -> Self {
        AlarmSubject::Discovery(discovery)
    }
}

impl From<&str> for AlarmSubject {
    fn from(name: &str) -> Self {
        AlarmSubject::Name(name.to_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    pub level: AlarmLevel,
    pub kind: AlarmKind,
    pub subject: AlarmSubject,
    /// The time since which it has been true, if the blackboard has it: an alarm that ended and came back is
    /// another episode, even if no one looked in between.
    pub since: Option<Timestamp>,
    /// The rest of the alert.
    pub text: AlarmText,
}

impl Alarm {
    fn warning(kind: AlarmKind, subject: impl Into<AlarmSubject>, text: impl Into<AlarmText>) -> Self {
        let (subject, text) = (subject.into(), text.into());
        Self { level: AlarmLevel::Warning, kind, subject, since: None, text }
    }

    fn critical(kind: AlarmKind, subject: impl Into<AlarmSubject>, text: impl Into<AlarmText>) -> Self {
        Self { level: AlarmLevel::Critical, ..Self::warning(kind, subject, text) }
    }

    fn since(mut self, since: impl Into<Option<Timestamp>>) -> Self {
        self.since = since.into();
        self
    }

    /// The key that identifies this episode.
    pub fn key(&self) -> String {
        let since = self.since.map(|since| format!("@{since}")).unwrap_or_default();
        format!("{}:{}{since}", self.kind, self.subject)
    }

    /// The key with its kind, to join it with other data about the alarm.
    pub(super) fn join_key(&self) -> (AlarmKind, String) {
        (self.kind, self.key())
    }

    pub fn line(&self) -> String {
        format!("{} {}: {}", self.level.sign(), self.kind, self.text)
    }
}

pub fn alarms(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let mut found = Vec::new();
    if let Some(error) = &seen.unreadable {
        found.push(Alarm::critical(AlarmKind::InvalidState, "file", error.as_str()));
    }
    for violation in seen.violations.iter().filter(|violation| !violation.has_alarm) {
        let text = violation.to_string();
        found.push(Alarm::critical(AlarmKind::InvalidState, text.as_str(), text.clone()));
    }
    for (id, body) in state.bodies() {
        task::alarms(state, id, body, now, &mut found);
        found.extend(held_merges::gate_changed(state, id, body));
        found.extend(held_merges::validation_held(state, id));
    }
    for discovery in state.board.discovered.entries().filter(|d| d.is_pressing()) {
        let text = format!("{} — {} (Planner should wake)", discovery.id, discovery.description);
        found.push(Alarm::critical(AlarmKind::ImmediateDiscovery, discovery.id, text));
    }
    found.extend(plan::alarm(state));
    found.extend(held_merges::alarm(state));
    found.extend(full_contexts(state, now));
    found.extend(quiet_sessions(state, seen, now));
    found.extend(stalled::alarm(state, seen, now));
    found.extend(stops::checkpoint(seen, now));
    found.extend(stops::pause(seen, now));
    found.extend(governance(state, now));
    for KeptVersion { file, is_before_rewrite } in &seen.kept_versions {
        let text = match is_before_rewrite {
            true => format!(
                "state.yaml was rewritten without its comments; the previous version is kept in {file}. \
                 Put back what you need with liza edit, then delete it"
            ),
            false => format!(
                "your save was based on an older revision; it is kept in {file}. \
                 Merge it: liza edit --from {file}"
            ),
        };
        found.push(Alarm::warning(AlarmKind::StaleEdit, file.as_str(), text));
    }
    found.extend(stray_changes(state));
    found.extend(team::alarms(state, seen, now));
    found.extend(setup::alarms(state, seen));
    found.extend(refused::alarms(state, seen));
    found.extend(failing::alarms(state, seen, now));
    found.extend(remote_problem(state, seen));
    found.extend(plan::settings_not_accepted(state));
    found.extend(seen.team_file_change.as_ref().map(plan::team_file_changed));
    found.extend(seen.foreign_commits.iter().map(foreign_commits));
    found.extend(git_programs_changed(&seen.changed_programs));
    found.extend(state.board.direct_edits.entries().chain(&seen.pending_edit).map(direct_edit));
    found
}

fn direct_edit(edit: &DirectEdit) -> Alarm {
    let id = edit.id.to_string();
    // Without a time: the same alarm before and after it is recorded.
    Alarm::critical(AlarmKind::DirectEdit, id.as_str(), edit.describe())
}

fn foreign_commits(found: &ForeignCommits) -> Alarm {
    let ForeignCommits { head, expected, commits, merge_of, merges } = found;
    let (head, expected) = (head.short(), expected.short());
    let list = if commits.is_empty() { String::new() } else { format!(": {}", commits.join("; ")) };
    let text = match (commits.as_slice(), merge_of) {
        (_, Some(task)) => format!(
            "the merge of {task}, {head}, is on the integration branch, but the blackboard refused it; merges wait{list}"
        ),
        ([], None) => format!("the integration branch is at {head}, not at {expected}; merges wait"),
        (some, None) if !merges.is_empty() => {
            let tasks: Vec<&str> = merges.tasks().map(TaskId::as_str).collect();
            format!(
                "{} on the integration branch bypassed the reviews, or the blackboard has lost them: merges of {}. \
                 These tasks and all merges wait{list}",
                count(some.len(), "commit"),
                tasks.join(", ")
            )
        }
        (some, None) => format!(
            "{} on the integration branch bypassed the reviews; merges wait{list}",
            count(some.len(), "commit")
        ),
    };
    Alarm::critical(AlarmKind::ForeignCommits, found.head.as_str(), text)
}

/// Settings of the project's git configuration that the human has not accepted.
fn git_programs_changed(keys: &[String]) -> Option<Alarm> {
    let text = format!(
        "the project's git configuration names programs, or ways to sign, that you have not accepted; merges wait: {}",
        keys.join(", ")
    );
    (!keys.is_empty()).then(|| Alarm::critical(AlarmKind::GitProgramsChanged, keys.join(" ").as_str(), text))
}

/// Changes that a supervisor saw outside any task, in this sprint and since the human's last decision.
fn stray_changes(state: &State) -> Vec<Alarm> {
    let Some(sprint) = state.board.sprint.ready() else { return Vec::new() };
    let decided = sprint.decisions.last().map(|decision| decision.timestamp);
    let stray = |anomaly: &&Anomaly| {
        anomaly.is(AnomalyType::ScopeDeviation)
            && anomaly.task.is_none()
            && sprint.timeline.started.is_none_or(|started| anomaly.timestamp >= started)
            && decided.is_none_or(|decided| anomaly.timestamp > decided)
    };
    let alarm = |anomaly: &Anomaly| {
        let who = anomaly.reporter.as_deref().unwrap_or("unknown");
        let what = anomaly.details.get("deviation").map(ToString::to_string).unwrap_or_default();
        Alarm::critical(AlarmKind::StrayChanges, who, format!("{who} — {what}")).since(anomaly.timestamp)
    };
    state.journal.anomalies.iter().filter(stray).map(alarm).collect()
}

fn full_contexts(state: &State, now: Timestamp) -> Vec<Alarm> {
    let alarm = |(agent, entry): (&AgentId, &AgentRecord)| {
        let percent = entry.full_context(now)?;
        let task = entry.current_task.as_ref().map(|task| format!(" on {task}")).unwrap_or_default();
        let text = format!("{agent}{task} — {percent} % of its context is used, it should hand off");
        Some(Alarm::warning(AlarmKind::ContextFull, *agent, text))
    };
    state.board.agents.entries().filter_map(alarm).collect()
}

/// Sessions that have printed nothing for too long: the client or one of its tools may hang.
fn quiet_sessions(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let Some(limit) = state.board.config.ready().map(|config| config.quiet_limit) else { return Vec::new() };
    let alarm = |(agent, entry): (&AgentId, &AgentRecord)| {
        let activity = seen.sessions.get(agent).filter(|_| entry.is_live(now))?;
        let silent = now.since(activity.last_output);
        let task = entry.current_task.as_ref().map(|task| format!(" on {task}")).unwrap_or_default();
        let last = activity.last_action.as_ref().map(|last| format!("; last: {last}")).unwrap_or_default();
        let text = format!("{agent}{task} — no output for {silent}. See it: liza tail {agent}{last}");
        (silent >= limit)
            .then(|| Alarm::warning(AlarmKind::QuietSession, *agent, text).since(activity.last_output))
    };
    state.board.agents.entries().filter_map(alarm).collect()
}

/// Work cannot be exchanged with other machines, so nothing is submitted or merged.
fn remote_problem(state: &State, seen: &Observations) -> Option<Alarm> {
    let problem = seen.remote_problem.as_ref()?;
    let remote = state.board.config.ready()?.remote.as_ref()?;
    let text = format!("{}. Liza tries again by itself; no task is blamed", problem.message);
    Some(Alarm::critical(AlarmKind::RemoteProblem, remote.as_str(), text).since(problem.since))
}

/// The breaker, the deadline and reviews that look like rubber stamps.
fn governance(state: &State, now: Timestamp) -> Vec<Alarm> {
    let mut found = Vec::new();
    if let Some(breaker) = state.board.circuit_breaker.ready()
        && breaker.status == BreakerStatus::Triggered
    {
        let trip = breaker.current_trigger.as_ref();
        let pattern = trip.map_or("unknown pattern", |trip| trip.pattern.as_str());
        let text = format!("{pattern}; see .liza/circuit_breaker_report.md, then liza resolve");
        let when = trip.map(|trip| trip.timestamp);
        found.push(Alarm::critical(AlarmKind::CircuitBreaker, pattern, text).since(when));
    }
    if let Some(sprint) = state.board.sprint.ready() {
        let due = sprint.timeline.deadline.filter(|_| !sprint.status.is_terminal());
        if let Some(deadline) = due.filter(|deadline| *deadline <= now) {
            let text = format!("{} was due at {deadline}", sprint.id);
            found.push(Alarm::warning(AlarmKind::SprintDeadline, sprint.id.as_str(), text).since(deadline));
        }
        let metrics = sprint_metrics(state);
        if metrics.looks_rubber_stamped() {
            let text = format!(
                "{} of {} verdicts are approvals: is the code being read?",
                metrics.review_verdict_approvals, metrics.review_verdict_count
            );
            found.push(Alarm::warning(AlarmKind::RubberStamp, sprint.id.as_str(), text));
        }
    }
    found
}
