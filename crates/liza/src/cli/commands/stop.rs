//! `liza stop`: ends the team of this project, wherever it was started, and on request the agents started one
//! by one.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Status};
use liza_core::protocol::Deregister;
use liza_sandbox::sys::process::interrupt;
use liza_status::command_line::StartCommands;
use liza_status::words::stop_waits_for;
use liza_team::engine::{LivenessLock, is_stopping};
use liza_team::observe::last_run::last_run;
use liza_team::observe::running_merge::running_merge;
use liza_team::project::machine::runs_here;
use liza_team::project::{Project, now};
use liza_team::run::{AlreadyRunning, RunLock};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// The interval at which the end of the team is checked.
const POLL: Duration = Duration::from_millis(50);

/// The interval at which agents are checked, and those that have registered since are deregistered.
const AGENT_POLL: Duration = Duration::from_millis(200);

/// The most time for a team: each session gets its stop_grace, and git may be at work. A running merge takes
/// as long as its test.
const LONGEST: Duration = Duration::from_secs(300);

/// The most time for a team after its merge.
const AFTER_MERGE: Duration = Duration::from_secs(30);

/// Stop the team that runs in this project.
///
/// Does what Ctrl-C does in the team's terminal: sessions end cleanly, a merge that is running ends, claims are kept, and the
/// next liza run resumes them. Called again, it only waits for the team as well; to kill: liza stop --now. A merge that is
/// killed is made by the next liza run.
/// Agents that were started one by one (liza agent) are only named; to end them, too: liza stop --all. Agents on other
/// machines go on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza stop
  liza stop --now
  liza stop --all")]
pub(crate) struct Args {
    /// Kill the team's sessions and its merge at once; what is committed is kept.
    #[arg(long)]
    now: bool,
    /// Also end the agents that were started here with liza agent, or registered by hand.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("stop")?;
    let project = context.project()?;
    let team = RunLock::holder(&project)?;
    let merge = running_merge(&project).map(|merge| merge.task).filter(|_| team.is_some());
    let process = team.map(|team| stop_team(&args, context, &project, &team)).transpose()?;
    let (ended, running) = match args.all {
        true => (end_agents(context, &project)?, Vec::new()),
        false => (Vec::new(), LivenessLock::running_agents(project.folder())),
    };
    let mut result = json!({"stopped": process.is_some() || !ended.is_empty()});
    for (key, agents) in [("ended", &ended), ("running", &running)] {
        if !agents.is_empty() {
            result[key] = json!(agents);
        }
    }
    if let Some(process) = process {
        result["process"] = process.into();
    }
    let mut words = in_words(process.map(|_| last_run(&project)).as_ref(), &ended, &running);
    if let Some(task) = merge
        && project.state()?.board.status(&task) == Some(Status::Approved)
    {
        words.push_str(&format!("\n{task}: its merge was stopped; the next liza run merges it"));
    }
    Ok(Reply::new(words, result))
}

fn in_words(team: Option<&StartCommands>, ended: &[AgentId], running: &[AgentId]) -> String {
    let names = |agents: &[AgentId]| agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    if let Some(start) = team {
        lines.push(format!("the team has stopped; to continue: {}, with the same options", start.run));
    } else if ended.is_empty() {
        lines.push("no team is running here".to_owned());
    }
    if !ended.is_empty() {
        lines.push(format!("ended: {}; to start one again: liza agent ROLE --detach", names(ended)));
    }
    if let [first, ..] = running {
        let (names, still) = (names(running), if team.is_some() { "still running" } else { "running" });
        lines.push(format!("{still}: {names} (started with liza agent)"));
        lines.push(format!("to end one: liza deregister {first}; to end all: liza stop --all"));
    }
    lines.join("\n")
}

/// Stops the team, and returns its process.
fn stop_team(
    args: &Args,
    context: &Context,
    project: &Project,
    team: &AlreadyRunning,
) -> Result<u32, CommandError> {
    let Some(process) = team.process() else {
        return Err(CommandError::refused("just_started", team.to_string()).hint("try again: liza stop"));
    };
    let is_stopping = is_stopping(project.folder(), process);
    if args.now || !is_stopping {
        signal(process)?;
    }
    if args.now {
        // The second signal is the second Ctrl-C. The team has to have seen the first one.
        thread::sleep(Duration::from_millis(500));
        if RunLock::holder(project)?.as_ref() == Some(team) {
            signal(process)?;
        }
    } else {
        let stopping = if is_stopping { "the team is stopping already" } else { "stopping" };
        let merge = running_merge(project).map(|merge| merge.task);
        let waits = stop_waits_for(merge.as_ref());
        context.screen.note(&format!("{stopping}: {waits}; at once: liza stop --now"));
    }
    wait(project, team)?;
    Ok(process)
}

fn signal(process: u32) -> Result<(), CommandError> {
    interrupt(process).map_err(|error| {
        let message = format!("process {process} cannot be stopped: {error}");
        CommandError::refused("not_stopped", message).hint("liza status shows whether it still runs")
    })
}

fn wait(project: &Project, team: &AlreadyRunning) -> Result<(), CommandError> {
    let begin = Instant::now();
    let mut deadline = begin + LONGEST;
    while RunLock::holder(project)?.as_ref() == Some(team) {
        if Instant::now() >= deadline && running_merge(project).is_some() {
            deadline = Instant::now() + AFTER_MERGE;
        }
        if Instant::now() >= deadline {
            let message =
                format!("the team still runs after {} s: {}", begin.elapsed().as_secs(), team.holder);
            return Err(CommandError::refused("not_stopped", message).hint("liza stop --now"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Deregisters every agent of this machine, which ends its supervisor, and waits for it.
fn end_agents(context: &Context, project: &Project) -> Result<Vec<AgentId>, CommandError> {
    let deadline = Instant::now() + LONGEST;
    let mut ended = BTreeSet::new();
    loop {
        let running = LivenessLock::running_agents(project.folder());
        let Some(first) = running.first() else { break };
        if Instant::now() >= deadline {
            let message = format!("{first} still runs after {} s", LONGEST.as_secs());
            return Err(CommandError::refused("not_stopped", message).hint("what it does: liza status"));
        }
        let agents = project.state()?.board.agents()?.clone();
        for agent in running {
            ended.insert(agent);
            // Another machine may have got the name while the session here ends.
            let here = agents.get(&agent).filter(|entry| runs_here(project.folder(), entry));
            let Some(entry) = here else { continue };
            match context.execute(project, Deregister::of(agent, entry.generation)) {
                // Its supervisor is ending, or has just started.
                Err(error) if ["not_registered", "stale_generation"].contains(&&*error.code) => {}
                done => drop(done?),
            }
        }
        thread::sleep(AGENT_POLL);
    }
    // Those that a person has registered have no process to wait for.
    for (agent, entry) in project.state()?.board.agents()? {
        if entry.holds(now()) && runs_here(project.folder(), entry) && ended.insert(*agent) {
            context.execute(project, Deregister::of(*agent, entry.generation))?;
        }
    }
    Ok(ended.into_iter().collect())
}
