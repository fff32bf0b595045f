//! `liza finish`: takes the goal's result to the main branch, or to a pull request.

use liza_core::model::{GoalStatus, State, Status, TaskRecord};
use liza_core::text::count;
use liza_git::{Branch, BranchError, MergeError, Remote};
use liza_report::markdown_line;
use liza_team::engine::Engine;
use liza_team::lifecycle::{FinishOutcome, GoalResult, goal_result, merge_into_main, publish, record_taken};
use liza_team::observe::last_run::last_run;
use liza_team::project::Project;
use serde_json::json;

use crate::cli::confirm::{ask, at_terminal};
use crate::cli::context::Context;
use crate::cli::interrupted_moves::settle_interrupted;
use crate::cli::own_files::not_committed;
use crate::cli::pull_request::{Forge, PullRequest};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Take the result: merge it into your main branch, or open a pull request.
///
/// Asks which of the two in a terminal; elsewhere one of the options is required. The main branch is config.main_branch,
/// recorded by liza init. A pull request is opened with gh or glab if one of them is installed; otherwise the branch is
/// pushed, and you open it yourself. Your uncommitted changes stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza diff             # what you would take
  liza finish --merge
  liza finish --pr")]
pub(crate) struct Args {
    /// Merge the integration branch into the main branch, here.
    #[arg(long, conflicts_with = "pr")]
    merge: bool,
    /// Push the integration branch and open a pull request.
    #[arg(long)]
    pr: bool,
    /// The remote branch of a pull request; default liza/GOAL.
    #[arg(long, value_name = "BRANCH", requires = "pr")]
    head: Option<String>,
    /// Take what is merged so far, although the goal is not reached.
    #[arg(long)]
    unfinished: bool,
}

enum Way {
    Merge,
    PullRequest,
    Nothing,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("finish")?;
    let project = context.project()?;
    settle_interrupted(context, &project)?;
    let engine = context.engine(&project)?;
    let result = goal_result(&engine)?;
    let main = main_branch(&project, &result)?;
    let has_it = has_result(&engine, &result, &main)?;
    check_reached(&project, &result, has_it, args.unfinished)?;
    let way = match (args.merge, args.pr) {
        (true, _) => Way::Merge,
        (_, true) => Way::PullRequest,
        // Nothing to ask: the merge finds that there is nothing to do.
        (false, false) if has_it => Way::Merge,
        (false, false) => asked(context, &engine, &result, &main)?,
    };
    match way {
        Way::Merge => merge(context, &engine, &result, &main),
        Way::Nothing => {
            let text = "nothing was taken; whenever you want it: liza finish";
            Ok(Reply::new(text, json!({"goal": result.goal, "way": null})))
        }
        Way::PullRequest => {
            let head = args.head.unwrap_or_else(|| format!("liza/{}", result.goal));
            open_pull_request(context, &engine, &result, (&main, &branch(&head)?))
        }
    }
}

/// True if the main branch has everything that is merged.
fn has_result(engine: &Engine<'_>, result: &GoalResult, main: &Branch) -> Result<bool, CommandError> {
    let repo = engine.repo()?;
    match repo.tip(main)? {
        Some(tip) => Ok(repo.is_ancestor(&result.head, &tip)?),
        None => Ok(false),
    }
}

fn check_reached(
    project: &Project,
    result: &GoalResult,
    has_it: bool,
    unfinished: bool,
) -> Result<(), CommandError> {
    match result.status {
        GoalStatus::Completed => return Ok(()),
        GoalStatus::InProgress | GoalStatus::Aborted if unfinished => return Ok(()),
        GoalStatus::InProgress | GoalStatus::Aborted => {}
    }
    let state = project.store().snapshot()?;
    let is_open = |status: Option<Status>| status.is_some_and(|status| !status.is_terminal());
    let open = state.board.summaries().filter(|task| is_open(task.status)).count();
    let to_judge = open == 0 && !state.board.tasks.is_empty() && result.status == GoalStatus::InProgress;
    let tasks = match open {
        0 if state.board.tasks.is_empty() => "no task is planned yet".to_owned(),
        0 if to_judge => "all tasks have ended, but the planner has not judged the goal yet".to_owned(),
        open => format!("it has {}", count(open, "open task")),
    };
    let message = match has_it {
        true => format!("{} is {}: {tasks}, and there is nothing new to take", result.goal, result.status),
        false => format!("{} is {}: {tasks}", result.goal, result.status),
    };
    let hint = match (has_it, result.status) {
        (false, _) if to_judge => {
            let run = last_run(project).run;
            format!("let the planner judge it: {run}; take what is merged now: liza finish --unfinished")
        }
        (false, _) => "take what is merged so far: liza finish --unfinished".to_owned(),
        (true, GoalStatus::Aborted) => "state another goal: liza goal new \"GOAL\"".to_owned(),
        (true, GoalStatus::InProgress | GoalStatus::Completed) => {
            format!("see what is next: liza status; start the team: {}", last_run(project).run)
        }
    };
    Err(CommandError::refused("not_reached", message).hint(hint))
}

/// The recorded main branch, or the one that is checked out.
fn main_branch(project: &Project, result: &GoalResult) -> Result<Branch, CommandError> {
    let state = project.store().snapshot()?;
    let recorded = state.board.config()?.main_branch.clone();
    let here = || project.repo().ok()?.head().ok()?.branch;
    let refused =
        |message: String| CommandError::refused("no_branch", message).hint("liza config main_branch NAME");
    let name = recorded.or_else(here).ok_or_else(|| refused("the main branch is not known".to_owned()))?;
    if name == result.integration.as_str() {
        return Err(refused(format!("{name} is the integration branch itself")));
    }
    branch(&name)
}

fn branch(name: &str) -> Result<Branch, CommandError> {
    name.parse().map_err(|error: BranchError| CommandError::refused("bad_branch", error.to_string()))
}

fn asked(
    context: &Context,
    engine: &Engine<'_>,
    result: &GoalResult,
    main: &Branch,
) -> Result<Way, CommandError> {
    let can_push = engine.repo()?.remote_of(main)?.is_some();
    if !at_terminal(context) {
        let ways = if can_push { "liza finish --merge, or liza finish --pr" } else { "liza finish --merge" };
        return Err(CommandError::refused(
            "no_choice",
            "without a terminal to ask at, an option says how to take the result",
        )
        .hint(ways));
    }
    context.screen.note(&format!("{}: {}", result.goal, result.title));
    let what = match commits_to_take(engine, result, main) {
        Some(commits) => format!("{} of {}", count(commits, "commit"), result.integration),
        None => result.integration.to_string(),
    };
    let question = match can_push {
        true => {
            format!(
                "Merge {what} into {main} (m), push it and open a pull request (p), or do nothing (N)? [m/p/N]"
            )
        }
        false => format!("Merge {what} into {main}? [y/N]"),
    };
    match (ask(context, &question).as_str(), can_push) {
        ("m" | "merge", _) | ("y" | "yes", false) => Ok(Way::Merge),
        ("p" | "pr", true) => Ok(Way::PullRequest),
        _ => Ok(Way::Nothing),
    }
}

/// The number of commits that the main branch gains, besides that of the merge itself.
fn commits_to_take(engine: &Engine<'_>, result: &GoalResult, main: &Branch) -> Option<usize> {
    let repo = engine.repo().ok()?;
    let main = repo.tip(main).ok()??;
    usize::try_from(repo.count_commits(&main, &result.head).ok()?).ok()
}

fn merge(
    context: &Context,
    engine: &Engine<'_>,
    result: &GoalResult,
    main: &Branch,
) -> Result<Reply, CommandError> {
    let taken = commits_to_take(engine, result, main);
    let (text, head, commits) = match context.reported(engine, merge_into_main(engine, result, main))? {
        FinishOutcome::Merged { head, commits } => {
            let own = taken.unwrap_or(usize::try_from(commits).unwrap_or(usize::MAX));
            let commits_text = count(own, "commit");
            let what = match result.status {
                GoalStatus::Completed => format!("the result of {}", result.goal),
                GoalStatus::InProgress | GoalStatus::Aborted => "what is finished so far".to_owned(),
            };
            let head_text = head.short();
            let text =
                format!("merged {what} into {main}: {commits_text}, now at {head_text}\n{}", next(result));
            (text, head, commits)
        }
        FinishOutcome::UpToDate => (up_to_date(result, main), result.head.clone(), 0),
        FinishOutcome::Failed(error) => return Err(not_merged(result, main, &error)),
    };
    let left = not_committed(engine.project());
    let text = std::iter::once(text).chain(left.iter().cloned()).collect::<Vec<_>>().join("\n");
    let result = json!({"goal": result.goal, "way": "merge", "main_branch": main.as_str(), "head": head, "commits": commits});
    Ok(Reply::new(text, result))
}

/// The main branch has everything already.
fn up_to_date(result: &GoalResult, main: &Branch) -> String {
    let what = match result.status {
        GoalStatus::Completed => format!("{main} already contains the result of {}", result.goal),
        GoalStatus::InProgress | GoalStatus::Aborted => {
            format!("nothing to take: {main} already contains everything that is merged so far")
        }
    };
    format!("{what}\n{}", next(result))
}

/// The next step of a person after taking the result.
fn next(result: &GoalResult) -> &'static str {
    match result.status {
        GoalStatus::Completed | GoalStatus::Aborted => "next goal: liza goal new \"GOAL\"",
        GoalStatus::InProgress => "the goal goes on: liza status",
    }
}

fn not_merged(result: &GoalResult, main: &Branch, error: &MergeError) -> CommandError {
    let message = format!("{} cannot be merged into {main}: {error}", result.integration);
    let hint = match error {
        MergeError::Conflict { .. } => {
            let integration = &result.integration;
            format!(
                "{main} is unchanged. Resolve it: git switch {integration} && git merge {main}; \
                 then liza accept-integration, liza finish"
            )
        }
        MergeError::UpdateFailed(_) => {
            format!("{main} is unchanged; when the cause is gone: liza finish --merge")
        }
        MergeError::NoBranch { .. }
        | MergeError::Unrelated
        | MergeError::BranchMoved
        | MergeError::CheckoutRefused { .. }
        | MergeError::Git(_) => {
            format!("{main} is unchanged; merge by hand: git merge {}", result.integration)
        }
    };
    CommandError::refused("not_merged", message).hint(hint).exit(Exit::Git)
}

fn open_pull_request(
    context: &Context,
    engine: &Engine<'_>,
    result: &GoalResult,
    (main, head): (&Branch, &Branch),
) -> Result<Reply, CommandError> {
    let remote = engine.repo()?.remote_of(main)?.ok_or_else(|| {
        CommandError::refused("no_remote", "this repository has no remote to push to")
            .hint("git remote add origin ADDRESS, or take it here: liza finish --merge")
    })?;
    let taken = context.reported(engine, publish(engine, result, (&remote, head)))?;
    let pushed = format!("{} is pushed to {} as {head}", result.integration, remote.name);
    let search_path = context.environment.raw("PATH").unwrap_or_default();
    let Some(forge) = Forge::for_remote(&remote.url, search_path) else {
        context.reported(engine, record_taken(engine, taken))?;
        let text =
            format!("{pushed}\nneither gh nor glab is installed: open the pull request on the website");
        return Ok(Reply::new(text, answer(result, &remote, head, None)));
    };
    let body = description(&engine.project().store().snapshot()?, context);
    let request = PullRequest { base: main.as_str(), head: head.as_str(), title: &result.title, body: &body };
    match forge.open(engine.project().root(), &request) {
        Ok(address) => {
            context.reported(engine, record_taken(engine, taken))?;
            let text = format!("{pushed}\npull request: {address}");
            Ok(Reply::new(text, answer(result, &remote, head, Some(&address))))
        }
        Err(reason) => Err(CommandError::refused("no_pull_request", format!("{pushed}; {reason}"))
            .hint(format!("try again: liza finish --pr; or open it yourself, from {head} into {main}"))),
    }
}

fn answer(result: &GoalResult, remote: &Remote, head: &Branch, address: Option<&str>) -> serde_json::Value {
    json!({
        "goal": result.goal,
        "way": "pr",
        "remote": remote.name,
        "branch": head.as_str(),
        "head": result.head,
        "address": address,
    })
}

fn commit(record: &TaskRecord) -> String {
    record.review_commit.as_ref().map(|commit| commit.short().to_owned()).unwrap_or_default()
}

/// The result of the validation and the beginning of its receipt's name.
fn validation(record: &TaskRecord) -> String {
    let Some(validated) = &record.validated else { return "none".to_owned() };
    let receipt = validated.receipt.as_deref().and_then(|receipt| receipt.get(..12));
    let receipt = receipt.map(|receipt| format!(", receipt {receipt}")).unwrap_or_default();
    format!("{}: {}{receipt}", validated.result, count(validated.commands.len(), "command"))
}

fn approvers(record: &TaskRecord) -> String {
    let several = record.approvals.iter().flatten().map(|approval| approval.agent.to_string());
    let mut names: Vec<String> = several.chain(record.approved_by.map(|by| by.to_string())).collect();
    names.dedup();
    names.join(", ")
}

/// The text of the pull request: the goal, each task with its approver, and how each was judged.
fn description(state: &State, context: &Context) -> String {
    let masker = context.environment.masker();
    let line = |text: &str| markdown_line(text, 200, &masker);
    let goal = state.board.goal.ready().map(|goal| line(&goal.description)).unwrap_or_default();
    let mut lines = vec![goal, String::new(), "## Tasks".to_owned(), String::new()];
    let mut judged = Vec::new();
    for (id, slot) in &state.board.tasks {
        let Some(record) = slot.body.as_ref().map(|body| body.record()) else { continue };
        if record.status == Some(Status::Merged) {
            let by = record.approved_by.map(|by| format!(" (approved by {by})")).unwrap_or_default();
            let description = record.description.as_deref().map(line).unwrap_or_default();
            lines.push(format!("- **{id}**: {description}{by}"));
            judged.push(format!(
                "| {id} | {} | {} | {} |",
                commit(record),
                validation(record),
                approvers(record)
            ));
        }
    }
    lines.extend(
        ["", "## How it was judged", "", "| Task | Commit | Validation | Approved by |", "|---|---|---|---|"]
            .map(str::to_owned),
    );
    lines.extend(judged);
    lines.push("\n`liza verify` compares this history with its receipts (`refs/liza/receipts`).".to_owned());
    lines.join("\n")
}
