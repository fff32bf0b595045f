//! What every command writes: each changed field, the log entry and the effects, as a readable list.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use liza_core::model::{Actor, AnomalyType, BranchMerge, ClientRecord, Fields, FileVersion, State, Status};
use liza_core::protocol::{
    AcceptIntegration, AdoptIntegration, Answer, Command, CountPlannerExit, Decided, Finish, LogAnomaly,
    Operation, RefundSession, Reply, RetryValidation, TakeHandoff, UseClient, apply,
};
use liza_testkit::team::*;
use serde_json::{Value, json, to_value};

use crate::matrix::{board_for, callers, other_commands, task_commands, title};

/// The fields of a value by their paths.
fn flat(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        Value::Null => return,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            fields.insert(path.to_owned(), value.to_string());
            return;
        }
    };
    below.iter().for_each(|(key, value)| flat(&format!("{path}.{key}"), value, fields));
}

/// The sections of a board that a change can touch, or the part of them that it does.
fn fields(state: &State) -> BTreeMap<String, String> {
    let board = &state.board;
    let tasks = state.bodies().map(|(id, body)| (id.to_string(), to_value(body.record()).unwrap()));
    let whole = json!({
        "version": board.version.0, "tasks": tasks.collect::<serde_json::Map<_, _>>(),
        "agents": board.agents.ready(), "goal": board.goal.ready(), "sprint": board.sprint.ready(),
        "circuit_breaker": board.circuit_breaker.ready(), "discovered": board.discovered.ready(),
        "handoff": board.handoff.ready(), "direct_edits": board.direct_edits.ready(),
    });
    let mut fields = BTreeMap::new();
    flat("", &whole, &mut fields);
    fields.retain(|path, _| !path.ends_with(".revision"));
    fields
}

fn written(state: &State, decided: &Decided<Reply>) -> String {
    let change = &decided.change;
    let before = fields(state);
    let mut after = state.clone();
    after.apply(change);
    let after = fields(&after);
    let mut text = String::new();
    for (path, value) in after.iter().filter(|(path, value)| before.get(*path) != Some(value)) {
        writeln!(text, "    {} = {value}", &path[1..]).unwrap();
    }
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        writeln!(text, "    {} is removed", &path[1..]).unwrap();
    }
    change.appended.iter().for_each(|entry| writeln!(text, "    appends {entry:?}").unwrap());
    change.stop_files.iter().for_each(|file| writeln!(text, "    creates {file:?}").unwrap());
    change.effects.iter().for_each(|effect| writeln!(text, "    effect {effect:?}").unwrap());
    if let Ok(reply) = &decided.answer {
        writeln!(text, "    replies {reply:?}").unwrap();
    }
    if let Some(log) = &change.log {
        let task = log.task.as_ref().map_or("no task", |task| task.as_str());
        writeln!(text, "    log: {} {} ({task}): {}", log.agent, log.action, log.detail).unwrap();
    }
    text
}

/// Gives the fields that are seldom set a value, so that a command that loses one shows.
fn busy(mut state: State) -> State {
    state.board.version = FileVersion::FIRST;
    goal(&mut state).planned = false;
    let sprint = sprint(&mut state);
    (sprint.sessions.planner, sprint.sessions.shared) = (3, 2);
    sprint.sessions.tasks.insert(task("t"), 1);
    sprint.planner_exits.count = 4;
    sprint.seen_triggers.push("seen".to_owned());
    sprint.notes_read.insert(agent("planner-1"), 0);
    sprint.clients.insert("claude".to_owned(), ClientRecord::default());
    agents(&mut state).values_mut().for_each(|entry| entry.heartbeat = Some(ago(1)));
    edit_task(&mut state, "t", |record| {
        (record.crashes, record.review_cycles_total) = (Some(1), Some(1));
        record.review_dropped_by = Some(vec![agent("code-reviewer-2")]);
    });
    state
}

/// What a command writes in each state, by a person and by the first other caller that may send it.
fn writes(command: impl Fn(&Actor) -> Command, state: impl Fn(Status, &Command) -> State) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for &status in Status::ALL {
        let mut is_seen = false;
        for (name, actor) in callers() {
            let command = command(&actor);
            let state = busy(state(status, &command));
            let Ok(decided) = apply(&state.board, &request(actor, command)) else { continue };
            if actor != Actor::Human && std::mem::replace(&mut is_seen, true) {
                continue;
            }
            let text = written(&state, &decided);
            let label = format!("{status} by {name}");
            match groups.iter_mut().find(|(known, _)| *known == text) {
                Some((_, labels)) => labels.push(label),
                None => groups.push((text, vec![label])),
            }
        }
    }
    groups.iter().map(|(text, labels)| format!("  {}\n{text}", labels.join(", "))).collect()
}

/// The commands that the matrix leaves out, about the task or the team.
fn more_commands(actor: &Actor) -> Vec<Command> {
    let (t, text) = (|| task("t"), || "text".to_owned());
    let agent = actor.agent().unwrap_or(agent("coder-1"));
    let merged = vec![BranchMerge { task: t(), commit: sha(WORK), merge_commit: sha(HEAD) }];
    vec![
        Command::from(Answer { task: t(), text: text() }),
        Command::from(RetryValidation { task: t() }),
        Command::from(TakeHandoff { task: t() }),
        Command::from(RefundSession { agent, task: Some(t()) }),
        Command::from(RefundSession { agent, task: None }),
        Command::from(UseClient { agent, client: text() }),
        Command::from(AcceptIntegration { head: sha(BASE), detail: text(), merged }),
        Command::from(AcceptIntegration { head: sha(BASE), detail: text(), merged: Vec::new() }),
        Command::from(AdoptIntegration { head: sha(BASE) }),
        Command::from(Finish { head: sha(BASE), detail: text() }),
        Command::from(CountPlannerExit {
            agent,
            last_words: Some(text()),
            woken_because: Some(text()),
            woken_for: vec![text()],
            pause: liza_core::model::Seconds(0),
        }),
        Command::from(LogAnomaly {
            kind: AnomalyType::HypothesisExhaustion,
            task: Some(t()),
            details: Fields::new(),
        }),
    ]
}

/// Covers: PV-06, TS-01
#[test]
fn every_command_writes_what_is_listed() {
    let mut text = String::from("What each command writes, by the states of the task and the caller.\n\n");
    for index in 0..task_commands(&Actor::Human).len() {
        writeln!(text, "== {}", title(&task_commands(&Actor::Human)[index])).unwrap();
        text.push_str(&writes(|actor| task_commands(actor)[index].clone(), board_for));
    }
    for index in 0..other_commands(&Actor::Human).len() {
        writeln!(text, "== {}", other_commands(&Actor::Human)[index].verb()).unwrap();
        text.push_str(&writes(
            |actor| other_commands(actor)[index].clone(),
            |_, _| state_with(Status::Merged),
        ));
    }
    for index in 0..more_commands(&Actor::Human).len() {
        writeln!(text, "== {}", more_commands(&Actor::Human)[index].verb()).unwrap();
        text.push_str(&writes(|actor| more_commands(actor)[index].clone(), board_for));
    }
    insta::assert_snapshot!("writes", text);
}
