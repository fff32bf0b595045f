//! recover: settles what a crash left, in git and on the blackboard, and says what that was.
//!
//! Runs beside living agents: whatever a living process is at is left to it. Deletes nothing that has not been
//! saved. A second run finds nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use liza_core::agent::{Actor, Role};
use liza_core::board::Board;
use liza_core::ids::{Sha, TaskId};
use liza_core::record::{Reservation, Status};
use liza_core::{Command, Refusal};

use crate::git::{Branch, Folder, Found, Mode, Rescue};
use crate::project::now;
use crate::sys::process;

use super::error::WorkError;
use super::life::{Asked, Life};
use super::locks::FileLock;
use super::tree::{Discarded, discard_under, is_needed};
use super::{Work, integration_branch};

/// How long a git that outlived its liza may take to end.
const ORPHANS: Duration = Duration::from_secs(60);

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A write of the blackboard that was cut off, or a stale save.
    Blackboard,
    /// Processes that outlived their liza.
    Process,
    /// A lock of a git that is gone.
    GitLock,
    /// Files of a process that is gone.
    Leftover,
    /// A checkout that had not followed its branch.
    Checkout,
    /// The first half of a claim that never got its second.
    Reservation,
    /// An agent whose supervisor was killed.
    Registration,
    /// A merge that the blackboard did not know.
    Merge,
    /// A worktree that is missing or half-made.
    MissingWorktree,
    /// A worktree or branch that nobody needs.
    UnneededWorktree,
}

impl Kind {
    /// The word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Blackboard => "blackboard",
            Kind::Process => "process",
            Kind::GitLock => "git_lock",
            Kind::Leftover => "leftover",
            Kind::Checkout => "checkout",
            Kind::Reservation => "reservation",
            Kind::Registration => "registration",
            Kind::Merge => "merge",
            Kind::MissingWorktree => "missing_worktree",
            Kind::UnneededWorktree => "unneeded_worktree",
        }
    }
}

/// One thing that a crash left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing.
    pub kind: Kind,
    /// On which task or file.
    pub subject: String,
    /// What was found.
    pub found: String,
    /// What was done about it, or why nothing could be.
    pub done: String,
}

/// What recover found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What is in order now.
    pub settled: Vec<Finding>,
    /// What a person has to look at.
    pub left: Vec<Finding>,
}

#[allow(clippy::needless_pass_by_value, reason = "the calls read better")]
impl Report {
    fn settle(&mut self, kind: Kind, subject: impl ToString, found: impl ToString, done: impl ToString) {
        self.settled.push(finding(kind, &subject, &found, &done));
    }

    /// Notes what could not be settled; the rest goes on.
    fn leave(&mut self, kind: Kind, subject: impl ToString, found: impl ToString, why: impl ToString) {
        self.left.push(finding(kind, &subject, &found, &why));
    }
}

fn finding(kind: Kind, subject: &dyn ToString, found: &dyn ToString, done: &dyn ToString) -> Finding {
    Finding { kind, subject: subject.to_string(), found: found.to_string(), done: done.to_string() }
}

impl Work<'_> {
    /// Settles what crashes have left.
    ///
    /// # Errors
    ///
    /// When the caller may not, or neither the blackboard nor git can be read. What only concerns one task or file
    /// is in the report.
    pub fn recover(&self) -> Result<Report, WorkError> {
        self.submit(Command::Recover { settled: Vec::new() })?;
        let mut report = Report::default();
        for notice in self.project.store().recover()? {
            report.settle(Kind::Blackboard, "state.yaml", format!("{notice:?}"), "settled");
        }
        self.end_orphans(&mut report)?;
        let integration = integration_branch(&self.glance(&[])?)?;
        self.clear_git_locks(&integration, &mut report)?;
        for path in self.repo()?.sweep() {
            report.settle(Kind::Leftover, self.short(&path), "left by a process that is gone", "deleted");
        }
        for path in self.repo()?.heal_checkouts(&integration)? {
            let found = format!("had not followed {integration}");
            report.settle(Kind::Checkout, path.display(), found, "brought up to date");
        }
        self.drop_reservations(&mut report)?;
        self.take_off_the_dead(&mut report)?;
        self.settle_merges(&mut report)?;
        self.settle_worktrees(&integration, &mut report)?;
        self.sweep_locks()?;
        let lines = report.settled.iter().map(|f| format!("{}: {}, {}", f.subject, f.found, f.done));
        self.submit(Command::Recover { settled: lines.collect() })?;
        Ok(report)
    }

    fn short(&self, path: &Path) -> String {
        path.strip_prefix(self.project.root()).unwrap_or(path).display().to_string()
    }

    /// What outlived its liza is ended, or waited for: nothing may change while it is being settled.
    fn end_orphans(&self, report: &mut Report) -> Result<(), WorkError> {
        let root = self.repo()?.root();
        let ended = process::end_orphaned_trees(root);
        if ended > 0 {
            let found = format!("{ended} process(es) of an integration test whose liza is gone");
            report.settle(Kind::Process, "integration test", found, "ended");
        }
        if !process::await_orphaned_git(root, ORPHANS) {
            let why = format!("still running after {} s; run `liza recover` again", ORPHANS.as_secs());
            report.leave(Kind::Process, "git", "a git whose liza is gone", why);
        }
        Ok(())
    }

    fn clear_git_locks(&self, integration: &Branch, report: &mut Report) -> Result<(), WorkError> {
        let repo = self.repo()?;
        let inventory = repo.inventory()?;
        let branches: Vec<Branch> = inventory.keys().map(Branch::of).chain([integration.clone()]).collect();
        let branches: Vec<&Branch> = branches.iter().collect();
        let mut cleared = repo.clear_stale_locks(Some(repo.root()), &branches)?;
        for (task, found) in &inventory {
            if found.folder == Folder::Healthy {
                cleared.extend(repo.clear_stale_locks(Some(&repo.worktree_path(task)), &[])?);
            }
        }
        for lock in cleared {
            report.settle(Kind::GitLock, self.short(&lock), "the lock of a git that is gone", "removed");
        }
        Ok(())
    }

    /// A reservation beside a free lock is one that nobody is behind.
    fn drop_reservations(&self, report: &mut Report) -> Result<(), WorkError> {
        let state = self.snapshot()?;
        let reserved = state.board.heads().filter_map(|head| Some((&head.id, head.reservation.as_ref()?)));
        for (task, reservation) in reserved {
            let Some(_lock) = self.try_task_lock(task)? else { continue };
            let found = format!("reserved by {} until {}", reservation.by, reservation.expires);
            match self.drop_reservation(task, reservation) {
                Ok(true) => report.settle(Kind::Reservation, task, found, "taken back"),
                Ok(false) => {}
                Err(error) => report.leave(Kind::Reservation, task, found, error),
            }
        }
        Ok(())
    }

    /// False when it is gone already, or another one has taken its place.
    fn drop_reservation(&self, task: &TaskId, reservation: &Reservation) -> Result<bool, WorkError> {
        let (task, reservation) = (task.clone(), reservation.clone());
        match self.submit(Command::DropReservation { task, reservation }) {
            Err(error) if matches!(error.refusal(), Some(Refusal::NoReservation { .. })) => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// A registration whose supervisor is proven dead. Only for a person: a supervisor that starts takes such a name over
    /// instead, and must not find it gone.
    fn take_off_the_dead(&self, report: &mut Report) -> Result<(), WorkError> {
        if self.actor != Actor::Human {
            return Ok(());
        }
        let board = self.glance(&[])?;
        for (agent, entry) in board.agents.ready().into_iter().flatten() {
            let asked = Life::ask(self.project.folder(), *agent, Duration::ZERO);
            let Asked::Mine(mut life) = asked else { continue };
            if entry.generation.is_none() || life.left_by() != entry.generation {
                continue;
            }
            let found = "registered, but its supervisor is dead";
            match self.submit(Command::Deregister { agent: *agent }) {
                Ok(_) => {
                    report.settle(Kind::Registration, agent, found, "off the board; its claim waits for it")
                }
                Err(error) => report.leave(Kind::Registration, agent, found, error),
            }
        }
        Ok(())
    }

    /// Git's own record decides: what is on the branch is merged. Only those who may merge record it.
    fn settle_merges(&self, report: &mut Report) -> Result<(), WorkError> {
        if self.actor.agent().is_some_and(|agent| agent.role() != Role::CodeReviewer) {
            return Ok(());
        }
        let state = self.snapshot()?;
        let approved: Vec<&TaskId> =
            state.board.heads().filter(|head| head.is(Status::Approved)).map(|head| &head.id).collect();
        if approved.is_empty() {
            return Ok(());
        }
        let path = FileLock::of_merges(self.project.folder());
        // Whoever holds it is in the middle of a merge, and will record it.
        let Some(lock) = FileLock::try_at(&path)? else { return Ok(()) };
        for task in approved {
            match self.settle_merge(task, &lock) {
                Ok(None) => {}
                Ok(Some(_)) => report.settle(
                    Kind::Merge,
                    task,
                    "APPROVED, but its commit is on the branch",
                    "recorded as MERGED",
                ),
                Err(error) => report.leave(Kind::Merge, task, "APPROVED", error),
            }
        }
        Ok(())
    }

    fn settle_worktrees(&self, integration: &Branch, report: &mut Report) -> Result<(), WorkError> {
        let state = self.snapshot()?;
        let mut there = self.repo()?.inventory()?;
        let wants = |task: &TaskId| state.board.body(task).is_ok_and(|body| body.record.worktree.is_some());
        for task in state.board.tasks.keys().filter(|task| wants(task)) {
            there.entry(task.clone()).or_insert(Found {
                folder: Folder::Absent,
                registered: false,
                branch: None,
                branch_in_use: None,
            });
        }
        for (task, found) in &there {
            let missing = matches!(found.folder, Folder::Absent | Folder::Broken);
            let result = if wants(task) && missing {
                self.put_back(task, integration, report)
            } else if wants(task) || is_needed(&state.board, task, now()) {
                Ok(())
            } else {
                self.take_away(task, found, report)
            };
            if let Err(error) = result {
                let kind = if wants(task) { Kind::MissingWorktree } else { Kind::UnneededWorktree };
                report.leave(kind, task, describe(found), error);
            }
        }
        Ok(())
    }

    /// Puts a worktree back that a task needs: from its branch, else from what was submitted, else from its base.
    fn put_back(&self, task: &TaskId, integration: &Branch, report: &mut Report) -> Result<(), WorkError> {
        let Some(_lock) = self.try_task_lock(task)? else { return Ok(()) };
        let (repo, board) = (self.repo()?, self.glance(&[task])?);
        let found = repo.find(task)?;
        let still = board.body(task).is_ok_and(|body| body.record.worktree.is_some());
        if !still || !matches!(found.folder, Folder::Absent | Folder::Broken) {
            return Ok(());
        }
        let start = self.start_of(task, &board, integration)?;
        let ensured = repo.ensure(task, &start, Mode::Keep, integration)?;
        let from = match found.branch {
            Some(_) => "put back on its branch".to_owned(),
            None => format!("made anew from {}", start.short()),
        };
        let done = with_rescue(&from, ensured.rescued.as_ref());
        report.settle(Kind::MissingWorktree, task, describe(&found), done);
        Ok(())
    }

    /// The commit that a worktree whose branch is gone starts from.
    fn start_of(&self, task: &TaskId, board: &Board, integration: &Branch) -> Result<Sha, WorkError> {
        let record = board.body(task).map(|body| &body.record).ok();
        let known = [
            record.and_then(|record| record.review_commit.as_ref()),
            record.and_then(|record| record.base_commit.as_ref()),
        ];
        for commit in known.into_iter().flatten() {
            if let Ok(commit) = self.repo()?.resolve(commit) {
                return Ok(commit);
            }
        }
        self.head_of(integration)
    }

    /// Removes what nobody needs, after saving what is unmerged.
    fn take_away(&self, task: &TaskId, found: &Found, report: &mut Report) -> Result<(), WorkError> {
        let Some(lock) = self.try_task_lock(task)? else { return Ok(()) };
        let Discarded::Removed(removed) = discard_under(self.project, self.repo()?, task, &lock)? else {
            return Ok(());
        };
        if let Some(path) = removed.branch_in_use {
            let why = format!("it is checked out in {}: switch to another branch there", path.display());
            report.leave(Kind::UnneededWorktree, task, "its branch is still there", why);
        } else if removed.found {
            let done = with_rescue("removed", removed.rescued.as_ref());
            report.settle(Kind::UnneededWorktree, task, describe(found), done);
        }
        Ok(())
    }

    /// Lock files of processes that are gone; whoever holds one keeps it.
    fn sweep_locks(&self) -> Result<(), WorkError> {
        let folder = FileLock::folder(self.project.folder());
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            drop(FileLock::try_at(&entry.path())?);
        }
        Ok(())
    }
}

fn describe(found: &Found) -> &'static str {
    match (found.folder, found.registered, &found.branch) {
        (Folder::Healthy, _, _) => "a worktree that no task needs",
        (Folder::Broken, _, _) => "a half-made worktree",
        (Folder::Foreign, _, _) => "something that is no worktree",
        (Folder::Absent, true, _) => "git's entry of a worktree that is gone",
        (Folder::Absent, false, Some(_)) => "a branch without a worktree",
        (Folder::Absent, false, None) => "no worktree and no branch",
    }
}

fn with_rescue(done: &str, rescue: Option<&Rescue>) -> String {
    match rescue {
        Some(rescue) => format!("{done}; its work is kept on {}", rescue.branch),
        None => done.to_owned(),
    }
}
