//! Follows manual changes while a team works: edits of the file, stop files, the deadline. Reports each
//! violation in the file with its line. An invalid task stops only the agent that would work on it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use liza_core::model::{State, TaskId, Timestamp};
use liza_core::rules::invariants;
use liza_core::rules::invariants::{Subject, Violation};
use liza_store::task_range;

use crate::observe::reconcile::Reconciler;
use crate::project::{Project, now};

use super::message::{MessageLevel, TeamMessage};
use super::observer::{Observed, Observer};

/// Further violations of one edit are counted.
const MAX_LISTED: usize = 5;
/// The interval of validations while many writes happen.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct ManualChanges {
    project: Project,
    reconciler: Reconciler,
    /// The violations that were reported and are still present: subject and message, without the line, which may move.
    reported: BTreeSet<(Subject, String)>,
    next_check: Instant,
}

impl Observer for ManualChanges {
    fn observe(&mut self, state: &State) -> Observed {
        let now = now();
        let reconciled = self.reconciler.reconcile(&self.project, state, now);
        let mut messages: Vec<TeamMessage> =
            reconciled.map(|text| TeamMessage::of_team(MessageLevel::Info, text)).into_iter().collect();
        let due = self.reconciler.next_check(state, now);
        let wait = self.next_check.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            let again_in = Some(due.map_or(wait, |due| due.min(wait)));
            return Observed { messages, again_in, ..Observed::default() };
        }
        self.next_check = Instant::now() + CHECK_INTERVAL;
        messages.extend(self.check(state, now));
        Observed { messages, again_in: due, ..Observed::default() }
    }
}

impl ManualChanges {
    pub(super) fn new(project: &Project) -> Self {
        let (reconciler, reported) = Default::default();
        Self { project: project.clone(), reconciler, reported, next_check: Instant::now() }
    }

    /// Reports new violations and fixed ones.
    fn check(&mut self, state: &State, now: Timestamp) -> Vec<TeamMessage> {
        let found = invariants::validate(state, &self.project.store().disk(), now);
        let wrong: BTreeSet<(Subject, String)> = found.iter().map(key).collect();
        let fresh: Vec<&Violation> =
            found.iter().filter(|violation| !self.reported.contains(&key(violation))).collect();
        let text = if fresh.is_empty() { None } else { self.project.store().text().ok() };
        let listed = fresh.iter().take(MAX_LISTED);
        let mut messages: Vec<TeamMessage> =
            listed.map(|violation| alert(violation, text.as_deref())).collect();
        if fresh.len() > MAX_LISTED {
            let more = format!("and {} more; list them all with: liza validate", fresh.len() - MAX_LISTED);
            messages.push(TeamMessage::of_team(MessageLevel::Alert, more));
        }
        let mut fixed: Vec<&Subject> = self.reported.iter().map(|(subject, _)| subject).collect();
        fixed.dedup();
        fixed.retain(|subject| !wrong.iter().any(|(still, _)| still == *subject));
        messages.extend(
            fixed.iter().map(|subject| TeamMessage::of_team(MessageLevel::Info, format!("fixed: {subject}"))),
        );
        self.reported = wrong;
        messages
    }
}

fn key(violation: &Violation) -> (Subject, String) {
    let message = violation.message.split(" (line ").next().unwrap_or_default();
    (violation.subject.clone(), message.to_owned())
}

fn alert(violation: &Violation, text: Option<&str>) -> TeamMessage {
    let task = match &violation.subject {
        Subject::Task(task) => Some(task),
        Subject::Agent(_) | Subject::Section(_) => None,
    };
    let line = task.zip(text).and_then(|(task, text)| line_of(text, task));
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    TeamMessage::of_team(MessageLevel::Alert, format!("error in .liza/state.yaml{line}: {violation}"))
}

fn line_of(text: &str, task: &TaskId) -> Option<usize> {
    let start = task_range(text, task.as_str())?.start;
    Some(text.get(..start)?.matches('\n').count() + 1)
}
