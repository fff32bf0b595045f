//! What the planner has to do, for each thing that can wake it.

use liza_core::rules::triggers::{Trigger, TriggerKind};

/// Which instructions are needed.
pub(super) struct Kinds {
    kinds: Vec<TriggerKind>,
    deadlock: bool,
}

impl Kinds {
    /// Those of the triggers; a deadlock is part of what is blocked.
    pub(super) fn of(triggers: &[Trigger], deadlock: bool) -> Self {
        let mut kinds: Vec<TriggerKind> = triggers.iter().map(|trigger| trigger.kind).collect();
        kinds.sort();
        kinds.dedup();
        Self { kinds, deadlock }
    }
}

/// The steps: one for each trigger, how tasks are written, how to end.
pub(super) fn steps(liza: &str, wake: &Kinds) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for kind in &wake.kinds {
        steps.push(match kind {
            TriggerKind::InitialPlanning => initial_planning(liza),
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
            "Nothing waits for a decision. Look at the plan; if it is sound, change nothing.".to_owned(),
        );
    }
    steps.push(writing_tasks(liza));
    steps.push(missing_specs(liza));
    steps.push(format!(
        "Look at the open deferred discoveries: what the goal needs becomes a task ({liza} convert-discovery DISC TASK), the \
         rest stays where it is."
    ));
    steps.push(format!("Say how the plan stands to the goal now: {liza} align --summary \"...\""));
    steps.push(
        "Stop with exit code 42 (0 is accepted). Coders take over from here; you are woken when needed."
            .to_owned(),
    );
    steps
}

fn initial_planning(liza: &str) -> String {
    format!(
        "INITIAL_PLANNING: read the VISION and every spec that it names, then the code as far as you need it. Split the goal \
         into tasks that one coder can finish and one reviewer can judge in one sitting; make them independent where that is \
         possible. Write all as DRAFT, check the plan as a whole against the goal, then release it in one go: {liza} finalize \
         --all"
    )
}

fn blocked_tasks(liza: &str) -> String {
    format!(
        "BLOCKED_TASKS: take them in the order given. Read the questions, what was tried, the spec and the work so far; find \
         the root cause, then do one of these for each:\n\
         - the answer is in the specs or was given by a human note: {liza} unblock-task TASK --same-coder --assessment \"the \
         answer\" (without --same-coder a fresh coder starts over; with --keep-worktree another coder goes on)\n\
         - too large, unclear or wrongly cut: write its replacements as DRAFT, then {liza} supersede-task TASK --by NEW-1,NEW-2 \
         --reason \"wrong granularity | ambiguity | missing dependency | ...\" --root-cause \"one sentence\"\n\
         - not worth doing: {liza} abandon-task TASK --reason \"...\"\n\
         - only the human can answer: leave it BLOCKED and log a spec_gap"
    )
}

fn review_deadlock(liza: &str) -> String {
    format!(
        "REVIEW_DEADLOCK: the loop has run to its limit. Read all rejections and the work, judge which of these it is, and \
         record that (the command logs the review_deadlock anomaly):\n\
         - the coder does not address the feedback: {liza} unblock-task TASK --keep-worktree --reset-cycles --assessment \"...\"\n\
         - the criteria are unclear or shift: the spec has to be clarified first (a spec_gap for the human, where it is silent); \
         then {liza} unblock-task TASK --same-coder --reset-cycles --assessment \"...\"\n\
         - a real disagreement, or a misframed task: supersede it by tasks with clearer constraints\n\
         - no way forward: {liza} abandon-task TASK --reason \"...\"\n\
         Work is discarded only by abandoning or superseding."
    )
}

fn hypothesis_exhausted(liza: &str) -> String {
    format!(
        "HYPOTHESIS_EXHAUSTED: two coders failed, so the framing is presumed wrong; the task cannot be handed out again. Find \
         the assumption that both shared. Then write replacements that do without it and {liza} supersede-task TASK --by \
         NEW-1,NEW-2 --reason \"...\" --root-cause \"the wrong assumption\", or {liza} abandon-task TASK --reason \"...\". The \
         command logs the hypothesis_exhaustion anomaly."
    )
}

fn integration_failed(liza: &str) -> String {
    format!(
        "INTEGRATION_FAILED: any coder may claim the fix; you are asked because nobody has, or because it failed again. Failed \
         once, and a coder is merely busy: change nothing. Failed twice: the change and the integration branch pull apart. Find \
         out by what, write a replacement that starts from the integration branch as it is now, and {liza} supersede-task TASK \
         --by NEW --reason \"...\" --root-cause \"...\". Let tasks that touch the same place depend on each other: {liza} \
         edit-task OTHER --depends NEW"
    )
}

fn immediate_discovery(liza: &str) -> String {
    format!(
        "IMMEDIATE_DISCOVERY: does it make running or planned work wrong? Then write a task for it (priority 1 or 2), let the \
         tasks that need it depend on it, and {liza} convert-discovery DISC TASK. Covered by a task that exists: \
         convert-discovery to that one. Neither: leave it, and say why in your alignment summary."
    )
}

fn dead_dependency(liza: &str) -> String {
    format!(
        "DEAD_DEPENDENCY: the task waits for one that will never be merged. Not needed any more: {liza} edit-task TASK --depends a,b \
         (all that are left; --depends \"\" for none). Still needed: write a task for it, then edit-task TASK --depends NEW. Pointless now: \
         {liza} abandon-task TASK --reason \"...\". A REJECTED task cannot be edited: supersede or abandon it."
    )
}

fn sprint_completed(liza: &str) -> String {
    format!(
        "SPRINT_COMPLETED: judge the goal against the VISION's own criteria, by looking at the integration branch, not at task \
         states. Reached: {liza} goal complete. Not reached: write the missing tasks (the first one opens the next sprint) and \
         finalize them together. Abandoned tasks are gaps until you have shown otherwise."
    )
}

fn writing_tasks(liza: &str) -> String {
    format!(
        "Every task you write passes five gates: a spec section (--spec), a falsifiable DONE WHEN (--done), a boundary by \
         functional area, not by files (--scope), its dependencies (--depends), and its tests inside it: no separate test \
         tasks.\n{liza} add-task --id kebab-case-id --desc \"one or two sentences\" --spec specs/FILE.md#section --done \"...\" \
         --scope \"...\" --priority 1-5 --depends a,b --draft\nDRAFT first; finalize what belongs together in one go: {liza} \
         finalize TASK ... (supersede-task finalizes its replacements itself)."
    )
}

fn missing_specs(liza: &str) -> String {
    format!(
        "A spec must exist before the task. If one is missing or silent, do not invent it: write no task that needs it, and flag \
         it to the human: {liza} anomaly spec_gap --detail spec_ref=specs/FILE.md --detail question=\"...\""
    )
}
