//! The rehearsal agent, which is part of Liza: its events.

use liza_core::model::Usage;
use serde::Deserialize;

use super::event::{ClientEvent, EventReader, UsageReport};

/// `{"type": "usage", "input": 1200, "output": 300, "cached": 0, "cost_usd": 0.01, "context_percent": 34}`: the usage
/// since the last such line, and how full the context is now. All other lines are text.
pub(super) struct RehearsalEvents;

#[derive(Deserialize)]
struct UsageLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    cost_usd: f64,
    #[serde(default)]
    context_percent: Option<f64>,
}

impl EventReader for RehearsalEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        // An event starts at the beginning of a line; output of tools is indented or inside a text.
        let event: Option<UsageLine> = line.starts_with('{').then(|| serde_json::from_str(line).ok())?;
        let UsageLine { kind, input, output, cached, cost_usd, context_percent } = event?;
        let usage = Usage { input, output, cached, cost_usd, ..Usage::default() };
        let report = UsageReport { usage, is_total: false, context_percent };
        (kind == "usage").then(|| vec![ClientEvent::Used(report)])
    }
}
