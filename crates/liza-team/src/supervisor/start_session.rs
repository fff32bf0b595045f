//! Prepares a session and starts it: facts, prompt, files, command line.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_agents::contracts::Contract;
use liza_agents::prompts::{Brief, Job, PreviewedMerge, Staleness, prompt};
use liza_agents::providers::LoginPlaces;
use liza_agents::providers::guard::Allowance;
use liza_agents::providers::{SessionDetails, is_instruction, role_network};
use liza_core::model::{AgentCommits, AgentId, Config, Network, Role, Sandbox, Sha, State, TaskId, Usage};
use liza_core::rules::spending::left_for;
use liza_core::rules::triggers::planner_triggers;
use liza_core::rules::validation::commands;
use liza_git::{MergePreview, Repo, ScratchCheckout, UntrackedFiles, prepared_of};
use liza_host::model_proxy::{ModelProxy, proxy_variables};
use liza_host::private;
use liza_host::secrets::Masker;
use liza_host::worktrees::{outside, worktrees_folder};
use liza_sandbox::confine::{
    COPIES, EnvironmentUse, StageInput, Variable, cache_variables, can_copy, check_caches, is_withheld,
    passed_environment, review_caches, wrapper_words,
};
use liza_sandbox::sys::confinement::{TcpGrants, protects_files};

use crate::channel::{CHANNEL, Untold};
use crate::engine::{EngineError, integration_branch};
use crate::project::{AGENT_GENERATION, AGENT_ID, Project, now};
use crate::session::check::VALIDATION_VARIABLE;
use crate::session::check_door::{CHECK_DOOR, CheckDoor, CheckPlace};
use crate::session::checkout_setup::{CheckoutUse, set_up};
use crate::session::client_folder::ClientFolder;
use crate::session::conversations::{conversation_to_resume, conversation_usage, conversations_of};
use crate::session::files::{OUTPUTS, PROMPTS};
use crate::session::git_settings::{ceiling_variable, identity_variables, inert_git_variables};
use crate::session::network::{allowed_hosts, named_services};
use crate::session::plan::{SessionNeeds, can_copy_in_room, home, minimum, session_plan};
use crate::session::refused_places::{closed, host_notes, refusal_notes};
use crate::session::shared::shared;

use super::error::SupervisorError;
use super::file_modes::FileModes;
use super::helper_protocol::{SessionConfinement, SessionOrder};
use super::registration::Identity;
use super::session::{HelperProcess, Session, WaitingHelper};

pub(super) fn job_for(
    project: &Project,
    state: &State,
    identity: &Identity,
    task: &TaskId,
) -> Result<Job, SupervisorError> {
    let repo = project.repo()?;
    let task = task.clone();
    Ok(match identity.agent.role() {
        Role::CodeReviewer => {
            let instructions = changed_instructions(repo, state, &task)?;
            Job::Review { worktree: repo.review_path(&task), task, instructions }
        }
        Role::Coder | Role::Planner => {
            let worktree = repo.worktree_path(&task);
            let staleness = staleness(repo, state, &task);
            let other_side = other_side(repo, state, &task).unwrap_or_default();
            Job::Code { task, worktree, staleness, other_side }
        }
    })
}

/// The files with instructions for agent programs that a submitted commit changes.
fn changed_instructions(repo: &Repo, state: &State, task: &TaskId) -> Result<Vec<String>, SupervisorError> {
    let Some(commit) = &state.board.body(task)?.record().review_commit else { return Ok(Vec::new()) };
    let changed = repo.changes_since(&integration_branch(&state.board)?, commit)?.into_keys();
    let instructions = changed.filter(|path| is_instruction(path));
    Ok(instructions.map(|path| path.to_string_lossy().into_owned()).collect())
}

/// The moves of the integration branch since the claim. Optional in a prompt, so errors of git are ignored.
fn staleness(repo: &Repo, state: &State, task: &TaskId) -> Option<Staleness> {
    let base = state.board.body(task).ok()?.record().base_commit.clone()?;
    let head = repo.tip(&integration_branch(&state.board).ok()?).ok()??;
    let commits = u32::try_from(repo.count_commits(&base, &head).ok()?).unwrap_or(u32::MAX);
    let merge = match repo.preview_merge(&head, &repo.worktree_head(task).ok()??).ok()? {
        MergePreview::AlreadyMerged | MergePreview::FastForward | MergePreview::Clean { .. } => {
            PreviewedMerge::Clean
        }
        MergePreview::Conflict { files } => {
            PreviewedMerge::Conflicts(files.iter().map(|file| file.display().to_string()).collect())
        }
        MergePreview::Unrelated => return None,
    };
    Some(Staleness { commits, merge })
}

/// The commits that a merge brings into the work of a task, each with its task. Optional in a prompt, so
/// errors of git are ignored.
fn other_side(repo: &Repo, state: &State, task: &TaskId) -> Option<Vec<String>> {
    let record = state.board.body(task).ok()?.record();
    if record.integration_fix != Some(true) {
        return None;
    }
    let (own, other) = (repo.worktree_head(task).ok()??, record.base_commit.as_ref()?);
    let merged: Vec<(&TaskId, &Sha)> = state
        .bodies()
        .filter_map(|(id, body)| Some((id, body.record().review_commit.as_ref()?)))
        .filter(|(id, _)| *id != task)
        .collect();
    let made_for = |line: &String| {
        let hash = line.split(' ').next().unwrap_or_default();
        let found = merged.iter().find(|(_, commit)| !hash.is_empty() && commit.as_str().starts_with(hash));
        found.map_or_else(|| line.clone(), |(id, _)| format!("{line} (task {id})"))
    };
    Some(repo.list_commits(&own, other).ok()?.iter().map(made_for).collect())
}

pub(super) fn start(
    project: &Project,
    state: &State,
    identity: &Identity,
    job: &Job,
    copy: Option<ScratchCheckout>,
) -> Result<(Session, HelperProcess), SupervisorError> {
    let (task, directory) = match job {
        Job::Code { task, worktree, .. } | Job::Review { task, worktree, .. } => {
            (Some(task.clone()), worktree.clone())
        }
        Job::Plan { .. } => {
            (None, copy.as_ref().map_or_else(|| project.root().to_owned(), |copy| copy.path().to_owned()))
        }
    };
    let mut brief = brief(project, identity)?;
    brief.integration_copy = copy.as_ref().map(|copy| copy.path().to_owned());
    if state.board.config()?.sandbox != Sandbox::Off {
        let is_written = |folder: &PathBuf| folder != project.root() && !matches!(job, Job::Review { .. });
        let own = Some(directory.clone()).filter(is_written);
        brief.writable = own.into_iter().chain([scratch_folder(project, identity)]).collect();
        brief.model_only = role_network(state.board.config()?, identity.agent.role())? == Network::ModelOnly;
    }
    let text = prompt(state, &brief, job)?;
    let files = SessionFiles::create(project.folder(), identity.agent, task.as_ref(), &text)
        .map_err(SupervisorError::io("save the prompt"))?;
    let is_confined = state.board.config()?.sandbox != Sandbox::Off && protects_files();
    let (resumed, before) = match conversation(project, state, identity, task.as_ref())? {
        Some((name, before)) => (Some(name), before),
        None => (None, Usage::default()),
    };
    let inherited = inherited(state.board.config()?, identity);
    let allowance = Allowance {
        left: left_for(&state.board, task.as_ref(), now()),
        price: identity.provider.price(state.board.config()?),
        before,
    };
    let work = (task.as_ref(), resumed.as_deref(), allowance);
    let mut order = order(project, identity, work, directory, &files, (is_confined, &inherited))?;
    let helper = WaitingHelper::start(&identity.program, &order)?;
    let limit = Duration::from_secs(state.board.config()?.command_limit.0);
    let session = (identity.agent, identity.generation);
    let closed = closed(project, state.board.config()?);
    let untold = Untold::by(refusal_notes(order.output.clone(), closed));
    let channel = identity.channels.open(project, session, &order, (limit, untold))?;
    order.environment.push((CHANNEL.to_owned(), channel.address().to_variable()));
    let proxy = open_proxy(state, identity, &mut order)?;
    let keeps = task.as_ref().filter(|_| keeps_conversation(identity));
    let own = OwnPlaces {
        prompt: &files.prompt,
        channel: &channel.address().socket,
        proxy: proxy.as_ref(),
        task: task.as_ref(),
        keeps: keeps.map(|task| (task, resumed.is_some())),
    };
    let door = confine(project, state, identity, &own, &mut order)?;
    let is_watched = matches!(job, Job::Plan { .. }) && can_write_to(project.root(), &order);
    let checkout = is_watched.then(|| checkout_state(project, state)).flatten();
    let triggers = planner_triggers(state, now());
    let head = match job {
        Job::Code { task, .. } => project.repo()?.worktree_head(task).ok().flatten(),
        Job::Review { .. } | Job::Plan { .. } => None,
    };
    let modes = FileModes::read(project.folder(), identity.channels.place(), project.repo()?.common_dir());
    let (mut session, mut helper) = helper.send(&order, task, state.board.revision)?;
    (session.modes, session.last_refusal) = (modes, channel.last_refusal());
    (session.triggers, session.head, session.checkout) = (triggers, head, checkout);
    let (home, variable) = (home(), |name: &str| std::env::var_os(name));
    let places = LoginPlaces { home: home.as_deref(), variable: &variable };
    session.login = identity.provider.login_repair(&places);
    session.price = identity.provider.price(state.board.config()?);
    let served = channel.serve(helper.id()).map_err(SupervisorError::io("serve the socket of a session"));
    (helper.copy, helper.channel, helper.proxy) = (copy, Some(served?), proxy);
    helper.door = door;
    Ok((session, helper))
}

/// A checkout of the integration branch's head, set up, for a planner to judge the goal in. Optional, so
/// errors of git are ignored.
pub(super) fn integration_copy(
    project: &Project,
    state: &State,
) -> Result<Option<ScratchCheckout>, SupervisorError> {
    let Some(copy) = head_checkout(project, state) else { return Ok(None) };
    let done = set_up(project, state.board.config()?, copy.path(), CheckoutUse::Planning);
    done.map_err(EngineError::from)?;
    Ok(Some(copy))
}

fn head_checkout(project: &Project, state: &State) -> Option<ScratchCheckout> {
    let repo = project.repo().ok()?;
    let head = repo.tip(&integration_branch(&state.board).ok()?).ok()??;
    repo.scratch_checkout(&head).ok()
}

/// True if the conversation of this session may be resumed later.
fn keeps_conversation(identity: &Identity) -> bool {
    identity.agent.role() == Role::Coder && identity.provider.can_resume() && !identity.interactive
}

/// The conversation to resume, with its usage by earlier sessions. One that was not kept cannot be resumed.
fn conversation(
    project: &Project,
    state: &State,
    identity: &Identity,
    task: Option<&TaskId>,
) -> Result<Option<(String, Usage)>, SupervisorError> {
    let Some(task) = task.filter(|_| keeps_conversation(identity)) else { return Ok(None) };
    let (config, record) = (state.board.config()?, state.board.body(task)?.record());
    let client = identity.provider.name();
    let is_kept = || conversations_of(project.folder(), task).join(client).is_dir();
    let name = conversation_to_resume(config, record, identity.agent, client, now());
    let name = name.filter(|_| config.sandbox == Sandbox::Off || is_kept());
    Ok(name.map(|name| (name.clone(), conversation_usage(record, &name))))
}

fn scratch_folder(project: &Project, identity: &Identity) -> PathBuf {
    project.folder().join("tmp").join(identity.agent.to_string())
}

fn brief(project: &Project, identity: &Identity) -> Result<Brief, SupervisorError> {
    let agent = identity.agent;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Ok(Brief {
        project: project.root().to_owned(),
        state_file: project.folder().join("state.yaml"),
        specs: project.root().join("specs"),
        worktrees: worktrees_folder(project.root()),
        contract: Contract::load(project.root(), home.as_deref(), agent.role())?,
        program: identity.program.clone(),
        agent,
        now: now(),
        integration_copy: None,
        writable: Vec::new(),
        model_only: false,
    })
}

/// The commands that validate the task, for `liza check` in its session.
fn validation_variable(project: &Project, task: &TaskId) -> Option<(String, String)> {
    let state = project.state().ok()?;
    let commands = commands(state.board.config.ready()?, state.board.body(task).ok()?.record());
    let lines: Vec<String> = commands.into_iter().map(|command| command.line).collect();
    (!lines.is_empty()).then(|| (VALIDATION_VARIABLE.to_owned(), lines.join("\n")))
}

fn order(
    project: &Project,
    identity: &Identity,
    (task, conversation, allowance): (Option<&TaskId>, Option<&str>, Allowance),
    directory: PathBuf,
    files: &SessionFiles,
    (is_confined, inherited): (bool, &[Variable]),
) -> Result<SessionOrder, SupervisorError> {
    let repo = project.repo()?;
    let is_own = directory != project.root();
    let worktree_git = if is_own { directory.join(".git") } else { repo.git_dir().to_owned() };
    let scratch = project.folder().join("tmp").join(identity.agent.to_string());
    let line = identity.provider.command_line(&SessionDetails {
        agent: identity.agent,
        task,
        directory: &directory,
        project: project.root(),
        git: repo.common_dir(),
        worktree_git: &worktree_git,
        prompt: &files.prompt,
        scratch: &scratch,
        conversation,
        // A program that resumes a conversation counts its whole cost.
        dollars: allowance.left.dollars.map(|left| left + allowance.before.cost_usd),
        interactive: identity.interactive,
        confined: is_confined,
    })?;
    let mut environment = line.environment;
    let author = (agent_commits(project) == AgentCommits::Agent).then_some(identity.agent);
    let who_commits = identity_variables(repo, author).into_iter();
    let who_commits = who_commits.filter(|(name, _)| own_variable(&environment, name).is_none());
    environment.extend(who_commits.collect::<Vec<_>>());
    if identity.agent.role() == Role::CodeReviewer {
        // A review is of the submitted work, not of its replacements.
        environment.push(("GIT_NO_REPLACE_OBJECTS".to_owned(), "1".to_owned()));
    }
    if identity.agent.role() != Role::Coder {
        // It looks at the work of others.
        let inert = inert_git_variables(&|name| {
            let is_passed = |known: &OsStr| known == name && !is_withheld(identity.agent.role(), known);
            let from_person =
                inherited.iter().find(|(known, _)| is_passed(known)).map(|(_, value)| value.clone());
            own_variable(&environment, name).or(from_person)
        });
        environment.extend(inert);
    }
    environment.push(ceiling_variable(project.root()));
    environment.extend(task.and_then(|task| validation_variable(project, task)));
    environment.push((AGENT_ID.to_owned(), identity.agent.to_string()));
    environment.push((AGENT_GENERATION.to_owned(), identity.generation.to_string()));
    let scratch = scratch_folder(project, identity);
    let input = match (identity.interactive, line.on_stdin) {
        (true, _) => StageInput::Terminal,
        (false, true) => StageInput::File(files.prompt.clone()),
        (false, false) => StageInput::Nothing,
    };
    Ok(SessionOrder {
        project: project.root().to_owned(),
        agent: identity.agent,
        generation: identity.generation,
        client: identity.provider.name().to_owned(),
        program: line.program,
        arguments: line.arguments,
        directory,
        environment,
        input,
        output: (!identity.interactive).then(|| files.output.clone()),
        scratch,
        lock: project.folder().join("agent-locks").join(format!("{}.session", identity.agent)),
        dialect: identity.provider.dialect(),
        allowance,
        result_file: line.result_file,
        confinement: None,
    })
}

fn own_variable(environment: &[(String, String)], name: &str) -> Option<OsString> {
    environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.into())
}

/// A variable of the session, or else of this process.
fn variable(environment: &[(String, String)], name: &str) -> Option<OsString> {
    own_variable(environment, name).or_else(|| std::env::var_os(name))
}

/// The variables of this process that its agent program needs for its login.
fn login_variables(identity: &Identity) -> Vec<String> {
    let (home, variable) = (home(), |name: &str| std::env::var_os(name));
    identity.provider.login_variables(&LoginPlaces { home: home.as_deref(), variable: &variable })
}

/// The services of this machine that an agent program needs.
fn services_of(order: &SessionOrder, config: &Config, identity: &Identity) -> Vec<u16> {
    let variable = |name: &str| variable(&order.environment, name).map(PathBuf::from);
    let inherited = inherited(config, identity).into_iter();
    let inherited = inherited.map(|(_, value)| value.to_string_lossy().into_owned());
    let own = order.environment.iter().map(|(_, value)| value).chain(&order.arguments).cloned();
    named_services(config, &identity.provider, inherited.chain(own), &variable)
}

/// The part of this process's environment that a session gets.
fn inherited(config: &Config, identity: &Identity) -> Vec<Variable> {
    match config.sandbox {
        Sandbox::Off => std::env::vars_os().collect(),
        Sandbox::Auto | Sandbox::Require => {
            let login = login_variables(identity);
            passed_environment(std::env::vars_os(), EnvironmentUse::AgentProgram(&login), &config.pass_env)
        }
    }
}

/// Opens the proxy of a session that reaches nothing but its model.
fn open_proxy(
    state: &State,
    identity: &Identity,
    order: &mut SessionOrder,
) -> Result<Option<ModelProxy>, SupervisorError> {
    let config = state.board.config()?;
    let text = |name: &str| variable(&order.environment, name)?.into_string().ok();
    let hosts = allowed_hosts(config, identity.agent.role(), &identity.provider, &text)?;
    let Some(hosts) = hosts.filter(|_| config.sandbox != Sandbox::Off) else { return Ok(None) };
    let proxy = ModelProxy::start(hosts, host_notes(order.output.clone()))
        .map_err(SupervisorError::io("open the proxy of a session"))?;
    order.environment.extend(proxy_variables(proxy.port()));
    Ok(Some(proxy))
}

struct OwnPlaces<'a> {
    prompt: &'a Path,
    channel: &'a Path,
    proxy: Option<&'a ModelProxy>,
    task: Option<&'a TaskId>,
    /// The task whose conversations are kept, and whether the session gets those of the last one.
    keeps: Option<(&'a TaskId, bool)>,
}

/// Adds the confinement, unless the settings switch it off, and opens the door for the checks of a confined session.
fn confine(
    project: &Project,
    state: &State,
    identity: &Identity,
    own: &OwnPlaces<'_>,
    order: &mut SessionOrder,
) -> Result<Option<CheckDoor>, SupervisorError> {
    let config = state.board.config()?;
    let variable = |name: &str| variable(&order.environment, name).map(PathBuf::from);
    let path = project.folder().join("clients").join(identity.agent.to_string());
    let (mut client, mut variables) =
        ClientFolder::plan(path, identity.provider.home(), home().as_deref(), &variable);
    if let Some((task, restore)) = own.keeps {
        let place = conversations_of(project.folder(), task);
        client.keep_conversations(identity.provider.home(), place.join(&order.client), restore);
    }
    let role = identity.agent.role();
    let caches = project.folder().join("caches").join(role.to_string());
    let checks = caches_of_checks(project, state, role, own.task)?;
    variables.extend(cache_variables(&caches));
    let mut files = vec![own.prompt.to_owned()];
    files.extend(variable(liza_rehearsal::PLAYBOOK_VARIABLE));
    let ports = &config.network_ports;
    let network = own.proxy.map(|proxy| TcpGrants { proxy: proxy.port(), ports: ports.clone() });
    let needs = SessionNeeds {
        liza: &identity.program,
        checkout: Some(order.directory.as_path()).filter(|folder| *folder != project.root()),
        scratch: &order.scratch,
        own: &[client.path.clone(), caches.clone(), checks.clone()],
        files: &files,
        program: Some(&order.program),
        channel: Some(own.channel),
        network: network.as_ref(),
    };
    let Some(mut plan) = session_plan(project, config, &needs)? else { return Ok(None) };
    if role == Role::CodeReviewer {
        plan = plan.judging(&worktrees_folder(project.root()));
    }
    if role == Role::Planner {
        // It looks at the work so far, which is otherwise in the project.
        plan.grants.read.extend(outside(project.root()));
    }
    plan.private = vec![client.path.clone(), order.scratch.clone(), own.prompt.to_owned(), caches.clone()];
    plan.check_caches = Some(checks);
    if role == Role::CodeReviewer {
        let prepared = prepared_of(&order.directory).filter(|prepared| prepared.is_dir());
        let copied = Some(prepared.unwrap_or_else(|| order.directory.clone()));
        plan.copied =
            copied.filter(|copied| can_copy(copied) && can_copy_in_room(project, config, &identity.program));
    }
    plan.log.clone_from(&order.output);
    let (liza, minimum) = (identity.program.clone(), minimum(config));
    let wrapper = wrapper_words(&config.exec_wrapper, &plan, &order.directory.to_string_lossy());
    let copies = project.folder().join(COPIES);
    let (runner, checked) = (config.exec_wrapper.clone(), plan.clone());
    let place = CheckPlace { liza: liza.clone(), wrapper: runner, minimum, plan: checked, copies };
    let door = check_door(identity, order, place)?;
    plan.grants.sockets.push(door.socket().to_owned());
    // The variables of the client folder hide where the person's settings are.
    if network.is_none() {
        plan.grants.services.extend(services_of(order, config, identity));
    }
    order.environment.extend(variables);
    let login_variables = login_variables(identity);
    let shared = shared(config, plan.network(), &plan.grants.services);
    let shared = shared.into_iter().map(|part| part.what).collect();
    order.confinement =
        Some(SessionConfinement { liza, wrapper, plan, client, caches, login_variables, minimum, shared });
    Ok(Some(door))
}

/// Opens the door for the checks of a session, with the plan before it has the services of its model.
fn check_door(
    identity: &Identity,
    order: &mut SessionOrder,
    place: CheckPlace,
) -> Result<CheckDoor, SupervisorError> {
    let mut scratch = order.scratch.clone().into_os_string();
    scratch.push(".check");
    let door = CheckDoor::open(identity.channels.next_socket(), place, scratch.into());
    let door = door.map_err(SupervisorError::io("open the socket for a session's checks"))?;
    order.environment.push((CHECK_DOOR.to_owned(), door.socket().to_string_lossy().into_owned()));
    Ok(door)
}

/// The caches of `liza check`: those of the role and the task, or of one review.
fn caches_of_checks(
    project: &Project,
    state: &State,
    role: Role,
    task: Option<&TaskId>,
) -> Result<PathBuf, SupervisorError> {
    if let (Role::CodeReviewer, Some(task)) = (role, task)
        && let Some(commit) = &state.board.body(task)?.record().review_commit
    {
        return Ok(review_caches(project.folder(), task, commit));
    }
    Ok(check_caches(project.folder(), role, task))
}

fn agent_commits(project: &Project) -> AgentCommits {
    let state = project.state().ok();
    state.and_then(|state| Some(state.board.config.ready()?.agent_commits)).unwrap_or_default()
}

/// True if a session could change the project's own checkout; else changes there are the person's.
fn can_write_to(root: &Path, order: &SessionOrder) -> bool {
    let Some(confinement) = order.confinement.as_ref().filter(|_| protects_files()) else { return true };
    let own = [worktrees_folder(root), root.join(".liza")];
    let is_own = |folder: &&PathBuf| own.iter().any(|own| folder.starts_with(own));
    let mut others = confinement.plan.grants.write.iter().filter(|folder| !is_own(folder));
    others.any(|folder| root.starts_with(folder) || folder.starts_with(root))
}

/// A fingerprint of the project's own checkout, to compare later; `None` if git cannot report it.
pub(super) fn checkout_state(project: &Project, state: &State) -> Option<String> {
    let repo = project.repo().ok()?;
    let status = repo.status(project.root(), UntrackedFiles::Show).ok()?;
    let stamp = |path: &Path| {
        let meta = fs::symlink_metadata(project.root().join(path)).ok();
        meta.map(|meta| (meta.len(), meta.modified().ok()))
    };
    let files: Vec<_> = status.changes.iter().map(|change| (change.path(), stamp(change.path()))).collect();
    // Merges move the integration branch, and with it a checkout of that branch.
    let integration = integration_branch(&state.board).ok()?;
    let head = status.head.filter(|_| status.branch.as_deref() != Some(integration.as_str()));
    Some(format!("{head:?} {files:?}"))
}

struct SessionFiles {
    prompt: PathBuf,
    output: PathBuf,
}

impl SessionFiles {
    /// Saves the prompt, masked, under a name that no earlier session has used.
    fn create(folder: &Path, agent: AgentId, task: Option<&TaskId>, text: &str) -> io::Result<Self> {
        let (prompts, outputs) = (folder.join(PROMPTS), folder.join(OUTPUTS));
        private::create_folder(&prompts)?;
        private::create_folder(&outputs)?;
        let stamp: String = now().to_string().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let about = task.map_or_else(|| "plan".to_owned(), ToString::to_string);
        let masked = Masker::of_process().mask(text);
        for number in 1_u32.. {
            let name = format!("{agent}-{stamp}-{number}-{about}");
            let prompt = prompts.join(format!("{name}.md"));
            match private::create_new(&prompt) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(mut file) => {
                    file.write_all(masked.as_bytes())?;
                    return Ok(Self { prompt, output: outputs.join(format!("{name}.log")) });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
