//! Child processes that can be waited for with a limit and ended with all that they started.
//!
//! Signals only what was started here: a group that we lead, or processes that carry our mark.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};

use super::system;

/// The variable by which descendants of one [`ProcessTree`] are found again.
pub(super) const MARK: &str = "LIZA_PROCESS_TREE";

/// The variable that names the process for which a git runs, so that one that outlived it is found.
pub const GIT_OWNER: &str = "LIZA_GIT_OWNER";

/// How often a dying tree is looked at before it is given up.
const SWEEPS: u32 = 200;

/// The program of that name: a path as it is, a name from the folders of `path`.
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(runs);
    }
    std::env::split_paths(path).map(|folder| folder.join(name)).find(runs)
}

/// Kills the process group that `child` leads. To be called before the child is reaped.
pub fn kill_group(child: &Child) {
    if let Some(group) = pid(child.id()) {
        // It may have ended by itself, which is what we want.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Waits for the child until the deadline; `None` when it still runs then.
pub fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let now = Instant::now();
        if now >= deadline {
            return Ok(None);
        }
        // A program usually ends within microseconds of closing its output; sleeping would make each call slower.
        if now - started < Duration::from_millis(1) {
            thread::yield_now();
        } else {
            thread::sleep(pause.min(deadline - now));
            pause = (pause * 2).min(Duration::from_millis(25));
        }
    }
}

/// What tells this run of this machine from every other one; nothing where the system does not say.
pub fn this_boot() -> Option<String> {
    system::this_boot()
}

/// Whether a process with this ID exists, whoever's it is.
pub fn is_alive(id: u32) -> bool {
    pid(id).is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Whether `file` is in use by some process, or a git works below one of `folders`; `None` when that cannot be known.
pub fn in_use(file: &Path, folders: &[&Path]) -> Option<bool> {
    system::in_use(file, folders)
}

/// Waits until no git runs below `folder` that outlived the process for which it ran; says whether there are none.
pub fn await_orphaned_git(folder: &Path, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while !system::orphans(GIT_OWNER, folder).is_empty() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Ends what is left below `folder` of [`ProcessTree`]s whose owner is gone; says how many processes that were.
pub fn end_orphaned_trees(folder: &Path) -> usize {
    let mut ended = BTreeSet::new();
    for _ in 0..SWEEPS {
        let orphans = system::orphans(MARK, folder);
        if orphans.is_empty() {
            break;
        }
        for id in orphans {
            ended.insert(id);
            // It may have ended by itself, which is what we want.
            let _ = pid(id).map(|id| kill_process(id, Signal::KILL));
        }
        thread::sleep(Duration::from_millis(5));
    }
    ended.len()
}

/// Whether this process was started so that a closed terminal does not end it; false where that cannot be known.
pub fn ignores_hangup() -> bool {
    system::ignored_signals().is_some_and(|mask| mask & 1 == 1)
}

/// Ends every [`ProcessTree`] of this process, for a process that is about to end itself.
pub fn end_own_trees() {
    for id in system::owned(MARK, std::process::id()) {
        let _ = pid(id).map(|id| kill_process(id, Signal::KILL));
    }
}

/// A child with everything that it starts, as one thing to wait for and to end.
#[derive(Debug)]
pub struct ProcessTree {
    child: Child,
    mark: String,
}

impl ProcessTree {
    /// Starts the command as the leader of its own process group.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let child = command.process_group(0).env(MARK, &mark).spawn()?;
        Ok(Self { child, mark: format!("{MARK}={mark}") })
    }

    /// Waits until the child ends or the deadline has come (`None`), then ends whatever it left behind.
    pub fn finish(mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        let status = wait_until(&mut self.child, deadline);
        self.end();
        status
    }

    /// Ends the whole tree, children that left the group by `setsid` included.
    fn end(&mut self) {
        let root = self.child.id();
        for _ in 0..SWEEPS {
            // Looking first: once the parent is dead, its children are no longer found by descent.
            let members = system::members(&self.mark, root);
            kill_group_of(root);
            members.iter().filter_map(|id| pid(*id)).for_each(|id| {
                let _ = kill_process(id, Signal::KILL);
            });
            let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            if ended && members.is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.end();
        }
    }
}

/// The group outlives its leader while members are left, so its number is not given to others before they end.
fn kill_group_of(leader: u32) {
    if let Some(group) = pid(leader) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

pub(super) fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}
