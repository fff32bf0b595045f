//! The same board with other words: other times, or other names of agents.

use std::sync::Arc;

use liza_core::model::{Board, Loaded};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::world::World;

/// The same board, on which each word is replaced.
pub(crate) fn with_words(world: &World, word: &impl Fn(&str) -> String) -> World {
    let mut other = world.clone();
    replace(&mut Arc::make_mut(&mut other.state).board, word);
    other
}

fn replace(board: &mut Board, word: &impl Fn(&str) -> String) {
    if let Loaded::Ready(agents) = &mut board.agents {
        *agents = replaced(agents, word);
    }
    if let Loaded::Ready(sprint) = &mut board.sprint {
        *sprint = replaced(sprint, word);
    }
    for id in board.tasks.keys().cloned().collect::<Vec<_>>() {
        let Ok(record) = board.body(&id).map(|body| replaced(body.record(), word)) else { continue };
        board.put(id, record);
    }
}

/// The value with other words: in its text, what is between quotes.
fn replaced<T: Serialize + DeserializeOwned>(value: &T, word: &impl Fn(&str) -> String) -> T {
    let text = serde_json::to_string(value).unwrap();
    let words: Vec<String> = text.split('"').map(word).collect();
    serde_json::from_str(&words.join("\"")).unwrap()
}
