//! Errors of the blackboard itself.

use crate::alarms::{Alarm, AlarmKind, AlarmLevel};
use liza_core::model::{State, Status};
use liza_core::rules::approvals::incomplete_approval;
use liza_core::rules::invariants::{Violation, count_violations};

use super::{NeedKind, NeedsYou};
use crate::command_line::liza;

/// All violations as one entry: `validate` lists them.
pub(super) fn invalid(violations: &[Violation], alarms: &[Alarm]) -> Option<NeedsYou> {
    let first = alarms.iter().find(|alarm| alarm.kind == AlarmKind::InvalidState)?;
    let text = match violations {
        [] | [_] => first.text.to_string(),
        more => format!("{}, the first: {}", count_violations(more), first.text),
    };
    Some(NeedsYou::new(
        NeedKind::Alarm(AlarmKind::InvalidState),
        AlarmLevel::Critical,
        text,
        liza!("validate"),
    ))
}

/// Open tasks that no command can work with.
pub(super) fn broken_records(state: &State) -> impl Iterator<Item = NeedsYou> {
    state.bodies().filter_map(|(id, body)| {
        let missing = body.status().err()?;
        // A person's verdict completes it.
        let is_judged = incomplete_approval(id, body).is_some();
        if is_judged || body.record().status.is_some_and(Status::is_terminal) {
            return None;
        }
        let text = format!("the record of {id} is broken: {}", missing.join("; "));
        let command = liza!("edit", id);
        Some(NeedsYou::new(NeedKind::BrokenRecord, AlarmLevel::Critical, text, command).about(Some(id)))
    })
}
