//! Refuses commands that a session may not use in its own project, by the table of commands.
//!
//! None of the commands that are sent starts a program or writes to a path that the session names.

use std::path::Path;

use liza_core::model::{Actor, Refusal};

use crate::cli::ui::error::CommandError;
use crate::cli::verb::{RunsIn, Verb, VerbName};

/// The process that runs a command of a session.
pub(super) fn runs_in(verb: &Verb) -> RunsIn {
    // A file of the session's own.
    if matches!(verb, Verb::Validate(args) if args.has_file()) {
        return RunsIn::Session;
    }
    VerbName::from(verb).runs_in()
}

/// Refuses a command that this agent's session may not use.
pub(in crate::cli) fn check(actor: Actor, verb: &Verb) -> Result<(), CommandError> {
    let name = VerbName::from(verb).into_str();
    let role = match actor {
        Actor::Agent(agent, _) => Some(agent.role()),
        Actor::Human | Actor::Operator(_) | Actor::Supervisor(..) => None,
    };
    let roles = match runs_in(verb) {
        RunsIn::Supervisor(roles) => roles,
        RunsIn::Session => &[],
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
