//! Jobs that supervisors on this machine repeat after failures, in one file each, for the screens, also when
//! the team has ended. No rule depends on it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::model::State;
use liza_core::supervise::{WorkKind, WorkSubject};
use liza_host::{durable, private};
use liza_status::alarms::{FailingJob, is_open};

const FOLDER: &str = "failing";

pub fn record(folder: &Path, subject: &WorkSubject, job: &FailingJob) {
    let path = file(folder, job.kind, subject);
    let write = || {
        path.parent().map_or(Ok(()), private::create_folder)?;
        durable::replace_private_file(&path, &serde_json::to_vec(job)?)
    };
    // Without it, the log still has every failure.
    let _: io::Result<()> = write();
}

pub fn forget(folder: &Path, kind: WorkKind, subject: &WorkSubject) {
    let _ = durable::remove_if_present(&file(folder, kind, subject));
}

/// Forgets jobs that are done, and those about an agent of an earlier team.
pub(crate) fn forget_earlier(folder: &Path, state: &State) {
    for path in files(folder) {
        let is_left = read(&path).is_some_and(|job| job.task.is_some() && is_open(state, &job));
        if !is_left {
            let _ = durable::remove_if_present(&path);
        }
    }
}

pub fn failing_jobs(folder: &Path) -> Vec<FailingJob> {
    files(folder).iter().filter_map(|path| read(path)).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn read(path: &Path) -> Option<FailingJob> {
    serde_json::from_slice(&durable::read_file(path).ok()?).ok()
}

fn file(folder: &Path, kind: WorkKind, subject: &WorkSubject) -> PathBuf {
    let kind: &str = kind.into();
    // No name of a task contains `@`.
    let name = match subject {
        WorkSubject::Task(task) => format!("{kind}-{task}"),
        WorkSubject::Agent(agent) => format!("{kind}@{agent}"),
    };
    folder.join(FOLDER).join(name)
}
