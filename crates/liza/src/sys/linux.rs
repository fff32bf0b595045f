//! Process facts from `/proc`.
//!
//! Reads only; what vanishes while it is being read is treated as gone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::process::is_alive;

/// The processes whose environment carries `mark`, and all that descend from `root`.
///
/// The mark finds what was orphaned (its parent ended), the descent finds what cleared its environment; neither
/// needs a process group, so `setsid` hides nothing.
pub(super) fn members(mark: &str, root: u32) -> Vec<u32> {
    let mut found: BTreeSet<u32> = all().into_iter().filter(|pid| carries(*pid, mark)).collect();
    let mut queue: Vec<u32> = found.iter().copied().chain([root]).collect();
    while let Some(pid) = queue.pop() {
        let children = children_of(pid);
        queue.extend(children.into_iter().filter(|child| found.insert(*child)));
    }
    let own = std::process::id();
    found.into_iter().filter(|pid| *pid != own && !is_zombie(*pid)).collect()
}

/// Whether a process has `file` open, or is a git that works below one of `folders`.
///
/// An open file is not enough: git closes its lock file while hooks and editors run, and keeps it in place.
pub(super) fn in_use(file: &Path, folders: &[&Path]) -> Option<bool> {
    let own = std::process::id();
    let used = all().into_iter().filter(|pid| *pid != own).any(|pid| {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let is_git = fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("git"));
        let inside =
            || fs::read_link(process.join("cwd")).is_ok_and(|cwd| folders.iter().any(|f| cwd.starts_with(f)));
        (is_git && inside()) || has_open(&process, file)
    });
    Some(used)
}

/// Makes orphans of our descendants our own children, so that waiting for children means waiting for all of them.
pub(super) fn adopt_orphans() -> bool {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

/// Processes at work below `folder` that carry `name` with the number of a process that is gone.
pub(super) fn orphans(name: &str, folder: &Path) -> Vec<u32> {
    let orphaned = |pid: &u32| {
        let inside = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        inside && owner_of(*pid, name).is_some_and(|owner| !is_alive(owner)) && !is_zombie(*pid)
    };
    all().into_iter().filter(orphaned).collect()
}

/// What the kernel calls this run of it.
pub(super) fn this_boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains(' '))
}

/// The signals that this process ignores, the first one in the lowest bit.
pub(super) fn ignored_signals() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Processes that carry `name` with the number of that process.
pub(super) fn owned(name: &str, owner: u32) -> Vec<u32> {
    all().into_iter().filter(|pid| owner_of(*pid, name) == Some(owner) && !is_zombie(*pid)).collect()
}

/// The number with which the value of a process's variable begins.
fn owner_of(pid: u32, name: &str) -> Option<u32> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variables =
        environment.split(|byte| *byte == 0).filter_map(|variable| std::str::from_utf8(variable).ok());
    let value = variables.filter_map(|variable| variable.strip_prefix(name)?.strip_prefix('=')).next()?;
    value.split('-').next()?.parse().ok()
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn carries(pid: u32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

fn children_of(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// A zombie cannot be killed again, and its parent may never reap it; waiting for it would be for ever.
fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn has_open(process: &Path, file: &Path) -> bool {
    let fds = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    fds.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|target| target == file)
}
