//! Markdown from texts that nobody vouches for: masked, on one line, cut, escaped.
//!
//! Agents write most of what a report shows. Nothing of it may become a heading, a link, a picture or HTML.

use unicode_width::UnicodeWidthStr as _;

use crate::secrets::Masker;
use crate::text::markdown_line;

/// What stands where there is nothing to say.
pub(super) const NOTHING: &str = "–";

/// Writes other people's texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink<'a>(pub(super) &'a Masker);

impl Ink<'_> {
    /// A text on one line of at most `max` characters, safe anywhere in a line or a table.
    pub(super) fn text(self, text: &str, max: usize) -> String {
        let line = markdown_line(text, max, self.0);
        if line.is_empty() { NOTHING.to_owned() } else { line }
    }
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
            ("![p](http://x)", "!\\[p\\](http\\://x)"),
            ("# heading\n# again", "\\# heading \\# again"),
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
