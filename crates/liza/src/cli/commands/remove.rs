//! `liza remove`: takes everything out of this repository that Liza put into it.

use liza_core::model::{AgentId, AgentRecord};
use liza_core::text::count;
use liza_team::engine::LivenessLock;
use liza_team::lifecycle::{Removal, carry_out_removal, plan_removal};
use liza_team::project::machine::runs_here;
use liza_team::project::{Project, now};
use liza_team::run::RunLock;
use serde_json::json;

use crate::cli::confirm::{at_terminal, says_yes};
use crate::cli::context::Context;
use crate::cli::contract_links;
use crate::cli::own_files::{advice, has_uncommitted, own_folders};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Take everything out of this repository that Liza put into it.
///
/// Deletes .liza/ with the blackboard and its history, worktrees, and Liza's branches and references. Work of agents that is
/// not merged is saved on rescue/ branches first. Your branches and files, the vision document and ~/.liza stay. Other
/// machines are not affected: a blackboard in a database and what is on the git remote stay, and are listed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza remove --dry-run
  liza remove --yes")]
pub(crate) struct Args {
    /// Only list what would be removed and what stays.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask. Required without a terminal.
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("remove")?;
    let project = context.project()?;
    let _lock = match args.dry_run {
        true => None,
        false => Some(alone(context, &project)?),
    };
    let plan = plan_removal(&project)?;
    let links = contract_links::made_by_liza(project.root());
    let (removed, kept) = (going(&plan, &links), staying(&project, &plan));
    let list = |title: &str, lines: &[String]| {
        let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
        format!("{title}{lines}")
    };
    let result = |done: bool, rescued: &[String]| json!({"removed": done, "what": removed, "kept": kept, "rescued": rescued});
    if args.dry_run {
        let text = format!("{}\n{}", list("would be removed:", &removed), list("stays:", &kept));
        return Ok(Reply::new(text, result(false, &[])).sentences());
    }
    if !args.yes {
        confirm(context, &list("Remove:", &removed))?;
    }
    let repo = project.repo()?;
    contract_links::unlink(repo)?;
    let rescued: Vec<String> =
        carry_out_removal(&project, &plan)?.iter().map(|rescue| rescue.branch.to_string()).collect();
    let saved = rescued.iter().map(|branch| format!("{branch} (work that was not merged)"));
    let kept: Vec<String> = kept.iter().cloned().chain(saved).collect();
    let text = format!("{}\n{}", list("removed:", &removed), list("stays:", &kept));
    Ok(Reply::new(text, result(true, &rescued)).sentences())
}

/// Keeps teams away, and refuses while an agent is at work.
fn alone(context: &Context, project: &Project) -> Result<RunLock, CommandError> {
    let lock = RunLock::take(project)?.map_err(|team| {
        let message = context.screen.local_time().in_text(&team.to_string());
        CommandError::refused("already_running", message).hint("liza stop")
    })?;
    if let Some(agent) = LivenessLock::running_agents(project.folder()).first() {
        return Err(not_alone(agent, "is at work in this project"));
    }
    // Agents without a supervisor are unknown if it cannot be read.
    let Ok(state) = project.store().snapshot() else { return Ok(lock) };
    let (now, folder) = (now(), project.folder());
    // Agents of other machines go on without this clone.
    let is_here = |entry: &AgentRecord| !project.store().is_in_database() || runs_here(folder, entry);
    let alive = |(agent, entry): &(&AgentId, &AgentRecord)| {
        let dead = entry
            .generation
            .is_some_and(|generation| LivenessLock::is_proven_dead(folder, **agent, generation));
        entry.holds(now) && is_here(entry) && !dead
    };
    match state.board.agents.ready().into_iter().flatten().find(alive) {
        Some((agent, _)) => Err(not_alone(agent, "is registered here, without a process")),
        None => Ok(lock),
    }
}

fn not_alone(agent: &AgentId, how: &str) -> CommandError {
    CommandError::refused("already_running", format!("{agent} {how}"))
        .hint(format!("to end it: liza deregister {agent}; to end all: liza stop --all"))
}

fn confirm(context: &Context, question: &str) -> Result<(), CommandError> {
    let refused = |message: &str| {
        CommandError::refused("not_confirmed", message)
            .hint("see what would go: liza remove --dry-run; do it: liza remove --yes")
    };
    match at_terminal(context) {
        false => Err(refused("this cannot be undone, and there is no terminal to ask at: it needs --yes")),
        true if says_yes(context, &format!("{question}\nThis cannot be undone. Continue?")) => Ok(()),
        true => Err(refused("nothing was removed")),
    }
}

/// The removed parts, in words.
fn going(plan: &Removal, links: &[&str]) -> Vec<String> {
    let mut removed = vec![plan.folder.display().to_string()];
    if !plan.tasks.is_empty() {
        let tasks = count(plan.tasks.len(), "task");
        removed
            .push(format!("worktrees and branches of {tasks}; unmerged work goes to rescue/ branches first"));
    }
    if plan.references > 0 {
        removed.push(format!(
            "{} below refs/liza/, with the ignored files and replaced commits that are kept there",
            count(plan.references, "reference")
        ));
    }
    if let Some((branch, _)) = &plan.merged_integration {
        removed.push(format!("branch {branch} (the main branch contains all of it)"));
    }
    if !links.is_empty() {
        removed.push(format!("the links {}", links.join(", ")));
    }
    removed.push("Liza's lines in .git/info/exclude".to_owned());
    removed
}

/// True if earlier work was saved on a branch.
fn has_rescue_branches(project: &Project) -> bool {
    let git = project.root().join(".git");
    let loose =
        std::fs::read_dir(git.join("refs/heads/rescue")).is_ok_and(|mut found| found.next().is_some());
    let packed = std::fs::read_to_string(git.join("packed-refs")).unwrap_or_default();
    loose || packed.contains(" refs/heads/rescue/")
}

/// The parts that stay, in words.
fn staying(project: &Project, plan: &Removal) -> Vec<String> {
    let mut kept = vec!["your branches and files".to_owned()];
    kept.extend(own_folders(project).map(|folder| match has_uncommitted(project, folder) {
        true => format!("{folder}/, which is not committed; {}", advice(folder)),
        false => format!("{folder}/"),
    }));
    if has_rescue_branches(project) {
        kept.push("rescue/ branches with work that was not merged".to_owned());
    }
    if let (Some(branch), Some(why)) = (&plan.kept_integration, &plan.unreadable) {
        kept.push(format!(
            "branch {branch}: the blackboard cannot be read, so it is not known to be merged ({why})"
        ));
    } else if let Some(branch) = &plan.kept_integration {
        kept.push(format!("branch {branch}: the main branch does not have all of it, or it is checked out"));
    }
    if let Some((address, name)) = project.store().database() {
        kept.push(format!(
            "the blackboard {name} in {address}, with its history; to use it here again: liza join {address} --project {name}"
        ));
    }
    if let Some(remote) = &plan.remote {
        let branch = &plan.integration;
        kept.push(format!(
            "on the git remote {remote}: branch {branch} and refs/liza/; to list them: git ls-remote {remote}"
        ));
    }
    kept
}
