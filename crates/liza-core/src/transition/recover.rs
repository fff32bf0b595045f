//! recover: what crashes have left on the blackboard; what they left in git is settled by the program.

use crate::event::LogAction;
use crate::ids::TaskId;
use crate::record::Reservation;
use crate::refusal::Refusal;

use super::tx::Tx;

/// Takes away a reservation whose claim died. One that came since then is somebody's who lives.
pub(super) fn drop_reservation(tx: &mut Tx<'_>, id: &TaskId, dead: &Reservation) -> Result<(), Refusal> {
    let mut record = tx.board.body(id)?.record.clone();
    if record.reservation.as_ref() != Some(dead) {
        return Err(Refusal::NoReservation { task: id.clone(), coder: dead.by });
    }
    record.reservation = None;
    tx.reply("task", id.as_str());
    tx.put_record(id.clone(), record);
    Ok(())
}

/// Logs what was settled. With nothing to tell it writes nothing, and only says whether the caller may.
pub(super) fn recover(tx: &mut Tx<'_>, settled: &[String]) -> Result<(), Refusal> {
    if !settled.is_empty() {
        tx.log(LogAction::Recovered, None, &settled.join("; "));
    }
    Ok(())
}
