//! Markdown from texts that nobody vouches for: masked, on one line, cut, escaped.
//!
//! Agents write most of what a report shows. Nothing of it may become a heading, a link, a picture or HTML.

use std::borrow::Cow;

use liza_core::text::one_line;
use unicode_width::UnicodeWidthStr as _;

use crate::secrets::Masker;

/// What stands where there is nothing to say.
pub(super) const NOTHING: &str = "–";

/// Writes other people's texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink<'a>(pub(super) &'a Masker);

impl Ink<'_> {
    /// A text on one line of at most `max` characters, safe anywhere in a line or a table.
    pub(super) fn text(self, text: &str, max: usize) -> String {
        // Masked before it is cut: half a secret has no shape any more.
        let line = one_line(&visible(&self.0.mask(text)), max);
        if line.is_empty() { NOTHING.to_owned() } else { escape(&line) }
    }
}

/// Without characters that cannot be seen but turn or join what stands around them.
fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    if text.contains(hidden) { Cow::Owned(text.replace(hidden, "")) } else { Cow::Borrowed(text) }
}

/// The line with everything taken literally; as few backslashes as possible, since people also read the source.
fn escape(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let word = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
    let mut escaped = String::with_capacity(line.len() + 8);
    for (at, c) in chars.iter().enumerate() {
        let special = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' => true,
            // Inside a word it is only a letter: error_pattern.
            '_' => !(word(at.checked_sub(1)) && word(Some(at + 1))),
            '#' | '+' | '-' | '=' => at == 0,
            _ => false,
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(*c);
    }
    escaped
}

/// At which side of its column a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A table whose columns also line up in a pager.
pub(super) fn table(heads: &[(&str, Side)], rows: &[Vec<String>]) -> Vec<String> {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([heads[column].0.width(), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..heads.len()).map(widest).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().enumerate().map(|(column, cell)| {
            let gap = " ".repeat(widths[column].saturating_sub(cell.width()));
            match heads[column].1 {
                Side::Left => format!(" {cell}{gap} |"),
                Side::Right => format!(" {gap}{cell} |"),
            }
        });
        format!("|{}", padded.collect::<String>())
    };
    let rule = heads.iter().zip(&widths).map(|((_, side), width)| match side {
        Side::Left => format!(" {} |", "-".repeat(*width)),
        Side::Right => format!(" {}: |", "-".repeat(width - 1)),
    });
    let mut lines = vec![line(&heads.iter().map(|(head, _)| *head).collect::<Vec<_>>())];
    lines.push(format!("|{}", rule.collect::<String>()));
    lines.extend(rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>())));
    lines
}

/// A part of a page: its heading and its lines, or nothing where there are none.
pub(super) fn part(heading: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return Vec::new();
    }
    let mut part = vec![String::new(), format!("## {heading}"), String::new()];
    part.extend(lines);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, max: usize) -> String {
        Ink(&Masker::default()).text(text, max)
    }

    /// Covers: SP-03
    #[test]
    fn what_agents_write_stays_text() {
        let cases = [
            ("a|b", "a\\|b"),
            ("<img src=x onerror=1>", "\\<img src=x onerror=1\\>"),
            ("![p](http://x)", "!\\[p\\](http://x)"),
            ("# heading\n# again", "\\# heading # again"),
            ("`rm -rf` **now**", "\\`rm -rf\\` \\*\\*now\\*\\*"),
            ("error_pattern _not_ \\|", "error_pattern \\_not\\_ \\\\\\|"),
            ("&lt; ~~x~~", "\\&lt; \\~\\~x\\~\\~"),
            ("evil\u{202e}txt.exe\u{200b}", "eviltxt.exe"),
            (" \n ", NOTHING),
        ];
        for (given, written) in cases {
            assert_eq!(text(given, 80), written, "{given:?}");
        }
    }

    /// Covers: SP-03
    #[test]
    fn secrets_are_masked_before_anything_is_cut() {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let written = text(&format!("token {key} leaked"), 20);
        assert!(!written.contains("a1B2"), "{written}");
        assert!(written.starts_with("token ghp\\_\\[masked"), "{written}");
    }

    #[test]
    fn columns_line_up_also_with_wide_characters() {
        let rows = [vec!["日本".to_owned(), "1".to_owned()], vec!["a".to_owned(), "100".to_owned()]];
        let lines = table(&[("Name", Side::Left), ("N", Side::Right)], &rows);
        assert_eq!(
            lines,
            ["| Name |   N |", "| ---- | --: |", "| 日本 |   1 |", "| a    | 100 |"],
            "{lines:#?}"
        );
    }
}
