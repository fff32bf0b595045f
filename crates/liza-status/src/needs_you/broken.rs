//! Errors of the blackboard itself.

use crate::alarms::{Alarm, AlarmKind};
use liza_core::model::{State, Status};
use liza_core::rules::approvals::incomplete_approval;
use liza_core::rules::invariants::{Violation, count_violations};

/// All violations as one entry: `validate` lists them.
pub(super) fn invalid(violations: &[Violation], alarms: &[Alarm]) -> Option<Alarm> {
    let first = alarms.iter().find(|alarm| alarm.kind == AlarmKind::InvalidState)?;
    let text = match violations {
        [] | [_] => first.text.to_string(),
        more => format!("{}, the first: {}", count_violations(more), first.text),
    };
    Some(Alarm::new(AlarmKind::InvalidState, "", text))
}

/// Open tasks that no command can work with.
pub(super) fn broken_records(state: &State) -> impl Iterator<Item = Alarm> {
    state.bodies().filter_map(|(id, body)| {
        let missing = body.status().err()?;
        // A person's verdict completes it.
        let is_judged = incomplete_approval(id, body).is_some();
        if is_judged || body.record().status.is_some_and(Status::is_terminal) {
            return None;
        }
        let text = format!("the record of {id} is broken: {}", missing.join("; "));
        Some(Alarm::new(AlarmKind::BrokenRecord, id, text).about(id))
    })
}
