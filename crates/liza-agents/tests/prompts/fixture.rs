//! A small project with one task in progress.

use std::path::PathBuf;

use liza_agents::contracts::Contract;
use liza_agents::prompts::{Brief, Job, prompt};
use liza_core::model::{
    EventName, Handoff, HistoryEvent, HumanNote, Revision, Seconds, State, Status, TaskRecord, Worktree,
};
use liza_testkit::boards;
pub(crate) use liza_testkit::boards::{agent, ago, event, now, sha, task};

pub(crate) const TASK: &str = "retry-orders";

/// The project without tasks.
pub(crate) fn empty_state() -> State {
    let mut state = boards::empty("Every API call retries", ago(300));
    state.board.revision = Revision(100);
    boards::goal(&mut state).planned = false;
    state
}

/// A task in that status, with only its creation as history.
pub(crate) fn record(id: &str, status: Status) -> TaskRecord {
    TaskRecord {
        id: Some(task(id)),
        description: Some("Retry order calls on server errors".to_owned()),
        status: Some(status),
        priority: Some(2),
        spec_ref: Some("specs/retry.md#orders".to_owned()),
        done_when: Some("create_order succeeds when the server answers 503 twice, then 200".to_owned()),
        scope: Some("The order client; not the payment client".to_owned()),
        created: Some(ago(120)),
        revision: Some(Revision(50)),
        history: Some(vec![event(120, EventName::Created, "planner-1")]),
        ..TaskRecord::default()
    }
}

/// The task as coder-1 has claimed it for the first time.
pub(crate) fn claimed() -> TaskRecord {
    let mut record = record(TASK, Status::Claimed);
    record.assigned_to = Some(agent("coder-1"));
    record.worktree = Some(Worktree::of(&task(TASK)));
    record.base_commit = Some(sha('a'));
    record.lease_expires = Some(now() + Seconds(300));
    record.iteration = Some(1);
    record.review_cycles_current = Some(0);
    record.review_cycles_total = Some(0);
    add(&mut record, [event(60, EventName::Claimed, "coder-1")]);
    record
}

pub(crate) const REASON: &str = "\
Blockers: 1
- [blocker] src/orders.rs:42 — a 503 on the last attempt is swallowed
  Why it matters: the caller thinks that the order was placed
  Suggestion: return the last error

Concerns: 0

Overall: close, but it hides failures.";

/// The task after one rejection, claimed again by that coder.
pub(crate) fn claimed_after_rejection(coder: &str) -> TaskRecord {
    let mut record = claimed();
    let again = coder == "coder-1";
    record.assigned_to = Some(agent(coder));
    record.iteration = Some(if again { 2 } else { 1 });
    record.review_cycles_current = Some(u32::from(again));
    record.review_cycles_total = Some(1);
    record.review_commit = Some(sha('b'));
    record.rejection_reason = Some(REASON.to_owned());
    let claim = if again { EventName::ReclaimedAfterRejection } else { EventName::ReassignedAfterRejection };
    add(&mut record, [submitted(), rejected(), event(5, claim, coder)]);
    record
}

pub(crate) fn submitted() -> HistoryEvent {
    event(30, EventName::ReadyForReview, "coder-1").with("commit", sha('b').as_str())
}

pub(crate) fn rejected() -> HistoryEvent {
    event(20, EventName::Rejected, "code-reviewer-1").with("commit", sha('b').as_str()).with("reason", REASON)
}

pub(crate) fn add<const N: usize>(record: &mut TaskRecord, events: [HistoryEvent; N]) {
    record.history.get_or_insert_default().extend(events);
}

/// Puts tasks on the board and into the sprint.
pub(crate) fn state_with<const N: usize>(records: [TaskRecord; N]) -> State {
    let mut state = empty_state();
    records.into_iter().for_each(|record| boards::plan(&mut state, record));
    state
}

pub(crate) fn note(state: &mut State, message: &str, to: Option<&str>) {
    let to = to.map(task);
    state.journal.human_notes.push(HumanNote { timestamp: ago(10), message: message.to_owned(), to });
}

/// Notes that this agent left on the task.
pub(crate) fn handoff(state: &mut State, from: &str) {
    let notes = Handoff {
        agent: agent(from),
        role: Some(agent(from).role()),
        context_used: Some("92%".to_owned()),
        timestamp: Some(ago(8)),
        summary: "Retry loop done, back-off missing".to_owned(),
        next_action: "Add exponential back-off for 429".to_owned(),
        approach: Some("Decorator around send()".to_owned()),
        blockers: None,
        files_modified: vec!["src/orders.rs".to_owned(), "tests/orders.rs".to_owned()],
        next_steps: vec!["back-off".to_owned(), "Retry-After header".to_owned()],
    };
    boards::part(&mut state.board.handoff).insert(task(TASK), notes);
}

pub(crate) fn worktree() -> PathBuf {
    PathBuf::from("/home/dev/shop/.worktrees/retry-orders")
}

/// A brief with a placeholder for the contract, so that snapshots show what differs.
pub(crate) fn brief(id: &str) -> Brief {
    Brief {
        project: "/home/dev/shop".into(),
        state_file: "/home/dev/shop/.liza/state.yaml".into(),
        specs: "/home/dev/shop/specs".into(),
        worktrees: "/home/dev/shop/.worktrees".into(),
        contract: Contract {
            paths: vec!["/home/dev/.liza/CORE.md".into(), "/home/dev/.liza/MULTI_AGENT_MODE.md".into()],
            text: "(the contract)\n".to_owned(),
        },
        program: "/usr/local/bin/liza".into(),
        agent: agent(id),
        now: now(),
        integration_copy: None,
        writable: Vec::new(),
        model_only: false,
    }
}

pub(crate) fn code() -> Job {
    Job::Code { task: task(TASK), worktree: worktree(), staleness: None, other_side: Vec::new() }
}

pub(crate) fn review() -> Job {
    Job::Review { task: task(TASK), worktree: worktree(), instructions: Vec::new() }
}

/// The prompt, after checks that apply to every prompt.
#[track_caller]
pub(crate) fn prompt_of(state: &State, brief: &Brief, job: &Job) -> String {
    let text = prompt(state, brief, job).unwrap();
    let section = match job {
        Job::Code { .. } => "=== ASSIGNED TASK ===",
        Job::Review { .. } => "=== REVIEW TASK ===",
        Job::Plan { .. } => "=== PLANNING CONTEXT ===",
    };
    let sections: Vec<&str> = text.lines().filter(|line| line.starts_with("===")).collect();
    assert_eq!(sections, ["=== BOOTSTRAP CONTEXT ===", "=== CONTRACT ===", section]);
    assert!(text.contains(&format!("Mode: Liza [{}]", job.role().title())), "{text}");
    assert!(!text.contains("\n\n\n"), "{text}");
    text
}
