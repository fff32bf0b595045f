//! Random commands on four tasks and two agents, for the tests of both stores.

use liza_core::model::{
    Actor, AgentStatus, AnomalyType, FactKind, Fields, Severity, Sha, TaskId, Urgency, WorkFacts,
};
use liza_core::protocol::{
    AbandonTask, ClaimReview, ClaimRole, ClaimTask, Command, Discover, EditTask, HandoffNotes, Intent,
    LogAnomaly, MarkBlocked, PreCheck, ReleaseClaim, ReserveTask, SetStatus, SubmitForReview, SubmitVerdict,
    TaskEdit, UpdateSprintMetrics, Verdict, WorktreeFacts, WriteHandoff,
};
use proptest::prelude::*;

use crate::support::*;

/// Texts that are easy to write wrong.
const TEXTS: [&str; 8] =
    ["plain", "no", "017", "a: b # c", "two\nlines\n", "- dash", "emoji 😀", " spaces and \"quotes\" "];

/// One random step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    what: u8,
    pub(crate) which: u8,
    pub(crate) text: u8,
}

/// Random steps.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<u8>(), any::<u8>(), any::<u8>());
    proptest::collection::vec(step.prop_map(|(what, which, text)| Step { what, which, text }), 20..60)
}

fn commit(digit: &str) -> Sha {
    digit.repeat(40).parse().unwrap()
}

/// The facts of every other submission raise its impact.
fn facts(step: &Step) -> Option<WorktreeFacts> {
    let mut work = WorkFacts { files: 2, added: 3, removed: 1, ..WorkFacts::default() };
    if step.text.is_multiple_of(2) {
        work.note(FactKind::TestsDeleted, TEXTS[usize::from(step.text) % TEXTS.len()]);
    }
    Some(WorktreeFacts { work: Some(work), ..WorktreeFacts::clean(commit("b")) })
}

/// The command of a step, and its actor.
pub(crate) fn command(step: &Step) -> (Actor, Command) {
    let id: TaskId = task(["a", "b", "c", "d"][usize::from(step.which) % 4]);
    let text = TEXTS[usize::from(step.text) % TEXTS.len()].to_owned();
    let (coder, reviewer) = (agent("coder-1"), agent("code-reviewer-1"));
    match step.what % 20 {
        0..=2 => (Actor::Human, add_task(id.as_str())),
        3 => {
            let edit = TaskEdit { description: Some(text), priority: Some(1), ..TaskEdit::default() };
            (Actor::Human, Command::from(EditTask { task: id, edit }))
        }
        4 => (Actor::Human, register("coder-1")),
        5 => (Actor::Human, register("code-reviewer-1")),
        6 => (Actor::Human, heartbeat("coder-1")),
        7 => (Actor::Human, Command::from(ReserveTask { task: id, coder, head: commit("a") })),
        8 => (Actor::Human, Command::from(ClaimTask { task: id, coder })),
        9 => {
            let intent = Intent { intent: text.clone(), validation: text, ..Intent::default() };
            (Actor::Operator(coder), Command::from(PreCheck { task: id, intent }))
        }
        10 => {
            let submit = Command::from(SubmitForReview {
                task: id,
                commit: commit("b"),
                facts: facts(step),
                authors: vec![],
            });
            (Actor::Operator(coder), submit)
        }
        11 => {
            let claim =
                ClaimReview { task: id, reviewer, setup_failure: None, integration: None, gate: None };
            (Actor::Human, Command::from(claim))
        }
        12 => {
            let reason = format!("{text}\nPrior Feedback Status:\n- PARTIAL: {text}");
            let verdict =
                if step.text.is_multiple_of(2) { Verdict::Approved(None) } else { Verdict::Rejected(reason) };
            (
                Actor::Operator(reviewer),
                Command::from(SubmitVerdict {
                    task: id,
                    verdict,
                    facts: facts(step),
                    commit: None,
                    moved: None,
                }),
            )
        }
        13 => {
            let (reason, questions, attempted) = (text.clone(), vec![text.clone()], vec![text]);
            (Actor::Human, Command::from(MarkBlocked { task: id, reason, questions, attempted }))
        }
        14 => (Actor::Human, Command::from(AbandonTask { task: id, reason: text })),
        15 => {
            let notes =
                HandoffNotes { summary: "s".into(), next_action: "n".into(), ..HandoffNotes::default() };
            (Actor::Operator(coder), Command::from(WriteHandoff { task: Some(id), notes, dirty: Vec::new() }))
        }
        16 => {
            let (role, force) = (ClaimRole::Both, true);
            (Actor::Human, Command::from(ReleaseClaim { task: id, role, force, reason: Some(text) }))
        }
        17 => {
            let (severity, urgency) = (Severity::High, Urgency::Immediate);
            let (task, recommendation) = (Some(id), Some(text.clone()));
            (
                Actor::Human,
                Command::from(Discover { task, description: text, severity, urgency, recommendation }),
            )
        }
        18 => {
            let details = Fields::from_iter([("why".to_owned(), text.into())]);
            (Actor::Human, Command::from(LogAnomaly { kind: AnomalyType::SpecGap, task: Some(id), details }))
        }
        _ if step.text.is_multiple_of(2) => (Actor::Human, Command::from(UpdateSprintMetrics)),
        _ => (Actor::Human, Command::from(SetStatus::new(coder, AgentStatus::Handoff))),
    }
}
