//! The connection of a command to its session's supervisor: sends, prints answers, explains errors.

use liza_team::channel::{
    Address, Answer, CHANNEL, ChannelError, Refused, SessionCall, TerminalFacts, WrittenTo, send,
};
use liza_team::project::identity::SessionAround;

use crate::cli::context::Caller;
use crate::cli::ui::console::{Console, Stream};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;

/// The largest file whose content a command may send, and the longest text on standard input.
pub(super) const CONTENT_MAX: u64 = 1 << 20;

pub(super) struct SessionClient<'c> {
    pub(super) caller: &'c Caller,
    address: Address,
}

impl<'c> SessionClient<'c> {
    pub(super) fn new(session: &SessionAround, caller: &'c Caller) -> Result<Self, CommandError> {
        let address = caller.environment.text(CHANNEL).and_then(Address::from_variable).ok_or_else(|| {
            let message = format!(
                "{CHANNEL} is not set, so this command cannot prove that it belongs to the session of {}",
                session.agent()
            );
            CommandError::refused("no_channel", message).hint("keep the variables of the session")
        })?;
        Ok(Self { caller, address })
    }

    /// All of standard input. One byte more than allowed lets the other side refuse a text that is too long.
    pub(super) fn input(&self) -> Result<String, CommandError> {
        let unreadable = |why: String| CommandError::refused("bad_text", format!("standard input: {why}"));
        let read = self.caller.console.read_input(CONTENT_MAX + 1);
        let bytes = read.map_err(|error| unreadable(error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
    }

    /// Sends a command and returns its output.
    pub(super) fn send(&self, call: SessionCall) -> Result<Answer, CommandError> {
        let console = self.caller.console.as_ref();
        let fixed_columns = self.caller.environment.text("COLUMNS").and_then(|text| text.trim().parse().ok());
        let terminal = TerminalFacts { fixed_columns, ..facts(console) };
        let call = SessionCall { secret: self.address.secret.clone(), terminal, ..call };
        send(&self.address, &call).map_err(Into::into)
    }

    /// Prints an answer. A closed pipe is not an error.
    pub(super) fn print(&self, answer: &Answer) -> Exit {
        for (to, text) in &answer.written {
            let stream = match to {
                WrittenTo::Output => Stream::Output,
                WrittenTo::Error => Stream::Error,
            };
            let _ = self.caller.console.write(stream, text);
        }
        Exit::Session(answer.exit)
    }
}

fn facts(console: &dyn Console) -> TerminalFacts {
    TerminalFacts {
        columns: console.columns(),
        fixed_columns: None,
        output: console.is_terminal(Stream::Output),
        color: console.has_color(Stream::Output),
        error_color: console.has_color(Stream::Error),
    }
}

impl From<ChannelError> for CommandError {
    fn from(error: ChannelError) -> Self {
        let message = error.to_string();
        match error {
            ChannelError::Gone(_) => {
                Self::refused("no_supervisor", message).exit(Exit::Stop).hint("end your turn now")
            }
            ChannelError::NoAnswer(_) => Self::refused("no_answer", message)
                .exit(Exit::Locked)
                .hint("check whether the command had its effect: liza status"),
            ChannelError::Refused(why) => refused(why, message),
        }
    }
}

fn refused(why: Refused, message: String) -> CommandError {
    match why {
        Refused::Malformed => CommandError::refused("bad_message", message).hint("send shorter texts"),
        Refused::TooSlow => CommandError::refused("too_slow", message).hint("run the command again"),
        Refused::Stranger => CommandError::refused("not_this_session", message)
            .hint("run liza from the session itself, with its variables"),
        Refused::UnderTest => {
            CommandError::refused("not_permitted", message).hint("run liza outside of liza check")
        }
        Refused::NotSpoken => CommandError::refused("verdict_not_spoken", message)
            .hint("run liza in your own shell: not through git, make, npm, cargo, python or timeout, and not detached"),
        Refused::TooMuch => {
            CommandError::refused("bad_message", message).hint("send shorter texts, or end this session")
        }
        Refused::Busy => {
            CommandError::refused("busy", message).exit(Exit::Locked).hint("run commands one after the other")
        }
        Refused::OverLimit => CommandError::refused("too_slow", message)
            .exit(Exit::Locked)
            .hint("check whether it had its effect: liza status"),
        Refused::Crashed => CommandError::refused("internal", message).hint("check its effect: liza status"),
    }
}
