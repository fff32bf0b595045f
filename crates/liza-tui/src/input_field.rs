//! A line of text that a person types: what is in it, and where the cursor is.

use liza_core::watch::action::ActionField;

/// A line that a person types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputField {
    pub label: String,
    /// Whether it may stay empty.
    pub optional: bool,
    pub text: String,
    /// The cursor, as a byte position in the text.
    pub cursor: usize,
}

impl InputField {
    pub(crate) fn of(field: ActionField, label: String) -> Self {
        let ActionField { optional, choices, .. } = field;
        let label = match choices {
            [] => label,
            choices => format!("{label} ({})", choices.join(", ")),
        };
        Self { label, optional, text: String::new(), cursor: 0 }
    }

    /// Whether it can be used as it is.
    pub(crate) fn is_filled(&self) -> bool {
        self.optional || !self.text.trim().is_empty()
    }

    /// Inserts a text at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Deletes the character before the cursor.
    pub(crate) fn backspace(&mut self) {
        let before = self.before();
        self.text.replace_range(before..self.cursor, "");
        self.cursor = before;
    }

    /// Deletes the character after the cursor.
    pub(crate) fn delete(&mut self) {
        self.text.replace_range(self.cursor..self.after(), "");
    }

    /// Deletes the word before the cursor.
    pub(crate) fn delete_word(&mut self) {
        let head = self.text[..self.cursor].trim_end();
        let start = head.rfind(' ').map_or(0, |space| space + 1);
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    /// Deletes everything before the cursor.
    pub(crate) fn delete_line(&mut self) {
        self.text.replace_range(..self.cursor, "");
        self.cursor = 0;
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.before();
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.after();
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }
}
