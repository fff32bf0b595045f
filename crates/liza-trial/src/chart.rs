//! The chart of the trial: escaped defects against the catch rate. A line is the prediction of an arm, a dot is measured.

use std::fmt::Write as _;

use liza_core::evidence::wilson;

use crate::arms::{Arm, Rates, Setting};
use crate::mutants::Material;
use crate::prediction::predict;
use crate::trial::{Cell, Trial};

/// The drawn arms with their colours; those without rates are horizontal.
const ARMS: [(Arm, &str); 7] = [
    (Arm::Solo, "#777777"),
    (Arm::SoloTests, "#8c564b"),
    (Arm::SoloBudget, "#d62728"),
    (Arm::Limits, "#1f77b4"),
    (Arm::Gate, "#2ca02c"),
    (Arm::SecondSame, "#9467bd"),
    (Arm::SecondOther, "#ff7f0e"),
];

const LEFT: f64 = 60.0;
const TOP: f64 = 20.0;
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 360.0;
/// The largest drawn number of escaped defects per 1,000 merged tasks.
const MOST: f64 = 350.0;
/// The steps of a predicted line.
const STEPS: u32 = 20;

fn x(catch: f64) -> f64 {
    LEFT + WIDTH * catch
}

fn y(escaped: f64) -> f64 {
    TOP + HEIGHT * (1.0 - escaped / MOST)
}

/// Draws it as SVG.
pub fn chart(trial: &Trial, all: &[Material]) -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 440\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Escaped defects per 1,000 merged tasks, by the catch rate of code reviewers</title>\n\
         <rect width=\"900\" height=\"440\" fill=\"#ffffff\"/>\n",
    );
    axes(&mut svg);
    for (at, (arm, colour)) in ARMS.into_iter().enumerate() {
        line(&mut svg, arm, colour, all);
        for cell in trial.cells.iter().filter(|cell| cell.setting.arm == arm && is_drawn(cell)) {
            dot(&mut svg, cell, colour);
        }
        let place = TOP + 20.0 + 22.0 * at as f64;
        let _ = writeln!(
            svg,
            "<circle cx=\"600\" cy=\"{}\" r=\"4\" fill=\"{colour}\"/><text x=\"612\" y=\"{place}\">{}</text>",
            place - 4.0,
            arm.words()
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// True if only the catch rate differs from the middle.
fn is_drawn(cell: &Cell) -> bool {
    Rates { catch: Rates::MIDDLE.catch, ..cell.setting.rates } == Rates::MIDDLE
}

fn axes(svg: &mut String) {
    let (bottom, right) = (TOP + HEIGHT, LEFT + WIDTH);
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#000000\"/>\n\
         <text x=\"{}\" y=\"{}\">catch rate of a code reviewer</text>\n\
         <text x=\"14\" y=\"{}\" transform=\"rotate(-90 14 {})\">escaped per 1,000 merged tasks</text>",
        LEFT + WIDTH / 2.0 - 70.0,
        bottom + 40.0,
        TOP + HEIGHT / 2.0 + 80.0,
        TOP + HEIGHT / 2.0 + 80.0
    );
    for step in 0..=10 {
        let catch = f64::from(step) / 10.0;
        let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"{}\">{catch:.1}</text>", x(catch) - 8.0, bottom + 18.0);
    }
    for step in 0..=7 {
        let escaped = f64::from(step) * 50.0;
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{:.0}\">{escaped}</text>", LEFT - 32.0, y(escaped) + 4.0);
    }
}

fn line(svg: &mut String, arm: Arm, colour: &str, all: &[Material]) {
    let at = |step: u32| {
        let catch = f64::from(step) / f64::from(STEPS);
        let expected = predict(&Setting::dice(arm, Rates { catch, ..Rates::MIDDLE }), all);
        format!("{:.1},{:.1}", x(catch), y(expected.escaped_per_1000()))
    };
    let steps: Vec<u32> = if arm.uses_rates() { (0..=STEPS).collect() } else { vec![0, STEPS] };
    let points: Vec<String> = steps.into_iter().map(at).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
        points.join(" ")
    );
}

/// A measured dot with its 95 % interval.
fn dot(svg: &mut String, cell: &Cell, colour: &str) {
    let (low, high) = wilson(cell.measured.escaped, cell.measured.merged);
    let at = x(cell.setting.rates.catch);
    let _ = writeln!(
        svg,
        "<path d=\"M{at:.1} {:.1}V{:.1}\" stroke=\"{colour}\"/><circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
        y(1000.0 * low),
        y(1000.0 * high),
        y(cell.measured.escaped_per_1000())
    );
}
