//! `liza diff`: the changes of a task, or of the whole goal.

use std::path::PathBuf;

use liza_core::model::{Board, EventName, Sha, State, Status, TaskBody, TaskId, TaskRecord, WorkFacts};
use liza_core::text::{shell_word, visible};
use liza_git::{Branch, BranchError, MergeChange, PATCH_MAX, Patch, Repo};
use liza_team::engine::integration_branch;
use liza_team::lifecycle::{fetch_merged, fetch_sent, fetch_submitted, integration_head, take_work};
use liza_team::project::Project;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::pager;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{BOLD, CYAN, GREEN, RED, clean, paint};
use crate::cli::ui::output::Reply;

/// The most files of a large patch that are named.
const FILES_MAX: usize = 200;

/// Show what a task, or the whole goal, changes.
///
/// Submitted work is shown as its merge would change the integration branch now. Of a task that is being worked on, what is
/// committed in its worktree is shown. The goal is compared with your main branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza diff
  liza diff --stat
  liza diff retry-orders
  liza diff retry-orders -- src/orders.rs
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
    /// Only these files and folders, as the project's root sees them.
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<String>,
}

/// The two sides of a comparison.
struct Compared {
    from: Sha,
    /// A commit, or the files that a merge would make.
    to: Sha,
    /// The commit that brings it, if a task does.
    commit: Option<Sha>,
    /// The person reads this first.
    notes: Vec<String>,
}

impl Compared {
    fn commits(from: Sha, to: Sha) -> Self {
        Self { from, commit: Some(to.clone()), to, notes: Vec::new() }
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let repo = project.repo()?;
    let state = project.store().snapshot()?;
    let task = args.task.map(|task| meant_task(&state.board, task)).transpose()?;
    let compared = match &task {
        Some(task) => of_task(&project, repo, &state, task)?,
        None => of_goal(&project, repo, &state.board)?,
    };
    let Compared { from, to, commit, mut notes } = compared;
    let record = task.as_ref().and_then(|task| state.board.body(task).ok()).map(TaskBody::record);
    notes.extend(record.into_iter().flat_map(taken_back));
    let patch = repo.patch(&from, &to, &args.paths)?;
    let shown = match (&patch.text, args.stat) {
        _ if patch.stat.is_empty() => "no changes".to_owned(),
        (_, true) => painted(&patch.stat),
        (Some(text), false) => painted(&format!("{}\n\n{text}", patch.stat)),
        (None, false) => too_large(&patch, task.as_ref()),
    };
    let notes_text: String = notes.iter().map(|note| format!("{}\n\n", paint(RED, &clean(note)))).collect();
    // Those who look at one file have read them.
    let facts = record.filter(|record| is_submitted(record) && args.paths.is_empty());
    let facts = facts.and_then(|record| record.facts.as_ref()).map(WorkFacts::lines).unwrap_or_default();
    let mut head: Vec<String> = facts.iter().map(|fact| clean(fact)).collect();
    if !head.is_empty() {
        head.push(String::new());
    }
    let text =
        format!("{notes_text}{}{shown}", head.iter().map(|line| format!("{line}\n")).collect::<String>());
    if !args.no_pager && !patch.stat.is_empty() && pager::show(context, &text) {
        return Ok(Reply::already_written());
    }
    let whole = patch.text.as_ref().map(|text| match args.stat || text.is_empty() {
        true => patch.stat.clone(),
        false => format!("{}\n\n{text}", patch.stat),
    });
    let result = json!({
        "task": task, "from": from, "to": commit.unwrap_or(to), "patch": whole, "stat": patch.stat,
        "files": patch.files, "notes": notes, "facts": facts,
    });
    Ok(Reply::new(text, result))
}

/// The files of a patch that is too large to be shown at once, and the command for each.
fn too_large(patch: &Patch, task: Option<&TaskId>) -> String {
    let task = task.map(|task| format!("{task} ")).unwrap_or_default();
    let command = |path: &PathBuf| format!("  liza diff {task}-- {}", shell_word(&path.to_string_lossy()));
    let mut lines = vec![painted(&patch.stat), String::new()];
    lines.push(format!("The patch is larger than {} MiB. Each file:", PATCH_MAX >> 20));
    lines.extend(patch.files.iter().take(FILES_MAX).map(command).map(|line| visible(&line).into_owned()));
    if let Some(more @ 1..) = patch.files.len().checked_sub(FILES_MAX) {
        lines.push(format!("and {more} more, folder by folder: liza diff {task}-- FOLDER"));
    }
    lines.join("\n")
}

/// The change by the merge of the task, the change that a merge of its submitted commit would make now, or
/// its commits since they left the integration branch.
fn of_task(project: &Project, repo: &Repo, state: &State, task: &TaskId) -> Result<Compared, CommandError> {
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
        return Ok(Compared::commits(before, merge.clone()));
    }
    let submitted = record.review_commit.as_ref().filter(|_| is_submitted(record));
    let head = match submitted {
        Some(commit) => {
            fetch_submitted(project, task, commit)?;
            commit.clone()
        }
        // Its commits are in the worktree's own repository until they are taken, or on another machine.
        None => match take_work(project, &state.board, task)? {
            Some(head) => head,
            None => match fetch_sent(project, task)? {
                Some(sent) => sent,
                None => record.review_commit.clone().ok_or_else(nothing)?,
            },
        },
    };
    let base = record.base_commit.clone().ok_or_else(nothing)?;
    fetch_merged(project, &[&base])?;
    let of_commits = || {
        Ok::<_, CommandError>(Compared::commits(
            repo.merge_base(&base, &head)?.unwrap_or(base.clone()),
            head.clone(),
        ))
    };
    if submitted.is_none() {
        return of_commits();
    }
    let integration = head_of_integration(project, &state.board)?;
    match repo.merge_change(&integration, &head)? {
        MergeChange::Clean { tree } => {
            Ok(Compared { from: integration, to: tree, commit: Some(head), notes: Vec::new() })
        }
        MergeChange::Undefined { conflicts } => {
            let files: Vec<_> = conflicts.iter().map(|file| file.to_string_lossy()).collect();
            let why = match files.as_slice() {
                [] => "they have no common history".to_owned(),
                files => format!("conflicts in {}", files.join(", ")),
            };
            let note = format!(
                "{} does not merge cleanly into the integration branch at {}: {why}. This is what its own commits change.",
                head.short(),
                integration.short()
            );
            Ok(Compared { notes: vec![note], ..of_commits()? })
        }
    }
}

/// The changes that merges in the submitted work take back.
fn taken_back(record: &TaskRecord) -> Vec<String> {
    let merges = record.takes_back.iter().flatten().filter(|_| is_submitted(record));
    merges.map(|merge| format!("TAKES BACK what the integration branch has: {merge}")).collect()
}

/// True if the task's commit waits for a verdict or for its merge, or was sent back.
fn is_submitted(record: &TaskRecord) -> bool {
    match record.status {
        Some(Status::ReadyForReview | Status::Approved | Status::Rejected | Status::IntegrationFailed) => {
            true
        }
        Some(
            Status::Draft
            | Status::Unclaimed
            | Status::Claimed
            | Status::Blocked
            | Status::Merged
            | Status::Superseded
            | Status::Abandoned,
        )
        | None => false,
    }
}

/// The head of the integration branch before the task was merged.
fn head_before_merge(record: &TaskRecord) -> Option<Sha> {
    let merged = record.events().rev().find(|event| event.is(EventName::Merged))?;
    merged.more.get("merged_into")?.to_string().parse().ok()
}

/// The commits of the integration branch that the main branch lacks.
fn of_goal(project: &Project, repo: &Repo, board: &Board) -> Result<Compared, CommandError> {
    let to = head_of_integration(project, board)?;
    let from = match &board.config()?.main_branch {
        Some(name) => {
            let main: Branch = name
                .parse()
                .map_err(|error: BranchError| CommandError::refused("bad_branch", error.to_string()))?;
            repo.tip(&main)?.ok_or_else(|| no_branch(&main))?
        }
        None => repo.head()?.commit,
    };
    Ok(Compared::commits(repo.merge_base(&from, &to)?.unwrap_or(from), to))
}

fn head_of_integration(project: &Project, board: &Board) -> Result<Sha, CommandError> {
    let branch = integration_branch(board)?;
    integration_head(project, board)?.ok_or_else(|| no_branch(&branch))
}

fn no_branch(branch: &Branch) -> CommandError {
    let message = format!("there is no branch {branch}");
    CommandError::refused("no_branch", message).hint("liza doctor shows which branches Liza uses")
}

/// The lines of a patch, in the colours that git uses.
fn painted(patch: &str) -> String {
    patch.split('\n').map(painted_line).collect::<Vec<_>>().join("\n")
}

fn painted_line(line: &str) -> String {
    let style = match line.as_bytes() {
        [b'@', b'@', ..] => CYAN,
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => BOLD,
        [b'+', ..] => GREEN,
        [b'-', ..] => RED,
        _ if line.starts_with("diff ") => BOLD,
        _ => return visible(line).into_owned(),
    };
    paint(style, &visible(line))
}
