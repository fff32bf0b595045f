//! Coloured text for a terminal of any width.
//!
//! Knows no task. All text of the blackboard passes through here, so nothing in it can manipulate a terminal.

use anstyle::{AnsiColor, Style};
use liza_core::text::is_unprintable;

pub(crate) use liza_status::words::ago;

use crate::cli::ui::log_text::Tone;

pub(crate) use liza_host::columns::{cut, indent, list, one_line, pad, width, wrap};

pub(crate) use super::clean::clean;

pub(crate) const BOLD: Style = Style::new().bold();
/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

pub(crate) fn style_of(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => BOLD,
        Tone::Good => GREEN,
        Tone::Attention => YELLOW,
        Tone::Bad => RED,
    }
}

pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let marked = |sequence: String| sequence.replace('\u{1b}', STYLE_MARK);
    let (start, end) = (marked(style.render().to_string()), marked(style.render_reset().to_string()));
    format!("{start}{text}{end}")
}

/// Replaces the escape character of a style until the text is written: every real one comes from outside.
const STYLE_MARK: &str = "\u{fdd0}";

/// The text as it is written: with its styles or without, and without other terminal sequences, control
/// characters and characters that reorder text.
pub(crate) fn printable(text: &str, colored: bool) -> String {
    let mut parts = text.split(STYLE_MARK);
    let mut printed = parts.next().map(clean).unwrap_or_default();
    for part in parts {
        let (style, rest) = part.split_at(style_length(part));
        if colored && !style.is_empty() {
            printed.push('\u{1b}');
            printed.push_str(style);
        }
        printed.push_str(&clean(rest));
    }
    printed
}

/// The length of the style at the beginning of a text: `[1;31m`.
fn style_length(text: &str) -> usize {
    let is_style = |end: &usize| {
        let inner = text.get(..*end).and_then(|style| style.strip_prefix('['));
        inner.is_some_and(|inner| inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
    };
    text.find('m').filter(is_style).map_or(0, |end| end + 1)
}

/// JSON with unprintable characters escaped, so that programs still read the same text.
pub(crate) fn printable_json(json: &str) -> String {
    if !json.contains(|c: char| is_unprintable(c) && c != '\n') {
        return json.to_owned();
    }
    let mut printed = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '\n' => printed.push(c),
            c if is_unprintable(c) => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                units.iter().for_each(|unit| printed.push_str(&format!("\\u{unit:04x}")));
            }
            c => printed.push(c),
        }
    }
    printed
}

/// A command for the user: wrapped rather than cut, so that it can be copied.
pub(crate) fn command(text: &str, by: usize, columns: usize) -> Vec<String> {
    let mut lines = wrap(text, columns.saturating_sub(by + 2).max(10)).into_iter();
    let first = lines.next().map(|line| format!("{}→ {}", " ".repeat(by), paint(CYAN, &line)));
    let rest = lines.map(|line| format!("{}{}", " ".repeat(by + 2), paint(CYAN, &line)));
    first.into_iter().chain(rest).collect()
}

/// Lines that are too long, wrapped at words below their own indentation. Commands stay whole, to be copied,
/// and so does styled text.
pub(crate) fn wrap_sentences(text: &str, columns: usize) -> String {
    let wrapped = |line: &str| {
        let words = line.trim_start();
        let is_command = ["→", "hint:"].iter().any(|start| words.starts_with(start));
        if width(line) <= columns || is_command || line.contains(STYLE_MARK) {
            return line.to_owned();
        }
        indent(words, line.len() - words.len(), columns).join("\n")
    };
    text.split('\n').map(wrapped).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-01
    #[test]
    fn sentences_are_wrapped_at_words_and_commands_stay_whole() {
        let text = "liza: to rehearse here\n  that is, in this folder\n  → liza run --plain --in-place\nend";
        let shown =
            "liza: to\nrehearse here\n  that is, in\n  this folder\n  → liza run --plain --in-place\nend";
        assert_eq!(wrap_sentences(text, 13), shown);
        assert_eq!(wrap_sentences(text, 80), text);
    }

    /// Covers: AT-14
    #[test]
    fn only_styles_of_our_own_become_escape_sequences() {
        let line =
            format!("{} \u{1b}[31mtheirs\u{1b}[0m \u{1b}]0;title\u{7}\u{202e}", paint(RED, "ours \u{1b}[2J"));
        assert_eq!(printable(&line, true), "\u{1b}[1m\u{1b}[31mours \u{1b}[0m theirs ");
        assert_eq!(printable(&line, false), "ours  theirs ");
        assert_eq!(printable("\u{fdd0}[2J \u{fdd0}m \u{fdd0}", true), "[2J m ");
    }

    /// Covers: AT-14
    #[test]
    fn json_escapes_what_must_not_reach_a_terminal() {
        let text = "a\u{9b}b\u{202e}c\u{7f}\u{1b}\nd";
        let json = printable_json(&serde_json::json!({ "text": text }).to_string());
        assert!(!json.contains(is_unprintable), "{json}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["text"], text);
    }
}
