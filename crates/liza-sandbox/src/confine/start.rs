//! Starts a program through the stage, and finds out the level without starting one.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::socket_folder::{SocketFolder, SocketUse};
use crate::sys::confinement::{ConnectPolicy, NamedSocket, NotedPrograms, ProbedServer, decide_connects};
use crate::sys::peer::{Silenced, SpeakerRule};

use super::descriptor::{ReceivedListener, learn_sender, receive_listener};
use super::level::Level;
use super::plan::Plan;
use super::stage::{StageOrder, StageReport};
use super::system_folders::SHARED_MEMORY;

/// For programs without a channel.
pub const NO_SPEAKER: SpeakerRule = |_, _, _| Err(Silenced::UnderTest);

pub const STAGE: &str = "confine";

/// For a socket outside of what the program has.
const TEMPORARY: &str = "/tmp";

/// The longest time for the stage; it opens some hundred folders.
const STAGE_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct StageStarted {
    pub level: Level,
    /// The process that became the program, if the system reports it. A runner in front is its ancestor.
    pub client: Option<u32>,
}

#[derive(Debug)]
pub struct StageSocket(UnixStream);

/// The command that starts the stage, and the socket for its order. Folder, environment and output of the
/// command become the program's. Drop the command after spawning: it holds the other end.
pub fn stage_command(liza: impl AsRef<OsStr>) -> io::Result<(Command, StageSocket)> {
    wrapped_stage_command(&[], liza)
}

pub fn wrapped_stage_command(
    wrapper: &[String],
    liza: impl AsRef<OsStr>,
) -> io::Result<(Command, StageSocket)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(STAGE_LIMIT))?;
    ours.set_write_timeout(Some(STAGE_LIMIT))?;
    learn_sender(&ours)?;
    let mut command = wrapped(wrapper, liza.as_ref());
    command.arg(STAGE).stdin(Stdio::from(OwnedFd::from(theirs)));
    Ok((command, StageSocket(ours)))
}

/// A program, in a runner if there is one.
pub(super) fn wrapped(wrapper: &[String], program: &OsStr) -> Command {
    let Some((runner, words)) = wrapper.split_first() else { return Command::new(program) };
    let mut command = Command::new(runner);
    command.args(words).arg(program);
    command
}

impl StageSocket {
    /// Sends the order to the spawned stage, and waits until it has become the program.
    pub fn start(self, order: &StageOrder, speakers: SpeakerRule) -> io::Result<StageStarted> {
        self.start_noting(order, speakers, false)
    }

    /// The same for a program that speaks for no one; its errors, which are those of this process, name what it is refused.
    pub(super) fn start_kept(self, order: &StageOrder) -> io::Result<StageStarted> {
        self.start_noting(order, NO_SPEAKER, true)
    }

    fn start_noting(
        mut self,
        order: &StageOrder,
        speakers: SpeakerRule,
        in_errors: bool,
    ) -> io::Result<StageStarted> {
        let probes = Probes::prepare(&order.plan);
        let order = StageOrder { plan: probes.added_to(order.plan.clone()), ..order.clone() };
        let line = serde_json::to_string(&order).map_err(io::Error::other)?;
        writeln!(self.0, "{line}")?;
        // Made while the stage restricts itself: its first connect waits for it.
        let policy = ConnectPolicy { probed: Arc::clone(&probes.granted), ..policy(&order.plan, speakers) };
        let ReceivedListener { listener, stage: client, own, sockets } = receive_listener(&self.0)?;
        if let Some(listener) = listener {
            decide_connects(listener, ConnectPolicy { client, own, in_errors, ..policy }, sockets)?;
        }
        let mut started = None;
        for line in BufReader::new(self.0).lines() {
            match serde_json::from_str(&line?).map_err(io::Error::other)? {
                StageReport::Started(level) => started = Some(level),
                StageReport::TooLow(level) => return Err(io::Error::other(too_low(&level))),
                StageReport::Failed(why) => return Err(io::Error::other(why)),
            }
        }
        let level = started.ok_or_else(|| io::Error::other("the confinement stage ended early"))?;
        Ok(StageStarted { level, client })
    }
}

/// The existing sockets, for the stage to probe: this process decides each attempt, which delays the start.
fn to_try(mut sockets: Vec<(String, PathBuf)>, witness: Option<(String, PathBuf)>) -> Vec<(String, PathBuf)> {
    sockets.retain(|(_, path)| fs::symlink_metadata(path).is_ok());
    sockets.extend(witness);
    sockets
}

/// Targets that a session must not reach, to prove it: sockets and a server; and a server that it must reach from a room.
struct Probes {
    socket: Option<OutsideSocket>,
    named: Option<NamedSocket>,
    servers: [Option<TcpListener>; 2],
    /// The address of the second server.
    granted: ProbedServer,
}

impl Probes {
    fn prepare(plan: &Plan) -> Self {
        let server = |()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok();
        let socket = OutsideSocket::create(outside_of(plan, &std::env::temp_dir()));
        let servers = [(), ()].map(server);
        let granted = Arc::new(Mutex::new(address(servers[1].as_ref())));
        Self { socket, named: NamedSocket::create(), servers, granted }
    }

    fn added_to(&self, mut plan: Plan) -> Plan {
        let socket = self.socket.as_ref().map(|socket| ("sockets outside".to_owned(), socket.path.clone()));
        plan.not_reached = to_try(plan.not_reached, socket);
        plan.not_named = self.named.as_ref().map(|socket| socket.name.clone());
        [plan.not_connected, plan.connected] = self.servers.each_ref().map(|server| address(server.as_ref()));
        plan
    }
}

fn address(server: Option<&TcpListener>) -> Option<SocketAddr> {
    server?.local_addr().ok()
}

impl Drop for Probes {
    /// The grant ends before the servers do: their ports may then belong to another program.
    fn drop(&mut self) {
        *self.granted.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The folder for temporary files that a keeper has is its program's, which reaches the sockets there.
fn outside_of<'p>(plan: &Plan, temporary: &'p Path) -> &'p Path {
    let is_own = plan.grants.write.iter().any(|own| temporary.starts_with(own));
    if is_own { Path::new(TEMPORARY) } else { temporary }
}

struct OutsideSocket {
    path: PathBuf,
    _listener: UnixListener,
    _folder: SocketFolder,
}

impl OutsideSocket {
    fn create(temporary: &Path) -> Option<Self> {
        let folder = SocketFolder::create(SocketUse::Probe, None, temporary).ok()?;
        let path = folder.next();
        Some(Self { _listener: UnixListener::bind(&path).ok()?, path, _folder: folder })
    }
}

/// Allows connects to the session's own sockets, its channel, and those that the settings name.
fn policy(plan: &Plan, speakers: SpeakerRule) -> ConnectPolicy {
    let grants = &plan.grants;
    // The sockets of the person's programs in the shared folder are not the session's own.
    let own = grants.write.iter().filter(|path| path.as_path() != Path::new(SHARED_MEMORY));
    let placed = plan.placed.iter().filter(|placed| placed.is_in_room_only()).map(|placed| &placed.at);
    let allowed = own.chain(placed).chain(&grants.sockets).cloned().chain(plan.harmless_services());
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let channel = plan.channel.clone().map(real);
    let allowed = allowed.map(real).filter(|path| Some(path) != channel.as_ref()).collect();
    let network = grants.network.clone();
    let services = grants.services.clone();
    // The stage tries it, and must be refused.
    let tried = plan.not_connected.map(|server| server.port().to_string());
    let noted = Arc::new(Mutex::new(tried.into_iter().collect()));
    ConnectPolicy {
        allowed,
        channel,
        network,
        services,
        probed: ProbedServer::default(),
        log: plan.log.clone(),
        in_errors: false,
        noted,
        speakers,
        client: None,
        own: Vec::new(),
        programs: NotedPrograms::default(),
    }
}

pub fn too_low(level: &Level) -> String {
    format!("the confinement would be {level}, and config.sandbox is require")
}

pub fn probe(liza: &Path, plan: Plan) -> io::Result<Level> {
    let (mut command, socket) = stage_command(liza)?;
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    drop(command);
    let started = socket.start(&StageOrder { plan, ..StageOrder::default() }, NO_SPEAKER);
    let _ = child.wait();
    Ok(started?.level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::confinement::TcpGrants;
    use liza_host::random_text::random_hex;

    /// Covers: IS-06, IS-12
    #[test]
    fn only_sockets_that_exist_are_tried() {
        let place = tempfile::tempdir().unwrap();
        let named = |name: &str| (name.to_owned(), place.path().join(name));
        let _service = UnixListener::bind(place.path().join("there")).unwrap();
        let tried = to_try(vec![named("gone"), named("there")], Some(named("witness")));
        assert_eq!(tried, [named("there"), named("witness")]);
    }

    /// Covers: IS-05, IS-06
    #[test]
    fn a_socket_and_two_servers_outside_are_tried() {
        let probes = Probes::prepare(&Plan::default());
        let tried = probes.added_to(Plan::default());
        assert!(UnixStream::connect(&tried.not_reached[0].1).is_ok(), "{tried:?}");
        for server in [tried.not_connected, tried.connected] {
            assert!(std::net::TcpStream::connect(server.unwrap()).is_ok(), "{tried:?}");
        }
        // Only one of them is granted, by its whole address, and only for the probe.
        assert!(policy(&tried, NO_SPEAKER).services.is_empty());
        let granted = Arc::clone(&probes.granted);
        assert_eq!(*granted.lock().unwrap(), tried.connected);
        drop(probes);
        assert_eq!(*granted.lock().unwrap(), None);
    }

    /// Covers: IS-12, RO-09
    #[test]
    fn a_socket_in_a_folder_of_the_program_proves_nothing() {
        let mut plan = Plan::default();
        let temporary = Path::new("/p/.liza/tmp/a.check");
        assert_eq!(outside_of(&plan, temporary), temporary);
        plan.grants.write = vec!["/p/.liza/tmp".into()];
        assert_eq!(outside_of(&plan, temporary), Path::new(TEMPORARY));
    }

    /// Covers: IS-05
    #[test]
    fn a_probe_leaves_nothing_and_removes_what_a_killed_one_left() {
        // Not where the probes of other tests are, which would remove it, too.
        let place = tempfile::tempdir_in("/tmp").unwrap();
        let left = place.path().join(format!("liza-probe-{}", random_hex(8).unwrap()));
        fs::create_dir(&left).unwrap();
        let _socket = UnixListener::bind(left.join("0")).unwrap();
        let probe = OutsideSocket::create(place.path()).unwrap();
        assert!(!left.exists());
        let folder = probe.path.parent().unwrap().to_owned();
        assert!(folder.exists());
        drop(probe);
        assert!(!folder.exists());
    }

    /// Covers: IS-06
    #[test]
    fn a_session_that_reaches_only_its_model_asks_no_one_for_names_of_hosts() {
        let mut plan = Plan::default();
        plan.grants.write = vec!["/p/.worktrees/t1".into(), SHARED_MEMORY.into()];
        let allows =
            |plan: &Plan, path: &str| policy(plan, NO_SPEAKER).allowed.contains(&PathBuf::from(path));
        assert!(allows(&plan, "/run/nscd/socket") && allows(&plan, "/run/systemd/userdb"));
        assert!(allows(&plan, "/p/.worktrees/t1") && !allows(&plan, SHARED_MEMORY));
        plan.grants.network = Some(TcpGrants::default());
        assert!(!allows(&plan, "/run/nscd/socket") && allows(&plan, "/run/systemd/userdb"));
    }
}
