//! One fingerprint for all boards on which the same can happen.
//!
//! Left out: texts, figures that only grow, revisions. Replaced: histories by their answers to the rules, times by
//! their distance from now, commits by their order of appearance, fencing tokens by whether they are current. A test
//! compares the outcomes of every command on boards with equal fingerprints.

use std::collections::BTreeMap;

use liza_core::model::{
    AgentId, AgentRecord, AgentStatus, Anomaly, AnomalyType, Generation, OpenSession, Past, REVIEW_DEADLOCK,
    Role, Sha, Status, TaskId, TaskRecord,
};
use liza_core::rules::approvals::has_approval;
use liza_core::rules::triggers::{Trigger, TriggerKind, planner_triggers};
use xxhash_rust::xxh3::xxh3_128;

use crate::form::{Form, Names};
use crate::world::{Size, World, sha};

/// Keys of a task that no rule asks for, and those of which only the answers of `task` are asked.
const TASK_NOISE: [&str; 25] = [
    "history",
    "revision",
    "created",
    "usage",
    "review_cycles_total",
    "notes_read",
    "description",
    "spec_ref",
    "done_when",
    "scope",
    "attempted",
    "blocked_questions",
    "rejection_reason",
    "facts",
    "merge_commit",
    "blocked_reason",
    "failed_by",
    "review_dropped_by",
    "reservation",
    "previous_coder",
    "integration_fix",
    "review_commit",
    "validated",
    "validation_retried",
    "gate_change",
];
const AGENT_NOISE: [&str; 10] = [
    "terminal",
    "heartbeat",
    "last_result",
    "iterations_total",
    "usage",
    "last_session",
    "context_percent",
    "generation",
    "status",
    "session",
];
const SPRINT_NOISE: [&str; 8] = [
    "metrics",
    "usage",
    "today",
    "timeline",
    "retrospective",
    "notes_read",
    "seen_triggers",
    "planner_exits",
];
/// Answers of a history that only figures ask for, and those of which only the answers of `past` are asked.
const PAST_NOISE: [&str; 23] = [
    "coders",
    "unblocked_by_human",
    "claims",
    "first_claim",
    "submissions",
    "last_submission",
    "approvals",
    // The evidence of a merge, which no rule asks for.
    "approved",
    "rejections",
    "blocks",
    "last_block",
    "planned_files",
    "traces",
    "end",
    "approval",
    "rejection",
    "failed_merges",
    "failed_merge",
    "last_failed_merge",
    "blocks_since_human",
    "by_planner",
    // Asked at the end of a coder's or reviewer's session, which is an action here.
    "last_verdict_by",
    "block_since_start",
];

/// The same for boards on which agents of a role have swapped their places.
pub fn fingerprint(world: &World) -> u128 {
    let all = renamings(world.size).into_iter();
    all.map(|names| xxh3_128(renamed(world, names).as_bytes())).min().unwrap_or_default()
}

/// The board in its normal form, for people who compare two.
pub fn canonical(world: &World) -> String {
    renamed(world, Vec::new())
}

/// The hash of the board with the names that it has.
pub(crate) fn plain(world: &World) -> u128 {
    xxh3_128(canonical(world).as_bytes())
}

/// All ways to swap two agents of a role, the first of which swaps none. A person who edits the file names one of them.
pub(crate) fn renamings(size: Size) -> Vec<Names> {
    let swap = |mut agents: Vec<String>| match (agents.pop(), agents.pop(), size.edits) {
        (Some(one), Some(other), false) => vec![Vec::new(), vec![(one.clone(), other.clone()), (other, one)]],
        _ => vec![Vec::new()],
    };
    let coders = swap(size.coder_ids().map(|id| id.to_string()).collect());
    let reviewers = swap(size.reviewer_ids().map(|id| id.to_string()).collect());
    let both = |coders: &Names| {
        reviewers.iter().map(|other| [coders.as_slice(), other].concat()).collect::<Vec<_>>()
    };
    coders.iter().flat_map(both).collect()
}

/// The board in its normal form, with these names.
pub(crate) fn renamed(world: &World, names: Names) -> String {
    let board = &world.state.board;
    let triggers = planner_triggers(&world.state, world.now);
    let mut form = Form::new(world.now, world.size.grace(), names);
    for (id, body) in world.state.bodies() {
        task(&mut form, world, id, body.record());
    }
    // The order of registration decides nothing.
    let agents = board.agents.ready().into_iter().flatten();
    let named = agents.map(|(id, entry)| (form.name(&id.to_string()).to_owned(), entry));
    let named: BTreeMap<String, &AgentRecord> = named.collect();
    for (name, entry) in named {
        agent(&mut form, world, &name, entry, &triggers);
    }
    sprint(&mut form, world, &triggers);
    let goal = board.goal.ready();
    // No rule asks for a test that passed.
    let tested = goal.and_then(|goal| goal.head_test.as_ref()).filter(|test| test.failure.is_some());
    let tested = tested.map(|test| (&test.head, &test.settings));
    let goal =
        goal.map(|goal| (goal.status, goal.planned, &goal.integration_head, tested, goal.gate_version));
    form.add("goal", &goal);
    form.add("planning", &planning(world, &triggers));
    form.add("breaker", &board.circuit_breaker.ready().map(|breaker| breaker.status));
    form.add("anomalies", &anomalies(world));
    form.add("is_edited", &world.is_edited);
    let heads = world.worktrees.iter().map(|(task, head)| (task, sha(*head)));
    form.add("heads", &heads.collect::<Vec<_>>());
    form.add("unrecorded", &world.unrecorded.as_ref().map(|(merge, _)| (&merge.task, &merge.commit)));
    form.add("integration", &sha(world.integration));
    form.finish()
}

fn task(form: &mut Form, world: &World, id: &TaskId, record: &TaskRecord) {
    let past = record.past();
    let reservation = record.reservation.as_ref().map(|known| {
        (known.by, known.expires, &known.base_commit, is_current(world, known.by, Some(known.generation)))
    });
    let has_others = world.size.coders > 1;
    // Rules ask who is among them, not who was the first.
    let sorted = |names: &mut dyn Iterator<Item = String>| {
        let mut all: Vec<String> = names.collect();
        all.sort_unstable_by_key(|name| form.name(name).to_owned());
        all
    };
    let coders = sorted(&mut past.coders.iter().map(ToString::to_string));
    let failed = sorted(&mut record.failed_by.iter().flatten().map(ToString::to_string));
    let dropped = sorted(&mut record.review_dropped_by.iter().flatten().map(ToString::to_string));
    let answers = (
        reservation,
        // With one coder, no rule asks who has failed, or had it before.
        Some(failed).filter(|_| has_others),
        record.previous_coder.filter(|_| has_others),
        record.integration_fix == Some(true),
        record.blocked_reason.as_ref().map(|reason| reason == REVIEW_DEADLOCK),
        record.is_blocked_draft(),
        is_blocked_since_planning(world, &past),
        (coders, dropped),
    );
    form.add_without(id.as_str(), record, &TASK_NOISE);
    form.add("answers", &answers);
    form.add_without("past", &past, &PAST_NOISE);
    judgements(form, world, id, record, &past);
}

/// What is known of commits. A verdict, a failed merge or a result is about one commit: no rule asks for it once that is
/// neither the head of the worktree nor under review. A person who edits the file can bring an earlier one under review.
fn judgements(form: &mut Form, world: &World, id: &TaskId, record: &TaskRecord, past: &Past<'_>) {
    let head = world.worktrees.get(id).map(|head| sha(*head));
    let is_head = |commit: Option<&str>| commit.is_some() && commit == head.as_ref().map(Sha::as_str);
    let may_return = world.size.edits && !world.is_edited;
    let is_judged = matches!(record.status, Some(Status::ReadyForReview | Status::Approved)) || may_return;
    let reviewed = record.review_commit.as_ref();
    let review = reviewed.filter(|commit| is_judged || is_head(Some(commit.as_str())));
    let is_known = |commit: &Sha| review == Some(commit) || is_head(Some(commit.as_str()));
    let validated = record.validated.as_ref().filter(|last| is_known(&last.commit));
    let gate = record.gate_change.as_ref().filter(|change| is_known(&change.commit));
    let failed = past.failed_merge.and_then(|event| event.text("commit"));
    let is_fixable = record.status == Some(Status::IntegrationFailed) && past.failed_merges < 2;
    let answers = (
        (reviewed.is_some(), review),
        past.approval
            .as_ref()
            .filter(|_| is_judged && has_approval(record))
            .map(|last| last.without_validation),
        past.rejection.as_ref().is_some_and(|last| is_head(last.commit.as_deref())),
        is_head(failed.as_deref()),
        past.failed_merges.min(2),
        past.last_failed_merge.filter(|_| is_fixable),
        past.blocks_since_human.min(2),
        past.by_planner || is_planned(world),
        validated.map(|last| (&last.commit, last.result, &last.gate, &last.head, &last.settings)),
        gate.map(|change| (&change.commit, &change.before, &change.after, change.accepted.is_some())),
    );
    form.add("judgements", &answers);
}

/// True if there is a plan, whoever has done something with the task.
fn is_planned(world: &World) -> bool {
    world.state.board.goal.ready().is_some_and(|goal| goal.planned)
}

/// True if it was blocked after the planner's session began, which makes it another question.
fn is_blocked_since_planning(world: &World, past: &Past<'_>) -> bool {
    let began = planners_session(world).filter(|session| knows_block(session)).map(|session| session.began);
    let blocked = past.last_block.as_ref().map(|block| block.time);
    began.zip(blocked).is_some_and(|(began, blocked)| blocked > began)
}

/// True if the session knows that a task is blocked: only then it matters when that was.
fn knows_block(session: &OpenSession) -> bool {
    let kinds = [TriggerKind::BlockedTasks, TriggerKind::HypothesisExhausted].map(|kind| kind.to_string());
    let is_block = |key: &String| kinds.iter().any(|kind| key.starts_with(kind.as_str()));
    session.about.is_empty() || session.about.iter().any(is_block)
}

/// The session of a planner that is planning: no rule asks for one that has ended.
fn planners_session(world: &World) -> Option<&OpenSession> {
    let entry = world.state.board.agents.ready()?.get(&world.size.planner())?;
    entry.session.as_ref().filter(|_| entry.status == AgentStatus::Planning)
}

fn is_current(world: &World, agent: AgentId, generation: Option<Generation>) -> bool {
    let entry = world.state.board.agents.ready().and_then(|all| all.get(&agent));
    entry.is_some_and(|entry| entry.generation == generation)
}

/// What is free is free, whatever it did before: no rule asks. Agents here have no program, so that of the others than the
/// planner no rule asks for a session either.
fn agent(form: &mut Form, world: &World, name: &str, entry: &AgentRecord, triggers: &[Trigger]) {
    let is_free = matches!(entry.status, AgentStatus::Starting | AgentStatus::Idle | AgentStatus::Waiting);
    let status = Some(entry.status).filter(|_| !is_free);
    let session = planners_session(world).filter(|_| entry.role == Role::Planner).map(|session| {
        // What is blocked now is news for a session that began before, if that knows the task.
        let began_before = knows_block(session) && session.began < world.now;
        (matters(&session.about), open(&session.about, triggers), session.result.is_some(), began_before)
    });
    form.add_without(name, entry, &AGENT_NOISE);
    form.add("session", &(status, session));
}

/// What the keys are about, without the stamps by which they differ from earlier ones of the same matter.
fn matters(keys: &[String]) -> Vec<&str> {
    let mut all: Vec<&str> =
        keys.iter().map(|key| key.rsplit_once(':').map_or(key.as_str(), |(it, _)| it)).collect();
    all.sort_unstable();
    all
}

/// The places of those triggers that are still there: a stamp with a count that has grown never comes back.
fn open(keys: &[String], triggers: &[Trigger]) -> Vec<usize> {
    let places = (0..).zip(triggers).filter(|(_, trigger)| keys.contains(&trigger.key));
    places.map(|(place, _)| place).collect()
}

fn sprint(form: &mut Form, world: &World, triggers: &[Trigger]) {
    let Some(sprint) = world.state.board.sprint.ready() else { return };
    let exits = &sprint.planner_exits;
    let answers = (
        open(&sprint.seen_triggers, triggers),
        (exits.count, exits.woken_for.iter().filter(|_| exits.count > 0).collect::<Vec<_>>()),
        sprint.timeline.ended.is_some(),
    );
    form.add_without("sprint", sprint, &SPRINT_NOISE);
    form.add("planner", &answers);
}

/// What its supervisor knows of the planner's running session: whether it has a result, the triggers that are still
/// there, and the matters that it was started for.
type Planning = (bool, Vec<usize>, Vec<String>);

fn planning(world: &World, triggers: &[Trigger]) -> Option<Planning> {
    let (began, about) = world.planning.as_ref()?;
    let entry = world.state.board.agents.ready().and_then(|all| all.get(&world.size.planner()));
    let has_result = entry.and_then(|entry| entry.last_result).is_some_and(|last| last > *began);
    let keys: Vec<String> = about.iter().map(|trigger| trigger.key.clone()).collect();
    let about = about.iter().map(|trigger| format!("{} {}", trigger.kind, trigger.subject)).collect();
    Some((has_result, open(&keys, triggers), about))
}

/// The breaker counts up to three of a kind that it has a pattern for; of others it is only asked whether there is one.
fn seen_at_most(anomaly: &Anomaly) -> u32 {
    let has_no_pattern = [AnomalyType::ReviewDeadlock, AnomalyType::HypothesisExhaustion];
    let is_counted = !has_no_pattern.iter().any(|kind| anomaly.kind == kind.name());
    if is_counted { 3 } else { 1 }
}

fn anomalies(world: &World) -> BTreeMap<String, u32> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for anomaly in &world.state.journal.anomalies {
        let count = counts.entry(format!("{:?} {:?}", anomaly.kind, anomaly.task)).or_default();
        *count = (*count + 1).min(seen_at_most(anomaly));
    }
    counts
}
