//! `liza join`: uses the blackboard of a team in this clone.

use std::path::Path;
use std::time::Duration;

use liza_core::model::{Config, Sha};
use liza_git::{Branch, Git, Repo};
use liza_store::{Address, Store, installed_client};
use liza_team::engine::integration_branch;
use liza_team::project::EXCLUDED;
use serde_json::json;

use crate::cli::commands::config::note_accepted_programs;
use crate::cli::context::Context;
use crate::cli::shared_settings::note_unused_settings;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Join a team whose blackboard is in a database.
///
/// Run it in a clone of the team's repository. The address has no password: that comes from LIZA_STORE_URL or a password
/// file (PGPASSFILE). Fetches the integration branch, and excludes .liza/ and .worktrees/ from git.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza join postgres://liza@db.example/team
  liza join postgres://liza@db.example/team --project shop")]
pub(crate) struct Args {
    /// The database.
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The blackboard, if the database has several.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let repo = Repo::open(&Git::new(), &context.directory)?;
    let root = repo.root().to_owned();
    context.human_only_at(&root, "join")?;
    let place = root.join(".liza");
    if place.symlink_metadata().is_ok() {
        let message = format!("{} already exists", place.display());
        return Err(CommandError::refused("exists", message).hint("see what it is: liza status"));
    }
    let address = address(&args.address)?;
    note_accepted_programs(context, &repo);
    let store = Store::join_database(&root, &address, args.project.as_deref())?;
    let joined = prepare(&repo, &store);
    if joined.is_err() {
        // Only the file that names the database; the next try makes it again.
        let _ = std::fs::remove_dir_all(&place);
    }
    let branch = joined?;
    note_unused_settings(context, &store)?;
    let name = store.database().map(|(_, name)| name.to_owned()).unwrap_or_default();
    let said = format!(
        "joined {name} in {address}; work is merged to {branch}\nnext: liza status, then liza run --coders 2"
    );
    let result = json!({"project": name, "address": address.as_str(), "integration_branch": branch.as_str()});
    Ok(Reply::new(said, result))
}

/// Reads an address; its text is not repeated, since it could have a password.
pub(super) fn address(text: &str) -> Result<Address, CommandError> {
    installed_client()?;
    text.parse().map_err(|error: liza_store::AddressError| {
        CommandError::refused("bad_address", error.to_string())
            .hint("postgres://USER@HOST:PORT/DATABASE, without a password")
    })
}

/// Gets the integration branch from the team's remote.
fn prepare(repo: &Repo, store: &Store) -> Result<Branch, CommandError> {
    let board = store.snapshot()?.board;
    let config = board.config()?;
    let branch = integration_branch(&board)?;
    repo.exclude(&EXCLUDED)?;
    match &config.remote {
        Some(remote) => {
            let recorded = board.goal.ready().and_then(|goal| goal.integration_head.as_ref());
            fetch_integration(repo, config, remote, &branch, recorded)?;
        }
        None if repo.tip(&branch)?.is_some() => {}
        None => {
            let message =
                format!("the team has no git remote (config.remote), and this clone has no branch {branch}");
            return Err(CommandError::refused("no_remote", message).hint(format!(
                "on the first machine: liza config remote origin && git push origin {branch}; then join again"
            )));
        }
    }
    Ok(branch)
}

fn fetch_integration(
    repo: &Repo,
    config: &Config,
    remote: &str,
    branch: &Branch,
    recorded: Option<&Sha>,
) -> Result<(), CommandError> {
    if !repo.remotes()?.iter().any(|(known, _)| known == remote) {
        let message = format!("the team uses the git remote {remote}, which this clone does not have");
        return Err(CommandError::refused("no_remote", message).hint(format!("git remote add {remote} URL")));
    }
    let limit = Duration::from_secs(config.remote_limit.0);
    let Some(head) = repo.work_remote(remote, limit).fetch_branch(branch)? else {
        let message = format!("{remote} has no branch {branch}");
        let hint = format!(
            "if it is the remote of this team (git remote -v), on the first machine: git push {remote} {branch}"
        );
        return Err(CommandError::refused("no_remote", message).hint(hint));
    };
    if let Some(recorded) = recorded
        && !(repo.has_commit(recorded)? && repo.is_ancestor(recorded, &head)?)
    {
        let message = format!(
            "{branch} on {remote} does not contain {}, which the team has merged: it may be another project's",
            recorded.short()
        );
        return Err(CommandError::refused("remote_rewound", message)
            .hint("which one it is: git remote -v; on the first machine: liza doctor"));
    }
    if repo.tip(branch)?.is_none() {
        repo.create_branch(branch, &head)?;
    }
    Ok(())
}

/// The name of the blackboard if none is given: that of the folder.
pub(super) fn default_name(root: &Path) -> String {
    root.file_name().map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned())
}
