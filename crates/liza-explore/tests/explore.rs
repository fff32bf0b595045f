//! The gate's part of the exploration: small teams up to a bound. `just explore` goes on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use liza_explore::late::compare_late;
use liza_explore::pairs::compare;
use liza_explore::properties::names;
use liza_explore::search::{Broken, Explored, explore};
use liza_explore::simulate::{simulate, simulate_many};
use liza_explore::symmetry::compare_swapped;
use liza_explore::teeth::FAULTS;
use liza_explore::world::{Size, Tooth, World};

const SMALL: Size = Size::new(1, 1, 1);

/// Each pair is compared under all that can happen, and some under a sample of every command; `just full` compares all so.
///
/// Covers: PV-01
#[test]
fn boards_with_equal_fingerprints_have_equal_outcomes_under_every_command() {
    let every = if std::env::var_os("LIZA_FULL").is_some() { 1 } else { 200 };
    let validated = Size { validation: true, ..SMALL };
    let (mut pairs, mut differences) = (0, Vec::new());
    let teams = [
        (SMALL, 2_000),
        (SMALL.asked(), 2_000),
        (validated, 2_000),
        (Size::new(1, 2, 2), 2_000),
        (Size::new(2, 1, 1), 2_000),
    ];
    for (size, most) in teams {
        let compared = compare(size, most, every);
        pairs += compared.pairs;
        differences.extend(compared.differences);
    }
    assert_eq!(differences, Vec::<String>::new(), "of {pairs} pairs");
    assert!(pairs >= 10_000, "{pairs}");
}

/// What is over is over: without that cap, time alone would make new boards for ever.
///
/// Covers: PV-01, PV-02
#[test]
fn however_long_ago_a_lease_ended_the_board_answers_alike() {
    let (seeds, every) = if std::env::var_os("LIZA_FULL").is_some() { (0..15, 5) } else { (0..3, 20) };
    for size in [SMALL, SMALL.asked(), Size { validation: true, ..Size::new(2, 2, 2) }] {
        let late = compare_late(size, seeds.clone(), every);
        assert_eq!(late.differences, Vec::<String>::new(), "{}: of {} pairs", size.name(), late.pairs);
        assert!(late.pairs >= 50, "{}: {} pairs", size.name(), late.pairs);
    }
}

/// Without this, the same team with other names of its agents would be explored again.
///
/// Covers: PV-01, PV-02
#[test]
fn agents_that_swap_their_places_are_told_apart_by_their_names_only() {
    let seeds = if std::env::var_os("LIZA_FULL").is_some() { 0..20 } else { 0..2 };
    for size in
        [Size::new(1, 2, 2), Size::new(1, 2, 2).asked(), Size { validation: true, ..Size::new(2, 2, 2) }]
    {
        let swapped = compare_swapped(size, seeds.clone());
        assert_eq!(swapped.differences, Vec::<String>::new(), "{}: of {} pairs", size.name(), swapped.pairs);
        assert!(swapped.pairs >= 200, "{}: {} pairs", size.name(), swapped.pairs);
    }
}

/// No board is left to visit, and no promise is broken on any; `just full` with two sessions per task, with an edit by hand,
/// and with two coders and two code reviewers.
///
/// Covers: PV-02
#[test]
fn the_smallest_team_closes() {
    let one_session = |size| Size { sessions: 1, ..size };
    let edited = one_session(Size { edits: true, ..SMALL.asked() });
    let mut teams = vec![(one_session(SMALL.asked()), 2_000)];
    if std::env::var_os("LIZA_FULL").is_some() {
        let four = one_session(Size::new(1, 2, 2).asked().in_time());
        teams.extend([(four, 20_000), (edited, 100_000), (SMALL.asked(), 100_000)]);
    }
    for (size, most) in teams {
        let found = explore(World::new(size), most, &|_, _| {});
        println!(
            "{}: {} boards, {} steps, depth {}",
            size.name(),
            found.states,
            found.transitions,
            found.depth
        );
        assert!(found.closed, "{}: {} boards, and some are left", size.name(), found.states);
        assert_eq!(broken(&found), Vec::<String>::new(), "{}: {} boards", size.name(), found.states);
    }
}

/// Covers: PV-02
#[test]
fn no_promise_is_broken_on_any_board_up_to_the_bound() {
    let validated = Size { validation: true, ..SMALL };
    let loses_records = Size { loses_records: true, ..SMALL };
    let edited = Size { edits: true, ..SMALL };
    let teams = [
        (SMALL, 3_000),
        (edited, 1_500),
        (validated, 2_000),
        (loses_records, 2_000),
        (Size::new(1, 2, 2), 2_000),
        (Size::new(2, 2, 2), 2_000),
    ];
    for (size, most) in teams {
        let found = explore(World::new(size), most, &|_, _| {});
        assert_eq!(broken(&found), Vec::<String>::new(), "{}: {} boards", size.name(), found.states);
    }
}

/// Two runs look at the same boards in the same order, on any number of cores.
///
/// Covers: PV-02, PV-03, TR-04
#[test]
fn a_second_run_finds_the_same() {
    let explored = || {
        let found = explore(World::new(Size::new(2, 2, 2)), 700, &|_, _| {});
        let witnesses: Vec<_> =
            found.witnesses.into_iter().map(|(name, one)| (name, one.count, one.path)).collect();
        (found.states, found.transitions, found.depth, found.refusals, witnesses)
    };
    assert_eq!(explored(), explored());
    let simulated = || simulate_many(5, 12, None, &|_| {});
    assert_eq!(simulated(), simulated());
}

fn broken(found: &Explored) -> Vec<String> {
    let words = |one: &Broken| format!("{}: {} after {:?}", one.property, one.why, one.path);
    found.broken.iter().map(words).collect()
}

/// Covers: PV-02
#[test]
fn every_promise_has_a_fault_that_breaks_it_alone() {
    for fault in FAULTS {
        let found = explore(fault.world(), fault.boards, &|_, _| {});
        let broken: Vec<&str> = found.broken.iter().map(|broken| broken.property).collect();
        assert_eq!(broken, [fault.promise], "{:?}", fault.tooth);
        assert!(found.witnesses.contains_key(fault.promise), "{}", fault.promise);
    }
    let with_fault: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.promise).collect();
    assert_eq!(names().collect::<BTreeSet<_>>(), with_fault);
}

/// As many seeds as fit into some seconds, 10,000 in `just full`; `just simulate` runs more, and one of them again.
///
/// Covers: PV-02, PV-03
#[test]
fn a_whole_team_keeps_its_promises_and_ends_its_goal_by_seed() {
    let is_full = std::env::var_os("LIZA_FULL").is_some();
    let limit = (!is_full).then_some(Duration::from_secs(10));
    let found = simulate_many(0, 10_000, limit, &|_| {});
    let (codes, missing) = found.coverage();
    println!(
        "{} seeds; error codes reached: {} of {}",
        found.seeds,
        codes.len() - missing.len(),
        codes.len()
    );
    assert_eq!(found.broken, None, "replay with `just simulate 1 SEED`");
    assert!(found.seeds > 0 && found.merged > 0);
}

/// Covers: PV-03
#[test]
fn a_merge_whose_record_is_lost_and_forgotten_is_noticed() {
    let broken = |seed| simulate(Size::of_seed(seed), seed, Some(Tooth::ForgetsLostMerge)).broken;
    let noticed = (0..100).filter_map(broken).find(|why| why.contains("is on the branch twice"));
    assert!(noticed.is_some());
}
