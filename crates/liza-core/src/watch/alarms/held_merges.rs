//! Merges that wait because the integration test fails without them too.

use crate::model::{State, TestFailure};
use crate::rules::claimable::held_merge;
use crate::text::one_line;

use super::{Alarm, AlarmKind};

/// How long the line that an alarm quotes may be.
const QUOTED: usize = 120;

/// The integration test is broken on the integration branch itself.
pub(super) fn alarm(state: &State) -> Option<Alarm> {
    let (test, failure) = state.board.goal.ready()?.failing_head()?;
    let held = state.board.summaries().filter(|summary| held_merge(&state.board, summary).is_some());
    let names: Vec<&str> = held.map(|summary| summary.id.as_str()).collect();
    let text = format!(
        "the {} without the change of any task; waiting: {}. Correct the test on your branch, then: liza sync; or \
         correct what it needs and test again. Output: {}{}",
        failure.what,
        names.join(", "),
        failure.output,
        quoted(failure)
    );
    let alarm = Alarm::critical(AlarmKind::IntegrationTestBroken, test.head.as_str(), text);
    (!names.is_empty()).then(|| alarm.since(test.time))
}

/// The first line that names an error, else the last one: many programs end with advice.
fn quoted(failure: &TestFailure) -> String {
    let names_error = |line: &&String| line.to_lowercase().contains("error");
    let line = failure.last_lines.iter().find(names_error).or(failure.last_lines.last());
    line.map(|line| format!(". It printed: {}", one_line(line, QUOTED))).unwrap_or_default()
}
