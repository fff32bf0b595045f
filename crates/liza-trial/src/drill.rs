//! The estimate behind `liza drill`: the catch rate and the false-alarm rate of a reviewer, from planted defects and unchanged
//! originals. Its simulation with known rates shows how often the interval has the truth.

use liza_core::evidence::{DrillVerdict, drill_rates};

use crate::dice::{Dice, Die};

/// The drills of one estimate in the simulation.
pub const DRILLS: usize = 400;
/// The repetitions of the simulation.
pub const REPETITIONS: usize = 200;

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// Repetitions whose interval has the true rate.
    pub covered: usize,
    /// The mean half width of the intervals.
    pub half_width: f64,
}

/// Estimates a reviewer of a known catch rate again and again; half of the drills have a defect.
pub fn simulate(catch: f64, drills: usize, repetitions: usize, seed: u64) -> Coverage {
    let mut coverage = Coverage { covered: 0, half_width: 0.0 };
    for repetition in 0..repetitions as u64 {
        let dice = Dice { seed: seed.wrapping_mul(7919).wrapping_add(repetition) };
        let verdict = |number: usize| {
            let is_planted = number.is_multiple_of(2);
            let rate = if is_planted { catch } else { 0.05 };
            let throw = u32::try_from(number).unwrap_or(u32::MAX);
            DrillVerdict { is_planted, is_rejected: dice.roll(Die::Review(0), throw) < rate }
        };
        let verdicts: Vec<DrillVerdict> = (0..drills).map(verdict).collect();
        let (caught, _) = drill_rates(&verdicts);
        coverage.covered += usize::from(caught.low <= catch && catch <= caught.high);
        coverage.half_width += (caught.high - caught.low) / 2.0 / repetitions as f64;
    }
    coverage
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-03
    #[test]
    fn the_estimate_of_a_drill_covers_the_truth_in_95_of_100_repetitions() {
        let mut covered = 0;
        let rates = [0.1, 0.15, 0.31, 0.5, 0.7, 0.9];
        for rate in rates {
            let found = simulate(rate, DRILLS, REPETITIONS, 7);
            // 95 % of 200, less three standard deviations of that number.
            assert!(found.covered >= 181, "{rate}: {found:?}");
            covered += found.covered;
        }
        let part = covered as f64 / (rates.len() * REPETITIONS) as f64;
        assert!((0.93..=0.97).contains(&part), "{part}");
        let verdict = |is_planted, is_rejected| DrillVerdict { is_planted, is_rejected };
        let (caught, alarms) =
            drill_rates(&[verdict(true, true), verdict(true, false), verdict(false, false)]);
        assert_eq!((caught.hits, caught.n, alarms.hits, alarms.n), (1, 2, 0, 1));
    }
}
