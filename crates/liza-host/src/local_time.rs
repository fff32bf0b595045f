//! The clock of this machine, and times in the person's zone, or in UTC on request. Files and JSON stay UTC.

use std::time::SystemTime;

use jiff::tz::TimeZone;
use liza_ids::Timestamp;

/// The clock of this machine, limited to the years that a time can have.
pub fn wall_clock() -> jiff::Timestamp {
    held_to_years(SystemTime::now())
}

fn held_to_years(time: SystemTime) -> jiff::Timestamp {
    let end = if time < SystemTime::UNIX_EPOCH { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::try_from(time).unwrap_or(end)
}

/// The same in the person's zone.
pub fn local_clock() -> jiff::Zoned {
    wall_clock().to_zoned(TimeZone::system())
}

#[derive(Debug, Clone)]
pub struct LocalTime {
    zone: TimeZone,
}

impl LocalTime {
    /// The zone of this machine or of the variable TZ.
    pub fn of_system() -> Self {
        Self { zone: TimeZone::system() }
    }

    pub fn utc() -> Self {
        Self { zone: TimeZone::UTC }
    }

    pub fn full(&self, time: Timestamp) -> String {
        self.format(time, "%Y-%m-%d %H:%M:%S")
    }

    pub fn short(&self, time: Timestamp) -> String {
        self.format(time, "%m-%d %H:%M:%S")
    }

    pub fn of_day(&self, time: Timestamp) -> String {
        self.format(time, "%H:%M:%S")
    }

    fn format(&self, time: Timestamp, format: &str) -> String {
        let time = jiff::Timestamp::from_second(time.unix()).unwrap_or_default();
        time.to_zoned(self.zone.clone()).strftime(format).to_string()
    }

    /// Replaces the UTC times in a text of ours: `2026-01-17T14:00:00Z`.
    pub fn in_text(&self, text: &str) -> String {
        const LENGTH: usize = "2026-01-17T14:00:00Z".len();
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(end) = rest.find('Z') {
            let found = (end + 1).checked_sub(LENGTH).and_then(|start| {
                let time: Timestamp = rest.get(start..=end)?.parse().ok()?;
                Some((start, time))
            });
            match found {
                Some((start, time)) => shown.push_str(&format!("{}{}", &rest[..start], self.full(time))),
                None => shown.push_str(&rest[..=end]),
            }
            rest = &rest[end + 1..];
        }
        shown.push_str(rest);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AX-13
    #[test]
    fn a_clock_beyond_all_years_is_held_to_their_end() {
        let year = std::time::Duration::from_secs(366 * 24 * 3600);
        assert_eq!(held_to_years(SystemTime::UNIX_EPOCH + year * 8_100), jiff::Timestamp::MAX);
        assert_eq!(held_to_years(SystemTime::UNIX_EPOCH - year * 20_000), jiff::Timestamp::MIN);
        assert_eq!(held_to_years(SystemTime::UNIX_EPOCH), jiff::Timestamp::UNIX_EPOCH);
    }

    fn tokyo() -> LocalTime {
        LocalTime { zone: TimeZone::fixed(jiff::tz::offset(9)) }
    }

    /// Covers: UI-09
    #[test]
    fn people_read_their_own_time_with_seconds() {
        let time: Timestamp = "2026-01-17T20:00:05Z".parse().unwrap();
        assert_eq!(tokyo().full(time), "2026-01-18 05:00:05");
        assert_eq!(tokyo().short(time), "01-18 05:00:05");
        assert_eq!(tokyo().of_day(time), "05:00:05");
        assert_eq!(LocalTime::utc().full(time), "2026-01-17 20:00:05");
    }

    /// Covers: UI-09
    #[test]
    fn times_inside_our_own_sentences_are_local_too() {
        let text = "Zoë: sprint-1 was due at 2026-01-17T20:00:05Z, not Z; Z";
        assert_eq!(tokyo().in_text(text), "Zoë: sprint-1 was due at 2026-01-18 05:00:05, not Z; Z");
        assert_eq!(tokyo().in_text("日本Z"), "日本Z");
    }
}
