//! Budgets and prices: how much sessions may use, and what the tokens of a model cost.
//!
//! Plain data; what a budget leads to is in `rules/spending.rs`.

use serde::{Deserialize, Deserializer, Serialize};

use crate::model::record::Usage;
use crate::model::time::Timestamp;

/// How much sessions may use: `config.budget`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// For each task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<SpendingLimit>,
    /// For each sprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<SpendingLimit>,
    /// For each day, from midnight to midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<SpendingLimit>,
}

impl Budget {
    /// Whether any of it is in dollars.
    pub fn counts_dollars(&self) -> bool {
        [self.task, self.sprint, self.day].into_iter().flatten().any(|limit| limit.dollars.is_some())
    }
}

/// A limit in dollars, in tokens, or in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendingLimit {
    /// Dollars.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "dollars")]
    pub dollars: Option<f64>,
    /// Tokens read and written, without those from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "tokens")]
    pub tokens: Option<u64>,
}

/// Dollars for a million tokens of a model: `config.prices.MODEL`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    #[serde(deserialize_with = "price")]
    pub input: f64,
    /// Tokens written.
    #[serde(deserialize_with = "price")]
    pub output: f64,
    /// Tokens read from the provider's cache; as other tokens read if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_price")]
    pub cached: Option<f64>,
}

impl Price {
    /// The cost of these tokens.
    pub fn cost(&self, usage: &Usage) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a cost needs no 53 bits")]
        let millions = |tokens: u64| tokens as f64 / 1_000_000.0;
        let cached = self.cached.unwrap_or(self.input);
        millions(usage.input) * self.input
            + millions(usage.output) * self.output
            + millions(usage.cached) * cached
    }
}

/// What sessions have used in one day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DayUsage {
    /// The midnight at which the day ends.
    pub until: Timestamp,
    /// Tokens and money.
    pub usage: Usage,
}

fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(deserializer)?;
    match amount {
        Some(amount) if !(amount > 0.0 && amount.is_finite()) => {
            Err(serde::de::Error::custom("dollars must be more than 0"))
        }
        fine => Ok(fine),
    }
}

fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Option::<u64>::deserialize(deserializer)? {
        Some(0) => Err(serde::de::Error::custom("tokens must be more than 0")),
        fine => Ok(fine),
    }
}

fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let price = f64::deserialize(deserializer)?;
    if price >= 0.0 && price.is_finite() {
        return Ok(price);
    }
    Err(serde::de::Error::custom("a price is dollars for a million tokens, 0 or more"))
}

fn optional_price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    price(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SE-06
    #[test]
    fn wrong_budgets_and_prices_are_refused() {
        let budget = |json: &str| serde_json::from_str::<Budget>(json).map_err(|error| error.to_string());
        let fine = budget(r#"{"task": {"dollars": 5}, "day": {"tokens": 1000}}"#).unwrap();
        assert_eq!(fine.task.and_then(|limit| limit.dollars), Some(5.0));
        assert!(fine.counts_dollars());
        assert!(!budget(r#"{"day": {"tokens": 1000}}"#).unwrap().counts_dollars());
        let wrong = [
            (r#"{"task": {"dollars": 0}}"#, "dollars must be more than 0"),
            (r#"{"task": {"dollars": -1}}"#, "dollars must be more than 0"),
            (r#"{"day": {"tokens": 0}}"#, "tokens must be more than 0"),
            (r#"{"week": {"tokens": 1}}"#, "unknown field `week`"),
            (r#"{"day": {"euros": 1}}"#, "unknown field `euros`"),
        ];
        for (json, problem) in wrong {
            let error = budget(json).unwrap_err();
            assert!(error.contains(problem), "{json}: {error}");
        }
        let price = |json: &str| serde_json::from_str::<Price>(json);
        assert!(price(r#"{"input": -1, "output": 1}"#).is_err());
        assert!(price(r#"{"input": 1}"#).is_err());
    }

    /// Covers: SE-06
    #[test]
    fn a_price_is_for_a_million_tokens() {
        let usage = Usage { input: 2_000_000, output: 100_000, cached: 1_000_000, cost_usd: 0.0 };
        let price = Price { input: 1.25, output: 10.0, cached: Some(0.125) };
        assert!((price.cost(&usage) - 3.625).abs() < 1e-9);
        let all = Price { cached: None, ..price };
        assert!((all.cost(&usage) - 4.75).abs() < 1e-9);
    }
}
