//! resolve: the human has removed the cause of the circuit breaker's trigger.

use crate::model::{BreakerStatus, Fields, LogAction, Refusal, Section, SprintStatus, Value};

use super::checkpoint::{leave_checkpoint, record_decision};
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::reply::Nothing;
use super::tx::{Tx, required};

/// Moves the trigger to the breaker's history and ends the checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolve {
    pub resolution: String,
}

impl Rule for Resolve {
    type Reply = Nothing;
    const VERB: &'static str = "resolve";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint, Section::CircuitBreaker]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        let resolution = required(&self.resolution, "how it was fixed")?.to_owned();
        let now = tx.now;
        let breaker = tx.breaker()?;
        let Some(trip) = breaker.current_trigger.take() else { return Err(Refusal::NothingToResolve) };
        breaker.status = BreakerStatus::Ok;
        breaker.history.push(Fields::from_iter([
            ("timestamp".to_owned(), Value::Time(trip.timestamp)),
            ("pattern".to_owned(), Value::Text(trip.pattern.clone())),
            ("severity".to_owned(), trip.severity.map_or(Value::Null, Value::Text)),
            ("result".to_owned(), "TRIGGERED".into()),
            ("resolution".to_owned(), Value::Text(resolution.clone())),
            ("resolved_at".to_owned(), Value::Time(now)),
        ]));
        if tx.board.sprint()?.status == SprintStatus::Checkpoint {
            record_decision(tx, "continue", Some(&resolution))?;
        }
        leave_checkpoint(tx)?;
        tx.log(LogAction::CircuitBreaker, None, &format!("{} resolved: {resolution}", trip.pattern));
        Ok(Nothing {})
    }
}
