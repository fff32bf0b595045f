//! The merge that is running in this project: its lock names the task, its test writes a log. Only reads.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use liza_core::model::{AgentId, LogAction, TaskId};
use liza_status::alarms::RunningMerge;
use liza_store::{LogRecord, clock_difference};

use crate::engine::FileLock;
use crate::lifecycle::TEST_LOGS;
use crate::observe::activity::in_project_time;
use crate::project::Project;

/// The part of the log's end that is searched for agents that have left.
const TAIL: u64 = 16 * 1024;

pub fn running_merge(project: &Project) -> Option<RunningMerge> {
    let found = MergeFiles::read(project.folder())?;
    let since = in_project_time(found.since, clock_difference())?;
    let own = found.by.map(|by| by.to_string());
    let leaves = |entry: &LogRecord| {
        entry.timestamp >= since
            && entry.action == LogAction::Deregistered.name()
            && Some(&entry.agent) != own.as_ref()
    };
    let team_leaves = project.store().log_tail(TAIL).is_ok_and(|entries| entries.iter().any(leaves));
    let MergeFiles { task, by, is_testing, .. } = found;
    Some(RunningMerge { task, by, since, is_testing, team_leaves })
}

#[derive(Debug, PartialEq, Eq)]
struct MergeFiles {
    task: TaskId,
    by: Option<AgentId>,
    since: SystemTime,
    is_testing: bool,
}

impl MergeFiles {
    fn read(folder: &Path) -> Option<Self> {
        let path = FileLock::of_merges(folder);
        let note = FileLock::note_of_holder(&path)?;
        let mut words = note.split_whitespace();
        let task = words.next()?.parse().ok()?;
        let by = words.next().and_then(|by| by.parse().ok());
        let since = fs::metadata(&path).and_then(|meta| meta.modified()).ok()?;
        let logs = fs::read_dir(folder.join(TEST_LOGS)).into_iter().flatten().flatten();
        let mut written = logs.filter_map(|log| log.metadata().and_then(|meta| meta.modified()).ok());
        Some(Self { task, by, since, is_testing: written.any(|time| time >= since) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Covers: UI-03
    #[test]
    fn a_merge_is_known_by_its_lock_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = FileLock::of_merges(folder.path());
        assert_eq!(MergeFiles::read(folder.path()), None);
        fs::write(&path, "old coder-1").unwrap();
        assert_eq!(MergeFiles::read(folder.path()), None, "what a killed process has left");
        let lock = FileLock::at(&path, Duration::ZERO).unwrap();
        lock.note("t1 code-reviewer-1").unwrap();
        let found = MergeFiles::read(folder.path()).unwrap();
        assert_eq!((found.task.as_str(), found.by), ("t1", "code-reviewer-1".parse().ok()));
        assert!(!found.is_testing);
        fs::create_dir(folder.path().join(TEST_LOGS)).unwrap();
        let log = folder.path().join(TEST_LOGS).join("t1-1.log");
        fs::write(&log, "").unwrap();
        assert!(MergeFiles::read(folder.path()).unwrap().is_testing);
        let before = found.since - Duration::from_secs(60);
        fs::File::options().write(true).open(&log).unwrap().set_modified(before).unwrap();
        assert!(!MergeFiles::read(folder.path()).unwrap().is_testing, "the test of another merge");
        drop(lock);
        assert_eq!(MergeFiles::read(folder.path()), None);
    }
}
