//! Questions to a person at a terminal. A program is never asked: it gives an option.

use crate::cli::context::Context;

use super::ui::console::Stream;
use super::ui::error::CommandError;

/// True if there is a person to ask.
pub(crate) fn at_terminal(context: &Context) -> bool {
    let console = &context.screen.console;
    !context.screen.json && console.is_terminal(Stream::Input) && console.is_terminal(Stream::Error)
}

/// The person's answer, in small letters; empty for a bare return and at the end of the input.
pub(crate) fn ask(context: &Context, question: &str) -> String {
    context.screen.note(question);
    context.screen.console.read_line().unwrap_or_default().trim().to_lowercase()
}

/// True if the person says yes. Anything else means no.
pub(crate) fn says_yes(context: &Context, question: &str) -> bool {
    matches!(ask(context, &format!("{question} [y/N]")).as_str(), "y" | "yes")
}

/// Asks a person before something that cannot be undone. A script is not asked, nor is who has said `--yes`.
pub(crate) fn confirm_end(context: &Context, yes: bool, what: &str) -> Result<(), CommandError> {
    if yes || !at_terminal(context) || says_yes(context, &format!("{what} This cannot be undone. Continue?"))
    {
        return Ok(());
    }
    Err(CommandError::refused("not_confirmed", "nothing was ended")
        .hint("to stop for a while: liza pause; to do it without a question: --yes"))
}

/// The meaning of the end of the goal.
pub(crate) const GOAL_ENDS: &str = "The goal ends and all agents stop for good; nothing is deleted.";

/// Asks a person to accept something; refuses with the hint unless the answer is yes.
pub(crate) fn accepts(context: &Context, question: &str, hint: &str) -> Result<(), CommandError> {
    match says_yes(context, question) {
        true => Ok(()),
        false => Err(CommandError::refused("not_confirmed", "nothing was accepted").hint(hint.to_owned())),
    }
}
