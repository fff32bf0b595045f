//! A task as a screen shows it: what happens to it now, what it waits for, and the next step.

use serde::Serialize;

use crate::agent::{LEASE_GRACE, Role};
use crate::board::{DEFAULT_PRIORITY, State};
use crate::claimable::is_here;
use crate::config::Config;
use crate::ids::{AgentId, Revision, TaskId};
use crate::record::{Status, TaskRecord, Usage};
use crate::task::{EXHAUSTED, Task};
use crate::time::Timestamp;

/// What happens to a task, in the order in which a person wants to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nobody can go on without a decision, or its record is broken.
    Stuck,
    /// A coder has it.
    Working,
    /// Submitted, reviewed or to be merged.
    Reviewing,
    /// Anybody free may take it.
    Ready,
    /// Other tasks come first.
    Waiting,
    /// Being planned.
    Draft,
    /// Nothing more will happen.
    Over,
}

/// A lease and how long it still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// Until when.
    pub expires: Timestamp,
    /// Seconds; below zero when it has ended.
    pub left: i64,
}

impl Lease {
    /// How long a lease runs from now on.
    pub fn new(expires: Timestamp, now: Timestamp) -> Self {
        Self { expires, left: expires.unix() - now.unix() }
    }
}

/// A task that has to be merged first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Which.
    pub task: TaskId,
    /// In which state it is; nothing where there is no such task.
    pub status: Option<Status>,
}

/// A task as a screen shows it.
#[derive(Debug, Clone, Serialize)]
pub struct TaskView {
    /// Its name.
    pub id: TaskId,
    /// What to build.
    pub description: String,
    /// Its state; nothing where the file says something unknown.
    pub status: Option<Status>,
    /// What happens to it.
    pub phase: Phase,
    /// 1 (highest) to 5 (lowest).
    pub priority: i64,
    /// Who is at it now: the coder, or the code reviewer of a submitted one.
    pub owner: Option<AgentId>,
    /// The coder whose work it is.
    pub assigned_to: Option<AgentId>,
    /// The code reviewer who is at it.
    pub reviewing_by: Option<AgentId>,
    /// What has to be merged first.
    pub waits_for: Vec<Waiting>,
    /// All that it depends on.
    pub depends_on: Vec<TaskId>,
    /// The coder's how-manieth claim this is.
    pub iteration: Option<u32>,
    /// How many claims one coder has.
    pub max_iterations: u32,
    /// Rejections since the coder changed.
    pub review_cycles: u32,
    /// How many rejections one coder has.
    pub max_review_cycles: u32,
    /// The lease of whoever is at it.
    pub lease: Option<Lease>,
    /// Why it is blocked or was sent back.
    pub reason: Option<String>,
    /// The next step, in words.
    pub next: String,
    /// The next step, as a command.
    pub command: Option<String>,
    /// The coders who failed at it.
    pub failed_by: Vec<AgentId>,
    /// Whether notes of an earlier session wait to be read.
    pub handoff_pending: bool,
    /// What commands cannot work with in its record.
    pub broken: Vec<String>,
    /// Tokens and money.
    pub usage: Option<Usage>,
    /// When something last happened to it.
    pub changed: Option<Timestamp>,
    /// When it was written down.
    pub created: Option<Timestamp>,
    /// The write that last changed it.
    pub revision: Revision,
}

/// All tasks that could be read: by what happens to them, then priority, then age.
pub(super) fn tasks(state: &State, now: Timestamp) -> Vec<TaskView> {
    let config = state.board.config.ready().cloned().unwrap_or_default();
    let mut tasks: Vec<TaskView> =
        state.records().map(|(id, record)| task_view(state, &config, id, record, now)).collect();
    tasks.sort_by_key(|task| (task.phase, task.priority, task.created));
    tasks
}

fn task_view(state: &State, config: &Config, id: &TaskId, record: &TaskRecord, now: Timestamp) -> TaskView {
    let board = &state.board;
    let broken = match board.body(id).and_then(|body| Task::from_body(id, body)) {
        Ok(_) => Vec::new(),
        Err(refusal) => vec![refusal.to_string()],
    };
    let head = board.head(id);
    let waits_for: Vec<Waiting> = head
        .into_iter()
        .flat_map(|head| board.unmet(head))
        .map(|task| Waiting { task: task.clone(), status: board.status(task) })
        .collect();
    let step = Step { state, id, record, waits_for: &waits_for, now };
    let over = record.status.is_some_and(Status::is_terminal);
    let phase = if broken.is_empty() || over { step.phase() } else { Phase::Stuck };
    let (owner, lease) = step.owner();
    let (next, command) = step.next();
    TaskView {
        id: id.clone(),
        description: record.description.clone().unwrap_or_default(),
        status: record.status,
        phase,
        priority: record.priority.unwrap_or(DEFAULT_PRIORITY),
        owner,
        assigned_to: record.assigned_to,
        reviewing_by: record.reviewing_by,
        depends_on: record.depends_on.clone().unwrap_or_default(),
        iteration: record.iteration,
        max_iterations: config.max_iterations(record),
        review_cycles: record.review_cycles_current.unwrap_or(0),
        max_review_cycles: config.max_review_cycles(record),
        lease: lease.map(|expires| Lease::new(expires, now)),
        reason: step.reason(),
        next,
        command: if broken.is_empty() { command } else { Some(format!("liza edit {id}")) },
        failed_by: record.failed_by.clone().unwrap_or_default(),
        handoff_pending: record.handoff_pending.unwrap_or(false),
        broken,
        usage: record.usage.clone(),
        changed: record.history.iter().flatten().map(|event| event.time).max().or(record.created),
        created: record.created,
        revision: record.revision.unwrap_or_default(),
        waits_for,
    }
}

/// What is looked at to tell a task's next step.
struct Step<'a> {
    state: &'a State,
    id: &'a TaskId,
    record: &'a TaskRecord,
    waits_for: &'a [Waiting],
    now: Timestamp,
}

impl Step<'_> {
    fn phase(&self) -> Phase {
        let Some(status) = self.record.status else { return Phase::Stuck };
        match status {
            Status::Blocked => Phase::Stuck,
            Status::Claimed if self.lease_is_over() => Phase::Ready,
            Status::Claimed => Phase::Working,
            Status::ReadyForReview | Status::Approved => Phase::Reviewing,
            Status::Rejected if self.coder_is_here() => Phase::Working,
            Status::Unclaimed | Status::Rejected | Status::IntegrationFailed if self.waits_for.is_empty() => {
                Phase::Ready
            }
            Status::Unclaimed | Status::Rejected | Status::IntegrationFailed => Phase::Waiting,
            Status::Draft => Phase::Draft,
            Status::Merged | Status::Superseded | Status::Abandoned => Phase::Over,
        }
    }

    /// Who is at it, and until when it is theirs.
    fn owner(&self) -> (Option<AgentId>, Option<Timestamp>) {
        let record = self.record;
        match record.status {
            Some(Status::ReadyForReview) => (record.reviewing_by, record.review_lease_expires),
            Some(Status::Approved) => (record.approved_by, None),
            Some(Status::Claimed) => (record.assigned_to, record.lease_expires),
            Some(
                Status::Draft
                | Status::Unclaimed
                | Status::Rejected
                | Status::Merged
                | Status::Blocked
                | Status::Abandoned
                | Status::Superseded
                | Status::IntegrationFailed,
            )
            | None => (record.assigned_to, None),
        }
    }

    fn reason(&self) -> Option<String> {
        let record = self.record;
        match record.status {
            Some(Status::Blocked) => record.blocked_reason.clone(),
            Some(Status::Rejected) => record.rejection_reason.clone(),
            Some(Status::Superseded) => record.rescope_reason.clone(),
            Some(Status::Claimed) if record.review_cycles_current.unwrap_or(0) > 0 => {
                record.rejection_reason.clone()
            }
            Some(
                Status::Draft
                | Status::Unclaimed
                | Status::Claimed
                | Status::ReadyForReview
                | Status::Approved
                | Status::Merged
                | Status::Abandoned
                | Status::IntegrationFailed,
            )
            | None => None,
        }
    }

    fn lease_is_over(&self) -> bool {
        self.record.lease_expires.is_none_or(|expires| expires + LEASE_GRACE < self.now)
    }

    fn coder_is_here(&self) -> bool {
        let here = |coder| is_here(&self.state.board, coder, self.now).unwrap_or(false);
        self.record.assigned_to.is_some_and(here)
    }

    /// The next step in words and as a command.
    fn next(&self) -> (String, Option<String>) {
        let (id, record) = (self.id, self.record);
        let command = |verb: &str| Some(format!("liza {verb} {id}"));
        let Some(status) = record.status else {
            return ("its status is unknown: mend it".to_owned(), command("edit"));
        };
        match status {
            Status::Draft => ("the planner finalizes it".to_owned(), command("finalize")),
            Status::Unclaimed | Status::IntegrationFailed if !self.waits_for.is_empty() => self.waits(),
            Status::Unclaimed => ("a coder claims it".to_owned(), self.claim()),
            Status::IntegrationFailed => ("a coder repairs the merge".to_owned(), self.claim()),
            Status::Rejected if self.coder_is_here() => {
                (format!("{} goes on with it", self.coder()), self.claim())
            }
            Status::Rejected => ("another coder takes it".to_owned(), self.claim()),
            Status::Claimed if self.lease_is_over() => {
                (format!("{} is gone: another coder takes it over", self.coder()), self.claim())
            }
            Status::Claimed => {
                let command = format!("liza submit-for-review {id} COMMIT");
                (format!("{} submits it for review", self.coder()), Some(command))
            }
            Status::ReadyForReview => self.review(),
            Status::Approved => ("the code reviewer's supervisor merges it".to_owned(), command("wt-merge")),
            Status::Blocked => self.unblock(),
            Status::Merged => ("nothing: it is merged".to_owned(), None),
            Status::Abandoned => ("nothing: it was given up".to_owned(), None),
            Status::Superseded => {
                let by = list(record.superseded_by.as_deref().unwrap_or_default());
                (format!("nothing: {by} took its place"), None)
            }
        }
    }

    fn waits(&self) -> (String, Option<String>) {
        let never =
            |status: Option<Status>| matches!(status, None | Some(Status::Abandoned | Status::Superseded));
        let names: Vec<&TaskId> = self.waits_for.iter().map(|waiting| &waiting.task).collect();
        match self.waits_for.iter().find(|waiting| never(waiting.status)) {
            Some(dead) => (
                format!("the planner decides: {} will never be merged", dead.task),
                Some(format!("liza edit-task {} --depends …", self.id)),
            ),
            None => {
                (format!("{} must be merged first", list(&names)), Some(format!("liza show {}", names[0])))
            }
        }
    }

    fn review(&self) -> (String, Option<String>) {
        let live = self.record.review_lease_expires.is_some_and(|expires| self.now <= expires);
        match self.record.reviewing_by.filter(|_| live) {
            Some(reviewer) => {
                let command = format!("liza submit-verdict {} APPROVED|REJECTED", self.id);
                (format!("{reviewer} gives its verdict"), Some(command))
            }
            None => {
                let reviewer = self.free(Role::CodeReviewer);
                (
                    "a code reviewer takes it".to_owned(),
                    Some(format!("liza claim-review {} {reviewer}", self.id)),
                )
            }
        }
    }

    fn unblock(&self) -> (String, Option<String>) {
        let id = self.id;
        if self.record.failed_by.as_ref().is_some_and(|failed| failed.len() >= EXHAUSTED) {
            let command = format!("liza supersede-task {id} --by NEW,… --reason … --root-cause …");
            return ("the planner rescopes it: two coders failed".to_owned(), Some(command));
        }
        ("the planner decides".to_owned(), Some(format!("liza unblock-task {id}")))
    }

    fn claim(&self) -> Option<String> {
        let own = self.record.assigned_to.filter(|_| self.coder_is_here());
        let coder = own.map_or_else(|| self.free(Role::Coder), |coder| coder.to_string());
        Some(format!("liza claim-task {} {coder}", self.id))
    }

    fn coder(&self) -> String {
        self.record.assigned_to.map_or("its coder".to_owned(), |coder| coder.to_string())
    }

    /// An agent of that role that is here and holds nothing; a made-up one where there is none.
    fn free(&self, role: Role) -> String {
        let agents = self.state.board.agents.ready();
        let mut free = agents.into_iter().flatten().filter(|(_, entry)| {
            entry.role == role && entry.is_live(self.now) && entry.current_task.is_none()
        });
        free.next().map_or_else(|| format!("{}-1", role.id_prefix()), |(id, _)| id.to_string())
    }
}

fn list<T: ToString>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
