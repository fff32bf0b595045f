//! `config.setup` for the checks of reviews, which runs code under review: counts its failures for one
//! submission. As with an integration test, the task is to blame if it succeeds on the integration branch.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use liza_core::model::{Sha, TaskId};
use liza_host::{durable, private};
use liza_sandbox::confine::review_caches;
use liza_sandbox::sys::remove_tree::fresh_folder;
use liza_status::alarms::FailedReviewSetup;

use crate::engine::{Engine, EngineError, integration_branch};
use crate::project::Project;
use crate::session::checkout_setup::{CheckoutUse, SetupError, prepare, record, set_up};

/// The folder with one file for each task, below that of set-ups.
const FOLDER: &str = "setup/reviews";

pub(super) fn set_up_review(engine: &Engine<'_>, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
    let (project, board) = (engine.project(), engine.read(&[])?);
    let (repo, config) = (engine.repo()?, board.config()?);
    // The code of the commit runs in a copy; the checkout that the reviewer reads stays as it is.
    let checkout = match config.setup.is_some() || !config.copy.is_empty() {
        true => repo.create_prepared(task, commit, &integration_branch(&board)?)?,
        false => repo.review_path(task),
    };
    if read(project, task).is_some() {
        renew_caches(project, task, commit)?;
    }
    let done = prepare(project, config, (&checkout, None), CheckoutUse::Review(task, commit));
    match &done {
        // The commit may be to blame: its own record has the failure, and no other.
        Err(error @ (SetupError::Failed { .. } | SetupError::ChangedSettings { .. })) => {
            count(project, task, commit, error);
        }
        Err(SetupError::Copy { .. } | SetupError::Io { .. } | SetupError::Git(_)) => record(project, &done),
        Ok(()) => {
            record(project, &done);
            drop(durable::remove_if_present(&file(project, task)));
        }
    }
    Ok(done?)
}

/// Empties the caches of the review, which the code of the task may have spoilt.
fn renew_caches(project: &Project, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
    let caches = review_caches(project.folder(), task, commit);
    let action = "empty";
    fresh_folder(&caches).map_err(|source| SetupError::Io { action, path: caches, source }.into())
}

fn count(project: &Project, task: &TaskId, commit: &Sha, error: &SetupError) {
    let before =
        read(project, task).filter(|before| before.commit == *commit).map_or(0, |before| before.count);
    let message = error.to_string();
    let failed = FailedReviewSetup { commit: commit.clone(), count: before.saturating_add(1), message };
    let write = || {
        let path = file(project, task);
        path.parent().map_or(Ok(()), private::create_folder)?;
        durable::replace_private_file(&path, &serde_json::to_vec(&failed)?)
    };
    // Without it, the review is tried again as before.
    let _: std::io::Result<()> = write();
}

/// The reason why the submitted commit cannot be reviewed, if its set-up has failed often enough and succeeds
/// on the integration branch.
pub(super) fn fault_of_task(
    engine: &Engine<'_>,
    task: &TaskId,
    commit: &Sha,
) -> Result<Option<String>, EngineError> {
    let (project, repo) = (engine.project(), engine.repo()?);
    let is_due = |failed: &FailedReviewSetup| {
        failed.commit == *commit && failed.count > 0 && failed.count.is_multiple_of(FailedReviewSetup::LIMIT)
    };
    let Some(failed) = read(project, task).filter(is_due) else { return Ok(None) };
    let board = engine.read(&[])?;
    let Some(head) = repo.tip(&integration_branch(&board)?)? else { return Ok(None) };
    let copy = repo.scratch_checkout(&head)?;
    renew_caches(project, task, commit)?;
    let without_it = set_up(project, board.config()?, copy.path(), CheckoutUse::Review(task, commit));
    Ok(without_it.is_ok().then_some(failed.message))
}

pub fn failed_review_setups(project: &Project) -> BTreeMap<TaskId, FailedReviewSetup> {
    let entries = fs::read_dir(project.folder().join(FOLDER)).into_iter().flatten().flatten();
    let tasks = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<TaskId>().ok());
    tasks.filter_map(|task| Some((task.clone(), read(project, &task)?))).collect()
}

/// Puts reviews that could not be set up behind the others: each try may take as long as a set-up may.
pub fn order_reviews(project: &Project, mut tasks: Vec<TaskId>) -> Vec<TaskId> {
    if tasks.len() > 1 {
        let failed = failed_review_setups(project);
        tasks.sort_by_key(|task| failed.get(task).map_or(0, |failed| failed.count));
    }
    tasks
}

fn read(project: &Project, task: &TaskId) -> Option<FailedReviewSetup> {
    serde_json::from_slice(&durable::read_file(&file(project, task)).ok()?).ok()
}

fn file(project: &Project, task: &TaskId) -> PathBuf {
    project.folder().join(FOLDER).join(task.as_str())
}
