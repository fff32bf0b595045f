//! Agent programs that cannot be used now, and the agents that wait for them.

use std::collections::BTreeSet;

use super::Moment;
use serde::Serialize;

use liza_core::model::{AgentId, AgentRecord, FaultKind, Role, Seconds, StopFileTimes};
use liza_core::rules::clients::waits_for_human;
use liza_core::rules::sessions::is_in_session;
use liza_core::supervise::needs_session;

/// An agent program that an agent needs and that cannot be used now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldView {
    pub client: String,
    pub kind: FaultKind,
    /// The time until the next try; `None` if only the human lets it continue.
    pub again_in: Option<Seconds>,
}

impl HeldView {
    /// The reason and the time of the next try: `codex overloaded, again in 1m`.
    pub fn text(&self) -> String {
        format!("{}, {}", self.reason(), self.again())
    }

    pub fn reason(&self) -> String {
        let what = match self.kind {
            FaultKind::Auth => "has no valid login",
            FaultKind::Quota => "at its usage limit",
            FaultKind::Overloaded => "overloaded",
            FaultKind::ContextFull
            | FaultKind::PermissionDenied
            | FaultKind::Refused
            | FaultKind::Crashed => "failed",
        };
        format!("{} {what}", self.client)
    }

    pub fn again(&self) -> String {
        match self.again_in {
            None => "waits for you".to_owned(),
            Some(Seconds(0)) => "again now".to_owned(),
            Some(left) => format!("again in {left}"),
        }
    }
}

/// The held program for which an agent waits that has work, but no session.
pub(crate) fn held_program(at: Moment<'_>, id: AgentId, entry: &AgentRecord) -> Option<HeldView> {
    let clients = &at.sprint()?.clients;
    let mut held = clients.iter().filter(|(_, client)| client.hold.is_some()).map(|(name, _)| name);
    let first = held.next()?;
    if is_in_session(at.board(), id, entry) || at.seen.stop_files != StopFileTimes::default() {
        return None;
    }
    let client = entry.client.as_ref().or_else(|| match used_clients(at).as_slice() {
        // A team that was just started: with another program, a session would be running.
        [] => Some(first).filter(|_| held.next().is_none()),
        [only] => Some(only),
        _ => None,
    })?;
    let hold = clients.get(client)?.hold.as_ref()?;
    let again_in = hold.until.map(|until| until.since(at.now));
    let held = HeldView { client: client.clone(), kind: hold.kind, again_in };
    needs_session(at.state, id, at.seen.found_merges(), at.now).then_some(held)
}

/// The roles of which an agent waits for its program, and no other one can work.
pub(crate) fn held_roles(at: Moment<'_>) -> Vec<Role> {
    let waits = |id: AgentId, entry: &AgentRecord| held_program(at, id, entry).is_some();
    let may_work = |id: AgentId, entry: &AgentRecord| {
        is_in_session(at.board(), id, entry)
            || (!waits(id, entry) && needs_session(at.state, id, at.seen.found_merges(), at.now))
    };
    let is_held = |role: &Role| {
        at.here().of(*role).any(|(id, entry)| waits(id, entry))
            && !at.here().of(*role).any(|(id, entry)| may_work(id, entry))
    };
    Role::ALL.into_iter().filter(is_held).collect()
}

/// The running sessions after which a team ends by itself: an agent has work and no program, and all programs
/// of the team wait for the human. 0 if the team does not end this way.
pub(crate) fn sessions_before_end(at: Moment<'_>) -> usize {
    let Some(sprint) = at.sprint() else { return 0 };
    let waits = |name: &String| sprint.clients.get(name).is_some_and(waits_for_human);
    let is_tried_again =
        sprint.clients.values().any(|client| client.hold.is_some() && !waits_for_human(client));
    let team = || at.here().agents();
    let used = used_clients(at);
    let ends = !is_tried_again
        && !used.is_empty()
        && used.into_iter().all(waits)
        && team().any(|(id, entry)| held_program(at, id, entry).is_some());
    if ends { team().filter(|(id, entry)| is_in_session(at.board(), *id, entry)).count() } else { 0 }
}

/// The programs that the agents of the team have used since they were started.
fn used_clients(at: Moment<'_>) -> Vec<&String> {
    let live = at.board().agents.entries().filter(|(_, entry)| entry.is_live(at.now));
    let used: BTreeSet<&String> = live.filter_map(|(_, entry)| entry.client.as_ref()).collect();
    used.into_iter().collect()
}
