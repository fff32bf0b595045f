//! Everything between a claim and a running session: facts, prompt, files, command line.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use liza_core::model::{AgentId, Generation, Role, State, TaskId};
use liza_core::rules::triggers::planner_triggers;

use crate::contracts::Contract;
use crate::git::{MergePreview, Repo, UntrackedFiles};
use crate::project::{AGENT_GENERATION, AGENT_ID, Project, now};
use crate::prompts::{Brief, Job, Staleness, TrialMerge, prompt};
use crate::providers::{Provider, SessionDetails};
use crate::secrets::Masker;
use crate::work::integration_branch;

use super::event::Seat;
use super::order::Order;
use super::session::{Follower, Session};
use super::trouble::Trouble;

/// Whose session it is to be.
#[derive(Debug, Clone)]
pub(super) struct Who {
    pub(super) seat: Seat,
    pub(super) agent: AgentId,
    pub(super) generation: Generation,
    pub(super) provider: Provider,
    pub(super) interactive: bool,
    /// The program itself, which its sessions call and which is their helper.
    pub(super) liza: PathBuf,
}

/// The job that a coder's or code reviewer's task is.
pub(super) fn job_for(project: &Project, state: &State, who: &Who, task: &TaskId) -> Result<Job, Trouble> {
    let repo = project.repo()?;
    let worktree = repo.worktree_path(task);
    let task = task.clone();
    Ok(match who.agent.role() {
        Role::CodeReviewer => Job::Review { task, worktree },
        Role::Coder | Role::Planner => {
            let staleness = staleness(repo, state, &task);
            Job::Code { task, worktree, staleness, failure: None }
        }
    })
}

/// How far the integration branch has moved; nothing where git cannot tell, which the session can do without.
fn staleness(repo: &Repo, state: &State, task: &TaskId) -> Option<Staleness> {
    let base = state.board.body(task).ok()?.record.base_commit.clone()?;
    let head = repo.tip(&integration_branch(&state.board).ok()?).ok()??;
    let commits = u32::try_from(repo.count_commits(&base, &head).ok()?).unwrap_or(u32::MAX);
    let trial = match repo.preview_merge(&head, &repo.worktree_head(task).ok()??).ok()? {
        MergePreview::AlreadyMerged | MergePreview::FastForward | MergePreview::Clean { .. } => {
            TrialMerge::Clean
        }
        MergePreview::Conflict { files } => {
            TrialMerge::Conflicts(files.iter().map(|file| file.display().to_string()).collect())
        }
        MergePreview::Unrelated => return None,
    };
    Some(Staleness { commits, trial })
}

/// Writes the prompt down and starts the session.
pub(super) fn start(
    project: &Project,
    state: &State,
    who: &Who,
    job: &Job,
) -> Result<(Session, Follower), Trouble> {
    let task = match job {
        Job::Code { task, .. } | Job::Review { task, .. } => Some(task.clone()),
        Job::Plan { .. } => None,
    };
    let directory = match job {
        Job::Code { worktree, .. } | Job::Review { worktree, .. } => worktree.clone(),
        Job::Plan { .. } => project.root().to_owned(),
    };
    let text = prompt(state, &brief(project, who)?, job)?;
    let files = Files::make(project.folder(), who.agent, task.as_ref(), &text)?;
    let order = order(project, who, task.as_ref(), directory, &files)?;
    let checkout = matches!(job, Job::Plan { .. }).then(|| checkout(project, state)).flatten();
    let triggers = planner_triggers(state, now()).into_iter().map(|trigger| trigger.key).collect();
    let (mut session, follower) = Session::start(&who.liza, &order, task, state.board.revision)?;
    (session.triggers, session.checkout) = (triggers, checkout);
    Ok((session, follower))
}

fn brief(project: &Project, who: &Who) -> Result<Brief, Trouble> {
    let agent = who.agent;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Ok(Brief {
        project: project.root().to_owned(),
        state_file: project.folder().join("state.yaml"),
        specs: project.root().join("specs"),
        contract: Contract::load(project.root(), home.as_deref(), agent.role())?,
        program: who.liza.clone(),
        agent,
        now: now(),
    })
}

fn order(
    project: &Project,
    who: &Who,
    task: Option<&TaskId>,
    directory: PathBuf,
    files: &Files,
) -> Result<Order, Trouble> {
    let repo = project.repo()?;
    let worktree_git = repo.git_dir_of(&directory)?;
    let line = who.provider.command_line(&SessionDetails {
        agent: who.agent,
        task,
        directory: &directory,
        project: project.root(),
        git: repo.common_dir(),
        worktree_git: &worktree_git,
        prompt: &files.prompt,
        interactive: who.interactive,
    })?;
    let mut environment = line.environment;
    name_committer(repo, &mut environment);
    environment.push((AGENT_ID.to_owned(), who.agent.to_string()));
    environment.push((AGENT_GENERATION.to_owned(), who.generation.to_string()));
    let input = if line.on_stdin { files.prompt.clone() } else { PathBuf::from("/dev/null") };
    Ok(Order {
        program: line.program,
        arguments: line.arguments,
        directory,
        environment,
        input: (!who.interactive).then_some(input),
        output: (!who.interactive).then(|| files.output.clone()),
        scratch: project.folder().join("tmp").join(who.agent.to_string()),
        turn: project.folder().join("agent-locks").join(format!("{}.session", who.agent)),
        events: who.provider.events(),
    })
}

/// Says in whose name git commits here: some clients hide the user's own git configuration from their tools. What is
/// said already stands, and what git does not know is left to it.
fn name_committer(repo: &Repo, environment: &mut Vec<(String, String)>) {
    let Ok(identity) = repo.identity() else { return };
    let Some((name, email)) = identity.strip_suffix('>').and_then(|identity| identity.rsplit_once(" <"))
    else {
        return;
    };
    for (variable, value) in [
        ("GIT_AUTHOR_NAME", name),
        ("GIT_AUTHOR_EMAIL", email),
        ("GIT_COMMITTER_NAME", name),
        ("GIT_COMMITTER_EMAIL", email),
    ] {
        let given = environment.iter().any(|(other, _)| other == variable);
        if !given && std::env::var_os(variable).is_none() {
            environment.push((variable.to_owned(), value.to_owned()));
        }
    }
}

/// What the project's own checkout looks like; nothing where git cannot tell.
pub(super) fn checkout(project: &Project, state: &State) -> Option<String> {
    let repo = project.repo().ok()?;
    let status = repo.status(project.root(), UntrackedFiles::Show).ok()?;
    let about = |path: &Path| {
        let data = fs::symlink_metadata(project.root().join(path)).ok();
        data.map(|data| (data.len(), data.modified().ok()))
    };
    let files: Vec<_> = status.changes.iter().map(|change| (change.path(), about(change.path()))).collect();
    // Merges move the integration branch, and a checkout of it goes with it.
    let integration = integration_branch(&state.board).ok()?;
    let head = status.head.filter(|_| status.branch.as_deref() != Some(integration.as_str()));
    Some(format!("{head:?} {files:?}"))
}

/// Where a session's prompt and output are kept.
struct Files {
    prompt: PathBuf,
    output: PathBuf,
}

impl Files {
    /// Saves the prompt, masked, under a name that no earlier session has used.
    fn make(folder: &Path, agent: AgentId, task: Option<&TaskId>, text: &str) -> io::Result<Self> {
        let (prompts, outputs) = (folder.join("agent-prompts"), folder.join("agent-outputs"));
        fs::create_dir_all(&prompts)?;
        fs::create_dir_all(&outputs)?;
        let stamp: String = now().to_string().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let about = task.map_or_else(|| "plan".to_owned(), ToString::to_string);
        let secrets = Masker::new(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        );
        for number in 1_u32.. {
            let name = format!("{agent}-{stamp}-{number}-{about}");
            let prompt = prompts.join(format!("{name}.md"));
            match OpenOptions::new().write(true).create_new(true).open(&prompt) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(mut file) => {
                    file.write_all(secrets.mask(text).as_bytes())?;
                    return Ok(Self { prompt, output: outputs.join(format!("{name}.log")) });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
