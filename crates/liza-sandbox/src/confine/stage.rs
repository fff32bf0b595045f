//! The stage between a helper and a client: reads its order, restricts itself, tries what must be refused,
//! becomes the client. The order arrives on a socket that only its parent holds, never in a file or variable
//! that an agent could change.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use liza_host::durable::{self, Open};
use liza_ids::SandboxMin;
use serde::{Deserialize, Serialize};

use crate::sys::confinement::{self, Restrictions, Witnesses, can_read, can_write};

use super::caches::CARGO_HOME;
use super::cargo_home;
use super::descriptor::send_listener;
use super::exits::NOT_STARTED;
use super::level::Level;
use super::plan::Plan;
use super::room::{self, NoRoom, RoomOrder, RoomSide};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageOrder {
    pub plan: Plan,
    pub minimum: Option<SandboxMin>,
    /// `None` only reports the level.
    pub program: Option<PathBuf>,
    pub arguments: Vec<String>,
    /// The folder in which the program starts, which may be in its room only; `None` is that of the stage.
    pub directory: Option<PathBuf>,
    pub input: StageInput,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageInput {
    Nothing,
    /// This file, opened before anything is restricted.
    File(PathBuf),
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
        Err(error) => {
            let _ = send(&mut socket, &failed(error).0);
            return NOT_STARTED;
        }
    };
    let room = match enter_room(&order, socket) {
        Ok(RoomSide::Outside(outer)) => return outer.wait(),
        Ok(RoomSide::Inside(inside)) => {
            socket = inside.socket;
            let placed = order.plan.placed.iter().filter(|placed| placed.is_written());
            let placed = placed.map(|placed| placed.at.clone());
            order.plan.grants.write.extend(inside.own.iter().cloned().chain(placed));
            Ok(inside.own)
        }
        Err(no_room) => {
            socket = no_room.socket;
            Err(no_room.why)
        }
    };
    if let (Err(why), false) = (&room, order.plan.placed.is_empty()) {
        // Its files are in a room only.
        let _ = send(&mut socket, &StageReport::Failed(format!("no copy of the files can be made: {why}")));
        return NOT_STARTED;
    }
    let (report, code) = run(&order, &room, &mut socket).unwrap_or_else(failed);
    let _ = send(&mut socket, &report);
    code
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

/// The folders that the room has for itself, or the reason why there is none.
type Room = Result<Vec<PathBuf>, String>;

fn run(order: &StageOrder, room: &Room, socket: &mut UnixStream) -> io::Result<(StageReport, u8)> {
    let level = restrict(&order.plan, room, socket)?;
    if order.minimum.is_some_and(|minimum| !level.reaches(minimum)) {
        return Ok((StageReport::TooLow(level), NOT_STARTED));
    }
    let Some(program) = &order.program else { return Ok((StageReport::Started(level), 0)) };
    fill_cargo_home(&order.plan);
    send(socket, &StageReport::Started(level))?;
    let mut command = Command::new(program);
    if let Some(directory) = &order.directory {
        command.current_dir(directory);
    }
    let error = command.args(&order.arguments).exec();
    Ok((StageReport::Failed(format!("cannot start {}: {error}", program.display())), NOT_STARTED))
}

/// Fills the program's cargo home; cargo downloads the rest.
fn fill_cargo_home(plan: &Plan) {
    let own = std::env::var_os(CARGO_HOME).map(PathBuf::from);
    if let (Some(own), Some(yours), Some(checkout)) = (own, &plan.cargo_home, &plan.checkout) {
        let _ = cargo_home::fill(&own, yours, checkout);
    }
}

fn open_input(input: &StageInput) -> io::Result<File> {
    let failed =
        |path: &Path, error: &io::Error| io::Error::other(format!("cannot read {}: {error}", path.display()));
    let open = |path: &Path| File::open(path).map_err(|error| failed(path, &error));
    match input {
        StageInput::Nothing => open(Path::new("/dev/null")),
        StageInput::File(path) => durable::open(Open::Read, path).map_err(|error| failed(path, &error)),
        StageInput::Terminal => open(Path::new("/dev/tty")).or_else(|_| open(Path::new("/dev/null"))),
    }
}

/// Restricts this process, then tries what must be refused.
fn restrict(plan: &Plan, room: &Room, socket: &UnixStream) -> io::Result<Level> {
    let witnesses = Witnesses::prepare();
    let restrictions = confinement::restrict(&plan.grants, room.is_ok());
    // From here on, every connect waits for the parent's decision.
    send_listener(socket, restrictions.listener.as_ref().ok(), room.as_deref().unwrap_or_default())?;
    let no_room = room.as_ref().err().map(String::as_str);
    Ok(Level::new(gaps(plan, restrictions, &witnesses), no_room))
}

/// The restrictions that failed, and the probes that succeeded.
fn gaps(plan: &Plan, restrictions: Restrictions, witnesses: &Witnesses) -> Vec<String> {
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
    gaps.extend(reachable(plan).into_iter().chain(open_network(plan)));
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

/// Open parts of the network that should be closed.
fn open_network(plan: &Plan) -> Vec<String> {
    let mut open = Vec::new();
    if plan.not_connected.is_some_and(|server| TcpStream::connect(server).is_ok()) {
        open.push("every TCP port can be reached".to_owned());
    }
    if plan.grants.network.is_some() && UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_ok() {
        open.push("UDP is open".to_owned());
    }
    open
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
            grants: Grants { network: Some(TcpGrants::default()), ..Grants::default() },
            ..Plan::default()
        };
        let file = file.display();
        let files = [format!("{file} and 1 more are writable"), format!("{file} is readable")];
        assert_eq!(open_files(&plan), files);
        assert_eq!(reachable(&plan).as_deref(), Some("local services reachable: a service"));
        assert_eq!(open_network(&plan), ["every TCP port can be reached", "UDP is open"]);
        // All of it is part of the level, even if the system reports that everything was restricted.
        let restrictions =
            Restrictions { files: None, calls: None, capabilities: None, listener: Err(String::new()) };
        let gaps = gaps(&plan, restrictions, &Witnesses::prepare());
        for part in files.iter().map(String::as_str).chain([
            "local services reachable: a service",
            "every TCP port can be reached",
            "UDP is open",
        ]) {
            assert!(gaps.iter().any(|gap| gap == part), "{part}: {gaps:?}");
        }
        assert!(place.path().read_dir().unwrap().count() == 2, "trying leaves nothing behind");
    }
}
