//! What the planner looks at by itself, and when: it may be faster than the human.

use std::collections::BTreeSet;

use serde::Serializer;

use crate::model::{Role, State, StopFileTimes, Timestamp};
use crate::watch::alarms::{AlarmSubject, Observations};
use crate::watch::supervise::{planner_needs_human, unseen_triggers};

/// When the planner looks at a question by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannerLooks {
    /// Its session is running, or about to start.
    Now,
    /// No session starts before.
    AfterResume,
}

impl PlannerLooks {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            PlannerLooks::Now => "now",
            PlannerLooks::AfterResume => "after liza resume",
        }
    }
}

/// Whether it is there.
#[allow(clippy::ref_option, reason = "serde passes a reference")]
pub(super) fn is_some<S: Serializer>(looks: &Option<PlannerLooks>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(looks.is_some())
}

/// What the planner will look at by itself.
#[derive(Default)]
pub(super) struct PlannerState {
    /// The subjects of triggers that it has not seen yet; none if it is not running or cannot act.
    pending: BTreeSet<String>,
    /// Whether its session is running or may start now.
    pub(super) may_start: bool,
}

impl PlannerState {
    pub(super) fn new(state: &State, seen: &Observations, now: Timestamp) -> Self {
        let agents = state.board.agents.ready().into_iter().flatten();
        let mut planners = agents
            .filter(|(id, entry)| entry.role == Role::Planner && entry.holds(now) && !seen.dead.contains(*id))
            .peekable();
        let runs = planners.peek().is_some();
        let may_start = seen.stop_files == StopFileTimes::default()
            || planners.any(|(_, entry)| entry.status.is_in_session());
        let pending = match runs && !planner_needs_human(state, now) {
            true => unseen_triggers(state, now).into_iter().map(|trigger| trigger.subject).collect(),
            false => BTreeSet::new(),
        };
        Self { pending, may_start }
    }

    /// Whether a blocked task waits for the human: the planner has seen it and left it, cannot act, or is not running.
    pub(super) fn leaves_to_human(&self, subject: &AlarmSubject) -> bool {
        !self.pending.contains(&subject.to_string())
    }
}
