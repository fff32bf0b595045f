//! `liza init`: a blackboard for a repository.
//!
//! The blackboard is made aside and moved into place as the last step, so a failure or a kill leaves no half of one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::model::{
    Alignment, Config, Goal, GoalStatus, Loaded, LogAction, LogEntry, Revision, Sha, Sprint, State, Timestamp,
};
use liza_core::text::one_line;
use liza_store::Store;
use serde_json::json;

use crate::contracts::VISION;
use crate::git::{Branch, BranchError, Git, Repo};
use crate::project::{EXCLUDED, now};

use crate::cli::context::Context;
use crate::cli::contract_links::{self, ContractLinks};
use crate::cli::spec_path;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Where the blackboard is made before it is moved to `.liza`.
const STAGE: &str = ".liza-init";

/// Make a blackboard for this repository.
///
/// Writes .liza/ in the root of the repository, makes the integration branch at the current commit if there is
/// none, and keeps .liza/ and .worktrees/ out of git's sight. CLAUDE.md, AGENTS.md and GEMINI.md become links to the
/// installed contract where there are none, out of git's sight as well: a project that wants its own deletes the link
/// and its line in .git/info/exclude.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza init \"Retry every API call with exponential backoff\"
  liza init \"Retry every API call\" --spec specs/retry.md --branch next
  liza init --template    # also after init: a vision document to fill in")]
pub(crate) struct Args {
    /// What is wanted, in a sentence or two; without it the planner waits for `liza goal new`.
    #[arg(allow_hyphen_values = true)]
    goal: Option<Text>,
    /// The same as --spec.
    #[arg(value_name = "SPEC", conflicts_with = "spec")]
    spec_ref: Option<String>,
    /// The vision document; specs/vision.md when absent.
    #[arg(long, value_name = "PATH")]
    spec: Option<String>,
    /// The branch that approved work is merged to.
    #[arg(long, value_name = "NAME", default_value = "integration")]
    branch: String,
    /// Write the vision document from a template if it is missing.
    #[arg(long)]
    template: bool,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("init")?;
    let repo = Repo::open(&Git::new(), &context.directory)?;
    let place = repo.root().join(".liza");
    let _turn = take_turn(repo.root());
    if place.join("state.yaml").exists() && args.template && args.goal.is_none() {
        return write_missing_vision(context);
    }
    if place.symlink_metadata().is_ok() {
        let message = format!("{} exists already", place.display());
        let hint = if place.join("state.yaml").symlink_metadata().is_err() {
            match place.join("state.yaml.prev").is_file() {
                true => "its state.yaml is gone; liza recover restores it",
                false => {
                    "its state.yaml is gone, and no copy of it is kept; move the folder away, then liza init"
                }
            }
        } else {
            "liza status shows what is there; liza goal new \"GOAL\" starts over"
        };
        return Err(CommandError::refused("exists", message).hint(hint));
    }
    let goal = Text::read_some(args.goal.clone(), context)?.unwrap_or_default();
    let plan = Plan::new(args, &goal, &repo)?;
    plan.carry_out(&repo, &place)?;
    let links = contract_links::link(&repo, &plan.branch, context.environment.home().as_deref());
    Ok(plan.tell(context, repo.root(), &links))
}

/// Makes a blackboard with that goal in a repository that this process has just made.
pub(crate) fn make(repo: &Repo, goal: &str) -> Result<(), CommandError> {
    let branch = "integration".to_owned();
    let args = Args { goal: None, spec_ref: None, spec: None, branch, template: false };
    Plan::new(args, goal, repo)?.carry_out(repo, &repo.root().join(".liza"))
}

/// What is going to be made, every question answered.
struct Plan {
    goal: String,
    spec: String,
    spec_missing: bool,
    branch: Branch,
    at: Sha,
    template: bool,
}

impl Plan {
    fn new(args: Args, goal: &str, repo: &Repo) -> Result<Self, CommandError> {
        let goal = goal.trim().to_owned();
        let named = args.spec.or(args.spec_ref);
        let spec = spec_path::within(repo.root(), named.as_deref().unwrap_or(spec_path::DEFAULT))?;
        let spec_missing = !spec_path::exists(repo.root(), &spec);
        if spec_missing && named.is_some() && !args.template {
            return Err(spec_path::missing(&spec).hint("write it first, or let --template write a beginning"));
        }
        let branch = args
            .branch
            .parse()
            .map_err(|error: BranchError| CommandError::refused("bad_branch", error.to_string()))?;
        let template = args.template && spec_missing;
        Ok(Self { goal, spec, spec_missing, branch, at: repo.head()?.commit, template })
    }

    /// Everything or nothing: whatever fails, what was made before is taken back.
    fn carry_out(&self, repo: &Repo, place: &Path) -> Result<(), CommandError> {
        let stage = repo.root().join(STAGE);
        // Left by an `init` that was killed: whoever still runs would have the turn.
        let _ = fs::remove_dir_all(&stage);
        let mut made = Made { repo, stage: stage.clone(), branch: None, files: Vec::new(), done: false };
        fs::create_dir(&stage).map_err(|error| failed("create", &stage, &error))?;
        let (state, log) = self.blackboard(now());
        Store::create(&stage, &state, &log)?;
        if repo.create_branch(&self.branch, &self.at)? {
            made.branch = Some(self);
        }
        if self.template {
            made.files = write_new(&repo.root().join(spec_path::file_of(&self.spec)), VISION)?;
        }
        repo.exclude(&EXCLUDED)?;
        fs::rename(stage.join(".liza"), place).map_err(|error| failed("create", place, &error))?;
        made.done = true;
        Ok(())
    }

    fn blackboard(&self, now: Timestamp) -> (State, LogEntry) {
        let mut state = State::default();
        let board = &mut state.board;
        board.revision = Revision(1);
        board.goal = Loaded::Ready(Goal {
            id: "goal-1".to_owned(),
            description: self.goal.clone(),
            spec_ref: Some(self.spec.clone()),
            created: Some(now),
            status: GoalStatus::InProgress,
        });
        board.agents = Loaded::Ready(Default::default());
        let integration_branch = self.branch.as_str().to_owned();
        board.config = Loaded::Ready(Config { integration_branch, ..Config::default() });
        board.sprint = Loaded::Ready(Sprint::begin(1, "goal-1", now));
        board.circuit_breaker = Loaded::Ready(Default::default());
        board.discovered = Loaded::Ready(Vec::new());
        board.handoff = Loaded::Ready(Default::default());
        let said = if self.goal.is_empty() { "no goal stated yet" } else { &self.goal };
        state.journal.alignment_history.push(Alignment {
            timestamp: now,
            event: "initialization".to_owned(),
            summary: format!("Initial alignment: {said}"),
        });
        let log = LogEntry {
            timestamp: now,
            agent: "human".to_owned(),
            action: LogAction::GoalCreated.name().to_owned(),
            task: None,
            detail: one_line(said, 300),
        };
        (state, log)
    }

    fn tell(&self, context: &Context, root: &Path, links: &ContractLinks) -> Reply {
        let mut warnings = Vec::new();
        if self.spec_missing && !self.template {
            warnings.push(format!(
                "there is no {} yet, which the planner needs: liza init --template writes a beginning",
                self.spec
            ));
        }
        if self.goal.is_empty() {
            warnings
                .push("the goal is empty, so the planner waits: liza goal new \"GOAL\" states it".to_owned());
        }
        for warning in &warnings {
            context.screen.note(&format!("liza: {warning}"));
        }
        let next = match () {
            () if self.goal.is_empty() => "liza goal new \"GOAL\"".to_owned(),
            () if self.template => format!("fill in {}, then liza run", self.spec),
            () if self.spec_missing => format!("write {}, then liza run", self.spec),
            () => "liza run, or liza add-task for a task of your own".to_owned(),
        };
        let text = format!(
            "blackboard          {}\nintegration branch  {}\ncontract            {}\nnext                {next}",
            root.join(".liza").display(),
            self.branch,
            links.in_words(),
        );
        let result = json!({
            "goal": "goal-1",
            "sprint": "sprint-1",
            "root": root,
            "spec": self.spec,
            "integration_branch": self.branch.as_str(),
            "linked": links.as_json(),
            "warnings": warnings,
        });
        Reply::new(text, result).at(1)
    }
}

/// What has been made so far; taken back unless all is done.
struct Made<'r> {
    repo: &'r Repo,
    stage: PathBuf,
    branch: Option<&'r Plan>,
    files: Vec<PathBuf>,
    done: bool,
}

impl Drop for Made<'_> {
    /// Nobody is left to tell about a failure here; the error that led to it is told.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.stage);
        if self.done {
            return;
        }
        if let Some(plan) = self.branch {
            let _ = self.repo.delete_branch(&plan.branch, &plan.at);
        }
        for path in self.files.iter().rev() {
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
}

/// Keeps a second `init` of the same repository waiting as long as the result lives. Where the file system knows no
/// locks of folders, the move at the end still lets only one of them win.
fn take_turn(root: &Path) -> Option<fs::File> {
    let folder = fs::File::open(root).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// Writes a file that is not there, with its folders; gives what it made, outermost first.
fn write_new(path: &Path, text: &str) -> Result<Vec<PathBuf>, CommandError> {
    let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
    let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    made.reverse();
    let write = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        io::Write::write_all(&mut fs::File::create_new(path)?, text.as_bytes())
    };
    write().map_err(|error| failed("write", path, &error))?;
    made.push(path.to_owned());
    Ok(made)
}

/// Writes the vision document of a project that was begun without one.
fn write_missing_vision(context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let named = state.board.goal.ready().and_then(|goal| goal.spec_ref.clone());
    let spec = spec_path::within(project.root(), named.as_deref().unwrap_or(spec_path::DEFAULT))?;
    let path = project.root().join(spec_path::file_of(&spec));
    if path.exists() {
        let message = format!("{} is there already", spec_path::file_of(&spec));
        return Err(CommandError::refused("exists", message).hint("liza status shows what is there"));
    }
    write_new(&path, VISION)?;
    let text = format!("{spec} is there to be filled in; the planner reads it before it starts");
    Ok(Reply::new(text, json!({"spec": spec})).at(state.board.revision.0))
}

fn failed(action: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::refused("io", format!("cannot {action} {}: {error}", path.display()))
        .hint("nothing was changed")
}
