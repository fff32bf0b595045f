//! The burn-up of a sprint: planned and finished tasks over time. Drawn with characters for any pager, and as
//! a Mermaid chart for viewers that support it.

use liza_core::model::{Seconds, Sprint, Timestamp};

use super::tasks::SprintTask;

/// The width of the plot without its labels, in columns.
const WIDTH: u64 = 60;
/// The maximum height of the plot, in rows.
const HEIGHT: u64 = 10;
/// The number of intervals in the Mermaid chart.
const POINTS: u64 = 12;
/// From an empty cell to a full one, in eighths.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The times at which tasks were planned and finished, between two times.
#[derive(Debug, Clone)]
pub(super) struct BurnUp {
    from: Timestamp,
    to: Timestamp,
    entered: Vec<Timestamp>,
    ended: Vec<Timestamp>,
    open_ended: bool,
}

impl BurnUp {
    /// `None` if nothing is planned or no time has passed.
    pub(super) fn of(sprint: &Sprint, tasks: &[SprintTask<'_>], now: Timestamp) -> Option<Self> {
        let planned: Vec<&SprintTask<'_>> = tasks.iter().filter(|task| task.planned).collect();
        let started = sprint.timeline.started;
        let from = started.or_else(|| planned.iter().filter_map(|task| task.record?.created).min())?;
        let to = sprint.timeline.ended.unwrap_or(now);
        if planned.is_empty() || to <= from {
            return None;
        }
        let entered = planned.iter().map(|task| task.entered(from)).collect();
        // A task without a record is in the archive: it ended before the plot begins.
        let ended = planned.iter().filter(|task| task.is_finished()).map(|task| task.ended().unwrap_or(from));
        let open_ended = sprint.timeline.ended.is_none();
        Some(Self { from, to, entered, ended: ended.collect(), open_ended })
    }

    fn at(&self, step: u64, steps: u64) -> Timestamp {
        self.from + Seconds(self.to.since(self.from).0.saturating_mul(step) / steps.max(1))
    }

    fn scope(&self, time: Timestamp) -> u64 {
        self.entered.iter().filter(|entered| **entered <= time).count() as u64
    }

    fn done(&self, time: Timestamp) -> u64 {
        self.ended.iter().filter(|ended| **ended <= time).count() as u64
    }

    pub(super) fn plot(&self) -> Vec<String> {
        let columns: Vec<(u64, u64)> = (1..=WIDTH)
            .map(|column| self.at(column, WIDTH))
            .map(|time| (self.scope(time), self.done(time)))
            .collect();
        let top = columns.iter().map(|(scope, _)| *scope).max().unwrap_or(1).max(1);
        let rows = rows_for(top);
        let margin = top.to_string().len().max(2);
        let mut lines: Vec<String> = (0..rows)
            .rev()
            .map(|row| {
                let cells: String = columns.iter().map(|column| cell(*column, row, rows, top)).collect();
                let label = label(row, rows, top);
                format!("{label:>margin$} {}{}", if label.is_empty() { '│' } else { '┤' }, cells.trim_end())
            })
            .collect();
        lines.push(format!("{:>margin$} └{}", 0, "─".repeat(WIDTH as usize)));
        lines.push(format!("{:margin$}  {}", "", self.time_axis()));
        let (scope, done) = columns.last().copied().unwrap_or_default();
        lines.push(format!("{:margin$}  ─ planned {scope}   █ done {done}", ""));
        lines
    }

    fn time_axis(&self) -> String {
        let right =
            if self.open_ended { format!("now {}", self.moment(self.to)) } else { self.moment(self.to) };
        let left = self.moment(self.from);
        let gap = (WIDTH as usize).saturating_sub(left.len() + right.len());
        format!("{left}{}{right}", " ".repeat(gap))
    }

    /// Hour and minute, or month and day in a long sprint.
    fn moment(&self, time: Timestamp) -> String {
        let text = time.to_string();
        let long = self.to.since(self.from) > Seconds::hours(36);
        let part = if long { text.get(5..10) } else { text.get(11..16) };
        part.unwrap_or(&text).to_owned()
    }

    /// The same data as a Mermaid chart.
    pub(super) fn chart(&self) -> Vec<String> {
        let times: Vec<Timestamp> = (0..=POINTS).map(|point| self.at(point, POINTS)).collect();
        let list = |figures: Vec<String>| figures.join(", ");
        let moments = list(times.iter().map(|time| format!("\"{}\"", self.moment(*time))).collect());
        let scope = list(times.iter().map(|time| self.scope(*time).to_string()).collect());
        let done = list(times.iter().map(|time| self.done(*time).to_string()).collect());
        let top = times.iter().map(|time| self.scope(*time)).max().unwrap_or(1).max(1);
        vec![
            "xychart-beta".to_owned(),
            "    title \"Planned and done\"".to_owned(),
            format!("    x-axis [{moments}]"),
            format!("    y-axis \"tasks\" 0 --> {top}"),
            format!("    line [{scope}]"),
            format!("    line [{done}]"),
        ]
    }
}

/// The number of rows: one per task, two if there are few tasks, fewer if there are many.
fn rows_for(top: u64) -> u64 {
    match top {
        0..=3 => top * 2,
        4..=HEIGHT => top,
        _ => HEIGHT,
    }
}

/// One cell of the plot: finished tasks as blocks from below, planned tasks as a line.
fn cell((scope, done): (u64, u64), row: u64, rows: u64, top: u64) -> char {
    let filled = (done * rows * 8 / top).saturating_sub(row * 8).min(8);
    let line = (scope * rows).div_ceil(top).saturating_sub(1) == row && scope > 0;
    match usize::try_from(filled) {
        Ok(0) | Err(_) if line => '─',
        Ok(filled) => BLOCKS.get(filled).copied().unwrap_or('█'),
        Err(_) => ' ',
    }
}

/// The label of a row; only the top and the middle row have one.
fn label(row: u64, rows: u64, top: u64) -> String {
    let half = rows / 2;
    if row + 1 == rows {
        top.to_string()
    } else if rows >= 4 && row + 1 == half && (top * half).is_multiple_of(rows) {
        (top * half / rows).to_string()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(hour: i64) -> Timestamp {
        Timestamp::from_unix(1_800_000_000 + hour * 3600)
    }

    fn of(entered: &[i64], ended: &[i64]) -> BurnUp {
        let times = |hours: &[i64]| hours.iter().map(|hour| time(*hour)).collect();
        BurnUp { from: time(0), to: time(10), entered: times(entered), ended: times(ended), open_ended: true }
    }

    /// Covers: SP-03
    #[test]
    fn planned_tasks_are_a_line_and_finished_ones_grow_below_it() {
        let plot = of(&[0, 0, 0, 5], &[2, 8]).plot();
        assert_eq!(
            plot,
            [
                " 4 ┤                             ───────────────────────────────",
                "   │─────────────────────────────",
                " 2 ┤                                               █████████████",
                "   │           █████████████████████████████████████████████████",
                " 0 └────────────────────────────────────────────────────────────",
                "    08:00                                              now 18:00",
                "    ─ planned 4   █ done 2",
            ]
        );
    }

    /// Covers: SP-03
    #[test]
    fn plots_of_any_size_fit_in_80_columns_and_13_rows() {
        for tasks in [1, 2, 3, 7, 11, 200, 5_000] {
            let half: Vec<i64> = vec![5; tasks / 2];
            let plot = of(&vec![0; tasks], &half).plot();
            assert!(plot.iter().all(|line| line.chars().count() <= 80), "{plot:#?}");
            assert!(plot.len() <= 13, "{plot:#?}");
            assert!(plot[0].trim_start().starts_with(&tasks.to_string()), "{plot:#?}");
            assert!(plot.last().unwrap().contains(&format!("done {}", tasks / 2)));
        }
    }

    /// Covers: SP-03
    #[test]
    fn when_all_tasks_are_done_the_blocks_reach_the_top() {
        let plot = of(&[0; 30], &[9; 30]).plot();
        assert!(plot[0].ends_with("███"), "{plot:#?}");
        let chart = of(&[0; 30], &[9; 30]).chart();
        assert!(chart[5].ends_with("0, 30, 30]"), "{chart:#?}");
    }
}
