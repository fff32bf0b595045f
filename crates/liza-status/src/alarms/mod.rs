//! Alarms for the human: every condition is a pure function of state, files and `now`.
//!
//! An alarm is raised once per episode: [`Episodes`] remembers a true condition, and forgets it at its end.

mod consent;
mod episodes;
mod failing;
pub(crate) mod held;
pub(crate) mod held_merges;
mod kinds;
mod moment;
mod observations;
mod refused;
mod setup;
mod stalled;
mod stops;
pub(crate) mod task;
mod team;
mod text;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::command_line::{CommandLine, OPEN, liza};
use liza_core::evidence::caught_in_words;
use liza_core::model::{
    AgentId, AgentRecord, Anomaly, AnomalyType, BreakerStatus, DirectEdit, State, TaskId, Timestamp,
};
use liza_core::rules::metrics::sprint_metrics;
use liza_core::text::{count, shell_word};

pub use episodes::{Episodes, is_seen_late};
pub use failing::is_open;
pub use kinds::AlarmKind;
use kinds::Answer;
pub(crate) use moment::Moment;
pub use observations::{
    Confinement, FailedReviewSetup, FailingJob, ForeignCommits, KeptVersion, MainBranch, MissingLogin,
    Observations, Refused, RefusedPlace, Remedy, RemoteProblem, RunningMerge, SessionActivity,
    TeamFileChange, VisionGap,
};
pub use stops::StopAge;
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

/// A matter for the human: an alarm, or a decision that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    pub level: AlarmLevel,
    pub kind: AlarmKind,
    /// A task, an agent, a file, a length of time: part of the key of its episode.
    pub subject: String,
    /// The task that it is about.
    pub task: Option<TaskId>,
    /// The time since which it has been true, if the blackboard has it: an alarm that ended and came back is
    /// another episode, even if no one looked in between.
    pub since: Option<Timestamp>,
    /// The rest of the alert.
    pub text: AlarmText,
    /// The command with which the human answers it, if it depends on the state.
    own_answer: Option<CommandLine>,
}

impl Alarm {
    pub(crate) fn new(kind: AlarmKind, subject: impl fmt::Display, text: impl Into<AlarmText>) -> Self {
        let (level, subject, text) = (kind.level(), subject.to_string(), text.into());
        Self { level, kind, subject, task: None, since: None, text, own_answer: None }
    }

    /// About a task, which its text names first.
    fn of_task(kind: AlarmKind, task: &TaskId, words: impl fmt::Display) -> Self {
        Self::new(kind, task, AlarmText::of_task(task, words)).about(task)
    }

    pub(crate) fn about<'t>(self, task: impl Into<Option<&'t TaskId>>) -> Self {
        Self { task: task.into().cloned(), ..self }
    }

    pub(crate) fn at(self, level: AlarmLevel) -> Self {
        Self { level, ..self }
    }

    fn since(self, since: impl Into<Option<Timestamp>>) -> Self {
        Self { since: since.into(), ..self }
    }

    pub(crate) fn answered(self, command: impl Into<Option<CommandLine>>) -> Self {
        Self { own_answer: command.into(), ..self }
    }

    /// The command with which the human answers it; `None` if agents handle it.
    pub(crate) fn answer(&self) -> Option<CommandLine> {
        match self.kind.answer() {
            Answer::Agents => None,
            Answer::Human(words) => Some(CommandLine::liza(words)),
            Answer::About(words) => Some(CommandLine::liza(words.iter().chain([&self.subject.as_str()]))),
            Answer::Own => self.own_answer.clone(),
        }
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

/// The command with which the human answers a question about a task, or about the goal.
fn answer_question(task: Option<&TaskId>) -> CommandLine {
    match task {
        Some(task) => liza!("answer", task, OPEN),
        None => liza!("note", OPEN),
    }
}

pub fn alarms(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let at = Moment { state, seen, now };
    let mut found = Vec::new();
    found.extend(seen.unreadable.as_ref().map(|error| Alarm::new(AlarmKind::InvalidState, "file", error)));
    for violation in seen.violations.iter().filter(|violation| !violation.has_alarm) {
        found.push(Alarm::new(AlarmKind::InvalidState, violation, violation.to_string()));
    }
    for (id, body) in state.bodies() {
        task::alarms(at, id, body, &mut found);
        found.extend(held_merges::gate_changed(state, id, body));
        found.extend(held_merges::validation_held(state, id));
    }
    for discovery in state.board.discovered.entries().filter(|d| d.is_pressing()) {
        let text = format!("{} — {} (Planner should wake)", discovery.id, discovery.description);
        found.push(Alarm::new(AlarmKind::ImmediateDiscovery, discovery.id, text));
    }
    found.extend(consent::plan(state));
    found.extend(held_merges::alarm(state));
    found.extend(full_contexts(at));
    found.extend(quiet_sessions(at));
    found.extend(stalled::alarm(at));
    found.extend(stops::checkpoint(at));
    found.extend(stops::pause(at));
    found.extend(governance(at));
    found.extend(seen.kept_versions.iter().map(kept_version));
    found.extend(stray_changes(state));
    found.extend(team::alarms(at));
    found.extend(setup::alarms(at));
    found.extend(refused::alarms(at));
    found.extend(seen.full_disk.as_deref().map(full_disk));
    found.extend(failing::alarms(at));
    found.extend(remote_problem(at));
    found.extend(consent::settings(at));
    found.extend(seen.team_file_change.as_ref().map(consent::team_file));
    found.extend(seen.foreign_commits.iter().map(foreign_commits));
    found.extend(consent::git_programs(&seen.changed_programs));
    found.extend(state.board.direct_edits.entries().chain(&seen.pending_edit).map(direct_edit));
    found
}

fn full_disk(folder: &Path) -> Alarm {
    let folder = folder.display().to_string();
    let text = format!(
        "the disk with {folder} is full: sessions fail, and nothing is recorded. Free some space; no task is blamed, and \
         agents try again by themselves"
    );
    let command = CommandLine::shell(format!("df -h {}", shell_word(&folder)));
    Alarm::new(AlarmKind::DiskFull, "disk", text).answered(command)
}

fn kept_version(KeptVersion { file, is_before_rewrite }: &KeptVersion) -> Alarm {
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
    Alarm::new(AlarmKind::StaleEdit, file, text)
}

fn direct_edit(edit: &DirectEdit) -> Alarm {
    // Without a time: the same alarm before and after it is recorded.
    Alarm::new(AlarmKind::DirectEdit, edit.id, edit.describe())
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
    Alarm::new(AlarmKind::ForeignCommits, &found.head, text)
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
        Alarm::new(AlarmKind::StrayChanges, who, format!("{who} — {what}")).since(anomaly.timestamp)
    };
    state.journal.anomalies.iter().filter(stray).map(alarm).collect()
}

fn full_contexts(at: Moment<'_>) -> impl Iterator<Item = Alarm> {
    let alarm = move |(agent, entry): (&AgentId, &AgentRecord)| {
        let (percent, task) = (entry.full_context(at.now)?, on_task(entry));
        let text = format!("{agent}{task} — {percent} % of its context is used, it should hand off");
        Some(Alarm::new(AlarmKind::ContextFull, agent, text))
    };
    at.board().agents.entries().filter_map(alarm)
}

fn on_task(entry: &AgentRecord) -> String {
    entry.current_task.as_ref().map(|task| format!(" on {task}")).unwrap_or_default()
}

/// Sessions that have printed nothing for too long: the client or one of its tools may hang.
fn quiet_sessions(at: Moment<'_>) -> impl Iterator<Item = Alarm> {
    let alarm = move |(agent, entry): (&AgentId, &AgentRecord)| {
        let activity = at.seen.sessions.get(agent).filter(|_| entry.is_live(at.now))?;
        let (silent, task) = (at.now.since(activity.last_output), on_task(entry));
        let last = activity.last_action.as_ref().map(|last| format!("; last: {last}")).unwrap_or_default();
        let text = format!("{agent}{task} — no output for {silent}. See it: liza tail {agent}{last}");
        let alarm = Alarm::new(AlarmKind::QuietSession, agent, text).since(activity.last_output);
        (silent >= at.config()?.quiet_limit).then_some(alarm)
    };
    at.board().agents.entries().filter_map(alarm)
}

/// Who tries again what has failed.
fn tried_again(at: Moment<'_>) -> &'static str {
    if at.here().has_team() { "Liza tries again by itself" } else { "The next liza run tries again" }
}

/// Work cannot be exchanged with other machines, so nothing is submitted or merged.
fn remote_problem(at: Moment<'_>) -> Option<Alarm> {
    let problem = at.seen.remote_problem.as_ref()?;
    let remote = at.config()?.remote.as_ref()?;
    let text = format!("{}. {}; no task is blamed", problem.message, tried_again(at));
    let alarm = Alarm::new(AlarmKind::RemoteProblem, remote, text).since(problem.since);
    Some(alarm.answered(problem.command.clone()))
}

/// The breaker, the deadline and reviews that look like rubber stamps.
fn governance(at: Moment<'_>) -> Vec<Alarm> {
    let mut found = Vec::new();
    let breaker = at.board().circuit_breaker.ready();
    if let Some(breaker) = breaker.filter(|breaker| breaker.status == BreakerStatus::Triggered) {
        let trip = breaker.current_trigger.as_ref();
        let pattern = trip.map_or("unknown pattern", |trip| trip.pattern.as_str());
        let text = format!("{pattern}; see .liza/circuit_breaker_report.md, then liza resolve");
        let when = trip.map(|trip| trip.timestamp);
        found.push(Alarm::new(AlarmKind::CircuitBreaker, pattern, text).since(when));
    }
    if let Some(sprint) = at.sprint() {
        let due = sprint.timeline.deadline.filter(|_| !sprint.status.is_terminal());
        if let Some(deadline) = due.filter(|deadline| *deadline <= at.now) {
            let text = format!("{} was due at {deadline}", sprint.id);
            found.push(Alarm::new(AlarmKind::SprintDeadline, &sprint.id, text).since(deadline));
        }
        let metrics = sprint_metrics(at.state);
        if metrics.looks_rubber_stamped() {
            let drills = caught_in_words(&at.seen.drilled);
            let text = format!(
                "{} of {} verdicts are approvals: is the code being read? {}",
                metrics.review_verdict_approvals,
                metrics.review_verdict_count,
                drills.unwrap_or_else(|| "To measure it: liza drill".to_owned())
            );
            found.push(Alarm::new(AlarmKind::RubberStamp, &sprint.id, text));
        }
    }
    found
}
