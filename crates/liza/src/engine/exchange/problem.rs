//! Why work cannot be exchanged now, kept in a file of this machine for `status` and the watcher.
//!
//! Losing the file loses a message, so errors of the file system are ignored.

use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::Timestamp;
use liza_core::watch::alarms::RemoteProblem;
use liza_store::durable;
use serde::{Deserialize, Serialize};

use crate::engine::EngineError;
use crate::git::GitError;
use crate::project::now;

/// The file, below `.liza`.
const FILE: &str = "remote-problem.json";

/// What kind of problem. What works disproves the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProblemKind {
    /// The remote does not answer.
    Unreachable,
    /// Its integration branch is not where it has to be.
    Branch,
    /// It refuses pushes.
    Refused,
}

/// A problem, as the file has it.
#[derive(Debug, Serialize, Deserialize)]
struct NotedProblem {
    kind: ProblemKind,
    #[serde(flatten)]
    problem: RemoteProblem,
}

fn place(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn read(folder: &Path) -> Option<NotedProblem> {
    serde_json::from_slice(&fs::read(place(folder)).ok()?).ok()
}

/// Why work cannot be exchanged now; `None` if nothing is known to be wrong.
pub(crate) fn remote_problem(folder: &Path) -> Option<RemoteProblem> {
    read(folder).map(|noted| noted.problem)
}

/// Notes an error of the remote; others are not about it.
pub(super) fn note(folder: &Path, error: &EngineError) {
    let Some((kind, command)) = kind_of(error) else { return };
    let now = now();
    let since = read(folder).filter(|old| old.kind == kind).map_or(now, |old| old.problem.since);
    write(
        folder,
        &NotedProblem {
            kind,
            problem: RemoteProblem { since, last: now, message: error.to_string(), command },
        },
    );
}

fn write(folder: &Path, problem: &NotedProblem) {
    let Ok(text) = serde_json::to_vec(problem) else { return };
    let _ = durable::replace_private_file(&place(folder), &text);
}

/// Forgets a problem that something which worked has disproved.
pub(super) fn forget(folder: &Path, worked: ProblemKind) {
    // Asked first, so that nothing is parsed in normal times.
    if place(folder).exists() && read(folder).is_none_or(|old| old.kind <= worked) {
        let _ = fs::remove_file(place(folder));
    }
}

/// Whether the remote failed at or after that time.
pub(crate) fn failed_since(folder: &Path, time: Timestamp) -> bool {
    remote_problem(folder).is_some_and(|problem| problem.last >= time)
}

fn kind_of(error: &EngineError) -> Option<(ProblemKind, String)> {
    let doctor = || "liza doctor".to_owned();
    if let EngineError::Git(GitError::RemoteUnreachable { .. } | GitError::RemoteRefMissing { .. }) = error {
        return Some((ProblemKind::Unreachable, doctor()));
    }
    if let EngineError::Git(GitError::RemoteRefused { .. }) = error {
        return Some((ProblemKind::Refused, doctor()));
    }
    error.branch_answer().map(|command| (ProblemKind::Branch, command))
}
