//! The log entries of the store: their text, and those that it adds itself.

use liza_core::model::{LogEntry, Revision, Timestamp};

use super::FileStore;
use crate::error::StoreError;
use crate::file::{LockedFolder, Notice};
use crate::log::entry_text;

impl FileStore {
    /// Keeps a copy of a version whose comments and form the write loses, and logs that.
    pub(crate) fn keep_before_rewrite(
        &self,
        locked: &LockedFolder,
        bytes: &[u8],
        now: Timestamp,
        revision: Revision,
        log: &mut Option<String>,
    ) -> Result<Notice, StoreError> {
        let notice = Notice::Rewritten { kept: locked.keep_before_rewrite(bytes)? };
        let entry = LogEntry {
            timestamp: now,
            agent: "liza".to_owned(),
            action: "rewritten".to_owned(),
            task: None,
            detail: notice.to_string(),
        };
        let text = self.log_text(&entry, revision)?;
        *log = Some(log.take().map_or_else(|| text.clone(), |first| format!("{first}\n\n{text}")));
        Ok(notice)
    }

    /// The text of several entries of one write.
    pub(crate) fn log_texts<'e>(
        &self,
        entries: impl IntoIterator<Item = &'e LogEntry>,
        revision: Revision,
    ) -> Result<Option<String>, StoreError> {
        let texts = entries.into_iter().map(|entry| self.log_text(entry, revision));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
    }

    pub(crate) fn log_text(&self, entry: &LogEntry, revision: Revision) -> Result<String, StoreError> {
        entry_text(entry, revision).map_err(|error| self.not_encoded(error))
    }
}
