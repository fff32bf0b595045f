//! When a lease is live: the one rule for agents, claims, reviews and reservations.

use liza_ids::{Seconds, Timestamp};

/// How long after a lease has expired others still may not take over.
pub const LEASE_GRACE: Seconds = Seconds(60);

pub const MAX_LEASE: Seconds = Seconds(86_400);

/// Whether a lease ends later than any lease may. A clock that was ahead gave it, so it counts as expired: otherwise its
/// holder would keep what it holds for years. A small step of the clock does not count.
pub fn lease_is_too_long(expires: Timestamp, now: Timestamp) -> bool {
    expires > now + MAX_LEASE + LEASE_GRACE
}

/// Whether a lease is live.
pub fn lease_is_live(expires: Timestamp, now: Timestamp) -> bool {
    now <= expires && !lease_is_too_long(expires, now)
}

/// Whether a lease, or the grace after it, is live: no other agent may take what it is for.
pub fn lease_holds(expires: Timestamp, now: Timestamp) -> bool {
    now <= expires + LEASE_GRACE && !lease_is_too_long(expires, now)
}
