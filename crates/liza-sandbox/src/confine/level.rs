//! The level of a session's confinement, in words for people.

use std::fmt;

use std::path::{Path, PathBuf};

use liza_host::durable;
use liza_ids::{AgentId, Network, SandboxMin, TaskId};
use serde::{Deserialize, Serialize};

use crate::sys::process::identity;

/// Follows the level of a session that reaches only its model.
const MODEL_ONLY: &str = ", network model-only";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    /// A room, and everything is refused that must be.
    Isolated,
    /// The same without a room, and the reason.
    Restricted(String),
    /// The gaps, in words.
    Unenforced(Vec<String>),
    /// As the settings want it.
    Off,
}

impl Level {
    /// `no_room` has the reason if there is no room.
    pub(crate) fn new(gaps: Vec<String>, no_room: Option<&str>) -> Self {
        match no_room {
            _ if !gaps.is_empty() => Self::Unenforced(gaps),
            Some(why) => Self::Restricted(why.to_owned()),
            None => Self::Isolated,
        }
    }

    /// The words of this level before there were rooms, for programs that know these.
    pub fn older_words(&self) -> String {
        match self {
            Self::Isolated | Self::Restricted(_) => "enforced".to_owned(),
            Self::Unenforced(gaps) => format!("partly: {}", gaps.join("; ")),
            Self::Off => "off".to_owned(),
        }
    }

    /// The level and the reachable network, in words.
    pub fn describe(&self, network: Network) -> String {
        match network {
            Network::Open => self.to_string(),
            Network::ModelOnly => format!("{self}{MODEL_ONLY}"),
        }
    }

    pub fn reaches(&self, minimum: SandboxMin) -> bool {
        match self {
            Self::Isolated => true,
            Self::Restricted(_) => minimum != SandboxMin::Isolated,
            Self::Unenforced(_) => minimum == SandboxMin::Unenforced,
            Self::Off => false,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isolated => f.write_str("isolated"),
            Self::Restricted(why) => write!(f, "restricted: no namespaces ({why})"),
            Self::Unenforced(gaps) => write!(f, "unenforced: {}", gaps.join("; ")),
            Self::Off => f.write_str("off"),
        }
    }
}

/// A program that runs confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confined<'a> {
    Session(AgentId),
    /// A person's shell on a task.
    Shell(&'a TaskId),
}

/// The facts about it that the process which started it found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSession {
    pub level: Level,
    pub network: Network,
    /// The agent program or the shell.
    pub process: u32,
    /// Its number may be another process's by now.
    #[serde(default)]
    pub identity: Option<String>,
}

impl RecordedSession {
    pub fn new(level: Level, network: Network, process: u32) -> Self {
        Self { level, network, process, identity: identity(process) }
    }
}

/// Keeps them for later queries.
pub fn record_session(folder: &Path, of: Confined<'_>, session: &RecordedSession) {
    // Without it, a line of the status is missing and no port is forwarded.
    let session = serde_json::to_vec(session).unwrap_or_default();
    let _ = durable::replace_private_file(&level_file(folder, of), &session);
}

pub fn recorded_session(folder: &Path, of: Confined<'_>) -> Option<RecordedSession> {
    serde_json::from_slice(&durable::read_file(&level_file(folder, of)).ok()?).ok()
}

/// Forgets one that has ended, unless another one has taken its place.
pub fn forget_session(folder: &Path, of: Confined<'_>, session: &RecordedSession) {
    if recorded_session(folder, of).as_ref() == Some(session) {
        let _ = durable::remove_if_present(&level_file(folder, of));
    }
}

fn level_file(folder: &Path, of: Confined<'_>) -> PathBuf {
    let name = match of {
        Confined::Session(agent) => format!("{agent}.confinement"),
        Confined::Shell(task) => format!("shell-{task}.confinement"),
    };
    folder.join("agent-locks").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-05, RO-08
    #[test]
    fn gaps_and_the_room_make_the_level_and_the_minimum_decides_what_starts() {
        let gaps = || vec!["signals reach processes outside".to_owned()];
        let levels = [
            Level::new(Vec::new(), None),
            Level::new(Vec::new(), Some("not permitted")),
            Level::new(gaps(), None),
            Level::Off,
        ];
        assert_eq!(levels[2], Level::new(gaps(), Some("not permitted")));
        let words = levels.each_ref().map(ToString::to_string);
        let gap = "signals reach processes outside";
        assert_eq!(words[..2], ["isolated", "restricted: no namespaces (not permitted)"]);
        assert_eq!(words[2..], [format!("unenforced: {gap}"), "off".to_owned()]);
        let older = levels.each_ref().map(Level::older_words);
        assert_eq!(older, ["enforced", "enforced", &format!("partly: {gap}"), "off"]);
        let reached = |minimum| levels.each_ref().map(|level| level.reaches(minimum));
        assert_eq!(reached(SandboxMin::Isolated), [true, false, false, false]);
        assert_eq!(reached(SandboxMin::Restricted), [true, true, false, false]);
        assert_eq!(reached(SandboxMin::Unenforced), [true, true, true, false]);
    }

    /// Covers: RO-08
    #[test]
    fn the_names_of_levels_before_rooms_are_still_read() {
        for (name, level) in [
            ("enforced", SandboxMin::Restricted),
            ("partly", SandboxMin::Unenforced),
            ("isolated", SandboxMin::Isolated),
            ("restricted", SandboxMin::Restricted),
            ("unenforced", SandboxMin::Unenforced),
        ] {
            assert_eq!(serde_json::from_str::<SandboxMin>(&format!("\"{name}\"")).unwrap(), level);
        }
    }
}
