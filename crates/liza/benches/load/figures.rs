//! What the measurements share: memory and wake-ups of processes, percentiles, and whether the result is right.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use liza_core::model::{EventName, State, Status};

use crate::shared::name;
use crate::support::TestProject;

pub(crate) fn tell(what: &str, times: &mut [Duration], wanted: &str) {
    times.sort();
    let at = |share: f64| {
        let index = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len().max(1)) - 1;
        times.get(index).map_or(0.0, Duration::as_secs_f64) * 1000.0
    };
    println!(
        "  {what:<24} p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms, of {} {wanted}",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}

/// What the team's own process and its session helpers take.
#[derive(Default)]
pub(crate) struct Memory {
    team: u64,
    helper: u64,
}

impl Memory {
    pub(crate) fn look(&mut self, team: u32) {
        self.team = self.team.max(kilobytes(team, "status", "VmHWM:"));
        for child in children(team) {
            let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if line.split(|byte| *byte == 0).nth(1) == Some(b"session") {
                self.helper = self.helper.max(kilobytes(child, "smaps_rollup", "Pss:"));
            }
        }
    }

    pub(crate) fn print(&self, agents: usize) {
        let megabytes = |kilobytes: u64| kilobytes as f64 / 1024.0;
        println!(
            "  memory per supervisor    {:>8.2} MB     ({:.0} MB for {agents}; wanted: under 3 MB)",
            megabytes(self.team) / agents as f64,
            megabytes(self.team)
        );
        println!(
            "  a session's helper       {:>8.2} MB     (its own share, the largest seen)",
            megabytes(self.helper)
        );
    }
}

fn kilobytes(process: u32, file: &str, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// How often a process has been given the CPU, over all its threads.
pub(crate) fn wakes(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let count = |text: String| -> u64 {
        let lines = text.lines().filter(|line| line.contains("ctxt_switches"));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).map(count).sum()
}

/// Nothing claimed twice, nothing lost, nothing merged that was not approved at exactly that commit.
pub(crate) fn check(project: &TestProject, state: &State, tasks: usize, branch: &str) {
    let integration = project.git(&["ls-tree", "-r", "--name-only", branch]);
    let files: BTreeSet<&str> = integration.lines().collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let (mut doubles, mut lost, mut unapproved) = (0, 0, 0);
    for (id, body) in state.bodies() {
        let record = body.record();
        let count = |name: EventName| record.history.iter().flatten().filter(|event| event.is(name)).count();
        let claims = count(EventName::Claimed) + count(EventName::ReclaimedAfterExpiry);
        doubles += usize::from(claims != 1);
        let there = files.contains(format!("src/{id}.sh").as_str())
            && files.contains(format!("tests/{id}.sh").as_str());
        lost += usize::from(record.status != Some(Status::Merged) || !there);
        unapproved += usize::from(count(EventName::Approved) != 1 || record.approved_by.is_none());
        known.extend(record.review_commit.iter().chain(&record.merge_commit).map(ToString::to_string));
    }
    let all = project.git(&["rev-list", &format!("main..{branch}")]);
    unapproved += all.lines().filter(|commit| !known.contains(*commit)).count();
    // The planner may add tasks of its own.
    lost += (0..tasks).filter(|number| !state.board.tasks.contains_key(&name(*number))).count();
    println!("double claims {doubles}, lost work {lost}, unapproved merges {unapproved}\n");
    assert_eq!((doubles, lost, unapproved), (0, 0, 0), "{}", project.root.display());
    project.liza(&["validate"]).ok();
}
