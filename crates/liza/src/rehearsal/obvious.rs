//! What a session does that no scene is written for: the obvious right thing, so that any story ends well.

use liza_core::model::HUMAN_OVERRIDE;
use liza_core::rules::triggers::TriggerKind;

use super::prompt::{Assigned, Planning, Review, Waiting, Wake};
use super::stage::Stage;
use super::step::{AddTask, FileText, Issue, PreCheck, Prior, ReadDiff, Reject, Resolve, Supersede, Unblock};
use super::steps::words;
use super::{Done, code, plan as planner, review as reviewer};

/// As many tasks as a goal is cut into.
const TASKS_MAX: usize = 5;

/// Builds a small program and its test, or mends the merge; commits and submits.
pub(super) fn code(stage: &Stage, job: &Assigned) -> Done {
    if job.fix.is_some() {
        code::pre_check(
            stage,
            &intent("Merge the integration branch in, keep both sides", "git status", &[]),
        )?;
        code::merge(stage, &Resolve::default())?;
        return code::submit(stage);
    }
    let (source, test) = (format!("src/{}.sh", job.task), format!("tests/{}.sh", job.task));
    let check = format!("sh {test}");
    code::pre_check(stage, &intent(first_line(&job.description), &check, &[&source, &test]))?;
    let (what, done) = (first_line(&job.description), first_line(&job.done_when));
    let proof = format!("# {done}\ntest \"$(sh {source})\" = {}\n", job.task);
    code::write(stage, &FileText { path: test.into(), text: proof })?;
    let attempt = if job.rejected { format!("# Attempt {}.\n", job.iteration) } else { String::new() };
    let program = format!("# {what}\n{attempt}echo {}\n", job.task);
    code::write(stage, &FileText { path: source.into(), text: program })?;
    stage.check(&check)?;
    code::commit(stage, &format!("{}: {what}", job.task))?;
    code::submit(stage)
}

fn intent(what: &str, validation: &str, files: &[&str]) -> PreCheck {
    PreCheck {
        intent: if what.is_empty() { "Do what the task says".to_owned() } else { what.to_owned() },
        validation: validation.to_owned(),
        assumptions: Vec::new(),
        risks: Vec::new(),
        files: files.iter().map(|file| (*file).to_owned()).collect(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Reads the change; approves it if it has tests or needs none.
pub(super) fn review(stage: &Stage, _: &Review) -> Done {
    let files = reviewer::read_diff(stage, &ReadDiff::default())?;
    if reviewer::has_tests(&files) || reviewer::needs_no_tests(&files) {
        return reviewer::approve(stage);
    }
    let blocker = Issue {
        at: format!("{}:1", files.first().map_or("", String::as_str)),
        issue: "no test covers DONE WHEN".to_owned(),
        why: Some("nobody can see whether it is done".to_owned()),
        suggestion: Some("add a test that fails without the change".to_owned()),
    };
    let prior = Prior { still_present: vec!["tests are missing".to_owned()], ..Prior::default() };
    let overall = "The change may be right, but nothing shows it.".to_owned();
    reviewer::reject(stage, &Reject { blockers: vec![blocker], concerns: Vec::new(), overall, prior })
}

/// Decides what no scene has decided.
pub(super) fn plan(stage: &Stage, job: &Planning, wakes: &[&Wake]) -> Done {
    for wake in wakes {
        match wake.kind {
            TriggerKind::InitialPlanning => return initial_plan(stage, job),
            TriggerKind::HypothesisExhausted => replace(stage, job, &wake.subject)?,
            TriggerKind::BlockedTasks => blocked(stage, job, &wake.subject)?,
            TriggerKind::IntegrationFailed => integration_failed(stage, job, &wake.subject)?,
            TriggerKind::DeadDependency => {
                stage.liza(&words(["edit-task", &wake.subject, "--depends", ""]))?;
            }
            TriggerKind::ImmediateDiscovery => stage.say(&format!("{} can wait", wake.subject)),
            TriggerKind::SprintCompleted => return stage.liza(&words(["goal", "complete"])),
        }
    }
    if job.drafts {
        // Refused where a replacement was the only draft, which is then released already.
        stage.try_liza(&words(["finalize", "--all"]), "")?;
    }
    planner::align(stage, "Every open decision was looked at")
}

/// One task for each part of the goal, all released together.
fn initial_plan(stage: &Stage, job: &Planning) -> Done {
    let vision = planner::vision(stage)?;
    let file = vision.split('#').next().unwrap_or_default();
    if file.is_empty() || !stage.prompt.project.join(file).is_file() {
        let (spec, question) = (format!("spec_ref={vision}"), "question=what exactly is wanted?");
        return stage.liza(&words(["anomaly", "spec_gap", "--detail", &spec, "--detail", question]));
    }
    for (n, part) in parts(&job.goal).iter().enumerate() {
        let task = AddTask {
            id: name(part, n + 1),
            desc: (*part).to_owned(),
            spec: None,
            done: format!("A test shows: {part}"),
            scope: "This part of the goal, with its tests".to_owned(),
            priority: None,
            depends: Vec::new(),
        };
        add_unless_there(stage, &task)?;
    }
    planner::finalize(stage, &[])?;
    planner::align(stage, "The plan covers every part of the goal")
}

/// The parts of a goal: what commas, semicolons, full stops and the word "and" set apart.
fn parts(goal: &str) -> Vec<&str> {
    let pieces = goal.split(['\n', ',', ';', '.']).flat_map(|piece| piece.split(" and "));
    let parts: Vec<&str> = pieces.map(str::trim).filter(|piece| !piece.is_empty()).take(TASKS_MAX).collect();
    if parts.is_empty() { vec!["Reach the goal"] } else { parts }
}

/// A task ID made of the first words of a text, unique by its number.
fn name(text: &str, number: usize) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.take(3).collect();
    let name: String = words.join("-").chars().take(40).collect();
    match name.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => format!("{}-{number}", name.trim_end_matches('-')),
        false => format!("part-{number}"),
    }
}

/// An earlier session may have got this far: a task that is there already will do.
fn add_unless_there(stage: &Stage, task: &AddTask) -> Done {
    stage.try_liza(&planner::add_task_words(stage, task)?, "")?;
    Ok(())
}

/// What a person has blocked goes on; what a coder could not do is cut anew.
fn blocked(stage: &Stage, job: &Planning, task: &str) -> Done {
    if let Some(waiting) = about(job, task).filter(|waiting| waiting.reason == HUMAN_OVERRIDE) {
        return planner::unblock(
            stage,
            &Unblock {
                task: task.to_owned(),
                same_coder: false,
                keep_worktree: waiting.begun,
                reset_cycles: false,
                assessment: Some("The plan was looked at again and stands".to_owned()),
            },
        );
    }
    replace(stage, job, task)
}

/// Failed once: a coder will take it. Failed twice: begin anew from the integration branch as it is.
fn integration_failed(stage: &Stage, job: &Planning, task: &str) -> Done {
    if about(job, task).is_some_and(|waiting| waiting.failed_merges >= 2) {
        return replace(stage, job, task);
    }
    stage.say(&format!("{task} is left to the coders"));
    Ok(())
}

fn about<'j>(job: &'j Planning, task: &str) -> Option<&'j Waiting> {
    job.waiting.iter().find(|waiting| waiting.task == task)
}

fn replace(stage: &Stage, job: &Planning, task: &str) -> Done {
    let description = about(job, task).map(|waiting| first_line(&waiting.description)).unwrap_or_default();
    let new = successor(task);
    let replacement = AddTask {
        id: new.clone(),
        desc: format!("{description} (cut anew)"),
        spec: None,
        done: "A test shows the smallest part of it that is useful".to_owned(),
        scope: "Only what the vision says without doubt".to_owned(),
        priority: None,
        depends: Vec::new(),
    };
    add_unless_there(stage, &replacement)?;
    let (reason, root_cause) =
        ("ambiguity".to_owned(), "The task asked for more than the vision says".to_owned());
    planner::supersede(stage, &Supersede { task: task.to_owned(), by: vec![new], reason, root_cause })
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
    fn goals_become_names_and_names_successors() {
        assert_eq!(parts("Greet, then shout and whisper."), ["Greet", "then shout", "whisper"]);
        assert_eq!(parts(" ; "), ["Reach the goal"]);
        assert_eq!(name("Retry order calls at once", 1), "retry-order-calls-1");
        assert_eq!(name("für 3 Töne", 2), "f-r-3-2");
        assert_eq!(name("3 things", 3), "part-3");
        assert_eq!(["x", "x-v2", "x-vy"].map(successor), ["x-v2", "x-v3", "x-vy-v2"]);
    }
}
