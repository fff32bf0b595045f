//! What a scalar means, and which texts could be taken for something else.
//!
//! Readers disagree about `no`, `017` or `12e45`. So only what every reader takes alike is a number here, and
//! everything that any reader could take for one is quoted when written.

use liza_core::model::Value;

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes.
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

/// The whole number, where all readers see the same one: no leading zero, no base, no underscore.
pub(crate) fn as_int(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

/// The number with a fraction, where all readers see the same one: digits on both sides of the point.
pub(crate) fn as_float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.')?;
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if all_digits(whole) && all_digits(fraction) { text.parse().ok() } else { None }
}

/// What a scalar means where no schema says it.
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

/// Whether some reader would take the plain text for a null, a truth value, a number or a time.
fn is_ambiguous(text: &str) -> bool {
    const WORDS: [&str; 14] = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf", "+.inf", ".nan", "nan",
    ];
    if WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return true;
    }
    // Numbers in any base, sexagesimals, dates and times are all made of these.
    let numeric = |b: u8| b.is_ascii_hexdigit() || b"xXoOtTzZ_+-.: ".contains(&b);
    text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && text.bytes().all(numeric)
}

/// Whether a character may stand in the file as it is.
pub(super) fn is_printable(c: char) -> bool {
    !matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        // Marks that reorder what a person sees are shown, not obeyed.
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a text may stand without quotes, in block and in flow style.
pub(super) fn is_plain_safe(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let good_start = first.is_alphanumeric() || "_/.".contains(first);
    // `--- ` and `...` at the beginning of a line would be document markers.
    good_start
        && !text.starts_with("...")
        && !text.ends_with([' ', ':'])
        && text.chars().all(|c| is_printable(c) && !",[]{}\"'`\\".contains(c) && !is_odd_space(c))
        && !text.contains(": ")
        && !text.contains(" #")
        && !is_ambiguous(text)
}

/// White space other than the plain one; readers differ on it.
fn is_odd_space(c: char) -> bool {
    c != ' ' && c.is_whitespace()
}
