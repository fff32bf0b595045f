//! analyze: the findings of the circuit breaker.

use serde::Serialize;

use crate::model::{BreakerStatus, BreakerTrip, Fields, LogAction, Refusal, Section, Value};
use crate::rules::breaker::{Finding, Pattern};

use super::checkpoint::enter_checkpoint;
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::tx::Tx;

/// Records the findings, computed outside the lock. The breaker fires once; an empty check clears nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordAnalysis {
    /// The trigger comes first.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Analyzed {
    pub status: BreakerStatus,
    /// True if it fired just now.
    pub fired: bool,
    /// The pattern that made it fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
}

impl Rule for RecordAnalysis {
    type Reply = Analyzed;
    const VERB: &'static str = "analyze";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint, Section::CircuitBreaker]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Analyzed, Refusal> {
        let (now, breaker) = (tx.now, tx.board.circuit_breaker()?);
        let (before, resolved) = (breaker.status, breaker.last_resolution());
        // Anomalies resolved since the findings were computed do not make the breaker fire again.
        let unresolved = |finding: &&Finding| {
            finding.evidence.iter().all(|(anomaly, _)| resolved.is_none_or(|when| anomaly.timestamp > when))
        };
        let Some(first) = self.findings.iter().find(unresolved).filter(|_| before == BreakerStatus::Ok)
        else {
            let breaker = tx.breaker()?;
            breaker.last_check = Some(now);
            if before == BreakerStatus::Ok {
                breaker.history.push(Fields::from_iter([
                    ("timestamp".to_owned(), Value::Time(now)),
                    ("pattern".to_owned(), Value::Null),
                    ("result".to_owned(), "OK".into()),
                ]));
            }
            return Ok(Analyzed { status: before, fired: false, pattern: None });
        };
        let breaker = tx.breaker()?;
        breaker.last_check = Some(now);
        breaker.status = BreakerStatus::Triggered;
        breaker.current_trigger = Some(BreakerTrip {
            timestamp: now,
            pattern: first.pattern.name().to_owned(),
            severity: Some(first.pattern.severity().to_owned()),
            common_factor: Some(first.common_factor.clone()),
            tasks: first.tasks(),
        });
        if !tx.board.sprint()?.status.is_terminal() {
            enter_checkpoint(tx)?;
        }
        let detail = format!("{} ({}): {}", first.pattern, first.pattern.severity(), first.common_factor);
        tx.log_as("system", LogAction::CircuitBreaker, None, &detail);
        Ok(Analyzed { status: BreakerStatus::Triggered, fired: true, pattern: Some(first.pattern) })
    }
}
