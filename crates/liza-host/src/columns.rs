//! Text measured in columns of a terminal: cut at characters, wrapped at words. Knows no task and no colour;
//! the command line and the terminal screen share it.

use std::collections::BTreeSet;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub fn width(text: &str) -> usize {
    text.width()
}

/// Folds white space and removes control characters.
pub fn one_line(text: &str) -> String {
    liza_ids::text::one_line(text, usize::MAX)
}

/// One line of at most that many columns; a cut text ends with an ellipsis.
pub fn cut(text: &str, columns: usize) -> String {
    let line = one_line(text);
    if width(&line) <= columns {
        return line;
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used >= columns.max(1) {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

/// A text cut in its middle: names of similar things often differ at the end, and a failure names its cause there.
pub fn cut_middle(text: &str, columns: usize) -> String {
    let line = one_line(text);
    let all: Vec<char> = line.chars().collect();
    if width(&line) <= columns || columns < 8 || width(&line) != all.len() {
        return cut(text, columns);
    }
    let end = (columns - 1) / 2;
    let start = columns - 1 - end;
    let part = |chars: &[char]| chars.iter().collect::<String>();
    format!("{}…{}", part(&all[..start]), part(&all[all.len() - end..]))
}

/// Pads the text with spaces to that many columns.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Lines of at most that many columns, broken at words; line breaks of the text stay.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in one_line(paragraph).split(' ') {
            let mut word = word.to_owned();
            if !line.is_empty() && width(&line) + 1 + width(&word) > columns {
                lines.push(std::mem::take(&mut line));
            }
            while width(&word) > columns {
                let head = head(&word, columns);
                word = word[head.len()..].to_owned();
                lines.push(head);
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// As much of a word as fits, at least one character.
fn head(word: &str, columns: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    let head: String = word.chars().take_while(fits).collect();
    if head.is_empty() { word.chars().take(1).collect() } else { head }
}

pub fn indent(text: &str, by: usize, columns: usize) -> Vec<String> {
    let lines = wrap(text, columns.saturating_sub(by).max(10));
    lines.into_iter().map(|line| format!("{}{line}", " ".repeat(by))).collect()
}

/// The columns for a list of names cut by `cut`: `at_most`, unless two of them would look the same.
pub fn name_columns(names: &[&str], at_most: usize, cut: fn(&str, usize) -> String) -> usize {
    let longest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let shown: BTreeSet<String> = names.iter().map(|name| cut(name, at_most)).collect();
    let different: BTreeSet<&&str> = names.iter().collect();
    if shown.len() < different.len() { longest } else { longest.min(at_most) }
}

pub fn list(names: &[impl ToString]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The parts in one line of that width: those of the greatest rank give way as a whole, the last ones first.
pub fn fitting_parts<R: Ord>(mut parts: Vec<(R, String)>, columns: usize) -> String {
    let line =
        |parts: &[(R, String)]| parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" · ");
    while width(&line(&parts)) > columns && parts.len() > 1 {
        let last = parts.iter().enumerate().max_by(|(_, a), (_, b)| a.0.cmp(&b.0)).map(|(at, _)| at);
        last.map(|at| parts.remove(at));
    }
    line(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_and_padding_count_columns_not_characters() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("a longer text", 9), "a longer…");
        assert_eq!(cut("日本語のテキスト", 7), "日本語…");
        assert!(width(&cut("🎉🎉🎉🎉🎉", 6)) <= 6);
        assert_eq!(cut("line\nbreaks\tand\u{1b}[31m", 40), "line breaks and[31m");
        assert_eq!(width(&pad("日本", 8)), 8);
        assert_eq!(cut("anything", 0), "…");
        assert_eq!(cut_middle("retry-orders-min", 9), "retr…-min");
        assert_eq!(cut_middle("retry-orders-min", 16), "retry-orders-min");
        assert_eq!(cut_middle("日本語のテキスト", 9), "日本語の…");
        assert_eq!(cut_middle("exited 1: /a/long/path\nno such word", 27), "exited 1: /a/… no such word");
    }

    /// Covers: AX-22
    #[test]
    fn the_parts_of_the_greatest_rank_give_way_as_a_whole() {
        let parts = || {
            [(0, "one"), (2, "two"), (1, "three"), (2, "four")].map(|(rank, text)| (rank, text.to_owned()))
        };
        let fitting = |columns| fitting_parts(parts().to_vec(), columns);
        assert_eq!(fitting(24), "one · two · three · four");
        assert_eq!(fitting(23), "one · two · three");
        assert_eq!(fitting(16), "one · three");
        assert_eq!([fitting(10), fitting(1)], ["one", "one"], "the last one stays");
    }

    #[test]
    fn wrapping_keeps_words_and_line_breaks() {
        assert_eq!(wrap("one two three\n\nfour", 8), ["one two", "three", "", "four"]);
        assert_eq!(wrap("unbreakable", 4), ["unbr", "eaka", "ble"]);
        assert_eq!(wrap("", 4), Vec::<String>::new());
        assert!(wrap("日本語のテキスト", 5).iter().all(|line| width(line) <= 5));
    }
}
