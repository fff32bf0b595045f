//! The panels of the tasks and of the log.

use liza_core::model::{Role, Status};
use liza_host::columns::{cut, cut_middle, name_columns, one_line, pad, width, wrap};
use liza_status::view::{TaskPhase, TaskView};
use liza_status::words::{PHASES, ended_counts, in_needs, task_facts};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::model::{LogLine, Panel};

use super::{NAME, Painter, fitting, put, row, span, window, with_right};

pub(crate) enum TaskRow {
    Heading(TaskPhase, &'static str, usize),
    /// A heading, the number of its tasks that are in decisions above, and of all its tasks.
    Asked(&'static str, usize, usize),
    /// The place of a task in the view.
    Task(usize),
}

impl Painter<'_> {
    pub(crate) fn task_rows(&self) -> Vec<TaskRow> {
        let tasks = self.model.tasks();
        let mut rows = Vec::with_capacity(tasks.len() + PHASES.len() + 1);
        let mut last = None;
        for (at, task) in tasks.iter().enumerate() {
            if last != Some(task.phase) {
                last = Some(task.phase);
                let title = PHASES.iter().find(|(phase, _)| *phase == task.phase);
                let count = tasks[at..].iter().take_while(|other| other.phase == task.phase).count();
                rows.push(TaskRow::Heading(task.phase, title.map_or("DONE", |(_, title)| title), count));
            }
            rows.push(TaskRow::Task(at));
        }
        rows
    }

    /// The rows of the tasks in that many. Those that are in decisions above are only counted: the drafts of a plan, which is
    /// listed there, and where the rows do not fit, blocked ones.
    pub(crate) fn fitting_task_rows(&self, height: usize) -> Vec<TaskRow> {
        let rows = self.task_rows();
        // In the panel with the keys, each row can be selected.
        if self.model.panel == Panel::Tasks {
            return rows;
        }
        let (tasks, fits) = (self.model.tasks(), rows.len() <= height);
        let is_asked = |task: &TaskView| {
            let is_short = task.phase == TaskPhase::Draft || !fits;
            is_short && self.model.view.as_ref().is_some_and(|view| view.is_in_needs(task))
        };
        let short = rows.into_iter().filter_map(|row| match row {
            TaskRow::Task(at) => (!tasks.get(at).is_some_and(is_asked)).then_some(row),
            TaskRow::Heading(phase, title, count) => {
                let own = tasks.iter().filter(|task| task.phase == phase && is_asked(task)).count();
                Some(if own > 0 { TaskRow::Asked(title, own, count) } else { row })
            }
            TaskRow::Asked(..) => Some(row),
        });
        short.collect()
    }

    pub(crate) fn tasks(&self, buffer: &mut Buffer, area: Rect) {
        if area.height == 0 {
            return;
        }
        let focused = self.model.panel == Panel::Tasks;
        let tasks = self.model.tasks();
        let open = tasks.iter().filter(|task| task.phase != TaskPhase::Ended).count();
        let detail = format!("{open} open");
        put(buffer, row(area, 0), &self.heading("TASKS", &detail, focused, area.width));
        let rows = self.fitting_task_rows(usize::from(area.height - 1));
        if rows.is_empty() {
            let next = self.first_step();
            let text = format!("  {}", cut(&next, usize::from(area.width).saturating_sub(2)));
            put(buffer, row(area, 1), &Line::styled(text, self.theme.dim));
            return;
        }
        let selected = rows.iter().position(|row| matches!(row, TaskRow::Task(at) if *at == self.model.task));
        let mut height = usize::from(area.height - 1);
        let mut first = window(selected.unwrap_or(0), rows.len(), height);
        if height > 1 && self.hidden(&rows, first, height) > 0 {
            // The last row says how many are hidden.
            height -= 1;
            first = window(selected.unwrap_or(0), rows.len(), height);
            // A heading without a row says nothing.
            height -= usize::from(matches!(rows.get(first + height - 1), Some(TaskRow::Heading(..))));
            let text = format!("  … {} more", self.hidden(&rows, first, height));
            let place = row(area, u16::try_from(height + 1).unwrap_or(u16::MAX));
            put(buffer, place, &Line::styled(text, self.theme.dim));
        }
        let visible = rows.iter().skip(first).take(height);
        let names = visible.clone().filter_map(|row| match row {
            TaskRow::Task(at) => tasks.get(*at).map(|task| task.id.as_str()),
            TaskRow::Heading(..) | TaskRow::Asked(..) => None,
        });
        let name = name_columns(&names.collect::<Vec<_>>(), usize::from(area.width) / 3, cut_middle);
        for (at, shown) in visible.enumerate() {
            let place = row(area, u16::try_from(at + 1).unwrap_or(u16::MAX));
            match shown {
                TaskRow::Heading(phase, title, count) => {
                    let detail = match phase {
                        TaskPhase::Ended => {
                            self.model.view.as_ref().map(|view| ended_counts(view).join(" · "))
                        }
                        TaskPhase::Stuck
                        | TaskPhase::Working
                        | TaskPhase::Stopped
                        | TaskPhase::Reviewing
                        | TaskPhase::Ready
                        | TaskPhase::Waiting
                        | TaskPhase::Draft => Some(count.to_string()),
                    };
                    let line = vec![
                        span(format!(" {title} "), self.theme.heading),
                        span(detail.unwrap_or_default(), self.theme.dim),
                    ];
                    put(buffer, place, &Line::from(line));
                }
                TaskRow::Asked(title, asked, all) => {
                    let detail = in_needs(*asked, *all);
                    let heading = span(format!(" {title} "), self.theme.heading);
                    put(buffer, place, &Line::from(vec![heading, span(detail, self.theme.dim)]));
                }
                TaskRow::Task(task) => {
                    if let Some(task) = tasks.get(*task) {
                        put(buffer, place, &self.task(task, name, area.width));
                    }
                    self.mark(buffer, place, focused && Some(first + at) == selected);
                }
            }
        }
    }

    /// The number of open tasks outside these rows.
    fn hidden(&self, rows: &[TaskRow], first: usize, height: usize) -> usize {
        let is_open = |row: &&TaskRow| match row {
            TaskRow::Task(at) => {
                self.model.tasks().get(*at).is_some_and(|task| task.phase != TaskPhase::Ended)
            }
            TaskRow::Heading(..) | TaskRow::Asked(..) => false,
        };
        let visible = rows.iter().skip(first).take(height).filter(is_open).count();
        rows.iter().filter(is_open).count() - visible
    }

    /// The first step of a person while there are no tasks.
    fn first_step(&self) -> String {
        match self.model.next_steps(false).first() {
            Some((text, command)) => format!("{text} {command}"),
            None if self.model.lacks_goal() => "No tasks yet: no goal is stated.".to_owned(),
            None => {
                let mut agents = self.model.agents().iter();
                let planner = agents.find(|agent| agent.role == Role::Planner && agent.liveness.is_present());
                match planner {
                    Some(planner) => format!("No tasks yet; {}.", planner.next),
                    None => "No tasks yet.".to_owned(),
                }
            }
        }
    }

    /// A task: its name, its description and its facts.
    fn task(&self, task: &TaskView, name: usize, columns: u16) -> Line<'static> {
        let style = match task.phase {
            TaskPhase::Stuck => self.theme.bad,
            TaskPhase::Ended => self.theme.dim,
            TaskPhase::Working
            | TaskPhase::Stopped
            | TaskPhase::Reviewing
            | TaskPhase::Ready
            | TaskPhase::Waiting
            | TaskPhase::Draft => self.theme.name,
        };
        let id = span(format!("  {}  ", pad(&cut_middle(task.id.as_str(), name), name)), style);
        let room = usize::from(columns).saturating_sub(id.width());
        let facts = match (task.phase, task.status) {
            (TaskPhase::Ended, Some(status)) if !task.is_dropped() => status.to_string(),
            // Its entry in NEEDS YOU says why.
            (TaskPhase::Stuck, _) if self.model.view.as_ref().is_some_and(|view| view.is_in_needs(task)) => {
                String::new()
            }
            (TaskPhase::Stuck, _) => task.reason.as_deref().map(one_line).unwrap_or_default(),
            _ => fitting_or_first(task_facts(task), room * 2 / 3),
        };
        // The reason why an approved task is not merged says more than its title.
        let most = if task.status == Some(Status::Approved) { room.saturating_sub(2) } else { room * 2 / 3 };
        let facts = cut(&facts, most);
        let text = cut(&task.description, room.saturating_sub(width(&facts) + 1));
        let line = Line::from(vec![id, Span::raw(text)]);
        with_right(line, vec![span(facts, self.theme.dim)], columns)
    }

    /// Draws the log; returns how far it can be scrolled back.
    pub(crate) fn log(&self, buffer: &mut Buffer, area: Rect) -> usize {
        if area.height == 0 {
            return 0;
        }
        let (focused, log) = (self.model.panel == Panel::Log, &self.model.log);
        let height = usize::from(area.height - 1);
        // In a low panel, more entries are worth more than whole ones.
        let lines = |entry: &LogLine| self.log_lines(entry, (height / 4).clamp(1, 3), area.width);
        let mut rows = 0;
        let oldest = log.iter().take_while(|entry| {
            rows += lines(entry).len();
            rows <= height
        });
        let most = log.len() - oldest.count();
        let back = self.model.log_back.min(most);
        let detail = if back > 0 { format!("{back} newer below") } else { String::new() };
        put(buffer, row(area, 0), &self.heading("LOG", &detail, focused, area.width));
        let mut rows: Vec<Line<'static>> = Vec::new();
        for entry in log.iter().take(log.len() - back).rev() {
            let lines = lines(entry);
            if rows.len() + lines.len() > height {
                break;
            }
            rows.extend(lines.iter().rev().map(|line| self.sought(line)));
        }
        for (at, line) in rows.iter().rev().enumerate() {
            put(buffer, row(area, u16::try_from(at + 1).unwrap_or(u16::MAX)), line);
        }
        most
    }

    /// An entry of the log on at most that many lines.
    fn log_lines(&self, line: &LogLine, most: usize, columns: u16) -> Vec<Line<'static>> {
        let time = span(format!("  {} ", self.times.of_day(line.time)), self.theme.dim);
        let is_narrow = columns < 60;
        let who = pad(&cut(&line.who, NAME), if is_narrow { 0 } else { NAME });
        let who = span(format!("{who} "), self.theme.name);
        let first = time.width() + who.width();
        let indent = if is_narrow { time.width() } else { first };
        let style = if line.is_alert { self.theme.bad } else { Style::new() };
        let filler = "x".repeat(first - indent);
        let room = usize::from(columns).saturating_sub(indent).max(10);
        let text = self.times.in_text(&one_line(&line.text));
        let mut texts = wrap(&format!("{filler}{text}"), room);
        if texts.len() > most {
            let rest = texts.split_off(most - 1).join(" ");
            texts.push(cut(&rest, room));
        }
        let mut lines = texts.into_iter().map(|text| text.strip_prefix(&filler).unwrap_or(&text).to_owned());
        let head = Line::from(vec![time, who, span(lines.next().unwrap_or_default(), style)]);
        let rest = lines.map(|text| Line::from(vec![Span::raw(" ".repeat(indent)), span(text, style)]));
        std::iter::once(head).chain(rest).collect()
    }
}

/// As many of the facts as fit, and the first one even if it does not.
fn fitting_or_first(facts: Vec<String>, columns: usize) -> String {
    let first = facts.first().cloned().unwrap_or_default();
    Some(fitting(facts, columns)).filter(|text| !text.is_empty()).unwrap_or(first)
}
