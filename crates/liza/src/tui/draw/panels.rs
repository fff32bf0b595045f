//! The panels of the board: needs you, tasks, agents, log.

use std::ops::Range;

use liza_core::model::{Seconds, Status};
use liza_core::watch::alarms::AlarmLevel;
use liza_core::watch::needs_you::NeedsYou;
use liza_core::watch::view::{AgentView, Liveness, TaskPhase, TaskView, View};
use liza_core::watch::words::{
    PHASES, agent_activity, agent_doing, agent_lease, agent_sign, ended_counts, held_back, task_facts, used,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Painter, put, row, span, with_right};
use crate::columns::{cut, cut_name, name_columns, one_line, pad, width, wrap};
use crate::tui::model::{LogLine, Panel};

/// The most lines of one decision.
const NEED_LINES: usize = 8;

/// The longest name is `code-reviewer-10`.
const NAME: usize = 16;

/// How far what an agent does is indented, where it is below its name.
const ACTIVITY_INDENT: usize = 6;

/// A silence that is news: it is shown even where words have to be cut for it.
const LONG_QUIET: Seconds = Seconds(30);

/// From this width on, what an agent does fits beside its name.
pub(super) const ACTIVITY_BESIDE: u16 = 110;

/// A row of the tasks.
pub(super) enum TaskRow {
    Heading(TaskPhase, &'static str, usize),
    /// The place of a task in the view.
    Task(usize),
}

/// The rows of a list that are visible, so that the selected one is among them.
fn window(selected: usize, count: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(count.saturating_sub(height))
}

impl Painter<'_> {
    pub(super) fn needs_you(&self, buffer: &mut Buffer, area: Rect) {
        if area.height == 0 {
            return;
        }
        let focused = self.model.panel == Panel::NeedsYou;
        let height = usize::from(area.height - 1);
        let (lines, selected) = self.need_lines(area.width, height);
        // All of the selected one is visible, with its command.
        let first = window(selected.start + height / 3, lines.len(), height);
        let first = first.max(selected.end.saturating_sub(height)).min(selected.start);
        // Where some are hidden, each one but the selected has one line.
        let below = lines.len().saturating_sub(first + height);
        let mut detail = self.model.needs().len().to_string();
        for (hidden, sign) in [(first, '↑'), (below, '↓')].into_iter().filter(|(hidden, _)| *hidden > 0) {
            detail = format!("{detail} · {sign} {hidden} more");
        }
        put(buffer, row(area, 0), &self.heading("NEEDS YOU", &detail, focused, area.width));
        for (at, line) in lines.iter().skip(first).take(height).enumerate() {
            let place = row(area, u16::try_from(at + 1).unwrap_or(u16::MAX));
            put(buffer, place, line);
            self.mark(buffer, place, focused && first + at == selected.start);
        }
    }

    /// All lines of each decision if that many rows are enough, else one line each, and of the selected one as many as fit;
    /// and the lines of that.
    pub(super) fn need_lines(&self, columns: u16, rows: usize) -> (Vec<Line<'static>>, Range<usize>) {
        let lines = |unfolded: bool| {
            let (mut lines, mut selected) = (Vec::new(), 0..0);
            for (at, need) in self.model.needs().iter().enumerate() {
                let (chosen, start) = (at == self.model.need, lines.len());
                let most = if unfolded { usize::MAX } else { rows };
                lines.extend(match chosen || unfolded {
                    true => self.unfolded_need(need, usize::from(columns), most),
                    false => vec![self.folded_need(need, usize::from(columns))],
                });
                if chosen {
                    selected = start..lines.len();
                }
            }
            (lines, selected)
        };
        let all = lines(true);
        if all.0.len() <= rows { all } else { lines(false) }
    }

    /// The kind and the task of a decision, and its text.
    fn need_head(&self, need: &NeedsYou, columns: usize, whole: bool) -> (Line<'static>, String) {
        let theme = self.theme;
        let (sign, style) = match need.level {
            AlarmLevel::Critical => ("!!", theme.bad),
            AlarmLevel::Warning => (" !", theme.warning),
        };
        let task = need.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let prefix = need.task.as_ref().map(|task| format!("{task} — ")).unwrap_or_default();
        let text = self.times.in_text(&one_line(need.text.strip_prefix(&prefix).unwrap_or(&need.text)));
        let kind = format!(" {sign} {} ", need.kind);
        let room = if whole { columns.saturating_sub(width(&kind) + 1) } else { columns / 3 };
        let task = cut_name(&task, room);
        let task = if task.is_empty() { task } else { format!("{task} ") };
        (Line::from(vec![span(kind, style), span(task, theme.name)]), text)
    }

    /// A decision on one line: what it is about, and its command.
    fn folded_need(&self, need: &NeedsYou, columns: usize) -> Line<'static> {
        let (mut line, _) = self.need_head(need, columns, false);
        let room = columns.saturating_sub(line.width());
        line.push_span(span(cut(&format!("→ {}", one_line(&need.command)), room), self.theme.name));
        line
    }

    /// A decision on at most that many lines: its text gives way, never its command.
    fn unfolded_need(&self, need: &NeedsYou, columns: usize, most: usize) -> Vec<Line<'static>> {
        let (head, text) = self.need_head(need, columns, true);
        let room = columns.saturating_sub(5).max(10);
        let command = wrap(&format!("→ {}", need.command), room);
        let said = std::iter::once(text).chain(need.questions.iter().map(|question| format!("? {question}")));
        let mut said: Vec<String> = said.flat_map(|text| wrap(&text, room)).collect();
        let most = most.saturating_sub(1 + command.len()).min(NEED_LINES);
        if said.len() > most {
            said.truncate(most);
            if let Some(last) = said.last_mut() {
                *last = cut(last, room.saturating_sub(2));
                if !last.ends_with('…') {
                    last.push_str(" …");
                }
            }
        }
        let mut lines = vec![head];
        lines.extend(said.into_iter().map(|line| Line::raw(format!("     {line}"))));
        let command = command.into_iter();
        lines.extend(command.map(|line| Line::from(vec![Span::raw("     "), span(line, self.theme.name)])));
        lines
    }

    /// The rows of the tasks: by state, with a heading each.
    pub(super) fn task_rows(&self) -> Vec<TaskRow> {
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

    pub(super) fn tasks(&self, buffer: &mut Buffer, area: Rect) {
        if area.height == 0 {
            return;
        }
        let focused = self.model.panel == Panel::Tasks;
        let tasks = self.model.tasks();
        let open = tasks.iter().filter(|task| task.phase != TaskPhase::Ended).count();
        let detail = format!("{open} open");
        put(buffer, row(area, 0), &self.heading("TASKS", &detail, focused, area.width));
        let rows = self.task_rows();
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
            TaskRow::Heading(..) => None,
        });
        let name = name_columns(&names.collect::<Vec<_>>(), usize::from(area.width) / 3, cut_name);
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
                TaskRow::Task(task) => {
                    if let Some(task) = tasks.get(*task) {
                        put(buffer, place, &self.task(task, name, area.width));
                    }
                    self.mark(buffer, place, focused && Some(first + at) == selected);
                }
            }
        }
    }

    /// How many open tasks are not among these rows.
    fn hidden(&self, rows: &[TaskRow], first: usize, height: usize) -> usize {
        let is_open = |row: &&TaskRow| match row {
            TaskRow::Task(at) => {
                self.model.tasks().get(*at).is_some_and(|task| task.phase != TaskPhase::Ended)
            }
            TaskRow::Heading(..) => false,
        };
        let visible = rows.iter().skip(first).take(height).filter(is_open).count();
        rows.iter().filter(is_open).count() - visible
    }

    /// What to do when there are no tasks.
    fn first_step(&self) -> String {
        match self.model.next_steps().first() {
            Some((text, command)) => format!("{text} {command}"),
            None if self.model.lacks_goal() => "No tasks yet: no goal is stated.".to_owned(),
            None => match &self.model.view {
                Some(view) => format!("No tasks yet; {}.", self.planning(view)),
                None => String::new(),
            },
        }
    }

    /// Whether the first tasks are being planned.
    fn planning(&self, view: &View) -> String {
        let retry = self.model.agents().iter().find_map(|agent| agent.retry);
        match (held_back(view), retry) {
            (Some(held), _) => held,
            (None, Some(retry)) => format!("planning failed, again {}", retry.again()),
            (None, None) => "the planner is planning".to_owned(),
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
        let id = span(format!("  {}  ", pad(&cut_name(task.id.as_str(), name), name)), style);
        let room = usize::from(columns).saturating_sub(id.width());
        let facts = match (task.phase, task.status) {
            (TaskPhase::Ended, Some(status)) if !task.is_dropped() => status.to_string(),
            (TaskPhase::Stuck, _) => task.reason.as_deref().map(one_line).unwrap_or_default(),
            _ => fitting_or_first(task_facts(task), room * 2 / 3),
        };
        // Why an approved task is not merged says more than its title.
        let most = if task.status == Some(Status::Approved) { room.saturating_sub(2) } else { room * 2 / 3 };
        let facts = cut(&facts, most);
        let text = cut(&task.description, room.saturating_sub(width(&facts) + 1));
        let line = Line::from(vec![id, Span::raw(text)]);
        with_right(line, vec![span(facts, self.theme.dim)], columns)
    }

    pub(super) fn agents(&self, buffer: &mut Buffer, area: Rect) {
        if area.height == 0 {
            return;
        }
        let focused = self.model.panel == Panel::Agents;
        let agents = self.model.agents();
        let detail = format!("{} of {} at work", at_work(agents), agents.len());
        put(buffer, row(area, 0), &self.heading("AGENTS", &detail, focused, area.width));
        let height = usize::from(area.height - 1);
        let rows_each = if area.width < ACTIVITY_BESIDE && height >= agents.len() * 2 { 2 } else { 1 };
        // The last row says how many are hidden.
        let fitting = height / rows_each;
        let shown = if agents.len() > fitting && fitting > 1 { fitting - 1 } else { fitting };
        // Those at work are at the top; a selected one is looked for only where the keys are.
        let first = if focused { window(self.model.agent, agents.len(), shown) } else { 0 };
        if shown < fitting {
            let hidden = at_work(agents) - at_work(&agents[first..first + shown]);
            let working = if hidden > 0 { format!(", {hidden} at work") } else { String::new() };
            let text = format!("    … {} more{working}", agents.len() - shown);
            put(
                buffer,
                row(area, u16::try_from(height).unwrap_or(u16::MAX)),
                &Line::styled(text, self.theme.dim),
            );
        }
        let name = agents.iter().map(|agent| width(&agent.id.to_string())).max().unwrap_or(0).min(NAME);
        for (at, agent) in agents.iter().enumerate().skip(first).take(shown) {
            let place = |more: usize| {
                row(area, u16::try_from((at - first) * rows_each + 1 + more).unwrap_or(u16::MAX))
            };
            put(buffer, place(0), &self.agent(agent, (name, rows_each == 1), area.width));
            self.mark(buffer, place(0), focused && at == self.model.agent);
            let activity = second_row(agent).or_else(|| agent_activity(agent));
            if let Some(activity) = activity.filter(|_| rows_each == 2) {
                let text = cut(&activity, usize::from(area.width).saturating_sub(ACTIVITY_INDENT));
                let line = format!("{}{text}", " ".repeat(ACTIVITY_INDENT));
                put(buffer, place(1), &Line::styled(line, self.theme.dim));
            }
        }
    }

    /// An agent: what it does, for how long it has been silent, its lease, its context and its cost.
    fn agent(
        &self,
        agent: &AgentView,
        (name, activity_beside): (usize, bool),
        columns: u16,
    ) -> Line<'static> {
        let style = match agent.liveness {
            Liveness::Live => self.theme.good,
            Liveness::Grace => self.theme.warning,
            Liveness::Gone | Liveness::Dead => self.theme.bad,
        };
        let head = vec![
            span(format!("  {} ", agent_sign(agent)), style),
            Span::raw(format!("{}  ", pad(&agent.id.to_string(), name))),
        ];
        let used_columns: usize = head.iter().map(Span::width).sum();
        let room = usize::from(columns).saturating_sub(used_columns);
        let doing = agent_doing(agent);
        let activity = agent_activity(agent).filter(|_| activity_beside);
        let (figures, wanted) = (agent_figures(agent), activity.as_ref().map_or(0, |text| width(text) + 3));
        // What it does comes first; a long silence is shown beside that in any case.
        let is_quiet = agent.liveness != Liveness::Live
            || agent.is_in_session() && agent.output_age.is_some_and(|age| age >= LONG_QUIET);
        let least = figures.first().filter(|_| is_quiet).map_or(0, |first| width(first));
        let spare = room.saturating_sub(width(&doing) + wanted + 2).max(least);
        let facts = fitting(figures, spare.min(room / 2));
        let left = room.saturating_sub(width(&facts) + 2);
        let short = short_doing(agent, &doing).filter(|_| !activity_beside);
        let doing = short.unwrap_or(doing.as_str());
        let doing = cut(doing, left);
        let rest = left.saturating_sub(width(&doing) + 3);
        let mut line = Line::from(head);
        let doing_style = if agent.liveness.is_present() { Style::new() } else { self.theme.bad };
        line.push_span(span(doing, doing_style));
        if let Some(activity) = activity.filter(|_| rest >= 8) {
            line.push_span(span(format!("   {}", cut(&activity, rest)), self.theme.dim));
        }
        with_right(line, vec![span(facts, self.theme.dim)], columns)
    }

    pub(super) fn log(&self, buffer: &mut Buffer, area: Rect) {
        if area.height == 0 {
            return;
        }
        let focused = self.model.panel == Panel::Log;
        let detail = if self.model.log_back > 0 {
            format!("{} newer below", self.model.log_back)
        } else {
            String::new()
        };
        put(buffer, row(area, 0), &self.heading("LOG", &detail, focused, area.width));
        let height = usize::from(area.height - 1);
        let end = self.model.log.len().saturating_sub(self.model.log_back);
        // In a low panel, more entries are worth more than whole ones.
        let most = (height / 4).clamp(1, 3);
        let mut rows: Vec<Line<'static>> = Vec::new();
        for line in self.model.log.iter().take(end).rev() {
            let lines = self.log_lines(line, most, area.width);
            if rows.len() + lines.len() > height {
                break;
            }
            rows.extend(lines.into_iter().rev());
        }
        for (at, line) in rows.iter().rev().enumerate() {
            put(buffer, row(area, u16::try_from(at + 1).unwrap_or(u16::MAX)), line);
        }
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

/// How many agents are in a session, or merge.
fn at_work(agents: &[AgentView]) -> usize {
    agents.iter().filter(|agent| agent.is_at_work()).count()
}

/// As many of the facts as fit, and the first one even if it does not.
fn fitting_or_first(facts: Vec<String>, columns: usize) -> String {
    let first = facts.first().cloned().unwrap_or_default();
    Some(fitting(facts, columns)).filter(|text| !text.is_empty()).unwrap_or(first)
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

/// What an agent does without what is in its second row.
fn short_doing<'a>(agent: &AgentView, doing: &'a str) -> Option<&'a str> {
    match &agent.merging {
        Some(merge) if merge.is_testing => doing.split_once(": ").map(|(short, _)| short),
        Some(_) => None,
        None => doing.rsplit_once(", ").filter(|_| agent.held.is_some()).map(|(short, _)| short),
    }
}

/// What the second row of an agent says that its session does not.
fn second_row(agent: &AgentView) -> Option<String> {
    let merge = agent.merging.as_ref().filter(|merge| merge.is_testing && agent.liveness == Liveness::Live);
    merge.map(|merge| format!("integration test, {}", merge.age)).or_else(|| held_until(agent))
}

/// When a held agent continues, and the key that tries it now.
fn held_until(agent: &AgentView) -> Option<String> {
    let held = agent.held.as_ref().filter(|_| agent.liveness == Liveness::Live)?;
    Some(match held.again_in {
        None => "waits for you".to_owned(),
        Some(left) if left.0 == 0 => "again now".to_owned(),
        Some(left) => format!("again in {left}; now: r"),
    })
}

/// The figures of an agent, the most important first.
fn agent_figures(agent: &AgentView) -> Vec<String> {
    let in_session = agent.is_in_session();
    let mut facts = Vec::new();
    match (agent.output_age.filter(|_| in_session), agent.heartbeat_age) {
        (Some(age), _) => facts.push(format!("quiet {age}")),
        // That a live agent was seen a moment ago is no news.
        (None, Some(age)) if agent.liveness != Liveness::Live => facts.push(format!("seen {age}")),
        (None, Some(_) | None) => {}
    }
    facts.extend(agent.context_percent.filter(|_| in_session).map(|percent| format!("context {percent} %")));
    facts.extend(agent_lease(agent));
    facts.extend(agent.usage.as_ref().and_then(used));
    facts
}
