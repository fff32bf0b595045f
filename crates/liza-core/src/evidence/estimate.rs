//! A rate that was seen, with the interval that has the truth in 95 of 100 cases.

use serde::{Deserialize, Serialize};

/// The two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's 95 % interval of a part.
pub fn wilson(hits: usize, n: usize) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let (n, part) = (n as f64, hits as f64 / n as f64);
    let middle = part + Z * Z / (2.0 * n);
    let half = Z * (part * (1.0 - part) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

/// A rate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub hits: usize,
    pub n: usize,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// The part of these that are hits.
    pub fn of(seen: impl IntoIterator<Item = bool>) -> Self {
        let (hits, n) = seen.into_iter().fold((0, 0), |(hits, n), hit| (hits + usize::from(hit), n + 1));
        Self::new(hits, n)
    }

    pub fn new(hits: usize, n: usize) -> Self {
        let (low, high) = wilson(hits, n);
        Self { hits, n, low, high }
    }

    /// Half of the widest interval that so many cases can have, in points of a percentage.
    pub fn points(n: usize) -> f64 {
        let (low, high) = wilson(n / 2, n);
        100.0 * (high - low) / 2.0
    }

    pub fn in_words(&self) -> String {
        if self.n == 0 {
            return "none seen".to_owned();
        }
        let percent = |part: f64| (100.0 * part).round();
        let rate = percent(self.hits as f64 / self.n as f64);
        let (low, high) = (percent(self.low), percent(self.high));
        format!("{} of {}: {rate} % ({low} to {high} %)", self.hits, self.n)
    }
}

/// A verdict on a drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrillVerdict {
    /// False for the unchanged original.
    pub is_planted: bool,
    pub is_rejected: bool,
}

/// The catch rate, and the rate of false alarms.
pub fn drill_rates(verdicts: &[DrillVerdict]) -> (Estimate, Estimate) {
    let of = |planted: bool| {
        let own = verdicts.iter().filter(|verdict| verdict.is_planted == planted);
        Estimate::of(own.map(|verdict| verdict.is_rejected))
    };
    (of(true), of(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-01, TR-03
    #[test]
    fn an_interval_has_its_known_values() {
        let near = |one: f64, other: f64| (one - other).abs() < 1e-3;
        let (low, high) = wilson(10, 100);
        assert!(near(low, 0.0552) && near(high, 0.1744), "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert_eq!(Estimate::of([true, false, true, true]), Estimate::new(3, 4));
        assert_eq!(Estimate::new(3, 4).in_words(), "3 of 4: 75 % (30 to 95 %)");
        assert_eq!(Estimate::new(0, 0).in_words(), "none seen");
    }

    /// Covers: TR-03
    #[test]
    fn five_points_need_about_385_cases_and_200_give_seven() {
        assert!(Estimate::points(385) <= 5.0 && Estimate::points(375) > 5.0);
        assert!((6.8..7.0).contains(&Estimate::points(200)), "{}", Estimate::points(200));
        assert!((Estimate::points(0) - 50.0).abs() < 1e-9);
    }
}
