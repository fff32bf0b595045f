//! Stories of the simulation with real processes: supervisors, sessions that end as its dice say, and git. The same has to happen to the
//! task, in the same order.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use liza_core::model::{AgentId, EventName, Status, TaskRecord};
use liza_explore::story::{Story, story};
use liza_testkit::evidence::{real_runs, tried};
use liza_trial::scorecard::REAL_TEAMS;

use crate::fixture::Bench;
use crate::support::process::wait_up_to;

/// The limits of the simulated world.
const LIMITS: &str = "max_coder_iterations: 2\nmax_review_cycles: 2\nmax_crashes: 2\nmax_idle_exits: 2\nmax_blocks: 2\nmax_rescopes: 2\nmax_sessions: 4";

/// Does what the next line of its role's story says.
const PROGRAM: &str = r#"
story="$HOME/${LIZA_AGENT_ID%-*}"
echo x >> "$story.sessions"
number=$(wc -l < "$story.sessions")
case $(sed -n "${number}p" "$story") in
submit)
  echo "$number" > work.txt
  git add . && git commit -qm "work $number"
  "$LIZA" submit-for-review "$1" "$(git rev-parse HEAD)" ;;
block) "$LIZA" mark-blocked "$1" --reason "the spec is silent" --question "Which?" --attempted "read the spec" ;;
approve) "$LIZA" submit-verdict "$1" APPROVED "cat: the file is what the task asks for" ;;
reject) "$LIZA" submit-verdict "$1" REJECTED "Blockers: 1
- [blocker] work.txt:1 - it is wrong

Prior Feedback Status:
- STILL PRESENT: all of it" ;;
idle) exit 0 ;;
*) exit 3 ;;
esac
"#;

/// What has happened to a task.
#[derive(Debug, PartialEq)]
struct Happened {
    status: Option<Status>,
    events: Vec<String>,
    iteration: Option<u32>,
    crashes: Option<u32>,
    idle_exits: Option<u32>,
    /// The code reviewers that have ended a review of it without a verdict.
    dropped_by: Vec<AgentId>,
    /// The sessions that have ended.
    sessions: usize,
}

/// The world of the simulation records no figures of sessions: it says how many there were.
fn happened(record: &TaskRecord, sessions: usize) -> Happened {
    let events = record.history.iter().flatten().filter(|event| !event.is(EventName::SessionEnded));
    Happened {
        sessions,
        dropped_by: record.review_dropped_by.clone().unwrap_or_default(),
        status: record.status,
        events: events.map(|event| event.event.to_string()).collect(),
        iteration: record.iteration,
        crashes: record.crashes.filter(|count| *count > 0),
        idle_exits: record.idle_exits.filter(|count| *count > 0),
    }
}

/// The same of the real task.
fn really_happened(record: &TaskRecord) -> Happened {
    let ended = record.history.iter().flatten().filter(|event| event.is(EventName::SessionEnded));
    happened(record, ended.count())
}

/// The sessions that were started.
fn sessions(bench: &Bench, role: &str) -> usize {
    fs::read_to_string(bench.home().join(format!("{role}.sessions"))).unwrap_or_default().lines().count()
}

/// Plays it with real processes; what differs.
fn difference(told: &Story) -> Option<String> {
    let bench = Bench::new(LIMITS, &[("dice", PROGRAM)]);
    for (role, words) in [("coder", &told.coder), ("code-reviewer", &told.reviewer)] {
        fs::write(bench.home().join(role), format!("{}\n", words.join("\n"))).unwrap();
    }
    bench.project.add_task("t1");
    let mut agents = ["coder", "code-reviewer"].map(|role| bench.agent(&[role, "--cli", "dice"]));
    let expected = happened(&told.task, told.coder.len() + told.reviewer.len());
    let seen = || really_happened(&bench.task("t1"));
    let is_same = || (seen() == expected).then_some(());
    let _ = wait_up_to(Duration::from_secs(120), is_same);
    agents.iter_mut().for_each(crate::support::process::Running::stop);
    bench.until_nothing_runs();
    let counts = (sessions(&bench, "coder"), sessions(&bench, "code-reviewer"));
    let is_equal = seen() == expected && counts == (told.coder.len(), told.reviewer.len());
    let output = || agents.iter().map(|agent| agent.output()).collect::<String>();
    (!is_equal).then(|| format!("{told:#?}\n{counts:?} {:#?}\n{}", seen(), output()))
}

/// Stories that together have every end of a session; as many as `LIZA_RUNS` says, 300 in `just full`.
fn stories() -> Vec<Story> {
    let all = (1..=300).map(story);
    if let Some(runs) = real_runs() {
        return all.take(runs).collect();
    }
    let mut seen = BTreeSet::new();
    let is_new = |told: &Story| {
        let before = seen.len();
        seen.extend(ends(told));
        seen.len() > before
    };
    all.filter(is_new).collect()
}

/// The ends of sessions in a story, each with its role.
fn ends(told: &Story) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of = |role, words: &[&'static str]| words.iter().map(move |word| (role, *word)).collect::<Vec<_>>();
    of("coder", &told.coder).into_iter().chain(of("code-reviewer", &told.reviewer))
}

/// Covers: PV-03
#[test]
fn a_story_of_the_simulation_happens_with_real_processes_too() {
    let told = stories();
    assert_eq!(told.iter().flat_map(ends).collect::<BTreeSet<_>>().len(), 8, "each end, of each role");
    // They wait most of the time.
    let parts = told.chunks(told.len().div_ceil(6));
    let play = |part: &[Story]| part.iter().filter_map(difference).collect::<Vec<String>>();
    let differences: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = parts.map(|part| scope.spawn(move || play(part))).collect();
        running.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    assert!(differences.is_empty(), "{} of {}: {}", differences.len(), told.len(), differences.join("\n"));
    tried(REAL_TEAMS, told.len());
}
