//! The board: divides the room among the panels.

use liza_host::columns::{cut, width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::model::Panel;

use super::agents::ACTIVITY_BESIDE;
use super::{Painter, put, row, span};

/// From this width on, there are two columns.
const WIDE: u16 = 120;

impl Painter<'_> {
    /// Draws all panels in one or two columns. Returns how far the log can be scrolled back.
    pub(crate) fn board(&self, buffer: &mut Buffer, area: Rect) -> usize {
        let area = self.next(buffer, area);
        let [needs, tasks, agents, log] = match area.width < WIDE {
            true => self.one_column(area),
            false => self.two_columns(area),
        };
        self.needs_you(buffer, needs);
        self.tasks(buffer, tasks);
        self.agents(buffer, agents);
        self.log(buffer, log)
    }

    fn one_column(&self, area: Rect) -> [Rect; 4] {
        let needs = self.needs_height(area.width, area.height / 3, 0);
        let rest = area.height - needs;
        // Rows are few: the activity is beside the name.
        let agents = self.agents_height(ACTIVITY_BESIDE, rest / 3);
        let log = self.log_height(rest, agents, self.tasks_height());
        stack(area, [needs, rest - agents - log, agents, log])
    }

    /// The agents beside the rest; below both the log, whose lines are long, or below the agents if the tasks are many.
    fn two_columns(&self, area: Rect) -> [Rect; 4] {
        let left = Rect { width: area.width * 11 / 20, ..area };
        let right = Rect { x: area.x + left.width + 1, width: area.width - left.width - 1, ..area };
        let tasks = self.tasks_height();
        let agents = self.agents_height(right.width, area.height / 2);
        let share = if self.model.panel == Panel::Log { area.height / 2 } else { area.height / 3 };
        let above = area.height - share;
        let needs = self.needs_height(left.width, above / 2, above.saturating_sub(tasks));
        let wanted = needs.saturating_add(tasks).max(agents);
        if wanted <= above {
            let [needs, tasks, ..] = stack(left, [needs, wanted - needs, 0, 0]);
            let log = Rect { y: area.y + wanted, height: area.height - wanted, ..area };
            return [needs, tasks, Rect { height: agents, ..right }, log];
        }
        let needs = self.needs_height(left.width, area.height / 2, area.height.saturating_sub(tasks));
        let [needs, tasks, ..] = stack(left, [needs, area.height - needs, 0, 0]);
        let [agents, log, ..] = stack(right, [agents, area.height - agents, 0, 0]);
        [needs, tasks, agents, log]
    }

    fn tasks_height(&self) -> u16 {
        u16::try_from(self.fitting_task_rows(usize::MAX).len()).unwrap_or(u16::MAX).max(1).saturating_add(1)
    }

    /// Draws the next steps of a person in one row; returns the rest of the area.
    fn next(&self, buffer: &mut Buffer, area: Rect) -> Rect {
        let steps = self.model.next_steps(false);
        // Without tasks, the panel of the tasks says it.
        if steps.is_empty() || self.model.tasks().is_empty() {
            return area;
        }
        let mut line = Line::default();
        for (at, (text, command)) in
            fitting_steps(steps, self.model.next_steps(true), usize::from(area.width)).into_iter().enumerate()
        {
            let sign = if at > 0 { " ·" } else { "" };
            let space = if text.is_empty() { "" } else { " " };
            line.push_span(span(format!("{sign}{space}{text} "), self.theme.warning));
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
        let lines = self.need_lines(columns, usize::from(at_most.saturating_sub(1))).lines.len();
        u16::try_from(lines + 1).unwrap_or(at_most).min(at_most.max(3))
    }

    /// The log gets what the tasks do not need, and more if it has the keys.
    fn log_height(&self, rest: u16, agents: u16, tasks: u16) -> u16 {
        let room = rest.saturating_sub(agents);
        let least = if self.model.panel == Panel::Log { room * 2 / 3 } else { room / 4 };
        room.saturating_sub(tasks).max(least).max(2).min(room)
    }
}

type Steps<'s> = Vec<(String, &'s str)>;

/// The steps with as much text as fits: a person needs the commands. The long form gives way first, then the
/// texts after the first, then the last steps.
fn fitting_steps<'s>(mut steps: Steps<'s>, short: Steps<'s>, columns: usize) -> Steps<'s> {
    let needed = |steps: &[(String, &str)]| -> usize {
        let separators = 2 * steps.len().saturating_sub(1);
        let texts = steps
            .iter()
            .map(|(text, command)| width(command) + 1 + if text.is_empty() { 0 } else { width(text) + 1 });
        separators + texts.sum::<usize>()
    };
    if needed(&steps) > columns {
        steps = short;
    }
    if needed(&steps) > columns {
        steps.iter_mut().skip(1).for_each(|(text, _)| text.clear());
    }
    while steps.len() > 1 && needed(&steps) > columns {
        steps.pop();
    }
    let over = needed(&steps).saturating_sub(columns);
    if let Some((text, _)) = steps.first_mut().filter(|_| over > 0) {
        *text = cut(text, width(text).saturating_sub(over));
    }
    steps
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
