//! anomaly: something is not as it should be.

use serde::Serialize;

use crate::model::{
    Actor, Anomaly, AnomalyType, Appended, Fields, LogAction, Refusal, Role, Status, TaskId, Value,
    detail_faults,
};

use super::operation::{LoadScope, Rule};
use super::permission::{EVERYONE, Rights};
use super::tx::Tx;

#[derive(Debug, Clone, PartialEq)]
pub struct LogAnomaly {
    pub kind: AnomalyType,
    pub task: Option<TaskId>,
    pub details: Fields,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnomalyLogged {
    #[serde(rename = "type")]
    pub kind: AnomalyType,
}

impl Rule for LogAnomaly {
    type Reply = AnomalyLogged;
    const VERB: &'static str = "anomaly";
    const RIGHTS: Rights = EVERYONE;

    fn scope(&self) -> LoadScope {
        LoadScope { sections: &[], all_summaries: self.task.is_some() || self.kind.is_question() }
    }

    fn is_result(&self) -> bool {
        self.kind.is_question()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<AnomalyLogged, Refusal> {
        let kind = self.kind;
        let held = tx.actor.agent().and_then(|agent| tx.board.held_by(agent)).filter(|_| kind.is_question());
        let task = self.task.as_ref().or(held).or_else(|| waiting_task(tx, kind));
        check_duty(tx, kind)?;
        tx.check_known(task)?;
        let details = typed_details(kind, &self.details);
        let faults = detail_faults(kind, &details);
        if !faults.is_empty() {
            return Err(Refusal::BadDetails { kind, faults });
        }
        let detail = match Value::Map(details.clone()).to_string() {
            text if text.is_empty() => kind.name().to_owned(),
            text => format!("{kind}: {text}"),
        };
        tx.append(Appended::Anomaly(Anomaly::new(tx.now, kind, task, tx.actor, details)));
        tx.log(LogAction::Anomaly, task, &detail);
        Ok(AnomalyLogged { kind })
    }
}

/// The task of a planner's question that names none: the blocked task, if there is only one.
fn waiting_task<'a>(tx: &Tx<'a>, kind: AnomalyType) -> Option<&'a TaskId> {
    let asks = kind.is_question() && tx.actor.agent().is_some_and(|agent| agent.role() == Role::Planner);
    let mut blocked = tx.board.summaries().filter(|summary| asks && summary.is(Status::Blocked));
    let first = blocked.next()?;
    blocked.next().is_none().then_some(&first.id)
}

/// Each role logs the kinds that the duty table gives it; people and supervisors log anything.
fn check_duty(tx: &Tx<'_>, kind: AnomalyType) -> Result<(), Refusal> {
    let role = match tx.actor {
        Actor::Human | Actor::Supervisor(..) => return Ok(()),
        Actor::Agent(id, _) | Actor::Operator(id) => id.role(),
    };
    if kind.duty_of().contains(&role) {
        return Ok(());
    }
    let duty: Vec<&str> = kind.duty_of().iter().map(|role| role.title()).collect();
    Err(Refusal::NotYourDuty { role, kind, duty: duty.join(" and ") })
}

/// Gives each detail its field's type, so that patterns can be found in them.
fn typed_details(kind: AnomalyType, details: &Fields) -> Fields {
    let typed = |(key, value): (&String, &Value)| {
        let parsed = value.as_text().and_then(|text| kind.detail_type(key).parse(text));
        (key.clone(), parsed.unwrap_or_else(|| value.clone()))
    };
    details.iter().map(typed).collect()
}
