//! Paints the model. Pure: the same model gives the same screen. `clean_cells` runs last, so no text of an
//! agent can control the terminal.

mod agents;
mod board;
mod bottom;
mod needs;
mod page;
mod panels;

use liza_core::model::{GoalStatus, StopFile};
use liza_core::text::is_unprintable;
use liza_host::columns::{cut, fitting_parts, width, wrap};
use liza_host::local_time::LocalTime;
use liza_status::words::{SprintPart, budgets, full_columns, sprint_facts};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::ScreenMode;
use super::model::{LEAST, Model};
use super::theme::Theme;
use super::update::search::has;

const BAR_MAX: usize = 30;

/// The longest name is `code-reviewer-10`.
const NAME: usize = 16;

/// The input of every drawing function.
pub(crate) struct Painter<'a> {
    pub model: &'a Model,
    pub theme: &'a Theme,
    pub times: &'a LocalTime,
}

/// Paints everything; returns how far the log can be scrolled back.
pub(crate) fn draw(frame: &mut Frame<'_>, painter: &Painter<'_>) -> usize {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let (mut cursor, mut log_most) = (None, painter.model.log_most);
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (columns, rows) = LEAST;
        let leaves = match painter.model.mode {
            ScreenMode::Observer => "leaves",
            ScreenMode::Team => "stops the team",
        };
        let text = format!("Too small: {columns} × {rows} is needed. Keys are ignored; Ctrl-C {leaves}.");
        for (at, line) in wrap(&text, usize::from(area.width).max(1)).iter().enumerate() {
            put(buffer, row(area, u16::try_from(at).unwrap_or(u16::MAX)), &Line::raw(line.clone()));
        }
    } else {
        painter.head(buffer, area);
        let body = Rect { y: area.y + 2, height: area.height - 3, ..area };
        match &painter.model.page {
            Some(page) => painter.page(buffer, body, page),
            None => log_most = painter.board(buffer, body),
        }
        cursor = painter.bottom(buffer, area);
    }
    clean_cells(buffer);
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
    log_most
}

/// The first visible row of a list, so that the selected one is among them.
fn window(selected: usize, count: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(count.saturating_sub(height))
}

/// As many of the facts as fit, the first ones first.
fn fitting(facts: Vec<String>, columns: usize) -> String {
    let mut text = String::new();
    for fact in facts {
        let more = if text.is_empty() { fact } else { format!("{text} · {fact}") };
        if width(&more) > columns {
            break;
        }
        text = more;
    }
    text
}

fn row(area: Rect, at: u16) -> Rect {
    Rect { y: area.y.saturating_add(at), height: 1, ..area }
}

fn put(buffer: &mut Buffer, area: Rect, line: &Line<'_>) {
    if buffer.area.intersects(area) {
        buffer.set_line(area.x, area.y, line, area.width);
    }
}

/// A line with a text at its right end, which is left out if it does not fit.
fn with_right(mut line: Line<'static>, right: Vec<Span<'static>>, columns: u16) -> Line<'static> {
    let wanted: usize = right.iter().map(Span::width).sum();
    let left = line.width();
    if wanted > 0 && left + 1 + wanted <= usize::from(columns) {
        line.push_span(Span::raw(" ".repeat(usize::from(columns) - left - wanted)));
        line.extend(right);
    }
    line
}

/// Replaces unprintable text, wherever it came from.
fn clean_cells(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().contains(is_unprintable) {
            cell.set_symbol(" ");
        }
    }
}

impl Painter<'_> {
    /// The goal, the stop files and the time; below it the progress of the sprint.
    fn head(&self, buffer: &mut Buffer, area: Rect) {
        let theme = self.theme;
        let Some(view) = &self.model.view else {
            let text = self.model.problem.as_deref().unwrap_or("reading the blackboard…");
            put(buffer, row(area, 0), &Line::styled(cut(text, usize::from(area.width)), theme.heading));
            return;
        };
        let mut right: Vec<Span<'static>> = Vec::new();
        if let Some(label) = self.model.label {
            right.push(Span::styled(format!("{label} "), theme.warning));
        }
        let is_open = view.goal.as_ref().is_some_and(|goal| goal.status == GoalStatus::InProgress);
        if is_open && !view.has_team() && self.model.mode == ScreenMode::Observer {
            right.push(Span::styled("NO TEAM ", theme.bad));
        }
        if self.model.is_held() {
            right.push(Span::styled("HELD ", theme.bad));
        }
        if self.model.stopping || view.is_stopping() {
            right.push(Span::styled("STOPPING ", theme.bad));
        }
        for stop in &view.stopped {
            let word = match stop.file {
                StopFile::Abort => "ABORTED",
                StopFile::Checkpoint => "CHECKPOINT",
                StopFile::Pause => "PAUSED",
            };
            right.push(Span::styled(format!("{word} "), theme.bad));
        }
        let goal = view.goal.as_ref();
        match goal.map(|goal| goal.status) {
            Some(GoalStatus::Completed) => right.push(Span::styled("COMPLETED ", theme.good)),
            Some(GoalStatus::Aborted) if view.stopped.is_empty() => {
                right.push(Span::styled("ABORTED ", theme.bad));
            }
            Some(GoalStatus::Aborted | GoalStatus::InProgress) | None => {}
        }
        right.push(Span::styled(self.times.of_day(view.now), theme.dim));
        let taken: usize = right.iter().map(Span::width).sum();
        let room = usize::from(area.width).saturating_sub(taken + 2);
        let id = goal.map(|goal| goal.id.clone()).unwrap_or_default();
        let wanted = goal.map(|goal| goal.description.trim()).filter(|text| !text.is_empty());
        let wanted = cut(wanted.unwrap_or("no goal stated yet"), room.saturating_sub(width(&id) + 1));
        let left = vec![
            Span::styled(format!("{} ", cut(&id, room)), theme.dim),
            Span::styled(wanted, theme.heading),
        ];
        put(buffer, row(area, 0), &with_right(Line::from(left), right, area.width));
        if let Some(problem) = &self.model.problem {
            let text = format!("cannot read the blackboard: {problem}");
            put(buffer, row(area, 1), &Line::styled(cut(&text, usize::from(area.width)), theme.bad));
        } else {
            put(buffer, row(area, 1), &self.progress(usize::from(area.width)));
        }
    }

    fn progress(&self, columns: usize) -> Line<'static> {
        let Some(sprint) = self.model.view.as_ref().and_then(|view| view.sprint.as_ref()) else {
            return Line::default();
        };
        let budgets = self.model.view.as_ref().and_then(|view| budgets(&view.budgets));
        let mut facts = sprint_facts(sprint);
        facts.extend(budgets.map(|budgets| (SprintPart::Budgets, budgets)));
        let facts = fitting_parts(facts, columns.saturating_sub(width(&sprint.id) + 1));
        let room = columns.saturating_sub(width(&sprint.id) + width(&facts) + 3).min(BAR_MAX);
        let mut line = Line::from(Span::styled(format!("{} ", sprint.id), self.theme.dim));
        if sprint.progress.total > 0 && room >= 6 {
            let full = full_columns(sprint, room);
            line.push_span(Span::styled("█".repeat(full), self.theme.good));
            line.push_span(Span::styled(format!("{} ", "░".repeat(room - full)), self.theme.dim));
        }
        let left = columns.saturating_sub(line.width());
        line.push_span(Span::raw(cut(&facts, left)));
        line
    }

    fn heading(&self, title: &str, detail: &str, focused: bool, columns: u16) -> Line<'static> {
        let style = if focused { self.theme.focused } else { self.theme.heading };
        let title = Span::styled(format!(" {title} "), style);
        let detail = Span::styled(
            if detail.is_empty() { String::new() } else { format!(" {detail} ") },
            self.theme.dim,
        );
        let used = title.width() + detail.width();
        let rest = "─".repeat(usize::from(columns).saturating_sub(used));
        Line::from(vec![title, detail, Span::styled(rest, self.theme.dim)])
    }

    /// The line, marked if it has the text of the search.
    fn sought(&self, line: &Line<'static>) -> Line<'static> {
        match has(&line.to_string(), &self.model.sought) {
            true => line.clone().patch_style(self.theme.sought),
            false => line.clone(),
        }
    }

    fn mark(&self, buffer: &mut Buffer, area: Rect, selected: bool) {
        if selected {
            buffer.set_style(area, self.theme.selected);
        }
    }
}

fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}
