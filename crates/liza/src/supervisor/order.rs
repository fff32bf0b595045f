//! What a supervisor and its session helper say to each other: one order, then words and reports, a line each.
//!
//! Both ends are the same program, so this is no public format.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::providers::usage::{EventFormat, SessionUsage};

/// What the helper is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// The agent program.
    pub(super) program: PathBuf,
    /// Its arguments; never the prompt.
    pub(super) arguments: Vec<String>,
    /// Where it runs.
    pub(super) directory: PathBuf,
    /// What it finds in its environment, beside what the supervisor had.
    pub(super) environment: Vec<(String, String)>,
    /// What it reads on standard input; the supervisor's terminal in an interactive session.
    pub(super) input: Option<PathBuf>,
    /// Where its output goes; the supervisor's terminal in an interactive session.
    pub(super) output: Option<PathBuf>,
    /// Its own folder for temporary files, made before and removed afterwards.
    pub(super) scratch: PathBuf,
    /// Held until nothing of the session is left: two sessions of one agent never overlap.
    pub(super) turn: PathBuf,
    /// The format of the events in its output.
    pub(super) events: EventFormat,
}

/// What a supervisor tells its helper while the session runs. That the pipe is closed says: end everything now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// Ask every process to end.
    Terminate,
    /// End every process.
    Kill,
}

/// What a helper reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The agent runs.
    Started {
        /// Its process.
        pid: u32,
    },
    /// What it has used so far.
    Used(SessionUsage),
    /// It writes more than is kept; the rest is counted and dropped.
    Flooded {
        /// How many bytes are kept.
        kept: u64,
    },
    /// It has ended, and nothing of it is left.
    Ended {
        /// Its exit code, where it ended by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// How many bytes of its output were not kept.
        dropped: u64,
    },
    /// It could not be started.
    Failed {
        /// Why.
        message: String,
    },
}
