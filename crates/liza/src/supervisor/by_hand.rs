//! What people do by hand while a team works: what they write into the file is held against the rules and told with
//! its place, and the blackboard follows the stop files that they put up or take away, and the deadline that they set.
//!
//! Only looks and tells. What is wrong with one task stops nobody but whoever would work on it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use liza_core::model::{State, TaskId, Timestamp};
use liza_core::rules::invariants;
use liza_core::rules::invariants::{Subject, Violation};
use liza_store::{ProjectDisk, task_range};

use crate::by_files::Reconciler;
use crate::project::{Project, now};

use super::attendant::{Attendant, Attended};
use super::event::{Line, Weight};

/// How many things are told of one edit before the rest is only counted.
const MANY: usize = 5;
/// How often the whole file is held against the rules while many write.
const PAUSE: Duration = Duration::from_millis(500);

/// Reads along with people who edit the file.
pub(super) struct ByHand {
    project: Project,
    reconciler: Reconciler,
    /// What has been told and still stands, by its subject and without its place, which moves.
    told: BTreeSet<(Subject, String)>,
    /// Not before that.
    next: Instant,
}

impl Attendant for ByHand {
    fn attend(&mut self, state: &State) -> Attended {
        let now = now();
        let settled = self.reconciler.settle(&self.project, state, now);
        let settled = settled.map(|text| Line { agent: None, text, weight: Weight::News });
        let mut lines: Vec<Line> = settled.into_iter().collect();
        let due = self.reconciler.again(state, now);
        let wait = self.next.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            self.next = Instant::now() + PAUSE;
            lines.extend(self.news(state, now));
            return Attended { lines, again: due };
        }
        Attended { lines, again: Some(due.map_or(wait, |due| due.min(wait))) }
    }
}

impl ByHand {
    pub(super) fn new(project: &Project) -> Self {
        let reconciler = Reconciler::default();
        Self { project: project.clone(), reconciler, told: BTreeSet::new(), next: Instant::now() }
    }

    /// What is wrong and was not before, and what is right again.
    fn news(&mut self, state: &State, now: Timestamp) -> Vec<Line> {
        let found = invariants::validate(state, &ProjectDisk::new(self.project.root()), now);
        let stands: BTreeSet<(Subject, String)> = found.iter().map(key).collect();
        let fresh: Vec<&Violation> = found.iter().filter(|wrong| !self.told.contains(&key(wrong))).collect();
        let text = if fresh.is_empty() { None } else { self.project.store().text().ok() };
        let mut lines: Vec<Line> =
            fresh.iter().take(MANY).map(|wrong| alert(wrong, text.as_deref())).collect();
        if fresh.len() > MANY {
            let more = format!("and {} more like this: liza validate", fresh.len() - MANY);
            lines.push(Line { agent: None, text: more, weight: Weight::Alert });
        }
        let wrong = |subject: &Subject| stands.iter().any(|(still, _)| still == subject);
        let mut mended: Vec<&Subject> = self.told.iter().map(|(subject, _)| subject).collect();
        mended.dedup();
        let mended = mended.into_iter().filter(|subject| !wrong(subject));
        lines.extend(mended.map(|subject| {
            let text = format!("mended: {subject}");
            Line { agent: None, text, weight: Weight::News }
        }));
        self.told = stands;
        lines
    }
}

/// What tells one thing that is wrong from another, wherever it stands.
fn key(wrong: &Violation) -> (Subject, String) {
    let message = wrong.message.split(" (line ").next().unwrap_or_default();
    (wrong.subject.clone(), message.to_owned())
}

fn alert(wrong: &Violation, text: Option<&str>) -> Line {
    let task = match &wrong.subject {
        Subject::Task(task) => Some(task),
        Subject::Agent(_) | Subject::Section(_) => None,
    };
    let place = task.zip(text).and_then(|(task, text)| line_of(text, task));
    let place = place.map(|line| format!(":{line}")).unwrap_or_default();
    Line { agent: None, text: format!("wrong in .liza/state.yaml{place}: {wrong}"), weight: Weight::Alert }
}

/// The line on which a task begins.
fn line_of(text: &str, task: &TaskId) -> Option<usize> {
    let start = task_range(text, task.as_str())?.start;
    Some(text.get(..start)?.matches('\n').count() + 1)
}
