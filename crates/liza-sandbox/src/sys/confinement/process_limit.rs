//! The process limit of a session: the system counts per user, so the limit leaves a share to the programs
//! outside. Not enforced for root, whom the system exempts.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Limits this process and its children. Unreadable figures set no limit.
pub(super) fn limit_processes() {
    let (Some(now), Some(most)) = (tasks_now(), most_tasks()) else { return };
    let old = getrlimit(Resource::Nproc);
    let most = old.maximum.map_or(most, |maximum| most.min(maximum));
    let limit = limit(now, most);
    let limit = old.current.map_or(limit, |current| current.min(limit));
    let _ = setrlimit(Resource::Nproc, Rlimit { current: Some(limit), maximum: Some(limit) });
}

/// Three quarters of what is free now.
fn limit(now: u64, most: u64) -> u64 {
    now + most.saturating_sub(now) / 4 * 3
}

/// The processes and threads on this machine: the fourth field is `running/all`.
fn tasks_now() -> Option<u64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// The lowest limit of the system and our control groups.
fn most_tasks() -> Option<u64> {
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let system = ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"].map(Path::new);
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let group = Path::new("/sys/fs/cgroup").join(own.unwrap_or_default());
    let groups = group.ancestors().take_while(|group| group.starts_with("/sys/fs/cgroup"));
    let groups = groups.filter_map(|group| number(&group.join("pids.max")));
    system.into_iter().filter_map(number).chain(groups).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-16
    #[test]
    fn a_session_cannot_use_up_the_processes_of_the_machine() {
        assert_eq!(limit(1000, 33_000), 25_000);
        assert_eq!(limit(1000, 900), 1000, "it starts nothing more");
        let (now, most) = (tasks_now().unwrap(), most_tasks().unwrap());
        assert!(now > 0 && most > 0, "{now} {most}");
        limit_processes();
        let set = getrlimit(Resource::Nproc);
        assert!(set.current.is_some_and(|current| current < most) && set.maximum == set.current, "{set:?}");
    }
}
