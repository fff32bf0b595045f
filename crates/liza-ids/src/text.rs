//! Text for people: lines, shell words, and numbers with their nouns.

use std::borrow::Cow;

/// The beginning of the line in which a command says why it failed.
pub const ERROR_START: &str = "liza: ";

/// The beginning of the line after it, which says what to do.
pub const HINT_START: &str = "  hint: ";

/// Makes one line of a text: white space folded, cut at `max` characters. Looks at no more of it than that.
pub fn one_line(text: &str, max: usize) -> String {
    let (mut line, mut length) = (String::new(), 0);
    for word in text.split_whitespace() {
        let gap = (!line.is_empty()).then_some(' ');
        for c in gap.into_iter().chain(word.chars().filter(|c| !is_unprintable(*c))) {
            if length == max {
                return format!("{}…", line.trim_end());
            }
            line.push(c);
            length += 1;
        }
    }
    line
}

/// The start and the end of a text that is longer than a screen has room for. Laying out a text takes time.
pub fn bounded(text: &str) -> Cow<'_, str> {
    const START: usize = 3_000;
    const END: usize = 800;
    if text.len() <= START + END {
        return text.into();
    }
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let start = (0..=START).rev().find(boundary).unwrap_or_default();
    let end = (text.len() - END..text.len()).find(boundary).unwrap_or(text.len());
    format!("{} […] {}", &text[..start], &text[end..]).into()
}

/// A text in which each unprintable character but those of lines and tabs is its code: a sequence could hide text, and a carriage
/// return could make one line look like two.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| is_unprintable(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown.into()
}

/// True for characters that control a terminal, reorder the text around them or cannot be seen: they must not be printed.
pub fn is_unprintable(c: char) -> bool {
    let reorders =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks_lines = matches!(c, '\u{2028}' | '\u{2029}');
    // The program itself gives these a meaning, see the colours of the command line.
    let is_private = matches!(c, '\u{feff}' | '\u{fdd0}'..='\u{fdef}');
    c.is_control() || reorders || breaks_lines || is_private || is_invisible(c)
}

/// True for characters without a shape, in which a text can hide another one: those that Unicode says to show as nothing, and the
/// marks around notes that are not shown. Joiners and the selector of emoji are parts of words
/// and signs, and stay.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// A word as a person types it into a shell: in single quotes unless every character is plain.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// A number with its noun: "1 task", "3 tasks", "2 processes", "4 anomalies".
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        Some(stem) => format!("{number} {stem}ies"),
        None if noun.ends_with('s') => format!("{number} {noun}es"),
        None => format!("{number} {noun}s"),
    }
}

/// A number that stands beside its sum or its parts: rounded ones would not add up. 950, 12,800.
pub fn exact_number(number: u64) -> String {
    let digits = number.to_string();
    let before = |at: usize| if at > 0 && (digits.len() - at).is_multiple_of(3) { "," } else { "" };
    digits.chars().enumerate().map(|(at, digit)| format!("{}{digit}", before(at))).collect()
}

/// A number, rounded to about three digits: 950, 3.4k, 12.8k, 196k, 3.4M.
pub fn compact_number(number: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = (number / (unit / 10)).saturating_add(u64::from(number % (unit / 10) >= unit / 20));
        (tenths / 10, tenths % 10)
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..99_950 => match tenths(1_000) {
            (whole @ 10.., 0) => format!("{whole}k"),
            (whole, tenth) => format!("{whole}.{tenth}k"),
        },
        99_950..999_500 => format!("{}k", (number + 500) / 1_000),
        999_500.. => {
            let (whole, tenth) = tenths(1_000_000);
            format!("{whole}.{tenth}M")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_folds_and_cuts_at_characters() {
        assert_eq!(one_line("a\n  b\u{7}c\td ", 80), "a bc d");
        assert_eq!(one_line("ééééé", 3), "ééé…");
        assert_eq!((one_line("", 3).as_str(), one_line("ab c", 3).as_str()), ("", "ab…"));
        assert_eq!((one_line("abc  ", 3).as_str(), one_line("abc d", 0).as_str()), ("abc", "…"));
        assert_eq!(one_line("abc\u{202e}fed\u{2066} \u{9b}31m", 80), "abcfed 31m");
    }

    #[test]
    fn what_cannot_be_seen_is_shown_by_its_code() {
        let hidden = "if a\u{200b}dmin \u{e0041}\u{202e}\u{ad}\u{1b}[2J\r";
        assert_eq!(visible(hidden), "if a\\u{200b}dmin \\u{e0041}\\u{202e}\\u{ad}\\u{1b}[2J\\u{d}");
        assert_eq!(one_line(hidden, 80), "if admin [2J");
        let rare = ['\u{2065}', '\u{fff0}', '\u{fff9}', '\u{fffb}', '\u{1bca0}', '\u{1d173}', '\u{1d17a}'];
        assert!(rare.into_iter().all(is_unprintable) && !is_unprintable('\u{fffd}'));
        let plain = "lines\n\tand ☺\u{fe0f}, 👩\u{200d}🔧, می\u{200c}خواهم";
        assert_eq!(visible(plain), plain);
    }

    /// Covers: AX-22
    #[test]
    fn a_number_is_rounded_alone_and_exact_beside_its_sum() {
        let exact = [0, 800, 12_800, 196_404, 1_000_000].map(exact_number);
        assert_eq!(exact, ["0", "800", "12,800", "196,404", "1,000,000"]);
        let shown = [999, 1_049, 12_000, 12_800, 25_600, 64_000, 99_950, 195_777, 999_500, 3_449_999];
        let expected = ["999", "1.0k", "12k", "12.8k", "25.6k", "64k", "100k", "196k", "1.0M", "3.4M"];
        assert_eq!(shown.map(compact_number), expected);
    }

    #[test]
    fn nouns_follow_their_number() {
        assert_eq!(
            [count(1, "task"), count(0, "task"), count(2, "process")],
            ["1 task", "0 tasks", "2 processes"]
        );
        assert_eq!([count(3, "discovery"), count(3, "day")], ["3 discoveries", "3 days"]);
    }
}
