//! The rate at which a session may send commands: a bucket of tokens that fills with time. Early ones wait.

use std::time::{Duration, Instant};

/// The number of commands that a session may send a second, and at once after a pause.
const PER_SECOND: u32 = 10;

#[derive(Debug)]
pub(super) struct CommandRate {
    /// The time at which the bucket would be empty if nothing more were taken.
    used_until: Instant,
}

impl CommandRate {
    pub(super) fn new(now: Instant) -> Self {
        Self { used_until: now }
    }

    /// Takes a token; returns the wait before it may be used.
    pub(super) fn take(&mut self, now: Instant) -> Duration {
        let one = Duration::from_secs(1) / PER_SECOND;
        self.used_until = self.used_until.max(now) + one;
        self.used_until.saturating_duration_since(now).saturating_sub(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-02
    #[test]
    fn ten_commands_go_through_at_once_and_then_ten_a_second() {
        let start = Instant::now();
        let mut rate = CommandRate::new(start);
        let waits: Vec<u128> = (0..13).map(|_| rate.take(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300]);
        // After a pause the bucket is full again, and never more than full.
        let later = start + Duration::from_secs(60);
        let waits: Vec<u128> = (0..11).map(|_| rate.take(later).as_millis()).collect();
        assert_eq!(waits.iter().filter(|wait| **wait == 0).count(), 10);
    }
}
