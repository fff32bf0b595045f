//! What goes with each refusal: a stable code for programs, a class for the exit code, the next right command.

use super::{Class, Refusal};
use crate::notes::{AnomalyType, DetailType};
use crate::record::Status;

impl Refusal {
    /// The stable word by which programs know it.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NotPermitted { .. } | Refusal::NotByHand { .. } => "not_permitted",
            Refusal::NotYourAgent { .. } => "not_your_agent",
            Refusal::Fenced { .. } => "fenced",
            Refusal::NotRegistered { .. } => "not_registered",
            Refusal::LeaseLost { .. } => "lease_lost",
            Refusal::TaskLost { .. } => "task_lost",
            Refusal::Halted { .. } => "halted",
            Refusal::GoalAborted => "goal_aborted",
            Refusal::StaleRevision { .. } => "stale_revision",
            Refusal::UnknownTask { .. } => "unknown_task",
            Refusal::Archived { .. } => "archived",
            Refusal::TaskExists { .. } => "task_exists",
            Refusal::BrokenTask { .. } => "broken_task",
            Refusal::BrokenSection { .. } => "broken_section",
            Refusal::NotLoaded { .. } => "not_loaded",
            Refusal::WrongStatus { .. } => "wrong_status",
            Refusal::NotClaimable { .. } => "not_claimable",
            Refusal::DependenciesUnmet { .. } => "dependencies_unmet",
            Refusal::Reserved { .. } => "reserved",
            Refusal::NoReservation { .. } => "no_reservation",
            Refusal::ClaimedByOther { .. } => "claimed_by_other",
            Refusal::ReservedForCoder { .. } => "reserved_for_coder",
            Refusal::FailedBefore { .. } => "failed_before",
            Refusal::AgentBusy { .. } => "agent_busy",
            Refusal::WrongRole { .. } => "wrong_role",
            Refusal::IterationLimit { .. } => "iteration_limit",
            Refusal::LeaseLive { .. } => "lease_live",
            Refusal::NothingToRelease { .. } => "nothing_to_release",
            Refusal::NotYourTask { .. } => "not_your_task",
            Refusal::NotYourReview { .. } => "not_your_review",
            Refusal::OwnWork { .. } => "own_work",
            Refusal::ReviewClaimed { .. } => "review_claimed",
            Refusal::WorktreeMissing { .. } => "worktree_missing",
            Refusal::HeadMoved { .. } => "head_moved",
            Refusal::SubmissionVoid { .. } => "submission_void",
            Refusal::WrongBranch { .. } => "wrong_branch",
            Refusal::DirtyWorktree { .. } => "dirty_worktree",
            Refusal::ReviewTouched { .. } => "review_touched",
            Refusal::NothingToReview { .. } => "nothing_to_review",
            Refusal::BaseNotMerged { .. } => "base_not_merged",
            Refusal::Missing { .. } => "missing",
            Refusal::BadText { .. } => "bad_text",
            Refusal::PriorFeedbackMissing { .. } => "prior_feedback_missing",
            Refusal::MergeBelongsTo { .. } => "merge_belongs_to",
            Refusal::NotApprovedCommit { .. } => "not_approved_commit",
            Refusal::GatesMissing { .. } => "gates_missing",
            Refusal::UnknownDependency { .. } => "unknown_dependency",
            Refusal::HypothesisExhausted { .. } => "hypothesis_exhausted",
            Refusal::AssessmentNeeded { .. } => "assessment_needed",
            Refusal::NothingKept { .. } => "nothing_kept",
            Refusal::BadReplacement { .. } => "bad_replacement",
            Refusal::NotYourDuty { .. } => "not_your_duty",
            Refusal::BadDetails { .. } => "bad_details",
            Refusal::UnknownDiscovery { .. } => "unknown_discovery",
            Refusal::AlreadyConverted { .. } => "already_converted",
            Refusal::AgentLive { .. } => "agent_live",
            Refusal::PlannerLive { .. } => "planner_live",
            Refusal::BadAgentStatus { .. } => "bad_agent_status",
            Refusal::GoalNotOpen { .. } => "goal_not_open",
            Refusal::TasksOpen { .. } => "tasks_open",
            Refusal::SprintStatus { .. } => "sprint_status",
            Refusal::SprintNotComplete { .. } => "sprint_not_complete",
            Refusal::NothingToResolve => "nothing_to_resolve",
            Refusal::NotArchivable { .. } => "not_archivable",
            Refusal::NothingToDo { .. } => "nothing_to_do",
        }
    }

    /// What it means for the caller.
    pub fn class(&self) -> Class {
        match self {
            Refusal::Fenced { .. }
            | Refusal::LeaseLost { .. }
            | Refusal::TaskLost { .. }
            | Refusal::Halted { .. }
            | Refusal::GoalAborted => Class::Stop,
            Refusal::StaleRevision { .. }
            | Refusal::BrokenTask { .. }
            | Refusal::BrokenSection { .. }
            | Refusal::NotLoaded { .. }
            | Refusal::WorktreeMissing { .. } => Class::Inconsistent,
            Refusal::NotPermitted { .. }
            | Refusal::NotByHand { .. }
            | Refusal::NotYourAgent { .. }
            | Refusal::NotRegistered { .. }
            | Refusal::UnknownTask { .. }
            | Refusal::Archived { .. }
            | Refusal::TaskExists { .. }
            | Refusal::WrongStatus { .. }
            | Refusal::NotClaimable { .. }
            | Refusal::DependenciesUnmet { .. }
            | Refusal::Reserved { .. }
            | Refusal::NoReservation { .. }
            | Refusal::ClaimedByOther { .. }
            | Refusal::ReservedForCoder { .. }
            | Refusal::FailedBefore { .. }
            | Refusal::AgentBusy { .. }
            | Refusal::WrongRole { .. }
            | Refusal::IterationLimit { .. }
            | Refusal::LeaseLive { .. }
            | Refusal::NothingToRelease { .. }
            | Refusal::NotYourTask { .. }
            | Refusal::NotYourReview { .. }
            | Refusal::OwnWork { .. }
            | Refusal::ReviewClaimed { .. }
            | Refusal::HeadMoved { .. }
            | Refusal::SubmissionVoid { .. }
            | Refusal::WrongBranch { .. }
            | Refusal::DirtyWorktree { .. }
            | Refusal::ReviewTouched { .. }
            | Refusal::NothingToReview { .. }
            | Refusal::BaseNotMerged { .. }
            | Refusal::Missing { .. }
            | Refusal::BadText { .. }
            | Refusal::PriorFeedbackMissing { .. }
            | Refusal::MergeBelongsTo { .. }
            | Refusal::NotApprovedCommit { .. }
            | Refusal::GatesMissing { .. }
            | Refusal::UnknownDependency { .. }
            | Refusal::HypothesisExhausted { .. }
            | Refusal::AssessmentNeeded { .. }
            | Refusal::NothingKept { .. }
            | Refusal::BadReplacement { .. }
            | Refusal::NotYourDuty { .. }
            | Refusal::BadDetails { .. }
            | Refusal::UnknownDiscovery { .. }
            | Refusal::AlreadyConverted { .. }
            | Refusal::AgentLive { .. }
            | Refusal::PlannerLive { .. }
            | Refusal::BadAgentStatus { .. }
            | Refusal::GoalNotOpen { .. }
            | Refusal::TasksOpen { .. }
            | Refusal::SprintStatus { .. }
            | Refusal::SprintNotComplete { .. }
            | Refusal::NothingToResolve
            | Refusal::NotArchivable { .. }
            | Refusal::NothingToDo { .. } => Class::Refused,
        }
    }

    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Refusal::NotPermitted { actor, .. } if actor == "human" => {
                "LIZA_AGENT_ID=AGENT liza ... if you stand in for that agent; liza status shows who is there"
                    .into()
            }
            Refusal::NotPermitted { .. } => {
                "leave it to them; liza mark-blocked or liza discover says what you need".into()
            }
            Refusal::NotByHand { .. } => {
                "there is a command for it: liza --help; by hand an agent sets fields that liza does not know, and \
                 the description of its own task"
                    .into()
            }
            Refusal::NotYourAgent { agent, .. } => format!("LIZA_AGENT_ID={agent} says for whom you act"),
            Refusal::Fenced { .. } | Refusal::LeaseLost { .. } | Refusal::TaskLost { .. } => {
                "stop now with exit code 42; the supervisor starts a new session if there is more to do"
                    .into()
            }
            Refusal::NotRegistered { agent } => format!("liza register {agent}"),
            Refusal::Halted { file: "ABORT", .. } | Refusal::GoalAborted => {
                "liza goal new \"...\" starts over; an agent stops now with exit code 42".into()
            }
            Refusal::Halted { .. } => {
                "liza resume, by the human; an agent finishes what it has and stops with exit code 42".into()
            }
            Refusal::StaleRevision { current, .. } => {
                format!("read it again, then repeat with --if-revision {current}")
            }
            Refusal::UnknownTask { .. } => "liza status lists the tasks".into(),
            Refusal::Archived { task } => format!("its last state is in .liza/archive/{task}.yaml"),
            Refusal::TaskExists { task } => format!("liza show {task}, or choose another ID"),
            Refusal::BrokenTask { task, .. } => format!(
                "liza edit {task} to mend it, liza abandon-task {task} --reason \"...\" to give it up; liza validate shows all"
            ),
            Refusal::BrokenSection { .. } => "liza edit to mend it; liza validate shows all".into(),
            Refusal::WrongStatus { task, .. } | Refusal::NotClaimable { task, .. } => {
                match self.next_step() {
                    Some((verb, "")) => format!("liza {verb} {task}"),
                    Some((verb, more)) => format!("liza {verb} {task} {more}"),
                    None => format!("liza show {task}"),
                }
            }
            Refusal::DependenciesUnmet { .. } => {
                "they must be MERGED first; liza graph shows the order".into()
            }
            Refusal::Reserved { .. } | Refusal::ClaimedByOther { .. } | Refusal::ReviewClaimed { .. } => {
                "take another task, or wait 1 to 5 s and try again".into()
            }
            Refusal::NoReservation { task, coder } => format!("liza claim-task {task} {coder}"),
            Refusal::ReservedForCoder { task, coder } => format!("liza claim-task {task} {coder}"),
            Refusal::FailedBefore { task, .. } => {
                format!("another coder takes it, or the planner says liza unblock-task {task} --same-coder")
            }
            Refusal::AgentBusy { task, .. } => format!("finish {task} first: submit, block or hand off"),
            Refusal::WrongRole { wanted, .. } => format!("use an agent such as {}-1", wanted.id_prefix()),
            Refusal::IterationLimit { task, .. } => {
                format!("the planner decides: liza supersede-task {task}, unblock-task or abandon-task")
            }
            Refusal::LeaseLive { task, .. } => {
                format!("liza release-claim {task} --force takes it all the same")
            }
            Refusal::NotYourTask { task, .. } | Refusal::NotYourReview { task, .. } => {
                format!("liza show {task}")
            }
            Refusal::WorktreeMissing { .. } => "liza recover".into(),
            Refusal::HeadMoved { commit, .. } => {
                format!("give the commit that the worktree is at, or check out {}", commit.short())
            }
            Refusal::WrongBranch { task } => format!("git switch task/{task}, in the task's worktree"),
            Refusal::DirtyWorktree { .. } => "commit it, or ignore what does not belong to the task".into(),
            Refusal::ReviewTouched { .. } => {
                "a review changes nothing; the tree is put back, judge it again".into()
            }
            Refusal::NothingToReview { task, .. } => {
                format!("commit the work on task/{task}, then submit that commit")
            }
            Refusal::BaseNotMerged { base, .. } => {
                format!("git merge {}, resolve, commit, submit", base.short())
            }
            Refusal::PriorFeedbackMissing { .. } => {
                "append: Prior Feedback Status:\\n- RESOLVED: ...\\n- STILL PRESENT: ...\\n- PARTIAL: ..."
                    .into()
            }
            Refusal::GatesMissing { task, missing } => {
                format!("liza edit-task {task} {}", gate_options(missing))
            }
            Refusal::UnknownDependency { dependency, .. } => {
                format!("liza add-task --id {dependency} ... first")
            }
            Refusal::HypothesisExhausted { task, .. } => {
                format!(
                    "liza supersede-task {task} --by NEW --reason T --root-cause T, or liza abandon-task {task}"
                )
            }
            Refusal::AssessmentNeeded { task, .. } => {
                format!("liza unblock-task {task} --assessment \"...\"")
            }
            Refusal::NothingKept { task, what: "coder" } => {
                format!("liza unblock-task {task}, without --same-coder")
            }
            Refusal::NothingKept { task, .. } => format!("liza unblock-task {task}, without --keep-worktree"),
            Refusal::BadReplacement { replacement, .. } => {
                format!("liza add-task --id {replacement} --draft ... makes one")
            }
            Refusal::NotYourDuty { .. } => "system_ambiguity is for every role".into(),
            Refusal::BadDetails { kind, .. } => format!("liza anomaly {kind} --task TASK{}", detail_options(kind)),
            Refusal::AlreadyConverted { task, .. } => format!("liza show {task}"),
            Refusal::AgentLive { .. } => "wait until its lease ends, or take another number".into(),
            Refusal::PlannerLive { other } => format!("stop {other} first"),
            Refusal::GoalNotOpen { .. } => "liza goal new \"...\" states the next one".into(),
            Refusal::TasksOpen { .. } => "finish, supersede or abandon them first; liza status shows how each stands".into(),
            Refusal::SprintStatus { .. } | Refusal::SprintNotComplete { .. } => "liza sprint show".into(),
            Refusal::NothingToRelease { task } => format!("liza show {task}"),
            Refusal::SubmissionVoid { task, .. } => format!("the coder goes on: liza claim-task {task}"),
            Refusal::MergeBelongsTo { by, .. } => format!("LIZA_AGENT_ID={by} if you stand in for it"),
            Refusal::UnknownDiscovery { .. } => "liza status lists the open discoveries".into(),
            Refusal::NotLoaded { .. } => "please report it with the command that you typed".into(),
            Refusal::OwnWork { .. }
            | Refusal::NotApprovedCommit { .. }
            | Refusal::Missing { .. }
            | Refusal::BadText { .. }
            | Refusal::BadAgentStatus { .. }
            | Refusal::NothingToResolve
            | Refusal::NotArchivable { .. }
            | Refusal::NothingToDo { .. } => return None,
        })
    }

    /// The command that a task in this state most likely waits for, and what follows the task in it.
    fn next_step(&self) -> Option<(&'static str, &'static str)> {
        let (Refusal::WrongStatus { status, .. } | Refusal::NotClaimable { status, .. }) = self else {
            return None;
        };
        Some(match status {
            Status::Draft => ("finalize", ""),
            Status::Unclaimed | Status::Rejected | Status::IntegrationFailed => ("claim-task", "AGENT"),
            Status::Claimed => ("submit-for-review", "COMMIT"),
            Status::ReadyForReview => ("claim-review", "AGENT"),
            Status::Approved => ("wt-merge", ""),
            Status::Blocked => ("unblock-task", ""),
            Status::Merged | Status::Superseded | Status::Abandoned => ("show", ""),
        })
    }
}

/// The options that fill the gates of a task.
fn gate_options(missing: &[&str]) -> String {
    let option = |gate: &&str| match *gate {
        "spec_ref" => "--spec REF",
        "done_when" => "--done TEXT",
        _ => "--scope TEXT",
    };
    missing.iter().map(option).collect::<Vec<_>>().join(" ")
}

/// The details that a kind of anomaly needs, as options.
fn detail_options(kind: &str) -> String {
    let needed = kind.parse::<AnomalyType>().map(AnomalyType::required).unwrap_or_default();
    let option = |(name, wanted): &(&str, DetailType)| match wanted {
        DetailType::Text => format!(" --detail {name}=TEXT"),
        DetailType::Number => format!(" --detail {name}=N"),
        DetailType::Flag => format!(" --detail {name}=true|false"),
    };
    needed.iter().map(option).collect()
}
