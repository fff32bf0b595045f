//! One bar of several colours: the progress of the sprint.

use maud::{Markup, html};

pub(crate) struct Segment {
    /// The class of its colour.
    pub(crate) class: &'static str,
    pub(crate) number: usize,
}

const WIDTH: f64 = 1000.0;

pub(crate) fn bar(segments: &[Segment], label: &str) -> Markup {
    let total: usize = segments.iter().map(|segment| segment.number).sum();
    let mut at = 0.0;
    let mut parts = Vec::new();
    for segment in segments.iter().filter(|segment| segment.number > 0) {
        let width = segment.number as f64 / total.max(1) as f64 * WIDTH;
        parts.push((segment.class, at, width));
        at += width;
    }
    html! {
        svg.progress viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track width="1000" height="10" {}
            @for (class, x, width) in parts {
                rect class=(class) x=(format!("{x:.1}")) width=(format!("{width:.1}")) height="10" {}
            }
        }
    }
}
