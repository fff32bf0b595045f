//! Facts about processes from `/proc`. Reads only; a process that vanishes meanwhile counts as gone.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, IsTerminal as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::peer::{Image, LineProcess};
pub(super) use super::shared_memory::remove_own as remove_shared_memory;

/// The processes whose environment sets the variable `name`, with its value. Not those in rooms, where IDs of processes
/// mean others; they end with their room.
pub(super) fn processes_with(name: &str) -> Vec<(u32, String)> {
    let room_of = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let own = room_of("self");
    let is_near = |pid: u32| room_of(&pid.to_string()) == own;
    let value_of = |pid: u32| variable_of(pid, name).map(|value| (pid, value));
    let near = all().into_iter().filter_map(value_of).filter(|(pid, _)| is_near(*pid));
    near.filter(|(pid, _)| !is_zombie(*pid)).collect()
}

/// A variable of a process, as it was when its program started.
pub(super) fn variable_of(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variables = environment.split(|byte| *byte == 0).filter_map(|text| str::from_utf8(text).ok());
    let mut values = variables.filter_map(|text| text.strip_prefix(name)?.strip_prefix('='));
    values.next().map(str::to_owned)
}

/// Everything that descends from the given processes, without zombies.
pub(super) fn descendants(roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    all_descendants(roots).into_iter().filter(|pid| !is_zombie(*pid)).collect()
}

/// The same with zombies, whose children may be new ones of an ancestor.
pub(super) fn all_descendants(roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut queue: Vec<u32> = roots.into_iter().collect();
    let mut found = BTreeSet::new();
    while let Some(pid) = queue.pop() {
        queue.extend(children_of(pid).into_iter().filter(|child| found.insert(*child)));
    }
    found.into_iter().collect()
}

pub(super) fn working_folder(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// True if a process has `file` open, or a git runs below one of `folders`: git closes its lock file while
/// hooks and editors run, and leaves it in place.
pub(super) fn is_in_use(file: &Path, folders: &[&Path]) -> Option<bool> {
    let own = std::process::id();
    let used = all().into_iter().filter(|pid| *pid != own).any(|pid| {
        let is_git =
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("git"));
        let inside =
            || working_folder(pid).is_some_and(|at| folders.iter().any(|folder| at.starts_with(folder)));
        (is_git && inside()) || has_open(pid, file)
    });
    Some(used)
}

/// Adopts orphans of our descendants, so that waiting for children means waiting for all of them.
pub(super) fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

pub(super) const ADOPTS_ORPHANS: bool = true;

/// A copy of a file in memory, which nothing can change.
pub(crate) fn sealed_copy(mut file: fs::File) -> io::Result<fs::File> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create("input", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the last flag.
        Err(rustix::io::Errno::INVAL) => memfd_create("input", flags),
        made => made,
    };
    let mut copy = fs::File::from(made?);
    io::copy(&mut file, &mut copy)?;
    io::Seek::rewind(&mut copy)?;
    fcntl_add_seals(&copy, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(copy)
}

/// Gives the owner all rights on an unreadable file or folder; never on a link's target.
pub(super) fn own_entry(parent: std::os::fd::BorrowedFd<'_>, name: &std::ffi::OsStr) -> std::io::Result<()> {
    use rustix::fs::{Mode, OFlags, openat};
    use std::os::fd::AsRawFd as _;
    let entry = openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    // A descriptor without access cannot change modes itself, and for a link this name leads nowhere.
    let mode = rustix::fs::fstat(&entry)?.st_mode;
    let mode = super::untrusted::owned_mode(mode).ok_or(std::io::ErrorKind::InvalidInput)?;
    let path = format!("/proc/self/fd/{}", entry.as_raw_fd());
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

/// Keeps other processes of the same user from reading this one's memory.
pub(super) fn hide_memory() {
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

pub(super) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains(' '))
}

/// The signals that this process ignores, the first one in the lowest bit.
pub(super) fn ignored_signals() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

pub(super) fn terminal() -> Option<PathBuf> {
    std::io::stdin().is_terminal().then(|| fs::read_link("/proc/self/fd/0").ok()).flatten()
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children_of(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// The command lines of the processes above this one, the nearest first.
pub(super) fn command_lines_above() -> Vec<Vec<OsString>> {
    ancestors(std::process::id()).skip(1).map(command_line).collect()
}

/// The processes from one up to its ancestor `root`, without it; `None` if `root` is no ancestor.
pub(super) fn line_below(pid: u32, root: u32) -> Option<Vec<LineProcess>> {
    let mut line = Vec::new();
    for pid in ancestors(pid) {
        if pid == root {
            return Some(line);
        }
        line.push(LineProcess {
            pid,
            command: command_line(pid),
            image: image(pid),
            ..LineProcess::default()
        });
    }
    None
}

/// What a process is now.
pub(super) fn image(pid: u32) -> Image {
    let told = fs::read(format!("/proc/{pid}/auxv")).ok().filter(|told| !told.is_empty());
    let start = told.map(|told| {
        let mut hasher = DefaultHasher::new();
        told.hash(&mut hasher);
        hasher.finish()
    });
    Image { file: program_file(pid), start }
}

/// The file that a process runs, by its name also if it was replaced meanwhile.
pub(super) fn program_file(pid: u32) -> Option<PathBuf> {
    let file = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let bytes = file.as_os_str().as_bytes();
    // The mark of a file that was replaced.
    Some(PathBuf::from(OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes))))
}

fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(pid), |pid| parent(*pid).filter(|parent| *parent > 0))
}

fn command_line(pid: u32) -> Vec<OsString> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

pub(super) fn peer(connection: &UnixStream) -> io::Result<(Option<u32>, u32)> {
    let peer = rustix::net::sockopt::socket_peercred(connection)?;
    Ok((u32::try_from(peer.pid.as_raw_nonzero().get()).ok(), peer.uid.as_raw()))
}

/// In ticks since the boot.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    stat_field(pid, 19)
}

/// In seconds since 1970.
pub(super) fn started_at(pid: u32) -> Option<u64> {
    let facts = fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = facts.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())?;
    Some(boot + start_time(pid)? / TICKS_PER_SECOND)
}

/// The unit of times in `/proc`, the same on every processor that Linux still supports.
const TICKS_PER_SECOND: u64 = 100;

fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 1)
}

/// A field of a process's line of facts, counted from its state.
fn stat_field<T: FromStr>(pid: u32, field: usize) -> Option<T> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything; the state and the other fields follow after its last bracket.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(field)?.parse().ok()
}

/// True if a process has ended and was not waited for: it cannot be killed again, and waiting could take
/// forever. False where another user's processes are hidden.
pub(super) fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

pub(super) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn has_open(pid: u32, file: &Path) -> bool {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    fds.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|target| target == file)
}

pub(super) fn command_lines() -> Vec<(u32, Vec<OsString>)> {
    all().into_iter().map(|pid| (pid, command_line(pid))).collect()
}

pub(super) const REPORTS_TCP_PEERS: bool = true;

/// The user and the number of the TCP socket at the other end of a connection to this machine.
pub(super) fn tcp_peer(peer: SocketAddrV4, own: SocketAddrV4) -> Option<(u32, u64)> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, _, _, _, _, user, _, inode, ..] = fields[..] else { return None };
        let same = tcp_address(local) == Some(peer) && tcp_address(remote) == Some(own);
        if same { Some((user.parse().ok()?, inode.parse().ok()?)) } else { None }
    })
}

/// The numbers of the sockets that wait for connections to a TCP port, in the network of a thread or our own.
pub(super) fn tcp_listeners(thread: Option<u32>, port: u16) -> Vec<u64> {
    const LISTENS: &str = "0A";
    let of_thread = thread.map_or_else(|| "self".to_owned(), |thread| thread.to_string());
    let table = |name: &str| fs::read_to_string(format!("/proc/{of_thread}/net/{name}")).unwrap_or_default();
    let tables = ["tcp", "tcp6"].map(table);
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, _, _, _, _, _, inode, ..] = fields[..] else { return None };
        let (_, of_line) = local.split_once(':')?;
        let is_wanted = state == LISTENS && u16::from_str_radix(of_line, 16) == Ok(port);
        if is_wanted { inode.parse().ok() } else { None }
    };
    tables.iter().flat_map(|table| table.lines().skip(1).filter_map(socket).collect::<Vec<u64>>()).collect()
}

/// `0100007F:1F90`: the address in the order of this machine's bytes, and the port.
fn tcp_address(text: &str) -> Option<SocketAddrV4> {
    let (address, port) = text.split_once(':')?;
    let address = Ipv4Addr::from(u32::from_str_radix(address, 16).ok()?.to_ne_bytes());
    Some(SocketAddrV4::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// True if a process has that socket open; `None` if it doesn't let us look.
pub(super) fn has_socket(pid: u32, inode: u64) -> Option<bool> {
    let socket = PathBuf::from(format!("socket:[{inode}]"));
    match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(fds) => {
            Some(fds.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == socket)))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        // It has ended.
        Err(_) => Some(false),
    }
}
