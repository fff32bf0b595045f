//! Times of day in messages: "Try again at 5:24 AM.", "Try again at Nov 17th, 2026 5:24 AM.", "resets 3pm
//! (Europe/Berlin)". Programs write them in the local time zone unless they name another.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};
use liza_core::model::{LimitReset, Seconds, Timestamp};

/// The pause before the next try if the time has just passed.
const TRY_SOON: Seconds = Seconds(60);

/// The minutes for which a time counts as just passed (late message, wrong clock). Later, tomorrow's is meant.
const JUST_PASSED: i64 = 15;

/// Words before such a time, in lower case.
const PHRASES: [&str; 4] = ["try again at ", "resets at ", "reset at ", "resets "];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The next occurrence of the time in a message, unless it has just passed.
pub(super) fn clock_time(message: &str, now: &Zoned) -> Option<LimitReset> {
    let text = message.to_lowercase();
    let rest = PHRASES.iter().find_map(|phrase| text.split_once(phrase))?.1;
    let zone = zone_in(rest).unwrap_or_else(|| now.time_zone().clone());
    let here = now.with_time_zone(zone);
    let mut words = rest.split([' ', ',', '.', '·']).filter(|word| !word.is_empty()).peekable();
    let dates = match words.peek().and_then(|word| month(word)) {
        None => vec![here.date().yesterday().ok()?, here.date(), here.date().tomorrow().ok()?],
        Some(month) => {
            words.next();
            let day = words.next()?.trim_end_matches(|c: char| c.is_alphabetic()).parse().ok()?;
            let year = words.next_if(|word| word.len() == 4 && word.parse::<i16>().is_ok());
            let years =
                year.map_or(vec![here.year(), here.year() + 1], |year| year.parse().into_iter().collect());
            years.into_iter().filter_map(|year| Date::new(year, month, day).ok()).collect()
        }
    };
    words.next_if_eq(&"at");
    let first = words.next()?;
    let time = time_of_day(first, words.next().unwrap_or_default())?;
    reset_after(&dates, time, &here)
}

/// The first of these days on which the time is ahead or has just passed. It counts to the end of its minute,
/// since the message has no seconds.
fn reset_after(dates: &[Date], time: Time, here: &Zoned) -> Option<LimitReset> {
    let end = |date: &Date| {
        let begin = date.to_datetime(time).to_zoned(here.time_zone().clone()).ok()?;
        begin.checked_add(1.minute()).ok()
    };
    let ends: Vec<Zoned> = dates.iter().filter_map(end).collect();
    let oldest = here.checked_sub(JUST_PASSED.minutes()).ok()?;
    // A full date that has passed long ago is a limit that has ended.
    let found = ends.iter().find(|end| **end > oldest).or(ends.first())?;
    Some(match found > here {
        true => LimitReset::At(Timestamp::from_unix(found.timestamp().as_second())),
        false => LimitReset::In(TRY_SOON),
    })
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

fn zone_in(text: &str) -> Option<TimeZone> {
    let (_, after) = text.split_once('(')?;
    TimeZone::get(after.split_once(')')?.0.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin(time: &str) -> Zoned {
        format!("{time}+01:00[Europe/Berlin]").parse().unwrap()
    }

    fn at(time: &str) -> Option<LimitReset> {
        Some(LimitReset::At(time.parse().unwrap()))
    }

    /// Covers: SE-01, SE-04, AX-27
    #[test]
    fn times_of_day_are_the_next_ones_in_their_time_zone_and_count_to_the_end_of_their_minute() {
        let now = berlin("2026-11-16T15:30:00");
        let cases = [
            ("You’ve hit your usage limit. Try again at 5:24 PM.", "2026-11-16T16:25:00Z"),
            ("You've hit your usage limit. Try again at 5:24 AM.", "2026-11-17T04:25:00Z"),
            ("Try again at Nov 19th, 2026 12:05 AM.", "2026-11-18T23:06:00Z"),
            ("5-hour limit reached ∙ resets 3pm (America/New_York)", "2026-11-16T20:01:00Z"),
            ("You've hit your limit · resets at 17:05", "2026-11-16T16:06:00Z"),
            ("limit reached, resets Nov 20 at 4pm", "2026-11-20T15:01:00Z"),
            ("limit reached, resets Jan 2 at 4pm", "2027-01-02T15:01:00Z"),
        ];
        for (message, expected) in cases {
            assert_eq!(clock_time(message, &now), at(expected), "{message}");
        }
        for none in
            ["Try again later.", "try again in 20s", "resets 3 times", "try again at noon", "resets 99pm"]
        {
            assert_eq!(clock_time(none, &now), None, "{none}");
        }
    }

    /// Covers: AX-27
    #[test]
    fn a_time_that_has_just_passed_is_tried_in_a_minute_and_not_tomorrow() {
        let message = "You've hit your limit · resets 3:15pm";
        let soon = Some(LimitReset::In(TRY_SOON));
        let cases = [
            ("2026-11-16T15:14:59", at("2026-11-16T14:16:00Z")),
            // The minute has begun, so the limit may end in it: this one was held for 23 h 59 min.
            ("2026-11-16T15:15:00", at("2026-11-16T14:16:00Z")),
            ("2026-11-16T15:15:59", at("2026-11-16T14:16:00Z")),
            ("2026-11-16T15:16:00", soon),
            ("2026-11-16T15:20:00", soon),
            ("2026-11-16T15:30:59", soon),
            ("2026-11-16T15:31:00", at("2026-11-17T14:16:00Z")),
        ];
        for (now, expected) in cases {
            assert_eq!(clock_time(message, &berlin(now)), expected, "{now}");
        }
        let midnight = clock_time("resets 11:59pm", &berlin("2026-11-17T00:03:00"));
        assert_eq!(midnight, soon, "yesterday's");
        let dated = clock_time("resets Nov 16 at 3:15pm", &berlin("2026-11-16T15:20:00"));
        assert_eq!(dated, soon);
    }
}
