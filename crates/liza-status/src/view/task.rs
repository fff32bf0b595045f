//! A task as a screen shows it: its phase, its obstacles and its next step.

use crate::alarms::Moment;
use serde::Serialize;

use crate::alarms::held::held_roles;
use crate::alarms::held_merges::accept_gate;
use crate::alarms::task::verdict_command;
use crate::forecast::{Behind, Ended, Next, What, Who};
use crate::needs_you::own_questions;
use crate::task_words::without_dead;
use liza_core::model::{
    AgentId, Approver, DEFAULT_PRIORITY, EventName, GoalStatus, MAX_FAILED_CODERS, Revision, Role, State,
    Status, TaskBody, TaskId, TaskRecord, TaskStatus, Timestamp, Usage, lease_holds, lease_is_too_long,
};
use liza_core::rules::approvals::{incomplete_approval, lacks_approval};
use liza_core::rules::claimable::{HeldMerge, held_merge, left_to_others, reserved_for};
use liza_core::rules::impact::{approvals, has_approved, high_impact};
use liza_core::rules::validation::held_validation;
use liza_core::supervise::planner_needs_human;
use liza_core::text::bounded;
use liza_ids::order::sort_by_key;

use super::outlook::{Outlook, TaskPhase, broken_outlook};
use crate::command_line::{CommandLine, liza};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LeaseView {
    pub expires: Timestamp,
    /// Seconds; below zero when it has expired.
    pub left: i64,
}

impl LeaseView {
    pub fn new(expires: Timestamp, now: Timestamp) -> Self {
        let left = expires.unix() - now.unix();
        // A lease that no clock could have given has expired.
        Self { expires, left: if lease_is_too_long(expires, now) { -1 } else { left } }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmetDependency {
    pub task: TaskId,
    /// `None` if there is no such task.
    pub status: Option<Status>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TaskView {
    pub id: TaskId,
    pub description: String,
    /// `None` if the file has an unknown status.
    pub status: Option<Status>,
    pub phase: TaskPhase,
    /// 1 (highest) to 5 (lowest).
    pub priority: i64,
    /// The reasons that its impact is high; none if it is normal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub high_impact: Vec<String>,
    /// The code reviewers who have approved its commit, while others have to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approved_so_far: Vec<AgentId>,
    /// The coder, or the code reviewer of a submitted task.
    pub owner: Option<AgentId>,
    /// The coder whose work it is.
    pub assigned_to: Option<AgentId>,
    pub reviewing_by: Option<AgentId>,
    pub waits_for: Vec<UnmetDependency>,
    pub depends_on: Vec<TaskId>,
    /// The number of this claim among the coder's claims of the task.
    pub iteration: Option<u32>,
    pub max_iterations: Option<u32>,
    /// Rejections since the coder changed.
    pub review_cycles: u32,
    pub max_review_cycles: Option<u32>,
    pub lease: Option<LeaseView>,
    /// True if its agent has left, although its lease has not ended.
    pub stopped: bool,
    /// The reason that it is blocked or was rejected.
    pub reason: Option<String>,
    /// The questions of its coder, while it is blocked.
    pub questions: Vec<String>,
    pub next: Next,
    /// The next step, as a command for the person or the agent who takes it.
    pub command: Option<CommandLine>,
    pub human_command: Option<CommandLine>,
    /// The only coder who may claim it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_for: Option<AgentId>,
    /// The coders who may not claim it now, since another one should.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_for: Vec<AgentId>,
    pub failed_by: Vec<AgentId>,
    /// True if handoff notes of an earlier session are waiting.
    pub handoff_pending: bool,
    /// The parts of its record that commands cannot work with.
    pub broken: Vec<String>,
    pub usage: Option<Usage>,
    pub changed: Option<Timestamp>,
    pub created: Option<Timestamp>,
    /// The write that last changed it.
    pub revision: Revision,
}

impl TaskView {
    /// True if its merge happens next, and nothing is known to be in the way.
    pub(super) fn is_merged_next(&self) -> bool {
        self.next.what == What::Merge && self.reason.is_none()
    }

    /// True if it was open when its goal was aborted.
    pub fn is_dropped(&self) -> bool {
        self.phase == TaskPhase::Ended && !self.status.is_some_and(Status::is_terminal)
    }
}

/// All loaded tasks: by phase, then priority, then age.
pub(super) fn tasks(at: Moment<'_>) -> Vec<TaskView> {
    let held = held_roles(at);
    let mut tasks: Vec<TaskView> =
        at.state.bodies().map(|(id, body)| task_view(at, &held, id, body)).collect();
    sort_by_key(&mut tasks, |task| (task.phase, task.priority, task.created));
    tasks
}

fn task_view(at: Moment<'_>, held: &[Role], id: &TaskId, body: &TaskBody) -> TaskView {
    let Moment { state, now, .. } = at;
    let (board, record, config) = (&state.board, body.record(), at.config());
    let summary = board.summary(id);
    let unmet = summary.into_iter().flat_map(|summary| board.unmet(summary));
    let unmet = unmet.map(|task| UnmetDependency { task: task.clone(), status: board.status(task) });
    let waits_for: Vec<UnmetDependency> = unmet.collect();
    let outlook = match body.status() {
        Ok(status) => {
            let situation = TaskSituation { at, id, record, waits_for: &waits_for };
            match status.name().is_terminal() || !is_aborted(state) {
                true => situation.with_missing(situation.after_resume(situation.outlook(status)), held),
                false => Outlook::new(TaskPhase::Ended, Next::nothing(Ended::WithGoal), None),
            }
        }
        Err(_) if incomplete_approval(id, body).is_some() => unapproved(id, record),
        Err(missing) => broken_outlook(id, record, missing),
    };
    TaskView {
        id: id.clone(),
        description: record.description.as_deref().map(shown).unwrap_or_default(),
        status: record.status,
        phase: outlook.phase,
        priority: record.priority.unwrap_or(DEFAULT_PRIORITY),
        high_impact: config.map(|config| high_impact(config, record)).unwrap_or_default(),
        approved_so_far: approvals(record).map(|approval| approval.agent).collect(),
        owner: outlook.owner,
        assigned_to: record.assigned_to,
        reviewing_by: record.reviewing_by,
        depends_on: record.depends_on.clone().unwrap_or_default(),
        iteration: record.iteration,
        max_iterations: config.map(|config| config.max_iterations(record)),
        review_cycles: record.review_cycles_current.unwrap_or(0),
        max_review_cycles: config.map(|config| config.max_review_cycles(record)),
        lease: outlook.lease.map(|expires| LeaseView::new(expires, now)),
        stopped: outlook.stopped,
        reason: outlook.reason.as_deref().map(shown),
        questions: own_questions(state, id),
        next: outlook.next,
        human_command: None,
        command: outlook.command,
        reserved_for: summary.and_then(|summary| reserved_for(board, summary, now).ok().flatten()),
        not_for: summary.map(|summary| left_to_others(board, summary, now)).unwrap_or_default(),
        failed_by: record.failed_by.clone().unwrap_or_default(),
        handoff_pending: record.handoff_pending.unwrap_or(false),
        broken: outlook.broken,
        usage: record.usage.clone(),
        changed: record.events().map(|event| event.time).max().or(record.created),
        created: record.created,
        revision: record.revision.unwrap_or_default(),
        waits_for,
    }
}

/// A text of an agent, as far as screens lay it out.
fn shown(text: &str) -> String {
    bounded(text).into_owned()
}

/// True if the goal is aborted, so that nothing more happens to its tasks.
fn is_aborted(state: &State) -> bool {
    state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::Aborted)
}

/// The outlook of a task that is APPROVED or MERGED by its status alone.
fn unapproved(id: &TaskId, record: &TaskRecord) -> Outlook {
    let command = verdict_command(id, record);
    let outlook = Outlook::new(TaskPhase::Reviewing, Next::you(What::Decide), Some(command));
    let outlook = outlook.owner(record.approved_by.and_then(Approver::agent), None);
    outlook.reason("no approval of its commit is recorded")
}

/// The data for the next step of a task, besides its status.
struct TaskSituation<'a> {
    at: Moment<'a>,
    id: &'a TaskId,
    record: &'a TaskRecord,
    waits_for: &'a [UnmetDependency],
}

impl TaskSituation<'_> {
    /// The outlook of a task whose merge is on the integration branch and not on the blackboard.
    fn merged_before(&self, status: &TaskStatus) -> Option<Outlook> {
        let merge = self.at.seen.found_merges().of(self.id)?;
        let phase = match status {
            TaskStatus::Unclaimed { .. }
            | TaskStatus::IntegrationFailed { .. }
            | TaskStatus::Rejected { .. }
            | TaskStatus::Claimed { .. } => TaskPhase::Waiting,
            TaskStatus::ReadyForReview { .. } | TaskStatus::Approved { .. } => TaskPhase::Reviewing,
            TaskStatus::Draft
            | TaskStatus::Blocked { .. }
            | TaskStatus::Merged { .. }
            | TaskStatus::Abandoned
            | TaskStatus::Superseded { .. } => return None,
        };
        let next = Next::you(What::RecordMerge(merge.clone()));
        let outlook = Outlook::new(phase, next, Some(liza!("accept-integration")));
        Some(outlook.owner(self.record.assigned_to, None))
    }

    fn outlook(&self, status: &TaskStatus) -> Outlook {
        if let Some(outlook) = self.merged_before(status) {
            return outlook;
        }
        let id = self.id;
        let command = |verb: &str| Some(liza!(verb, id));
        let assigned = self.record.assigned_to;
        if let Some(coder) = self.set_up_by(status) {
            return self.open(Next::agent(coder, What::SetUp)).owner(coder, None);
        }
        match status {
            TaskStatus::Draft if self.record.events().any(|event| event.is(EventName::Proposed)) => {
                Outlook::new(TaskPhase::Draft, Next::you(What::ApprovePlan), command("finalize"))
                    .reason("proposed; you approve it")
            }
            TaskStatus::Draft => {
                let next = Next::role(Role::Planner, What::Finalize);
                let reason = match planner_needs_human(self.at.state, self.at.now) {
                    true => "the planner has stopped",
                    false => "the planner completes it",
                };
                Outlook::new(TaskPhase::Draft, next, command("finalize")).reason(reason)
            }
            TaskStatus::Unclaimed { .. } => match self.reserved_for().filter(|_| self.waits_for.is_empty()) {
                Some(coder) => self.open(Next::agent(coder, What::Continue)).owner(coder, None),
                None => self.open(Next::role(Role::Coder, What::Claim)).owner(assigned, None),
            },
            TaskStatus::IntegrationFailed { work, .. } => {
                self.open(Next::role(Role::Coder, What::FixMerge)).owner(work.coder, None)
            }
            TaskStatus::Rejected { work, reason, .. } if self.reserved_for() == Some(work.coder) => {
                let next = Next::agent(work.coder, What::Continue);
                let outlook = Outlook::new(TaskPhase::Working, next, self.claim());
                outlook.owner(work.coder, None).reason(reason)
            }
            TaskStatus::Rejected { work, reason, .. } => {
                // A coder that is here waits for its program.
                let what = What::ClaimRejected { coder_is_here: self.is_present(work.coder) };
                let outlook = Outlook::new(self.open_phase(), Next::role(Role::Coder, what), self.claim());
                outlook.owner(work.coder, None).reason(reason)
            }
            TaskStatus::Claimed { work, lease } => self.claimed(work.coder, *lease),
            TaskStatus::ReadyForReview { review, .. } => match review {
                Some(review) if review.is_live(self.at.now) && self.is_present(review.by) => {
                    let what = if review.phase.is_some() { What::Validate } else { What::Verdict };
                    let next = Next::agent(review.by, what);
                    let command = Some(liza!("submit-verdict", id, "APPROVED"));
                    Outlook::new(TaskPhase::Reviewing, next, command).owner(review.by, Some(review.lease))
                }
                _ if held_validation(self.at.board(), id).is_some() => {
                    let (next, command) = (Next::you(What::FixValidation), command("retry-validation"));
                    Outlook::new(TaskPhase::Reviewing, next, command)
                        .reason("its validation fails, and its change is not blamed for it")
                }
                review => {
                    let command = Some(liza!("claim-review", id, self.free(Role::CodeReviewer)));
                    let (owner, lease) =
                        (self.record.reviewing_by, review.as_ref().map(|review| review.lease));
                    let stopped = review.as_ref().is_some_and(|review| review.is_live(self.at.now));
                    let next = Next::role(Role::CodeReviewer, What::Review);
                    let outlook = Outlook::new(TaskPhase::Reviewing, next, command);
                    Outlook { stopped, ..outlook.owner(owner, lease) }
                }
            },
            TaskStatus::Approved { .. } | TaskStatus::Merged { .. } if lacks_approval(self.record) => {
                unapproved(id, self.record)
            }
            TaskStatus::Approved { by, held: Some(_), .. } if self.held().is_some() => {
                self.waiting_merge().owner(by.and_then(Approver::agent), None)
            }
            TaskStatus::Approved { by, .. } if self.is_paused() => {
                let next = Next::role(Role::CodeReviewer, What::Merge).behind(Behind::Resume);
                let reason = next.merge_words();
                let outlook = Outlook::new(TaskPhase::Reviewing, next, Some(liza!("resume")));
                Outlook { reason, ..outlook.owner(by.and_then(Approver::agent), None) }
            }
            TaskStatus::Approved { by, .. } => {
                let next = Next::role(Role::CodeReviewer, What::Merge);
                let outlook = Outlook::new(TaskPhase::Reviewing, next, command("wt-merge"));
                outlook.owner(by.and_then(Approver::agent), None)
            }
            TaskStatus::Blocked { block, .. } => self.blocked().owner(assigned, None).reason(&block.reason),
            TaskStatus::Merged { .. } => Outlook::new(TaskPhase::Ended, Next::nothing(Ended::Merged), None),
            TaskStatus::Abandoned => Outlook::new(TaskPhase::Ended, Next::nothing(Ended::Abandoned), None),
            TaskStatus::Superseded { by, reason } => {
                let next = Next::nothing(Ended::ReplacedBy(by.clone()));
                Outlook::new(TaskPhase::Ended, next, None).reason(reason)
            }
        }
    }

    /// Adds the obstacles of the role that should take the next step.
    fn with_missing(&self, mut outlook: Outlook, held: &[Role]) -> Outlook {
        let role = match outlook.next.who {
            Who::Role(role) => role,
            // It is kept for its coder, who is here.
            Who::Agent(_) if outlook.phase == TaskPhase::Ready => Role::Coder,
            Who::Agent(_) | Who::You | Who::Nobody => return outlook,
        };
        let is_merge = outlook.next.what == What::Merge;
        let is_stopped = role == Role::Planner && planner_needs_human(self.at.state, self.at.now);
        let missing = match () {
            // It waits for the human first.
            () if is_merge && self.is_paused() => return outlook,
            () if !self.at.here().has_role(role) => Behind::Start(role),
            () if is_stopped => Behind::StoppedPlanner,
            () if !is_merge && held.contains(&role) => Behind::Programs,
            () => return outlook,
        };
        outlook.next = outlook.next.behind(missing);
        outlook
    }

    /// The next work of an agent waits while the team is stopped.
    fn after_resume(&self, mut outlook: Outlook) -> Outlook {
        let is_taken = match outlook.phase {
            TaskPhase::Ready | TaskPhase::Stopped => true,
            TaskPhase::Draft => self.record.last_event(EventName::Proposed).is_none(),
            TaskPhase::Reviewing => outlook.lease.is_none() && outlook.reason.is_none(),
            TaskPhase::Stuck | TaskPhase::Working | TaskPhase::Waiting | TaskPhase::Ended => false,
        };
        if is_taken && self.is_paused() {
            outlook.next = outlook.next.behind(Behind::Resume);
        }
        outlook
    }

    /// The coder whose supervisor makes its worktree now.
    fn set_up_by(&self, status: &TaskStatus) -> Option<AgentId> {
        let is_claimable = matches!(
            status,
            TaskStatus::Unclaimed { .. } | TaskStatus::Rejected { .. } | TaskStatus::IntegrationFailed { .. }
        );
        if !is_claimable {
            return None;
        }
        let reservation = self.at.board().summary(self.id)?.reserved(self.at.now)?;
        Some(reservation.by).filter(|coder| self.is_present(*coder))
    }

    fn reserved_for(&self) -> Option<AgentId> {
        let summary = self.at.board().summary(self.id)?;
        reserved_for(self.at.board(), summary, self.at.now).ok()?.filter(|coder| self.is_present(*coder))
    }

    fn held(&self) -> Option<HeldMerge<'_>> {
        let board = self.at.board();
        held_merge(board, board.summary(self.id)?)
    }

    /// The outlook of a merge that waits for the human.
    fn waiting_merge(&self) -> Outlook {
        let (what, command, reason) = match self.held() {
            Some(HeldMerge::Gate) => {
                (What::AcceptGate, accept_gate(self.id, self.record), "it changes what judges it")
            }
            Some(HeldMerge::HeadFails(_)) | None => {
                (What::FixTest, liza!("resume"), "the integration test fails without it too")
            }
        };
        Outlook::new(TaskPhase::Reviewing, Next::you(what), Some(command)).reason(reason)
    }

    fn is_paused(&self) -> bool {
        self.at.seen.stop_files.is_paused()
    }

    fn open_phase(&self) -> TaskPhase {
        if self.waits_for.is_empty() { TaskPhase::Ready } else { TaskPhase::Waiting }
    }

    /// A task that can be claimed once its dependencies are merged.
    fn open(&self, next: Next) -> Outlook {
        let Some(first) = self.waits_for.first() else {
            return Outlook::new(TaskPhase::Ready, next, self.claim());
        };
        let never =
            |status: Option<Status>| matches!(status, None | Some(Status::Abandoned | Status::Superseded));
        if let Some(dead) = self.waits_for.iter().find(|waiting| never(waiting.status)) {
            let next = Next::role(Role::Planner, What::DecideWithout(dead.task.clone()));
            let command = without_dead(self.at.board(), self.id, self.record);
            return Outlook::new(TaskPhase::Waiting, next, Some(command));
        }
        let next = Next::wait_for(self.waits_for.iter().map(|waiting| waiting.task.clone()));
        Outlook::new(TaskPhase::Waiting, next, Some(liza!("show", first.task)))
    }

    fn claimed(&self, coder: AgentId, lease: Timestamp) -> Outlook {
        let outlook = if !lease_holds(lease, self.at.now) {
            let next = Next::role(Role::Coder, What::TakeOver { from: coder });
            Outlook::new(TaskPhase::Ready, next, self.claim())
        } else if !self.is_present(coder) {
            // A lease alone is no agent at work.
            Outlook::stopped(coder, Some(self.at.start(Role::Coder).clone()))
        } else {
            let command = Some(liza!("submit-for-review", self.id, "COMMIT"));
            Outlook::new(TaskPhase::Working, Next::agent(coder, What::Submit), command)
        };
        let again = self.record.review_cycles_current.unwrap_or(0) > 0;
        let reason = self.record.rejection_reason.clone().filter(|_| again);
        Outlook { reason, ..outlook.owner(coder, Some(lease)) }
    }

    fn blocked(&self) -> Outlook {
        let (id, failed) = (self.id, self.record.failed_by.as_ref().map_or(0, Vec::len));
        let (what, command) = match failed >= MAX_FAILED_CODERS {
            true => (
                What::Rescope,
                liza!("supersede-task", id, "--by", "NEW", "--reason", "T", "--root-cause", "T"),
            ),
            false => (What::Decide, liza!("unblock-task", id)),
        };
        Outlook::new(TaskPhase::Stuck, Next::role(Role::Planner, what), Some(command))
    }

    fn is_present(&self, coder: AgentId) -> bool {
        self.at.here().has(coder)
    }

    fn claim(&self) -> Option<CommandLine> {
        let own = self.record.assigned_to.filter(|coder| self.is_present(*coder));
        let coder = own.map_or_else(|| self.free(Role::Coder), |coder| coder.to_string());
        Some(liza!("claim-task", self.id, coder))
    }

    /// A live agent of that role that holds no task; an example if there is none.
    fn free(&self, role: Role) -> String {
        let free = self.at.here().of(role);
        let mut free = free.filter(|(id, entry)| {
            entry.is_live(self.at.now) && entry.current_task.is_none() && !has_approved(self.record, *id)
        });
        free.next().map_or_else(|| format!("{}-1", role.id_prefix()), |(id, _)| id.to_string())
    }
}
