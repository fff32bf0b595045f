//! The burn-up chart: planned and merged tasks over time.

use liza_core::model::Timestamp;
use liza_status::view::BurnUpPoint;
use maud::{Markup, html};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 34.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 10.0;

pub(crate) fn burn_up(points: &[BurnUpPoint], time: impl Fn(Timestamp) -> String) -> Markup {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return html! { p.nothing-here { "Nothing to show yet." } };
    };
    let most = points.iter().map(|point| point.planned.max(point.merged)).max().unwrap_or(1).max(1);
    let span = (last.time.unix() - first.time.unix()).max(1) as f64;
    let x = |point: &BurnUpPoint| {
        LEFT + (point.time.unix() - first.time.unix()) as f64 / span * (WIDTH - LEFT - 8.0)
    };
    let y = |number: usize| HEIGHT - BOTTOM - number as f64 / most as f64 * (HEIGHT - BOTTOM - TOP);
    let planned = steps(points, &x, |point| y(point.planned));
    let merged = steps(points, &x, |point| y(point.merged));
    let base = y(0);
    let area = format!("{merged} L{:.1} {base:.1} L{:.1} {base:.1} Z", x(last), x(first));
    let lines = grid(most);
    let label = format!(
        "{} of {} tasks are merged; {} were planned at first",
        last.merged, last.planned, first.planned
    );
    html! {
        p.figure { b { (last.merged) " of " (last.planned) } " tasks merged" }
        svg.plot viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) {
            @for line in lines {
                line.grid x1=(LEFT) x2=(WIDTH - 8.0) y1=(format!("{:.1}", y(line))) y2=(format!("{:.1}", y(line))) {}
                text.axis x=(LEFT - 6.0) y=(format!("{:.1}", y(line) + 4.0)) text-anchor="end" { (line) }
            }
            path.area d=(area) {}
            path.line.planned d=(planned) {}
            path.line.merged d=(merged) {}
            text.axis x=(LEFT) y=(HEIGHT - 6.0) { (time(first.time)) }
            text.axis x=(WIDTH - 8.0) y=(HEIGHT - 6.0) text-anchor="end" { (time(last.time)) }
        }
        p.legend { span.key.planned aria-hidden="true" {} "planned " span.key.merged aria-hidden="true" {} "merged" }
    }
}

/// The numbers that get a line.
fn grid(most: usize) -> Vec<usize> {
    let step = most.div_ceil(4).max(1);
    (0..=most).step_by(step).collect()
}

/// A line that changes in steps: a number holds until the next moment.
fn steps(
    points: &[BurnUpPoint],
    x: &impl Fn(&BurnUpPoint) -> f64,
    y: impl Fn(&BurnUpPoint) -> f64,
) -> String {
    let mut path = String::new();
    let mut last: Option<f64> = None;
    for point in points {
        let (at, high) = (x(point), y(point));
        match last {
            None => path.push_str(&format!("M{at:.1} {high:.1}")),
            Some(before) => path.push_str(&format!(" L{at:.1} {before:.1} L{at:.1} {high:.1}")),
        }
        last = Some(high);
    }
    path
}
