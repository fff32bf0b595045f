//! The merged changes of a project that can be reviewed again. Reads the blackboard and git, and changes nothing.

use liza_core::model::{EventName, Sha, State, Status, TaskId, TaskRecord, Timestamp};
use liza_git::{GitError, Repo};

/// A change as its reviewer had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub task: TaskId,
    /// The commit that was reviewed and merged.
    pub commit: Sha,
    /// Its only parent.
    pub before: Sha,
    /// The integration branch before the merge.
    pub head: Sha,
    /// The commit of the integration branch that the work started from.
    pub base: Sha,
    pub submitted: Timestamp,
}

/// The changes that one merge commit each brought, the newest first.
pub fn merged_changes(state: &State, repo: &Repo) -> Result<Vec<Change>, GitError> {
    let mut changes = Vec::new();
    for (task, body) in state.bodies() {
        changes.extend(change(repo, task, body.record())?);
    }
    changes.sort_by_key(|change| std::cmp::Reverse(change.submitted));
    Ok(changes)
}

fn change(repo: &Repo, task: &TaskId, record: &TaskRecord) -> Result<Option<Change>, GitError> {
    let submitted = record.last_event(EventName::ReadyForReview).map(|event| event.time);
    let (Some(submitted), Some(merge)) = (submitted, &record.merge_commit) else { return Ok(None) };
    if record.status != Some(Status::Merged) || !repo.has_commit(merge)? {
        return Ok(None);
    }
    let of_merge = parents(repo, merge)?;
    let [head, commit] = of_merge.as_slice() else { return Ok(None) };
    // A merge in the work brings changes of others: a defect in them would not be the work's.
    let of_commit = parents(repo, commit)?;
    let [before] = of_commit.as_slice() else { return Ok(None) };
    let Some(base) = repo.merge_base(head, commit)? else { return Ok(None) };
    let (commit, before, head) = (commit.clone(), before.clone(), head.clone());
    Ok(Some(Change { task: task.clone(), commit, before, head, base, submitted }))
}

fn parents(repo: &Repo, commit: &Sha) -> Result<Vec<Sha>, GitError> {
    let command = repo.git().command("reading the parents of a commit", repo.root());
    let line = command.args(["rev-list", "--parents", "-n1", commit.as_str(), "--"]).read_text()?;
    Ok(line.split_whitespace().skip(1).filter_map(|hash| hash.parse().ok()).collect())
}
