//! Merges that wait because the integration test fails without them too.

use crate::model::{State, TestFailure};
use crate::rules::claimable::held_merge;
use crate::text::one_line;

use super::{Alarm, AlarmKind};

/// How many of the last lines an alarm quotes, and how long each may be.
const QUOTED: (usize, usize) = (3, 120);

/// The integration test is broken on the integration branch itself.
pub(super) fn alarm(state: &State) -> Option<Alarm> {
    let (test, failure) = state.board.goal.ready()?.failing_head()?;
    let held = state.board.summaries().filter(|summary| held_merge(&state.board, summary).is_some());
    let names: Vec<&str> = held.map(|summary| summary.id.as_str()).collect();
    let text = format!(
        "the {} without the change of any task; waiting: {}.{} Correct the test on your branch, then: liza sync; or \
         correct what it needs and test again. Output: {}",
        failure.what,
        names.join(", "),
        quoted(failure),
        failure.output
    );
    let alarm = Alarm::critical(AlarmKind::IntegrationTestBroken, test.head.as_str(), text);
    (!names.is_empty()).then(|| alarm.since(test.time))
}

fn quoted(failure: &TestFailure) -> String {
    let (number, length) = QUOTED;
    let first = failure.last_lines.len().saturating_sub(number);
    let lines: Vec<String> =
        failure.last_lines.iter().skip(first).map(|line| one_line(line, length)).collect();
    if lines.is_empty() { String::new() } else { format!(" It ended with: {}.", lines.join(" / ")) }
}
