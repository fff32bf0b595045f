//! A line of text that a person types, with its cursor.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "keys are not our enum, and most of them mean nothing here"
)]

use liza_core::text::is_unprintable;
use liza_status::action::ActionField;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputField {
    pub label: String,
    /// True if it may stay empty.
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

    /// The text to look for; without one, the last text is looked for again.
    pub(crate) fn search() -> Self {
        Self { label: "Search".to_owned(), optional: false, text: String::new(), cursor: 0 }
    }

    /// True if it can be used as it is.
    pub(crate) fn is_filled(&self) -> bool {
        self.optional || !self.text.trim().is_empty()
    }

    /// Changes the text by a key, if the key is for it.
    pub(crate) fn edit(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => self.delete_line(),
            KeyCode::Char('w') if control => self.delete_word(),
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char(_) if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {}
            KeyCode::Char(c) if !is_unprintable(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.backspace(),
            KeyCode::Delete => self.delete(),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn backspace(&mut self) {
        let before = self.before();
        self.text.replace_range(before..self.cursor, "");
        self.cursor = before;
    }

    fn delete(&mut self) {
        self.text.replace_range(self.cursor..self.after(), "");
    }

    fn delete_word(&mut self) {
        let head = self.text[..self.cursor].trim_end();
        let start = head.rfind(' ').map_or(0, |space| space + 1);
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    /// Deletes everything before the cursor.
    fn delete_line(&mut self) {
        self.text.replace_range(..self.cursor, "");
        self.cursor = 0;
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }
}
