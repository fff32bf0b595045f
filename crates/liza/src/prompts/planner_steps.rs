//! The planner's instructions for each trigger.

use liza_core::rules::triggers::{Trigger, TriggerKind};

/// Which instructions are needed.
pub(super) struct Kinds {
    kinds: Vec<TriggerKind>,
    deadlock: bool,
}

impl Kinds {
    /// The kinds of these triggers. A deadlocked task is also a blocked one.
    pub(super) fn of(triggers: &[Trigger], deadlock: bool) -> Self {
        let mut kinds: Vec<TriggerKind> = triggers.iter().map(|trigger| trigger.kind).collect();
        kinds.sort();
        kinds.dedup();
        Self { kinds, deadlock }
    }
}

/// The steps: one for each trigger, then how to write tasks and how to end.
pub(super) fn steps(liza: &str, wake: &Kinds) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for kind in &wake.kinds {
        steps.push(match kind {
            TriggerKind::InitialPlanning => initial_planning(liza),
            TriggerKind::HumanDecision => human_decision(liza),
            TriggerKind::QuestionAnswered => question_answered(liza),
            TriggerKind::HypothesisExhausted => hypothesis_exhausted(liza),
            TriggerKind::BlockedTasks => blocked_tasks(liza),
            TriggerKind::IntegrationFailed => integration_failed(liza),
            TriggerKind::ImmediateDiscovery => immediate_discovery(liza),
            TriggerKind::DeadDependency => dead_dependency(liza),
            TriggerKind::SprintCompleted => sprint_completed(liza),
        });
        if *kind == TriggerKind::BlockedTasks && wake.deadlock {
            steps.push(review_deadlock(liza));
        }
    }
    if steps.is_empty() {
        steps.push(
            "Nothing waits for a decision. Review the plan; if it is sound, change nothing.".to_owned(),
        );
    }
    steps.push(writing_tasks(liza));
    steps.push(missing_specs(liza));
    steps.push(format!(
        "Review the open deferred discoveries: what the goal needs becomes a task ({liza} convert-discovery DISC TASK); leave \
         the rest."
    ));
    steps.push(format!("State how the plan now relates to the goal: {liza} align --summary \"...\""));
    steps.push(
        "Stop with exit code 42 (0 is accepted). Coders continue from here; you are woken when needed."
            .to_owned(),
    );
    steps
}

fn initial_planning(liza: &str) -> String {
    format!(
        "INITIAL_PLANNING: read the VISION and every spec that it names, then the code as far as you need it. Split the goal \
         into tasks that one coder can finish and one reviewer can judge in one session; make them independent if possible. \
         Add all as DRAFT, check the whole plan against the goal, then release it at once: {liza} finalize --all"
    )
}

fn human_decision(liza: &str) -> String {
    format!(
        "HUMAN_DECISION: the human has decided that the plan has to change. Read the decision, the notes and the changed specs. \
         Change every open task that is affected: {liza} edit-task, {liza} supersede-task or {liza} abandon-task; add what is \
         missing. If no task is affected, record that: {liza} align --summary \"...\""
    )
}

fn question_answered(liza: &str) -> String {
    format!(
        "QUESTION_ANSWERED: the human has answered an earlier question. Use the answer now: finish the plan, or unblock or \
         change the task that waited for it. If nothing changes, record that: {liza} align --summary \"...\""
    )
}

fn blocked_tasks(liza: &str) -> String {
    format!(
        "BLOCKED_TASKS: take them in the order given. Read the questions, what was tried, the spec and the work so far; find \
         the root cause, then choose for each task:\n\
         - the answer is in the specs or in a human note: {liza} unblock-task TASK --same-coder --assessment \"the \
         answer\" (without --same-coder another coder starts again; with --keep-worktree another coder continues the work)\n\
         - too large, unclear or badly split: add its replacements as DRAFT, then {liza} supersede-task TASK --by NEW-1,NEW-2 \
         --reason \"wrong granularity | ambiguity | missing dependency | ...\" --root-cause \"one sentence\"\n\
         - not worth doing: {liza} abandon-task TASK --reason \"...\"\n\
         - only the human can answer: leave it BLOCKED and log a spec_gap"
    )
}

fn review_deadlock(liza: &str) -> String {
    format!(
        "REVIEW_DEADLOCK: coder and reviewer reached the limit of review cycles. Read all rejections and the work, decide \
         which case this is, and record it (the command logs the review_deadlock anomaly):\n\
         - the coder does not address the feedback: {liza} unblock-task TASK --keep-worktree --reset-cycles --assessment \"...\"\n\
         - the criteria are unclear or change: the spec must be clarified first (if it is silent: a spec_gap for the human); \
         then {liza} unblock-task TASK --same-coder --reset-cycles --assessment \"...\"\n\
         - a real disagreement, or a badly framed task: supersede it with tasks that have clearer constraints\n\
         - no way forward: {liza} abandon-task TASK --reason \"...\"\n\
         Work is discarded only by abandoning or superseding."
    )
}

fn hypothesis_exhausted(liza: &str) -> String {
    format!(
        "HYPOTHESIS_EXHAUSTED: two coders failed, so the task is probably framed wrongly; it cannot be assigned again. Find \
         the assumption that both shared. Then add replacements that do not need it and {liza} supersede-task TASK --by \
         NEW-1,NEW-2 --reason \"...\" --root-cause \"the wrong assumption\", or {liza} abandon-task TASK --reason \"...\". The \
         command logs the hypothesis_exhaustion anomaly."
    )
}

fn integration_failed(liza: &str) -> String {
    format!(
        "INTEGRATION_FAILED: any coder may claim the fix; you are woken because no coder has, or because it failed again. Failed \
         once, and the coders are only busy: change nothing. Failed twice: the change and the integration branch diverge. Find \
         out why, add a replacement that starts from the current integration branch, and {liza} supersede-task TASK \
         --by NEW --reason \"...\" --root-cause \"...\". Make tasks that change the same code depend on each other: {liza} \
         edit-task OTHER --depends NEW"
    )
}

fn immediate_discovery(liza: &str) -> String {
    format!(
        "IMMEDIATE_DISCOVERY: does it make running or planned work wrong? Then add a task for it (priority 1 or 2), make the \
         tasks that need it depend on it, and {liza} convert-discovery DISC TASK. Covered by an existing task: \
         convert-discovery to that one. Neither: leave it, and say why in your alignment summary."
    )
}

fn dead_dependency(liza: &str) -> String {
    format!(
        "DEAD_DEPENDENCY: the task depends on one that will never be merged. No longer needed: {liza} edit-task TASK --depends a,b \
         (all that remain; --depends \"\" for none). Still needed: add a task for it, then edit-task TASK --depends NEW. The task has no purpose now: \
         {liza} abandon-task TASK --reason \"...\". A REJECTED task cannot be edited: supersede or abandon it."
    )
}

fn sprint_completed(liza: &str) -> String {
    format!(
        "SPRINT_COMPLETED: judge the goal against the VISION's own criteria, by checking the integration branch, not task \
         statuses. Reached: {liza} goal complete. Not reached: add the missing tasks (the first one starts the next sprint) and \
         finalize them together. Treat abandoned tasks as gaps until you have shown otherwise."
    )
}

fn writing_tasks(liza: &str) -> String {
    format!(
        "Every task you add passes five gates: a spec section (--spec), a falsifiable DONE WHEN (--done), a scope by functional \
         area, not by files (--scope), its dependencies (--depends), and its own tests: no separate test tasks.\n{liza} add-task --id kebab-case-id --desc \"one or two sentences\" --spec specs/FILE.md#section --done \"...\" \
         --scope \"...\" --priority 1-5 --depends a,b --draft\nAdd as DRAFT first; finalize related tasks together: {liza} \
         finalize TASK ... (supersede-task finalizes its replacements itself)."
    )
}

fn missing_specs(liza: &str) -> String {
    format!(
        "A spec must exist before the task. If one is missing or silent, do not invent it: add no task that needs it, and report \
         it to the human: {liza} anomaly spec_gap --detail spec_ref=specs/FILE.md --detail question=\"...\""
    )
}
