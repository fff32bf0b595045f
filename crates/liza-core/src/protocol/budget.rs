//! Session budgets, for all commands: charging a session, and refilling by a merge or a person.

use crate::model::{Actor, Refusal, TaskId, TaskRecord};
use crate::rules::session_budget::SessionBudget;

use super::tx::Tx;

pub(super) fn charge_session(tx: &mut Tx<'_>, budget: &SessionBudget) -> Result<(), Refusal> {
    check_budget(tx, budget)?;
    budget.charge(&mut tx.sprint()?.sessions);
    Ok(())
}

/// Refuses a command that would need another session if the budget is used up.
pub(super) fn check_budget(tx: &Tx<'_>, budget: &SessionBudget) -> Result<(), Refusal> {
    let (sprint, config) = (tx.board.sprint()?, tx.config()?);
    if !budget.is_used_up(sprint, config) {
        return Ok(());
    }
    Err(Refusal::SessionBudget { what: budget.to_string(), used: budget.used(sprint) })
}

pub(super) fn refill(tx: &mut Tx<'_>, budget: &SessionBudget) -> Result<(), Refusal> {
    if budget.used(tx.board.sprint()?) > 0 {
        budget.refill(&mut tx.sprint()?.sessions);
    }
    Ok(())
}

/// A merge refills the budget of its task, the planner's and the shared one.
pub(super) fn refill_after_merge(tx: &mut Tx<'_>, task: &TaskId, record: &TaskRecord) -> Result<(), Refusal> {
    let of_task = SessionBudget::of_task(task, record);
    [of_task, SessionBudget::Planner, SessionBudget::Shared].iter().try_for_each(|budget| refill(tx, budget))
}

/// A person has decided something: the planner may look at it, however often it has been started before.
pub(super) fn refill_planner(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    if tx.actor != Actor::Human {
        return Ok(());
    }
    refill(tx, &SessionBudget::Planner)?;
    if tx.board.sprint()?.planner_exits.count > 0 {
        tx.sprint()?.planner_exits.count = 0;
    }
    Ok(())
}
