//! The confinement on Linux, in the order in which its parts can be applied.

use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread::ScopedJoinHandle;
use std::{fs, io, thread};

use liza_host::random_text::random_hex;
use rustix::process::{Pid, getppid, test_kill_process};
use rustix::thread::set_no_new_privs;

use super::connects::Deciding;
use super::own_network::RoomNetwork;
pub(crate) use super::own_network::{RoomSockets, forward};
use super::{
    ConnectPolicy, Grants, Restrictions, asked, capabilities, files, filter, process_limit, seccomp,
};

pub(super) fn restrict(grants: &Grants, is_in_room: bool) -> Restrictions {
    process_limit::limit_processes();
    let capabilities = capabilities::drop_all();
    // A room has a network of its own, from which only its helper leads away.
    let open = Grants { network: None, ..grants.clone() };
    let grants = if is_in_room { &open } else { grants };
    let files = files::restrict(grants);
    // Last: the filter may refuse what the steps before need.
    let (calls, listener) = filter_calls(grants, is_in_room);
    Restrictions { files, calls, capabilities, listener }
}

/// Installs the filter with a listener for connects; without one if an outer filter has the only listener.
fn filter_calls(grants: &Grants, is_in_room: bool) -> (Option<String>, Result<OwnedFd, String>) {
    let only_tcp = grants.network.is_some();
    if !filter::is_supported() {
        let why = "not known for this processor".to_owned();
        return (Some(why.clone()), Err(why));
    }
    let more = if files::judges_truncate(grants) { Vec::new() } else { filter::rules_of_old_kernels() };
    let assemble = |rules: Vec<filter::CallRule>| filter::assemble(&[rules, more.clone()].concat());
    let noted = if grants.notes_programs { filter::rules_of_noted_programs() } else { Vec::new() };
    let asked = [filter::rules_with_listener(only_tcp, is_in_room), noted].concat();
    match seccomp::install_with_listener(&assemble(asked)) {
        Ok(listener) => (None, Ok(listener)),
        Err(error) => {
            // The outer filter asks its own listener about the rest.
            let is_nested = error.raw_os_error() == Some(libc::EBUSY);
            let rules = if is_nested { filter::rules(only_tcp) } else { filter::rules_alone(only_tcp) };
            let installed = seccomp::install(&assemble(rules));
            (installed.err().map(|error| error.to_string()), Err(error.to_string()))
        }
    }
}

/// Looks whether the connects of this process could be decided outside: a chain of processes has one listener.
pub(crate) fn can_be_decided() -> io::Result<()> {
    if status_of_this_thread("Seccomp:").is_some_and(|filters| filters == "0") {
        return Ok(());
    }
    // A filter stays with the thread that installs it.
    let tried = || {
        set_no_new_privs(true)?;
        seccomp::install_with_listener(&filter::assemble(&[])).map(drop)
    };
    let joined =
        thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, tried).map(ScopedJoinHandle::join))?;
    let tried = joined.unwrap_or_else(|_| Err(io::Error::other("a thread has failed")));
    tried.map_err(|error| io::Error::other(format!("system calls are decided by another program: {error}")))
}

fn status_of_this_thread(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// Runs `work` in a thread that restricts itself: restrictions apply to one thread and its children.
pub(super) fn restricted<T: Send>(
    grants: &Grants,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let restrict_and_work = || {
        // A missing restriction is a gap in the level that sessions report too.
        let _ = capabilities::keep_for_files();
        if files::is_available()
            && let Some(why) = files::restrict(grants)
        {
            return Err(io::Error::other(format!("files cannot be protected: {why}")));
        }
        if filter::is_supported() {
            let rules = filter::rules_of_a_room(grants.network.is_none());
            let _ = seccomp::install(&filter::assemble(&rules));
        }
        work()
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, restrict_and_work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a restricted thread has failed")))
    })
}

pub(super) fn decide_connects(
    listener: OwnedFd,
    policy: ConnectPolicy,
    sockets: Option<RoomSockets>,
) -> io::Result<()> {
    let network = sockets.map(RoomNetwork::start).transpose()?;
    asked::serve(Deciding { listener, policy, network });
    Ok(())
}

pub(super) fn protects_files() -> bool {
    files::is_available()
}

/// A socket with an abstract name.
#[derive(Debug)]
pub(crate) struct NamedSocket {
    pub name: String,
    _listener: UnixListener,
}

impl NamedSocket {
    pub(crate) fn create() -> Option<Self> {
        let name = format!("liza-probe-{}", random_hex(8).ok()?);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).ok()?).ok()?;
        Some(Self { name, _listener: listener })
    }
}

/// A process and a socket outside, which must become unreachable.
#[derive(Debug)]
pub(super) struct Witnesses {
    parent: Option<Pid>,
    socket: Option<SocketAddr>,
}

impl Witnesses {
    pub(super) fn prepare(not_named: Option<&str>) -> Self {
        let socket = not_named.and_then(|name| SocketAddr::from_abstract_name(name).ok());
        // In a room that is its first process, which takes no signals from inside.
        Self { parent: getppid().filter(|parent| !parent.is_init()), socket }
    }

    pub(super) fn still_possible(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.parent.is_some_and(|parent| test_kill_process(parent).is_ok()) {
            found.push("signals reach processes outside".to_owned());
        }
        if self.socket.as_ref().is_some_and(|address| UnixStream::connect_addr(address).is_ok()) {
            found.push("abstract sockets outside can be reached".to_owned());
        }
        let value = status_of_this_thread;
        if value("CapEff:").is_none_or(|set| set.chars().any(|digit| digit != '0')) {
            found.push("it has capabilities".to_owned());
        }
        if value("NoNewPrivs:").as_deref() != Some("1") {
            found.push("it can gain privileges".to_owned());
        }
        if value("Seccomp:").as_deref() != Some("2") {
            found.push("system calls are not filtered".to_owned());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-07
    #[test]
    fn where_another_program_decides_calls_there_is_no_room() {
        assert!(can_be_decided().is_ok());
        let decided_by_another = || {
            set_no_new_privs(true)?;
            let _listener = seccomp::install_with_listener(&filter::assemble(&[]))?;
            can_be_decided()
        };
        let error = thread::spawn(decided_by_another).join().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("system calls are decided by another program"), "{error}");
        // A filter without a listener is no obstacle.
        let filtered = || {
            set_no_new_privs(true)?;
            seccomp::install(&filter::assemble(&[]))?;
            can_be_decided()
        };
        thread::spawn(filtered).join().unwrap().unwrap();
    }
}
