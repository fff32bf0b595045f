//! Merges and reviews that wait for the human: a test fails without them too, or they change what judges them.

use liza_core::model::{EventName, State, TaskBody, TaskId, TaskRecord, TestFailure};
use liza_core::rules::claimable::{HeldMerge, held_merge};
use liza_core::rules::judging_settings::failing_head;
use liza_core::rules::validation::held_validation;
use liza_core::text::one_line;

use super::{Alarm, AlarmKind};
use crate::command_line::CommandLine;

/// The most files of a change that an alarm names.
const SHOWN_FILES: usize = 5;

/// The longest line that an alarm quotes.
const QUOTED: usize = 120;

/// The integration test is broken on the integration branch itself.
pub(super) fn alarm(state: &State) -> Option<Alarm> {
    let (test, failure) = failing_head(&state.board)?;
    let is_held = |hold| matches!(hold, Some(HeldMerge::HeadFails(_)));
    let held = state.board.summaries().filter(|summary| is_held(held_merge(&state.board, summary)));
    let names: Vec<&str> = held.map(|summary| summary.id.as_str()).collect();
    let text = format!(
        "the {} without the change of any task; waiting: {}. Correct the test on your branch, then: liza sync; or \
         correct what it needs and test again. Output: {}{}",
        failure.what,
        names.join(", "),
        failure.output,
        quoted(failure)
    );
    let alarm = Alarm::new(AlarmKind::IntegrationTestBroken, &test.head, text);
    (!names.is_empty()).then(|| alarm.since(test.time))
}

/// A task changes protected files; its merge waits for the human's word.
pub(super) fn gate_changed(state: &State, id: &TaskId, body: &TaskBody) -> Option<Alarm> {
    let hold = held_merge(&state.board, state.board.summary(id)?)?;
    let change = body.record().gate_change.as_ref().filter(|_| hold == HeldMerge::Gate)?;
    let since = body.record().last_event(EventName::MergeHeld).map(|event| event.time);
    let under_old = change.old_failure.as_ref().map_or_else(String::new, |failure| {
        let (what, output, quoted) = (&failure.what, &failure.output, quoted(failure));
        format!(". Under the gate of the integration branch the {what}; output: {output}{quoted}")
    });
    let text = format!(
        "{id} changes what judges it: {}. Look: liza diff {id}; send it back: liza submit-verdict {id} REJECTED \
         \"...\"{under_old}",
        shown(&change.files)
    );
    let accept = accept_gate(id, body.record());
    Some(Alarm::new(AlarmKind::GateChanged, id, text).about(id).since(since).answered(accept))
}

/// The command that accepts a task's change of the gate.
pub(crate) fn accept_gate(id: &TaskId, record: &TaskRecord) -> CommandLine {
    let old = record.gate_change.as_ref().and_then(|change| change.old_failure.as_ref());
    CommandLine::liza(["accept-gate", id.as_str()].into_iter().chain(old.map(|_| "--old-fails")))
}

/// A command that validates a task fails, and its change is not blamed for it: its review waits.
pub(super) fn validation_held(state: &State, id: &TaskId) -> Option<Alarm> {
    let (validation, failure) = held_validation(&state.board, id)?;
    let text = format!(
        "the review of {id} waits: `{}` {}; its change is not blamed for it. Correct the command (liza config \
         validation) or the branch (liza sync); or correct what it needs and try again. Output: {}{}",
        one_line(validation.command.as_deref().unwrap_or_default(), QUOTED),
        failure.what,
        failure.output,
        quoted(failure)
    );
    Some(Alarm::new(AlarmKind::ValidationHeld, id, text).about(id).since(validation.time))
}

/// The first files of a change, and the number of the others.
fn shown(files: &[String]) -> String {
    let (first, rest) = files.split_at(files.len().min(SHOWN_FILES));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    format!("{}{more}", first.join(", "))
}

/// The first line that names an error, else the last one: many programs end with advice.
fn quoted(failure: &TestFailure) -> String {
    let names_error = |line: &&String| line.to_lowercase().contains("error");
    let line = failure.last_lines.iter().find(names_error).or(failure.last_lines.last());
    line.map(|line| format!(". It printed: {}", one_line(line, QUOTED))).unwrap_or_default()
}
