//! Validation before a review: its result, the beginning of the session after it, and a new try.
//!
//! A reviewer claims first, without a charge. Only the holder of that claim records a result, and only a green
//! one of exactly this commit lets a session begin.

use serde::Serialize;

use crate::model::{
    AgentId, AgentStatus, Assignment, EventName, LogAction, Refusal, ReviewClaim, ReviewPhase, Role, Section,
    Sha, Task, TaskId, TaskStatus, Validation, ValidationResult,
};
use crate::rules::judging_settings::joined;
use crate::rules::session_budget::SessionBudget;
use crate::rules::validation::{commands, is_validated};
use crate::text::one_line;

use super::budget::{charge_session, refill};
use super::claim_review::{ReviewClaimed, begin_review};
use super::operation::{LoadScope, Rule, Stage};
use super::ownership::{not_your_review, registered};
use super::permission::{HUMAN, Rights, SUPERVISION};
use super::reply::TaskReply;
use super::submit_verdict::{end_review_handoff, reject};
use super::tx::Tx;

/// Records the result of a validation. Red sends the task back; held lets its review wait for the human.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordValidation {
    pub task: TaskId,
    pub reviewer: AgentId,
    pub validation: Validation,
}

/// Begins the session of a review whose validation has passed.
#[derive(Debug, Clone, PartialEq)]
pub struct BeginReview {
    pub task: TaskId,
    pub reviewer: AgentId,
    /// The digest of the protected files of the integration branch now.
    pub gate: String,
}

/// Lets the commands run again on the same commit.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryValidation {
    pub task: TaskId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValidationRecorded {
    #[serde(flatten)]
    pub task: TaskReply,
    pub result: ValidationResult,
}

impl Rule for RecordValidation {
    type Reply = ValidationRecorded;
    const VERB: &'static str = "claim-review (validated)";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<ValidationRecorded, Refusal> {
        let mut task = tx.task(&self.task)?;
        let (work, commit, _) = own_validation(tx, &task, self.reviewer)?;
        let validation = &self.validation;
        let wanted = commands(tx.config()?, &task.record).into_iter().map(|command| command.line);
        if validation.commit != commit || !wanted.eq(validation.commands.iter().cloned()) {
            return Err(Refusal::ValidationStale { task: self.task.clone() });
        }
        task.record.validated = Some(with_earlier(task.record.validated.take(), validation));
        let what = describe(validation);
        match validation.result {
            ValidationResult::Green => {
                tx.log_as("system", LogAction::Validated, Some(&self.task), &what);
            }
            ValidationResult::Red => send_back(tx, &mut task, work, commit, validation, &what)?,
            ValidationResult::Held => {
                release(tx, &mut task)?;
                tx.log_as("system", LogAction::Validated, Some(&self.task), &what);
            }
        }
        Ok(ValidationRecorded { task: tx.put(task), result: validation.result })
    }
}

impl Rule for BeginReview {
    type Reply = ReviewClaimed;
    const VERB: &'static str = "claim-review (begins)";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Starts;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<ReviewClaimed, Refusal> {
        let task = tx.task(&self.task)?;
        let (_, commit, claim) = own_validation(tx, &task, self.reviewer)?;
        if !is_validated(tx.config()?, &task.record, &commit, Some(&self.gate)) {
            return Err(Refusal::ValidationStale { task: self.task.clone() });
        }
        begin_review(tx, task, ReviewClaim { phase: None, ..claim })
    }
}

impl Rule for RetryValidation {
    type Reply = TaskReply;
    const VERB: &'static str = "retry-validation";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let mut task = tx.task(&self.task)?;
        match task.record.validated.take() {
            None => {
                return Err(Refusal::NothingToDo { what: "try again: no validation of this task has ended" });
            }
            // An approval rests on it.
            Some(passed) if passed.result == ValidationResult::Green => {
                return Err(Refusal::NothingToDo {
                    what: "try again: the last validation of this task passed",
                });
            }
            Some(failed) => task.record.validation_retried = Some(failed.commit),
        }
        refill(tx, &SessionBudget::of_task(&self.task, &task.record))?;
        tx.log(LogAction::Validated, Some(&self.task), "may be tried again on the same commit");
        Ok(tx.put(task))
    }
}

/// The claim of a review that is being validated, if it is this reviewer's.
fn own_validation(
    tx: &Tx<'_>,
    task: &Task,
    reviewer: AgentId,
) -> Result<(Assignment, Sha, ReviewClaim), Refusal> {
    registered(tx, reviewer, Role::CodeReviewer)?;
    let TaskStatus::ReadyForReview { work, commit, review } = &task.status else {
        return Err(tx.wrong_status(task, "READY_FOR_REVIEW"));
    };
    let is_own = |claim: &&ReviewClaim| claim.by == reviewer && claim.phase == Some(ReviewPhase::Validation);
    match review.as_ref().filter(is_own) {
        Some(claim) => Ok((work.clone(), commit.clone(), claim.clone())),
        None => Err(not_your_review(task, reviewer, review.as_ref())),
    }
}

/// A result with the settings of the same hold before it, so that machines with different ones do not try in turn.
fn with_earlier(earlier: Option<Validation>, new: &Validation) -> Validation {
    let same = earlier.filter(|earlier| {
        let is_held = [earlier.result, new.result] == [ValidationResult::Held; 2];
        is_held
            && (&earlier.commit, &earlier.commands, &earlier.head) == (&new.commit, &new.commands, &new.head)
    });
    let settings = same.map_or_else(|| new.settings.clone(), |same| joined(&same.settings, &new.settings));
    Validation { settings, ..new.clone() }
}

/// Ends the claim; another reviewer, or the same one, can take the review.
fn release(tx: &mut Tx<'_>, task: &mut Task) -> Result<(), Refusal> {
    let TaskStatus::ReadyForReview { review, .. } = &mut task.status else { return Ok(()) };
    let by = review.take().map(|review| review.by);
    tx.free_agents(by, &task.id, AgentStatus::Idle)
}

/// The task goes back to its coder. No review cycle is counted, but a session is, so that rework has an end.
fn send_back(
    tx: &mut Tx<'_>,
    task: &mut Task,
    work: Assignment,
    commit: Sha,
    validation: &Validation,
    what: &str,
) -> Result<(), Refusal> {
    release(tx, task)?;
    tx.stop_waiting(work.coder)?;
    let _ = charge_session(tx, &SessionBudget::of_task(&task.id, &task.record));
    let lines = validation.failure.iter().flat_map(|failure| &failure.last_lines);
    let lines: String = lines.map(|line| format!("\n  {line}")).collect();
    let reason = format!("validation_failed: {what}{lines}");
    let event = tx.system_event(EventName::Rejected).with("reason", "validation_failed");
    let event = event.with("commit", commit.as_str()).with_some("command", validation.command.clone());
    reject(task, work, commit, &reason, event);
    end_review_handoff(tx, task)?;
    tx.log_as("system", LogAction::Task(EventName::Rejected), Some(&task.id), &one_line(&reason, 200));
    Ok(())
}

/// The result in one line.
fn describe(validation: &Validation) -> String {
    let commit = validation.commit.short();
    let failed = || {
        let what = validation.failure.as_ref().map(|failure| failure.what.as_str()).unwrap_or_default();
        format!("`{}` {what}", one_line(validation.command.as_deref().unwrap_or_default(), 200))
    };
    match validation.result {
        ValidationResult::Green => {
            let number = validation.commands.len();
            let flaky = match validation.flaky.len() {
                0 => String::new(),
                flaky => format!(", {flaky} of them at the second try"),
            };
            format!("commit {commit} passes {}{flaky}", crate::text::count(number, "command"))
        }
        ValidationResult::Red => format!("{} at {commit}", failed()),
        ValidationResult::Held => {
            format!("commit {commit} waits: {}, and its change is not blamed for it", failed())
        }
    }
}
