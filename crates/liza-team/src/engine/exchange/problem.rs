//! Problems of the exchange, kept in a file of this machine for `status` and the watcher. The command that
//! fixes it is not in the file: a text there could be replaced. Losing the file loses a message, so errors of
//! the file system are ignored.

use std::path::{Path, PathBuf};

use liza_core::model::{Board, Seconds, Sha, Timestamp};
use liza_git::GitError;
use liza_host::durable;
use liza_status::alarms::RemoteProblem;
use liza_status::command_line::CommandLine;
use serde::{Deserialize, Serialize};

use crate::engine::error::{ANSWER_LOCAL_COMMITS, answer_no_branch, answer_rewound};
use crate::engine::{EngineError, integration_branch};
use crate::project::now;

const FILE: &str = "remote-problem.json";

/// The age at which a failed contact proves nothing any more. Working agents try again at most five minutes
/// apart; without one, nothing else would end the alert.
const FORGOTTEN: Seconds = Seconds(15 * 60);

/// The kind of a problem. Success disproves its kind and those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProblemKind {
    Unreachable,
    Branch,
    Refused,
}

/// The facts from which the command that fixes it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RemoteFault {
    Unreachable,
    Refused,
    /// The branch lacks merged work, which the blackboard names.
    Rewound {
        found: Sha,
    },
    /// The branch here has commits of its own.
    LocalCommits,
    NoBranch,
}

impl RemoteFault {
    /// `None` if the error is not about the remote.
    fn of(error: &EngineError) -> Option<Self> {
        match error {
            EngineError::Git(GitError::RemoteUnreachable { .. } | GitError::RemoteRefMissing { .. }) => {
                Some(Self::Unreachable)
            }
            EngineError::Git(GitError::RemoteRefused { .. }) => Some(Self::Refused),
            EngineError::RemoteRewound { found, .. } => Some(Self::Rewound { found: found.clone() }),
            EngineError::LocalCommits { .. } => Some(Self::LocalCommits),
            EngineError::NoRemoteBranch { .. } => Some(Self::NoBranch),
            EngineError::Git(_)
            | EngineError::Refused(_)
            | EngineError::Store(_)
            | EngineError::Setup(_)
            | EngineError::Holdout { .. }
            | EngineError::Branch(_)
            | EngineError::NoIntegrationBranch { .. }
            | EngineError::RemoteBusy { .. }
            | EngineError::NotTakenBack { .. }
            | EngineError::Locked { .. }
            | EngineError::Effect { .. }
            | EngineError::Io { .. } => None,
        }
    }

    fn kind(&self) -> ProblemKind {
        match self {
            Self::Unreachable => ProblemKind::Unreachable,
            Self::Rewound { .. } | Self::LocalCommits | Self::NoBranch => ProblemKind::Branch,
            Self::Refused => ProblemKind::Refused,
        }
    }

    /// The command with which the human finds out more, or answers it.
    fn command(&self, board: &Board) -> Option<CommandLine> {
        let (remote, branch) = (board.config.ready()?.remote.as_ref()?, integration_branch(board).ok()?);
        match self {
            Self::Unreachable | Self::Refused => Some(CommandLine::liza(["doctor"])),
            Self::Rewound { found } => {
                let recorded = board.goal.ready()?.integration_head.as_ref()?;
                Some(CommandLine::shell(answer_rewound(remote, &branch, (recorded, found))))
            }
            Self::LocalCommits => Some(CommandLine::shell(ANSWER_LOCAL_COMMITS)),
            Self::NoBranch => Some(CommandLine::shell(answer_no_branch(remote, &branch))),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct NotedProblem {
    fault: RemoteFault,
    since: Timestamp,
    last: Timestamp,
    message: String,
}

fn place(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn read(folder: &Path) -> Option<NotedProblem> {
    serde_json::from_slice(&durable::read_file(&place(folder)).ok()?).ok()
}

/// `None` if no problem is known, or no remote is set.
pub fn remote_problem(folder: &Path, board: &Board) -> Option<RemoteProblem> {
    let NotedProblem { fault, since, last, message } = read(folder)?;
    if fault == RemoteFault::Unreachable && now().since(last) > FORGOTTEN {
        return None;
    }
    let command = fault.command(board)?;
    Some(RemoteProblem { since, last, message, command })
}

/// Other errors are ignored.
pub(super) fn note(folder: &Path, error: &EngineError) {
    let Some(fault) = RemoteFault::of(error) else { return };
    let last = now();
    let old = read(folder).filter(|old| old.fault.kind() == fault.kind());
    let since = old.map_or(last, |old| old.since);
    write(folder, &NotedProblem { fault, since, last, message: error.to_string() });
}

fn write(folder: &Path, problem: &NotedProblem) {
    let Ok(text) = serde_json::to_vec(problem) else { return };
    let _ = durable::replace_private_file(&place(folder), &text);
}

/// Forgets a problem that a success has disproved.
pub(super) fn forget(folder: &Path, worked: ProblemKind) {
    // Checked first, so that nothing is parsed in normal times.
    if place(folder).exists() && read(folder).is_none_or(|old| old.fault.kind() <= worked) {
        let _ = durable::remove_if_present(&place(folder));
    }
}

pub fn failed_since(folder: &Path, time: Timestamp) -> bool {
    read(folder).is_some_and(|problem| problem.last >= time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use liza_core::model::{Config, Loaded};

    /// Covers: MM-07
    #[test]
    fn a_remote_that_no_one_has_tried_for_long_is_no_longer_reported_as_down() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { remote: Some("origin".to_owned()), ..Config::default() };
        let board = Board { config: Loaded::Ready(config), ..Board::default() };
        let noted = |fault: RemoteFault, age: u64| {
            let last = Timestamp::from_unix(now().unix() - i64::try_from(age).unwrap());
            write(folder.path(), &NotedProblem { fault, since: last, last, message: "no".to_owned() });
            remote_problem(folder.path(), &board).is_some()
        };
        assert!(noted(RemoteFault::Unreachable, 14 * 60));
        assert!(!noted(RemoteFault::Unreachable, 16 * 60));
        assert!(noted(RemoteFault::Refused, 16 * 60), "only a person ends it");
    }
}
