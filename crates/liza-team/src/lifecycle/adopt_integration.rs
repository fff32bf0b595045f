//! Records the current head of the integration branch if none is recorded, as in a project of an older
//! version. Never replaces a recorded head; the human accepts another one with `accept-integration`.

use liza_core::model::Sha;
use liza_core::protocol::AdoptIntegration;

use crate::engine::{Engine, EngineError, integration_branch};

/// Returns the head if it was recorded now.
pub fn adopt_integration(engine: &Engine<'_>) -> Result<Option<Sha>, EngineError> {
    let state = engine.project().state()?;
    if state.board.goal.ready().is_none_or(|goal| goal.integration_head.is_some()) {
        return Ok(None);
    }
    let head = engine.integration_head(&integration_branch(&state.board)?)?;
    engine.execute(AdoptIntegration { head }).map(|adopted| Some(adopted.reply.integration_head))
}
