//! The ID of a request: random, with the day on which it was made, so that an old one is known to be old.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use liza_core::model::{Generation, Seconds, Timestamp};
use liza_host::random_text::random_hex;

/// The time for which requests are kept.
pub const KEPT: Seconds = Seconds(7 * 86_400);

/// The same for every attempt to carry out a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    made: i64,
    random: u128,
}

impl RequestId {
    pub fn new() -> Self {
        let made = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Self { made: i64::try_from(made).unwrap_or(0), random: random() }
    }

    /// True if it is unknown whether the request was carried out.
    pub fn is_too_old(&self, now: Timestamp) -> bool {
        Timestamp::from_unix(self.made) + KEPT < now
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}-{:032x}", self.made, self.random)
    }
}

impl std::str::FromStr for RequestId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (made, random) = text.split_once('-').unwrap_or((text, ""));
        Ok(Self { made: i64::from_str_radix(made, 16)?, random: u128::from_str_radix(random, 16)? })
    }
}

fn random() -> u128 {
    match random_hex(16).ok().and_then(|text| u128::from_str_radix(&text, 16).ok()) {
        Some(random) => random,
        // The standard library seeds its hashers from the same source.
        None => u128::from(RandomState::new().hash_one(0)) << 64 | u128::from(RandomState::new().hash_one(1)),
    }
}

/// A fencing token: 53 random bits, since many JSON readers have no larger numbers. Never 0, which means none.
pub(crate) fn random_generation() -> Generation {
    let bits = u64::try_from(random() >> 75).unwrap_or(u64::MAX >> 11);
    Generation(bits.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: MM-12
    #[test]
    fn a_generation_is_a_whole_number_for_every_reader_of_json() {
        for _ in 0..1000 {
            assert!((1..1 << 53).contains(&random_generation().0));
        }
    }
}
