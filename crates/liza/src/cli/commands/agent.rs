//! `liza agent`: supervises one agent until its role has nothing left to do.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use liza_agents::providers::{Provider, ProviderError, SessionDetails};
use liza_agents::providers::{default_provider, missing_logins};
use liza_core::model::{Actor, AgentId, AgentRecord, Config, Network, Refusal, Role, Sandbox, State, TaskId};
use liza_core::supervise::StopReason;
use liza_host::durable;
use liza_sandbox::confine::Level;
use liza_sandbox::sys::confinement::protects_files;
use liza_sandbox::sys::terminal::PersonsTerminal;
use liza_team::observe::missing_logins::record;
use liza_team::project::machine::runs_here;
use liza_team::project::{AGENT_ID, Project};
use liza_team::run::detached;
use liza_team::session::network::{allowed_hosts, strictest_network};
use liza_team::session::plan::{level_here, refusal};
use liza_team::supervisor::{
    AgentEnd, Consequence, EndReason, MessageLevel, Post, SupervisorError, SupervisorOptions, agent_for,
    run as supervise,
};
use serde_json::json;

use crate::cli::agent_programs::{default_client, with_places};
use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::event_printer::EventPrinter;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;
use crate::cli::ui::program_name::ProgramName;

use super::config::use_team_file;

/// The longest time in which an agent in the background registers.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Run one agent: it claims work until none is left.
///
/// Ends when the role has nothing left to do. Ctrl-C stops the session and the supervisor cleanly; the agent keeps its
/// claim until the lease ends, and resumes it when it is started again. Prompts are in .liza/agent-prompts, output is
/// in .liza/agent-outputs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza agent planner
  liza agent coder --cli codex
  liza agent code-reviewer --id code-reviewer-2
  liza agent coder retry-orders --once
  liza agent coder --detach
  liza agent coder --cli claude --explain")]
pub(crate) struct Args {
    /// Role of the agent: planner, coder or code-reviewer.
    role: Role,
    /// Take this task first; with --once, only this task.
    task: Option<TaskId>,
    /// The agent program: claude, codex, gemini, vibe, opencode, goose, copilot, qwen, rehearsal, or one from config.providers.
    #[arg(long = "cli", value_name = "NAME", value_parser = ProgramName, hide_possible_values = true)]
    provider: Option<String>,
    /// ID of the agent; default LIZA_AGENT_ID, else the next free ID.
    #[arg(long, value_name = "AGENT")]
    id: Option<String>,
    /// Run the agent program interactively in this terminal, for one session.
    #[arg(long)]
    interactive: bool,
    /// End after one session.
    #[arg(long)]
    once: bool,
    /// Print the command that would be run, without running it.
    #[arg(long)]
    explain: bool,
    /// Run in the background: liza tail shows its sessions, liza deregister ends it.
    #[arg(long, conflicts_with_all = ["interactive", "explain"])]
    detach: bool,
    /// Leave the terminal: what --detach starts.
    #[arg(long, hide = true)]
    in_background: bool,
}

impl Args {
    /// The command line of the same agent in the background.
    fn in_words(&self) -> Vec<String> {
        let named = [("--cli", &self.provider), ("--id", &self.id)];
        let named = named.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let switches = [("--once", self.once), ("--in-background", true)];
        let switches = switches.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.to_owned());
        let what = [Some(self.role.id_prefix().to_owned()), self.task.as_ref().map(ToString::to_string)];
        what.into_iter().flatten().chain(named).chain(switches).collect()
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    if let Actor::Agent(agent, _) = context.actor()? {
        let message = format!("{agent}'s session cannot supervise agents");
        return Err(CommandError::refused("not_permitted", message));
    }
    let (detaches, words) = (args.detach, args.in_words());
    let project = context.project()?.retrying_for_long();
    let asked = args.id.clone().or_else(|| context.environment.text(AGENT_ID).map(str::to_owned));
    let agent = agent_for(args.role, asked.as_deref()).map_err(|message| {
        CommandError::refused("bad_agent_id", message).hint("set --id, or unset LIZA_AGENT_ID")
    })?;
    if !args.explain {
        use_team_file(context, &project)?;
    }
    let state = project.store().snapshot()?;
    if let Some(task) = args.task.as_ref().filter(|task| !state.board.knows(task)) {
        return Err(Refusal::UnknownTask { task: task.clone() }.into());
    }
    let config = state.board.config()?;
    let default = default_client(context);
    let provider = Provider::choose_or(config, args.role, args.provider.as_deref(), default)?;
    let post = Post {
        role: args.role,
        agent,
        provider,
        task: args.task,
        once: args.once || args.interactive,
        interactive: args.interactive,
    };
    if detaches {
        return detach(context, &project, &state, &words, &post);
    }
    if args.in_background {
        detached::leave_terminal().map_err(|error| CommandError::refused("io", error.to_string()))?;
    }
    if args.explain {
        return explain(context, &project, config, &post);
    }
    post.provider.installed_program()?;
    post.provider.check_budget(config)?;
    for note in missing_login_notes(context, &project, config, std::slice::from_ref(&post)) {
        context.screen.note(&format!("liza: {note}"));
    }
    check_confinement(context, &project, config, [post.role])?;
    if post.role != Role::Planner {
        // Coders commit and code reviewers merge; checked before anything is claimed.
        project.repo()?.identity()?;
    }
    let interactive = post.interactive;
    if interactive {
        // Checked before anything is claimed.
        post.provider.require_interactive()?;
    }
    let printer = EventPrinter::new(context.screen.clone(), MessageLevel::Debug);
    let options = SupervisorOptions::alone(context.program.clone(), (context.services.session_commands)());
    let again = format!("liza agent {}", post.role.id_prefix());
    // Put back here if the helper of the conversation was killed.
    let _terminal = interactive.then(PersonsTerminal::open).flatten();
    let ends = supervise(&project, vec![post], options, &|message| printer.print(message))?;
    let (ended, exit) = endings(ends, &again)?;
    Ok(Reply::new("", json!({ "ended": ended })).exit(exit))
}

/// Starts the same agent in the background, and returns when it is registered.
fn detach(
    context: &Context,
    project: &Project,
    before: &State,
    words: &[String],
    post: &Post,
) -> Result<Reply, CommandError> {
    let failed = |error: io::Error| CommandError::refused("io", format!("the agent cannot start: {error}"));
    // A screen or a page starts several from one process.
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{}-{number}.out", post.role.id_prefix(), std::process::id());
    let output = project.folder().join(name);
    let started = detached::start_verb(project, &context.program, ("agent", words), &output);
    let mut process = started.map_err(failed)?;
    let deadline = Instant::now() + START_LIMIT;
    loop {
        // A blackboard that cannot be read now may be readable before the limit.
        let state = project.store().snapshot();
        let new = state.as_ref().ok().and_then(|state| {
            let is_here = |entry: &AgentRecord| runs_here(project.folder(), entry);
            registered_since(before, state, (post.role, post.agent), is_here)
        });
        if let Some(agent) = new {
            let text = format!(
                "{agent} runs in the background\nsee it: liza tail {agent}; end it: liza deregister {agent}"
            );
            let id = process.id();
            thread::spawn(move || process.wait());
            return Ok(Reply::new(text, json!({"agent": agent, "process": id, "output": output})));
        }
        if let Some(ended) = process.try_wait().map_err(failed)? {
            let said = durable::read_text(&output).unwrap_or_default();
            let _ = durable::remove_if_present(&output);
            return match ended.success() {
                true => Ok(Reply::new(said.trim_end(), json!({"agent": null}))),
                false => Err(not_started("the agent", &said)),
            };
        }
        if Instant::now() >= deadline {
            let _ = process.kill().and_then(|()| process.wait());
            let said = format!("not registered within {} s; see {}", START_LIMIT.as_secs(), output.display());
            return Err(not_started("the agent", &said));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The agent of that role, and of that name if one is given, that has registered on this machine since.
fn registered_since(
    before: &State,
    now: &State,
    (role, id): (Role, Option<AgentId>),
    is_here: impl Fn(&AgentRecord) -> bool,
) -> Option<AgentId> {
    let known = |agent: &AgentId| before.board.agents.ready()?.get(agent)?.generation;
    let is_new = |(agent, entry): &(&AgentId, &AgentRecord)| {
        entry.role == role
            && id.is_none_or(|id| id == **agent)
            && entry.generation.is_some_and(|generation| known(agent) != Some(generation))
            && is_here(entry)
    };
    now.board.agents.ready().into_iter().flatten().find(is_new).map(|(agent, _)| *agent)
}

/// The error of an agent or team that did not start in the background, from its output.
pub(crate) fn not_started(what: &str, said: &str) -> CommandError {
    let lines = said.trim().lines().map(|line| line.strip_prefix("liza: ").unwrap_or(line).trim());
    let message = format!("{what} did not start: {}", lines.collect::<Vec<_>>().join("\n"));
    CommandError::refused("not_started", message)
}

/// Refuses to start a team for which no one has named an agent program, if none is installed.
pub(crate) fn require_any_program(context: &Context) -> Result<(), CommandError> {
    if with_places(context, default_provider).is_some() {
        return Ok(());
    }
    let hint = "install one, for example: npm install -g @anthropic-ai/claude-code; to see a team without one: \
                liza run --cli rehearsal";
    Err(CommandError::refused("program_missing", "no agent program is installed")
        .hint(hint)
        .exit(Exit::Missing))
}

/// The agent programs that seem not to be logged in, for the person. A session will show it in any case.
pub(crate) fn missing_login_notes(
    context: &Context,
    project: &Project,
    config: &Config,
    posts: &[Post],
) -> Vec<String> {
    let names: Vec<String> = posts.iter().flat_map(|post| post.provider.names()).collect();
    let missing = with_places(context, |places| missing_logins(config, places, &names));
    record(project.folder(), &missing.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    missing
        .into_iter()
        .map(|(name, login)| format!("no login of {name} was found. To log in: {login}"))
        .collect()
}

/// Checks, before anything is claimed, that sessions can be confined as the settings require; notes the gaps.
pub(crate) fn check_confinement(
    context: &Context,
    project: &Project,
    config: &Config,
    roles: impl IntoIterator<Item = Role>,
) -> Result<Level, CommandError> {
    let network = strictest_network(config, roles)?;
    if config.sandbox == Sandbox::Off {
        if network == Network::ModelOnly {
            context.screen.note(
                "liza: network: model-only has no effect while config.sandbox is off. \
                 To apply it: liza config sandbox auto",
            );
        }
        return Ok(Level::Off);
    }
    let level = level_here(project, config, &context.program, network).map_err(|error| {
        CommandError::refused("confinement", format!("cannot try the confinement: {error}"))
    })?;
    if let Some(why) = refusal(config, &level) {
        return Err(CommandError::refused("confinement", why)
            .hint("for details: liza doctor; to start anyway: liza config sandbox auto"));
    }
    if !matches!(level, Level::Isolated | Level::Restricted(_)) {
        context.screen.note(&format!("liza: sessions are confined {level}"));
    }
    Ok(level)
}

/// The end of each agent, for programs, and the exit code of the whole; `again` starts them again.
pub(crate) fn endings(
    ends: Vec<AgentEnd>,
    again: &str,
) -> Result<(Vec<serde_json::Value>, Exit), CommandError> {
    let mut ended = Vec::new();
    let mut exit = Exit::Success;
    for AgentEnd { agent, reason } in ends {
        let word = match reason {
            EndReason::Stop(StopReason::Aborted) => "aborted",
            EndReason::Stop(StopReason::RoleComplete) => "complete",
            EndReason::Stop(StopReason::WaitedLongEnough) => "no_work",
            EndReason::Stop(StopReason::ClientHeld { client, why }) => {
                let message = format!("{client} cannot be used: {why}");
                return Err(
                    CommandError::refused("client_held", message).hint(format!("fix that, then: {again}"))
                );
            }
            EndReason::Once => "once",
            EndReason::Signalled => "stopped",
            EndReason::NoClient => {
                exit = Exit::Refused;
                "client_held"
            }
            EndReason::RegistrationLost => {
                exit = Exit::Stop;
                "lost"
            }
            EndReason::Failed(error) => return Err(error.into()),
        };
        ended.push(json!({"agent": agent.to_string(), "end": word}));
    }
    Ok((ended, exit))
}

/// The command that would be run; TASK and TIME are placeholders for unknown values.
fn explain(
    context: &Context,
    project: &Project,
    config: &Config,
    post: &Post,
) -> Result<Reply, CommandError> {
    let repo = project.repo()?;
    let agent = post.agent.unwrap_or_else(|| liza_core::model::AgentId::new(post.role, 1));
    let directory = match (post.role, &post.task) {
        (Role::Planner, _) => repo.worktrees_folder().join("COPY"),
        (Role::Coder, Some(task)) => repo.worktree_path(task),
        (Role::CodeReviewer, Some(task)) => repo.review_path(task),
        (Role::Coder, None) => repo.worktrees_folder().join("TASK"),
        (Role::CodeReviewer, None) => repo.worktrees_folder().join(".review-TASK"),
    };
    let prompt = project.folder().join("agent-prompts").join(format!("{agent}-TIME-TASK.md"));
    let worktree_git = directory.join(".git");
    let line = post.provider.command_line(&SessionDetails {
        agent,
        task: post.task.as_ref(),
        directory: &directory,
        project: project.root(),
        git: repo.common_dir(),
        worktree_git: &worktree_git,
        prompt: &prompt,
        scratch: &project.folder().join("tmp").join(agent.to_string()),
        conversation: None,
        dollars: None,
        interactive: post.interactive,
        confined: config.sandbox != Sandbox::Off && protects_files(),
    })?;
    let environment: Vec<String> =
        line.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let input = if line.on_stdin { "on standard input" } else { "as a file" };
    let (network, reached) = network(config, post)?;
    let level = level_here(project, config, &context.program, network)
        .map_or_else(|error| format!("unknown ({error})"), |level| level.to_string());
    let text = format!(
        "provider   {}\nfolder     {}\nprogram    {}\narguments  {}\nprompt     {input}: {}\nconfined   {level}\n\
         network    {reached}\nvariables  {}",
        post.provider.name(),
        directory.display(),
        line.program.display(),
        line.arguments.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" "),
        prompt.display(),
        environment.join(" "),
    );
    let result = json!({
        "provider": post.provider.name(),
        "directory": directory,
        "program": line.program,
        "arguments": line.arguments,
        "prompt_on_stdin": line.on_stdin,
        "environment": environment,
        "confinement": level,
        "network": reached,
    });
    let reply = Reply::new(text.trim_end(), result);
    Ok(match post.provider.installed_program() {
        Ok(_) => reply,
        Err(error) => missing(reply, error.into()),
    })
}

/// The hosts that a session can reach in the network, and the same in words.
fn network(config: &Config, post: &Post) -> Result<(Network, String), CommandError> {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(hosts) = allowed_hosts(config, post.role, &post.provider, &variable)? else {
        return Ok((Network::Open, "open".to_owned()));
    };
    if config.sandbox == Sandbox::Off {
        return Ok((Network::Open, "open: model-only has no effect while config.sandbox is off".to_owned()));
    }
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    Ok((Network::ModelOnly, format!("model-only: {}", hosts.join(", "))))
}

/// The same, with the way to install the program.
fn missing(mut reply: Reply, error: CommandError) -> Reply {
    let hint = error.hint.unwrap_or_default();
    reply.text.push_str(&format!("\nmissing    {} {hint}", error.message));
    reply.result["missing"] = hint.into();
    reply.exit(error.exit)
}

impl From<ProviderError> for CommandError {
    fn from(error: ProviderError) -> Self {
        let message = error.to_string();
        match error {
            ProviderError::Unknown { name, .. } => Self::refused("unknown_provider", message).hint(format!(
                "if it is a program of yours: liza config providers.{name} '{{program: PATH}}'"
            )),
            ProviderError::Config { place, .. } => Self::refused("bad_config", message)
                .exit(Exit::Inconsistent)
                .hint(format!("to see it: liza config {place}; to change it: liza config {place}.KEY VALUE")),
            ProviderError::Missing { install, .. } => {
                let missing = Self::refused("program_missing", message).exit(Exit::Missing);
                if install.is_empty() { missing } else { missing.hint(install) }
            }
            ProviderError::NoPrice { model, .. } => {
                let first = if model.is_none() { "liza config roles.ROLE.model MODEL, and " } else { "" };
                let model = model.unwrap_or_else(|| "MODEL".to_owned());
                Self::refused("no_price", message).hint(format!(
                    "give the budget in tokens (liza config budget.SCOPE.tokens N; liza config budget.SCOPE.dollars \
                     null), or set dollars for a million tokens: {first}liza config 'prices.\"{model}\"' '{{input: 1.25, output: 10, cached: 0.125}}'"
                ))
            }
            ProviderError::NotInteractive { .. } => Self::refused("not_interactive", message),
        }
    }
}

impl From<SupervisorError> for CommandError {
    fn from(error: SupervisorError) -> Self {
        let (code, exit) = match error.consequence() {
            Consequence::Recheck => ("refused", Exit::Refused),
            Consequence::Halted => ("halted", Exit::Stop),
            Consequence::Fenced => ("fenced", Exit::Stop),
            Consequence::Locked => ("locked", Exit::Locked),
            Consequence::Inconsistent => ("broken_state", Exit::Inconsistent),
            Consequence::RetryLater => ("failed", Exit::Refused),
        };
        let failed = Self::refused(code, error.to_string()).exit(exit);
        match error {
            SupervisorError::NoResult { agent, run, .. } => {
                failed.hint(format!("see it: liza tail {agent}; then again: {run}"))
            }
            SupervisorError::Engine(_)
            | SupervisorError::Provider(_)
            | SupervisorError::Contract(_)
            | SupervisorError::Io { .. }
            | SupervisorError::NoFreeName { .. }
            | SupervisorError::NothingToClaim
            | SupervisorError::CheckoutRefused { .. }
            | SupervisorError::OnWork { .. }
            | SupervisorError::Panicked => failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use liza_core::model::Loaded;

    use super::*;

    fn state(agents: &[(&str, u64, &str)]) -> State {
        let mut state = State::default();
        let entry = |(id, generation, machine): &(&str, u64, &str)| {
            let id: AgentId = id.parse().unwrap();
            let entry = json!({
                "role": id.role(), "status": "IDLE", "machine": machine, "generation": generation
            });
            (id, serde_json::from_value::<AgentRecord>(entry).unwrap())
        };
        state.board.agents = Loaded::Ready(agents.iter().map(entry).collect());
        state
    }

    /// Covers: MM-11
    #[test]
    fn the_agent_of_another_machine_is_not_the_one_that_was_started() {
        let before = state(&[("coder-1", 7, "here")]);
        let is_here = |entry: &AgentRecord| entry.machine.as_deref() == Some("here");
        let find = |now: &[(&str, u64, &str)], id: Option<&str>| {
            let id = id.map(|id| id.parse().unwrap());
            registered_since(&before, &state(now), (Role::Coder, id), is_here).map(|agent| agent.to_string())
        };
        let theirs = [("coder-1", 7, "here"), ("coder-2", 8, "there"), ("planner-1", 9, "here")];
        assert_eq!(find(&theirs, None), None);
        let ours = [&theirs[..], &[("coder-3", 10, "here")]].concat();
        assert_eq!(find(&ours, None).as_deref(), Some("coder-3"));
        assert_eq!(find(&ours, Some("coder-1")), None, "another name was asked for");
        assert_eq!(find(&[("coder-1", 11, "here")], Some("coder-1")).as_deref(), Some("coder-1"));
    }
}
