//! The gate's part of the exploration: small teams up to a bound. `just explore` goes on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use liza_explore::pairs::compare;
use liza_explore::search::explore;
use liza_explore::simulate::simulate;
use liza_explore::teeth::{FAULT_BOUND, FAULTS};
use liza_explore::world::Size;

const SMALL: Size = Size::new(1, 1, 1);

/// Covers: PV-01
#[test]
fn boards_with_equal_fingerprints_have_equal_outcomes() {
    let validated = Size { validation: true, ..SMALL };
    let (mut pairs, mut differences) = (0, Vec::new());
    for (size, most) in
        [(SMALL, 4_000), (validated, 2_000), (Size::new(1, 2, 2), 2_000), (Size::new(2, 1, 1), 2_000)]
    {
        let compared = compare(size, most);
        pairs += compared.pairs;
        differences.extend(compared.differences);
    }
    assert_eq!(differences, Vec::<String>::new(), "of {pairs} pairs");
    assert!(pairs >= 10_000, "{pairs}");
}

/// Covers: PV-02
#[test]
fn no_promise_is_broken_on_any_board_up_to_the_bound() {
    let validated = Size { validation: true, ..SMALL };
    for (size, most) in
        [(SMALL, 3_000), (validated, 2_000), (Size::new(1, 2, 2), 2_000), (Size::new(2, 2, 2), 2_000)]
    {
        let found = explore(size, most, None, &|_| {});
        let broken: Vec<String> = found
            .broken
            .iter()
            .map(|one| format!("{}: {} after {:?}", one.property, one.why, one.path))
            .collect();
        assert_eq!(broken, Vec::<String>::new(), "{}: {} boards", size.name(), found.states);
    }
}

/// Covers: PV-02
#[test]
fn every_promise_has_a_fault_that_breaks_it_alone() {
    for fault in FAULTS {
        let found = explore(fault.size, FAULT_BOUND, Some(fault.tooth), &|_| {});
        let broken: Vec<&str> = found.broken.iter().map(|broken| broken.property).collect();
        assert_eq!(broken, [fault.promise], "{:?}", fault.tooth);
        assert!(found.witnesses.contains_key(fault.promise), "{}", fault.promise);
    }
}

/// As many seeds as fit into some seconds; `just simulate` runs more, and one of them again.
///
/// Covers: PV-02
#[test]
fn a_whole_team_keeps_its_promises_and_ends_its_goal_by_seed() {
    let seeds = if std::env::var_os("LIZA_FULL").is_some() { 10_000 } else { 100 };
    let broken: Vec<String> = (0..seeds)
        .filter_map(|seed| {
            simulate(Size::of_seed(seed), seed).broken.map(|why| format!("seed {seed}: {why}"))
        })
        .collect();
    assert_eq!(broken, Vec::<String>::new(), "of {seeds}: replay with `just simulate 1 SEED`");
}
