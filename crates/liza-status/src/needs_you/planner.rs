//! Matters that the planner looks at by itself: it may be faster than the human.

use std::collections::BTreeSet;

use serde::Serializer;

use crate::alarms::held::held_program;
use crate::alarms::{AlarmSubject, Observations};
use liza_core::model::{AgentId, AgentRecord, Role, State, StopFileTimes, Timestamp};
use liza_core::rules::sessions::{decided_since, is_newer, undecided};
use liza_core::rules::triggers::Trigger;
use liza_core::supervise::planner_needs_human;

/// The time at which the planner looks at a question by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannerLooks {
    /// Its session is running, or about to start.
    Now,
    /// Its session has decided about other things, and has not ended yet.
    Next,
    AfterResume,
    /// Its agent program cannot be used now.
    AfterHold,
}

impl PlannerLooks {
    pub fn words(self) -> &'static str {
        match self {
            PlannerLooks::Now => "now",
            PlannerLooks::Next => "next",
            PlannerLooks::AfterResume => "after liza resume",
            PlannerLooks::AfterHold => "when its program can be used again",
        }
    }
}

#[allow(clippy::ref_option, reason = "serde passes a reference")]
pub(super) fn is_some<S: Serializer>(looks: &Option<PlannerLooks>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(looks.is_some())
}

pub(super) struct PlannerState {
    /// The subjects of triggers that it has not looked at yet; empty if it is not running or cannot act.
    pending: BTreeSet<String>,
    /// Those that came up while a session is running, which is about something else.
    later: BTreeSet<String>,
    /// The time at which it looks at the others.
    looks: PlannerLooks,
}

impl Default for PlannerState {
    fn default() -> Self {
        Self { pending: BTreeSet::new(), later: BTreeSet::new(), looks: PlannerLooks::Now }
    }
}

impl PlannerState {
    pub(super) fn new(state: &State, seen: &Observations, now: Timestamp) -> Self {
        let planners: Vec<(AgentId, &AgentRecord)> =
            seen.presence(&state.board, now).of(Role::Planner).collect();
        let is_held =
            |(id, entry): &(AgentId, &AgentRecord)| held_program(state, *id, entry, seen, now).is_some();
        let decides = |(_, entry): &(AgentId, &AgentRecord)| {
            entry.status.is_in_session() && decided_since(state, entry, now).is_none()
        };
        let looks = match () {
            () if planners.iter().any(decides) => PlannerLooks::Now,
            () if seen.stop_files != StopFileTimes::default() => PlannerLooks::AfterResume,
            () if planners.iter().any(|(_, entry)| entry.status.is_in_session()) => PlannerLooks::Next,
            () if planners.iter().all(is_held) => PlannerLooks::AfterHold,
            () => PlannerLooks::Now,
        };
        let pending = match !planners.is_empty() && !planner_needs_human(state, now) {
            true => undecided(state, now),
            false => Vec::new(),
        };
        let in_session = planners.iter().find(|(_, entry)| entry.status.is_in_session());
        let session = in_session.and_then(|(_, entry)| entry.session.as_ref());
        let is_later = |trigger: &Trigger| session.is_some_and(|session| is_newer(state, trigger, session));
        let (later, now): (Vec<Trigger>, Vec<Trigger>) = pending.into_iter().partition(is_later);
        let subjects = |triggers: Vec<Trigger>| -> BTreeSet<String> {
            triggers.into_iter().map(|trigger| trigger.subject).collect()
        };
        let (later, now) = (subjects(later), subjects(now));
        Self { pending: &now | &later, later: &later - &now, looks }
    }

    pub(super) fn looks_at(&self, subject: &AlarmSubject) -> PlannerLooks {
        let is_later = self.looks == PlannerLooks::Now && self.later.contains(&subject.to_string());
        if is_later { PlannerLooks::Next } else { self.looks }
    }

    /// True if a blocked task waits for the human: the planner has left it, cannot act, or is not running.
    pub(super) fn leaves_to_human(&self, subject: &AlarmSubject) -> bool {
        !self.pending.contains(&subject.to_string())
    }
}
