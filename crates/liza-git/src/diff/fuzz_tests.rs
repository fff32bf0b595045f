//! What git says about files contains names and contents that agents chose.

use liza_testkit::fuzz::fuzz;

use super::change::parse_changes;
use super::files::parse_files;
use super::tree_changes::{parse_pairs, parse_raw};
use crate::workspace::status;

/// Covers: PV-05
#[test]
fn fuzz_git_diff() {
    fuzz("git_diff", |bytes, _| {
        let _ = (parse_raw(bytes), parse_pairs(bytes), status::parse(bytes));
        let _ = (parse_changes(bytes), parse_files(bytes));
    });
}
