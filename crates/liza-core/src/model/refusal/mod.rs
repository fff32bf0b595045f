//! Every reason to refuse a request: what is wrong, what would be right, and what to type next.
//!
//! Codes are a contract with programs; messages and hints are for people and agents, who take them literally.

use liza_ids::{AgentId, DirectEditId, DiscoveryId, Generation, Revision, Role, Sha, TaskId, Timestamp};

use crate::model::agent::AgentStatus;
use crate::model::goal::GoalStatus;
use crate::model::notes::AnomalyType;
use crate::model::record::Status;
use crate::model::sprint::SprintStatus;
use crate::model::stop_file::StopFile;
use crate::text::count;

mod advice;

/// What a refusal means for the caller; the program turns it into an exit code in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// The request was wrong, or came at the wrong time.
    Refused,
    /// The blackboard itself is broken, or has changed since it was read.
    Inconsistent,
    /// An agent has to stop now.
    Stop,
}

/// The heading that a rejection needs from the second review on.
pub const PRIOR_FEEDBACK: &str = "Prior Feedback Status";

/// Every reason to refuse. The code of a reason is its name in snake_case.
#[allow(missing_docs, reason = "each message shows what its fields are")]
#[derive(Debug, Clone, PartialEq, thiserror::Error, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(RefusalKind),
    derive(strum::EnumIter, strum::IntoStaticStr),
    strum(serialize_all = "snake_case"),
    doc = "A reason without its data.",
    allow(missing_docs)
)]
pub enum Refusal {
    /// The role may not do this.
    #[error("{actor} may not {verb}: that is for {allowed}")]
    NotPermitted { actor: String, verb: &'static str, allowed: String },
    /// An agent edited a field that has a command.
    #[error("{actor} may not edit {place} directly")]
    #[strum_discriminants(strum(serialize = "not_permitted"))]
    EditNotPermitted { actor: String, place: String },
    /// A caller acted for another agent.
    #[error("{actor} may not act for {agent}")]
    NotYourAgent { actor: String, agent: AgentId },
    /// The registration is an old one.
    #[error(
        "{agent} has registered again (generation {current}); this session belongs to generation {yours}"
    )]
    Fenced { agent: AgentId, yours: Generation, current: Generation },
    /// Too many sessions without a merge or a decision of the human.
    #[error("the session budget of {what} is used up ({} without a merge or a decision of the human)", count(*used as usize, "session"))]
    SessionBudget { what: String, used: u32 },
    /// A budget in dollars or tokens is used up.
    #[error("a budget is used up: {spent}")]
    BudgetUsedUp { spent: String, setting: &'static str },
    /// Blocked too often.
    #[error("{task} has been blocked {blocks} times since the human last unblocked it")]
    BlockLimit { task: TaskId, blocks: usize },
    /// Replaced too often in a row.
    #[error("{task} is the last of {depth} replacements in a row")]
    RescopeLimit { task: TaskId, depth: u32 },
    /// Another coder is to take it.
    #[error("{task} was unblocked for a coder other than {coder}, and one is registered")]
    LeftToAnother { task: TaskId, coder: AgentId },
    /// The template was sent as it is.
    #[error("{what} is an unfilled template: it still says {placeholder:?}")]
    UnfilledTemplate { what: &'static str, placeholder: &'static str },
    /// The same commit was rejected before.
    #[error("{commit} of {task} was rejected by {by}; submit a commit that answers the rejection")]
    AlreadyRejected { task: TaskId, commit: Sha, by: String },
    /// The merge of the same commit failed before.
    #[error("{commit} of {task} could not be merged ({why}); submit a commit that corrects it")]
    AlreadyFailed { task: TaskId, commit: Sha, why: String },
    /// The integration test fails without the task too.
    #[error("{task} waits for the human: the integration test fails even without its change ({what})")]
    MergeHeld { task: TaskId, what: String },
    /// The merge changes protected files.
    #[error("{task} waits for the human: it changes what judges it")]
    GateChanged { task: TaskId },
    /// The human's word on the gate does not say that the old gate may fail.
    #[error("{task} fails under the gate of the integration branch ({what})")]
    OldGateFails { task: TaskId, what: String },
    /// There is no question about the gate.
    #[error("{task} does not wait for your word on the gate")]
    NoGateChange { task: TaskId },
    /// The status says APPROVED, but there is no approval of that commit by another agent or the human.
    #[error("{task} is APPROVED, but its history has no approval of {commit} by another agent or the human")]
    NoApproval { task: TaskId, commit: Sha },
    /// The integration branch moved without the program.
    #[error("the integration branch is at {found}, not at {recorded}, where liza left it")]
    ForeignCommits { recorded: Sha, found: Sha },
    /// The project's git configuration names programs, or ways to sign, that the human has not accepted.
    #[error("merges wait: the project's git configuration is not as you accepted it ({})", keys.join(", "))]
    GitProgramsChanged { keys: Vec<String> },
    /// The branch has the merge of a task that is open on the blackboard.
    #[error("the merge of {task}, {}, is on the integration branch and not on the blackboard", merge.short())]
    MergeNotRecorded { task: TaskId, merge: Sha },
    /// No task was ever planned.
    #[error("no task was ever planned, so only the human can complete the goal")]
    NothingPlanned,
    /// The agent's entry is gone.
    #[error("{agent} is not registered")]
    NotRegistered { agent: AgentId },
    /// The lease has expired.
    #[error("the lease of {agent} expired at {expired}")]
    LeaseLost { agent: AgentId, expired: Timestamp },
    /// Another agent has the task now.
    #[error("{agent} no longer has {task}: {now_with}")]
    TaskLost { task: TaskId, agent: AgentId, now_with: String },
    /// A stop file is present.
    #[error(".liza/{} is present; {verb} is disabled", file.name())]
    Halted { file: StopFile, verb: &'static str },
    /// The goal was aborted.
    #[error("the goal was aborted: no new work starts")]
    GoalAborted,
    /// The target has changed.
    #[error("{what} has changed since revision {expected}: it is at revision {current}")]
    StaleRevision { what: String, expected: Revision, current: Revision },
    /// Another agent has the name now.
    #[error("{agent} has registered again: it is generation {current}, not {expected}")]
    StaleGeneration { agent: AgentId, expected: Generation, current: Generation },
    /// No such task.
    #[error("there is no task {task}")]
    UnknownTask { task: TaskId },
    /// The task's record is in the archive.
    #[error("{task} is archived")]
    Archived { task: TaskId },
    /// The name is taken.
    #[error("there is already a task {task}")]
    TaskExists { task: TaskId },
    /// The record lacks what its status needs.
    #[error("the record of {task} is broken: {}", faults.join("; "))]
    BrokenTask { task: TaskId, faults: Vec<String> },
    /// A section cannot be understood.
    #[error("the section {section} is broken: {fault}")]
    BrokenSection { section: &'static str, fault: String },
    /// A rule read what its command had not asked for.
    #[error("{what} was not loaded: this is a bug in liza")]
    NotLoaded { what: String },
    /// The status does not allow it.
    #[error("{task} is {status}; {verb} needs {needed}. Possible now: {possible}")]
    WrongStatus { task: TaskId, status: Status, verb: &'static str, needed: String, possible: &'static str },
    /// Not claimable now.
    #[error("{task} is {status} and cannot be claimed. Possible now: {possible}")]
    NotClaimable { task: TaskId, status: Status, possible: &'static str },
    /// Dependencies are not met.
    #[error("{task} waits for {}", unmet.join(", "))]
    DependenciesUnmet { task: TaskId, unmet: Vec<String> },
    /// Another claim is under way.
    #[error("{by} is claiming {task} (until {until})")]
    Reserved { task: TaskId, by: AgentId, until: Timestamp },
    /// There is no reservation of this coder.
    #[error("{coder} has no reservation on {task}")]
    NoReservation { task: TaskId, coder: AgentId },
    /// Another coder works on it.
    #[error("{by} has {task} (lease until {until})")]
    ClaimedByOther { task: TaskId, by: AgentId, until: Timestamp },
    /// A rejected task goes back to its own coder.
    #[error("{task} goes back to {coder}, which is registered")]
    ReservedForCoder { task: TaskId, coder: AgentId },
    /// The coder has failed at it.
    #[error("{coder} has failed at {task}; another coder has to take it")]
    FailedBefore { task: TaskId, coder: AgentId },
    /// The coder has another task.
    #[error("{agent} already has {task}")]
    AgentBusy { agent: AgentId, task: TaskId },
    /// An agent of another role.
    #[error("{agent} is a {}, not a {}", agent.role(), wanted)]
    WrongRole { agent: AgentId, wanted: Role },
    /// The limit of claims is reached; the task was blocked.
    #[error("{task} was blocked after {} without approval", count(*iterations as usize, "iteration"))]
    IterationLimit { task: TaskId, iterations: u32 },
    /// The lease is live.
    #[error("the lease of {by} on {task} is live until {until}")]
    LeaseLive { task: TaskId, by: AgentId, until: Timestamp },
    /// There is no claim to release.
    #[error("{task} has no such claim")]
    NothingToRelease { task: TaskId },
    /// Not the caller's task.
    #[error("{agent} does not have {task}: {with}")]
    NotYourTask { task: TaskId, agent: AgentId, with: String },
    /// Not the caller's review.
    #[error("{agent} does not have the review of {task}: {with}")]
    NotYourReview { task: TaskId, agent: AgentId, with: String },
    /// The author judges its own work.
    #[error("{agent} wrote {task} and cannot review it")]
    OwnWork { task: TaskId, agent: AgentId },
    /// Another code reviewer has it.
    #[error("{by} is reviewing {task} (lease until {until})")]
    ReviewClaimed { task: TaskId, by: AgentId, until: Timestamp },
    /// The worktree is missing.
    #[error("the worktree of {task} is missing")]
    WorktreeMissing { task: TaskId },
    /// HEAD is elsewhere.
    #[error("the worktree of {task} is at {head}, not at {commit}")]
    HeadMoved { task: TaskId, head: Sha, commit: Sha },
    /// The submission was void; the task was sent back.
    #[error("{task} was sent back: its worktree moved to {head} after {commit} was submitted")]
    SubmissionVoid { task: TaskId, head: Sha, commit: Sha },
    /// The submission cannot be reviewed; the task was sent back.
    #[error("{task} was sent back: {why}")]
    SubmissionUnusable { task: TaskId, commit: Sha, why: String },
    /// Not on the task's branch.
    #[error("the worktree of {task} is not on its branch task/{task}")]
    WrongBranch { task: TaskId },
    /// Uncommitted work.
    #[error("the worktree of {task} is not clean: {}", short_list(paths))]
    DirtyWorktree { task: TaskId, paths: Vec<String> },
    /// The commit has files where Liza keeps its own.
    #[error("{commit} of {task} contains {path}, which is reserved for Liza")]
    ReservedPath { task: TaskId, commit: Sha, path: String },
    /// The work changes what agent programs take settings from.
    #[error(
        "{task} changes {path}, from which agent programs take settings or hooks; only people change that"
    )]
    ClientSettingsChanged { task: TaskId, path: String },
    /// The work has a link that leads out of the repository.
    #[error("{task} changes {path}, a link that leads out of the repository; only people make such links")]
    LinkOutside { task: TaskId, path: String },
    /// A submodule is at a commit that exists only in the task's worktree.
    #[error("{path} of {task} is at {commit}, which is on no remote of that submodule and would be lost")]
    UnpublishedSubmodule { task: TaskId, path: String, commit: Sha },
    /// A commit names an agent that never had the task.
    #[error("{commit} of {task} is the work of {agent}, which never had {task}")]
    ForeignAuthor { task: TaskId, commit: Sha, agent: AgentId },
    /// Tracked files changed during the review.
    #[error("tracked files of {task} changed during the review: {}", short_list(paths))]
    ReviewTouched { task: TaskId, paths: Vec<String> },
    /// The reviewer has read another change than the merge would make now.
    #[error("the integration branch moved to {}, and the merge of {task} would now change something else: {}", head.short(), short_list(what))]
    ChangeMoved { task: TaskId, head: Sha, what: Vec<String> },
    /// Nothing was done.
    #[error("{commit} is the commit that {task} started from: there is nothing to review")]
    NothingToReview { task: TaskId, commit: Sha },
    /// The integration head is not merged in.
    #[error("{commit} does not contain the integration head {base}, which {task} has to merge in")]
    BaseNotMerged { task: TaskId, commit: Sha, base: Sha },
    /// A required text is blank.
    #[error("{what} is missing")]
    Missing { what: &'static str },
    /// A text does not have the form that it must have.
    #[error("{what}: {problem}")]
    BadText { what: &'static str, problem: String },
    /// A second rejection has to say what became of the first.
    #[error(
        "{task} was rejected before: the reason needs a section \"{PRIOR_FEEDBACK}:\" with lines that begin with RESOLVED, STILL PRESENT or PARTIAL"
    )]
    PriorFeedbackMissing { task: TaskId },
    /// The merge belongs to the approver.
    #[error("{by} approved {task} and is registered: its supervisor merges it")]
    MergeBelongsTo { task: TaskId, by: AgentId },
    /// Another commit than the approved one.
    #[error("{task} was approved at {approved}, not at {commit}")]
    NotApprovedCommit { task: TaskId, approved: Sha, commit: Sha },
    /// A task lacks what it needs to leave DRAFT.
    #[error("{task} is not ready: {} missing", missing.join(", "))]
    GatesMissing { task: TaskId, missing: Vec<&'static str> },
    /// A dependency does not exist.
    #[error("{task} depends on {dependency}, which does not exist")]
    UnknownDependency { task: TaskId, dependency: TaskId },
    /// Two coders failed.
    #[error("two coders failed at {task} ({}): its framing is presumed wrong", failed_by.iter().map(|a| a.to_string()).collect::<Vec<_>>().join(", "))]
    HypothesisExhausted { task: TaskId, failed_by: Vec<AgentId> },
    /// The planner has to assess the deadlock.
    #[error("{task} is blocked by {cause}: unblocking it needs an assessment")]
    AssessmentNeeded { task: TaskId, cause: String },
    /// There is nothing left to continue with.
    #[error("{task} has no {what} to keep")]
    NothingKept { task: TaskId, what: &'static str },
    /// Not a possible replacement.
    #[error("{replacement} cannot replace {task}: {why}")]
    BadReplacement { task: TaskId, replacement: TaskId, why: String },
    /// Not the role's duty.
    #[error("{role} does not log {kind}: that is for {duty}")]
    NotYourDuty { role: Role, kind: AnomalyType, duty: String },
    /// Details are missing or of the wrong type.
    #[error("{}", faults.join("; "))]
    BadDetails { kind: AnomalyType, faults: Vec<String> },
    /// No such discovery.
    #[error("there is no discovery {discovery}")]
    UnknownDiscovery { discovery: DiscoveryId },
    /// No such direct edit.
    #[error("there is no direct edit {edit} to dismiss")]
    UnknownEdit { edit: DirectEditId },
    /// It became a task before.
    #[error("{discovery} has already become {task}")]
    AlreadyConverted { discovery: DiscoveryId, task: TaskId },
    /// The ID is in use.
    #[error("{agent} is registered with a lease until {until}")]
    AgentLive { agent: AgentId, until: Timestamp },
    /// One planner at a time.
    #[error("{other} is the project's planner; there can be only one at a time")]
    PlannerLive { other: AgentId },
    /// The role does not have this status.
    #[error("a {role} cannot be {status}")]
    BadAgentStatus { role: Role, status: AgentStatus },
    /// The goal is not open.
    #[error("the goal is {status}")]
    GoalNotOpen { status: GoalStatus },
    /// Tasks are open.
    #[error("{} still open: {}", are(*count), short_list(tasks))]
    TasksOpen { count: usize, tasks: Vec<String> },
    /// The client cannot be used now.
    #[error("{client} is held {}: {why}", until.map_or("until you run liza resume".to_owned(), |until| format!("until {until}")))]
    ClientHeld { client: String, until: Option<Timestamp>, why: String },
    /// The sprint is in another state.
    #[error("the sprint is {status}; {verb} needs {needed}")]
    SprintStatus { status: SprintStatus, verb: &'static str, needed: &'static str },
    /// The sprint has not ended.
    #[error("the sprint is not complete: {why}")]
    SprintNotComplete { why: String },
    /// The breaker has not fired.
    #[error("the circuit breaker has not fired: there is nothing to resolve")]
    NothingToResolve,
    /// Cannot be archived.
    #[error("{task} cannot be archived: {why}")]
    NotArchivable { task: TaskId, why: String },
    /// There is nothing to do.
    #[error("nothing to {what}")]
    NothingToDo { what: &'static str },
}

fn are(tasks: usize) -> String {
    if tasks == 1 { "1 task is".to_owned() } else { format!("{tasks} tasks are") }
}

fn short_list(items: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN {
        text.push_str(&format!(" and {} more", items.len() - SHOWN));
    }
    text
}
