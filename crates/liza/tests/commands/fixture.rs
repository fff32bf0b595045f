//! Tasks in several states, made by the rules themselves: claimed, submitted, under review.

use liza_core::model::{Actor, AgentId, Generation, Sha, TaskId, Timestamp};
use liza_core::protocol::{ClaimReview, ClaimTask, ReserveTask, SubmitForReview, WorktreeFacts};
use liza_team::project::now;

use crate::support::TestProject;

/// Adds a task and lets the coder claim it, with a worktree; returns the coder's generation.
pub(crate) fn claimed(project: &TestProject, task: &str, coder: &str) -> u64 {
    claimed_at(project, task, coder, now())
}

/// The same at another time.
pub(crate) fn claimed_at(project: &TestProject, task: &str, coder: &str, at: Timestamp) -> u64 {
    if !project.state().contains(&format!("id: {task}\n")) {
        project.add_task(task);
    }
    let generation = project.register(coder);
    let (id, agent): (TaskId, AgentId) = (task.parse().unwrap(), coder.parse().unwrap());
    let head: Sha = project.git(&["rev-parse", "integration"]).parse().unwrap();
    let actor = Actor::Supervisor(agent, Generation(generation));
    let reserve = ReserveTask { task: id.clone(), coder: agent, head: head.clone() };
    project.execute_at(actor, at, reserve);
    let (branch, tree) = (format!("task/{task}"), format!(".worktrees/{task}"));
    if !project.root.join(&tree).exists() {
        project.git(&["worktree", "add", "-q", "-b", &branch, &tree, head.as_str()]);
    }
    project.execute_at(actor, at, ClaimTask { task: id, coder: agent });
    generation
}

/// A claimed task with a commit that is submitted for review.
pub(crate) fn submitted(project: &TestProject, task: &str, coder: &str) {
    let generation = claimed(project, task, coder);
    let tree = project.tree(task);
    project.write(&format!(".worktrees/{task}/work.txt"), "done\n");
    project.git_at(&tree, &["add", "."]);
    project.git_at(&tree, &["commit", "-qm", "work"]);
    let head: Sha = project.git_at(&tree, &["rev-parse", "HEAD"]).parse().unwrap();
    let facts = WorktreeFacts::clean(head.clone());
    let actor = Actor::Agent(coder.parse().unwrap(), Generation(generation));
    let command =
        SubmitForReview { task: task.parse().unwrap(), commit: head, facts: Some(facts), authors: vec![] };
    project.execute_at(actor, now(), command);
}

/// A submitted task whose review started at that time; returns the reviewer's generation.
pub(crate) fn under_review(project: &TestProject, task: &str, reviewer: &str, at: Timestamp) -> u64 {
    submitted(project, task, "coder-1");
    let generation = project.register(reviewer);
    let reviewer: AgentId = reviewer.parse().unwrap();
    let command = ClaimReview {
        task: task.parse().unwrap(),
        reviewer,
        setup_failure: None,
        integration: None,
        gate: None,
    };
    project.execute_at(Actor::Supervisor(reviewer, Generation(generation)), at, command);
    generation
}

/// A task that a coder has blocked.
pub(crate) fn blocked(project: &TestProject, task: &str, coder: &str) {
    let generation = claimed(project, task, coder);
    let words = ["mark-blocked", task, "--reason", "unclear", "--question", "What now?"];
    project.liza_in(coder, generation, &words).ok();
}
