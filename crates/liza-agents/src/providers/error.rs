//! Why a provider cannot be used.
//!
//! Says what happened; the command line adds what to do.

use liza_core::rules::misspelled::meant;

/// Why a provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// There is no provider of that name.
    #[error("unknown agent program {name:?}{}; known programs: {}", suggestion(name, known), known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    /// The config has a wrong entry for it.
    #[error("config.{place}: {problem}")]
    Config {
        /// The place in the config.
        place: String,
        problem: String,
    },
    /// The program is not installed.
    #[error("agent program {name:?} needs the program {program}, which is not on PATH")]
    Missing { name: String, program: String, install: String },
    /// There is a budget in dollars, and what its sessions cost is not known.
    #[error("{name} does not report what its sessions cost, so a budget in dollars cannot be kept")]
    NoPrice {
        name: String,
        /// Its model, if one was chosen.
        model: Option<String>,
    },
    /// It cannot run an interactive session.
    #[error("agent program {name:?} has no interactive mode")]
    NotInteractive { name: String },
}

fn suggestion(name: &str, known: &[String]) -> String {
    let meant = meant(name, known.iter().map(String::as_str));
    meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
}
