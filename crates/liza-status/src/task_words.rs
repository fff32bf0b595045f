//! The words of a task's page and history for a person. Files and JSON keep the names of the protocol.

use crate::command_line::{CommandLine, liza};
use liza_core::model::{Board, Fields, Status, TaskId, TaskRecord, Validation, ValidationResult, Value};

pub fn event_name(event: &str) -> String {
    let known = match event {
        "finalized" => "ready",
        "pre_execution_checkpoint" => "pre-check",
        "ready_for_review" => "submitted",
        "reclaimed_after_rejection" => "continued",
        "reassigned_after_rejection" | "reclaimed_after_expiry" => "taken over",
        "claimed_for_integration_fix" => "merge fix begun",
        "integration_failed" => "merge failed",
        "merge_held" => "merge waits",
        "gate_accepted" => "gate accepted",
        "superseded" => "replaced",
        other => return plain(other),
    };
    known.to_owned()
}

/// The last validation of a task in one line; after a failure with its last lines.
pub fn validation_words(validation: &Validation) -> String {
    let commit = validation.commit.short();
    let command = validation.command.as_deref().unwrap_or_default();
    let lines: Vec<&str> = match &validation.failure {
        Some(failure) => failure.last_lines.iter().map(String::as_str).collect(),
        None => Vec::new(),
    };
    let what = validation.failure.as_ref().map(|failure| failure.what.as_str()).unwrap_or_default();
    let words = match validation.result {
        ValidationResult::Green if validation.flaky.is_empty() => format!("passed on {commit}"),
        ValidationResult::Green => {
            format!("passed on {commit}, at the second try: {}", validation.flaky.join("; "))
        }
        ValidationResult::Red => format!("{command} {what}, on {commit}"),
        ValidationResult::Held => format!("{command} {what}, on {commit}; its change is not blamed for it"),
    };
    [&[words.as_str()], lines.as_slice()].concat().join("\n")
}

/// The facts of an event or an anomaly that are worth showing, with their names.
pub fn facts(fields: &Fields) -> impl Iterator<Item = (String, &Value)> {
    let is_nothing =
        |key: &str, value: &Value| value.is_blank() || (key == "drift_commits" && value.to_string() == "0");
    let said = fields.iter().filter(move |(key, value)| !is_nothing(key, value));
    said.map(|(key, value)| (fact_name(key), value))
}

fn fact_name(key: &str) -> String {
    let known = match key {
        "iteration" => "attempt",
        "was" => "it was blocked",
        "assessment" => "decision",
        "drift_commits" => "commits merged since its start",
        "spec_ref" => "specification",
        "error_pattern" => "error",
        "blocker_service" => "service",
        "protocol_section" => "section",
        "debt_created" => "creates debt",
        other => return plain(other),
    };
    known.to_owned()
}

/// The report of an agent, as the object of a sentence.
pub fn anomaly_name(kind: &str) -> String {
    let known = match kind {
        "retry_loop" => "a retry loop",
        "trade_off" => "a trade-off",
        "external_blocker" => "an external blocker",
        "assumption_violated" => "a wrong assumption",
        "system_ambiguity" => "an unclear rule of the protocol",
        "spec_ambiguity" => "an unclear specification",
        "scope_deviation" => "a change outside of its scope",
        "workaround" => "a workaround",
        "debt_created" => "technical debt",
        "spec_changed" => "a changed specification",
        "hypothesis_exhaustion" => "that it has no hypothesis left",
        "spec_gap" => "a gap in the specification",
        "review_deadlock" => "a review that cannot end",
        other => return plain(other),
    };
    known.to_owned()
}

/// A name of the protocol without its underscores.
pub(super) fn plain(name: &str) -> String {
    name.replace('_', " ")
}

/// The command that removes dead dependencies, and keeps all others.
pub(crate) fn without_dead(board: &Board, id: &TaskId, record: &TaskRecord) -> CommandLine {
    let lives =
        |task: &&TaskId| !matches!(board.status(task), None | Some(Status::Abandoned | Status::Superseded));
    let rest: Vec<&str> =
        record.depends_on.iter().flatten().filter(lives).map(|task| task.as_str()).collect();
    liza!("edit-task", id, "--depends", rest.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-03
    #[test]
    fn names_of_the_protocol_become_words() {
        let names = ["pre_execution_checkpoint", "session_ended", "merged"].map(event_name);
        assert_eq!(names, ["pre-check", "session ended", "merged"]);
        let some = |key: &str, value: &str| (key.to_owned(), Value::from(value));
        let fields = [some("spec_ref", "a.md"), some("drift_commits", "0"), some("empty", "")];
        let fields: Fields = fields.into_iter().collect();
        let said: Vec<String> = facts(&fields).map(|(key, value)| format!("{key}: {value}")).collect();
        assert_eq!(said, ["specification: a.md"]);
        assert_eq!(anomaly_name("spec_gap"), "a gap in the specification");
        assert_eq!(anomaly_name("own_kind"), "own kind");
    }
}
