//! What judges the work of a project besides its code reviewers, and how the validations of a sprint ended.

use liza_core::model::{Config, EventName, State, TaskRecord, Validation, ValidationResult};
use liza_core::text::count;

use super::tasks::SprintTask;

/// The most tasks that are named.
const NAMES: usize = 5;

/// The lines of the page. `is_tested` is true if merges run an integration test; `None` if that is not known here.
pub(crate) fn lines(state: &State, is_tested: Option<bool>, tasks: &[SprintTask<'_>]) -> Vec<String> {
    let judges = state.board.config.ready().and_then(|config| judges(config, is_tested, tasks));
    let ends = validations(tasks).map(|ends| format!("Last {ends}."));
    judges.into_iter().chain(ends).map(|line| format!("- {line}")).collect()
}

fn judges(config: &Config, is_tested: Option<bool>, tasks: &[SprintTask<'_>]) -> Option<String> {
    let commands = |record: &TaskRecord| record.validation.iter().flatten().next().is_some();
    let own = tasks.iter().filter(|task| task.record.is_some_and(commands)).count();
    let always = config.validation.len();
    let judges = [
        (always > 0).then(|| format!("{} before every review and at every merge", count(always, "command"))),
        (own > 0).then(|| format!("commands of their own for {}", count(own, "task"))),
        (is_tested == Some(true)).then(|| "the integration test at every merge".to_owned()),
        config.holdout.is_some().then(|| "acceptance tests that no session reads".to_owned()),
    ];
    let judges: Vec<String> = judges.into_iter().flatten().collect();
    match judges.is_empty() {
        true if is_tested == Some(false) => Some(
            "**Nothing but the code reviewer judges.** To run commands before every review and at every merge: \
             `liza config validation '[\"COMMAND\"]'`"
                .to_owned(),
        ),
        true => None,
        false => Some(format!("Besides the code reviewers: {}.", judges.join("; "))),
    }
}

/// The last result of each task in one line, with the names of those that did not pass; `None` if nothing was validated.
pub(crate) fn validations(tasks: &[SprintTask<'_>]) -> Option<String> {
    let results: Vec<(&SprintTask<'_>, &Validation)> =
        tasks.iter().filter_map(|task| Some((task, task.record?.validated.as_ref()?))).collect();
    let of = |result: ValidationResult| results.iter().filter(move |(_, last)| last.result == result);
    let named = |result: ValidationResult, word: &str| {
        let names: Vec<&str> = of(result).map(|(task, _)| task.id.as_str()).take(NAMES).collect();
        let more = of(result).count().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{} {word} ({}{more})", of(result).count(), names.join(", ")))
    };
    let passed = of(ValidationResult::Green).count();
    let flaky = of(ValidationResult::Green).filter(|(_, last)| !last.flaky.is_empty()).count();
    let flaky = if flaky > 0 { format!(" ({flaky} only at the second try)") } else { String::new() };
    let ends = [
        (passed > 0).then(|| format!("{passed} passed{flaky}")),
        named(ValidationResult::Red, "failed"),
        named(ValidationResult::Held, "held, no change is blamed"),
    ];
    let ends: Vec<String> = ends.into_iter().flatten().collect();
    let sent_back: usize = tasks.iter().map(sent_back).sum();
    let sent_back = match sent_back {
        0 => String::new(),
        more => format!("; {} came back without a review", count(more, "submission")),
    };
    (!ends.is_empty()).then(|| format!("validation of each task: {}{sent_back}", ends.join(", ")))
}

/// The submissions of a task that its commands sent back.
fn sent_back(task: &SprintTask<'_>) -> usize {
    let by_commands = |reason: String| reason == "validation_failed";
    task.events(EventName::Rejected).filter(|event| event.text("reason").is_some_and(by_commands)).count()
}
