//! `=== ASSIGNED TASK ===`: the coder's task, the results of earlier attempts, and the end of the session.

use std::path::Path;

use liza_core::model::{EventName, HistoryEvent, Refusal, Role, State, TaskId, TaskRecord};
use liza_core::protocol::MergeFailure;
use liza_core::text::count;

use super::attempts::write_attempts;
use super::context::{
    fact, facts, handoff_for, handoff_step, history, last, open_rejection, write_definition, write_handoff,
    write_no_result, write_notes, write_spec_changes, write_validation,
};
use super::prompt_text::{PromptText, inline, path, word};
use super::{Brief, END_TURN, PreviewedMerge, Staleness};

/// Facts that are not on the blackboard.
pub(super) struct Facts<'f> {
    pub worktree: &'f Path,
    pub staleness: Option<&'f Staleness>,
    pub other_side: &'f [String],
}

pub(super) fn write(
    page: &mut PromptText,
    state: &State,
    brief: &Brief,
    task: &TaskId,
    facts: &Facts<'_>,
) -> Result<(), Refusal> {
    let record = state.board.body(task)?.record();
    let fixing = record.integration_fix == Some(true);
    page.section("ASSIGNED TASK");
    write_task(page, state, brief, task, record, facts.worktree)?;
    let branch = inline(&state.board.config()?.integration_branch);
    write_spec_changes(page, state, record);
    write_rejection(page, brief, record);
    write_unblocked(page, record);
    write_unsubmitted(page, record);
    write_no_result(page, record, brief.agent, "submit it, hand off or block");
    if fixing {
        write_fix(page, &branch, brief, record, facts.other_side);
    } else if let Some(staleness) = facts.staleness {
        write_staleness(page, &branch, staleness);
    }
    let notes = handoff_for(state, task, record, Role::Coder);
    if let Some(notes) = notes {
        write_handoff(page, notes, brief.agent);
    }
    write_attempts(page, state, task, record, &shown(record, notes.is_some()));
    write_notes(page, state, brief.agent, Some(task));
    page.gap();
    page.line("INSTRUCTIONS:");
    page.steps(&steps(brief, task, record, &branch, facts));
    Ok(())
}

fn write_task(
    page: &mut PromptText,
    state: &State,
    brief: &Brief,
    task: &TaskId,
    record: &TaskRecord,
    worktree: &Path,
) -> Result<(), Refusal> {
    let config = state.board.config()?;
    page.line(format!("TASK ID: {task}"));
    page.line(format!("WORKTREE: {}", path(worktree)));
    page.line(format!("BRANCH: {}", task.branch()));
    if let Some(base) = &record.base_commit {
        page.line(format!("BASE: {base}"));
    }
    write_definition(page, &brief.project, record);
    write_validation(page, state, record, Role::Coder);
    let (iteration, cycles) = (record.iteration.unwrap_or(1), record.review_cycles_current.unwrap_or(0));
    page.line(format!("ITERATION: {iteration} of {}", config.max_iterations(record)));
    page.line(format!("REJECTIONS SO FAR: {cycles} of {}", config.max_review_cycles(record)));
    if let Some(replaced) = record.supersedes.as_deref().filter(|tasks| !tasks.is_empty()) {
        let names: Vec<String> = replaced.iter().map(ToString::to_string).collect();
        page.line(format!("REPLACES: {}", names.join(", ")));
        page.field_some("BECAUSE", record.rescope_reason.as_deref());
    }
    Ok(())
}

fn write_rejection(page: &mut PromptText, brief: &Brief, record: &TaskRecord) {
    let Some(rejection) = open_rejection(record) else { return };
    page.gap();
    page.line(format!("PRIOR REJECTION (by {}):", rejection.by));
    page.quote(rejection.reason);
    let own = rejection.coder.is_none_or(|coder| coder == brief.agent.to_string());
    page.line(match (own, rejection.coder) {
        (false, Some(coder)) => format!(
            "It is about the work of {}, which may not be in your worktree. Your tests must cover these blockers.",
            inline(coder)
        ),
        _ => "Fix every blocker. If you think that the reviewer is wrong, say why in the commit message; if the spec \
              does not decide it, block."
            .to_owned(),
    });
}

/// The events that have their own part in the prompt.
fn shown(record: &TaskRecord, has_handoff: bool) -> Vec<&HistoryEvent> {
    let rejection = open_rejection(record).and_then(|_| last(record, EventName::Rejected));
    let unblocked = unblocked(record);
    let asked = unblocked.and_then(|_| last(record, EventName::Blocked));
    let handoff = if has_handoff { last(record, EventName::Handoff) } else { None };
    let fixing = record.integration_fix == Some(true);
    let failure = if fixing { last(record, EventName::IntegrationFailed) } else { None };
    [rejection, unblocked, asked, handoff, failure].into_iter().flatten().collect()
}

/// The last unblocking, until the next submission.
fn unblocked(record: &TaskRecord) -> Option<&HistoryEvent> {
    let events = history(record);
    let since = events.iter().rposition(|event| event.is(EventName::ReadyForReview)).map_or(0, |at| at + 1);
    let recent = events.get(since..).unwrap_or_default();
    recent.iter().rev().find(|event| event.is(EventName::Unblocked))
}

/// The planner's answer from when it unblocked the task.
fn write_unblocked(page: &mut PromptText, record: &TaskRecord) {
    let Some(event) = unblocked(record) else { return };
    page.gap();
    page.line(format!("THIS TASK WAS BLOCKED, and unblocked at {}:", event.time));
    page.field("Was blocked by", &fact(event, "was"));
    let asked = last(record, EventName::Blocked);
    page.list("Questions", &asked.map(|event| facts(event, "questions")).unwrap_or_default());
    page.list("Tried", &asked.map(|event| facts(event, "attempted")).unwrap_or_default());
    page.field_some("The planner's answer", Some(&fact(event, "assessment")));
}

/// Writes the commits that an earlier session made and did not submit.
fn write_unsubmitted(page: &mut PromptText, record: &TaskRecord) {
    let submits = |event: &HistoryEvent| event.is(EventName::ReadyForReview) || event.is(EventName::Handoff);
    let events = history(record);
    let since = events.iter().rposition(submits).map_or(0, |at| at + 1);
    let mut recent = events.get(since..).unwrap_or_default().iter().rev();
    let left = recent.find_map(|event| event.text("unsubmitted").map(|commit| (event, commit)));
    let Some((event, commit)) = left else { return };
    page.gap();
    let who = inline(event.agent.as_deref().unwrap_or("a coder"));
    page.line(format!(
        "NOT SUBMITTED: a session of {who} committed {} and ended at {} without submitting it.",
        inline(&commit),
        event.time
    ));
    page.line(
        "What is missing: check the work against DONE WHEN, finish it, and submit it with the command below. A commit that is \
         not submitted is never reviewed.",
    );
}

fn write_staleness(page: &mut PromptText, branch: &str, staleness: &Staleness) {
    if staleness.commits == 0 {
        return;
    }
    page.gap();
    let commits = count(staleness.commits as usize, "commit");
    let moved = format!("STALENESS: {branch} has moved by {commits} since your base");
    match &staleness.merge {
        PreviewedMerge::Clean => page.line(format!("{moved}; a trial merge is clean.")),
        PreviewedMerge::Conflicts(files) => {
            page.line(format!("{moved}; a trial merge conflicts."));
            page.list("Conflicting files", files);
            page.line("Keep your change in these files small.");
        }
    }
    page.line(format!("Do not merge {branch} or rebase onto it: your work is merged after approval."));
}

fn failure(record: &TaskRecord) -> Option<MergeFailure> {
    MergeFailure::of_event(last(record, EventName::IntegrationFailed)?)
}

fn write_fix(page: &mut PromptText, branch: &str, brief: &Brief, record: &TaskRecord, other_side: &[String]) {
    page.gap();
    page.line("INTEGRATION FIX: this work was approved, but it could not be merged.");
    if let Some(head) = &record.base_commit {
        page.line(format!("HEAD TO MERGE IN: {head} ({branch})"));
    }
    match failure(record) {
        Some(MergeFailure::Conflict { files }) if !files.is_empty() => {
            page.list("CONFLICTING FILES", &files);
        }
        Some(MergeFailure::Test { what, output }) => {
            page.field("FAILED TEST", &what);
            page.line(format!("TEST OUTPUT: {}", path(&brief.project.join(output))));
        }
        Some(MergeFailure::Holdout { names }) => {
            page.line("FAILED: acceptance tests that no session can read, on the merged result. Their output is not shown.");
            page.list("TESTS THAT THE MERGE BREAKS", &names);
        }
        Some(MergeFailure::Unrelated) => {
            page.line(format!(
                "NO COMMON HISTORY: the work does not descend from {branch}; rebuild it on top of {branch}."
            ));
        }
        Some(MergeFailure::Conflict { .. }) | None => {
            page.line("The cause is not recorded: merge and test to find it.");
        }
    }
    page.list(&format!("THE OTHER SIDE: commits that {branch} has and your branch lacks"), other_side);
    page.line("SCOPE OF THE FIX: resolve this only. No features, no clean-up, nothing that the merge does not need.");
}

fn steps(brief: &Brief, task: &TaskId, record: &TaskRecord, branch: &str, facts: &Facts<'_>) -> Vec<String> {
    let (liza, tree) = (word(&brief.program), word(facts.worktree));
    let fixing = record.integration_fix == Some(true);
    let mut steps = vec![
        format!(
            "Work only in your worktree, on {}. It is a repository of its own; its branch {branch} is a copy. You may use or undo \
             what earlier sessions left there, committed or not.\ncd {tree} && git status && git log --oneline -5",
            task.branch()
        ),
        format!(
            "If the task, its spec and the notes do not state what is wanted, block now (never for style or for what the specs \
             answer), then {END_TURN}:\n{liza} mark-blocked {task} --reason \"...\" --question \"...\" --attempted \"...\""
        ),
        checkpoint_step(brief, record, &format!("{liza} pre-check {task}")),
    ];
    steps.extend(if fixing { fix_steps(record, branch) } else { build_steps(record) });
    steps.extend([
        format!(
            "If you find another problem, do not fix it, record it (severity critical, high, medium or low):\n{liza} discover \
             --task {task} --severity medium --desc \"...\" --recommendation \"...\""
        ),
        format!(
            "Log anomalies when they occur (types and details: see the contract), for example:\n{liza} anomaly retry_loop \
             --task {task} --detail count=3 --detail error_pattern=\"...\""
        ),
        "Run the validation command and the project's whole test suite. Report as passing only what you saw pass.".to_owned(),
        format!("Commit everything; this must print nothing:\ngit -C {tree} status --porcelain"),
        format!("Submit what you have committed:\n{liza} submit-for-review {task} HEAD"),
        format!("Do not wait for the verdict; only the submitted commit is reviewed: {END_TURN}."),
        handoff_step("commit, ", &format!("{liza} handoff {task}")),
    ]);
    steps
}

fn build_steps(record: &TaskRecord) -> Vec<String> {
    let first = "Tests first: write tests that fail because DONE WHEN is not yet true, then implement until they pass. \
                 Only tasks that change nothing but docs, configuration or specs need no tests; code without tests is rejected.";
    let scope = "Stay within SCOPE: no other fixes, no prerequisites that the task does not name.";
    let mut steps = vec![first.to_owned(), scope.to_owned()];
    if open_rejection(record).is_some() {
        steps.insert(
            0,
            "Answer the PRIOR REJECTION point by point: for each blocker a test that shows it, then the fix."
                .to_owned(),
        );
    }
    steps
}

/// A checkpoint that this coder has recorded since its claim is still valid.
fn checkpoint_step(brief: &Brief, record: &TaskRecord, command: &str) -> String {
    let events = history(record);
    let claim = events.iter().rposition(HistoryEvent::is_claim).unwrap_or(0);
    let own = brief.agent.to_string();
    let is_recorded = events.get(claim..).unwrap_or_default().iter().any(|event| {
        event.is(EventName::PreExecutionCheckpoint) && event.agent.as_deref() == Some(own.as_str())
    });
    let when = match is_recorded {
        true => {
            "An earlier session recorded your pre-execution checkpoint. Record another one only if your intent \
                 has changed:"
        }
        false => {
            "Before you change a file, record your pre-execution checkpoint; the reviewer compares it with the result:"
        }
    };
    format!(
        "{when}\n{command} --intent \"...\" --validation \"...\" --assumption \"...\" --risk \"...\" --file \
         \"...\"\n--validation is the command that will prove it; repeat --assumption, --risk and --file as needed."
    )
}

fn fix_steps(record: &TaskRecord, branch: &str) -> Vec<String> {
    let head = record.base_commit.as_ref().map_or(branch, |head| head.as_str());
    let mut steps = vec![format!(
        "Merge the other side (if a merge is in progress, finish it):\ngit merge --no-edit {head}\nKeep the intent of both sides; \
         never resolve by dropping the other side's change. The commit that you submit must contain {head}."
    )];
    if let Some(MergeFailure::Test { .. }) = failure(record) {
        steps.push(
            "Read TEST OUTPUT, reproduce the failure, find which of the two sides contradicts the spec, and fix that side. \
             Change a test only if the spec requires it."
                .to_owned(),
        );
    }
    if let Some(MergeFailure::Holdout { .. }) = failure(record) {
        let step = "The acceptance tests follow the spec: compare the merged result with DONE WHEN and the spec, sentence by \
                    sentence, write a test for what is not met, and fix it. Do not look for the acceptance tests.";
        steps.push(step.to_owned());
    }
    if open_rejection(record).is_some() {
        steps.push("Answer the PRIOR REJECTION point by point.".to_owned());
    }
    steps
        .push("If scripts/integration-test.sh exists, run it: it must pass on the merged result.".to_owned());
    steps
}
