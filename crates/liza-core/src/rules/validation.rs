//! The commands that validate a task, and the meaning of their last result.

use crate::model::{
    Board, Config, Sha, TaskId, TaskRecord, TestFailure, Validation, ValidationCommand, ValidationKind,
    ValidationResult,
};

use super::judging_settings::is_of_today;

/// The most commands of one validation: so many fit into its statement.
pub const MAX_COMMANDS: usize = 30;

/// The commands that validate this task: the project's, then its own, each once.
pub fn commands(config: &Config, record: &TaskRecord) -> Vec<ValidationCommand> {
    let keeps = config.validation.iter().map(|line| (line, ValidationKind::Keeps));
    let shows = record.validation.iter().flatten().map(|line| (line, ValidationKind::Shows));
    let mut commands: Vec<ValidationCommand> = Vec::new();
    for (line, kind) in keeps.chain(shows) {
        if !line.trim().is_empty() && !commands.iter().any(|command| command.line == *line) {
            commands.push(ValidationCommand { line: line.clone(), kind });
        }
    }
    commands
}

/// The last result, if it is of this commit and of today's commands.
pub fn result_for<'r>(config: &Config, record: &'r TaskRecord, commit: &Sha) -> Option<&'r Validation> {
    let result = record.validated.as_ref()?;
    let lines = commands(config, record).into_iter().map(|command| command.line);
    (result.commit == *commit && lines.eq(result.commands.iter().cloned())).then_some(result)
}

/// True if a review may begin: there are no commands, or they passed on this commit under these protected files.
pub fn is_validated(config: &Config, record: &TaskRecord, commit: &Sha, gate: Option<&str>) -> bool {
    let passed = |result: &Validation| {
        result.result == ValidationResult::Green && gate.is_none_or(|gate| gate == result.gate)
    };
    commands(config, record).is_empty() || result_for(config, record, commit).is_some_and(passed)
}

/// The result that keeps a submitted task from its review: its command fails without the task too.
pub fn held_validation<'b>(board: &'b Board, task: &TaskId) -> Option<(&'b Validation, &'b TestFailure)> {
    let record = board.body(task).ok()?.record();
    let commit = record.review_commit.as_ref().filter(|_| is_submitted(record))?;
    let result = result_for(board.config.ready()?, record, commit)?;
    let is_held = result.result == ValidationResult::Held
        && result.head == board.goal.ready()?.integration_head
        && is_of_today(&result.settings, board.config.ready()?);
    Some((result, result.failure.as_ref().filter(|_| is_held)?))
}

fn is_submitted(record: &TaskRecord) -> bool {
    record.status == Some(crate::model::Status::ReadyForReview)
}
