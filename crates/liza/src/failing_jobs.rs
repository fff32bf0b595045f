//! What agents' supervisors on this machine try again and again, in one file for each agent, for the screens.
//!
//! Only what every screen here may show: no rule depends on it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::model::AgentId;
use liza_core::watch::alarms::FailingJobs;
use liza_store::{durable, private};

/// The folder with one file for each agent.
const FOLDER: &str = "failing";

/// Writes what an agent fails at; without anything, the file goes.
pub(crate) fn record(folder: &Path, agent: AgentId, failing: &FailingJobs) {
    let path = file(folder, agent);
    let write = || {
        if failing.jobs.is_empty() {
            return fs::remove_file(&path);
        }
        path.parent().map_or(Ok(()), private::create_folder)?;
        durable::replace_private_file(&path, &serde_json::to_vec(failing)?)
    };
    // Without it, the log still has every failure.
    let _: io::Result<()> = write();
}

/// What agents here fail at.
pub(crate) fn failing_jobs(folder: &Path) -> BTreeMap<AgentId, FailingJobs> {
    let entries = fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
    let agents = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<AgentId>().ok());
    let read =
        |agent: AgentId| Some((agent, serde_json::from_slice(&fs::read(file(folder, agent)).ok()?).ok()?));
    agents.filter_map(read).collect()
}

fn file(folder: &Path, agent: AgentId) -> PathBuf {
    folder.join(FOLDER).join(agent.to_string())
}
