//! The bottom of the screen: the open dialog, else the action that runs, else the last result, else the keys.

use liza_core::model::{GoalStatus, Status};
use liza_host::columns::{cut, one_line, width, wrap};
use liza_status::action::{Action, ActionName};
use liza_status::needs_you::{NeedsYou, PlannedTask};
use liza_status::view::View;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::ScreenMode;
use crate::model::dialog::Dialog;
use crate::model::input_field::InputField;
use crate::model::page::Page;
use crate::model::{Panel, Prompt};
use crate::styled::{printable, shell_line};
use crate::update::PAGE_FRAME;

use super::{Painter, put, row, span};

impl Painter<'_> {
    /// Draws the bottom; returns the position of the cursor, if there is one.
    pub(crate) fn bottom(&self, buffer: &mut Buffer, area: Rect) -> Option<Position> {
        let columns = usize::from(area.width);
        match (&self.model.prompt, &self.model.dialog) {
            (Some(Prompt::Search(field)), _) => return self.search(buffer, area, field),
            (Some(Prompt::Leave), _) => {
                self.at_bottom(buffer, area, &self.leave_lines(columns));
                return None;
            }
            (None, Some(dialog)) => return self.dialog(buffer, area, dialog),
            (None, None) => {}
        }
        let line = match (self.model.running.first(), &self.model.notice) {
            (Some(words), _) => {
                let command = printable(&format!("→ {} …", shell_line(words)));
                Line::styled(format!(" {}", cut(&command, columns.saturating_sub(1))), self.theme.name)
            }
            (None, Some(notice)) => {
                let style = if notice.succeeded { self.theme.good } else { self.theme.bad };
                Line::styled(format!(" {}", cut(&notice.text, columns.saturating_sub(1))), style)
            }
            (None, None) => match self.model.stop_text() {
                Some(text) => {
                    Line::styled(format!(" {}", cut(&text, columns.saturating_sub(1))), self.theme.good)
                }
                None => self.keys(columns),
            },
        };
        put(buffer, row(area, area.height - 1), &line);
        None
    }

    /// The keys that are most likely wanted, as many as fit.
    fn keys(&self, columns: usize) -> Line<'static> {
        let mut keys: Vec<(&str, String)> = match &self.model.page {
            Some(page) => self.page_keys(page),
            None => self.board_keys(),
        };
        keys.extend(self.task_keys().into_iter().map(|(key, what)| (key, what.to_owned())));
        let stopped = self.model.view.as_ref().is_some_and(|view| !view.stopped.is_empty());
        let has_ended =
            |view: &View| view.goal.as_ref().is_some_and(|goal| goal.status != GoalStatus::InProgress);
        let mut last = match stopped {
            _ if self.model.view.as_deref().is_some_and(has_ended) => Vec::new(),
            true if self.model.used_up_budget().is_some() => vec![("r", "raise the budget")],
            true => vec![("r", "resume")],
            false if self.model.view.as_ref().is_some_and(|view| view.can_try_now()) => {
                vec![("r", "try now"), ("p", "pause")]
            }
            false => vec![("p", "pause")],
        };
        last.push(("?", "keys"));
        match (self.model.mode, &self.model.page) {
            (ScreenMode::Observer, Some(_)) => last.push(("q", "back")),
            (ScreenMode::Observer, None) => last.push(("q", "leave")),
            (ScreenMode::Team, Some(_)) => last.push(("Ctrl-C", "stop")),
            (ScreenMode::Team, None) => last.push(("q", "detach or stop")),
        }
        keys.extend(last.iter().map(|(key, what)| (*key, (*what).to_owned())));
        let total = |keys: &[(&str, String)]| {
            keys.iter().map(|(key, what)| width(key) + width(what) + 3).sum::<usize>() + 1
        };
        let has_team = self.model.view.as_ref().is_some_and(|view| view.has_team());
        let goes_on = ", the team goes on";
        let fits = total(&keys) + width(goes_on) <= columns;
        if let Some((_, what)) = keys.last_mut().filter(|(_, what)| what == "leave" && has_team && fits) {
            what.push_str(goes_on);
        }
        // The last ones stay: the brake, how to find the others, and how to leave.
        while total(&keys) > columns && keys.len() > 2 {
            keys.remove(keys.len().saturating_sub(last.len() + 1));
        }
        let spans = keys.into_iter().flat_map(|(key, what)| {
            [span(format!(" {key}"), self.theme.name), span(format!(" {what} "), self.theme.dim)]
        });
        Line::from(spans.collect::<Vec<_>>())
    }

    fn page_keys(&self, page: &Page) -> Vec<(&'static str, String)> {
        let height = usize::from(self.model.size.1.saturating_sub(PAGE_FRAME));
        let scroll = match page.length().saturating_sub(page.top(height) + height) {
            0 => "scroll".to_owned(),
            below => format!("scroll, {below} more below"),
        };
        let mut keys = vec![("Esc", "back".to_owned()), ("↑↓", scroll)];
        if page.tabs.len() > 1 {
            keys.push(("←→", "tab".to_owned()));
        }
        keys.push(("/", "search".to_owned()));
        keys
    }

    fn board_keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = vec![("Tab", "panel".to_owned()), ("↑↓", "select".to_owned())];
        match self.model.panel {
            Panel::NeedsYou => keys.push(("Enter", self.answer_key().to_owned())),
            Panel::Tasks | Panel::Agents => keys.push(("Enter", "open".to_owned())),
            Panel::Log => {}
        }
        keys
    }

    /// The action of Enter on the selected decision.
    fn answer_key(&self) -> &'static str {
        let Some(need) = self.model.needs().get(self.model.need) else { return "answer" };
        let action = Action::answering(need);
        match action.needs_terminal() {
            true => "show the command",
            false if action.fields.is_empty() => "run it",
            false => "answer",
        }
    }

    fn task_keys(&self) -> Vec<(&'static str, &'static str)> {
        let Some(task) = self.model.subject() else { return Vec::new() };
        let mut keys = Vec::new();
        if task.status == Some(Status::ReadyForReview) {
            keys.extend([("v", "approve"), ("x", "reject")]);
        }
        let by_enter = self.model.page.is_none() && self.model.panel == Panel::NeedsYou;
        let is_asked = |need: &NeedsYou| {
            need.task.as_ref() == Some(&task.id) && Action::answering(need).name == Some(ActionName::Answer)
        };
        let asks = task.status == Some(Status::Blocked) || self.model.needs().iter().any(is_asked);
        if asks && !by_enter {
            keys.push(("a", "answer"));
        }
        if task.status.is_some_and(|status| !status.is_terminal()) {
            keys.push(("n", "note"));
        }
        keys
    }

    fn dialog(&self, buffer: &mut Buffer, area: Rect, dialog: &Dialog) -> Option<Position> {
        let columns = usize::from(area.width);
        let room = columns.saturating_sub(2).max(10);
        let mut lines = vec![self.heading(&cut(&dialog.action.title, room), "", true, area.width)];
        lines.extend(self.asked(dialog, room));
        let warning = dialog.action.warning.unwrap_or_default();
        lines.extend(
            wrap(warning, room).into_iter().map(|line| Line::styled(format!(" {line}"), self.theme.warning)),
        );
        let first_field = lines.len();
        let mut cursor = None;
        for (at, field) in dialog.fields.iter().enumerate() {
            let (line, column) = self.field(field, columns);
            if at == dialog.current {
                cursor = Some((first_field + at, column));
            }
            lines.push(line);
        }
        let command = wrap(&format!("→ {}", shell_line(&dialog.words())), room);
        lines.extend(
            command.into_iter().take(4).map(|line| Line::styled(format!(" {line}"), self.theme.name)),
        );
        let hint = match dialog.fields.is_empty() {
            true => " y run it   n or Esc cancel",
            false => " Enter run it   Esc cancel",
        };
        lines.push(Line::styled(hint, self.theme.dim));
        let place = self.at_bottom(buffer, area, &lines);
        let (at, column) = cursor?;
        let y = place.y + u16::try_from(at).ok()?;
        Some(Position { x: area.x + u16::try_from(column).ok()?, y })
    }

    /// The text that is looked for, in the last row.
    fn search(&self, buffer: &mut Buffer, area: Rect, field: &InputField) -> Option<Position> {
        let (line, column) = self.field(field, usize::from(area.width));
        let place = self.at_bottom(buffer, area, &[line]);
        Some(Position { x: area.x + u16::try_from(column).ok()?, y: place.y })
    }

    /// The choices of a person who leaves the screen of a team that this process runs.
    fn leave_lines(&self, columns: usize) -> Vec<Line<'static>> {
        let room = columns.saturating_sub(2).max(10);
        let text = "The team runs in this terminal. Detached, it goes on in the background: liza attach shows it, \
                    liza stop ends it.";
        let mut lines =
            vec![self.heading("Leave the screen", "", true, u16::try_from(columns).unwrap_or(u16::MAX))];
        lines.extend(wrap(text, room).into_iter().map(|line| Line::raw(format!(" {line}"))));
        lines.push(Line::styled(" d detach   s stop the team   Esc cancel", self.theme.dim));
        lines
    }

    /// Writes lines over the last rows; returns their area.
    fn at_bottom(&self, buffer: &mut Buffer, area: Rect, lines: &[Line<'_>]) -> Rect {
        let height = u16::try_from(lines.len()).unwrap_or(area.height).min(area.height);
        let place = Rect { y: area.y + area.height - height, height, ..area };
        for y in place.top()..place.bottom() {
            for x in place.left()..place.right() {
                if let Some(cell) = buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
        for (at, line) in lines.iter().take(usize::from(height)).enumerate() {
            put(buffer, row(place, u16::try_from(at).unwrap_or(u16::MAX)), line);
        }
        place
    }

    /// The question that the dialog answers, in the words of who asked.
    fn asked(&self, dialog: &Dialog, room: usize) -> Vec<Line<'static>> {
        let words = dialog.words();
        let about = |need: &&NeedsYou| {
            need.task.as_ref().is_some_and(|task| words.iter().any(|word| word == task.as_str()))
        };
        // Other actions may be about something else than the selected decision.
        let answers = |need: &&NeedsYou| {
            self.model.panel == Panel::NeedsYou && (dialog.action.name.is_none() || about(need))
        };
        let selected = self.model.needs().get(self.model.need).filter(answers);
        let need = selected.or_else(|| self.model.needs().iter().find(about));
        if let Some(need) = need.filter(|need| !need.plan.is_empty()) {
            return plan_lines(&need.plan, room, usize::from(self.model.size.1).saturating_sub(8));
        }
        let answered = dialog.action.task.as_ref().filter(|_| dialog.action.name == Some(ActionName::Answer));
        let (text, questions) = match (need, answered) {
            (Some(need), _) => (Some(need.text.to_string()), need.questions.clone()),
            // The planner has the question first; the person may be faster.
            (None, Some(task)) => match self.model.task_view(task) {
                Some(task) => (task.reason.clone(), task.questions.clone()),
                None => (None, Vec::new()),
            },
            (None, None) => (None, Vec::new()),
        };
        let text = text.into_iter().chain(questions.iter().map(|text| format!("? {text}")));
        let lines = text.flat_map(|text| wrap(&one_line(&text), room)).take(6);
        lines.map(|line| Line::raw(format!(" {line}"))).collect()
    }

    /// A field with as much of its text as fits, and the column of its cursor.
    fn field(&self, field: &InputField, columns: usize) -> (Line<'static>, usize) {
        let optional = if field.optional { " (optional)" } else { "" };
        let label = format!(" {}{optional}: ", field.label);
        let room = columns.saturating_sub(width(&label) + 1).max(1);
        let before = &field.text[..field.cursor];
        // The end before the cursor stays visible.
        let mut start = 0;
        while width(&before[start..]) > room.saturating_sub(1) {
            start += before[start..].chars().next().map_or(1, char::len_utf8);
        }
        let mut shown = String::new();
        for c in field.text[start..].chars() {
            shown.push(c);
            if width(&shown) > room {
                shown.pop();
                break;
            }
        }
        let column = width(&label) + width(&before[start..]);
        (Line::from(vec![span(label, self.theme.heading), Span::raw(shown)]), column)
    }
}

/// A plan to approve, on at most `most` lines; the last one says what is missing.
fn plan_lines(plan: &[PlannedTask], room: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (at, task) in plan.iter().enumerate() {
        let text = format!("{}. {}", at + 1, one_line(&task.line()));
        let wrapped = wrap(&text, room);
        let more = plan.len() - at;
        if lines.len() + wrapped.len() > most.saturating_sub(usize::from(more > 1)) {
            lines.push(Line::raw(format!(" and {more} more: liza plan")));
            break;
        }
        lines.extend(wrapped.into_iter().map(|line| Line::raw(format!(" {line}"))));
    }
    lines
}
