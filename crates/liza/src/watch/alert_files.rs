//! The watcher's own files in `.liza`: alerts.log, which only grows, and alerts.state.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use liza_core::model::Timestamp;
use liza_core::watch::alarms::Episodes;
use liza_store::durable::replace_file;
use serde::{Deserialize, Serialize};

/// When alerts.log moves to the archive: some ten thousand alerts.
const LOG_MAX: u64 = 1024 * 1024;

/// Moves a file to the archive, under its own name and that time.
pub(super) fn archive(path: &Path, when: Timestamp) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(".")).join("archive");
    fs::create_dir_all(&folder)?;
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

/// `alerts.log`: one line per alert, never rewritten.
#[derive(Debug)]
pub(super) struct AlertLog {
    path: PathBuf,
}

impl AlertLog {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("alerts.log") }
    }

    /// Appends a line. A full log goes to the archive first; nothing is lost.
    pub(super) fn append(&self, now: Timestamp, line: &str) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|meta| meta.len() >= LOG_MAX) {
            archive(&self.path, now)?;
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        // One call, so that lines of several writers do not mix.
        file.write_all(format!("{now} {line}\n").as_bytes())
    }
}

/// The alarms that are true and have been reported, as `alerts.state` has them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SavedEpisodes {
    version: u32,
    told: BTreeSet<String>,
}

/// `alerts.state`: what a new watcher does not report again.
#[derive(Debug)]
pub(super) struct ReportedAlerts {
    path: PathBuf,
    saved: Episodes,
}

impl ReportedAlerts {
    /// Reads it. A file that cannot be read counts as empty; why is returned.
    pub(super) fn open(folder: &Path) -> (Self, Option<String>) {
        let path = folder.join("alerts.state");
        let read = || -> Result<BTreeSet<String>, String> {
            match fs::read_to_string(&path) {
                Ok(text) => serde_json::from_str::<SavedEpisodes>(&text)
                    .map(|kept| kept.told)
                    .map_err(|error| error.to_string()),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
                Err(error) => Err(error.to_string()),
            }
        };
        let (told, problem) = match read() {
            Ok(told) => (told, None),
            Err(why) => {
                let problem = format!("alerts.state could not be read, so alerts are repeated once: {why}");
                (BTreeSet::new(), Some(problem))
            }
        };
        (Self { path, saved: Episodes(told) }, problem)
    }

    /// What had been reported and was still true.
    pub(super) fn episodes(&self) -> Episodes {
        self.saved.clone()
    }

    /// Saves what is true now, if that has changed.
    pub(super) fn save(&mut self, episodes: &Episodes) -> io::Result<()> {
        if self.saved == *episodes && self.path.exists() {
            return Ok(());
        }
        let kept = SavedEpisodes { version: 1, told: episodes.0.clone() };
        let text = serde_json::to_string_pretty(&kept)?;
        replace_file(&self.path, format!("{text}\n").as_bytes())?;
        self.saved = episodes.clone();
        Ok(())
    }
}
