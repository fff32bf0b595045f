//! Tool calls that wait for their answers, to compare a call and its answer with others: equal ones have
//! equal numbers. Keeps numbers, not texts, and a bounded number of them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::event::{ClientEvent, ToolEnd, ToolExchange};
use super::tool_answer::{folded, runs_liza};

/// The largest number of calls that wait at the same time.
const OPEN_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct OpenCalls(VecDeque<(String, OpenCall)>);

#[derive(Debug, Clone, Copy)]
struct OpenCall {
    number: u64,
    runs_liza: bool,
}

impl OpenCalls {
    /// Remembers a call; the same one may be reported several times.
    pub(super) fn call(&mut self, id: Option<String>, name: &str, input: Option<&Value>) {
        let id = id.unwrap_or_default();
        self.0.retain(|(known, _)| *known != id || id.is_empty());
        if self.0.len() >= OPEN_MAX {
            self.0.pop_front();
        }
        self.0.push_back((id, OpenCall::new(name, input)));
    }

    /// The answer to a call; one without a name is that of the first call that waits.
    pub(super) fn answer(
        &mut self,
        id: Option<&str>,
        end: ToolEnd,
        answer: &[Option<&Value>],
    ) -> ClientEvent {
        let is_it = |(known, _): &(String, OpenCall)| id.is_none_or(|id| known == id);
        let place = self.0.iter().position(is_it);
        let call = place.and_then(|place| self.0.remove(place)).map(|(_, call)| call);
        answered(call, end, answer)
    }
}

impl OpenCall {
    fn new(name: &str, input: Option<&Value>) -> Self {
        let (mut hasher, input) = (DefaultHasher::new(), input.map(ToString::to_string));
        (name, &input).hash(&mut hasher);
        Self { number: hasher.finish(), runs_liza: input.is_some_and(|input| runs_liza(&input)) }
    }
}

/// The answer to a call that is reported together with it.
pub(super) fn exchange(
    name: &str,
    input: Option<&Value>,
    end: ToolEnd,
    answer: &[Option<&Value>],
) -> ClientEvent {
    answered(Some(OpenCall::new(name, input)), end, answer)
}

fn answered(call: Option<OpenCall>, end: ToolEnd, answer: &[Option<&Value>]) -> ClientEvent {
    let number = answer_number(end, answer);
    let exchange = call.map(|call| ToolExchange { call: call.number, answer: number });
    let mut shown = folded(end, answer, call.is_some_and(|call| call.runs_liza));
    shown.exchange = exchange;
    ClientEvent::Answered(shown)
}

/// `None` if the program says nothing about the answer.
fn answer_number(end: ToolEnd, parts: &[Option<&Value>]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let known: Vec<Option<String>> = parts.iter().map(|part| part.map(ToString::to_string)).collect();
    known.iter().any(Option::is_some).then(|| {
        (end, known).hash(&mut hasher);
        hasher.finish()
    })
}
