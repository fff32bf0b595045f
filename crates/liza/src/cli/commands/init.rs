//! `liza init`: creates the blackboard of a repository.
//!
//! The blackboard is built in a staging folder and moved into place last: a failure or a kill leaves no part
//! of it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_agents::contracts::vision_template;
use liza_core::model::{
    Alignment, Config, Goal, Loaded, LogAction, LogEntry, Revision, SandboxMin, Sha, Sprint, State, TaskId,
    Timestamp, WorktreePlace,
};
use liza_core::text::{count, one_line};
use liza_git::{Branch, Git, Head, RemovedWorktree, Repo, UntrackedFiles, UnusedTest};
use liza_status::alarms::VisionGap;
use liza_store::{Address, Store};
use liza_team::lifecycle::{create_on_remote, place_worktrees, try_remote};
use liza_team::project::{EXCLUDED, Project, now};
use liza_team::session::plan::would_have_rooms;
use serde_json::json;

use crate::cli::commands::config::note_accepted_programs;
use crate::cli::commands::join::{address, default_name};
use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::spec_path;
use crate::cli::starting_files::{
    failed, new_test, test_in_words, write_missing_vision, write_new, write_test,
};
use crate::cli::test_trial::TriedProposal;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use crate::recognition::collectors;
use crate::recognition::test_command::{self, SCRIPT};

/// The folder in which the blackboard is built before it is moved to `.liza`.
const STAGE: &str = ".liza-init";

/// Set up Liza in this repository.
///
/// Creates .liza/ in the root of the repository, creates the integration branch at the current commit if it is missing,
/// and excludes .liza/ and .worktrees/ from git. Changes none of your files; to take it all out again: liza remove.
///
/// An existing branch of that name is used if it is at the current commit, or with --adopt. Branches and worktrees of an
/// earlier blackboard are removed; what they contain beyond the integration branch is saved on rescue/ branches first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza init \"Retry every API call with exponential backoff\"
  liza init \"Retry every API call\" --spec specs/retry.md --branch next
  liza init \"Retry every API call\" --remote origin
  liza init --template    # a vision document to fill in; also works after init
  liza init --test        # tests every merge; also works after init")]
pub(crate) struct Args {
    /// What you want, in a sentence or two; without it, the planner waits for `liza goal new`.
    #[arg(allow_hyphen_values = true)]
    goal: Option<Text>,
    /// The same as --spec.
    #[arg(value_name = "SPEC", conflicts_with = "spec")]
    spec_ref: Option<String>,
    /// The vision document; default specs/vision.md.
    #[arg(long, value_name = "PATH")]
    spec: Option<String>,
    /// The branch that approved work is merged to.
    #[arg(long, value_name = "NAME", default_value = "integration")]
    branch: String,
    /// Use an existing branch of that name, even if it differs from the current commit.
    #[arg(long)]
    adopt: bool,
    /// The git remote through which several machines exchange work; its integration branch must take pushes.
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
    /// Keep the blackboard in this PostgreSQL database, for a team on several machines; others join with `liza join`.
    #[arg(long, value_name = "ADDRESS")]
    store: Option<String>,
    /// The name of the blackboard in the database; default: the name of the folder.
    #[arg(long, value_name = "NAME", requires = "store")]
    project: Option<String>,
    /// Write the vision document from a template if it is missing.
    #[arg(long)]
    template: bool,
    /// Write scripts/integration-test.sh with the test command of this project, for you to commit, and try it once; exits 1 if
    /// it fails.
    #[arg(long)]
    test: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let repo = Repo::open(&Git::new(), &context.directory)?;
    context.human_only_at(repo.root(), "init")?;
    let place = repo.root().join(".liza");
    let _turn = take_turn(repo.root());
    let has_board = ["state.yaml", "store.yaml"].iter().any(|name| place.join(name).exists());
    if has_board && args.goal.is_none() {
        match (args.template, args.test) {
            (true, _) => return write_missing_vision(context),
            (false, true) => return write_test(context),
            (false, false) => {}
        }
    }
    if place.symlink_metadata().is_ok() {
        let message = format!("Liza is set up here already: {} exists", place.display());
        let hint = if !has_board && place.join("state.yaml").symlink_metadata().is_err() {
            match place.join("state.yaml.prev").is_file() {
                true => "its state.yaml is gone; restore it: liza recover",
                false => {
                    "its state.yaml is gone, and no copy of it is kept; move the folder away, then liza init"
                }
            }
        } else {
            "see its state: liza status; start over: liza goal new \"GOAL\""
        };
        return Err(CommandError::refused("exists", message).hint(hint));
    }
    let goal = Text::read_some(args.goal.clone(), context)?.unwrap_or_default();
    let plan = Plan::new(args, &goal, &repo)?;
    note_accepted_programs(context, &repo);
    let earlier = plan.carry_out(&repo, &place, &context.program)?;
    let unused = repo.unused_test(&plan.branch)?;
    let project = Project::open(repo.root())?;
    if let Err(error) = place_worktrees(&project) {
        context.screen.note(&format!("liza: {error}; again: liza config worktrees outside"));
    }
    let proposal = TriedProposal::new(context, &project, plan.test);
    // All is created: a test that cannot be tried takes nothing back.
    let proposal = proposal.unwrap_or_else(|error| {
        context.screen.note(&format!("liza: the test could not be tried: {}", error.message));
        TriedProposal::default()
    });
    Ok(plan.reply(context, repo.root(), &earlier, unused, &proposal))
}

/// Creates a blackboard with that goal in a repository that this process has just created.
pub(crate) fn make(repo: &Repo, goal: &str, liza: &Path) -> Result<(), CommandError> {
    let branch = "integration".to_owned();
    let args = Args {
        goal: None,
        spec_ref: None,
        spec: None,
        branch,
        adopt: false,
        remote: None,
        store: None,
        project: None,
        template: false,
        test: false,
    };
    Plan::new(args, goal, repo)?.carry_out(repo, &repo.root().join(".liza"), liza).map(drop)
}

/// The checked plan of everything to create.
struct Plan {
    goal: String,
    spec: String,
    spec_missing: bool,
    branch: Branch,
    /// The branch that is checked out.
    main_branch: Option<String>,
    /// The remote, and true if it has the integration branch already.
    remote: Option<(String, bool)>,
    /// The database, and the name of the blackboard in it.
    store: Option<(Address, String)>,
    at: Sha,
    /// The head of the integration branch: that of an existing one, else the current commit.
    head: Sha,
    /// The distance of an existing branch from the current commit.
    distance: Option<String>,
    /// The number of files with uncommitted changes, which agents do not see.
    uncommitted: usize,
    template: bool,
    test: bool,
    /// A tool of the project that would collect agents' files below its root.
    collector: Option<&'static str>,
}

/// The remains of a task of an earlier blackboard.
struct EarlierTask {
    task: TaskId,
    removed: RemovedWorktree,
}

impl fmt::Display for EarlierTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, removed } = self;
        match (&removed.branch_in_use, &removed.rescued) {
            (Some(path), _) => write!(f, "task/{task} remains: it is checked out in {}", path.display()),
            (None, Some(rescue)) => write!(f, "task/{task} removed; its work is saved on {}", rescue.branch),
            (None, None) => write!(f, "task/{task} removed; it had no work of its own"),
        }
    }
}

impl Plan {
    fn new(args: Args, goal: &str, repo: &Repo) -> Result<Self, CommandError> {
        let goal = goal.trim().to_owned();
        let named = args.spec.or(args.spec_ref);
        let spec = spec_path::within(repo.root(), named.as_deref().unwrap_or(spec_path::DEFAULT))?;
        let spec_missing = !spec_path::exists(repo.root(), &spec);
        if spec_missing && named.is_some() && !args.template {
            return Err(spec_path::missing(&spec)
                .hint("write the file first, or add --template to start from a template"));
        }
        let store = match &args.store {
            Some(text) => Some((address(text)?, args.project.unwrap_or_else(|| default_name(repo.root())))),
            None => None,
        };
        let branch = integration_branch(&args.branch, repo)?;
        let template = args.template && spec_missing;
        let head = repo.head()?;
        let there = match &args.remote {
            Some(name) => remote_head(repo, name, &branch)?,
            None => None,
        };
        let tip = integration_tip(repo, &branch, there.as_ref())?;
        let distance = distance(repo, tip.as_ref(), &head)?;
        if let Some(distance) = distance.as_ref().filter(|_| !args.adopt) {
            let message = format!("branch {branch} already exists: it is {distance}");
            let hint = "use it as it is: liza init ... --adopt; use another branch: --branch NAME".to_owned();
            return Err(CommandError::refused("branch_exists", message).hint(hint));
        }
        let main_branch = head.branch.filter(|name| *name != branch.as_str());
        let at = there.clone().unwrap_or(head.commit);
        let head = tip.unwrap_or_else(|| at.clone());
        let uncommitted = uncommitted_files(repo, spec_path::file_of(&spec));
        let remote = args.remote.map(|name| (name, there.is_some()));
        Ok(Self {
            goal,
            spec,
            spec_missing,
            branch,
            main_branch,
            remote,
            store,
            at,
            head,
            distance,
            uncommitted,
            template,
            test: args.test,
            // Machines that share a database differ.
            collector: collectors::find(repo.root()).filter(|_| args.store.is_none()),
        })
    }

    /// Creates everything or nothing: after a failure, the earlier steps are undone.
    fn carry_out(&self, repo: &Repo, place: &Path, liza: &Path) -> Result<Vec<EarlierTask>, CommandError> {
        let stage = repo.root().join(STAGE);
        // Left by an `init` that was killed: a running one would hold the lock.
        let _ = fs::remove_dir_all(&stage);
        let mut made = Made { repo, stage: stage.clone(), branch: None, files: Vec::new(), done: false };
        fs::create_dir(&stage).map_err(|error| failed("create", &stage, &error))?;
        // Machines that share a database differ.
        let has_rooms = self.store.is_none() && would_have_rooms(repo, &stage, liza);
        let sandbox_min = if has_rooms { SandboxMin::Isolated } else { SandboxMin::default() };
        let (state, log) = self.blackboard(now(), sandbox_min);
        if self.store.is_none() {
            Store::create(&stage, &state, &log)?;
        }
        if repo.create_branch(&self.branch, &self.at)? {
            made.branch = Some(self);
        }
        if self.template {
            let path = repo.root().join(spec_path::file_of(&self.spec));
            made.files = write_new(&path, &vision_template(&self.goal))?;
        }
        if self.test && !repo.root().join(SCRIPT).exists() {
            made.files.extend(new_test(repo.root())?);
        }
        repo.exclude(&EXCLUDED)?;
        let earlier = remove_earlier_tasks(repo, &self.branch)?;
        if let Some((name, false)) = &self.remote {
            create_on_remote(repo, name, &self.branch, &self.head)?;
        }
        // The last step but one: it cannot be undone here.
        if let Some((address, name)) = &self.store {
            Store::create_in_database(&stage, address, name, &state, &log)?;
        }
        fs::rename(stage.join(".liza"), place).map_err(|error| self.not_placed(place, &error))?;
        made.done = true;
        Ok(earlier)
    }

    /// The last step failed; the blackboard in a database stays.
    fn not_placed(&self, place: &Path, error: &io::Error) -> CommandError {
        let failed = failed("create", place, error);
        // The branch was undone, and without a remote `join` cannot get it.
        let branch = match &self.remote {
            Some(_) => String::new(),
            None => format!("git branch {} {} && ", self.branch, self.head),
        };
        match &self.store {
            Some((address, name)) => failed.hint(format!(
                "the blackboard exists in the database; to use it: {branch}liza join {address} --project {name}"
            )),
            None => failed,
        }
    }

    fn blackboard(&self, now: Timestamp, sandbox_min: SandboxMin) -> (State, LogEntry) {
        let mut state = State::default();
        let board = &mut state.board;
        board.revision = Revision(1);
        board.goal = Loaded::Ready(Goal {
            spec_ref: Some(self.spec.clone()),
            integration_head: Some(self.head.clone()),
            ..Goal::begin(1, &self.goal, now)
        });
        board.agents = Loaded::Ready(Default::default());
        let integration_branch = self.branch.as_str().to_owned();
        let main_branch = self.main_branch.clone();
        let remote = self.remote.as_ref().map(|(name, _)| name.clone());
        let worktrees = self.collector.map_or(WorktreePlace::Inside, |_| WorktreePlace::Outside);
        let config =
            Config { integration_branch, main_branch, remote, sandbox_min, worktrees, ..Config::default() };
        board.config = Loaded::Ready(config);
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

    fn reply(
        &self,
        context: &Context,
        root: &Path,
        earlier: &[EarlierTask],
        unused: Option<UnusedTest>,
        proposal: &TriedProposal,
    ) -> Reply {
        let mut warnings = Vec::new();
        if self.spec_missing && !self.template {
            warnings.push(format!(
                "{}; start from a template: liza init --template",
                VisionGap::Missing.problem(&self.spec)
            ));
        }
        if self.goal.is_empty() {
            warnings.push(
                "the planner waits because there is no goal; state one: liza goal new \"GOAL\"".to_owned(),
            );
        }
        if self.uncommitted > 0 {
            warnings.push(format!(
                "{} with uncommitted changes, which the agents do not see: they start from {}. To bring them: commit them, then liza sync",
                count(self.uncommitted, "file"),
                self.head.short()
            ));
        }
        if self.store.is_some() && self.remote.is_none() {
            warnings.push(
                "without --remote, other machines cannot take part: they exchange work through a git remote"
                    .to_owned(),
            );
        }
        for warning in &warnings {
            context.screen.note(&format!("liza: {warning}"));
        }
        let next = match () {
            () if self.goal.is_empty() => "liza goal new \"GOAL\", then liza run".to_owned(),
            () if self.template => format!("fill in {}, then liza run", self.spec),
            () if self.spec_missing => format!("write {}, then liza run", self.spec),
            () => "liza run; add a task of your own: liza add \"TEXT\"".to_owned(),
        };
        let distance = self.distance.as_ref().map(|distance| format!(", {distance}")).unwrap_or_default();
        let earlier: Vec<String> = earlier.iter().map(ToString::to_string).collect();
        let test = test_in_words(root, self.test, unused);
        let old: String = earlier.iter().map(|task| format!("earlier task        {task}\n")).collect();
        let place = self.collector.map_or_else(String::new, |tool| {
            format!(
                "worktrees           outside the project: {tool} would collect the agents' files below it\n"
            )
        });
        let text = format!(
            "blackboard          {}\nintegration branch  {}{distance}\n{old}{place}integration test    {test}\n{}next                {next}",
            self.place(root),
            self.branch,
            proposal.lines(),
        );
        let result = json!({
            "goal": "goal-1",
            "sprint": "sprint-1",
            "root": root,
            "spec": self.spec,
            "integration_branch": self.branch.as_str(),
            "earlier_tasks": earlier,
            "test_command": test_command::find(root),
            "proposed_settings": proposal.settings(),
            "trial": proposal.trial(),
            "warnings": warnings,
        });
        Reply::new(text, result).at(1).exit(proposal.exit())
    }

    /// The place of the blackboard, and the way for others to use it.
    fn place(&self, root: &Path) -> String {
        match &self.store {
            Some((address, name)) => {
                format!("{name} in {address}; on the other machines: liza join {address} --project {name}")
            }
            None => root.join(".liza").display().to_string(),
        }
    }
}

/// Everything that was created so far; removed on drop unless all is done.
struct Made<'r> {
    repo: &'r Repo,
    stage: PathBuf,
    branch: Option<&'r Plan>,
    files: Vec<PathBuf>,
    done: bool,
}

impl Drop for Made<'_> {
    /// Failures here are not reported; the error that caused the cleanup is.
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

/// The branch that approved work is merged to, if git can also create the branches of tasks.
fn integration_branch(name: &str, repo: &Repo) -> Result<Branch, CommandError> {
    let bad = |message: String| CommandError::refused("bad_branch", message);
    let branch = Branch::for_integration(name).map_err(|error| bad(error.to_string()))?;
    match repo.blocking_branch()? {
        None => Ok(branch),
        Some(name) => {
            let message = format!("there is a branch {name}, so git cannot create {name}/… for tasks");
            Err(bad(message).hint(format!("git branch -m {name} NEW-NAME")))
        }
    }
}

/// The head of the integration branch on a remote that can be used, if it has one.
fn remote_head(repo: &Repo, name: &str, branch: &Branch) -> Result<Option<Sha>, CommandError> {
    if !repo.remotes()?.iter().any(|(known, _)| known == name) {
        let message = format!("there is no git remote {name}");
        return Err(CommandError::refused("no_remote", message).hint(format!("git remote add {name} URL")));
    }
    Ok(try_remote(repo, name, branch)?)
}

/// The head of an existing integration branch; the one here must be where that of the remote is.
fn integration_tip(repo: &Repo, branch: &Branch, there: Option<&Sha>) -> Result<Option<Sha>, CommandError> {
    match (repo.tip(branch)?, there) {
        (Some(here), Some(there)) if here != *there => {
            let message =
                format!("branch {branch} is at {} here and at {} on the remote", here.short(), there.short());
            Err(CommandError::refused("branch_exists", message)
                .hint("make them the same with git pull or git push, or use another branch: --branch NAME"))
        }
        (here, there) => Ok(here.or_else(|| there.cloned())),
    }
}

/// The distance of an existing branch from the current commit; `None` if it does not exist or is there.
fn distance(repo: &Repo, tip: Option<&Sha>, head: &Head) -> Result<Option<String>, CommandError> {
    let Some(tip) = tip.filter(|tip| **tip != head.commit) else { return Ok(None) };
    let commits = |from: &Sha, to: &Sha| -> Result<String, CommandError> {
        Ok(count(usize::try_from(repo.count_commits(from, to)?).unwrap_or(usize::MAX), "commit"))
    };
    let (ahead, behind) = (commits(&head.commit, tip)?, commits(tip, &head.commit)?);
    let here = head.branch.clone().unwrap_or_else(|| head.commit.short().to_owned());
    Ok(Some(format!("{ahead} ahead of {here} and {behind} behind it")))
}

/// The files with changes that no commit has. Agents read the vision where it is, committed or not.
fn uncommitted_files(repo: &Repo, vision: &str) -> usize {
    // Only a note depends on it.
    let Ok(status) = repo.status(repo.root(), UntrackedFiles::Show) else { return 0 };
    status.changes.iter().filter(|change| change.path() != Path::new(vision)).count()
}

/// Removes branches and worktrees of an earlier blackboard, after saving their unmerged work: new tasks of
/// the same names must not continue them.
fn remove_earlier_tasks(repo: &Repo, integration: &Branch) -> Result<Vec<EarlierTask>, CommandError> {
    let mut earlier = Vec::new();
    for task in repo.inventory()?.into_keys() {
        let removed = repo.remove_worktree(&task, None, integration)?;
        earlier.push(EarlierTask { task, removed });
    }
    Ok(earlier)
}

/// Makes a second `init` of the same repository wait while the result lives. Where folders cannot be locked,
/// the move at the end still lets only one succeed.
fn take_turn(root: &Path) -> Option<fs::File> {
    let folder = fs::File::open(root).ok()?;
    folder.lock().ok()?;
    Some(folder)
}
