//! The circuit breaker's section of the blackboard; the patterns that make it fire are in `rules/breaker.rs`.

use liza_ids::{TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::value::Fields;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum BreakerStatus {
    #[default]
    Ok,
    /// The breaker has fired, and a human has to resolve it.
    Triggered,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BreakerTrip {
    pub timestamp: Timestamp,
    pub pattern: String,
    #[serde(default)]
    pub severity: Option<String>,
    #[serde(default)]
    pub common_factor: Option<String>,
    #[serde(default)]
    pub tasks: Vec<TaskId>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CircuitBreaker {
    /// The last check of the anomalies.
    #[serde(default)]
    pub last_check: Option<Timestamp>,
    #[serde(default)]
    pub status: BreakerStatus,
    #[serde(default)]
    pub current_trigger: Option<BreakerTrip>,
    /// Earlier triggers with their resolutions, and checks that found nothing; append-only.
    #[serde(default)]
    pub history: Vec<Fields>,
}

impl CircuitBreaker {
    pub fn last_resolution(&self) -> Option<Timestamp> {
        let time = |entry: &Fields| entry.get("resolved_at")?.to_string().parse().ok();
        self.history.iter().filter_map(time).max()
    }
}
