//! A page that is open instead of the board: its subject, its tabs, its content.

use liza_host::columns::cut;
use liza_status::words::{agent_doing, task_facts, task_status};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::model::page::{Page, PageSubject};

use super::{Painter, put, row, span, with_right};

impl Painter<'_> {
    pub(crate) fn page(&self, buffer: &mut Buffer, area: Rect, page: &Page) {
        put(buffer, row(area, 0), &self.tabs(page, area.width));
        let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        let Some(lines) = &page.lines else {
            put(buffer, row(body, 0), &Line::styled("loading…", self.theme.dim));
            return;
        };
        if lines.is_empty() {
            put(buffer, row(body, 0), &Line::styled("nothing to show", self.theme.dim));
        }
        let height = usize::from(body.height);
        let first = page.top(height);
        for (at, line) in lines.iter().skip(first).take(height).enumerate() {
            put(buffer, row(body, u16::try_from(at).unwrap_or(u16::MAX)), &self.sought(line));
        }
    }

    /// The subject of the page, and its tabs.
    fn tabs(&self, page: &Page, columns: u16) -> Line<'static> {
        let title = match &page.subject {
            PageSubject::Task(task) => {
                let view = self.model.task_view(task);
                let status = view.map(task_status);
                let facts = view.map(task_facts).unwrap_or_default();
                let facts: Vec<String> = status.into_iter().chain(facts).collect();
                format!("{task}  {}", facts.join(" · "))
            }
            PageSubject::Agent(agent) => {
                let view = self.model.agents().iter().find(|view| view.id == *agent);
                format!("{agent}  {}", view.map_or("has left".to_owned(), agent_doing))
            }
            PageSubject::Text(title) => title.clone(),
        };
        let tabs = page.tabs.iter().enumerate().flat_map(|(at, tab)| {
            let style = if at == page.tab { self.theme.focused } else { self.theme.dim };
            [span(format!(" {} {} ", at + 1, tab.title), style), Span::raw(" ")]
        });
        let tabs: Vec<Span<'static>> = if page.tabs.len() > 1 { tabs.collect() } else { Vec::new() };
        let taken: usize = tabs.iter().map(Span::width).sum();
        let room = usize::from(columns).saturating_sub(taken + 1);
        with_right(Line::styled(cut(&title, room), self.theme.heading), tabs, columns)
    }
}
