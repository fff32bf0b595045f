//! The planner's steps.

use super::Done;
use super::stage::Stage;
use super::step::{Abandon, AddTask, Supersede, Unblock};
use super::steps::{option, words};

/// `liza add-task`, always as DRAFT.
pub(super) fn add_task(stage: &Stage, it: &AddTask) -> Done {
    stage.liza(&add_task_words(stage, it)?)
}

/// The words of `liza add-task`.
pub(super) fn add_task_words(stage: &Stage, it: &AddTask) -> Result<Vec<String>, super::RehearsalError> {
    let vision = vision(stage)?;
    let spec = it.spec.as_deref().unwrap_or(&vision);
    let mut arguments = words(["add-task", "--draft", "--id", &it.id, "--desc", &it.desc, "--spec", spec]);
    arguments.extend(words(["--done", &it.done, "--scope", &it.scope]));
    let priority = it.priority.map(|priority| priority.to_string());
    option(&mut arguments, "--priority", priority.as_deref());
    if !it.depends.is_empty() {
        option(&mut arguments, "--depends", Some(&it.depends.join(",")));
    }
    Ok(arguments)
}

/// The vision as `--spec` wants it: from the project's root.
pub(super) fn vision(stage: &Stage) -> Result<String, super::RehearsalError> {
    let vision = &stage.planning()?.vision;
    let vision = vision.strip_prefix(&stage.prompt.project).unwrap_or(vision);
    Ok(vision.to_string_lossy().into_owned())
}

/// `liza finalize`
pub(super) fn finalize(stage: &Stage, tasks: &[String]) -> Done {
    let all = words(["finalize", "--all"]);
    let named = || words(["finalize"]).into_iter().chain(tasks.iter().cloned()).collect();
    stage.liza(&if tasks.is_empty() { all } else { named() })
}

/// `liza supersede-task`
pub(super) fn supersede(stage: &Stage, it: &Supersede) -> Done {
    let by = it.by.join(",");
    let mut arguments = words(["supersede-task", &it.task, "--by", &by, "--reason", &it.reason]);
    arguments.extend(words(["--root-cause", &it.root_cause]));
    stage.liza(&arguments)
}

/// `liza unblock-task`
pub(super) fn unblock(stage: &Stage, it: &Unblock) -> Done {
    let mut arguments = words(["unblock-task", &it.task]);
    let flags = [
        ("--same-coder", it.same_coder),
        ("--keep-worktree", it.keep_worktree),
        ("--reset-cycles", it.reset_cycles),
    ];
    arguments.extend(flags.iter().filter(|(_, wanted)| *wanted).map(|(flag, _)| (*flag).to_owned()));
    option(&mut arguments, "--assessment", it.assessment.as_deref());
    stage.liza(&arguments)
}

/// `liza abandon-task`
pub(super) fn abandon(stage: &Stage, it: &Abandon) -> Done {
    stage.liza(&words(["abandon-task", &it.task, "--reason", &it.reason]))
}

/// `liza align`
pub(super) fn align(stage: &Stage, summary: &str) -> Done {
    stage.liza(&words(["align", "--summary", summary]))
}
