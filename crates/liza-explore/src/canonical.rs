//! One fingerprint for all boards on which the same can happen.
//!
//! Left out: texts, figures that only grow, revisions. Replaced: histories by their answers to the rules, times by
//! their distance from now, commits by their order of appearance, fencing tokens by whether they are current. A test
//! compares the outcomes of every command on boards with equal fingerprints.

use std::collections::BTreeMap;
use std::fmt::Write;

use liza_core::model::{
    AgentId, AgentRecord, AgentStatus, Generation, OpenSession, Past, REVIEW_DEADLOCK, Role, Sha, Status,
    TaskId, TaskRecord, Timestamp,
};
use liza_core::rules::triggers::{Trigger, TriggerKind, planner_triggers};
use xxhash_rust::xxh3::xxh3_128;

use crate::text::{text, without};
use crate::world::{World, sha};

/// The grace of a lease, in seconds.
pub(crate) const GRACE: i64 = 60;

/// Keys of a task that no rule asks for, and those of which only the answers of `task` are asked.
const TASK_NOISE: [&str; 18] = [
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
    "reservation",
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
const PAST_NOISE: [&str; 21] = [
    "unblocked_by_human",
    "claims",
    "first_claim",
    "submissions",
    "last_submission",
    "approvals",
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

pub fn fingerprint(world: &World) -> u128 {
    xxh3_128(canonical(world).as_bytes())
}

/// The board in its normal form, for people who compare two.
pub fn canonical(world: &World) -> String {
    let board = &world.state.board;
    let triggers = planner_triggers(&world.state, world.now);
    let mut form = String::with_capacity(2_048);
    for (id, body) in world.state.bodies() {
        add(&mut form, id.as_str(), &task(world, id, body.record()));
    }
    // The order of registration decides nothing.
    let agents: BTreeMap<&AgentId, &AgentRecord> = board.agents.ready().into_iter().flatten().collect();
    for (id, entry) in agents {
        add(&mut form, &id.to_string(), &agent(world, entry, &triggers));
    }
    add(&mut form, "sprint", &sprint(world, &triggers));
    let goal = board.goal.ready();
    let tested = goal.and_then(|goal| goal.head_test.as_ref());
    let tested = tested.map(|test| (&test.head, test.failure.is_some(), &test.settings));
    let goal =
        goal.map(|goal| (goal.status, goal.planned, &goal.integration_head, tested, goal.gate_version));
    add(&mut form, "goal", &text(&goal));
    add(&mut form, "planning", &planning(world, &triggers));
    add(&mut form, "breaker", &text(&board.circuit_breaker.ready().map(|breaker| breaker.status)));
    add(&mut form, "anomalies", &text(&anomalies(world)));
    add(&mut form, "is_edited", &text(&world.is_edited));
    add(&mut form, "heads", &text(&heads(world)));
    let lost = world.unrecorded.as_ref().map(|(merge, _)| (&merge.task, &merge.commit));
    add(&mut form, "unrecorded", &text(&lost));
    add(&mut form, "integration", &text(&sha(world.integration)));
    rename(&form, world.now)
}

fn add(form: &mut String, name: &str, part: &str) {
    let _ = writeln!(form, "{name}: {part}");
}

fn task(world: &World, id: &TaskId, record: &TaskRecord) -> String {
    let past = record.past();
    let reservation = record.reservation.as_ref().map(|known| {
        (known.by, known.expires, &known.base_commit, is_current(world, known.by, Some(known.generation)))
    });
    let answers = (
        reservation,
        // With one coder, no rule asks who has failed.
        record.failed_by.as_ref().filter(|_| world.size.coders > 1),
        record.blocked_reason.as_ref().map(|reason| reason == REVIEW_DEADLOCK),
        record.is_blocked_draft(),
        is_blocked_since_planning(world, record),
    );
    let kept = without(&text(record), &TASK_NOISE);
    format!("{kept} {} {}", text(&answers), answers_of(world, id, record, &past))
}

/// The answers of a task's history. A verdict or a failed merge is about one commit: no rule asks for it once that is
/// neither submitted nor in the worktree.
fn answers_of(world: &World, id: &TaskId, record: &TaskRecord, past: &Past<'_>) -> String {
    let head = world.worktrees.get(id).map(|head| sha(*head));
    let is_known = |commit: Option<&str>| {
        let known = [head.as_ref(), record.review_commit.as_ref()].into_iter().flatten();
        commit.is_some_and(|commit| known.map(Sha::as_str).any(|known| known == commit))
    };
    let failed = past.failed_merge.and_then(|event| event.text("commit"));
    let is_fixable = record.status == Some(Status::IntegrationFailed) && past.failed_merges < 2;
    let answers = (
        past.approval.as_ref().filter(|approval| is_known(approval.commit.as_deref())),
        past.rejection.as_ref().filter(|rejection| is_known(rejection.commit.as_deref())),
        past.failed_merges.min(2),
        failed.filter(|commit| is_known(Some(commit))),
        past.last_failed_merge.filter(|_| is_fixable),
        past.blocks_since_human.min(2),
        past.by_planner || is_planned(world),
    );
    format!("{} {}", without(&text(past), &PAST_NOISE), text(&answers))
}

/// True if there is a plan, whoever has done something with the task.
fn is_planned(world: &World) -> bool {
    world.state.board.goal.ready().is_some_and(|goal| goal.planned)
}

/// True if it was blocked after the planner's session began, which makes it another question.
fn is_blocked_since_planning(world: &World, record: &TaskRecord) -> bool {
    let began = planners_session(world).filter(|session| knows_block(session)).map(|session| session.began);
    let blocked = record.past().last_block.map(|block| block.time);
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
fn agent(world: &World, entry: &AgentRecord, triggers: &[Trigger]) -> String {
    let is_free = matches!(entry.status, AgentStatus::Starting | AgentStatus::Idle | AgentStatus::Waiting);
    let status = Some(entry.status).filter(|_| !is_free);
    let session = planners_session(world).filter(|_| entry.role == Role::Planner).map(|session| {
        // What is blocked now is news for a session that began before, if that knows the task.
        let began_before = knows_block(session) && session.began < world.now;
        (matters(&session.about), open(&session.about, triggers), session.result.is_some(), began_before)
    });
    format!("{} {}", without(&text(entry), &AGENT_NOISE), text(&(status, session)))
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

fn sprint(world: &World, triggers: &[Trigger]) -> String {
    let Some(sprint) = world.state.board.sprint.ready() else { return String::new() };
    let exits = &sprint.planner_exits;
    let answers = (
        open(&sprint.seen_triggers, triggers),
        (exits.count, &exits.woken_for),
        sprint.timeline.ended.is_some(),
    );
    format!("{} {}", without(&text(sprint), &SPRINT_NOISE), text(&answers))
}

/// The running session of the planner, as its supervisor knows it.
fn planning(world: &World, triggers: &[Trigger]) -> String {
    let entry = world.state.board.agents.ready().and_then(|all| all.get(&world.size.planner()));
    text(&world.planning.as_ref().map(|(began, about)| {
        let has_result = entry.and_then(|entry| entry.last_result).is_some_and(|last| last > *began);
        let keys: Vec<String> = about.iter().map(|trigger| trigger.key.clone()).collect();
        let about: Vec<String> =
            about.iter().map(|trigger| format!("{} {}", trigger.kind, trigger.subject)).collect();
        (has_result, open(&keys, triggers), about)
    }))
}

fn anomalies(world: &World) -> BTreeMap<String, u32> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for anomaly in &world.state.journal.anomalies {
        let count = counts.entry(format!("{:?} {:?}", anomaly.kind, anomaly.task)).or_default();
        *count = (*count + 1).min(3);
    }
    counts
}

fn heads(world: &World) -> BTreeMap<String, String> {
    let heads = world.worktrees.iter();
    heads.map(|(task, head)| (task.to_string(), sha(*head).to_string())).collect()
}

/// Replaces times by their distance from now, and commits by their order of appearance.
fn rename(form: &str, now: Timestamp) -> String {
    let mut commits: Vec<&str> = Vec::new();
    let mut out = String::with_capacity(form.len());
    for (at, part) in form.split('"').enumerate() {
        if at > 0 {
            out.push('"');
        }
        if part.len() == 20 && part.starts_with("20") && part.ends_with('Z') {
            out.push_str(&distance(part, now));
        } else if let Some((before, commit)) = with_commit(part) {
            let known = commits.iter().position(|known| *known == commit);
            let number = known.unwrap_or_else(|| {
                commits.push(commit);
                commits.len() - 1
            });
            let _ = write!(out, "{before}c{number}");
        } else {
            out.push_str(part);
        }
    }
    out
}

/// A commit, alone or at the end of a name.
fn with_commit(part: &str) -> Option<(&str, &str)> {
    let (before, commit) = part.split_at_checked(part.len().checked_sub(40)?)?;
    commit.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some((before, commit))
}

fn distance(text: &str, now: Timestamp) -> String {
    let time: Timestamp = text.parse().unwrap_or(now);
    let distance = time.unix() - now.unix();
    // Beyond the grace of a lease and the grace of a failed merge nothing changes any more.
    if distance < -GRACE { "over".to_owned() } else { distance.to_string() }
}
