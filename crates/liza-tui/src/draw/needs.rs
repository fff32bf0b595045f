//! The panel of the decisions that wait for the human.

use std::ops::Range;

use liza_host::columns::{cut, cut_middle, one_line, width, wrap};
use liza_status::alarms::AlarmLevel;
use liza_status::needs_you::NeedsYou;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::model::Panel;

use super::{Painter, put, row, span, window};

/// The most lines of one decision.
const NEED_LINES: usize = 8;

/// The fewest lines of the selected decision: with its command, and some of its text.
const LEAST_LINES: usize = 5;

pub(crate) struct NeedLines {
    pub lines: Vec<Line<'static>>,
    /// The first line of the selected one.
    selected: usize,
    /// The lines that have to be visible.
    whole: Range<usize>,
}

impl Painter<'_> {
    pub(crate) fn needs_you(&self, buffer: &mut Buffer, area: Rect) {
        if area.height == 0 {
            return;
        }
        let focused = self.model.panel == Panel::NeedsYou;
        let height = usize::from(area.height - 1);
        let NeedLines { lines, selected, whole } = self.need_lines(area.width, height);
        // All of the selected one is visible, with its command.
        let first = window(selected + height / 3, lines.len(), height);
        let first = first.max(whole.end.saturating_sub(height)).min(whole.start);
        // Each hidden decision has one line.
        let below = lines.len().saturating_sub(first + height);
        let mut detail = self.model.needs().len().to_string();
        for (hidden, sign) in [(first, '↑'), (below, '↓')].into_iter().filter(|(hidden, _)| *hidden > 0) {
            detail = format!("{detail} · {sign} {hidden} more");
        }
        put(buffer, row(area, 0), &self.heading("NEEDS YOU", &detail, focused, area.width));
        for (at, line) in lines.iter().skip(first).take(height).enumerate() {
            let place = row(area, u16::try_from(at + 1).unwrap_or(u16::MAX));
            put(buffer, place, line);
            self.mark(buffer, place, focused && first + at == selected);
        }
    }

    /// All lines of each decision if `rows` are enough; else one line each, and more for the selected one and
    /// for an urgent one that has just arrived.
    pub(crate) fn need_lines(&self, columns: u16, rows: usize) -> NeedLines {
        let (columns, needs) = (usize::from(columns), self.model.needs());
        let all = self.lines_of_needs(columns, |_| Some(usize::MAX));
        if all.lines.len() <= rows {
            return all;
        }
        let chosen = self.model.need;
        let arrived = self.model.arrived().filter(|arrived| *arrived != chosen);
        let both = arrived.and_then(|arrived| {
            let own = self.unfolded_need(needs.get(arrived)?, columns, rows / 2).len();
            let left = rows.checked_sub(own + arrived.abs_diff(chosen) - 1)?;
            let most = |at: usize| match at {
                at if at == arrived => Some(rows / 2),
                at => (at == chosen).then_some(left),
            };
            Some(self.lines_of_needs(columns, most)).filter(|both| both.whole.len() <= rows)
        });
        // The text of the selected one gives way to the lines of the others.
        let most = rows.saturating_sub(needs.len().saturating_sub(1)).max(LEAST_LINES);
        both.unwrap_or_else(|| self.lines_of_needs(columns, |at| (at == chosen).then_some(most.min(rows))))
    }

    /// The lines of all decisions, given how many each one may have if it is unfolded.
    fn lines_of_needs(&self, columns: usize, most: impl Fn(usize) -> Option<usize>) -> NeedLines {
        let mut all = NeedLines { lines: Vec::new(), selected: 0, whole: 0..0 };
        for (at, need) in self.model.needs().iter().enumerate() {
            let start = all.lines.len();
            match most(at) {
                Some(most) => all.lines.extend(self.unfolded_need(need, columns, most)),
                None => all.lines.push(self.folded_need(need, columns)),
            }
            if at == self.model.need {
                all.selected = start;
            }
            if at == self.model.need || most(at).is_some_and(|most| most < usize::MAX) {
                let first = if all.whole.is_empty() { start } else { all.whole.start };
                all.whole = first..all.lines.len();
            }
        }
        all
    }

    /// The kind and the task of a decision, and its text.
    fn need_head(&self, need: &NeedsYou, columns: usize, whole: bool) -> (Line<'static>, String) {
        let theme = self.theme;
        let (sign, style) = match need.level {
            AlarmLevel::Critical => ("!!", theme.bad),
            AlarmLevel::Warning => (" !", theme.warning),
        };
        let task = need.task.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = self.times.in_text(&one_line(need.text.words()));
        let kind = format!(" {sign} {} ", need.kind);
        let room = if whole { columns.saturating_sub(width(&kind) + 1) } else { columns / 3 };
        let task = cut_middle(&task, room);
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
        let most = most.saturating_sub(1 + command.len()).min(NEED_LINES);
        let questions = need.questions.iter().flat_map(|question| wrap(&format!("? {question}"), room));
        let plan = need.plan.iter().map(|task| cut(&one_line(&task.line()), room));
        let questions: Vec<String> = questions.chain(plan).collect();
        // The questions say more than the reason.
        let mut said =
            shortened(wrap(&text, room), most.saturating_sub(questions.len()).max(1).min(most), room);
        let left = most - said.len();
        said.extend(shortened(questions, left, room));
        let mut lines = vec![head];
        lines.extend(said.into_iter().map(|line| Line::raw(format!("     {line}"))));
        let command = command.into_iter();
        lines.extend(command.map(|line| Line::from(vec![Span::raw("     "), span(line, self.theme.name)])));
        lines
    }
}

/// At most that many lines; the last one shows that there are more.
fn shortened(mut lines: Vec<String>, most: usize, columns: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = cut(last, columns.saturating_sub(2));
            if !last.ends_with('…') {
                last.push_str(" …");
            }
        }
    }
    lines
}
