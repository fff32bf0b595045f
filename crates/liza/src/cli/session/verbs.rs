//! Which commands a session may use in its own project, by role. What is not listed is refused before any rule is asked.
//!
//! None of those that are sent starts a program or writes to a path that the session names.

use std::path::Path;

use liza_core::model::{Actor, Refusal, Role};

use crate::cli::ui::error::CommandError;
use crate::cli::verb::{Verb, VerbName};

const ALL: &[Role] = &[Role::Planner, Role::Coder, Role::CodeReviewer];
const PLANNER: &[Role] = &[Role::Planner];
const CODER: &[Role] = &[Role::Coder];
const CODE_REVIEWER: &[Role] = &[Role::CodeReviewer];
const NO_ROLE: &[Role] = &[];

/// Where a command of a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsIn {
    /// In the session, with its rights: it needs no blackboard, or makes one of its own.
    Session,
    /// In the supervisor, for these roles.
    Supervisor(&'static [Role]),
}

/// Where a command of a session runs.
pub(super) fn runs_in(verb: &Verb) -> RunsIn {
    // A file of the session's own.
    if matches!(verb, Verb::Validate(args) if args.has_file()) {
        return RunsIn::Session;
    }
    listed(verb.into())
}

fn listed(verb: VerbName) -> RunsIn {
    match verb {
        VerbName::Check
        | VerbName::Completions
        | VerbName::Confine
        | VerbName::Demo
        | VerbName::Init
        | VerbName::Join
        | VerbName::Man
        | VerbName::Rehearsal
        | VerbName::Session
        | VerbName::Setup => RunsIn::Session,
        VerbName::Anomaly
        | VerbName::Diff
        | VerbName::Discover
        | VerbName::Get
        | VerbName::Graph
        | VerbName::Handoff
        | VerbName::Heartbeat
        | VerbName::Lock
        | VerbName::Log
        | VerbName::Show
        | VerbName::Status
        | VerbName::Tail
        | VerbName::UpdateSprintMetrics
        | VerbName::Validate => RunsIn::Supervisor(ALL),
        VerbName::AbandonTask
        | VerbName::AddTask
        | VerbName::Align
        | VerbName::ConvertDiscovery
        | VerbName::EditTask
        | VerbName::Finalize
        | VerbName::Goal
        | VerbName::SupersedeTask
        | VerbName::UnblockTask
        | VerbName::WtDelete => RunsIn::Supervisor(PLANNER),
        VerbName::MarkBlocked | VerbName::PreCheck | VerbName::SubmitForReview => RunsIn::Supervisor(CODER),
        VerbName::SubmitVerdict => RunsIn::Supervisor(CODE_REVIEWER),
        VerbName::Abort
        | VerbName::AcceptGate
        | VerbName::AcceptIntegration
        | VerbName::Add
        | VerbName::Agent
        | VerbName::Analyze
        | VerbName::Answer
        | VerbName::Archive
        | VerbName::Attach
        | VerbName::Checkpoint
        | VerbName::Config
        | VerbName::ClaimReview
        | VerbName::ClaimTask
        | VerbName::ClearStaleReviewClaims
        | VerbName::Deregister
        | VerbName::Dismiss
        | VerbName::Doctor
        | VerbName::Edit
        | VerbName::Export
        | VerbName::Finish
        | VerbName::Import
        | VerbName::Note
        | VerbName::Pause
        | VerbName::Plan
        | VerbName::Recover
        | VerbName::Register
        | VerbName::ReleaseClaim
        | VerbName::Remove
        | VerbName::Resolve
        | VerbName::Resume
        | VerbName::Retro
        | VerbName::Run
        | VerbName::SpecChange
        | VerbName::Sprint
        | VerbName::Stop
        | VerbName::Sync
        | VerbName::Tui
        | VerbName::Watch
        | VerbName::Web
        | VerbName::WtCreate
        | VerbName::WtMerge => RunsIn::Supervisor(NO_ROLE),
    }
}

/// Refuses what this agent's session may not use.
///
/// # Errors
/// When the command is not on the list for its role.
pub(in crate::cli) fn check(actor: Actor, verb: &Verb) -> Result<(), CommandError> {
    let name: &'static str = VerbName::from(verb).into();
    let role = match actor {
        Actor::Agent(agent, _) => Some(agent.role()),
        Actor::Human | Actor::Operator(_) | Actor::Supervisor(..) => None,
    };
    let roles = match runs_in(verb) {
        RunsIn::Supervisor(roles) => roles,
        RunsIn::Session => NO_ROLE,
    };
    if role.is_some_and(|role| roles.contains(&role)) {
        if matches!(verb, Verb::Log(args) if args.follows()) {
            return Err(CommandError::refused("not_in_session", "log --follow does not work in a session")
                .hint("read the last entries: liza log"));
        }
        if matches!(verb, Verb::Tail(args) if args.follows()) {
            return Err(CommandError::refused("not_in_session", "tail cannot follow in a session")
                .hint("liza tail AGENT --no-follow"));
        }
        return Ok(());
    }
    let allowed: Vec<String> = roles.iter().map(ToString::to_string).collect();
    let allowed = if allowed.is_empty() { "the human".to_owned() } else { allowed.join(" or ") };
    Err(Refusal::NotPermitted { actor: actor.to_string(), verb: name, allowed }.into())
}

/// The file of the session whose content the command needs.
pub(super) fn named_file(verb: &Verb) -> Option<&Path> {
    if let Verb::SubmitVerdict(args) = verb { args.reason_file() } else { None }
}
