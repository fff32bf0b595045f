//! Points in time as the blackboard writes them: UTC, whole seconds, `YYYY-MM-DDTHH:MM:SSZ`. The present is
//! never read here: `now` is always an argument.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a time: expected UTC such as 2025-01-17T14:00:00Z")]
pub struct TimeError {
    text: String,
}

impl Timestamp {
    /// The name under which serde sees this type, so that a writer can tell a time from a text that looks like one.
    pub const SERDE_NAME: &'static str = "Timestamp";

    // The years 1 to 9999: four digits, and the range of `jiff`.
    const MIN: i64 = -62_135_596_800;
    const MAX: i64 = 253_402_207_200;

    /// The time that many seconds after 1970-01-01, limited to the years 1 to 9999.
    pub fn from_unix(seconds: i64) -> Self {
        Self(seconds.clamp(Self::MIN, Self::MAX))
    }

    pub fn unix(self) -> i64 {
        self.0
    }

    /// The time from `earlier` to here; zero if `earlier` lies ahead.
    pub fn since(self, earlier: Timestamp) -> Seconds {
        Seconds(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_second(self.0).unwrap_or_default();
        write!(f, "{time:.0}")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let time: jiff::Timestamp = text.trim().parse().map_err(|_| TimeError { text: text.to_owned() })?;
        Ok(Self::from_unix(time.as_second()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Self::SERDE_NAME, &self.to_string())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub u64);

impl Seconds {
    pub const fn minutes(minutes: u64) -> Self {
        Self(minutes * 60)
    }

    pub const fn hours(hours: u64) -> Self {
        Self(hours * 3600)
    }

    pub const fn in_minutes(self) -> u64 {
        self.0 / 60
    }
}

impl fmt::Display for Seconds {
    /// Two units at most, as a person would say it: `45s`, `12m`, `3h 20m`, `2d 4h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = |f: &mut fmt::Formatter<'_>, big: u64, unit: &str, small: u64, sub: &str| {
            write!(f, "{big}{unit}")?;
            if small > 0 { write!(f, " {small}{sub}") } else { Ok(()) }
        };
        match self.0 {
            s @ ..60 => write!(f, "{s}s"),
            s @ ..3600 => write!(f, "{}m", s / 60),
            s @ ..86_400 => pair(f, s / 3600, "h", s % 3600 / 60, "m"),
            s => pair(f, s / 86_400, "d", s % 86_400 / 3600, "h"),
        }
    }
}

impl Add<Seconds> for Timestamp {
    type Output = Timestamp;

    fn add(self, length: Seconds) -> Timestamp {
        Timestamp::from_unix(self.0.saturating_add_unsigned(length.0))
    }
}

impl Sub<Seconds> for Timestamp {
    type Output = Timestamp;

    fn sub(self, length: Seconds) -> Timestamp {
        Timestamp::from_unix(self.0.saturating_sub_unsigned(length.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: BB-04
    #[test]
    fn times_are_read_leniently_and_written_in_one_form() {
        let forms = [
            "2025-01-17T14:00:00Z",
            " 2025-01-17T14:00:00.987Z",
            "2025-01-17T15:00:00+01:00",
            "2025-01-17 14:00:00Z",
        ];
        for text in forms {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), "2025-01-17T14:00:00Z", "{text}");
        }
        for bad in ["", "yesterday", "2025-01-17", "2025-13-01T00:00:00Z", "2025-01-17T14:00:00"] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn arithmetic_never_overflows() {
        let late = Timestamp::from_unix(i64::MAX);
        assert_eq!(late.to_string(), "9999-12-30T22:00:00Z");
        assert_eq!(late + Seconds(u64::MAX), late);
        assert_eq!(Timestamp::from_unix(0).since(late), Seconds(0));
        assert_eq!((Timestamp::from_unix(i64::MIN) - Seconds(5)).to_string(), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn lengths_read_like_speech() {
        let said = [(45, "45s"), (720, "12m"), (12_000, "3h 20m"), (7200, "2h"), (187_200, "2d 4h")];
        for (seconds, text) in said {
            assert_eq!(Seconds(seconds).to_string(), text);
        }
    }
}
