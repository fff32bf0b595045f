//! The planner: its steps, and its decisions if no scene fits.

use crate::arguments::Arguments;
use crate::error::{RehearsalError, StepResult};
use crate::playbook::{Abandon, AddTask, Supersede, Unblock};
use crate::prompt::{PendingTask, PlanningJob, Trigger};
use crate::protocol::{HUMAN_OVERRIDE, TriggerKind};
use crate::session::Session;

const MAX_TASKS: usize = 5;

/// `liza add-task`, always as DRAFT.
pub(crate) fn add_task(session: &Session, it: &AddTask) -> StepResult {
    session.liza(add_task_arguments(session, it)?)
}

fn add_task_arguments(session: &Session, it: &AddTask) -> Result<Arguments, RehearsalError> {
    let vision = vision(session)?;
    let spec = it.spec.as_deref().unwrap_or(&vision);
    let depends = it.depends.join(",");
    Ok(Arguments::new(["add-task", "--draft", "--id", &it.id, "--desc", &it.desc, "--spec", spec])
        .option("--done", Some(&it.done))
        .option("--scope", Some(&it.scope))
        .repeated("--validate", &it.validate)
        .option("--priority", it.priority.map(|priority| priority.to_string()).as_deref())
        .option("--depends", Some(depends.as_str()).filter(|depends| !depends.is_empty())))
}

/// Returns the vision's path from the project's root, as `--spec` takes it.
fn vision(session: &Session) -> Result<String, RehearsalError> {
    let vision = &session.planning_job()?.vision;
    let vision = vision.strip_prefix(&session.prompt.project).unwrap_or(vision);
    Ok(vision.to_string_lossy().into_owned())
}

/// `liza finalize` of the named tasks, or of all drafts if none is named.
pub(crate) fn finalize(session: &Session, tasks: &[String]) -> StepResult {
    let named = || Arguments::new(["finalize"]).words(tasks);
    session.liza(if tasks.is_empty() { finalize_all() } else { named() })
}

fn finalize_all() -> Arguments {
    Arguments::new(["finalize", "--all"])
}

pub(crate) fn supersede(session: &Session, it: &Supersede) -> StepResult {
    session.liza(
        Arguments::new(["supersede-task", &it.task, "--by", &it.by.join(",")])
            .option("--reason", Some(&it.reason))
            .option("--root-cause", Some(&it.root_cause)),
    )
}

pub(crate) fn unblock(session: &Session, it: &Unblock) -> StepResult {
    session.liza(
        Arguments::new(["unblock-task", &it.task])
            .flag("--same-coder", it.same_coder)
            .flag("--keep-worktree", it.keep_worktree)
            .flag("--reset-cycles", it.reset_cycles)
            .option("--assessment", it.assessment.as_deref()),
    )
}

pub(crate) fn abandon(session: &Session, it: &Abandon) -> StepResult {
    session.liza(Arguments::new(["abandon-task", &it.task, "--reason", &it.reason]))
}

pub(crate) fn align(session: &Session, summary: &str) -> StepResult {
    session.liza(Arguments::new(["align", "--summary", summary]))
}

/// Decides about the triggers that no scene fits.
pub(crate) fn play_default(session: &Session, job: &PlanningJob, triggers: &[&Trigger]) -> StepResult {
    let is_planning = triggers.iter().any(|trigger| trigger.kind == TriggerKind::InitialPlanning);
    for trigger in triggers {
        let subject = trigger.subject.as_str();
        match trigger.kind {
            TriggerKind::InitialPlanning => plan_goal(session, job)?,
            TriggerKind::HumanDecision => session.say("the plan already follows the decision"),
            TriggerKind::QuestionAnswered => use_answer(session, job, subject)?,
            TriggerKind::HypothesisExhausted => replace(session, job, subject)?,
            TriggerKind::BlockedTasks => decide_blocked(session, job, subject)?,
            TriggerKind::IntegrationFailed => decide_failed_merge(session, job, subject)?,
            TriggerKind::DeadDependency => {
                session.liza(Arguments::new(["edit-task", subject, "--depends", ""]))?;
            }
            TriggerKind::NewDraft => complete_draft(session, subject)?,
            TriggerKind::ImmediateDiscovery => session.say(&format!("{subject} can wait")),
            TriggerKind::SprintCompleted if is_planning => session.say("the new plan starts the next sprint"),
            TriggerKind::SprintCompleted => return session.liza(Arguments::new(["goal", "complete"])),
        }
    }
    if job.has_drafts {
        // Refused if a replacement was the only draft, since supersede-task has finalized it.
        session.try_liza(finalize_all(), "")?;
    }
    if is_planning {
        return Ok(());
    }
    align(session, "Every open decision is made")
}

/// Completes a task that the human has added in one line.
fn complete_draft(session: &Session, task: &str) -> StepResult {
    let (done, scope) = ("A test shows it", "This task, with its tests");
    session.liza(Arguments::new(["edit-task", task, "--done", done, "--scope", scope]))?;
    session.liza(Arguments::new(["finalize", task]))
}

/// Adds one task for each part of the goal and finalizes them together.
fn plan_goal(session: &Session, job: &PlanningJob) -> StepResult {
    let vision = vision(session)?;
    let file = vision.split('#').next().unwrap_or_default();
    if file.is_empty() || !session.prompt.project.join(file).is_file() {
        let (spec, question) = (format!("spec_ref={vision}"), "question=what exactly is wanted?");
        let arguments = Arguments::new(["anomaly", "spec_gap", "--detail", &spec, "--detail", question]);
        return session.liza(arguments);
    }
    for (n, part) in goal_parts(&job.goal).iter().enumerate() {
        let task = AddTask {
            id: task_id(part, n + 1),
            desc: (*part).to_owned(),
            spec: None,
            done: format!("A test shows: {part}"),
            scope: "This part of the goal, with its tests".to_owned(),
            priority: None,
            validate: Vec::new(),
            depends: Vec::new(),
        };
        add_if_missing(session, &task)?;
    }
    finalize(session, &[])?;
    align(session, "The plan covers every part of the goal")
}

/// Splits a goal at line breaks, commas, semicolons, full stops and the word "and".
fn goal_parts(goal: &str) -> Vec<&str> {
    let pieces = goal.split(['\n', ',', ';', '.']).flat_map(|piece| piece.split(" and "));
    let parts: Vec<&str> = pieces.map(str::trim).filter(|piece| !piece.is_empty()).take(MAX_TASKS).collect();
    if parts.is_empty() { vec!["Reach the goal"] } else { parts }
}

/// Makes a task ID of the first words of a text; the number makes it unique.
fn task_id(text: &str, number: usize) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.take(3).collect();
    let name: String = words.join("-").chars().take(40).collect();
    match name.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => format!("{}-{number}", name.trim_end_matches('-')),
        false => format!("part-{number}"),
    }
}

/// Adds a task; an earlier session may have added it already, so a refusal is no error.
fn add_if_missing(session: &Session, task: &AddTask) -> StepResult {
    session.try_liza(add_task_arguments(session, task)?, "")?;
    Ok(())
}

/// Unblocks a task that a person blocked; replaces one that a coder could not do.
fn decide_blocked(session: &Session, job: &PlanningJob, task: &str) -> StepResult {
    if let Some(pending) = find_pending(job, task).filter(|pending| pending.reason == HUMAN_OVERRIDE) {
        let it = Unblock {
            task: task.to_owned(),
            same_coder: false,
            keep_worktree: pending.has_work,
            reset_cycles: false,
            assessment: Some("The plan was checked and does not change".to_owned()),
        };
        return unblock(session, &it);
    }
    replace(session, job, task)
}

/// Gives a task that waited for the answer back to its coders.
fn use_answer(session: &Session, job: &PlanningJob, task: &str) -> StepResult {
    let Some(pending) = find_pending(job, task).filter(|pending| !pending.reason.is_empty()) else {
        session.say(&format!("the answer about {task} changes nothing"));
        return Ok(());
    };
    let it = Unblock {
        task: task.to_owned(),
        same_coder: false,
        keep_worktree: pending.has_work,
        reset_cycles: false,
        assessment: Some("The human has answered; see the notes".to_owned()),
    };
    unblock(session, &it)
}

/// Leaves the first failed merge of a task to the coders; after the second the task is replaced.
fn decide_failed_merge(session: &Session, job: &PlanningJob, task: &str) -> StepResult {
    if find_pending(job, task).is_some_and(|pending| pending.failed_merges >= 2) {
        return replace(session, job, task);
    }
    session.say(&format!("{task} is left to the coders"));
    Ok(())
}

fn find_pending<'j>(job: &'j PlanningJob, task: &str) -> Option<&'j PendingTask> {
    job.pending.iter().find(|pending| pending.task == task)
}

fn replace(session: &Session, job: &PlanningJob, task: &str) -> StepResult {
    let pending = find_pending(job, task);
    let description = pending.and_then(|pending| pending.description.lines().next()).unwrap_or_default();
    let new = successor(task);
    let replacement = AddTask {
        id: new.clone(),
        desc: format!("{description} (rescoped)"),
        spec: None,
        done: "A test shows the smallest useful part of it".to_owned(),
        scope: "Only what the vision states clearly".to_owned(),
        priority: None,
        validate: Vec::new(),
        depends: Vec::new(),
    };
    add_if_missing(session, &replacement)?;
    let (reason, root_cause) =
        ("ambiguity".to_owned(), "The task asked for more than the vision states".to_owned());
    supersede(session, &Supersede { task: task.to_owned(), by: vec![new], reason, root_cause })
}

/// `x` becomes `x-v2`, then `x-v3`.
fn successor(task: &str) -> String {
    let (stem, version) = match task.rsplit_once("-v").map(|(stem, number)| (stem, number.parse::<u32>())) {
        Some((stem, Ok(number))) => (stem, number),
        Some((_, Err(_))) | None => (task, 1),
    };
    format!("{stem}-v{}", version + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_become_task_ids_and_task_ids_have_successors() {
        assert_eq!(goal_parts("Greet, then shout and whisper."), ["Greet", "then shout", "whisper"]);
        assert_eq!(goal_parts(" ; "), ["Reach the goal"]);
        assert_eq!(task_id("Retry order calls at once", 1), "retry-order-calls-1");
        assert_eq!(task_id("für 3 Töne", 2), "f-r-3-2");
        assert_eq!(task_id("3 things", 3), "part-3");
        assert_eq!(["x", "x-v2", "x-vy"].map(successor), ["x-v2", "x-v3", "x-vy-v2"]);
    }
}
