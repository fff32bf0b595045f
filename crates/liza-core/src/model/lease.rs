//! The one rule for a live lease: of agents, claims, reviews and reservations.

use liza_ids::{Seconds, Timestamp};

/// The time after a lease has expired in which others still may not take over.
pub const LEASE_GRACE: Seconds = Seconds(60);

pub const MAX_LEASE: Seconds = Seconds(86_400);

/// True if a lease ends later than any lease may. A clock that was ahead gave it, so it counts as expired:
/// otherwise its holder would keep what it holds for years. A small step of the clock does not count.
pub fn lease_is_too_long(expires: Timestamp, now: Timestamp) -> bool {
    expires > now + MAX_LEASE + LEASE_GRACE
}

pub fn lease_is_live(expires: Timestamp, now: Timestamp) -> bool {
    now <= expires && !lease_is_too_long(expires, now)
}

/// True during a lease and the grace after it: no other agent may take what it is for.
pub fn lease_holds(expires: Timestamp, now: Timestamp) -> bool {
    now <= expires + LEASE_GRACE && !lease_is_too_long(expires, now)
}
