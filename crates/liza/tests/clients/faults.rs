//! What goes wrong between a client and its model.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::json;

use crate::fixture::Client;
use crate::goal::{reach_goal_with, work};
use crate::model_server::{Conversation, Move};

/// The script, with this fault in place of the first answer of every session.
fn first_answer_is(fault: Move) -> impl Fn(&Conversation) -> Move + Send + Sync + 'static {
    let seen = Mutex::new(BTreeSet::new());
    move |conversation| {
        let is_first = conversation.tool_results == 0;
        match is_first && seen.lock().unwrap().insert(conversation.text.clone()) {
            true => fault.clone(),
            false => work(conversation),
        }
    }
}

fn overloaded() -> Move {
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    Move::Fail(529, vec![("retry-after", "0".to_owned())], json!({"type": "error", "error": error}))
}

/// Covers: SE-11
#[test]
fn needs_codex_an_overloaded_model_is_asked_again() {
    reach_goal_with(first_answer_is(overloaded()), &[Client::Codex], &["--cli", "codex"]);
}

/// Covers: SE-11
#[test]
fn needs_codex_an_answer_that_breaks_off_is_asked_for_again() {
    reach_goal_with(first_answer_is(Move::Cut), &[Client::Codex], &["--cli", "codex"]);
}
