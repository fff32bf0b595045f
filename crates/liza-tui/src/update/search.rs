//! Looks for a text: in the page that is open, otherwise in the panel that has the keys.

use liza_status::view::{AgentView, TaskView};
use liza_status::words::agent_doing;

use crate::model::page::Scroll;
use crate::model::{Model, Panel};

/// True if a line has the text, in small letters or in capitals.
pub(crate) fn has(line: &str, text: &str) -> bool {
    !text.is_empty() && line.to_lowercase().contains(&text.to_lowercase())
}

/// Selects or shows the next place that has the text; false if there is none.
pub(crate) fn find(model: &mut Model, text: &str, page_height: usize) -> bool {
    if let Some(page) = &mut model.page {
        let lines = page.lines.as_deref().unwrap_or_default();
        // A match on the first visible line counts, unless the search was there already.
        let before = page.found.or_else(|| page.top(page_height).checked_sub(1));
        let found = next(before, lines.len(), |at| has(&lines[at].to_string(), text));
        if let Some(line) = found {
            (page.found, page.scroll) = (found, Scroll::From(line));
        }
        return found.is_some();
    }
    match model.panel {
        Panel::NeedsYou => {
            let needs = model.needs();
            let found = next(Some(model.need), needs.len(), |at| {
                let need = &needs[at];
                let task = need.task.as_ref().is_some_and(|task| has(task.as_str(), text));
                task || [&need.kind.to_string(), need.text.words(), &need.command]
                    .iter()
                    .any(|part| has(part, text))
            });
            model.need = found.unwrap_or(model.need);
            model.drop_arrival();
            found.is_some()
        }
        Panel::Tasks => {
            let tasks = model.tasks();
            let found = next(Some(model.task), tasks.len(), |at| is_task(&tasks[at], text));
            model.task = found.unwrap_or(model.task);
            found.is_some()
        }
        Panel::Agents => {
            let agents = model.agents();
            let found = next(Some(model.agent), agents.len(), |at| is_agent(&agents[at], text));
            model.agent = found.unwrap_or(model.agent);
            found.is_some()
        }
        Panel::Log => {
            // The newest line is at the bottom, and the search goes up.
            let lines = &model.log;
            let newest_first = |at: usize| &lines[lines.len() - 1 - at];
            let found = next(Some(model.log_back), lines.len(), |at| {
                let line = newest_first(at);
                has(&line.who, text) || has(&line.text, text)
            });
            model.log_back = found.unwrap_or(model.log_back);
            found.is_some()
        }
    }
}

fn is_task(task: &TaskView, text: &str) -> bool {
    has(task.id.as_str(), text) || has(&task.description, text)
}

fn is_agent(agent: &AgentView, text: &str) -> bool {
    has(&agent.id.to_string(), text) || has(&agent_doing(agent), text)
}

/// The first of so many places after that one, going round once, that is meant.
fn next(after: Option<usize>, count: usize, is_meant: impl Fn(usize) -> bool) -> Option<usize> {
    let first = after.map_or(0, |at| at + 1);
    (first..first + count).map(|at| at % count).find(|at| is_meant(*at))
}
