//! The session's side: sends a command to the supervisor, with the content of what it names, and prints the answer.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::channel::{
    Address, Answer, CHANNEL, ChannelError, Refused, SessionCall, TerminalFacts, WrittenTo, send,
};
use crate::cli::context::{Caller, enter};
use crate::cli::ui::console::{Console, Stream};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Screen;
use crate::cli::verb::Cli;
use crate::identity::{SessionAround, session_in};
use crate::project::Project;

use super::modify;
use super::verbs::{RunsIn, named_file, runs_in};

/// The largest file whose content a command may send, and the longest text on standard input.
const CONTENT_MAX: u64 = 1 << 20;

/// Sends a command of a session that is for the session's own project to its supervisor; `None` if it is to run here.
pub(in crate::cli) fn forward(
    cli: &Cli,
    arguments: &[OsString],
    caller: &Caller,
    screen: &Screen,
) -> Option<Exit> {
    let session = session_for(cli, caller)?;
    let sent = SessionClient::new(session, caller).and_then(|client| match cli.verb.lock_modify() {
        Some(command) => modify::modify_copy(&client, command, screen),
        None => client.forward(cli, arguments),
    });
    Some(sent.unwrap_or_else(|error| {
        screen.error(&error);
        error.exit
    }))
}

/// The session whose project the command is for. Where no project is found, it is for the session's.
fn session_for<'c>(cli: &Cli, caller: &'c Caller) -> Option<&'c SessionAround> {
    if caller.sessions.is_empty() || runs_in(&cli.verb) == RunsIn::Session {
        return None;
    }
    let directory = match &cli.global.directory {
        Some(folder) => enter(&caller.directory, folder).ok()?,
        None => caller.directory.clone(),
    };
    match Project::find(&directory) {
        Some(root) => session_in(&root, &caller.sessions),
        None => caller.sessions.first(),
    }
}

/// Sends commands for one session.
pub(super) struct SessionClient<'c> {
    pub(super) caller: &'c Caller,
    address: Address,
}

impl<'c> SessionClient<'c> {
    fn new(session: &SessionAround, caller: &'c Caller) -> Result<Self, CommandError> {
        let address = caller.environment.text(CHANNEL).and_then(Address::from_variable).ok_or_else(|| {
            let message = format!(
                "{CHANNEL} is not set, so this command cannot prove that it belongs to the session of {}",
                session.agent()
            );
            CommandError::refused("no_channel", message).hint("keep the variables of the session")
        })?;
        Ok(Self { caller, address })
    }

    fn forward(&self, cli: &Cli, arguments: &[OsString]) -> Result<Exit, CommandError> {
        let text = |argument: &OsString| {
            argument.to_str().map(str::to_owned).ok_or_else(|| {
                let message = format!("the argument {argument:?} is not UTF-8 text");
                CommandError::refused("bad_text", message)
            })
        };
        let arguments = arguments.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let reads_input =
            arguments.iter().skip(1).any(|argument| argument == "-" || argument.ends_with("=-"));
        let input = if reads_input { Some(self.input()?) } else { None };
        let named = named_file(&cli.verb).filter(|file| file.as_os_str() != "-");
        let files = match named {
            Some(file) => vec![(file.display().to_string(), content(&self.caller.directory.join(file))?)],
            None => Vec::new(),
        };
        let answer = self.send(SessionCall { arguments, input, files, ..SessionCall::default() })?;
        Ok(self.print(&answer))
    }

    /// All of standard input. One byte more than allowed lets the other side refuse a text that is too long.
    fn input(&self) -> Result<String, CommandError> {
        let unreadable = |why: String| CommandError::refused("bad_text", format!("standard input: {why}"));
        let read = self.caller.console.read_input(CONTENT_MAX + 1);
        let bytes = read.map_err(|error| unreadable(error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
    }

    /// Sends a command and returns what it wrote.
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

/// The text of a regular file that is not too large; a link is not followed, a pipe not waited for.
fn content(path: &Path) -> Result<String, CommandError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let read = || {
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(CONTENT_MAX + 1).read_to_end(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
    };
    read().map_err(|error| {
        CommandError::refused("io", format!("cannot read {}: {error}", path.display()))
            .hint("name a text file of at most 1 MiB that is not a link, or - for standard input")
    })
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
        Refused::Busy => {
            CommandError::refused("busy", message).exit(Exit::Locked).hint("run commands one after the other")
        }
        Refused::OverLimit => CommandError::refused("too_slow", message)
            .exit(Exit::Locked)
            .hint("check whether it had its effect: liza status"),
        Refused::Crashed => CommandError::refused("internal", message).hint("check its effect: liza status"),
    }
}
