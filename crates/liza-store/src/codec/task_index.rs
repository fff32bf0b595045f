//! The lines of each task and the tasks that name each other, without reading all of them. A task that
//! doesn't begin with its ID, or an ID that is used twice, needs the parser.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use liza_core::model::{Status, TaskId};

use super::summaries::id_on_first_line;
use super::view::StateView;
use crate::document::list_entries;

pub(crate) struct TaskIndex<'t> {
    text: &'t str,
    entries: Vec<Range<usize>>,
    names: Vec<&'t str>,
    by_name: HashMap<&'t str, usize>,
}

impl<'t> TaskIndex<'t> {
    /// `None` if the version needs the parser.
    pub(crate) fn of(view: &StateView<'t>) -> Option<Self> {
        let text = view.text;
        let entries = list_entries(text, view.task_lines()?);
        let names: Option<Vec<&str>> = entries.iter().map(|entry| id_on_first_line(text, entry)).collect();
        let names = names?;
        let by_name: HashMap<&str, usize> = names.iter().enumerate().map(|(n, name)| (*name, n)).collect();
        (by_name.len() == names.len()).then_some(Self { text, entries, names, by_name })
    }

    pub(crate) fn contains(&self, id: &TaskId) -> bool {
        self.by_name.contains_key(id.as_str())
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// As written.
    pub(crate) fn name(&self, n: usize) -> Option<&'t str> {
        self.names.get(n).copied()
    }

    pub(crate) fn id(&self, n: usize) -> Option<TaskId> {
        self.name(n)?.parse().ok()
    }

    pub(crate) fn entries(&self) -> &[Range<usize>] {
        &self.entries
    }

    /// The lines of a task, without the empty ones after it.
    pub(crate) fn lines(&self, n: usize) -> &'t str {
        self.entries.get(n).map_or("", |entry| self.text[entry.clone()].trim_end())
    }

    /// The entries in which an ID is a word, besides its own.
    pub(crate) fn naming(&self, id: &TaskId) -> BTreeSet<usize> {
        let mut found = self.with_word(id.as_str());
        if let Some(own) = self.position(id.as_str()) {
            found.remove(&own);
        }
        found
    }

    /// The entries that may be claimed: in which the status is a word.
    pub(crate) fn claimed(&self) -> BTreeSet<usize> {
        self.with_word(Status::Claimed.name())
    }

    /// The entries of these tasks and of all their dependencies, transitively; `None` if one cannot be read.
    pub(crate) fn reached(&self, view: &StateView<'t>, from: Vec<TaskId>) -> Option<BTreeSet<usize>> {
        let mut reached = BTreeSet::new();
        let mut open = from;
        while let Some(id) = open.pop() {
            let Some(n) = self.position(id.as_str()) else { continue };
            if reached.insert(n) {
                open.extend(view.summary_at(&self.entries[n])?.depends_on);
            }
        }
        Some(reached)
    }

    fn with_word(&self, word: &str) -> BTreeSet<usize> {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return BTreeSet::new();
        };
        let bytes = &self.text.as_bytes()[first.start..last.end];
        let is_inner = |at: Option<usize>| {
            at.and_then(|at| bytes.get(at)).is_some_and(|b| b.is_ascii_alphanumeric() || b"-_".contains(b))
        };
        let whole = |at: &usize| !is_inner(at.checked_sub(1)) && !is_inner(Some(at + word.len()));
        let places = memchr::memmem::find_iter(bytes, word).filter(whole);
        let entry_at = |at: usize| self.entries.partition_point(|entry| entry.start <= first.start + at);
        places.filter_map(|at| entry_at(at).checked_sub(1)).collect()
    }
}
