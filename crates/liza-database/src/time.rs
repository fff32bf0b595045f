//! The time of a database: never decreases, and after a failover or a step backwards no lease counts as
//! expired for a while. Pure: works on the rows that a transaction has read.

use liza_core::model::{Seconds, Timestamp};

/// Smaller steps backwards are normal adjustments of a clock.
const STEP_MS: i64 = 2_000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Clock {
    /// The latest time that a write has seen.
    pub(crate) latest_ms: i64,
    /// Added to the server's clock.
    pub(crate) offset_ms: i64,
    /// No lease counts as expired before this time.
    pub(crate) hold_until: i64,
    pub(crate) server: String,
}

impl Clock {
    /// The clock after the server's was read: under the lock, in its own statement. `lease` is the usual length.
    pub(crate) fn read(&self, server_ms: i64, server: &str, lease: impl FnOnce() -> Seconds) -> Self {
        let now = server_ms + self.offset_ms;
        let stepped_back = now < self.latest_ms - STEP_MS;
        let failed_over = !server.is_empty() && !self.server.is_empty() && server != self.server;
        let latest_ms = now.max(self.latest_ms);
        let held = || latest_ms / 1000 + i64::try_from(lease().0).unwrap_or(i64::MAX / 2_000);
        Self {
            latest_ms,
            offset_ms: if stepped_back { self.latest_ms - server_ms } else { self.offset_ms },
            hold_until: if stepped_back || failed_over {
                held().max(self.hold_until)
            } else {
                self.hold_until
            },
            server: if server.is_empty() { self.server.clone() } else { server.to_owned() },
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_unix(self.latest_ms / 1000)
    }

    /// The effective end of a lease.
    pub(crate) fn lease(&self, expires: Timestamp) -> Timestamp {
        let hold = Timestamp::from_unix(self.hold_until);
        if self.now() < hold { expires.max(hold) } else { expires }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock { latest_ms: 1_000_000, offset_ms: 0, hold_until: 0, server: "a/1".to_owned() }
    }

    /// Covers: MM-03
    #[test]
    fn time_never_decreases_and_goes_on_after_a_step_backwards() {
        let stepped = clock().read(400_000, "a/1", || Seconds(300));
        assert_eq!(stepped.now(), Timestamp::from_unix(1_000));
        assert_eq!(stepped.hold_until, 1_300);
        let later = stepped.read(450_000, "a/1", || Seconds(300));
        assert_eq!(later.now(), Timestamp::from_unix(1_050), "ten minutes do not have to pass twice");
        assert_eq!(later.hold_until, 1_300);
        let adjusted = clock().read(999_000, "a/1", || Seconds(300));
        assert_eq!((adjusted.latest_ms, adjusted.hold_until), (1_000_000, 0));
    }

    /// Covers: MM-03
    #[test]
    fn no_lease_expires_for_one_length_after_a_failover() {
        let other = clock().read(1_600_000, "a/2", || Seconds(300));
        let past = Timestamp::from_unix(1_200);
        assert_eq!(other.lease(past), Timestamp::from_unix(1_900));
        assert_eq!(other.read(1_901_000, "a/2", || Seconds(300)).lease(past), past);
        assert_eq!(clock().read(1_600_000, "a/1", || Seconds(300)).lease(past), past);
    }
}
