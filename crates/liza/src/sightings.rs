//! What an observer sees beside the tasks: stop files, progress in the log, violations, stale saves.
//!
//! Gathers; what is an alarm is decided in `liza-core`.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use liza_core::alarm::Sightings;
use liza_core::board::State;
use liza_core::by_files::Standing;
use liza_core::effect::HaltFile;
use liza_core::invariants;
use liza_core::time::Timestamp;
use liza_store::{DiskFacts, LogRecord};

use crate::project::Project;

/// How much of the log's end is looked at first for the last progress.
const TAIL: u64 = 64 * 1024;

/// Everything that is to be seen beside the tasks.
pub fn sightings(project: &Project, state: &State, now: Timestamp) -> Sightings {
    let files = standing(project);
    Sightings {
        pause_since: files.pause,
        checkpoint_since: files.checkpoint,
        abort_since: files.abort,
        last_progress: last_progress(project),
        violations: invariants::validate(state, &DiskFacts::new(project.root()), now),
        unreadable: None,
        stale_edits: stale_edits(project.folder()),
    }
}

/// What is to be seen where the blackboard cannot be read, and why it cannot.
pub fn sightings_without_board(project: &Project, why: String) -> Sightings {
    let files = standing(project);
    Sightings {
        pause_since: files.pause,
        checkpoint_since: files.checkpoint,
        abort_since: files.abort,
        unreadable: Some(why),
        stale_edits: stale_edits(project.folder()),
        ..Sightings::default()
    }
}

/// Since when each stop file stands.
pub fn standing(project: &Project) -> Standing {
    let since = |file: HaltFile| standing_since(&project.folder().join(file.name()));
    Standing {
        pause: since(HaltFile::Pause),
        checkpoint: since(HaltFile::Checkpoint),
        abort: since(HaltFile::Abort),
    }
}

/// Since when a stop file stands: its first line says so; a bare `touch` is dated by the file itself.
pub fn standing_since(path: &Path) -> Option<Timestamp> {
    let meta = fs::metadata(path).ok()?;
    let text = fs::read_to_string(path).unwrap_or_default();
    let said = text.lines().next().and_then(|line| line.trim().parse().ok());
    let dated = || {
        let age = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Timestamp::from_unix(i64::try_from(age.as_secs()).ok()?))
    };
    said.or_else(dated).or(Some(Timestamp::from_unix(0)))
}

/// When a task, the sprint or a note last changed. That agents come and go is no progress.
fn last_progress(project: &Project) -> Option<Timestamp> {
    let counts = |entry: &&LogRecord| {
        !matches!(entry.action.as_str(), "registered" | "deregistered" | "claim_failed" | "recovered")
    };
    let length = fs::metadata(project.folder().join("log.yaml")).map_or(0, |meta| meta.len());
    let mut tail = TAIL;
    loop {
        let entries = project.store().log_tail(tail).ok()?;
        let found = entries.iter().rev().find(counts).map(|entry| entry.timestamp);
        // Agents that come and go all night can fill more than one tail.
        if found.is_some() || tail >= length {
            return found;
        }
        tail = tail.saturating_mul(8);
    }
}

/// Versions that people saved over a newer one, kept beside it.
fn stale_edits(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut stale: Vec<String> = names
        .filter(|name| name.starts_with("state.yaml.stale-"))
        .map(|name| format!(".liza/{name}"))
        .collect();
    stale.sort();
    stale
}
