//! Times of day in messages: "Try again at 5:24 AM.", "Try again at Nov 17th, 2026 5:24 AM.", "resets 3pm (Europe/Berlin)".
//!
//! Programs write them for people, in the local time zone unless they name another.

use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use liza_core::model::Timestamp;

/// What comes before such a time, in lower case.
const PHRASES: [&str; 4] = ["try again at ", "resets at ", "reset at ", "resets "];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The next time that a message names, if it names one.
pub(super) fn clock_time(message: &str, now: &Zoned) -> Option<Timestamp> {
    let text = message.to_lowercase();
    let rest = PHRASES.iter().find_map(|phrase| text.split_once(phrase))?.1;
    let zone = zone_in(rest).unwrap_or_else(|| now.time_zone().clone());
    let here = now.with_time_zone(zone.clone());
    let mut words = rest.split([' ', ',', '.', '·']).filter(|word| !word.is_empty()).peekable();
    let date = words.peek().and_then(|word| month(word)).and_then(|month| {
        words.next();
        let day = words.next()?.trim_end_matches(|c: char| c.is_alphabetic()).parse().ok()?;
        let year = words.next_if(|word| word.len() == 4 && word.parse::<i16>().is_ok());
        Date::new(year.and_then(|year| year.parse().ok()).unwrap_or(here.year()), month, day).ok()
    });
    words.next_if_eq(&"at");
    let first = words.next()?;
    let time = time_of_day(first, words.next().unwrap_or_default())?;
    let at = |date: Date| date.to_datetime(time).to_zoned(zone.clone()).ok();
    let found = match date {
        Some(date) => at(date)?,
        None => at(here.date()).filter(|time| *time > here).or_else(|| at(here.date().tomorrow().ok()?))?,
    };
    Some(Timestamp::from_unix(found.timestamp().as_second()))
}

fn month(word: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|month| word.get(..3) == Some(month))?;
    i8::try_from(place + 1).ok()
}

/// `5:24` and `am`, `5:24am`, `3pm`, `17:05`.
fn time_of_day(word: &str, next: &str) -> Option<Time> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(word.len());
    let (digits, suffix) = word.split_at(end);
    let half = [suffix, next].into_iter().find(|half| half.starts_with("am") || half.starts_with("pm"));
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    if half.is_none() && !digits.contains(':') {
        return None;
    }
    let hour = match half {
        Some(half) if half.starts_with("pm") && hour < 12 => hour + 12,
        Some(half) if half.starts_with("am") && hour == 12 => 0,
        Some(_) | None => hour,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// The time zone in brackets.
fn zone_in(text: &str) -> Option<TimeZone> {
    let (_, after) = text.split_once('(')?;
    TimeZone::get(after.split_once(')')?.0.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SE-01, SE-04
    #[test]
    fn times_of_day_are_the_next_ones_in_their_time_zone() {
        let now: Zoned = "2026-11-16T15:30:00+01:00[Europe/Berlin]".parse().unwrap();
        let cases = [
            ("You’ve hit your usage limit. Try again at 5:24 PM.", "2026-11-16T16:24:00Z"),
            ("You've hit your usage limit. Try again at 5:24 AM.", "2026-11-17T04:24:00Z"),
            ("Try again at Nov 19th, 2026 12:05 AM.", "2026-11-18T23:05:00Z"),
            ("5-hour limit reached ∙ resets 3pm (America/New_York)", "2026-11-16T20:00:00Z"),
            ("You've hit your limit · resets at 17:05", "2026-11-16T16:05:00Z"),
            ("limit reached, resets Nov 20 at 4pm", "2026-11-20T15:00:00Z"),
        ];
        for (message, expected) in cases {
            assert_eq!(
                clock_time(message, &now).map(|time| time.to_string()).as_deref(),
                Some(expected),
                "{message}"
            );
        }
        for none in
            ["Try again later.", "try again in 20s", "resets 3 times", "try again at noon", "resets 99pm"]
        {
            assert_eq!(clock_time(none, &now), None, "{none}");
        }
    }
}
