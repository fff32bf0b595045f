//! Programs that this process starts, each with all its descendants: signalled, waited for and killed as one.
//! Signals only what was started here: a process group that we lead, or processes that carry our mark.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpgid, kill_process, kill_process_group, setsid, wait};

use super::process::{is_alive, pid, wait_until};
use super::system;

/// The environment variable that marks the members of a family. Its value starts with the owner's process ID.
const MARK: &str = "LIZA_PROCESS_TREE";

/// The environment variable that marks a git with the ID of the process it runs for.
pub const GIT_OWNER: &str = "LIZA_GIT_OWNER";

/// The number of sweeps before the remaining members are abandoned, and the pause in between.
const SWEEPS: u32 = 200;
const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// The number of lookups while members are stopped, and of those in a row that find no new one.
const FREEZES: u32 = 400;
const QUIET: u32 = 3;

/// The longest time for a program to end its own family.
const KEEPER_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramExit {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    Leader(ProgramExit),
    /// One of its descendants, orphaned and adopted by this process.
    Descendant,
    NoneLeft,
}

#[derive(Debug, Clone)]
pub struct ProcessFamily {
    leader: Pid,
    /// The value of [`MARK`] in the environment of its members.
    mark: String,
    /// All descendants of this process are members.
    root: u32,
    /// The leader has its own process group, which can be signalled as a whole.
    own_group: bool,
}

impl ProcessFamily {
    /// Starts a program whose orphans this process adopts, so that [`ProcessFamily::reap`] sees all of them
    /// end. `detached` gives the program its own process group and this process a session without a terminal.
    /// For a process that starts nothing else, since it reaps every child.
    pub fn spawn(command: &mut Command, detached: bool) -> io::Result<Self> {
        if detached {
            // Fails for a process group leader, which is detached already.
            let _ = setsid();
            command.process_group(0);
        }
        Self::start_by(command, detached, Command::spawn)
    }

    pub(crate) fn spawn_by(
        command: &mut Command,
        start: impl FnOnce(&mut Command) -> io::Result<Child>,
    ) -> io::Result<Self> {
        Self::start_by(command, false, start)
    }

    fn start_by(
        command: &mut Command,
        own_group: bool,
        start: impl FnOnce(&mut Command) -> io::Result<Child>,
    ) -> io::Result<Self> {
        system::adopt_orphans();
        survive_hangup();
        let root = std::process::id();
        let mark = session_mark(root);
        command.env(MARK, &mark);
        // Not waited for through the handle: `reap` waits for all.
        let id = start(command)?.id();
        let leader = pid(id).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { leader, mark, root, own_group })
    }

    pub fn id(&self) -> u32 {
        self.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Asks every member to end (SIGTERM), including those that left the process group.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills every member (SIGKILL), including those that left the process group.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Signals the leader and every member; true if any member was found.
    fn signal(&self, signal: Signal) -> bool {
        // Before the leader dies: afterwards its children are no longer found by descent.
        let all = || members(&self.mark, self.root);
        let members =
            if signal == Signal::KILL { freeze(|| system::all_descendants([self.root]), all) } else { all() };
        // Errors mean that it has already ended. A group keeps its ID while it has members: no stranger is hit.
        if self.own_group {
            let _ = kill_process_group(self.leader, signal);
        } else {
            let _ = kill_process(self.leader, signal);
        }
        let in_group = |id: &Pid| self.own_group && getpgid(Some(*id)) == Ok(self.leader);
        for id in members.iter().copied().filter_map(pid).filter(|id| !in_group(id)) {
            let _ = kill_process(id, signal);
        }
        !members.is_empty()
    }

    /// Waits until a member ends. Call it from one thread only.
    pub fn reap(&self) -> Reaped {
        loop {
            if let Some(reaped) = self.reap_with(WaitOptions::empty()) {
                return reaped;
            }
        }
    }

    fn reap_with(&self, options: WaitOptions) -> Option<Reaped> {
        match wait(options) {
            Ok(Some((ended, status))) if ended == self.leader => {
                let signal = status.terminating_signal().map(ProgramExit::Signal);
                let code = status.exit_status().map(ProgramExit::Code);
                Some(Reaped::Leader(code.or(signal).unwrap_or(ProgramExit::Code(-1))))
            }
            Ok(Some(_)) => Some(Reaped::Descendant),
            Ok(None) | Err(Errno::INTR) => None,
            Err(_) => {
                system::remove_shared_memory();
                Some(Reaped::NoneLeft)
            }
        }
    }
}

impl ProcessFamily {
    /// Waits for the program, then ends the rest of its family. Call it from one thread only.
    pub fn wait_for_all(&self) -> ProgramExit {
        let exit = loop {
            match self.reap() {
                Reaped::Leader(exit) => break exit,
                Reaped::Descendant => {}
                Reaped::NoneLeft => return ProgramExit::Code(1),
            }
        };
        // Orphans are children of this process, so without children nothing is left.
        while !self.reap_ended() {
            self.kill();
            thread::sleep(SWEEP_PAUSE);
        }
        exit
    }

    /// Reaps all ended processes, perhaps thousands; true if none is left.
    fn reap_ended(&self) -> bool {
        loop {
            match self.reap_with(WaitOptions::NOHANG) {
                Some(Reaped::NoneLeft) => return true,
                Some(Reaped::Leader(_) | Reaped::Descendant) => {}
                None => return false,
            }
        }
    }
}

/// A family that does not outlive this value.
#[derive(Debug)]
pub struct ScopedFamily {
    child: Child,
    family: ProcessFamily,
    /// The child is a keeper: it exits with a code only when nothing of its family is left.
    has_keeper: bool,
}

impl ScopedFamily {
    /// Starts the command as the leader of its own process group.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let child = command.process_group(0).env(MARK, &mark).spawn()?;
        let root = child.id();
        let leader = pid(root).ok_or(io::ErrorKind::InvalidData)?;
        let family = ProcessFamily { leader, mark, root, own_group: true };
        Ok(Self { child, family, has_keeper: false })
    }

    /// The same for a child that adopts every orphan of its family, and ends after the last of them.
    pub(crate) fn of_keeper(command: &mut Command) -> io::Result<Self> {
        let mut family = Self::spawn(command)?;
        family.has_keeper = system::ADOPTS_ORPHANS;
        Ok(family)
    }

    /// Waits until the child ends or the deadline passes (`None`), then kills the rest of the family.
    pub fn finish(self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        self.finish_unless(deadline, || false, || ())
    }

    /// The same for a child that ends its own family when it is asked to, within [`KEEPER_LIMIT`].
    pub(crate) fn finish_unless(
        mut self,
        deadline: Instant,
        is_cancelled: impl Fn() -> bool,
        ask: impl FnOnce(),
    ) -> io::Result<Option<ExitStatus>> {
        const LOOK: Duration = Duration::from_millis(200);
        let mut status = Ok(None);
        while matches!(status, Ok(None)) && Instant::now() < deadline && !is_cancelled() {
            status = wait_until(&mut self.child, deadline.min(Instant::now() + LOOK));
        }
        ask();
        if !matches!(status, Ok(Some(_))) {
            let _ = wait_until(&mut self.child, Instant::now() + KEEPER_LIMIT);
        }
        if !self.is_over() {
            self.end();
        }
        status
    }

    /// True if a keeper has ended by itself. A look at every process of the machine, which the search for a family takes,
    /// costs more than most programs that are run here. A keeper that was killed could end nothing.
    fn is_over(&mut self) -> bool {
        self.has_keeper
            && self.child.try_wait().is_ok_and(|status| status.is_some_and(|status| status.code().is_some()))
    }

    fn end(&mut self) {
        // Twice: an orphan that is just starting a program has no environment for a moment, and so no mark.
        let mut quiet = 0;
        sweep(|| {
            let found = self.family.signal(Signal::KILL);
            let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            quiet = if ended && !found { quiet + 1 } else { 0 };
            quiet == 2
        });
    }
}

impl Drop for ScopedFamily {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.end();
        }
    }
}

/// Kills the [`ScopedFamily`]s of this process, which is about to exit.
pub fn kill_own_families() {
    let own = std::process::id();
    let ours = || marked(MARK, |owner, _| owner == own);
    // First their descendants: a keeper adopts orphans, which cannot be found without it.
    kill_until_none(|| system::descendants(ours()));
    kill_until_none(ours);
}

/// Kills the rest of the session of a helper process that is gone.
pub fn kill_session_of(helper: u32) {
    let mark = session_mark(helper);
    kill_until_none(|| members(&mark, helper));
}

/// Kills the families below `folder` whose owner is gone; gives the number of processes killed.
pub fn kill_orphans(folder: &Path) -> usize {
    kill_until_none(|| orphans(MARK, folder))
}

/// Waits until no git runs below `folder` whose owner is gone; false if one is left after `limit`.
pub fn wait_for_orphaned_git(folder: &Path, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while !orphans(GIT_OWNER, folder).is_empty() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
pub(crate) fn is_marked_by_us(id: u32) -> bool {
    let mark = system::variable_of(id, MARK);
    mark.as_deref().and_then(owner_of) == Some(std::process::id())
}

fn owner_of(mark: &str) -> Option<u32> {
    mark.split('-').next()?.parse().ok()
}

/// Keeps this process alive at a hangup, which the system sends to a process group that has lost its parent
/// and has stopped members: [`freeze`] stops members. A handler, since programs inherit ignored signals.
fn survive_hangup() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default());
}

fn session_mark(helper: u32) -> String {
    format!("{helper}-session")
}

/// Stops processes until no new ones are found, so that none starts another one while they are killed;
/// returns all. Otherwise a chain of processes that each start the next one stays a step ahead. `nearby` is
/// fast and finds a part of `all`.
fn freeze(nearby: impl Fn() -> Vec<u32>, all: impl Fn() -> Vec<u32>) -> Vec<u32> {
    let own = std::process::id();
    let mut seen = BTreeSet::new();
    let mut stop_new = |found: Vec<u32>| {
        let new: Vec<u32> = found.into_iter().filter(|id| *id != own && seen.insert(*id)).collect();
        for id in new.iter().copied().filter_map(pid) {
            let _ = kill_process(id, Signal::STOP);
        }
        !new.is_empty()
    };
    let mut quiet = 0;
    for _ in 0..FREEZES {
        quiet = if stop_new(nearby()) { 0 } else { quiet + 1 };
        if quiet < QUIET {
            continue;
        }
        if !stop_new(all()) {
            break;
        }
        quiet = 0;
    }
    // The list of a process's children can lack one while others end, so stopped processes count too.
    let stopped: Vec<u32> = seen.into_iter().filter(|id| system::is_stopped(*id)).collect();
    let found: BTreeSet<u32> = all().into_iter().chain(stopped).collect();
    found.into_iter().collect()
}

/// Kills what `find` returns until it returns nothing; gives the number of processes killed.
fn kill_until_none(find: impl Fn() -> Vec<u32>) -> usize {
    let mut killed: BTreeSet<u32> = BTreeSet::new();
    sweep(|| {
        let found = freeze(Vec::new, &find);
        for id in found.iter().copied().filter_map(pid) {
            let _ = kill_process(id, Signal::KILL);
        }
        killed.extend(&found);
        found.is_empty()
    });
    killed.len()
}

/// Repeats `step` until it returns true, for about a second at most.
fn sweep(mut step: impl FnMut() -> bool) {
    for _ in 0..SWEEPS {
        if step() {
            return;
        }
        thread::sleep(SWEEP_PAUSE);
    }
}

/// The processes that carry `mark`, and everything that descends from them or from `root`. The mark finds
/// orphans, the descent finds processes that cleared their environment; `setsid` hides nothing.
fn members(mark: &str, root: u32) -> Vec<u32> {
    let carriers = marked(MARK, |_, value| value == mark);
    let mut found: BTreeSet<u32> = carriers.iter().copied().collect();
    found.extend(system::descendants(carriers.into_iter().chain([root])));
    found.remove(&std::process::id());
    found.into_iter().collect()
}

/// Processes below `folder` with a mark of that name whose owner is gone.
fn orphans(name: &str, folder: &Path) -> Vec<u32> {
    let mut found = marked(name, |owner, _| !is_alive(owner));
    found.retain(|id| system::working_folder(*id).is_some_and(|at| at.starts_with(folder)));
    found
}

fn marked(name: &str, wanted: impl Fn(u32, &str) -> bool) -> Vec<u32> {
    let is_wanted = |value: &str| owner_of(value).is_some_and(|owner| wanted(owner, value));
    let all = system::processes_with(name);
    all.into_iter().filter(|(_, value)| is_wanted(value)).map(|(id, _)| id).collect()
}

#[cfg(all(test, target_os = "linux", not(feature = "portable-sys")))]
mod tests {
    use std::fs;

    use super::*;

    /// Two chains of up to 3,000 processes of which each starts the next one and ends.
    ///
    /// Covers: IS-13
    #[test]
    fn a_chain_of_processes_that_start_each_other_is_ended_at_once() {
        let place = tempfile::tempdir().unwrap();
        let count = place.path().join("count");
        let script = r#"next() { [ "$1" -gt 0 ] || exit; echo >> "$2"; (next $(($1 - 1)) "$2" &) ; }
            next 3000 "$0"; next 3000 "$0.other"; exec tail -f /dev/null"#;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).arg(&count).env_clear();
        let family = ProcessFamily::spawn(&mut command, false).unwrap();
        let started = || fs::metadata(&count).map_or(0, |meta| meta.len());
        let deadline = Instant::now() + Duration::from_secs(5);
        while started() < 10 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        family.kill();
        // Killed processes take a moment to end; a chain that goes on is found again and again.
        let is_over = || system::descendants([family.root]).is_empty();
        let deadline = Instant::now() + Duration::from_secs(1);
        while !(is_over() && is_over() && is_over()) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let (alive, started) = (system::descendants([family.root]), started());
        assert!(alive.is_empty() && (10..3000).contains(&started), "{alive:?} after {started}");
        assert_eq!(family.wait_for_all(), ProgramExit::Signal(9));
    }
}
