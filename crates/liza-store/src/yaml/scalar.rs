//! The meaning of scalars, and the ambiguous texts. YAML readers disagree about `no`, `017` or `12e45`: only
//! a number for every reader is a number here, and a text that some reader could take otherwise is quoted.

use std::ops::Range;

use liza_core::model::{Timestamp, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// In single or double quotes.
    Quoted,
    /// After `|` or `>`.
    Block,
}

pub(crate) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

pub(crate) fn as_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// A whole number on which all readers agree: no leading zero, no base, no underscore.
pub(crate) fn as_int(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

/// A number with a fraction on which all readers agree: digits on both sides of the point.
pub(crate) fn as_float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.')?;
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if all_digits(whole) && all_digits(fraction) { text.parse().ok() } else { None }
}

pub(crate) fn resolve(text: &str, style: Style) -> Value {
    if style != Style::Plain {
        return Value::from(text);
    }
    if is_null(text) {
        return Value::Null;
    }
    let number = || as_int(text).map(Value::Int).or_else(|| as_float(text).map(Value::Float));
    as_bool(text).map(Value::Bool).or_else(number).unwrap_or_else(|| Value::from(text))
}

/// True if some reader takes the plain text as null, a boolean, a number or a time.
fn is_ambiguous(text: &str) -> bool {
    const WORDS: [&str; 14] = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf", ".nan", "nan",
    ];
    if WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return true;
    }
    // Numbers in any base, sexagesimals, dates and times consist of these.
    let numeric = |b: u8| b.is_ascii_hexdigit() || b"xXoOtTzZ_+-.: ".contains(&b);
    text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && text.bytes().all(numeric)
}

/// True if a character needs no escape.
pub(super) fn is_printable(c: char) -> bool {
    !matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        // Bidirectional controls would reorder what a person sees.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True if a text needs no quotes between brackets or braces, where YAML 1.1 readers end a plain text at a `?`.
pub(super) fn is_flow_safe(text: &str) -> bool {
    is_plain_safe(text) && !text.contains('?')
}

/// True if a text needs no quotes in block style.
pub(super) fn is_plain_safe(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let good_start = first.is_alphanumeric() || "_/.".contains(first);
    // `--- ` and `...` at the start of a line are document markers.
    good_start
        && !text.starts_with("...")
        && !text.ends_with([' ', ':'])
        && text.chars().all(|c| is_printable(c) && !",[]{}\"'`\\".contains(c) && !is_other_space(c))
        && !text.contains(": ")
        && !text.contains(" #")
        && !is_ambiguous(text)
}

/// White space on which readers disagree.
fn is_other_space(c: char) -> bool {
    c != ' ' && c.is_whitespace()
}

/// A time in exactly our own form, `YYYY-MM-DDTHH:MM:SSZ`.
pub(crate) fn as_time(text: &str) -> Option<Timestamp> {
    if text.len() != 20 || !text.ends_with('Z') {
        return None;
    }
    canonical_time(text).or_else(|| text.parse().ok().filter(|time: &Timestamp| time.to_string() == text))
}

/// A fast path for times in our own form. None on days and seconds that need a calendar.
pub(crate) fn canonical_time(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |range: Range<usize>| {
        let digits = bytes.get(range)?.iter();
        digits.copied().try_fold(0i64, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')];
    if bytes.len() != 20 || !marks.iter().all(|(at, mark)| bytes[*at] == *mark) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let is_common_day = year >= 1970 && (1..=12).contains(&month) && (1..=28).contains(&day);
    if !is_common_day || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days since March 1 of year 0: the leap day is then the last day of a year.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
    Some(Timestamp::from_unix((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second))
}
