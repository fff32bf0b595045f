//! The board: how much room each panel gets.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::panels::ACTIVITY_BESIDE;
use super::{Painter, put, row, span};
use crate::columns::{cut, width};
use crate::tui::model::Panel;

/// From this width on, there are two columns.
const WIDE: u16 = 120;

/// A text with less room than this says nothing.
const LEAST_TEXT: usize = 8;

impl Painter<'_> {
    /// All panels: one below the other, or in two columns.
    pub(super) fn board(&self, buffer: &mut Buffer, area: Rect) {
        let area = self.next(buffer, area);
        if area.width < WIDE {
            let needs = self.needs_height(area.width, area.height / 3, 0);
            let rest = area.height - needs;
            let agents = self.agents_height(rest / 3);
            let log = self.log_height(rest, agents);
            let [needs, tasks, agents, log] = stack(area, [needs, rest - agents - log, agents, log]);
            self.needs_you(buffer, needs);
            self.tasks(buffer, tasks);
            self.agents(buffer, agents);
            self.log(buffer, log);
            return;
        }
        let left = Rect { width: area.width * 11 / 20, ..area };
        let right = Rect { x: area.x + left.width + 1, width: area.width - left.width - 1, ..area };
        let tasks = u16::try_from(self.task_rows().len()).unwrap_or(u16::MAX).max(1).saturating_add(1);
        let spare = area.height.saturating_sub(tasks);
        let needs = self.needs_height(left.width, area.height / 2, spare);
        let [needs, tasks, ..] = stack(left, [needs, area.height - needs, 0, 0]);
        let agents = self.agents_height_with_activity(right.width, area.height / 2);
        let [agents, log, ..] = stack(right, [agents, area.height - agents, 0, 0]);
        self.needs_you(buffer, needs);
        self.tasks(buffer, tasks);
        self.agents(buffer, agents);
        self.log(buffer, log);
    }

    /// What only a person can do next, in one row; returns the rest of the area.
    fn next(&self, buffer: &mut Buffer, area: Rect) -> Rect {
        let steps = self.model.next_steps();
        // Without tasks, the panel of the tasks says it.
        if steps.is_empty() || self.model.tasks().is_empty() {
            return area;
        }
        let mut line = Line::default();
        let mut commands: usize = steps.iter().map(|(_, command)| width(command) + 2).sum();
        for (text, command) in steps {
            // The commands are what a person needs: the texts give way.
            let room = usize::from(area.width).saturating_sub(line.width() + commands);
            let text = fitting_text(text, room);
            let text = if room < LEAST_TEXT.min(width(&text)) { "·".to_owned() } else { cut(&text, room) };
            commands -= width(command) + 2;
            if line.width() + width(&text) + width(command) + 2 > usize::from(area.width) {
                break;
            }
            line.push_span(span(format!(" {text} "), self.theme.warning));
            line.push_span(span(command, self.theme.name));
        }
        put(buffer, row(area, 0), &line);
        Rect { y: area.y + 1, height: area.height - 1, ..area }
    }

    /// As many rows as its lines need; more if it has the keys, or if other panels leave rows to spare.
    fn needs_height(&self, columns: u16, at_most: u16, spare: u16) -> u16 {
        if self.model.needs().is_empty() {
            return 0;
        }
        let at_most = if self.model.panel == Panel::NeedsYou { at_most + at_most / 2 } else { at_most };
        let at_most = at_most.max(spare);
        let lines = self.need_lines(columns, usize::from(at_most.saturating_sub(1))).0.len();
        u16::try_from(lines + 1).unwrap_or(at_most).min(at_most.max(3))
    }

    fn agents_height(&self, at_most: u16) -> u16 {
        match u16::try_from(self.model.agents().len()).unwrap_or(u16::MAX) {
            0 => 0,
            count => count.saturating_add(1).min(at_most.max(3)),
        }
    }

    /// With a second row for what each one does, where one row is too narrow for that and there is room.
    fn agents_height_with_activity(&self, columns: u16, at_most: u16) -> u16 {
        let both = u16::try_from(self.model.agents().len() * 2 + 1).unwrap_or(u16::MAX);
        match columns < ACTIVITY_BESIDE && both > 1 && both <= at_most {
            true => both,
            false => self.agents_height(at_most),
        }
    }

    /// The log gets what the tasks do not need, and more if it has the keys.
    fn log_height(&self, rest: u16, agents: u16) -> u16 {
        let room = rest.saturating_sub(agents);
        let tasks = u16::try_from(self.task_rows().len() + 1).unwrap_or(u16::MAX).max(2);
        let least = if self.model.panel == Panel::Log { room * 2 / 3 } else { room / 4 };
        room.saturating_sub(tasks).max(least).max(2).min(room)
    }
}

/// The sentence without what is between its commas, if it is too long: `The goal is reached. Review it:`.
fn fitting_text(text: String, columns: usize) -> String {
    if width(&text) <= columns {
        return text;
    }
    let parts = text.split_once(", ").and_then(|(head, rest)| Some((head, rest.rsplit_once(". ")?.1)));
    parts.map(|(head, tail)| format!("{head}. {tail}")).unwrap_or(text)
}

/// Areas of these heights, one below the other.
fn stack(area: Rect, heights: [u16; 4]) -> [Rect; 4] {
    let mut y = area.y;
    heights.map(|height| {
        let part = Rect { y, height, ..area };
        y += height;
        part
    })
}
