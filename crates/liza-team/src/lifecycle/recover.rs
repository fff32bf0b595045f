//! recover: repairs the damage of a crash, in git and on the blackboard, and reports it. Safe while agents
//! work: must not touch the work of a live process, nor delete unsaved work. A second run finds nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use liza_core::model::{Actor, Board, Generation, Refusal, Reservation, Role, Sha, Status, TaskBody, TaskId};
use liza_core::protocol::{Deregister, DropReservation, Recover};
use liza_core::text::count;
use liza_git::{Branch, FolderState, Rescue, TaskArtifacts, WorktreeMode};
use liza_sandbox::confine::remove_check_caches;
use liza_sandbox::sys::family::{kill_orphans, wait_for_orphaned_git};

use crate::engine::{
    Discarded, Engine, EngineError, Exchange, FileLock, LivenessLock, LockAttempt, discard_locked,
    integration_branch, is_needed, try_lock_task,
};
use crate::project::machine::{runs_here, works_here};
use crate::project::now;

use super::lost_merge::{lost_merges, merged_commits};
use super::move_intent::settle_moves;
use super::recover_remote::{follow_remote, repair_remote};
use super::recovery_report::{FindingKind, RecoveryReport};
use super::take_work::{generation_of, take_new_commits};
use super::wt_merge::record_found_merge;

/// The longest wait for a git process whose liza is gone.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

pub fn recover(engine: &Engine<'_>) -> Result<RecoveryReport, EngineError> {
    engine.execute(Recover { repaired: Vec::new() })?;
    let mut recovery = Recovery { engine, report: RecoveryReport::default() };
    recovery.run()?;
    let report = recovery.report;
    engine.execute(Recover { repaired: report.repaired.iter().map(ToString::to_string).collect() })?;
    Ok(report)
}

struct Recovery<'e, 'p> {
    engine: &'e Engine<'p>,
    report: RecoveryReport,
}

impl Recovery<'_, '_> {
    fn run(&mut self) -> Result<(), EngineError> {
        for notice in self.engine.project().store().recover()? {
            self.report.repaired(FindingKind::Blackboard, "state.yaml", notice, "repaired");
        }
        self.end_orphans()?;
        let integration = integration_branch(&self.engine.read(&[])?)?;
        self.clear_git_locks(&integration)?;
        for path in self.engine.repo()?.remove_leftovers() {
            let (subject, found) = (self.short(&path), "left behind by a dead process");
            self.report.repaired(FindingKind::Leftover, subject, found, "deleted");
        }
        self.settle_moves();
        let exchange = Exchange::of(self.engine.project())?;
        match &exchange {
            Some(exchange) => {
                follow_remote(self.engine, exchange, self.may_record_merges(), &mut self.report)?;
            }
            None => self.restore_branch(&integration)?,
        }
        self.drop_reservations()?;
        self.deregister_dead()?;
        self.record_merges()?;
        self.keep_merges()?;
        self.repair_worktrees(&integration)?;
        self.remove_reviews()?;
        if let Some(exchange) = &exchange {
            repair_remote(self.engine, exchange, &mut self.report)?;
        }
        self.remove_free_locks()
    }

    fn may_record_merges(&self) -> bool {
        self.engine.actor().agent().is_none_or(|agent| agent.role() == Role::CodeReviewer)
    }

    fn short(&self, path: &Path) -> String {
        path.strip_prefix(self.engine.project().root()).unwrap_or(path).display().to_string()
    }

    /// Kills or waits for processes whose liza is gone, so that nothing changes during the repair.
    fn end_orphans(&mut self) -> Result<(), EngineError> {
        let root = self.engine.repo()?.root();
        let killed = kill_orphans(root);
        if killed > 0 {
            let found =
                format!("{} of an integration test that a dead liza started", count(killed, "process"));
            self.report.repaired(FindingKind::Process, "integration test", found, "killed");
        }
        if !wait_for_orphaned_git(root, ORPHAN_TIMEOUT) {
            let why = format!("still running after {} s; run `liza recover` again", ORPHAN_TIMEOUT.as_secs());
            self.report.left(FindingKind::Process, "git", "a git process that a dead liza started", why);
        }
        Ok(())
    }

    fn clear_git_locks(&mut self, integration: &Branch) -> Result<(), EngineError> {
        let repo = self.engine.repo()?;
        let inventory = repo.inventory()?;
        let branches: Vec<Branch> = inventory.keys().map(Branch::of).chain([integration.clone()]).collect();
        let branches: Vec<&Branch> = branches.iter().collect();
        let mut cleared = repo.clear_stale_locks(Some(repo.root()), &branches)?;
        cleared.extend(repo.clear_stale_ref_locks()?);
        for (task, found) in &inventory {
            if found.folder == FolderState::Healthy {
                cleared.extend(repo.clear_stale_locks(Some(&repo.worktree_path(task)), &[])?);
            }
        }
        for lock in cleared {
            let (subject, found) = (self.short(&lock), "the lock of a dead git process");
            self.report.repaired(FindingKind::GitLock, subject, found, "removed");
        }
        Ok(())
    }

    /// Creates a missing integration branch again, at the newest merge. Without merges it is left to `doctor --fix`.
    fn restore_branch(&mut self, integration: &Branch) -> Result<(), EngineError> {
        let repo = self.engine.repo()?;
        let merges: Vec<Sha> =
            merged_commits(&self.engine.snapshot()?.board).into_iter().map(|(_, at)| at).collect();
        if merges.is_empty() || repo.tip(integration)?.is_some() {
            return Ok(());
        }
        let known: Vec<Sha> = merges.iter().filter_map(|commit| repo.resolve(commit).ok()).collect();
        let newest = repo.newest(known)?;
        match newest.as_slice() {
            [commit] => {
                repo.create_branch(integration, commit)?;
                let done = format!("created again at the newest merge, {}", commit.short());
                self.report.repaired(FindingKind::Branch, integration, "missing", done);
            }
            [] => {
                let why = "no merged commit is in this repository; fetch them from a clone that has them";
                self.report.left(FindingKind::Branch, integration, "missing", why);
            }
            several => {
                let names: Vec<&str> = several.iter().map(Sha::short).collect();
                let why = format!("no merge contains all others; create it at one of {}", names.join(", "));
                self.report.left(FindingKind::Branch, integration, "missing", why);
            }
        }
        Ok(())
    }

    /// Completes or takes back interrupted moves of branches, unless one is in progress.
    fn settle_moves(&mut self) {
        match settle_moves(self.engine.project()) {
            Ok(settled) => {
                self.report.repaired.extend(settled.repaired);
                self.report.left.extend(settled.left);
            }
            Err(error) => {
                let found = "a move of a branch was interrupted";
                self.report.left(FindingKind::Checkout, "checkouts", found, error);
            }
        }
    }

    /// Makes sure that a reference of ours keeps each merged commit, and reports those that left the branch.
    fn keep_merges(&mut self) -> Result<(), EngineError> {
        let repo = self.engine.repo()?;
        let state = self.engine.snapshot()?;
        let kept = repo.kept_merges()?;
        for (task, commit) in merged_commits(&state.board) {
            if !kept.contains_key(&task)
                && let Ok(commit) = repo.resolve(&commit)
            {
                repo.keep_merge(&task, &commit)?;
            }
        }
        for lost in lost_merges(repo, &state.board)? {
            let why = format!("to bring it back: {}", lost.command());
            self.report.left(FindingKind::LostMerge, &lost.task, &lost, why);
        }
        Ok(())
    }

    /// Removes reservations whose claim died: their lock is free.
    fn drop_reservations(&mut self) -> Result<(), EngineError> {
        let (state, folder) = (self.engine.snapshot()?, self.engine.project().folder());
        let reserved =
            state.board.summaries().filter_map(|task| Some((&task.id, task.reservation.as_ref()?)));
        for (task, reservation) in reserved {
            // A free lock here says nothing about a claim on another machine.
            let by = state.board.agents.ready().and_then(|agents| agents.get(&reservation.by));
            if by.is_some_and(|entry| !runs_here(folder, entry)) {
                continue;
            }
            let Some(_lock) = try_lock_task(self.engine.project(), task)? else { continue };
            let found = format!("reserved by {} until {}", reservation.by, reservation.expires);
            match self.drop_reservation(task, reservation) {
                Ok(true) => self.report.repaired(FindingKind::Reservation, task, found, "removed"),
                Ok(false) => {}
                Err(error) => self.report.left(FindingKind::Reservation, task, found, error),
            }
        }
        Ok(())
    }

    /// Returns false if it is already removed or replaced.
    fn drop_reservation(&self, task: &TaskId, reservation: &Reservation) -> Result<bool, EngineError> {
        let (task, reservation) = (task.clone(), reservation.clone());
        match self.engine.execute(DropReservation { task, reservation }) {
            Err(error) if matches!(error.refusal(), Some(Refusal::NoReservation { .. })) => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// Removes registrations of dead supervisors, for a person: a new supervisor takes them over instead.
    fn deregister_dead(&mut self) -> Result<(), EngineError> {
        if self.engine.actor() != Actor::Human {
            return Ok(());
        }
        let board = self.engine.read(&[])?;
        let folder = self.engine.project().folder();
        let agents = board.agents.ready().into_iter().flatten();
        for (agent, entry) in agents.filter(|(_, entry)| runs_here(folder, entry)) {
            let attempt = LivenessLock::take(self.engine.project().folder(), *agent, Duration::ZERO);
            let LockAttempt::Taken(mut lock) = attempt else { continue };
            if !entry.generation.is_some_and(|generation| lock.previous_holders().contains(&generation)) {
                continue;
            }
            let found = "registered, but its supervisor is dead";
            match self.engine.execute(Deregister::of(*agent, entry.generation)) {
                Ok(_) => {
                    let done = "deregistered; its claim stays until its lease expires";
                    self.report.repaired(FindingKind::Registration, agent, found, done);
                }
                // Another machine has taken the name meanwhile.
                Err(error) if matches!(error.refusal(), Some(Refusal::StaleGeneration { .. })) => {}
                Err(error) => self.report.left(FindingKind::Registration, agent, found, error),
            }
        }
        Ok(())
    }

    /// Records merges that are on the branch but not on the blackboard. Only callers that may merge record them.
    fn record_merges(&mut self) -> Result<(), EngineError> {
        if !self.may_record_merges() {
            return Ok(());
        }
        let approved: Vec<TaskId> = self.engine.snapshot()?.board.in_status(Status::Approved).collect();
        if approved.is_empty() {
            return Ok(());
        }
        let path = FileLock::of_merges(self.engine.project().folder());
        // The process that holds the lock is merging and will record it.
        let Some(lock) = FileLock::try_at(&path)? else { return Ok(()) };
        for task in &approved {
            let found = "APPROVED, but its commit is already on the branch";
            match record_found_merge(self.engine, task, &lock) {
                Ok(false) => {}
                Ok(true) => self.report.repaired(FindingKind::Merge, task, found, "recorded as MERGED"),
                Err(error) => self.report.left(FindingKind::Merge, task, "APPROVED", error),
            }
        }
        Ok(())
    }

    fn repair_worktrees(&mut self, integration: &Branch) -> Result<(), EngineError> {
        let (state, folder) = (self.engine.snapshot()?, self.engine.project().folder());
        let mut existing = self.engine.repo()?.inventory()?;
        self.restore_settings(&existing)?;
        let wants = |task: &TaskId| state.board.body(task).is_ok_and(wants_worktree);
        // With a remote, the worktree of a task is on its coder's machine only.
        let is_here = |task: &TaskId| wants(task) && works_here(folder, &state.board, task);
        for task in state.board.tasks.keys().filter(|task| is_here(task)) {
            existing.entry(task.clone()).or_insert(TaskArtifacts {
                folder: FolderState::Absent,
                registered: false,
                branch: None,
                branch_in_use: None,
            });
        }
        let claims: Vec<(TaskId, Generation)> = existing
            .iter()
            .filter(|(task, found)| found.folder == FolderState::Healthy && is_here(task))
            .map(|(task, _)| (task.clone(), generation_of(&state.board, task)))
            .collect();
        take_new_commits(self.engine.project(), &claims);
        for (task, found) in &existing {
            let result = if is_here(task) && is_missing(found) {
                self.restore_worktree(task, integration)
            } else if wants(task) || is_needed(&state.board, task, now()) {
                Ok(())
            } else {
                self.remove_worktree(task, found)
            };
            if let Err(error) = result {
                let missing = FindingKind::MissingWorktree;
                let kind = if wants(task) { missing } else { FindingKind::UnneededWorktree };
                self.report.left(kind, task, describe(found), error);
            }
        }
        Ok(())
    }

    /// Writes the settings of git in worktrees without a holder as they were made: who was killed could not do it.
    fn restore_settings(&mut self, existing: &BTreeMap<TaskId, TaskArtifacts>) -> Result<(), EngineError> {
        for (task, _) in existing.iter().filter(|(_, found)| found.folder == FolderState::Healthy) {
            let Some(_lock) = try_lock_task(self.engine.project(), task)? else { continue };
            let board = self.engine.read(&[task])?;
            let holder = || board.agents.ready()?.get(&board.body(task).ok()?.record().assigned_to?);
            if !holder().is_some_and(|entry| entry.holds(now()))
                && let Err(error) = self.engine.repo()?.restore_settings(task)
            {
                self.report.left(FindingKind::Leftover, task, "git settings of a session", error);
            }
        }
        Ok(())
    }

    /// Deletes checkouts of reviews that have ended; that is no crash, so only a failure is reported.
    fn remove_reviews(&mut self) -> Result<(), EngineError> {
        let (repo, state) = (self.engine.repo()?, self.engine.snapshot()?);
        let is_open = |board: &Board, task: &TaskId| {
            board.summary(task).is_some_and(|summary| summary.reviewing_by.is_some())
        };
        for task in repo.reviews().into_iter().filter(|task| !is_open(&state.board, task)) {
            let Some(_lock) = try_lock_task(self.engine.project(), &task)? else { continue };
            if is_open(&self.engine.read(&[&task])?, &task) {
                continue;
            }
            if let Err(error) = repo.remove_review(&task) {
                let found = "the checkout of a review that has ended";
                self.report.left(FindingKind::UnneededWorktree, &task, found, error);
            }
        }
        Ok(())
    }

    /// Restores a worktree that a task needs: from its branch, or else the submitted commit, or else its base.
    fn restore_worktree(&mut self, task: &TaskId, integration: &Branch) -> Result<(), EngineError> {
        let Some(_lock) = try_lock_task(self.engine.project(), task)? else { return Ok(()) };
        let (repo, board) = (self.engine.repo()?, self.engine.read(&[task])?);
        let found = repo.task_artifacts(task)?;
        if !board.body(task).is_ok_and(wants_worktree) || !is_missing(&found) {
            return Ok(());
        }
        let start = self.start_of(task, &board, integration)?;
        let worktree = repo.prepare_worktree(task, &start, WorktreeMode::Keep, integration)?;
        let from = match found.branch {
            Some(_) => "restored from its branch".to_owned(),
            None => format!("created again from {}", start.short()),
        };
        let done = with_rescue(&from, worktree.rescued.as_ref());
        self.report.repaired(FindingKind::MissingWorktree, task, describe(&found), done);
        Ok(())
    }

    /// The commit from which to create a worktree whose branch is gone.
    fn start_of(&self, task: &TaskId, board: &Board, integration: &Branch) -> Result<Sha, EngineError> {
        let record = board.body(task).map(TaskBody::record).ok();
        let known = [
            record.and_then(|record| record.review_commit.as_ref()),
            record.and_then(|record| record.base_commit.as_ref()),
        ];
        for commit in known.into_iter().flatten() {
            if let Ok(commit) = self.engine.repo()?.resolve(commit) {
                return Ok(commit);
            }
        }
        self.engine.integration_head(integration)
    }

    /// Removes a worktree and branch that no task needs, after saving unmerged work.
    fn remove_worktree(&mut self, task: &TaskId, found: &TaskArtifacts) -> Result<(), EngineError> {
        let Some(lock) = try_lock_task(self.engine.project(), task)? else { return Ok(()) };
        let Discarded::Removed(removed) = discard_locked(self.engine.project(), task, &lock)? else {
            return Ok(());
        };
        remove_check_caches(self.engine.project().folder(), task);
        if let Some(path) = removed.branch_in_use {
            let why = format!("it is checked out in {}; switch to another branch there", path.display());
            self.report.left(FindingKind::UnneededWorktree, task, "its branch still exists", why);
        } else if removed.existed {
            let done = with_rescue("removed", removed.rescued.as_ref());
            self.report.repaired(FindingKind::UnneededWorktree, task, describe(found), done);
        }
        Ok(())
    }

    /// Removes the lock files of dead processes; held locks stay.
    fn remove_free_locks(&self) -> Result<(), EngineError> {
        let folder = FileLock::folder(self.engine.project().folder());
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            drop(FileLock::try_at(&entry.path())?);
        }
        Ok(())
    }
}

fn wants_worktree(body: &TaskBody) -> bool {
    body.record().worktree.is_some()
}

fn is_missing(found: &TaskArtifacts) -> bool {
    matches!(found.folder, FolderState::Absent | FolderState::Broken)
}

fn describe(found: &TaskArtifacts) -> &'static str {
    match (found.folder, found.registered, &found.branch) {
        (FolderState::Healthy | FolderState::Linked, _, _) => "a worktree that no task needs",
        (FolderState::Broken, _, _) => "an incomplete worktree",
        (FolderState::Foreign, _, _) => "a folder or file that is not a worktree",
        (FolderState::Absent, true, _) => "git's entry for a worktree that is gone",
        (FolderState::Absent, false, Some(_)) => "a branch without a worktree",
        (FolderState::Absent, false, None) => "no worktree and no branch",
    }
}

fn with_rescue(done: &str, rescue: Option<&Rescue>) -> String {
    match rescue {
        Some(rescue) => format!("{done}; its work is saved on {}", rescue.branch),
        None => done.to_owned(),
    }
}
