//! `liza diff`: what a task, or the whole goal, changes.

use liza_core::model::{Board, EventName, Sha, State, Status, TaskId, TaskRecord};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{BOLD, CYAN, GREEN, RED, clean, paint};
use crate::cli::ui::output::Reply;
use crate::cli::ui::pager;
use crate::engine::integration_branch;
use crate::git::{Branch, BranchError, Repo};
use crate::lifecycle::{fetch_merged, fetch_sent, fetch_submitted, take_work};
use crate::project::Project;

/// Show what a task, or the whole goal, changes.
///
/// The goal is compared with your main branch. Of a task that is being worked on, only what is committed is shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza diff
  liza diff --stat
  liza diff retry-orders
  liza diff --no-pager")]
pub(crate) struct Args {
    /// The task: its ID, or the beginning of it.
    task: Option<TaskId>,
    /// Only the files, and how many lines of each change.
    #[arg(long)]
    stat: bool,
    /// Do not use a pager, which a terminal gets as from git diff.
    #[arg(long)]
    no_pager: bool,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let repo = project.repo()?;
    let state = project.store().snapshot()?;
    let task = args.task.map(|task| meant_task(&state.board, task)).transpose()?;
    let (from, to) = match &task {
        Some(task) => of_task(&project, repo, &state, task)?,
        None => of_goal(&project, repo, &state.board)?,
    };
    let mut patch = repo.patch(&from, &to)?;
    if args.stat {
        // It comes first.
        patch.truncate(patch.find("\n\ndiff --git ").unwrap_or(patch.len()));
    }
    let text = match patch.is_empty() {
        true => "no changes".to_owned(),
        false => patch.lines().map(painted).collect::<Vec<_>>().join("\n"),
    };
    if !args.no_pager && !patch.is_empty() && pager::show(context, &text) {
        return Ok(Reply::already_written());
    }
    Ok(Reply::new(text, json!({"task": task, "from": from, "to": to, "patch": patch})))
}

/// What a merge of the task changed, or what its commits change since they left the integration branch.
fn of_task(project: &Project, repo: &Repo, state: &State, task: &TaskId) -> Result<(Sha, Sha), CommandError> {
    let record = state.board.body(task)?.record();
    let nothing = || {
        let message = format!("{task} has no commits yet");
        CommandError::refused("no_commits", message).hint(format!("see where it is: liza show {task}"))
    };
    if record.status == Some(Status::Merged)
        && let Some(merge) = &record.merge_commit
        && let Some(before) = head_before_merge(record)
    {
        fetch_merged(project, &[&before, merge])?;
        return Ok((before, merge.clone()));
    }
    let head = match &record.review_commit {
        Some(commit) => {
            fetch_submitted(project, task, commit)?;
            commit.clone()
        }
        // Its commits are in the worktree's own repository until they are taken, or on another machine.
        None => match take_work(project, &state.board, task)? {
            Some(head) => head,
            None => fetch_sent(project, task)?.ok_or_else(nothing)?,
        },
    };
    let base = record.base_commit.clone().ok_or_else(nothing)?;
    fetch_merged(project, &[&base])?;
    Ok((repo.merge_base(&base, &head)?.unwrap_or(base), head))
}

/// The head of the integration branch before the task was merged.
fn head_before_merge(record: &TaskRecord) -> Option<Sha> {
    let merged = record.events().rev().find(|event| event.is(EventName::Merged))?;
    merged.more.get("merged_into")?.to_string().parse().ok()
}

/// What the integration branch has and the main branch has not.
fn of_goal(project: &Project, repo: &Repo, board: &Board) -> Result<(Sha, Sha), CommandError> {
    let integration = integration_branch(board)?;
    let missing = |branch: &Branch| {
        let message = format!("there is no branch {branch}");
        CommandError::refused("no_branch", message).hint("liza doctor shows which branches Liza uses")
    };
    let recorded = board.goal.ready().and_then(|goal| goal.integration_head.clone());
    let to = match recorded.filter(|_| board.config().is_ok_and(|config| config.remote.is_some())) {
        // The branch here may be behind that of the remote.
        Some(recorded) => {
            fetch_merged(project, &[&recorded])?;
            recorded
        }
        None => repo.tip(&integration)?.ok_or_else(|| missing(&integration))?,
    };
    let from = match &board.config()?.main_branch {
        Some(name) => {
            let main: Branch = name
                .parse()
                .map_err(|error: BranchError| CommandError::refused("bad_branch", error.to_string()))?;
            repo.tip(&main)?.ok_or_else(|| missing(&main))?
        }
        None => repo.head()?.commit,
    };
    Ok((repo.merge_base(&from, &to)?.unwrap_or(from), to))
}

/// A line of a patch, in the colours that git uses.
fn painted(line: &str) -> String {
    let style = match line.as_bytes() {
        [b'@', b'@', ..] => CYAN,
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => BOLD,
        [b'+', ..] => GREEN,
        [b'-', ..] => RED,
        _ if line.starts_with("diff ") => BOLD,
        _ => return clean(line),
    };
    paint(style, &clean(line))
}
