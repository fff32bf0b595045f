//! Mutants of the rules: one build has all of them, and the environment chooses one at run time.
//!
//! | module | content |
//! |---|---|
//! | [`find`] | the mutants of a source file |
//! | [`rewrite`] | the source with a switch at each mutant |
//! | [`report`] | what the tests noticed, as figures and as a page |
//!
//! Only a copy of the sources gets switches; `examples/mutants.rs` makes it, builds it and runs its tests.

#![forbid(unsafe_code)]

pub mod find;
pub mod report;
pub mod rewrite;

/// The mutants in an order that only the seed decides.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for at in (1..items.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, (state >> 33) as usize % (at + 1));
    }
}
