//! Markdown from untrusted text: masked, on one line, cut, escaped. Agents write most of a report. None of it
//! may become a heading, a link, a picture or HTML.

use liza_host::secrets::Masker;
use unicode_width::UnicodeWidthStr as _;

use crate::markdown_line;

/// Shown in place of a missing value.
pub(super) const NOTHING: &str = "–";

/// Renders text that agents wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escaper<'a>(pub &'a Masker);

impl Escaper<'_> {
    /// A text on one line of at most `max` characters, safe anywhere in a line or a table.
    pub(crate) fn text(self, text: &str, max: usize) -> String {
        let line = markdown_line(text, max, self.0);
        if line.is_empty() { NOTHING.to_owned() } else { line }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A table whose columns are aligned in plain text as well.
pub(super) fn table(headers: &[(&str, Align)], rows: &[Vec<String>]) -> Vec<String> {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([headers[column].0.width(), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..headers.len()).map(widest).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().enumerate().map(|(column, cell)| {
            let gap = " ".repeat(widths[column].saturating_sub(cell.width()));
            match headers[column].1 {
                Align::Left => format!(" {cell}{gap} |"),
                Align::Right => format!(" {gap}{cell} |"),
            }
        });
        format!("|{}", padded.collect::<String>())
    };
    let rule = headers.iter().zip(&widths).map(|((_, align), width)| match align {
        Align::Left => format!(" {} |", "-".repeat(*width)),
        Align::Right => format!(" {}: |", "-".repeat(width - 1)),
    });
    let mut lines = vec![line(&headers.iter().map(|(header, _)| *header).collect::<Vec<_>>())];
    lines.push(format!("|{}", rule.collect::<String>()));
    lines.extend(rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>())));
    lines
}

/// A section of a page: its heading and its lines; empty if there are no lines.
pub(super) fn section(heading: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return Vec::new();
    }
    let mut section = vec![String::new(), format!("## {heading}"), String::new()];
    section.extend(lines);
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, max: usize) -> String {
        Escaper(&Masker::default()).text(text, max)
    }

    /// Covers: SP-03
    #[test]
    fn text_from_agents_stays_text() {
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
    fn secrets_are_masked_before_text_is_cut() {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let written = text(&format!("token {key} leaked"), 20);
        assert!(!written.contains("a1B2"), "{written}");
        assert!(written.starts_with("token ghp\\_\\[masked"), "{written}");
    }

    #[test]
    fn columns_with_wide_characters_are_aligned() {
        let rows = [vec!["日本".to_owned(), "1".to_owned()], vec!["a".to_owned(), "100".to_owned()]];
        let lines = table(&[("Name", Align::Left), ("N", Align::Right)], &rows);
        assert_eq!(
            lines,
            ["| Name |   N |", "| ---- | --: |", "| 日本 |   1 |", "| a    | 100 |"],
            "{lines:#?}"
        );
    }
}
