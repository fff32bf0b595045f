//! The watcher's own files in `.liza`: alerts.log, which is append-only, and alerts.state.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use liza_core::model::Timestamp;
use liza_host::durable::{self, Open, replace_private_file};
use liza_host::private;
use liza_status::alarms::Episodes;
use serde::{Deserialize, Serialize};

/// The size at which alerts.log moves to the archive: about ten thousand alerts.
const LOG_MAX: u64 = 1024 * 1024;

/// Moves a file to the archive and adds the time to its name.
pub(super) fn archive(path: &Path, when: Timestamp) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(".")).join("archive");
    private::create_folder(&folder)?;
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, end) = (part(path.file_stem()), part(path.extension()));
    let stamp = when.to_string().replace(':', "");
    let name = |n: u32| match n {
        0 => format!("{stem}-{stamp}.{end}"),
        n => format!("{stem}-{stamp}-{n}.{end}"),
    };
    let free = (0..1000).map(|n| folder.join(name(n))).find(|path| !path.exists());
    fs::rename(path, free.ok_or(ErrorKind::AlreadyExists)?)
}

/// One line per alert, never rewritten.
#[derive(Debug)]
pub(super) struct AlertLog {
    path: PathBuf,
}

impl AlertLog {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("alerts.log") }
    }

    /// Appends a line. A full log moves to the archive first.
    pub(super) fn append(&self, now: Timestamp, line: &str) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|meta| meta.len() >= LOG_MAX) {
            archive(&self.path, now)?;
        }
        let mut file = durable::open(Open::Append, &self.path)?;
        // One call, so that lines of several writers do not mix.
        file.write_all(format!("{now} {line}\n").as_bytes())
    }
}

/// The content of `alerts.state`: the active alarms that have been reported.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SavedEpisodes {
    version: u32,
    #[serde(rename = "told")]
    reported: BTreeSet<String>,
}

/// `alerts.state`: alarms that a new watcher does not report again.
#[derive(Debug)]
pub(super) struct ReportedAlerts {
    path: PathBuf,
    saved: Episodes,
}

impl ReportedAlerts {
    /// An unreadable file counts as empty; the reason is returned.
    pub(super) fn open(folder: &Path) -> (Self, Option<String>) {
        let path = folder.join("alerts.state");
        let read = || -> Result<BTreeSet<String>, String> {
            match durable::read_text(&path) {
                Ok(text) => serde_json::from_str::<SavedEpisodes>(&text)
                    .map(|saved| saved.reported)
                    .map_err(|error| error.to_string()),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
                Err(error) => Err(error.to_string()),
            }
        };
        let (reported, problem) = match read() {
            Ok(reported) => (reported, None),
            Err(why) => {
                let problem = format!("cannot read .liza/alerts.state, so alerts are repeated once: {why}");
                (BTreeSet::new(), Some(problem))
            }
        };
        (Self { path, saved: Episodes(reported) }, problem)
    }

    /// The alarms that were reported and still active when the last watcher ended.
    pub(super) fn episodes(&self) -> Episodes {
        self.saved.clone()
    }

    /// Saves the active alarms, if they have changed.
    pub(super) fn save(&mut self, episodes: &Episodes) -> io::Result<()> {
        if self.saved == *episodes && self.path.exists() {
            return Ok(());
        }
        let saved = SavedEpisodes { version: 1, reported: episodes.0.clone() };
        let text = serde_json::to_string_pretty(&saved)?;
        replace_private_file(&self.path, format!("{text}\n").as_bytes())?;
        self.saved = episodes.clone();
        Ok(())
    }
}
