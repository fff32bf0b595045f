//! submit-for-review: asks for a review of exactly the commit that the clean worktree is at.

use serde::Serialize;

use crate::model::{
    AgentId, AgentStatus, Assignment, CommitAuthor, EventName, HistoryEvent, Refusal, Section, Sha, Task,
    TaskId, TaskStatus, ValidationResult,
};
use crate::rules::validation::result_for;

use super::operation::{LoadScope, Rule};
use super::ownership::own_claim;
use super::permission::{CODING, Rights};
use super::reply::{TaskReply, WorktreeFacts};
use super::tx::Tx;
use super::wt_merge::MergeFailure;

#[derive(Debug, Clone, PartialEq)]
pub struct SubmitForReview {
    pub task: TaskId,
    pub commit: Sha,
    /// `None` if there is no worktree.
    pub facts: Option<WorktreeFacts>,
    /// The authors of the work's commits, the oldest first.
    pub authors: Vec<CommitAuthor>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Submitted {
    #[serde(flatten)]
    pub task: TaskReply,
    pub commit: Sha,
}

impl Rule for SubmitForReview {
    type Reply = Submitted;
    const VERB: &'static str = "submit-for-review";
    const RIGHTS: Rights = CODING;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Submitted, Refusal> {
        let id = &self.task;
        let mut task = tx.task(id)?;
        let (coder, work) = own_claim(tx, &task)?;
        let facts = self.facts.as_ref().ok_or_else(|| Refusal::WorktreeMissing { task: id.clone() })?;
        check(&task, &work, &self.commit, facts)?;
        check_not_rejected(&task, &facts.head)?;
        check_not_failed(&task, &facts.head)?;
        check_not_invalid(tx, &task, &facts.head)?;
        check_authors(&task, coder, &self.authors)?;
        let commit = facts.head.clone();
        let people = people_among(&self.authors);
        let event = tx.event(EventName::ReadyForReview).with("commit", commit.as_str());
        task.push_event(event.with_some("authors", (!people.is_empty()).then(|| people.clone())));
        task.record.clear_exit_counts();
        task.record.review_dropped_by = None;
        task.record.reservation = None;
        task.record.takes_back = Some(facts.takes_back.clone()).filter(|merges| !merges.is_empty());
        task.record.facts = facts.work.clone();
        // They are of another commit.
        if task.record.approvals.iter().flatten().any(|approval| approval.commit != commit) {
            task.record.approvals = None;
        }
        let by = if people.is_empty() {
            String::new()
        } else {
            format!(", with commits by {}", people.join(", "))
        };
        let detail = format!("attempt {}, commit {}{by}", task.record.iteration.unwrap_or(1), commit.short());
        task.status = TaskStatus::ReadyForReview { work, commit: commit.clone(), review: None };
        tx.free_agents([coder], id, AgentStatus::Waiting)?;
        Ok(Submitted { task: tx.save(task, EventName::ReadyForReview, &detail), commit })
    }
}

/// Refuses work of an agent that never had the task. The coders that had it before may have left commits.
fn check_authors(task: &Task, coder: AgentId, authors: &[CommitAuthor]) -> Result<(), Refusal> {
    let past = task.record.past();
    let had_it = |agent: AgentId| agent == coder || past.has_claimed(agent);
    let other = |author: &CommitAuthor| author.agent.filter(|agent| !had_it(*agent));
    match authors.iter().find_map(|author| Some((author, other(author)?))) {
        Some((author, agent)) => {
            Err(Refusal::ForeignAuthor { task: task.id.clone(), commit: author.commit.clone(), agent })
        }
        None => Ok(()),
    }
}

/// The names of the authors who are not agents, each once.
fn people_among(authors: &[CommitAuthor]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for author in authors.iter().filter(|author| author.agent.is_none()) {
        if !names.contains(&author.name) {
            names.push(author.name.clone());
        }
    }
    names
}

/// A reviewer's rejection of exactly this commit is not answered by submitting it again.
fn check_not_rejected(task: &Task, commit: &Sha) -> Result<(), Refusal> {
    let rejection = task.record.past().rejection;
    match rejection.filter(|rejection| rejection.commit.as_deref() == Some(commit.as_str())) {
        Some(rejection) => Err(Refusal::AlreadyRejected {
            task: task.id.clone(),
            commit: commit.clone(),
            by: rejection.by.unwrap_or_default().to_owned(),
        }),
        None => Ok(()),
    }
}

/// The merge of exactly this commit failed, and no one has decided that it may be tried again.
fn check_not_failed(task: &Task, commit: &Sha) -> Result<(), Refusal> {
    let same = |event: &&HistoryEvent| event.text("commit").is_some_and(|failed| failed == commit.as_str());
    match task.record.past().failed_merge.filter(same) {
        Some(event) => Err(Refusal::AlreadyFailed {
            task: task.id.clone(),
            commit: commit.clone(),
            why: MergeFailure::of_event(event).map(|why| why.to_string()).unwrap_or_default(),
        }),
        None => Ok(()),
    }
}

/// The commands that validate the task failed on exactly this commit, and they are still the same.
fn check_not_invalid(tx: &Tx<'_>, task: &Task, commit: &Sha) -> Result<(), Refusal> {
    let failed = result_for(tx.config()?, &task.record, commit)
        .filter(|validation| validation.result == ValidationResult::Red);
    match failed {
        Some(failed) => Err(Refusal::AlreadyFailed {
            task: task.id.clone(),
            commit: commit.clone(),
            why: format!("validation: {}", failed.command.as_deref().unwrap_or_default()),
        }),
        None => Ok(()),
    }
}

fn check(task: &Task, work: &Assignment, commit: &Sha, facts: &WorktreeFacts) -> Result<(), Refusal> {
    let id = || task.id.clone();
    if !facts.on_task_branch {
        return Err(Refusal::WrongBranch { task: id() });
    }
    if !facts.dirty.is_empty() {
        return Err(Refusal::DirtyWorktree { task: id(), paths: facts.dirty.clone() });
    }
    if !commit.names_same_commit(&facts.head) {
        return Err(Refusal::HeadMoved { task: id(), head: facts.head.clone(), commit: commit.clone() });
    }
    match &work.base {
        Some(base) if base.names_same_commit(&facts.head) => {
            Err(Refusal::NothingToReview { task: id(), commit: facts.head.clone() })
        }
        Some(base) if task.record.integration_fix == Some(true) && !facts.has_base => {
            Err(Refusal::BaseNotMerged { task: id(), commit: facts.head.clone(), base: base.clone() })
        }
        Some(_) | None => Ok(()),
    }
}
