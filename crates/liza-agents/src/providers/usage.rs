//! The usage of a session so far, added up from the reports of its program.
//!
//! Reports are not trusted: implausible figures are dropped, sums saturate.

use liza_core::model::{HANDOFF_AT, Usage};
use serde::{Deserialize, Serialize};

use super::event::UsageReport;

/// More tokens than any session uses.
const TOKENS_MAX: u64 = 1_000_000_000_000;
/// More money than any session costs.
const COST_MAX: f64 = 1_000_000.0;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionUsage {
    pub usage: Usage,
    /// The used share of its context, as last reported.
    pub context_percent: Option<u32>,
    /// The number of reports counted; the later of two readings has more.
    pub events: u64,
}

impl SessionUsage {
    /// True if the session should hand over because its context is almost full.
    pub fn should_hand_over(&self) -> bool {
        self.context_percent.is_some_and(|percent| percent >= HANDOFF_AT)
    }

    /// Counts a report; an implausible one counts for nothing.
    pub fn count(&mut self, report: &UsageReport) {
        let context = match report.context_percent.map(whole_percent) {
            Some(None) => return,
            Some(known) => known,
            None => None,
        };
        if !is_plausible(&report.usage) {
            return;
        }
        if report.is_total {
            self.usage = larger(&self.usage, &report.usage);
        } else {
            self.usage.add(&report.usage);
        }
        self.context_percent = context.or(self.context_percent);
        self.events = self.events.saturating_add(1);
    }
}

/// A session's figures never fall: recorded usage stays.
fn larger(one: &Usage, other: &Usage) -> Usage {
    Usage {
        input: one.input.max(other.input),
        output: one.output.max(other.output),
        cached: one.cached.max(other.cached),
        cost_usd: one.cost_usd.max(other.cost_usd),
        ..Usage::default()
    }
}

fn is_plausible(usage: &Usage) -> bool {
    let tokens = [usage.input, usage.output, usage.cached];
    tokens.iter().all(|tokens| *tokens <= TOKENS_MAX) && (0.0..=COST_MAX).contains(&usage.cost_usd)
}

/// A percentage rounded down: 89.9 is not yet 90.
fn whole_percent(share: f64) -> Option<u32> {
    let whole = (0..=100_u32).rev().find(|whole| f64::from(*whole) <= share);
    whole.filter(|_| share <= 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(input: u64, is_total: bool) -> UsageReport {
        let usage = Usage { input, output: 20, cached: 50, cost_usd: 0.25, ..Usage::default() };
        UsageReport { usage, is_total, context_percent: None }
    }

    /// Covers: AG-14
    #[test]
    fn sums_saturate_and_totals_replace_them() {
        let mut total = SessionUsage::default();
        total.count(&report(100, false));
        total.count(&report(150, true));
        assert_eq!((total.usage.input, total.usage.output, total.events), (150, 20, 2));
        total.count(&report(10, true));
        assert_eq!(total.usage.input, 150, "figures never fall");
        total.usage.input = u64::MAX - 1;
        total.count(&report(100, false));
        assert_eq!(total.usage.input, u64::MAX);
    }
}
