//! The planner's instructions for each trigger. Every command is on a line of its own and can be run as it is.

use liza_core::model::TaskId;
use liza_core::rules::triggers::{Trigger, TriggerKind};

use super::END_TURN;
use super::context::handoff_step;

pub(super) struct WakeReasons<'w> {
    /// The program, as a word of a command.
    pub liza: &'w str,
    /// The goal's specification, as a word of a command.
    pub spec: &'w str,
    pub triggers: &'w [Trigger],
    pub deadlocked: Option<&'w TaskId>,
    /// A task that the human has blocked, and whether it has a worktree.
    pub overridden: Option<(&'w TaskId, bool)>,
    /// There is a checkout of the integration branch.
    pub has_copy: bool,
}

impl WakeReasons<'_> {
    /// The kinds of the triggers, each with its first task, discovery or sprint.
    fn kinds(&self) -> Vec<(TriggerKind, &str)> {
        let mut kinds: Vec<(TriggerKind, &str)> = Vec::new();
        for trigger in self.triggers {
            if !kinds.iter().any(|(kind, _)| *kind == trigger.kind) {
                kinds.push((trigger.kind, &trigger.subject));
            }
        }
        kinds.sort_by_key(|(kind, _)| *kind);
        kinds
    }

    /// The commands that add a replacement and supersede the task with it.
    fn supersede(&self, task: &str) -> String {
        let (liza, add) = (self.liza, self.add_task(&format!("{task}-v2")));
        format!("{add}\n{liza} supersede-task {task} --by {task}-v2 --reason \"...\" --root-cause \"...\"")
    }

    fn add_task(&self, id: &str) -> String {
        let Self { liza, spec, .. } = self;
        format!(
            "{liza} add-task --id {id} --spec {spec} --scope \"...\" --done \"...\" --validate \"...\" --priority 3 --draft --desc - <<'END'\n\
             One or two sentences.\nEND"
        )
    }

    fn abandon(&self, task: &str) -> String {
        format!("{} abandon-task {task} --reason \"...\"", self.liza)
    }

    fn align(&self) -> String {
        format!("{} align --summary - <<'END'\nHow the plan now relates to the goal.\nEND", self.liza)
    }
}

/// The steps of each trigger, then those of every session.
pub(super) fn steps(wake: &WakeReasons<'_>) -> Vec<String> {
    let liza = wake.liza;
    let mut steps = Vec::new();
    for (kind, subject) in wake.kinds() {
        match kind {
            TriggerKind::InitialPlanning => steps.push(initial_planning()),
            TriggerKind::HumanDecision => steps.push(human_decision()),
            TriggerKind::QuestionAnswered => steps.push(question_answered()),
            TriggerKind::HypothesisExhausted => steps.push(hypothesis_exhausted(wake, subject)),
            TriggerKind::BlockedTasks => blocked_tasks(wake, subject, &mut steps),
            TriggerKind::IntegrationFailed => steps.push(integration_failed(wake, subject)),
            TriggerKind::ImmediateDiscovery => steps.push(immediate_discovery(wake, subject)),
            TriggerKind::NewDraft => steps.push(new_draft(wake, subject)),
            TriggerKind::DeadDependency => steps.push(dead_dependency(wake, subject)),
            TriggerKind::SprintCompleted => steps.push(sprint_completed(wake)),
        }
    }
    if steps.is_empty() {
        steps.push(
            "Nothing waits for a decision. Review the plan; if it is sound, change nothing.".to_owned(),
        );
    }
    steps.push(writing_tasks(wake));
    steps.push(format!(
        "A spec must exist before the task. If one is missing or silent, do not invent it: add no task that needs it, and ask \
         the human:\n{liza} anomaly spec_gap --detail spec_ref={} --detail question=\"...\"",
        wake.spec
    ));
    steps.push(
        "Review the open deferred discoveries: what the goal needs becomes a task (convert-discovery); leave the rest."
            .to_owned(),
    );
    steps.push(format!("State how the plan now relates to the goal:\n{}", wake.align()));
    steps.push(format!("Coders continue from here, and you are woken when needed: {END_TURN}."));
    let handoff = handoff_step("", &format!("{liza} handoff"));
    steps.push(format!(
        "{handoff}\nIt names no task: the notes are about the goal, for your own next session."
    ));
    steps
}

fn initial_planning() -> String {
    "INITIAL_PLANNING: read the VISION and every spec that it names, then the code as far as you need it. Split the goal \
     into tasks that one coder can finish and one reviewer can judge in one session; make them independent if possible. \
     Add all as DRAFT (next step), check the whole plan against the goal, then finalize all of it together."
        .to_owned()
}

fn human_decision() -> String {
    "HUMAN_DECISION: the human has decided that the plan has to change. Read the decision, the notes and the changed specs. \
     Change every open task that is affected (edit-task while it is DRAFT or UNCLAIMED, else supersede-task or abandon-task) \
     and add what is missing. If no task is affected, say so in your alignment summary."
        .to_owned()
}

fn question_answered() -> String {
    "QUESTION_ANSWERED: the human has answered an earlier question; see the trigger and the HUMAN NOTES. Use the answer now: \
     finish the plan, or unblock or change the task that waited for it. If nothing changes, say so in your alignment summary."
        .to_owned()
}

fn blocked_tasks(wake: &WakeReasons<'_>, task: &str, steps: &mut Vec<String>) {
    let liza = wake.liza;
    steps.push(format!(
        "BLOCKED_TASKS: take them in the order given. Read the questions, the earlier attempts, the spec and the work so far; \
         find the root cause, then choose for each task.\n\
         - The answer is in the specs or in a human note:\n\
         {liza} unblock-task {task} --same-coder --assessment \"the answer\"\n\
         (without --same-coder another coder starts again; with --keep-worktree another coder continues the work)\n\
         - Too large, unclear or badly split:\n{}\n\
         - Not worth doing:\n{}\n\
         - Only the human can answer: leave it BLOCKED and ask:\n\
         {liza} anomaly spec_gap --task {task} --detail spec_ref={} --detail question=\"...\"",
        wake.supersede(task),
        wake.abandon(task),
        wake.spec
    ));
    if let Some((task, has_work)) = wake.overridden {
        let keep = if has_work { " --keep-worktree" } else { "" };
        steps.push(format!(
            "HUMAN OVERRIDE: the human blocked {task} to have it planned again. Read the notes and the spec changes since, and \
             look for what the task now gets wrong. It is wrong: supersede or abandon it. It is still right:\n\
             {liza} unblock-task {task}{keep} --assessment \"what you checked\""
        ));
    }
    if let Some(task) = wake.deadlocked {
        steps.push(review_deadlock(wake, task));
    }
}

fn review_deadlock(wake: &WakeReasons<'_>, task: &TaskId) -> String {
    let liza = wake.liza;
    format!(
        "REVIEW_DEADLOCK: coder and reviewer reached the limit of review cycles. Read all rejections and the work, decide \
         which case this is, and record it (the command logs the review_deadlock anomaly).\n\
         - The coder does not address the feedback:\n\
         {liza} unblock-task {task} --keep-worktree --reset-cycles --assessment \"...\"\n\
         - The criteria are unclear or change: the spec must be clarified first (if it is silent: a spec_gap); then:\n\
         {liza} unblock-task {task} --same-coder --reset-cycles --assessment \"...\"\n\
         - A real disagreement, or a badly framed task: supersede it with tasks that have clearer constraints.\n\
         - No way forward: abandon it.\n\
         Work is discarded only by abandoning or superseding."
    )
}

fn hypothesis_exhausted(wake: &WakeReasons<'_>, task: &str) -> String {
    format!(
        "HYPOTHESIS_EXHAUSTED: two coders failed, so the task is probably framed wrongly; it cannot be assigned again. Read all \
         earlier attempts and find the assumption that both shared. Then add a replacement that does not need it (the command \
         logs the hypothesis_exhaustion anomaly; --root-cause is the wrong assumption):\n{}\nor:\n{}",
        wake.supersede(task),
        wake.abandon(task)
    )
}

fn integration_failed(wake: &WakeReasons<'_>, task: &str) -> String {
    format!(
        "INTEGRATION_FAILED: any coder may claim the fix; you are woken because no coder has, or because it failed again. Failed \
         once, and the coders are only busy: change nothing. Failed twice: the change and the integration branch diverge. Find \
         out why, and add a replacement that starts from the current integration branch:\n{}\nMake tasks that change the same \
         code depend on each other (edit-task --depends).",
        wake.supersede(task)
    )
}

fn immediate_discovery(wake: &WakeReasons<'_>, discovery: &str) -> String {
    format!(
        "IMMEDIATE_DISCOVERY: does it make running or planned work wrong? Then add a task for it (priority 1 or 2), make the \
         tasks that need it depend on it (edit-task --depends), and record it:\n{}\n{} convert-discovery {discovery} \
         fix-{discovery}\nCovered by an existing task: convert-discovery to that one. Neither: leave it, and say why in your \
         alignment summary.",
        wake.add_task(&format!("fix-{discovery}")),
        wake.liza
    )
}

fn dead_dependency(wake: &WakeReasons<'_>, task: &str) -> String {
    format!(
        "DEAD_DEPENDENCY: the task depends on one that will never be merged.\n\
         - No longer needed (--depends lists all that remain, with commas; \"\" for none):\n\
         {} edit-task {task} --depends \"\"\n\
         - Still needed: add a task for it, and depend on that one instead.\n\
         - The task has no purpose now:\n{}\n\
         A REJECTED task cannot be edited: supersede or abandon it.",
        wake.liza,
        wake.abandon(task)
    )
}

fn new_draft(wake: &WakeReasons<'_>, task: &str) -> String {
    let liza = wake.liza;
    format!(
        "NEW_DRAFT: this task is a DRAFT that no one works on: the human added it in one line, or an earlier session did not \
         finish it. Read the spec and the code as far as you need them, then complete it and make it claimable:\n\
         {liza} edit-task {task} --done \"...\" --scope \"...\"\n\
         {liza} finalize {task}\n\
         - Too large for one session: add tasks for its parts and supersede it.\n\
         - Unclear: leave it a DRAFT and ask (spec_gap, below)."
    )
}

fn sprint_completed(wake: &WakeReasons<'_>) -> String {
    let place = if wake.has_copy { "in the INTEGRATION COPY" } else { "on the integration branch" };
    format!(
        "SPRINT_COMPLETED: judge the goal against the VISION's own criteria, by running them {place}, not by task statuses. \
         Reached:\n{} goal complete\nNot reached: add the missing tasks (the first one starts the next sprint) and \
         finalize them together. Treat abandoned tasks as gaps until you have shown otherwise.",
        wake.liza
    )
}

fn writing_tasks(wake: &WakeReasons<'_>) -> String {
    format!(
        "Every task you add passes five gates: a spec section (--spec, with #section), a falsifiable DONE WHEN (--done), a scope \
         by functional area, not by files (--scope), its dependencies (--depends, task IDs with commas between), and its own \
         tests: no separate test tasks. --priority is 1 (highest) to 5; --impact high asks for two \
         reviewers, where a mistake would be costly. Add as DRAFT first, with a kebab-case ID:\n{}\nFinalize \
         related tasks together (supersede-task finalizes its replacements itself):\n{} finalize --all",
        wake.add_task("next-task"),
        wake.liza
    )
}
