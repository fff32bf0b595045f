//! The renewals of a team's leases, and the validity of judgements by leases. Reads no clock. After a suspend
//! of the machine every lease looks expired: nothing is judged by one until they were renewed.

use std::time::{Duration, Instant};

use liza_core::model::{Seconds, Timestamp};
use liza_core::supervise::frozen_time;

/// The pause before a failed renewal of leases is retried.
pub(super) const RENEW_RETRY: Duration = Duration::from_secs(2);

/// The number of failed renewals after a suspend until the leases are judged as they are.
const ATTEMPTS: u32 = 3;

#[derive(Debug)]
pub(super) struct Renewals {
    next: Instant,
    running: bool,
    /// The time of day and the running time when the loop last looked.
    clock: (Timestamp, Instant),
    /// The pause that the loop meant to make since then.
    intended: Duration,
    /// The time since the last renewal in which nothing ran.
    frozen: Seconds,
    /// True if the running renewal was started before the last freeze: it may have ended before it.
    is_outdated: bool,
    /// The number of attempts before anything is judged by a lease; zero in normal times.
    first: u32,
    failed: bool,
}

impl Renewals {
    pub(super) fn new(time_of_day: Timestamp, running: Instant) -> Self {
        let (clock, intended, frozen) = ((time_of_day, running), Duration::MAX, Seconds(0));
        let (first, failed, is_outdated) = Default::default();
        Self { next: running, running: false, clock, intended, frozen, is_outdated, first, failed }
    }

    /// The loop is about to wait for at most that time.
    pub(super) fn wait(&mut self, at_most: Duration) -> Duration {
        self.intended = at_most;
        at_most
    }

    /// Compares the clocks with each other and with the pause that was intended. The time in which nothing
    /// ran; the leases are then renewed at once.
    pub(super) fn look(&mut self, time_of_day: Timestamp, running: Instant) -> Seconds {
        let (last, since) = std::mem::replace(&mut self.clock, (time_of_day, running));
        let ran = Seconds(running.saturating_duration_since(since).as_secs());
        let intended = std::mem::replace(&mut self.intended, Duration::MAX);
        let frozen = frozen_time(time_of_day.since(last), ran, Seconds(intended.as_secs()));
        if frozen.0 > 0 {
            (self.first, self.next, self.is_outdated) = (ATTEMPTS, running, self.running);
            self.frozen.0 = self.frozen.0.saturating_add(frozen.0);
        }
        frozen
    }

    /// The time since the last renewal in which nothing ran.
    pub(super) fn frozen(&self) -> Seconds {
        self.frozen
    }

    /// True if a lease may be judged.
    pub(super) fn may_judge(&self) -> bool {
        self.first == 0
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        !self.running && now >= self.next
    }

    /// `None` while a renewal is running.
    pub(super) fn next(&self) -> Option<Instant> {
        (!self.running).then_some(self.next)
    }

    /// Starts a renewal, if there are leases to renew; the next one is due after the interval.
    pub(super) fn start(&mut self, has_leases: bool, now: Instant, interval: Duration) {
        self.next = now + interval;
        self.running = has_leases;
        if !has_leases {
            (self.first, self.frozen) = (0, Seconds(0));
        }
    }

    /// Records a success. True if the renewal before had failed.
    pub(super) fn succeeded(&mut self) -> bool {
        self.running = false;
        if !std::mem::take(&mut self.is_outdated) {
            (self.first, self.frozen) = (0, Seconds(0));
        }
        std::mem::take(&mut self.failed)
    }

    /// Records a failure; the retry comes soon.
    pub(super) fn fail(&mut self, now: Instant) {
        (self.running, self.failed, self.is_outdated) = (false, true, false);
        self.first = self.first.saturating_sub(1);
        self.next = now + RENEW_RETRY;
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Renews at that time at the latest.
    pub(super) fn not_after(&mut self, time: Instant) {
        self.next = self.next.min(time);
    }

    pub(super) fn at(&mut self, time: Instant) {
        self.next = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::now;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Covers: AC-10
    #[test]
    fn after_a_suspend_nothing_is_judged_until_the_leases_are_renewed() {
        let (wall, start) = (now(), Instant::now());
        let mut renewals = Renewals::new(wall, start);
        renewals.start(true, start, HOUR);
        assert!(!renewals.succeeded());
        let second = Duration::from_secs(1);
        assert!(renewals.look(wall + Seconds(1), start + second) == Seconds(0) && renewals.may_judge());
        // The time of day is hours ahead of the running time.
        let after = start + 2 * second;
        assert_eq!(renewals.look(wall + Seconds(7200), after), Seconds(7198));
        assert!(!renewals.may_judge() && renewals.is_due(after));
        renewals.start(true, after, HOUR);
        assert!(!renewals.may_judge() && !renewals.is_due(after + HOUR), "it runs");
        // A failure, such as a lock that is not free, is not yet the end of a session.
        renewals.fail(after);
        assert!(!renewals.may_judge() && renewals.is_due(after + 2 * second));
        renewals.start(true, after, HOUR);
        assert!(renewals.succeeded() && renewals.may_judge());
        assert!(renewals.look(wall + Seconds(7201), after + second) == Seconds(0) && renewals.may_judge());
    }

    /// Covers: AX-11
    #[test]
    fn processes_that_were_stopped_get_back_the_time_of_their_leases() {
        let (wall, start) = (now(), Instant::now());
        let mut renewals = Renewals::new(wall, start);
        renewals.start(true, start, HOUR);
        renewals.wait(Duration::from_secs(5));
        // Both clocks have gone on, and the loop has not.
        let after = start + 2 * HOUR;
        assert_eq!(renewals.look(wall + Seconds(7200), after), Seconds(7195));
        assert!(!renewals.succeeded() && !renewals.may_judge(), "it may have been written before");
        assert_eq!((renewals.frozen(), renewals.is_due(after)), (Seconds(7195), true));
        renewals.start(true, after, HOUR);
        assert!(!renewals.succeeded() && renewals.may_judge());
        assert_eq!(renewals.frozen(), Seconds(0));
        // A long pause that was intended is none in which nothing ran.
        renewals.wait(HOUR);
        assert_eq!(renewals.look(wall + Seconds(10_800), after + HOUR), Seconds(0));
    }

    /// Covers: AC-10
    #[test]
    fn leases_that_cannot_be_renewed_are_judged_in_the_end() {
        let (wall, start) = (now(), Instant::now());
        let mut renewals = Renewals::new(wall, start);
        assert_eq!(renewals.look(wall + Seconds(7200), start), Seconds(7200));
        for _ in 0..ATTEMPTS {
            assert!(!renewals.may_judge());
            renewals.start(true, start, HOUR);
            renewals.fail(start);
        }
        assert!(renewals.may_judge() && renewals.has_failed());
        assert_eq!(renewals.look(wall + Seconds(14_400), start), Seconds(7200));
        renewals.start(false, start, HOUR);
        assert!(renewals.may_judge(), "without an agent there is no lease");
    }
}
