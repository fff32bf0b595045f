//! The triggers that wake the planner, each once per change.

use std::fmt;

use crate::model::{
    Goal, GoalStatus, MAX_FAILED_CODERS, REVIEW_DEADLOCK, Revision, Seconds, SpecChange, Sprint,
    SprintStatus, State, Status, TaskBody, TaskId, TaskStatus, Timestamp,
};
use crate::rules::questions::{Question, questions};
use crate::text::{count, one_line};
use liza_ids::order::sort_by_key;

/// The longest text of an agent in a trigger, in characters.
const DETAIL_MAX: usize = 300;

/// The time that coders get to fix a failed merge before the planner is asked.
const FIX_GRACE: Seconds = Seconds(60);

/// Decisions at a checkpoint after which the planner has to look at the plan.
const CHANGES_PLAN: [&str; 3] = ["replan", "adjust specs", "pivot"];

/// The kind of a trigger, in the order in which the planner should look.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::EnumString, strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum TriggerKind {
    /// The human has decided at a checkpoint that the plan has to change.
    HumanDecision,
    /// The human has answered a question.
    QuestionAnswered,
    /// Two coders failed at a task.
    HypothesisExhausted,
    /// A task is blocked; a review deadlock says so in its detail.
    BlockedTasks,
    /// A merge failed and no coder fixes it, or it failed twice.
    IntegrationFailed,
    ImmediateDiscovery,
    /// A task depends on one that was abandoned or replaced.
    DeadDependency,
    /// A draft is not finished: the human has added it in one line, or a planning session has left it.
    NewDraft,
    /// There is a goal and the planner has not planned for it. Existing trouble comes first.
    InitialPlanning,
    /// The sprint has ended: is the goal reached?
    SprintCompleted,
}

impl TriggerKind {
    /// All of them, the first to look at first.
    pub const ALL: &'static [TriggerKind] = <TriggerKind as strum::VariantArray>::VARIANTS;

    /// True if it remains until the planner has decided, however often it was woken.
    pub fn needs_decision(self) -> bool {
        matches!(self, TriggerKind::InitialPlanning | TriggerKind::SprintCompleted)
    }

    /// True if it is about a task or a discovery that needs a decision.
    fn is_trouble(self) -> bool {
        match self {
            TriggerKind::HypothesisExhausted
            | TriggerKind::BlockedTasks
            | TriggerKind::IntegrationFailed
            | TriggerKind::ImmediateDiscovery
            | TriggerKind::DeadDependency => true,
            TriggerKind::HumanDecision
            | TriggerKind::QuestionAnswered
            | TriggerKind::NewDraft
            | TriggerKind::InitialPlanning
            | TriggerKind::SprintCompleted => false,
        }
    }

    /// True if a planner settles it by using it; the others remain until the matter is resolved.
    fn is_news(self) -> bool {
        matches!(self, TriggerKind::HumanDecision | TriggerKind::QuestionAnswered)
    }
}

/// One reason to wake the planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub kind: TriggerKind,
    /// A task, discovery, sprint or goal.
    pub subject: String,
    /// One line for people.
    pub detail: String,
    /// Changes when the matter changes; kept in `sprint.seen_triggers` once the planner has looked.
    pub key: String,
}

impl Trigger {
    /// The reason that the planner is needed, for a person.
    pub fn in_words(&self) -> String {
        let subject = &self.subject;
        match self.kind {
            TriggerKind::HumanDecision => "you decided to change the plan".to_owned(),
            TriggerKind::QuestionAnswered => "you answered a question".to_owned(),
            TriggerKind::HypothesisExhausted => format!("two coders failed at {subject}"),
            TriggerKind::BlockedTasks => format!("{subject} is blocked"),
            TriggerKind::IntegrationFailed => format!("{subject} cannot be merged"),
            TriggerKind::ImmediateDiscovery => format!("{subject} is an urgent discovery"),
            TriggerKind::DeadDependency => format!("{subject} waits for a task that will not be merged"),
            TriggerKind::NewDraft => format!("{subject} is a draft to complete"),
            TriggerKind::InitialPlanning => format!("{subject} has no finished plan yet"),
            TriggerKind::SprintCompleted => format!("all tasks of {subject} have ended"),
        }
    }

    /// The kind and the subject: stays the same when the details change.
    pub(crate) fn matter(&self) -> String {
        format!("{}:{}", self.kind, self.subject)
    }

    /// The kind and the subject of a trigger that had this key.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let (kind, rest) = key.split_once(':')?;
        let (subject, _) = rest.split_once(':')?;
        let kind = kind.parse().ok()?;
        Some(Self { kind, subject: subject.to_owned(), detail: String::new(), key: key.to_owned() })
    }

    fn new(kind: TriggerKind, subject: impl fmt::Display, stamp: impl fmt::Display, detail: String) -> Self {
        Self { kind, subject: subject.to_string(), detail, key: format!("{kind}:{subject}:{stamp}") }
    }
}

/// The first reasons that the planner is needed, for a person.
pub fn in_words(triggers: &[Trigger]) -> String {
    const MOST: usize = 3;
    let mut words: Vec<String> = triggers.iter().take(MOST).map(Trigger::in_words).collect();
    if triggers.len() > MOST {
        words.push(format!("{} more", triggers.len() - MOST));
    }
    words.join(", ")
}

/// The purpose of a planner's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannerWork {
    /// Plan the goal, or change the plan.
    Planning,
    /// Judge if the goal is reached.
    Judging,
    /// Decide about this task or discovery.
    LookingAt(String),
}

impl fmt::Display for PlannerWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlannerWork::Planning => f.write_str("planning"),
            PlannerWork::Judging => f.write_str("judging the goal"),
            PlannerWork::LookingAt(subject) => write!(f, "looking at {subject}"),
        }
    }
}

pub fn planner_work(triggers: &[Trigger]) -> PlannerWork {
    let has = |kind: TriggerKind| triggers.iter().any(|trigger| trigger.kind == kind);
    let trouble = triggers.iter().find(|trigger| trigger.kind.is_trouble());
    match trouble {
        _ if has(TriggerKind::InitialPlanning) => PlannerWork::Planning,
        _ if has(TriggerKind::SprintCompleted) => PlannerWork::Judging,
        Some(trigger) => PlannerWork::LookingAt(trigger.subject.clone()),
        None => PlannerWork::Planning,
    }
}

/// Everything that the planner has to look at, first things first, tasks by priority then age.
pub fn planner_triggers(state: &State, now: Timestamp) -> Vec<Trigger> {
    let (Some(goal), Some(sprint)) = (state.board.goal.ready(), state.board.sprint.ready()) else {
        return Vec::new();
    };
    if goal.status != GoalStatus::InProgress || goal.description.trim().is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let lacks_plan = lacks_plan(state);
    // A note or a changed specification is news for a planner that could not decide without it.
    let news = state.journal.human_notes.len() + state.journal.spec_changes.len();
    if lacks_plan {
        found.push(Trigger::new(TriggerKind::InitialPlanning, &goal.id, news, goal.description.clone()));
    }
    let mut tasks: Vec<(&TaskId, &TaskBody)> = state.bodies().collect();
    sort_by_key(&mut tasks, |(_, body)| (body.record().priority.unwrap_or(3), body.record().created));
    for (id, body) in tasks {
        found.extend(task_trigger(state, id, body, now).or_else(|| draft_trigger(id, body, lacks_plan)));
    }
    for discovery in state.board.discovered.entries().filter(|d| d.is_pressing()) {
        let detail = one_line(&discovery.description, DETAIL_MAX);
        found.push(Trigger::new(TriggerKind::ImmediateDiscovery, discovery.id, 0, detail));
    }
    found.extend(note_on_plan(state, goal));
    found.extend(decision_trigger(sprint));
    found.extend(answered_questions(state, sprint));
    if sprint.status == SprintStatus::Completed {
        let detail = "all planned tasks have ended".to_owned();
        found.push(Trigger::new(TriggerKind::SprintCompleted, &sprint.id, news, detail));
    }
    sort_by_key(&mut found, |trigger| trigger.kind);
    found
}

pub fn lacks_plan(state: &State) -> bool {
    let (Some(goal), Some(sprint)) = (state.board.goal.ready(), state.board.sprint.ready()) else {
        return false;
    };
    sprint.status != SprintStatus::Completed && !is_planned(state, goal, sprint)
}

/// True if the planner has planned. Drafts are an unfinished plan, and a person's task is not the planner's.
fn is_planned(state: &State, goal: &Goal, sprint: &Sprint) -> bool {
    let ready = |status: Option<Status>| status != Some(Status::Draft);
    let any_ready = state.board.summaries().any(|summary| ready(summary.status))
        || sprint.scope.planned.iter().any(|task| ready(state.board.status(task)));
    let own = || {
        !state.board.archived.is_empty() || state.bodies().any(|(_, body)| body.record().past().by_planner)
    };
    (any_ready || proposed_tasks(state).next().is_some()) && (goal.planned || own())
}

/// The human's note on a plan that waits for approval, once for each note.
fn note_on_plan(state: &State, goal: &Goal) -> Option<Trigger> {
    let proposed = proposed_tasks(state).filter_map(|(_, body)| body.record().past().proposed).max()?;
    let note = state.journal.human_notes.iter().rev().find(|note| note.timestamp >= proposed)?;
    Some(Trigger::new(TriggerKind::HumanDecision, &goal.id, note.timestamp, note.message.clone()))
}

/// The drafts that the planner has proposed.
pub fn proposed_tasks(state: &State) -> impl Iterator<Item = (&TaskId, &TaskBody)> {
    state.bodies().filter(|(_, body)| {
        let is_draft = matches!(body.status(), Ok(TaskStatus::Draft));
        is_draft && body.record().past().proposed.is_some()
    })
}

pub fn proposed_revision(state: &State) -> Option<Revision> {
    proposed_tasks(state).filter_map(|(_, body)| body.record().revision).max()
}

/// True if a task has its criterion and its scope.
pub fn is_complete(body: &TaskBody) -> bool {
    let has = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    has(&body.record().done_when) && has(&body.record().scope)
}

/// The human's last decision, if it changes the plan.
fn decision_trigger(sprint: &Sprint) -> Option<Trigger> {
    let last = sprint.decisions.last().filter(|last| CHANGES_PLAN.contains(&last.decision.as_str()))?;
    let note = last.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    let detail = format!("{}{note}", last.decision);
    Some(Trigger::new(TriggerKind::HumanDecision, &sprint.id, last.timestamp, detail))
}

/// Questions that were answered in this sprint.
fn answered_questions(state: &State, sprint: &Sprint) -> Vec<Trigger> {
    let trigger = |question: Question| {
        let (when, answer) = question.answer?;
        let current = sprint.timeline.started.is_none_or(|started| when >= started);
        let subject = question.task.map_or_else(|| "goal".to_owned(), |task| task.to_string());
        let detail = format!("{:?} — {answer}", question.text);
        current.then(|| Trigger::new(TriggerKind::QuestionAnswered, subject, question.asked, detail))
    };
    questions(state).into_iter().filter_map(trigger).collect()
}

fn task_trigger(state: &State, id: &TaskId, body: &TaskBody, now: Timestamp) -> Option<Trigger> {
    let record = body.record();
    match body.status().ok()? {
        TaskStatus::Blocked { block, .. } => {
            let failed = record.failed_by.as_deref().unwrap_or_default();
            let reason = block.reason.clone();
            let stamp = blocked_stamp(state, id, body, &reason);
            if failed.len() >= MAX_FAILED_CODERS {
                return Some(Trigger::new(TriggerKind::HypothesisExhausted, id, stamp, reason));
            }
            let detail = if reason == REVIEW_DEADLOCK { "REVIEW_DEADLOCK".to_owned() } else { reason };
            Some(Trigger::new(TriggerKind::BlockedTasks, id, stamp, detail))
        }
        TaskStatus::IntegrationFailed { .. } => {
            let past = record.past();
            let failures = past.failed_merges;
            let waited = past.last_failed_merge.is_none_or(|last| now.since(last) >= FIX_GRACE);
            let detail = format!("{}, no coder is fixing it", count(failures, "failed merge"));
            // The revision would not do as a stamp: a reservation changes it, and is no news for the planner.
            (waited || failures >= 2)
                .then(|| Trigger::new(TriggerKind::IntegrationFailed, id, failures, detail))
        }
        TaskStatus::Draft | TaskStatus::Unclaimed { .. } | TaskStatus::Rejected { .. } => {
            let dead = |dependency: &&TaskId| {
                matches!(state.board.status(dependency), Some(Status::Abandoned | Status::Superseded))
            };
            let dead = record.depends_on.iter().flatten().find(dead)?;
            let detail = format!("depends on {dead}, which will never be merged");
            Some(Trigger::new(TriggerKind::DeadDependency, id, dead, detail))
        }
        TaskStatus::Claimed { .. }
        | TaskStatus::ReadyForReview { .. }
        | TaskStatus::Approved { .. }
        | TaskStatus::Merged { .. }
        | TaskStatus::Abandoned
        | TaskStatus::Superseded { .. } => None,
    }
}

/// A draft that no one else finishes: one that the human added in one line, or one that a planning session
/// has left beside the tasks of its plan. While the plan itself is missing, its drafts are part of that.
fn draft_trigger(id: &TaskId, body: &TaskBody, lacks_plan: bool) -> Option<Trigger> {
    let is_draft = matches!(body.status(), Ok(TaskStatus::Draft));
    let is_left = || {
        let past = body.record().past();
        match past.is_by_human() {
            true => !is_complete(body),
            false => !lacks_plan && past.proposed.is_none(),
        }
    };
    let detail = || body.record().description.clone().unwrap_or_default();
    (is_draft && is_left()).then(|| Trigger::new(TriggerKind::NewDraft, id, 0, detail()))
}

/// The drafts that only the human finishes: its own, which lack nothing.
pub fn drafts_of_human(state: &State) -> impl Iterator<Item = &TaskId> {
    let drafts = state.bodies().filter(|(_, body)| matches!(body.status(), Ok(TaskStatus::Draft)));
    drafts.filter(|(_, body)| is_complete(body) && body.record().past().is_by_human()).map(|(id, _)| id)
}

/// Changes when the task is blocked again or for another reason, or when a person leaves a note for it or
/// changes its specification. The revision would not do: the planner's own edits change it.
fn blocked_stamp(state: &State, id: &TaskId, body: &TaskBody, reason: &str) -> String {
    let blocks = body.record().past().blocks;
    let notes = state.journal.human_notes.iter().filter(|note| note.to.as_ref() == Some(id)).count();
    let spec = body.record().spec_ref.as_deref();
    let changes = state.journal.spec_changes.iter().filter(|change| concerns(change, id, spec)).count();
    format!("{blocks}-{}-{}", notes + changes, one_line(reason, 40))
}

/// True if a changed specification is the task's, or was changed because of it.
fn concerns(change: &SpecChange, id: &TaskId, spec: Option<&str>) -> bool {
    let file = |reference: &str| reference.split('#').next().unwrap_or_default().trim().to_owned();
    let words = |text: &str| {
        text.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).any(|word| word == id.as_str())
    };
    spec.is_some_and(|spec| file(spec) == file(&change.spec))
        || change.triggered_by.as_deref().is_some_and(words)
}

/// True for a key in `sprint.seen_triggers` of news, which a new planner does not get again.
pub(crate) fn is_settled(key: &str) -> bool {
    let mut news = TriggerKind::ALL.iter().filter(|kind| kind.is_news());
    news.any(|kind| key.strip_prefix(&kind.to_string()).is_some_and(|rest| rest.starts_with(':')))
}

pub fn unseen(triggers: &[Trigger], seen: &[String]) -> Vec<Trigger> {
    triggers.iter().filter(|trigger| !seen.contains(&trigger.key)).cloned().collect()
}

pub fn unseen_triggers(state: &State, now: Timestamp) -> Vec<Trigger> {
    let seen = state.board.sprint.ready().map(|sprint| sprint.seen_triggers.as_slice());
    unseen(&planner_triggers(state, now), seen.unwrap_or_default())
}
