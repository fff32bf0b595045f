//! discover: something else needs doing; the planner decides.

use serde::Serialize;

use crate::model::{
    DISCOVERY_MAX, Discovery, DiscoveryId, LogAction, Refusal, Section, Severity, TaskId, Urgency,
};

use super::operation::{LoadScope, Rule};
use super::permission::{EVERYONE, Rights};
use super::tx::{Tx, required};

#[derive(Debug, Clone, PartialEq)]
pub struct Discover {
    pub task: Option<TaskId>,
    pub description: String,
    pub severity: Severity,
    pub urgency: Urgency,
    pub recommendation: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Discovered {
    pub discovery: DiscoveryId,
}

impl Rule for Discover {
    type Reply = Discovered;
    const VERB: &'static str = "discover";
    const RIGHTS: Rights = EVERYONE;

    fn scope(&self) -> LoadScope {
        LoadScope { sections: &[Section::Discovered], all_summaries: self.task.is_some() }
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Discovered, Refusal> {
        let task = self.task.as_ref();
        tx.check_known(task)?;
        let description = required(&self.description, "what was discovered (--desc)")?.to_owned();
        let advice = self.recommendation.as_ref().map_or(0, String::len);
        check_size(description.len() + advice)?;
        let (by, now) = (tx.actor.to_string(), tx.now);
        let discovered = tx.discovered()?;
        let last = discovered.iter().map(|found| found.id.0).max().unwrap_or(0);
        let id = DiscoveryId(last.saturating_add(1));
        discovered.push(Discovery {
            id,
            by: Some(by),
            during: task.cloned(),
            description: description.clone(),
            severity: self.severity,
            urgency: self.urgency,
            recommendation: self.recommendation.clone(),
            created: Some(now),
            converted_to_task: None,
            dismissed: None,
        });
        tx.log(LogAction::Discovered, task, &format!("{id}: {description}"));
        Ok(Discovered { discovery: id })
    }
}

/// Texts without end cost everyone who lists discoveries, and each prompt of the planner.
fn check_size(size: usize) -> Result<(), Refusal> {
    if size <= DISCOVERY_MAX {
        return Ok(());
    }
    let problem = format!(
        "at most {} KiB, and not {} KiB: what needs doing, and where",
        DISCOVERY_MAX >> 10,
        size >> 10
    );
    Err(Refusal::BadText { what: "--desc with --recommendation", problem })
}
