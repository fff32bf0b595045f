//! A branch that the human's `finish` or `sync` moves, noted in `.liza` from before the first step until the
//! blackboard has it: the next command completes or takes back an interrupted move. Merges of tasks need no
//! note: the next merge or `recover` finds them on the branch.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::{Actor, Sha, TaskId};
use liza_core::protocol::{AcceptIntegration, Finish};
use liza_git::{Branch, InterruptedUpdate, PendingMerge, UpdateOutcome};
use liza_host::durable;
use liza_sandbox::sys::family::wait_for_orphaned_git;
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, EngineError, Exchange, FileLock};
use crate::project::Project;

use super::recovery_report::{FindingKind, RecoveryReport};

const FILE: &str = "move-intent.json";

/// The longest wait for a git process whose liza is gone.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MoveIntent {
    branch: String,
    old: Sha,
    new: Sha,
    command: MovingCommand,
}

/// The command that moves the branch, and its record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MovingCommand {
    Sync { detail: String },
    Finish { goal: String, head: Sha, detail: String },
}

impl MovingCommand {
    fn name(&self) -> &'static str {
        match self {
            Self::Sync { .. } => "sync",
            Self::Finish { .. } => "finish",
        }
    }
}

impl MoveIntent {
    pub(super) fn new(branch: &Branch, merge: &PendingMerge, command: MovingCommand) -> Self {
        let PendingMerge { old, new } = merge;
        Self { branch: branch.to_string(), old: old.clone(), new: new.clone(), command }
    }

    /// Notes the move durably. The caller holds the merge lock.
    pub(super) fn begin(&self, project: &Project) -> Result<(), EngineError> {
        let path = place(project.folder());
        let write = |text: Vec<u8>| {
            durable::replace_private_file(&path, &text)?;
            durable::sync_folder(project.folder())
        };
        let text = serde_json::to_vec(self).map_err(io::Error::from);
        text.and_then(write).map_err(EngineError::io("write", &path))
    }

    /// Removes the note: the blackboard has the move, or nothing has moved.
    pub(super) fn end(project: &Project) -> Result<(), EngineError> {
        let path = place(project.folder());
        durable::remove_if_present(&path).map_err(EngineError::io("remove", &path))
    }

    fn read(project: &Project) -> Option<Self> {
        serde_json::from_slice(&durable::read_file(&place(project.folder())).ok()?).ok()
    }
}

fn place(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Completes or takes back interrupted moves of branches: the files of checkouts, and the records of `finish`
/// and `sync`. Does nothing while another process moves a branch.
pub fn settle_moves(project: &Project) -> Result<RecoveryReport, EngineError> {
    let mut report = RecoveryReport::default();
    let repo = project.repo()?;
    if !repo.has_update_note() && !place(project.folder()).exists() {
        return Ok(report);
    }
    let Some(_merging) = FileLock::try_at(&FileLock::of_merges(project.folder()))? else { return Ok(report) };
    let Some(_following) = FileLock::try_at(&FileLock::of_branch(project.folder()))? else {
        return Ok(report);
    };
    wait_for_orphaned_git(repo.root(), ORPHAN_TIMEOUT);
    let intent = MoveIntent::read(project);
    if let Some(branch) = intent.as_ref().and_then(|intent| intent.branch.parse::<Branch>().ok()) {
        repo.clear_stale_locks(Some(repo.root()), &[&branch])?;
        repo.clear_stale_ref_locks()?;
    }
    for update in repo.repair_checkouts()? {
        report_update(&update, &mut report);
    }
    if let Some(intent) = intent {
        record(project, &intent, &mut report)?;
    }
    MoveIntent::end(project)?;
    Ok(report)
}

fn report_update(update: &InterruptedUpdate, report: &mut RecoveryReport) {
    let InterruptedUpdate { path, branch, outcome } = update;
    let path = path.display();
    match outcome {
        UpdateOutcome::Completed { kept } => {
            report.repaired(FindingKind::Checkout, &path, format!("behind {branch}"), "updated");
            if !kept.is_empty() {
                let files: Vec<_> = kept.iter().map(|file| file.to_string_lossy()).collect();
                let found = format!("differs from both the old and the new version in {}", files.join(", "));
                report.left(FindingKind::Checkout, &path, found, "kept as it is; look at git diff");
            }
        }
        UpdateOutcome::Void => {
            let found = format!("an update to {branch} was interrupted, and you have gone on from there");
            report.left(FindingKind::Checkout, &path, found, "kept as it is; look at git status");
        }
        UpdateOutcome::Waits(operation) => {
            let found = format!("an update to {branch} was interrupted, and a {operation} is in progress");
            report.left(FindingKind::Checkout, &path, found, "end it, then: liza recover");
        }
    }
}

/// Records a move that was made, as the human who began it would have.
fn record(project: &Project, intent: &MoveIntent, report: &mut RecoveryReport) -> Result<(), EngineError> {
    let MoveIntent { branch, old, new, command } = intent;
    let name = command.name();
    if !has_moved(project, intent)? {
        let done = format!("nothing has moved; run it again: liza {name}");
        report.repaired(FindingKind::Branch, branch, format!("a {name} was interrupted"), done);
        return Ok(());
    }
    let engine = Engine::new(project, Actor::Human);
    let state = project.state()?;
    let goal = state.board.goal()?;
    let is_missing = match command {
        MovingCommand::Sync { .. } => goal.integration_head.as_ref() == Some(old),
        MovingCommand::Finish { goal: id, head, .. } => {
            goal.id == *id && goal.taken.as_ref().is_none_or(|taken| taken.head != *head)
        }
    };
    if !is_missing {
        return Ok(());
    }
    match command.clone() {
        MovingCommand::Sync { detail } => {
            engine.execute(AcceptIntegration { head: new.clone(), detail, merged: Vec::new() })?;
        }
        MovingCommand::Finish { head, detail, .. } => {
            record_taken(&engine, Finish { head, detail })?;
        }
    }
    let found = format!("a {name} was interrupted after {branch} had moved to {}", new.short());
    report.repaired(FindingKind::Branch, branch, found, "recorded");
    Ok(())
}

/// Records the result as taken. Git keeps it, so that one commit that a host makes of it can still be explained.
pub fn record_taken(engine: &Engine<'_>, finish: Finish) -> Result<(), EngineError> {
    let goal = engine.project().state()?.board.goal()?.id.clone();
    // A name that a person wrote may be none for a reference.
    if goal.parse::<TaskId>().is_ok() {
        engine.repo()?.keep_finished(&goal, &finish.head)?;
    }
    engine.execute(finish)?;
    Ok(())
}

/// True if the branch has the new commit, here or, for the integration branch, on the remote.
fn has_moved(project: &Project, intent: &MoveIntent) -> Result<bool, EngineError> {
    let repo = project.repo()?;
    let exchange = match intent.command {
        MovingCommand::Sync { .. } => Exchange::of(project)?,
        MovingCommand::Finish { .. } => None,
    };
    let head = match exchange {
        Some(exchange) => Some(exchange.fetch_head()?),
        None => intent.branch.parse().ok().map(|branch: Branch| repo.tip(&branch)).transpose()?.flatten(),
    };
    match head {
        Some(head) => {
            Ok(head == intent.new
                || (repo.has_commit(&intent.new)? && repo.is_ancestor(&intent.new, &head)?))
        }
        None => Ok(false),
    }
}
