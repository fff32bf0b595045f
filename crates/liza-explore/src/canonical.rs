//! One fingerprint for all boards on which the same can happen.
//!
//! Left out: texts, figures that only grow, revisions. Replaced: histories by their answers to the rules, times by
//! their distance from now, commits by their order of appearance, fencing tokens by whether they are current. A test
//! compares the outcomes of every command on boards with equal fingerprints.

use std::collections::BTreeMap;

use liza_core::model::{AgentId, AgentRecord, Generation, TaskRecord, Timestamp};
use liza_core::rules::triggers::planner_triggers;
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::world::World;

/// The grace of a lease, in seconds.
const GRACE: i64 = 60;

/// Keys of a task that no rule asks for.
const TASK_NOISE: [&str; 15] = [
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
];
const AGENT_NOISE: [&str; 7] =
    ["terminal", "heartbeat", "last_result", "iterations_total", "usage", "last_session", "context_percent"];
const SPRINT_NOISE: [&str; 6] = ["metrics", "usage", "today", "timeline", "retrospective", "notes_read"];
/// Answers of a history that only figures ask for.
const PAST_NOISE: [&str; 12] = [
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
];

pub fn fingerprint(world: &World) -> u128 {
    xxh3_128(canonical(world).as_bytes())
}

/// The board in its normal form, for people who compare two.
pub fn canonical(world: &World) -> String {
    let mut board = Map::new();
    let triggers = planner_triggers(&world.state, world.now);
    let current: Vec<&str> = triggers.iter().map(|trigger| trigger.key.as_str()).collect();
    let tasks: Map<String, Value> =
        world.state.bodies().map(|(id, body)| (id.to_string(), task(world, body.record()))).collect();
    board.insert("tasks".to_owned(), Value::Object(tasks));
    board.insert("agents".to_owned(), agents(world, &current));
    board.insert("sprint".to_owned(), sprint(world, &current));
    let goal = world.state.board.goal.ready();
    let tested = goal
        .and_then(|goal| goal.head_test.as_ref())
        .map(|test| (&test.head, test.failure.is_some(), &test.settings));
    board.insert(
        "goal".to_owned(),
        json!(goal.map(|goal| (goal.status, &goal.integration_head, tested, goal.gate_version))),
    );
    board.insert("planning".to_owned(), planning(world, &current));
    board.insert("breaker".to_owned(), json!(world.state.board.circuit_breaker.ready().map(|it| it.status)));
    board.insert("anomalies".to_owned(), anomalies(world));
    board.insert("is_edited".to_owned(), json!(world.is_edited));
    board.insert("heads".to_owned(), json!(heads(world)));
    let lost = world.unrecorded.as_ref().map(|(merge, _)| (&merge.task, &merge.commit));
    board.insert("unrecorded".to_owned(), json!(lost));
    board.insert("integration".to_owned(), json!(crate::world::sha(world.integration)));
    rename(&Value::Object(board).to_string(), world.now)
}

fn without(value: Value, noise: &[&str]) -> Map<String, Value> {
    let Value::Object(mut map) = value else { return Map::new() };
    noise.iter().for_each(|key| drop(map.remove(*key)));
    map
}

fn task(world: &World, record: &TaskRecord) -> Value {
    let mut map = without(json!(record), &TASK_NOISE);
    let mut past = without(json!(record.past()), &PAST_NOISE);
    if let Some(Value::Object(failed)) = past.get_mut("failed_merge") {
        failed.retain(|key, _| key == "commit");
    }
    past.insert("failed_merges".to_owned(), json!(record.past().failed_merges.min(2)));
    past.insert("blocks_since_human".to_owned(), json!(record.past().blocks_since_human.min(2)));
    past.insert("over".to_owned(), json!(traces(record)));
    past.insert("was".to_owned(), json!(record.past().last_block.and_then(|block| block.from)));
    past.insert("blocked_since".to_owned(), json!(is_blocked_since_planning(world, record)));
    if let Some(Value::Object(block)) = past.get_mut("block_since_start") {
        block.retain(|key, _| key == "by");
    }
    map.insert("past".to_owned(), Value::Object(past));
    if let (Some(Value::Object(reservation)), Some(known)) = (map.get_mut("reservation"), &record.reservation)
    {
        reservation
            .insert("generation".to_owned(), json!(is_current(world, known.by, Some(known.generation))));
    }
    Value::Object(map)
}

/// Whether the session of each agent on this task is over.
fn traces(record: &TaskRecord) -> BTreeMap<String, (bool, bool)> {
    let past = record.past();
    let all = past.traces.iter().filter(|(who, _)| who.parse::<AgentId>().is_ok());
    all.map(|(who, trace)| ((*who).to_owned(), (trace.is_result, trace.is_session_over))).collect()
}

/// True if it was blocked after the planner's session began, which makes it another question.
fn is_blocked_since_planning(world: &World, record: &TaskRecord) -> bool {
    let entry = world.state.board.agents.ready().and_then(|all| all.get(&world.size.planner()));
    let began = entry.and_then(|entry| entry.session.as_ref()).map(|session| session.began);
    let blocked = record.past().last_block.map(|block| block.time);
    began.zip(blocked).is_some_and(|(began, blocked)| blocked > began)
}

fn is_current(world: &World, agent: AgentId, generation: Option<Generation>) -> bool {
    let entry = world.state.board.agents.ready().and_then(|all| all.get(&agent));
    entry.is_some_and(|entry| entry.generation == generation)
}

fn agents(world: &World, current: &[&str]) -> Value {
    let entries = world.state.board.agents.ready().into_iter().flatten();
    let entry = |(id, entry): (&AgentId, &AgentRecord)| {
        let mut map = without(json!(entry), &AGENT_NOISE);
        map.insert("generation".to_owned(), json!(true));
        if let Some(Value::Object(session)) = map.get_mut("session") {
            retain(session, "about", current);
            session.remove("began");
            session.insert(
                "began_before".to_owned(),
                json!(*id == world.size.planner() && began_before(entry, world)),
            );
            let has_result = session.remove("result").is_some();
            session.insert("has_result".to_owned(), json!(has_result));
        }
        (id.to_string(), Value::Object(map))
    };
    // The order of registration decides nothing.
    let sorted: BTreeMap<String, Value> = entries.map(entry).collect();
    json!(sorted)
}

/// True if the planner's session began before now: what is blocked now is news for it.
fn began_before(entry: &AgentRecord, world: &World) -> bool {
    entry.session.as_ref().is_some_and(|session| session.began < world.now)
}

fn sprint(world: &World, current: &[&str]) -> Value {
    let mut map = without(json!(world.state.board.sprint.ready()), &SPRINT_NOISE);
    retain(&mut map, "seen_triggers", current);
    if let Some(Value::Object(exits)) = map.get_mut("planner_exits") {
        exits.retain(|key, _| key == "count" || key == "woken_for");
    }
    let ended = world.state.board.sprint.ready().and_then(|sprint| sprint.timeline.ended).is_some();
    map.insert("ended".to_owned(), json!(ended));
    Value::Object(map)
}

/// Keeps the keys of matters that are still open: a stamp with a count that has grown never comes back.
fn retain(map: &mut Map<String, Value>, list: &str, current: &[&str]) {
    let Some(Value::Array(keys)) = map.get_mut(list) else { return };
    keys.retain(|key| key.as_str().is_some_and(|key| current.contains(&key)));
    for key in keys.iter_mut() {
        let index = current.iter().position(|known| Some(*known) == key.as_str());
        *key = json!(index);
    }
    keys.sort_by_key(Value::to_string);
}

fn planning(world: &World, current: &[&str]) -> Value {
    let entry = world.state.board.agents.ready().and_then(|all| all.get(&world.size.planner()));
    json!(world.planning.as_ref().map(|(began, triggers)| {
        let has_result = entry.and_then(|entry| entry.last_result).is_some_and(|last| last > *began);
        let about: Vec<bool> =
            triggers.iter().map(|trigger| current.contains(&trigger.key.as_str())).collect();
        (has_result, about)
    }))
}

fn anomalies(world: &World) -> Value {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for anomaly in &world.state.journal.anomalies {
        let count = counts.entry(format!("{:?} {:?}", anomaly.kind, anomaly.task)).or_default();
        *count = (*count + 1).min(3);
    }
    json!(counts)
}

fn heads(world: &World) -> BTreeMap<String, String> {
    let heads = world.worktrees.iter();
    heads.map(|(task, head)| (task.to_string(), crate::world::sha(*head).to_string())).collect()
}

/// Replaces times by their distance from now, and commits by their order of appearance.
fn rename(text: &str, now: Timestamp) -> String {
    let mut commits: Vec<&str> = Vec::new();
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            out.push('"');
        }
        match (part.len(), part.as_bytes().last()) {
            (20, Some(b'Z')) if part.starts_with("20") => out.push_str(&distance(part, now)),
            (40, _) if part.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let known = commits.iter().position(|commit| *commit == part);
                let number = known.unwrap_or_else(|| {
                    commits.push(part);
                    commits.len() - 1
                });
                out.push_str(&format!("c{number}"));
            }
            _ => out.push_str(part),
        }
    }
    out
}

fn distance(text: &str, now: Timestamp) -> String {
    let time: Timestamp = text.parse().unwrap_or(now);
    let distance = time.unix() - now.unix();
    // Beyond the grace of a lease and the grace of a failed merge nothing changes any more.
    if distance <= -GRACE { "over".to_owned() } else { distance.to_string() }
}
