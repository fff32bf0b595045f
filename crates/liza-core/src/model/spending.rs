//! Budgets of sessions, and prices of a model's tokens.
//!
//! Plain data; the effect of a budget is in `rules/spending.rs`.

use liza_ids::Timestamp;
use liza_ids::text::{compact_number, exact_number};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

/// The spending limits of sessions: `config.budget`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<SpendingLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sprint: Option<SpendingLimit>,
    /// For each day, from midnight to midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<SpendingLimit>,
}

impl Budget {
    /// True if any limit is in dollars.
    pub fn counts_dollars(&self) -> bool {
        [self.task, self.sprint, self.day].into_iter().flatten().any(|limit| limit.dollars.is_some())
    }

    /// True if any limit is in tokens.
    pub fn counts_tokens(&self) -> bool {
        [self.task, self.sprint, self.day].into_iter().flatten().any(|limit| limit.tokens.is_some())
    }
}

/// A limit in dollars, in tokens, or in both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendingLimit {
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
    #[serde(deserialize_with = "price")]
    pub input: f64,
    #[serde(deserialize_with = "price")]
    pub output: f64,
    /// Tokens read from the provider's cache; if absent, they cost as much as other input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_price")]
    pub cached: Option<f64>,
}

impl Price {
    pub fn cost(&self, usage: &Usage) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a cost needs no 53 bits")]
        let millions = |tokens: u64| tokens as f64 / 1_000_000.0;
        let cached = self.cached.unwrap_or(self.input);
        millions(usage.input) * self.input
            + millions(usage.output) * self.output
            + millions(usage.cached) * cached
    }
}

/// Tokens and money, of a session or of many: every sum of them is made here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default)]
    pub input: u64,
    #[serde(default)]
    pub output: u64,
    #[serde(default)]
    pub cached: u64,
    /// The cost that the provider reports.
    #[serde(default)]
    pub cost_usd: f64,
    /// The tokens of ended sessions whose cost is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
}

impl Usage {
    /// The tokens read and written, without those from the provider's cache. Budgets, screens, charts and
    /// reports count these and no others; `cached` is always named apart.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The dollars; `None` if nothing is known about the cost, which is not free.
    pub fn dollars(&self) -> Option<f64> {
        (self.cost_usd > 0.0).then_some(self.cost_usd)
    }

    pub fn is_none(&self) -> bool {
        self.dollars().is_none() && self.tokens() == 0
    }

    /// The usage of a session that has ended: no price can follow.
    #[must_use]
    pub fn settled(self) -> Self {
        let unpriced = if self.dollars().is_some() { 0 } else { self.tokens() };
        Self { unpriced, ..self }
    }

    pub fn add(&mut self, more: &Usage) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cached = self.cached.saturating_add(more.cached);
        self.cost_usd += more.cost_usd;
        self.unpriced = self.unpriced.saturating_add(more.unpriced);
    }

    /// The usage since an earlier measurement of the same sessions.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        // Sums in another order differ in their last digits.
        let cost_usd = Some(self.cost_usd - earlier.cost_usd).filter(|more| *more > 1e-9).unwrap_or(0.0);
        Usage {
            input: self.input.saturating_sub(earlier.input),
            output: self.output.saturating_sub(earlier.output),
            cached: self.cached.saturating_sub(earlier.cached),
            cost_usd,
            unpriced: self.unpriced.saturating_sub(earlier.unpriced),
        }
    }

    /// Tokens and cost in a few words, such as `196k tokens, $1.99`; `None` if nothing was used.
    pub fn in_words(&self) -> Option<String> {
        let counted = (self.tokens() > 0).then(|| format!("{} tokens", compact_number(self.tokens())));
        let words: Vec<String> = counted.into_iter().chain(self.cost_in_words()).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Every figure: `196,400 tokens (180,400 in, 16,000 out), 934,000 from the cache, $1.99`.
    pub fn in_full(&self) -> String {
        let all = [self.tokens(), self.input, self.output, self.cached];
        let [tokens, input, output, cached] = all.map(exact_number);
        let tokens = format!("{tokens} tokens ({input} in, {output} out)");
        let cached = format!("{cached} from the cache");
        [tokens, cached].into_iter().chain(self.cost_in_words()).collect::<Vec<_>>().join(", ")
    }

    /// The dollars, and the tokens that they do not pay for.
    pub fn cost_in_words(&self) -> Option<String> {
        match (self.dollars(), self.unpriced) {
            (Some(dollars), 0) => Some(format!("${dollars:.2}")),
            (Some(dollars), rest) => Some(format!("${dollars:.2} + {} unpriced", compact_number(rest))),
            (None, _) => (self.tokens() > 0).then(|| "no price".to_owned()),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DayUsage {
    /// The midnight at which the day ends.
    pub until: Timestamp,
    pub usage: Usage,
}

/// The accepted forms of a budget in tokens.
pub const TOKENS_IN_WORDS: &str = "a number of tokens, such as 5000000, 5M, 5 million or 500k";

/// The accepted forms of a budget in dollars.
pub const DOLLARS_IN_WORDS: &str = "an amount of dollars, such as 20 or 12.50";

/// Parses tokens as people write them: `5000000`, `5M`, `1.5 million`, `500k tokens`.
pub fn parse_tokens(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.trim_end_matches("tokens").trim_end();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor: u128 = match unit.trim_start() {
        "" => 1,
        "k" | "thousand" => 1_000,
        "m" | "million" => 1_000_000,
        "b" | "billion" => 1_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let divisor = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let scaled = digits.checked_mul(factor)?;
    (scaled % divisor == 0).then(|| u64::try_from(scaled / divisor).ok())?
}

/// Parses dollars as people write them: `20`, `$12.50`, `20 dollars`.
pub fn parse_dollars(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches("dollars").trim_end();
    let number = text.strip_prefix('$').unwrap_or(text);
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    number.parse().ok().filter(|_| is_plain)
}

/// An amount in a file: a number, or a text that people would write.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenAmount {
    Whole(u64),
    Fraction(f64),
    Text(String),
    Other(IgnoredAny),
}

fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let amount = Option::<WrittenAmount>::deserialize(deserializer)?.map(|written| match written {
        #[allow(clippy::cast_precision_loss, reason = "a budget needs no 53 bits")]
        WrittenAmount::Whole(number) => Some(number as f64),
        WrittenAmount::Fraction(number) => Some(number),
        WrittenAmount::Text(text) => parse_dollars(&text),
        WrittenAmount::Other(_) => None,
    });
    match amount {
        None => Ok(None),
        Some(None) => Err(serde::de::Error::custom(format!("expected {DOLLARS_IN_WORDS}"))),
        Some(Some(amount)) if amount > 0.0 && amount.is_finite() => Ok(Some(amount)),
        Some(Some(_)) => Err(serde::de::Error::custom("dollars must be more than 0")),
    }
}

fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let amount = Option::<WrittenAmount>::deserialize(deserializer)?.map(|written| match written {
        WrittenAmount::Whole(number) => Some(number),
        WrittenAmount::Text(text) => parse_tokens(&text),
        WrittenAmount::Fraction(_) | WrittenAmount::Other(_) => None,
    });
    match amount {
        None => Ok(None),
        Some(None) => Err(serde::de::Error::custom(format!("expected {TOKENS_IN_WORDS}"))),
        Some(Some(0)) => Err(serde::de::Error::custom("tokens must be more than 0")),
        Some(Some(amount)) => Ok(Some(amount)),
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
            (r#"{"day": {"tokens": 1.5}}"#, "expected a number of tokens, such as 5000000, 5M"),
            (r#"{"day": {"tokens": "many"}}"#, "expected a number of tokens, such as 5000000, 5M"),
            (r#"{"day": {"dollars": "none"}}"#, "expected an amount of dollars, such as 20"),
            (r#"{"day": {"dollars": [20]}}"#, "expected an amount of dollars, such as 20"),
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
    fn amounts_are_read_as_people_write_them() {
        let budget = |json: &str| serde_json::from_str::<Budget>(json).unwrap().day.unwrap();
        for text in ["5000000", "5M", "5 million", "5.0 Million", "5000k", "5000 thousand tokens", " 5m "] {
            assert_eq!(parse_tokens(text), Some(5_000_000), "{text}");
            assert_eq!(budget(&format!("{{\"day\": {{\"tokens\": {text:?}}}}}")).tokens, Some(5_000_000));
        }
        let wrong =
            ["", "M", "many", "5 milliard", "-5", "1.5", "1.2.3M", "5,000", "1e6", "99999999999999999999"];
        for text in wrong {
            assert_eq!(parse_tokens(text), None, "{text}");
        }
        for text in ["12.5", "$12.50", "12.50 dollars"] {
            assert_eq!(parse_dollars(text), Some(12.5), "{text}");
            assert_eq!(budget(&format!("{{\"day\": {{\"dollars\": {text:?}}}}}")).dollars, Some(12.5));
        }
        assert_eq!(["none", "inf", "-1", "1e3", ""].map(parse_dollars), [None; 5]);
    }

    /// Covers: AX-22
    #[test]
    fn tokens_are_counted_in_one_way_and_a_sum_names_what_has_no_price() {
        let paid = Usage { input: 180_000, output: 16_000, cached: 934_000, cost_usd: 1.99, unpriced: 0 };
        assert_eq!(paid.in_words().as_deref(), Some("196k tokens, $1.99"));
        let full = "196,000 tokens (180,000 in, 16,000 out), 934,000 from the cache, $1.99";
        assert_eq!(paid.in_full(), full);
        assert_eq!(paid.clone().settled(), paid);
        let running = Usage { input: 40_000, output: 5_000, cached: 9, ..Usage::default() };
        assert_eq!(running.in_words().as_deref(), Some("45k tokens, no price"));
        let mut sum = paid;
        let earlier = Usage { input: 30_000, ..Usage::default() };
        sum.add(&earlier);
        sum.add(&running.clone().settled().since(&earlier));
        assert_eq!(sum.in_words().as_deref(), Some("241k tokens, $1.99 + 45k unpriced"));
        let only_paid = Usage { cost_usd: 0.5, ..Usage::default() };
        assert_eq!(only_paid.in_words().as_deref(), Some("$0.50"));
        assert!(Usage { cached: 9, ..Usage::default() }.is_none() && !running.is_none());
        assert_eq!(Usage::default().in_words(), None);
    }

    /// Covers: SE-06
    #[test]
    fn a_price_is_for_a_million_tokens() {
        let usage = Usage { input: 2_000_000, output: 100_000, cached: 1_000_000, ..Usage::default() };
        let price = Price { input: 1.25, output: 10.0, cached: Some(0.125) };
        assert!((price.cost(&usage) - 3.625).abs() < 1e-9);
        let all = Price { cached: None, ..price };
        assert!((all.cost(&usage) - 4.75).abs() < 1e-9);
    }
}
