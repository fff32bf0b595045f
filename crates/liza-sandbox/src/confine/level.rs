//! The level of a session's confinement, in words for people.

use std::fmt;

use std::path::{Path, PathBuf};

use liza_host::durable;
use liza_ids::{AgentId, Network, SandboxMin};
use serde::{Deserialize, Serialize};

/// Follows the level of a session that reaches only its model.
const MODEL_ONLY: &str = ", network model-only";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    Enforced,
    /// The gaps, in words.
    Partly(Vec<String>),
    /// As the settings want it.
    Off,
}

impl Level {
    pub(crate) fn with_gaps(gaps: Vec<String>) -> Self {
        if gaps.is_empty() { Self::Enforced } else { Self::Partly(gaps) }
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
            Self::Enforced => true,
            Self::Partly(_) => minimum == SandboxMin::Partly,
            Self::Off => false,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforced => f.write_str("enforced"),
            Self::Partly(gaps) => write!(f, "partly: {}", gaps.join("; ")),
            Self::Off => f.write_str("off"),
        }
    }
}

/// Keeps the level of an agent's session for later queries.
pub fn record_level(folder: &Path, agent: AgentId, level: &Level, network: Network) {
    // Without it, only a line of the status is missing.
    let level = serde_json::to_vec(&(level, network)).unwrap_or_default();
    let _ = durable::replace_private_file(&level_file(folder, agent), &level);
}

pub fn recorded_level(folder: &Path, agent: AgentId) -> Option<(Level, Network)> {
    serde_json::from_slice(&durable::read_file(&level_file(folder, agent)).ok()?).ok()
}

fn level_file(folder: &Path, agent: AgentId) -> PathBuf {
    folder.join("agent-locks").join(format!("{agent}.confinement"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-05
    #[test]
    fn a_gap_makes_it_partly_and_the_minimum_decides_what_starts() {
        let partly = Level::with_gaps(vec!["signals reach processes outside".to_owned()]);
        assert_eq!(partly.to_string(), "partly: signals reach processes outside");
        assert_eq!(Level::with_gaps(Vec::new()), Level::Enforced);
        let reached =
            |minimum| [Level::Enforced, partly.clone(), Level::Off].map(|level| level.reaches(minimum));
        assert_eq!(reached(SandboxMin::Enforced), [true, false, false]);
        assert_eq!(reached(SandboxMin::Partly), [true, true, false]);
    }
}
