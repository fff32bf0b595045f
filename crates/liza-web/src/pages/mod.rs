//! The pages. Each is made from the team at one moment; live ones are made of regions, so the first answer
//! and every later change come from the same code.

mod agent;
mod agents;
mod alerts;
mod board;
mod cards;
mod charts;
mod context;
pub(crate) mod diff;
mod forms;
mod header;
pub(crate) mod log;
pub(crate) mod result;
pub(crate) mod session;
mod shell;
mod task;
mod tasks;

use maud::Markup;

use crate::region::Regions;
use crate::topic::Topic;

pub(crate) use context::PageContext;

pub(crate) fn regions(topic: &Topic, page: &PageContext<'_>) -> Regions {
    let own = match topic {
        Topic::Board => board::regions(page),
        Topic::Tasks => tasks::regions(page),
        Topic::Task(task) => task::regions(page, task),
        Topic::Agents => agents::regions(page),
        Topic::Agent(agent) => agent::regions(page, *agent),
        Topic::Alerts => alerts::regions(page),
        Topic::Charts => charts::regions(page),
        Topic::Other => Vec::new(),
    };
    Regions::new(header::regions(page).into_iter().chain(own).collect())
}

/// The page of a topic; none if there is no such thing.
pub(crate) fn live_page(topic: &Topic, page: &PageContext<'_>) -> Option<Markup> {
    let regions = regions(topic, page);
    let (title, content) = match topic {
        Topic::Board => ("Board".to_owned(), board::content(&regions)),
        Topic::Tasks => ("Tasks".to_owned(), tasks::content(&regions)),
        Topic::Task(task) => (task.to_string(), task::content(page, task, &regions)?),
        Topic::Agent(agent) => (agent.to_string(), agent::content(page, *agent, &regions)?),
        Topic::Agents => ("Agents".to_owned(), agents::content(page, &regions)),
        Topic::Alerts => ("Alerts".to_owned(), alerts::content(&regions)),
        Topic::Charts => ("Charts".to_owned(), charts::content(&regions)),
        Topic::Other => return None,
    };
    Some(shell::shell(page, topic, &title, &regions, &content))
}
