//! The cost of reviews in this project so far, for the sentence before a drill. Reads the histories of the tasks.

use liza_core::model::{EventName, HistoryEvent, Role, State, Value};
use liza_core::text::count;
use serde::Serialize;

/// The cost of the reviews that are recorded, in the mean; nothing if none is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// The recorded sessions.
    pub sessions: usize,
    pub tokens: f64,
    /// `None` if the program does not say it.
    pub dollars: Option<f64>,
    pub seconds: f64,
}

impl Cost {
    /// Of the review sessions of that program.
    pub fn of(state: &State, program: &str) -> Self {
        let is_review = |event: &HistoryEvent| {
            let agent = event.agent.as_deref().unwrap_or_default();
            let role = agent.parse().map(|agent: liza_core::model::AgentId| agent.role());
            let is_reviewer = role.is_ok_and(|role| role == Role::CodeReviewer);
            event.is(EventName::SessionEnded)
                && is_reviewer
                && event.text("client").as_deref() == Some(program)
        };
        let events: Vec<&HistoryEvent> = state
            .bodies()
            .flat_map(|(_, body)| body.record().events())
            .filter(|event| is_review(event))
            .collect();
        let mean = |key: &str| {
            let known: Vec<f64> = events.iter().filter_map(|event| number(event.more.get(key)?)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        Self {
            sessions: events.len(),
            tokens: mean("tokens").unwrap_or(0.0),
            dollars: mean("cost_usd"),
            seconds: mean("seconds").unwrap_or(0.0),
        }
    }

    /// The cost of so many reviews.
    pub fn in_words(&self, reviews: usize, program: &str) -> String {
        if self.sessions == 0 {
            return format!(
                "No review by {program} is recorded here, so its cost is unknown; each one is a whole session."
            );
        }
        let all = reviews as f64;
        let dollars = self.dollars.map(|dollars| format!(", {:.2} $", all * dollars)).unwrap_or_default();
        let minutes = (all * self.seconds / 60.0).ceil();
        let seen = count(self.sessions, "review");
        format!(
            "About {:.0} tokens{dollars} and {minutes} min, from {seen} by {program} in this project.",
            all * self.tokens
        )
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::Time(_) | Value::List(_) | Value::Map(_) => {
            None
        }
    }
}
