//! Errors of providers. They say what happened; the command line adds what to do.

use liza_core::rules::misspelled::meant;

#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("unknown agent program {name:?}{}; known programs: {}", suggestion(name, known), known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("config.{place}: {problem}")]
    Config { place: String, problem: String },
    #[error("agent program {name:?} needs the program {program}, which is not on PATH")]
    Missing { name: String, program: String, install: String },
    /// There is a budget in dollars, but the cost of its sessions is unknown.
    #[error("{name} does not report what its sessions cost, so a budget in dollars cannot be kept")]
    NoPrice { name: String, model: Option<String> },
    #[error("agent program {name:?} has no interactive mode")]
    NotInteractive { name: String },
}

fn suggestion(name: &str, known: &[String]) -> String {
    let meant = meant(name, known.iter().map(String::as_str));
    meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
}
