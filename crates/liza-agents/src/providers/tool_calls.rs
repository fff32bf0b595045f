//! Tool calls that wait for their answers, so that a call and its answer can be compared with others: equal ones have equal numbers.
//!
//! Keeps numbers, not texts, and a bounded number of them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::event::{ClientEvent, ToolExchange};

/// The largest number of calls that wait at the same time.
const OPEN_MAX: usize = 64;

/// Calls that wait for their answers.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(VecDeque<(String, u64)>);

impl OpenCalls {
    /// Remembers a call; the same one may be reported several times.
    pub(super) fn call(&mut self, id: Option<String>, name: &str, input: Option<&Value>) {
        let id = id.unwrap_or_default();
        self.0.retain(|(known, _)| *known != id || id.is_empty());
        if self.0.len() >= OPEN_MAX {
            self.0.pop_front();
        }
        self.0.push_back((id, call_number(name, input)));
    }

    /// The call with its answer; an answer without a name is that of the first call that waits.
    pub(super) fn answer(&mut self, id: Option<&str>, answer: &[Option<&Value>]) -> Option<ClientEvent> {
        let is_it = |(known, _): &(String, u64)| id.is_none_or(|id| known == id);
        let place = self.0.iter().position(is_it)?;
        let (_, call) = self.0.remove(place)?;
        Some(ClientEvent::Exchange(ToolExchange { call, answer: answer_number(answer) }))
    }
}

/// A call that is reported together with its answer.
pub(super) fn exchange(name: &str, input: Option<&Value>, answer: &[Option<&Value>]) -> ClientEvent {
    ClientEvent::Exchange(ToolExchange { call: call_number(name, input), answer: answer_number(answer) })
}

fn call_number(name: &str, input: Option<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, input.map(ToString::to_string)).hash(&mut hasher);
    hasher.finish()
}

/// `None` if the program says nothing about the answer.
fn answer_number(parts: &[Option<&Value>]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let known: Vec<Option<String>> = parts.iter().map(|part| part.map(ToString::to_string)).collect();
    known.iter().any(Option::is_some).then(|| {
        known.hash(&mut hasher);
        hasher.finish()
    })
}
