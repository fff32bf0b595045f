//! Matters that the planner looks at by itself: it may be faster than the human.

use std::collections::BTreeSet;

use crate::alarms::Moment;
use serde::Serializer;

use crate::alarms::held::held_program;
use crate::forecast::{Behind, Next, Retry, What};
use liza_core::model::{AgentId, AgentRecord, Role, StopFileTimes};
use liza_core::rules::sessions::{decided_since, is_newer, undecided};
use liza_core::rules::triggers::{Trigger, TriggerKind};
use liza_core::supervise::planner_needs_human;

#[allow(clippy::ref_option, reason = "serde passes a reference")]
pub(super) fn is_some<S: Serializer>(looks: &Option<Next>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(looks.is_some())
}

#[derive(Default)]
pub(super) struct PlannerState {
    /// The subjects of triggers that it has not looked at yet; empty if it is not running or cannot act.
    pending: BTreeSet<String>,
    /// Those that came up while a session is running, which is about something else.
    later: BTreeSet<String>,
    /// The obstacle before it looks at the others.
    behind: Option<Behind>,
}

impl PlannerState {
    pub(super) fn new(at: Moment<'_>) -> Self {
        let Moment { state, seen, now } = at;
        let planners: Vec<(AgentId, &AgentRecord)> = at.here().of(Role::Planner).collect();
        let is_held = |(id, entry): &(AgentId, &AgentRecord)| held_program(at, *id, entry).is_some();
        let mut in_session =
            planners.iter().map(|(_, entry)| *entry).filter(|entry| entry.status.is_in_session());
        let behind = match () {
            () if in_session.clone().any(|entry| decided_since(state, entry, now).is_none()) => None,
            () if seen.stop_files != StopFileTimes::default() => Some(Behind::Resume),
            // The session has decided about other things, and has not ended yet.
            () if in_session.clone().next().is_some() => Some(Behind::OtherDecisions),
            () if planners.iter().all(is_held) => Some(Behind::Programs),
            () => {
                let pauses = planners.iter().map(|(id, entry)| Retry::of(at, *id, entry));
                let pauses: Option<Vec<Retry>> = pauses.collect();
                pauses.and_then(|all| all.into_iter().min_by_key(|retry| retry.again_in)).map(Behind::Pause)
            }
        };
        let pending = match !planners.is_empty() && !planner_needs_human(state, now) {
            true => undecided(state, now),
            false => Vec::new(),
        };
        let session = in_session.next().and_then(|entry| entry.session.as_ref());
        let is_later = |trigger: &Trigger| session.is_some_and(|session| is_newer(state, trigger, session));
        let (later, now): (Vec<Trigger>, Vec<Trigger>) = pending.into_iter().partition(is_later);
        // The session knows another matter of the task, but not that it is blocked, or blocked again.
        let blocked = subjects(later.iter().filter(|trigger| is_about_block(trigger)));
        let (later, now) = (subjects(later.iter()), subjects(now.iter()));
        Self { pending: &now | &later, later: &(&later - &now) | &blocked, behind }
    }

    /// The step in which the planner looks at it.
    pub(super) fn looks_at(&self, subject: &str) -> Next {
        let later = self.later.contains(subject).then_some(Behind::OtherDecisions);
        let behind = self.behind.clone().or(later).into_iter().collect();
        Next { behind, ..Next::role(Role::Planner, What::Look) }
    }

    /// True if a blocked task waits for the human: the planner has left it, cannot act, or is not running.
    pub(super) fn leaves_to_human(&self, subject: &str) -> bool {
        !self.pending.contains(subject)
    }
}

fn subjects<'t>(triggers: impl Iterator<Item = &'t Trigger>) -> BTreeSet<String> {
    triggers.map(|trigger| trigger.subject.clone()).collect()
}

fn is_about_block(trigger: &Trigger) -> bool {
    matches!(trigger.kind, TriggerKind::BlockedTasks | TriggerKind::HypothesisExhausted)
}
