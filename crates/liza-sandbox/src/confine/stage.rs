//! The stage between a helper and a client: reads its order, restricts itself, tries what must be refused,
//! becomes the client. The order arrives on a socket that only its parent holds, never in a file or variable
//! that an agent could change.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use liza_host::durable::{self, Open};
use liza_ids::SandboxMin;
use serde::{Deserialize, Serialize};

use crate::sys::confinement::{self, Restrictions, RoomSockets, Witnesses, can_read, can_write};
use crate::sys::sealed_copy;
use crate::sys::terminal::{input_from_output, lead_terminal};

use super::descriptor::send_listener;
use super::exits::NOT_STARTED;
use super::level::Level;
use super::placed::Placed;
use super::plan::Plan;
use super::room::{self, NoRoom, RoomOrder, RoomSide};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageOrder {
    pub plan: Plan,
    pub minimum: Option<SandboxMin>,
    /// `None` only reports the level.
    pub program: Option<PathBuf>,
    pub arguments: Vec<String>,
    /// The folder in which the program starts, which may be in its room only; `None` is that of the stage.
    pub directory: Option<PathBuf>,
    /// Replaces the environment, which is the stage's: variables from a session could make the stage run its code.
    pub environment: Option<Vec<(String, String)>>,
    pub input: StageInput,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageInput {
    #[default]
    Nothing,
    /// A copy of this file, read before anything is restricted. The program gets no descriptor of a file outside of its room.
    File(PathBuf),
    /// The terminal on the output, which the program leads.
    Terminal,
}

/// The reports of the stage, in order; after `Started` its socket closes, unless the program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageReport {
    Started(Level),
    TooLow(Level),
    Failed(String),
}

/// Runs the order that arrives on standard input; returns only if the program was not started, with the exit code.
pub fn serve() -> u8 {
    let Ok(mut socket) = take_socket() else { return NOT_STARTED };
    let failed = |error: io::Error| (StageReport::Failed(error.to_string()), NOT_STARTED);
    let mut order = match read_order(&socket) {
        Ok(order) => order,
        Err(error) => return fail_early(&mut socket, error.to_string()),
    };
    let room = match enter_room(&order, socket) {
        Ok(RoomSide::Outside(outer)) => return outer.wait(),
        Ok(RoomSide::Inside(inside)) => {
            socket = inside.socket;
            let placed = order.plan.placed.iter().filter(|placed| placed.is_in_room_only());
            let placed = placed.map(|placed| placed.at.clone());
            order.plan.grants.write.extend(inside.own.iter().cloned().chain(placed));
            Ok((inside.own, inside.sockets))
        }
        Err(no_room) => {
            socket = no_room.socket;
            Err(no_room.why)
        }
    };
    if let (Err(why), true) = (&room, order.plan.placed.iter().any(Placed::is_in_room_only)) {
        // Its files are in a room only.
        return fail_early(&mut socket, format!("no copy of the files can be made: {why}"));
    }
    let (report, code) = run(&order, room, &mut socket).unwrap_or_else(failed);
    let _ = send(&mut socket, &report);
    code
}

/// Reports a failure before the listener was sent, which the parent expects first.
fn fail_early(socket: &mut UnixStream, why: String) -> u8 {
    let sent = send_listener(socket, None, &[], None);
    let _ = sent.and_then(|()| send(socket, &StageReport::Failed(why)));
    NOT_STARTED
}

/// The socket on standard input, moved away so that the client does not inherit it.
pub(crate) fn take_socket() -> io::Result<UnixStream> {
    let copy = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    Ok(UnixStream::from(copy))
}

fn read_order(socket: &UnixStream) -> io::Result<StageOrder> {
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line)?;
    let order: StageOrder = serde_json::from_str(&line).map_err(io::Error::other)?;
    rustix::stdio::dup2_stdin(open_input(&order.input)?)?;
    Ok(order)
}

/// Goes into a room, if the system allows it. The settings for older kernels leave it out.
fn enter_room(order: &StageOrder, socket: UnixStream) -> Result<RoomSide, NoRoom> {
    if order.plan.grants.max_abi.is_some() {
        return Err(NoRoom { socket, why: "config.sandbox_max_abi is set".to_owned() });
    }
    let has_terminal = order.input == StageInput::Terminal;
    let directory = order.directory.as_deref();
    room::enter(&RoomOrder { plan: &order.plan, directory, has_terminal }, socket)
}

/// The time for a connect that must be refused at once.
const SHORT_WAIT: Duration = Duration::from_millis(100);

/// An address that no host has.
const NOWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// What the room has for itself, or the reason why there is none.
type Room = Result<(Vec<PathBuf>, RoomSockets), String>;

fn run(order: &StageOrder, room: Room, socket: &mut UnixStream) -> io::Result<(StageReport, u8)> {
    let level = restrict(&order.plan, room, socket)?;
    if order.minimum.is_some_and(|minimum| !level.reaches(minimum)) {
        return Ok((StageReport::TooLow(level), NOT_STARTED));
    }
    let Some(program) = &order.program else { return Ok((StageReport::Started(level), 0)) };
    // With nothing but the rights of the program: an earlier session may have left anything there.
    if let Some(checkout) = &order.plan.checkout {
        order.plan.caches.iter().for_each(|cache| cache.fill(checkout));
    }
    send(socket, &StageReport::Started(level))?;
    if let (StageInput::Nothing, Ok(own)) = (&order.input, open_input(&StageInput::Nothing)) {
        // The one from before belongs to a mount outside of the room.
        rustix::stdio::dup2_stdin(own)?;
    }
    let mut command = Command::new(program);
    if let Some(directory) = &order.directory {
        command.current_dir(directory);
    }
    if let Some(environment) = &order.environment {
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    }
    if order.input == StageInput::Terminal {
        // In here, since a process outside of the room has no number in it.
        let _ = lead_terminal();
    }
    let error = command.args(&order.arguments).exec();
    Ok((StageReport::Failed(format!("cannot start {}: {error}", program.display())), NOT_STARTED))
}

fn open_input(input: &StageInput) -> io::Result<File> {
    let failed =
        |path: &Path, error: &io::Error| io::Error::other(format!("cannot read {}: {error}", path.display()));
    let open = |path: &Path| File::open(path).map_err(|error| failed(path, &error));
    match input {
        StageInput::Nothing => open(Path::new("/dev/null")),
        StageInput::File(path) => {
            durable::open(Open::Read, path).and_then(sealed_copy).map_err(|error| failed(path, &error))
        }
        StageInput::Terminal => input_from_output(),
    }
}

/// Restricts this process, then tries what must be refused.
fn restrict(plan: &Plan, room: Room, socket: &UnixStream) -> io::Result<Level> {
    let witnesses = Witnesses::prepare(plan.not_named.as_deref());
    let restrictions = confinement::restrict(&plan.grants, room.is_ok());
    let (own, sockets, no_room) = match room {
        Ok((own, sockets)) => (own, Some(sockets), None),
        Err(why) => (Vec::new(), None, Some(why)),
    };
    // From here on, every connect waits for the parent's decision.
    send_listener(socket, restrictions.listener.as_ref().ok(), &own, sockets.as_ref())?;
    Ok(Level::new(gaps(plan, restrictions, &witnesses, no_room.is_none()), no_room.as_deref()))
}

/// The restrictions that failed, and the probes that succeeded.
fn gaps(plan: &Plan, restrictions: Restrictions, witnesses: &Witnesses, is_in_room: bool) -> Vec<String> {
    let mut gaps: Vec<String> = Vec::new();
    gaps.extend(restrictions.files.map(|why| format!("files are not protected ({why})")));
    gaps.extend(restrictions.calls.map(|why| format!("system calls are not filtered ({why})")));
    gaps.extend(restrictions.capabilities);
    if gaps.is_empty() {
        gaps.extend(open_files(plan));
    }
    for gap in witnesses.still_possible() {
        if !gaps.iter().any(|known| known.starts_with(&gap)) {
            gaps.push(gap);
        }
    }
    gaps.extend(reachable(plan).into_iter().chain(open_network(plan, is_in_room)));
    gaps
}

fn open_files(plan: &Plan) -> Vec<String> {
    let writable = found("writable", plan.not_written.iter().filter(|path| can_write(path)));
    let readable = found("readable", plan.not_read.iter().filter(|path| can_read(path)));
    writable.into_iter().chain(readable).collect()
}

fn reachable(plan: &Plan) -> Option<String> {
    let open = plan.not_reached.iter().filter(|(_, socket)| UnixStream::connect(socket).is_ok());
    let names: Vec<&str> = open.map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("local services reachable: {}", names.join(", ")))
}

/// Open parts of the network that should be closed, and a room's network that leads nowhere.
fn open_network(plan: &Plan, is_in_room: bool) -> Vec<String> {
    let is_closed = plan.grants.network.is_some();
    let reaches = |server: SocketAddr| TcpStream::connect(server).is_ok();
    let datagrams = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    let leaves = || datagrams().is_ok_and(|socket| socket.send_to(&[], NOWHERE).is_ok());
    // A port of this machine that is granted must not be granted on every host.
    let elsewhere = |server: SocketAddr| SocketAddr::from((NOWHERE.0, server.port()));
    let tries = |target| TcpStream::connect_timeout(&target, SHORT_WAIT);
    let is_open =
        |target| tries(target).map_or_else(|error| error.kind() != ErrorKind::PermissionDenied, |_| true);
    let found = [
        (plan.not_connected.is_some_and(reaches), "services of this machine can be reached"),
        (is_closed && plan.connected.map(elsewhere).is_some_and(is_open), "other hosts can be reached"),
        (!is_in_room && is_closed && datagrams().is_ok(), "UDP is open"),
        (is_in_room && leaves(), "UDP leads out of the room"),
        (is_in_room && !plan.connected.is_some_and(reaches), "the network of the room leads nowhere"),
    ];
    found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned()).collect()
}

/// One sentence about the paths for which a probe succeeded.
fn found<'p>(what: &str, paths: impl Iterator<Item = &'p PathBuf>) -> Option<String> {
    let names: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    let (first, rest) = names.split_first()?;
    Some(match rest.len() {
        0 => format!("{first} is {what}"),
        more => format!("{first} and {more} more are {what}"),
    })
}

fn send(socket: &mut UnixStream, report: &StageReport) -> io::Result<()> {
    let line = serde_json::to_string(report).map_err(io::Error::other)?;
    writeln!(socket, "{line}")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::sys::confinement::{Grants, TcpGrants};

    /// Covers: IS-05, IS-06, IS-12
    #[test]
    fn what_is_not_refused_is_found_by_trying_it() {
        let place = tempfile::tempdir().unwrap();
        let (file, socket) = (place.path().join("file"), place.path().join("socket"));
        std::fs::write(&file, "").unwrap();
        let _service = UnixListener::bind(&socket).unwrap();
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let plan = Plan {
            not_written: vec![file.clone(), place.path().to_owned()],
            not_read: vec![file.clone()],
            not_reached: vec![("a service".to_owned(), socket), ("none".to_owned(), file.clone())],
            not_connected: Some(server.local_addr().unwrap()),
            connected: None,
            grants: Grants { network: Some(TcpGrants::default()), ..Grants::default() },
            ..Plan::default()
        };
        let file = file.display();
        let files = [format!("{file} and 1 more are writable"), format!("{file} is readable")];
        assert_eq!(open_files(&plan), files);
        assert_eq!(reachable(&plan).as_deref(), Some("local services reachable: a service"));
        let open = ["services of this machine can be reached", "UDP is open"];
        assert_eq!(open_network(&plan, false), open);
        // This is no room: its network leads somewhere, but not to a server that is gone.
        drop(server);
        let nowhere = "the network of the room leads nowhere";
        assert!(open_network(&plan, true).contains(&nowhere.to_owned()));
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let plan =
            Plan { not_connected: server.local_addr().ok(), connected: server.local_addr().ok(), ..plan };
        assert!(!open_network(&plan, true).contains(&nowhere.to_owned()));
        // All of it is part of the level, even if the system reports that everything was restricted.
        let restrictions =
            Restrictions { files: None, calls: None, capabilities: None, listener: Err(String::new()) };
        let gaps = gaps(&plan, restrictions, &Witnesses::prepare(None), false);
        for part in
            files.iter().map(String::as_str).chain(["local services reachable: a service", open[0], open[1]])
        {
            assert!(gaps.iter().any(|gap| gap == part), "{part}: {gaps:?}");
        }
        assert!(place.path().read_dir().unwrap().count() == 2, "trying leaves nothing behind");
    }
}
