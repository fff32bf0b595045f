//! A whole blackboard in one file: its state, log and archive, to move it to another store or to keep it.

use std::collections::BTreeMap;

use liza_core::model::{LogEntry, Revision, Timestamp};
use serde::{Deserialize, Serialize};

use super::Store;
use crate::backend::log_entry_text;
use crate::call::Edited;
use crate::error::StoreError;
use crate::log::LogRecord;
use crate::yaml::{self, YamlError, to_value};

const FORMAT: u32 = 1;

/// Every part has the text of its file in `.liza/`, comments included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Export {
    liza_export: u32,
    state: String,
    #[serde(default)]
    log: String,
    /// The files of `archive/`, by name.
    #[serde(default)]
    archive: BTreeMap<String, String>,
}

impl Export {
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        let export: Self = yaml::read(text)?;
        if export.liza_export > FORMAT {
            let message = format!(
                "the file has export format {}; this program supports {FORMAT}: update liza",
                export.liza_export
            );
            return Err(YamlError::new(message));
        }
        if let Some(name) = export.archive.keys().find(|name| !is_file_name(name)) {
            return Err(YamlError::new(format!("archive: {name:?} is not the name of an archived task")));
        }
        Ok(export)
    }

    pub fn text(&self) -> Result<String, YamlError> {
        let value = to_value(self)?;
        let document = value.as_map().map(yaml::document).unwrap_or_default();
        Ok(format!(
            "# A whole blackboard of Liza. To use it in an empty project: liza import FILE\n{document}"
        ))
    }

    pub fn archived(&self) -> usize {
        self.archive.len()
    }
}

fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 200 && name.chars().all(is_plain)
}

impl Store {
    pub fn export(&self) -> Result<Export, StoreError> {
        // The state first: a task that is archived meanwhile is then in both, not in neither.
        let state = self.text()?;
        let (log, archive) = (self.backend.whole_log()?, self.backend.archive()?);
        Ok(Export { liza_export: FORMAT, state, log, archive })
    }

    /// Adds entries of another log behind those that are there.
    pub fn add_to_log(&self, records: &[LogRecord]) -> Result<(), StoreError> {
        let text = |record: &LogRecord| {
            log_entry_text(&self.state_file(), &record.to_entry(), Revision(record.revision.unwrap_or(0)))
        };
        let texts: Vec<String> = records.iter().map(text).collect::<Result<_, _>>()?;
        self.backend.add_earlier(&texts.concat(), &BTreeMap::new())
    }

    /// Fills this blackboard, which must be empty, as it was exported, with any faults. After a failure or a
    /// kill it can be filled again.
    pub fn import(&self, export: &Export, log: &LogEntry, now: Timestamp) -> Result<Edited, StoreError> {
        let board = self.snapshot()?.board;
        if !board.tasks.is_empty() || !board.archived.is_empty() {
            return Err(StoreError::NotEmpty { path: self.state_file() });
        }
        // The state comes last: it makes the blackboard full.
        self.backend.add_earlier(&export.log, &export.archive)?;
        self.begin_edit()?.accepting_violations().replace(&export.state, log, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: MM-09
    #[test]
    fn an_export_reads_back_and_a_wrong_one_says_what_is_wrong() {
        let archive = BTreeMap::from([("old-1".to_owned(), "id: old-1\n# kept\n".to_owned())]);
        let state = "version: 1 # mine\ntasks: []\n".to_owned();
        let export = Export { liza_export: FORMAT, state, log: "- a: b\n".to_owned(), archive };
        assert_eq!(Export::parse(&export.text().unwrap()).unwrap(), export);
        let wrong = |text: &str| Export::parse(text).unwrap_err().to_string();
        assert!(wrong("version: 1\n").contains("version"), "{}", wrong("version: 1\n"));
        assert!(
            wrong("liza_export: 2\nstate: ''\n")
                .contains("export format 2; this program supports 1: update liza")
        );
        let outside = "liza_export: 1\nstate: ''\narchive: {../x: ''}\n";
        assert!(wrong(outside).contains("not the name of an archived task"));
    }
}
