//! Runs the commands of `liza check` for a session: outside of it, in a room of their own. Code under test and the session share
//! no process, no loopback, no memory and no folder that either could use against the other.
//!
//! Only the words of the command come from the session: the plan, the folders and the environment of the stage are its supervisor's.

use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use liza_core::model::SandboxMin;
use liza_git::{CHECK_COPY, take_turn};
use liza_host::disk::SpaceWatch;
use liza_host::listener::{Accepting, Places};
use liza_sandbox::confine::plan::Plan;
use liza_sandbox::confine::streams::{is_closed, receive_streams};
use liza_sandbox::confine::{
    EnvironmentUse, KeptStreams, StageInput, StageOrder, ThrowAwayCopy, cache_variables, passed_environment,
    run_kept, wrapper_words,
};
use liza_sandbox::sys::confinement::TcpGrants;
use liza_sandbox::sys::remove_tree::{fresh_folder, remove_tree};
use serde::{Deserialize, Serialize};

use crate::channel::{receive, send_message};

/// The variable with the socket of a session for its checks.
pub const CHECK_DOOR: &str = "LIZA_CHECK_DOOR";

/// The longest time for an order to arrive, and for its caller to take the answer.
const TRANSFER_LIMIT: Duration = Duration::from_secs(10);

/// The most connections of a session at once: one check runs at a time.
const CONNECTIONS_MAX: usize = 16;

/// The longest order: the words of a command, and an environment.
const ORDER_MAX: usize = 4 << 20;

/// The reduced priority of code under test, as that of sessions.
const NICENESS: i32 = 5;

/// What a session asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOrder {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// A folder of the copy.
    pub directory: PathBuf,
    pub environment: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckAnswer {
    Ended(u8),
    Failed(String),
}

/// What its supervisor knows about the checks of a session.
#[derive(Debug, Clone)]
pub(crate) struct CheckPlace {
    pub liza: PathBuf,
    /// The runner in front of the session, which is in front of its checks too.
    pub wrapper: Vec<String>,
    pub minimum: Option<SandboxMin>,
    pub plan: Plan,
    /// A folder for copies, which no room has.
    pub copies: PathBuf,
}

/// Closed when it is dropped; checks that run end with the session's processes, which hold their connections.
#[derive(Debug)]
pub(crate) struct CheckDoor {
    socket: PathBuf,
    _accepting: Accepting,
}

impl CheckDoor {
    /// `scratch` is a folder for temporary files that no session can write.
    pub(crate) fn open(socket: PathBuf, place: CheckPlace, scratch: PathBuf) -> io::Result<Self> {
        let (place, places) = (Arc::new((place, scratch)), Places::new(CONNECTIONS_MAX));
        let accepting = Accepting::start(UnixListener::bind(&socket)?, move |connection| {
            // Without a place or a thread, the connection is dropped.
            let Some(taken) = places.take() else { return };
            let place = Arc::clone(&place);
            drop(thread::Builder::new().spawn(move || (serve(&place.0, &place.1, connection), taken)));
        })?;
        Ok(Self { socket, _accepting: accepting })
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for CheckDoor {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

fn serve(place: &CheckPlace, scratch: &Path, mut connection: UnixStream) {
    let answer = match run(place, scratch, &mut connection) {
        Ok(status) => CheckAnswer::Ended(code_of(status)),
        Err(error) => CheckAnswer::Failed(error.to_string()),
    };
    // The caller may be gone.
    let _ = send_message(&mut connection, &answer, TRANSFER_LIMIT);
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn run(place: &CheckPlace, scratch: &Path, connection: &mut UnixStream) -> io::Result<ExitStatus> {
    let order: CheckOrder = receive(connection, ORDER_MAX, TRANSFER_LIMIT)?;
    let streams = receive_streams(connection)?;
    let caches = place.plan.check_caches.clone().ok_or(io::ErrorKind::Unsupported)?;
    // One after the other: they use the same folders. Held until nothing of the command is left.
    let _turn = take_turn(&caches)?
        .ok_or_else(|| io::Error::other("another check of this session is still ending"))?;
    let scratch = Scratch::create(scratch)?;
    let mut copy = ThrowAwayCopy::new(&place.copies)?;
    let mut plan = of_code_under_test(place.plan.clone(), scratch.0, &caches.join(CHECK_COPY));
    // A runner in front gets no folder that the session names or makes: it is not confined.
    let around = plan.copied.clone().unwrap_or_else(|| caches.clone());
    plan.placed.extend(plan.copied.as_deref().map(|folder| copy.of(folder)).transpose()?);
    let folder = |name: &str| (name.to_owned(), scratch.0.to_string_lossy().into_owned());
    let own: Vec<_> =
        ["TMPDIR", "XDG_CONFIG_HOME"].map(folder).into_iter().chain(cache_variables(&caches)).collect();
    let mut environment =
        passed_environment(std::env::vars_os(), EnvironmentUse::CodeUnderTest, &plan.pass_env);
    environment.extend(own.iter().map(|(name, value)| (name.into(), value.into())));
    let wrapper = wrapper_words(&place.wrapper, &plan, &around.to_string_lossy());
    let stage = StageOrder {
        plan,
        minimum: place.minimum,
        program: Some(order.program),
        arguments: order.arguments,
        directory: Some(order.directory),
        environment: Some(order.environment.into_iter().chain(own).collect()),
        input: StageInput::Nothing,
    };
    // Of this thread, and of what it starts.
    let _ = rustix::process::nice(NICENESS);
    let space = SpaceWatch::new([place.copies.clone(), caches, scratch.0.to_owned()]);
    let is_cancelled = || {
        space.look();
        is_closed(connection)
    };
    let status = run_kept(&place.liza, &stage, KeptStreams { wrapper, environment, streams }, is_cancelled)?;
    if status.success() { Ok(status) } else { space.check().map(|()| status) }
}

/// A folder that exists while a check runs.
struct Scratch<'a>(&'a Path);

impl<'a> Scratch<'a> {
    fn create(path: &'a Path) -> io::Result<Self> {
        fresh_folder(path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let _ = remove_tree(self.0);
    }
}

/// Reduces a session's plan: without its private files, its checkout and its model, and with another folder for temporary files.
fn of_code_under_test(mut plan: Plan, scratch: &Path, copy: &Path) -> Plan {
    let is_private = |path: &PathBuf| plan.private.iter().any(|private| path.starts_with(private));
    plan.grants.read.retain(|path| !is_private(path));
    plan.grants.write.retain(|path| !is_private(path) && Some(path) != plan.checkout.as_ref());
    let copy = plan.copied.as_deref().unwrap_or(copy);
    plan.not_written.retain(|path| path != copy);
    plan.checkout = plan.checkout.map(|_| copy.to_owned());
    plan.grants.write.push(scratch.to_owned());
    plan.grants.sockets.clear();
    // It has no voice, whatever it was.
    plan.grants.notes_programs = false;
    plan.grants.network = plan.grants.network.map(|network| TcpGrants { proxy: CLOSED, ..network });
    plan.channel = None;
    plan
}

/// A port at which nothing can listen.
const CLOSED: u16 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use liza_sandbox::sys::confinement::Grants;

    /// Covers: IS-13, JU-08
    #[test]
    fn code_under_test_gets_neither_the_login_nor_the_channel_nor_the_model() {
        let grants = Grants {
            read: vec!["/usr".into(), "/p/.liza/prompt.md".into()],
            write: [
                "/p/.worktrees/t1",
                "/p/.liza/clients/a",
                "/p/.liza/tmp/a",
                "/p/.liza/caches/code-reviewer",
                "/p/.liza/caches/code-reviewer-check",
            ]
            .map(PathBuf::from)
            .into(),
            sockets: vec!["/run/channel".into()],
            network: Some(TcpGrants { proxy: 4711, ports: vec![443] }),
            ..Grants::default()
        };
        let private = ["clients/a", "tmp/a", "caches/code-reviewer", "prompt.md"];
        let private = private.map(|name| Path::new("/p/.liza").join(name)).to_vec();
        let check_caches = Some("/p/.liza/caches/code-reviewer-check".into());
        let channel = Some("/run/channel".into());
        let checkout = Some("/p/.worktrees/t1".into());
        let plan = Plan { grants, private, channel, check_caches, checkout, ..Plan::default() };
        let copy = Path::new("/p/.liza/caches/code-reviewer-check/tree");
        let tested = of_code_under_test(plan, Path::new("/p/.liza/tmp/a.check"), copy);
        let write = ["/p/.liza/caches/code-reviewer-check", "/p/.liza/tmp/a.check"].map(PathBuf::from);
        assert_eq!((tested.grants.write, tested.checkout.as_deref()), (write.into(), Some(copy)));
        assert_eq!(tested.grants.read, [PathBuf::from("/usr")]);
        assert_eq!((tested.channel, tested.grants.sockets.len()), (None, 0));
        assert_eq!(tested.grants.network, Some(TcpGrants { proxy: CLOSED, ports: vec![443] }));
    }

    /// Covers: JU-08
    #[test]
    fn a_session_that_opens_connections_without_end_gets_a_few() {
        use std::io::Read as _;
        let home = tempfile::tempdir().unwrap();
        let place = CheckPlace {
            liza: "liza".into(),
            wrapper: Vec::new(),
            minimum: None,
            plan: Plan::default(),
            copies: home.path().join("copies"),
        };
        let door = CheckDoor::open(home.path().join("door"), place, home.path().join("scratch")).unwrap();
        let connect = || UnixStream::connect(door.socket()).unwrap();
        let _open: Vec<UnixStream> = (0..CONNECTIONS_MAX).map(|_| connect()).collect();
        let mut next = connect();
        next.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(next.read(&mut [0]).unwrap(), 0, "closed at once");
    }
}
