//! Bounds and tests, all exact or conservative: the binomial test, Holm, and the test of discordant pairs.

/// The upper 95 % bound of a rate of which no case was seen in n: 3/n.
pub fn rule_of_three(n: usize) -> f64 {
    3.0 / n.max(1) as f64
}

fn ln_factorials(n: usize) -> Vec<f64> {
    let mut all = vec![0.0; n + 1];
    for number in 1..=n {
        all[number] = all[number - 1] + (number as f64).ln();
    }
    all
}

/// The exact two-sided binomial test: the chance of a number that is as improbable as this one, or more so.
pub fn binomial(hits: usize, n: usize, expected: f64) -> f64 {
    let expected = expected.clamp(0.0, 1.0);
    if !(1e-12..=1.0 - 1e-12).contains(&expected) {
        let certain = if expected < 0.5 { 0 } else { n };
        return f64::from(u8::from(hits == certain));
    }
    let logs = ln_factorials(n);
    let chance = |k: usize| {
        let ways = logs[n] - logs[k] - logs[n - k];
        ways + k as f64 * expected.ln() + (n - k) as f64 * (1.0 - expected).ln()
    };
    let seen = chance(hits) + 1e-9;
    (0..=n).map(chance).filter(|other| *other <= seen).map(f64::exp).sum::<f64>().min(1.0)
}

/// The two-sided test of a mean against the expected one; `squares` is the sum of squares. Needs a large n.
pub fn mean_test(sum: f64, squares: f64, n: usize, expected: f64) -> f64 {
    let (n, mean) = (n as f64, sum / n as f64);
    let variance = (squares / n - mean * mean).max(0.0);
    let difference = (mean - expected).abs();
    if variance < 1e-12 {
        return f64::from(u8::from(difference < 1e-9));
    }
    complementary_error(difference / (variance / n).sqrt() / std::f64::consts::SQRT_2)
}

/// erfc, with a relative error below 1.2e-7 (Numerical Recipes).
fn complementary_error(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x);
    let terms = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
    ];
    let sum = terms.iter().fold(0.0, |sum, term| (sum + term) * t);
    t * (-x * x - 1.265_512_23 + sum).exp()
}

/// Holm's method: for each p-value, whether its hypothesis is rejected at this level over all of them.
pub fn holm(values: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut rejected = vec![false; values.len()];
    for (rank, at) in order.iter().enumerate() {
        if values[*at] > level / (values.len() - rank) as f64 {
            break;
        }
        rejected[*at] = true;
    }
    rejected
}

/// The exact test of two arms on the same pairs: only pairs with different results count.
pub fn discordant(only_one: usize, only_other: usize) -> f64 {
    binomial(only_one, only_one + only_other, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-3
    }

    /// Covers: TR-01
    #[test]
    fn intervals_and_tests_have_their_known_values() {
        assert!(near(binomial(60, 100, 0.5), 0.0569));
        assert!(near(binomial(0, 30, 0.1), 0.0682));
        assert_eq!((binomial(0, 9, 0.0), binomial(1, 9, 0.0), binomial(9, 9, 1.0)), (1.0, 0.0, 1.0));
        assert!(near(discordant(10, 2), 0.0386));
        assert!(near(complementary_error(1.0), 0.1573));
        assert!(near(mean_test(200.0, 500.0, 100, 1.8), 0.0455));
    }

    /// Covers: TR-01
    #[test]
    fn holm_judges_all_cells_together() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005], 0.05), [true, false, false, true]);
        // Alone this one would count; among five it does not.
        assert_eq!(holm(&[0.02, 0.5, 0.6, 0.7, 0.8], 0.05), [false; 5]);
        assert_eq!(holm(&[0.0], 0.05), [true]);
    }
}
