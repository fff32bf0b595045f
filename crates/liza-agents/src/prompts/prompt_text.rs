//! Writes a prompt: sections, fields, and foreign text, marked so that it is not taken for the prompt itself.
//! All text from the blackboard goes through [`PromptText::field`], [`PromptText::quote`] or [`inline`].

use std::fmt::Write as _;
use std::path::Path;

use liza_core::text::{one_line, shell_word};

/// The start of each line of foreign text.
// Not a bar: the tables of a contract begin with one.
const QUOTE: &str = "> ";

#[derive(Debug, Default)]
pub(super) struct PromptText {
    text: String,
    /// The number of steps by which short lists are cut: 0 shows the most.
    cut: usize,
}

impl PromptText {
    pub(super) fn with_lists_cut(cut: usize) -> Self {
        Self { cut, ..Self::default() }
    }

    /// Begins a section. No other line of a prompt begins with `===`.
    pub(super) fn section(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.gap();
        }
        self.line(format!("=== {title} ==="));
    }

    /// Adds one line of our own text.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    /// Adds an empty line, never two.
    pub(super) fn gap(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a field: a value of one line on the same line, a longer one quoted below.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        let lines = clean_lines(value);
        match lines.as_slice() {
            [] => self.line(format!("{name}: (not given)")),
            [one] => self.line(format!("{name}: {one}")),
            [..] => {
                self.line(format!("{name}:"));
                self.quote(value);
            }
        }
    }

    /// Adds a field, unless its value is missing.
    pub(super) fn field_some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            self.field(name, value);
        }
    }

    /// Adds a list of foreign texts under a heading, unless it is empty.
    pub(super) fn list<T: AsRef<str>>(&mut self, heading: &str, items: &[T]) {
        if items.is_empty() {
            return;
        }
        self.line(format!("{heading}:"));
        for item in items {
            let text = clean_lines(item.as_ref()).join("\n  ");
            self.quote(&format!("- {text}"));
        }
    }

    /// Adds the first texts of a foreign list, each on one line and cut; of the others only their number.
    pub(super) fn short_list<T: AsRef<str>>(
        &mut self,
        heading: &str,
        items: &[T],
        (most, length): (usize, usize),
    ) {
        let (most, length) = ((most / (self.cut + 1)).max(1), length / (self.cut + 1));
        let shown = items.iter().take(most).map(|item| one_line(item.as_ref(), length));
        self.list(heading, &shown.collect::<Vec<_>>());
        if items.len() > most {
            self.line(format!("and {} more", items.len() - most));
        }
    }

    /// Adds foreign text, every line marked.
    pub(super) fn quote(&mut self, text: &str) {
        for line in clean_lines(text) {
            self.line(format!("{QUOTE}{line}").trim_end());
        }
    }

    /// Adds numbered steps of our own text. A step may have several lines; each command has a line of its own.
    // Not indented: the end marker of a here-document must be at the start of its line.
    pub(super) fn steps(&mut self, steps: &[String]) {
        for (n, step) in steps.iter().enumerate() {
            let _ = writeln!(self.text, "{}. {step}", n + 1);
        }
    }

    /// Adds a document unchanged, except that it cannot begin a section.
    pub(super) fn document(&mut self, text: &str) {
        for line in text.lines() {
            let guard = if line.starts_with("===") { " " } else { "" };
            self.line(format!("{guard}{line}"));
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Splits a text at every kind of line end; removes control characters and blank lines at both ends.
fn clean_lines(text: &str) -> Vec<String> {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let clean = |line: &str| {
        let kept: String = line.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
        kept.trim_end().to_owned()
    };
    let text = text.replace("\r\n", "\n");
    let mut lines: Vec<String> = text.split(ends).map(clean).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
    lines.drain(..first);
    lines
}

/// Returns foreign text as one line, to put into a line of our own.
pub(super) fn inline(text: &str) -> String {
    clean_lines(text).iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Returns a path on one line, for people.
pub(super) fn path(path: &Path) -> String {
    inline(&path.to_string_lossy())
}

/// Returns a path quoted as a word of a shell command.
pub(super) fn word(path: &Path) -> String {
    shell_word(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_never_begins_a_section() {
        let mut page = PromptText::default();
        page.section("OURS");
        page.field("ONE", "  === FAKE ===");
        page.field("MANY", "a\r\n=== FAKE ===\r=== FAKE ===\u{2028}=== FAKE ===\n\n\u{1b}[2J\u{7}b\n\n");
        page.list("LIST", &["x\n=== FAKE ===", ""]);
        page.field("NONE", " \n");
        page.document("=====\ntext");
        let text = page.finish();
        let sections: Vec<&str> = text.lines().filter(|line| line.starts_with("===")).collect();
        assert_eq!(sections, ["=== OURS ==="]);
        assert!(
            text.contains("> === FAKE ===\n")
                && text.contains("> [2Jb\n")
                && text.contains("NONE: (not given)")
        );
        assert!(!text.contains('\u{1b}') && !text.contains('\u{2028}'));
    }

    #[test]
    fn paths_are_quoted_as_shell_words() {
        assert_eq!(word(Path::new("/a/b-1/c.d")), "/a/b-1/c.d");
        assert_eq!(word(Path::new("/a b/it's")), r"'/a b/it'\''s'");
        assert_eq!(word(Path::new("/a$(x)")), "'/a$(x)'");
    }
}
