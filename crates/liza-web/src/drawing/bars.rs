//! A chart of horizontal bars, each with its name and its figure as text: readable without seeing the bars.

use maud::{Markup, html};

pub(crate) struct Bar {
    pub(crate) label: String,
    /// Its parts, each with the class of its colour.
    pub(crate) parts: Vec<(&'static str, f64)>,
    pub(crate) text: String,
}

pub(crate) fn bars(title: &str, bars: &[Bar]) -> Markup {
    let longest = bars.iter().map(total).fold(0.0, f64::max);
    html! {
        @if bars.is_empty() { p.nothing-here { "Nothing to show yet." } }
        @else {
            ul.bars aria-label=(title) {
                @for bar in bars {
                    li {
                        span.bar-label { (bar.label) }
                        svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                            rect.track width="100" height="8" {}
                            @for (class, x, width) in places(bar, longest) {
                                rect class=(class) x=(format!("{x:.2}")) width=(format!("{width:.2}")) height="8" {}
                            }
                        }
                        span.bar-text { (bar.text) }
                    }
                }
            }
        }
    }
}

fn total(bar: &Bar) -> f64 {
    bar.parts.iter().map(|(_, value)| value).sum()
}

/// The class, the left end and the width of each part, in percent.
fn places(bar: &Bar, longest: f64) -> Vec<(&'static str, f64, f64)> {
    let mut at = 0.0;
    let mut places = Vec::new();
    for (class, value) in &bar.parts {
        let width = if longest > 0.0 { value / longest * 100.0 } else { 0.0 };
        places.push((*class, at, width));
        at += width;
    }
    places
}
