//! Pictures as SVG, with classes instead of colours: they follow the colours of the page. Each has a text for
//! people who do not see it.

pub(crate) mod bar;
pub(crate) mod bars;
pub(crate) mod burn_up;
pub(crate) mod graph;
