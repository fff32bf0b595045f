//! Guards inside a session: a model that repeats itself, a conversation that is compacted again and again, a
//! used-up budget. A fold over the events of a session: no clock, no IO. It says that a session must end and
//! why; its supervisor ends it.

use liza_core::model::{Price, SpendingLimit, Usage};
use serde::{Deserialize, Serialize};

use super::event::{ClientEvent, ToolExchange};
use super::usage::SessionUsage;

/// Equal tool calls in a row with equal answers that end a session.
const MAX_REPEATS: u32 = 20;

/// The same if the program does not report the tool's answer: such calls may wait for something that goes on.
const MAX_BLIND_REPEATS: u32 = 100;

/// A session ends when its conversation is compacted more often.
const MAX_COMPACTIONS: u32 = 3;

/// The reason why a session must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuardStop {
    /// The same tool call in a row, this often.
    Repeats(u32),
    /// Its conversation was compacted this often.
    Compactions(u32),
    Budget,
}

impl GuardStop {
    pub fn reason(self) -> String {
        match self {
            GuardStop::Repeats(times) => {
                format!("it made the same tool call {times} times in a row and learned nothing new")
            }
            GuardStop::Compactions(times) => {
                format!(
                    "its conversation was compacted {times} times: the task does not fit into one session"
                )
            }
            GuardStop::Budget => "a budget is used up".to_owned(),
        }
    }
}

/// The amount that a session may use before a budget is used up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Allowance {
    /// The rest of the budgets.
    pub left: SpendingLimit,
    /// The price of its tokens, if its program does not report the cost.
    pub price: Option<Price>,
    /// The usage of the conversation that it resumes, by earlier sessions.
    pub before: Usage,
}

impl Allowance {
    fn is_used_up(&self, used: &SessionUsage) -> bool {
        let usage = &used.usage;
        let priced = || self.price.map_or(0.0, |price| price.cost(usage));
        let cost = usage.dollars().unwrap_or_else(priced);
        self.left.dollars.is_some_and(|left| cost >= left)
            || self.left.tokens.is_some_and(|left| usage.tokens() >= left)
    }
}

/// The memory of the guards about one session.
#[derive(Debug, Default)]
pub struct SessionGuard {
    allowance: Allowance,
    last: Option<ToolExchange>,
    repeats: u32,
    compactions: u32,
}

impl SessionGuard {
    pub fn new(allowance: Allowance) -> Self {
        Self { allowance, ..Self::default() }
    }

    /// Sees an event, and the usage of the session with it; returns the reason to end the session.
    pub fn see(&mut self, event: &ClientEvent, used: &SessionUsage) -> Option<GuardStop> {
        match event {
            // Between two tool calls nothing is half done.
            ClientEvent::Tool(..) => self.allowance.is_used_up(used).then_some(GuardStop::Budget),
            ClientEvent::Answered(answer) => self.repeats(answer.exchange?),
            ClientEvent::Compacted => {
                self.compactions = self.compactions.saturating_add(1);
                (self.compactions > MAX_COMPACTIONS).then_some(GuardStop::Compactions(self.compactions))
            }
            ClientEvent::BudgetReached => Some(GuardStop::Budget),
            ClientEvent::Started(_)
            | ClientEvent::Text(_)
            | ClientEvent::Used(_)
            | ClientEvent::Note(_)
            | ClientEvent::Warning(_)
            | ClientEvent::Fault(_)
            | ClientEvent::Ended => None,
        }
    }

    fn repeats(&mut self, exchange: ToolExchange) -> Option<GuardStop> {
        self.repeats = if self.last == Some(exchange) { self.repeats.saturating_add(1) } else { 1 };
        self.last = Some(exchange);
        let limit = if exchange.answer.is_some() { MAX_REPEATS } else { MAX_BLIND_REPEATS };
        (self.repeats >= limit).then_some(GuardStop::Repeats(self.repeats))
    }
}

#[cfg(test)]
mod tests {
    use liza_core::model::Usage;

    use super::*;
    use crate::providers::event::ToolAnswer;

    fn used(input: u64, cost_usd: f64) -> SessionUsage {
        let usage = Usage { input, cost_usd, ..Usage::default() };
        SessionUsage { usage, ..SessionUsage::default() }
    }

    /// The first event that ends a session, counted from 1, and the reason.
    fn stop(events: impl IntoIterator<Item = ClientEvent>) -> Option<(usize, GuardStop)> {
        let mut guard = SessionGuard::default();
        let seen =
            |(place, event): (usize, ClientEvent)| Some((place + 1, guard.see(&event, &used(1, 1.0))?));
        events.into_iter().enumerate().find_map(seen)
    }

    fn exchange(call: u64, answer: Option<u64>) -> ClientEvent {
        let exchange = Some(ToolExchange { call, answer });
        ClientEvent::Answered(ToolAnswer { exchange, ..ToolAnswer::default() })
    }

    /// Covers: AX-29
    #[test]
    fn equal_calls_with_equal_answers_in_a_row_end_a_session() {
        let equal = |times: usize| std::iter::repeat_n(exchange(1, Some(2)), times);
        assert_eq!(stop(equal(20)), Some((20, GuardStop::Repeats(20))));
        assert_eq!(stop(equal(19)), None);
        assert_eq!(stop(equal(19).chain([exchange(1, Some(3))]).chain(equal(19))), None, "another answer");
        assert_eq!(stop(equal(19).chain([exchange(4, Some(2))]).chain(equal(19))), None, "another call");
        let texts = equal(40).flat_map(|event| [event, ClientEvent::Text("I try again.".to_owned())]);
        assert_eq!(stop(texts), Some((39, GuardStop::Repeats(20))), "words do not count");
        let waits = (0..1000).map(|answer| exchange(1, Some(answer)));
        assert_eq!(stop(waits), None, "it waits for something that goes on");
        let blind = std::iter::repeat_n(exchange(1, None), 200);
        assert_eq!(stop(blind), Some((100, GuardStop::Repeats(100))));
    }

    /// Covers: AX-29
    #[test]
    fn more_than_three_compactions_end_a_session() {
        let work = (0..9).flat_map(|number| [exchange(number, Some(1)), ClientEvent::Compacted]);
        assert_eq!(stop(work), Some((8, GuardStop::Compactions(4))));
    }

    /// Covers: AX-29
    #[test]
    fn at_the_end_of_a_budget_the_next_tool_call_ends_the_session() {
        let stops = |left: SpendingLimit, price: Option<Price>, used: &SessionUsage| {
            let mut guard = SessionGuard::new(Allowance { left, price, ..Allowance::default() });
            let text = guard.see(&ClientEvent::Text("I think.".to_owned()), used);
            assert_eq!(text, None, "not in the middle of an answer");
            guard.see(&ClientEvent::Tool("Bash".to_owned(), "ls".to_owned()), used).is_some()
        };
        let dollars = SpendingLimit { dollars: Some(2.0), tokens: None };
        let tokens = SpendingLimit { dollars: None, tokens: Some(1_000) };
        let price = Some(Price { input: 1.0, output: 10.0, cached: None });
        assert!(stops(dollars, None, &used(5, 2.0)) && !stops(dollars, None, &used(5, 1.99)));
        assert!(stops(tokens, None, &used(1_000, 0.0)) && !stops(tokens, None, &used(999, 0.0)));
        assert!(stops(dollars, price, &used(2_000_000, 0.0)), "prices applied to the tokens so far");
        assert!(!stops(dollars, price, &used(2_000_000, 1.0)), "what the program says comes first");
        assert!(!stops(dollars, None, &used(9_000_000, 0.0)), "an unknown cost");
        assert!(!stops(SpendingLimit::default(), price, &used(u64::MAX, 1e9)), "no budget");
        assert_eq!(
            stop([ClientEvent::BudgetReached]),
            Some((1, GuardStop::Budget)),
            "the program's own limit"
        );
    }
}
