//! The files by which a person stops every agent: `.liza/PAUSE`, `.liza/CHECKPOINT` and `.liza/ABORT`.

use liza_ids::Timestamp;
use serde::Serialize;
use strum::IntoStaticStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum StopFile {
    /// Nothing new starts; running sessions end.
    Pause,
    /// The same, until a person has reviewed the sprint.
    Checkpoint,
    /// Goal and sprint end for good.
    Abort,
}

impl StopFile {
    /// All of them, the strongest first.
    pub const ALL: [StopFile; 3] = [StopFile::Abort, StopFile::Checkpoint, StopFile::Pause];

    /// The name of the file in `.liza/`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StopFiles {
    pub pause: bool,
    pub checkpoint: bool,
    pub abort: bool,
}

impl StopFiles {
    pub fn contains(self, file: StopFile) -> bool {
        match file {
            StopFile::Pause => self.pause,
            StopFile::Checkpoint => self.checkpoint,
            StopFile::Abort => self.abort,
        }
    }

    /// The file that decides where several are present: ABORT over CHECKPOINT over PAUSE.
    pub fn strongest(self) -> Option<StopFile> {
        StopFile::ALL.into_iter().find(|file| self.contains(*file))
    }
}

/// The time since which each stop file has been present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StopFileTimes {
    pub pause: Option<Timestamp>,
    pub checkpoint: Option<Timestamp>,
    pub abort: Option<Timestamp>,
}

impl StopFileTimes {
    pub fn since(&self, file: StopFile) -> Option<Timestamp> {
        match file {
            StopFile::Pause => self.pause,
            StopFile::Checkpoint => self.checkpoint,
            StopFile::Abort => self.abort,
        }
    }

    /// True if nothing new starts until `liza resume`.
    pub fn is_paused(&self) -> bool {
        self.abort.is_none() && (self.pause.is_some() || self.checkpoint.is_some())
    }
}
