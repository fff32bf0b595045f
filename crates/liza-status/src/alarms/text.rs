//! The sentence of an alarm or a decision, with the start of its own words.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use liza_core::model::TaskId;
use liza_core::text::bounded;

/// A sentence. One about a task begins with the task's name, which a screen can leave out.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct AlarmText {
    whole: String,
    #[serde(skip)]
    words: usize,
}

impl AlarmText {
    pub(crate) fn of_task(task: &TaskId, words: impl fmt::Display) -> Self {
        let name = format!("{task} — ");
        Self { words: name.len(), whole: format!("{name}{}", bounded(&words.to_string())) }
    }

    /// Without the name of the task.
    pub fn words(&self) -> &str {
        self.whole.get(self.words..).unwrap_or_default()
    }

    pub(crate) fn push_str(&mut self, more: &str) {
        self.whole.push_str(more);
    }
}

impl<T: Into<String>> From<T> for AlarmText {
    fn from(text: T) -> Self {
        Self { whole: bounded(&text.into()).into_owned(), words: 0 }
    }
}

impl AsRef<str> for AlarmText {
    fn as_ref(&self) -> &str {
        &self.whole
    }
}

impl<T: AsRef<str> + ?Sized> PartialEq<T> for AlarmText {
    fn eq(&self, other: &T) -> bool {
        self.whole == other.as_ref()
    }
}

impl Eq for AlarmText {}

impl Deref for AlarmText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.whole
    }
}

impl fmt::Display for AlarmText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}
