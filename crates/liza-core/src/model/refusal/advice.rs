//! What goes with each refusal: a stable code for programs, a class for the exit code, the next command to type.

use super::{Refusal, RefusalClass, RefusalKind};
use crate::model::notes::{AnomalyType, DetailType};
use crate::model::record::Status;
use crate::model::stop_file::StopFile;

impl RefusalKind {
    /// The stable word by which programs know it.
    pub fn code(self) -> &'static str {
        self.into()
    }

    /// What it means for the caller.
    pub fn class(self) -> RefusalClass {
        const STOP: [RefusalKind; 5] = [
            RefusalKind::Fenced,
            RefusalKind::LeaseLost,
            RefusalKind::TaskLost,
            RefusalKind::Halted,
            RefusalKind::GoalAborted,
        ];
        const INCONSISTENT: [RefusalKind; 6] = [
            RefusalKind::StaleRevision,
            RefusalKind::StaleGeneration,
            RefusalKind::BrokenTask,
            RefusalKind::BrokenSection,
            RefusalKind::NotLoaded,
            RefusalKind::WorktreeMissing,
        ];
        match self {
            kind if STOP.contains(&kind) => RefusalClass::Stop,
            kind if INCONSISTENT.contains(&kind) => RefusalClass::Inconsistent,
            _ => RefusalClass::Refused,
        }
    }
}

impl Refusal {
    /// The stable word by which programs know it.
    pub fn code(&self) -> &'static str {
        RefusalKind::from(self).code()
    }

    /// What it means for the caller.
    pub fn class(&self) -> RefusalClass {
        RefusalKind::from(self).class()
    }

    /// What to do next, if there is something.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Refusal::NotPermitted { actor, .. } if actor == "human" => {
                "LIZA_AGENT_ID=AGENT liza ... to act for that agent; liza status lists the agents"
                    .into()
            }
            Refusal::NotPermitted { .. } => {
                "to ask for it: liza mark-blocked or liza discover".into()
            }
            Refusal::EditNotPermitted { .. } => {
                "use the command for it (liza help --all lists them). Agents may only edit fields that liza does not know, and the \
                 notes of their own task"
                    .into()
            }
            Refusal::NotYourAgent { agent, .. } => format!("LIZA_AGENT_ID={agent} acts for it"),
            Refusal::Fenced { .. } | Refusal::LeaseLost { .. } | Refusal::TaskLost { .. } => {
                "end your turn now (with exit code 42 if you can choose one); the supervisor starts a new session if there is more to do"
                    .into()
            }
            Refusal::NotRegistered { agent } => format!("liza register {agent}"),
            Refusal::Halted { file: StopFile::Abort, .. } | Refusal::GoalAborted => {
                "liza goal new \"...\" starts a new goal; an agent stops now with exit code 42".into()
            }
            Refusal::Halted { .. } => {
                "liza resume (human); an agent finishes what it has and stops with exit code 42".into()
            }
            Refusal::StaleRevision { current, .. } => {
                format!("read it again, then retry with --if-revision {current}")
            }
            Refusal::StaleGeneration { agent, current, .. } => {
                format!("liza status shows it; to stop it: liza deregister {agent} --if-generation {current}")
            }
            Refusal::SessionBudget { .. } => {
                "only the human can continue: liza answer TASK \"...\", or liza note \"...\" for the planner".into()
            }
            Refusal::BlockLimit { task, .. } => {
                format!("liza supersede-task or liza abandon-task; the human can continue: liza answer {task} \"...\"")
            }
            Refusal::RescopeLimit { task, .. } => {
                format!("liza abandon-task {task} --reason \"...\", or leave it BLOCKED for the human")
            }
            Refusal::LeftToAnother { task, .. } => format!("liza show {task}; another coder takes it"),
            Refusal::UnfilledTemplate { .. } => "replace every bracket with what you found".into(),
            Refusal::AlreadyRejected { task, .. } => format!("liza show {task} has the rejection"),
            Refusal::AlreadyFailed { task, .. } => format!(
                "liza show {task} has the reason; if nothing in your change is wrong: liza mark-blocked {task} --reason \"...\" --question \"...\""
            ),
            Refusal::MergeHeld { .. } => {
                "correct the test on your branch, then: liza sync; or test again: liza resume".into()
            }
            Refusal::GateChanged { task } => format!(
                "liza show {task} says what changes; you accept it: liza accept-gate {task}; or send it back: liza \
                 submit-verdict {task} REJECTED \"...\""
            ),
            Refusal::OldGateFails { task, .. } => format!(
                "liza show {task} has its last lines; if the old gate is wrong: liza accept-gate {task} --old-fails"
            ),
            Refusal::NoGateChange { task } => format!("liza show {task}"),
            Refusal::NoApproval { task, .. } => {
                format!("the human decides: liza submit-verdict {task} APPROVED, or REJECTED \"...\"")
            }
            Refusal::ForeignCommits { recorded, found } => format!(
                "git log {}..{} shows them; liza accept-integration keeps them",
                recorded.short(),
                found.short()
            ),
            Refusal::GitProgramsChanged { .. } => {
                "liza config --trust shows the changes and accepts them; git config --edit takes them out".into()
            }
            Refusal::MergeNotRecorded { .. } => {
                "the blackboard may have gone back to an older copy; to record the merge: liza accept-integration".into()
            }
            Refusal::BudgetUsedUp { setting, .. } => {
                format!("to raise it: liza config {setting} AMOUNT; then: liza resume")
            }
            Refusal::ClientHeld { .. } => "liza status shows why; liza resume tries it again now".into(),
            Refusal::NothingPlanned => "liza goal complete (human), or plan tasks: liza add-task --help".into(),
            Refusal::UnknownTask { .. } => "liza status lists the tasks".into(),
            Refusal::Archived { task } => format!("to print its last record: liza show {task}"),
            Refusal::TaskExists { task } => format!("liza show {task}, or choose another ID"),
            Refusal::BrokenTask { task, .. } => format!(
                "liza edit {task} to fix it, liza abandon-task {task} --reason \"...\" to drop it; liza validate shows everything"
            ),
            Refusal::BrokenSection { .. } => "liza edit to fix it; liza validate shows everything".into(),
            Refusal::WrongStatus {
                task,
                verb: "abandon-task",
                status: Status::Claimed | Status::ReadyForReview | Status::Approved,
                ..
            } => format!(
                "to drop it, a person blocks it first: liza mark-blocked {task}, then: liza abandon-task {task} --reason TEXT"
            ),
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
                format!("let another coder take it, or (planner) liza unblock-task {task} --same-coder")
            }
            Refusal::AgentBusy { task, .. } => format!("finish {task} first: submit, block or hand off"),
            Refusal::WrongRole { wanted, .. } => format!("use an agent such as {}-1", wanted.id_prefix()),
            Refusal::IterationLimit { task, .. } => {
                format!("the planner decides: liza supersede-task {task}, unblock-task or abandon-task")
            }
            Refusal::LeaseLive { task, .. } => {
                format!("liza release-claim {task} --force takes it anyway")
            }
            Refusal::NotYourTask { task, .. } | Refusal::NotYourReview { task, .. } => {
                format!("liza show {task}")
            }
            Refusal::WorktreeMissing { .. } => "liza recover".into(),
            Refusal::HeadMoved { commit, .. } => {
                format!(
                    "a coder submits the commit that the worktree is at; a code reviewer reviews {} again",
                    commit.short()
                )
            }
            Refusal::WrongBranch { task } => format!("git switch task/{task}, in the task's worktree"),
            Refusal::DirtyWorktree { .. } => "commit it, or add to .gitignore what does not belong to the task".into(),
            Refusal::UnpublishedSubmodule { path, .. } => {
                format!("use a published commit in {path}, or block the task: a person has to publish it")
            }
            Refusal::ForeignAuthor { task, commit, .. } => format!(
                "leave {} out of the work; if {task} needs it: liza mark-blocked {task} --reason \"...\" --question \"...\"",
                commit.short()
            ),
            Refusal::ClientSettingsChanged { task, .. } => format!(
                "leave it as it is on the integration branch; if the task needs it: liza mark-blocked {task} --reason \"...\" --question \"...\" (the human can set client_settings: allow)"
            ),
            Refusal::LinkOutside { task, .. } => format!(
                "use a relative link that stays in the repository, or a copy; if the task needs it: liza mark-blocked {task} --reason \"...\" --question \"...\" (the human can set client_settings: allow)"
            ),
            Refusal::ReservedPath { path, .. } => format!("git rm -r --cached {path}, commit, and submit that commit"),
            Refusal::ReviewTouched { .. } => {
                "a review must not change files; its checkout was created again, so review it again".into()
            }
            Refusal::ChangeMoved { task, .. } => {
                format!("read it again: liza diff {task}; then give your verdict again")
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
                    "liza supersede-task {task} --by NEW --reason T --root-cause T, or liza abandon-task {task} --reason T"
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
                format!("liza add-task --id {replacement} --draft ... creates it")
            }
            Refusal::NotYourDuty { .. } => "every role may log system_ambiguity".into(),
            Refusal::BadDetails { kind, .. } => format!("liza anomaly {kind} --task TASK{}", detail_options(*kind)),
            Refusal::AlreadyConverted { task, .. } => format!("liza show {task}"),
            Refusal::AgentLive { .. } => "wait until its lease expires, or use another number".into(),
            Refusal::PlannerLive { other } => format!(
                "liza run and liza agent coder work with that planner; to end it first: liza deregister {other}"
            ),
            Refusal::GoalNotOpen { .. } => "liza goal new \"...\" starts the next one".into(),
            Refusal::TasksOpen { .. } => {
                "let the team finish them: liza run; or end the goal without them: liza abort, then liza goal new \"...\"".into()
            },
            Refusal::SprintStatus { .. } | Refusal::SprintNotComplete { .. } => "liza sprint show".into(),
            Refusal::NothingToRelease { task } => format!("liza show {task}"),
            Refusal::SubmissionVoid { task, .. } | Refusal::SubmissionUnusable { task, .. } => format!("the coder continues: liza claim-task {task} CODER"),
            Refusal::MergeBelongsTo { by, .. } => format!("LIZA_AGENT_ID={by} to act for it"),
            Refusal::UnknownDiscovery { .. } => "liza status lists the open discoveries".into(),
            Refusal::UnknownEdit { .. } => "liza status lists the direct edits".into(),
            Refusal::NotLoaded { .. } => "please report it, with the command that you ran".into(),
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

    /// The command that a task in this state most likely needs next, and its argument after the task.
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
fn detail_options(kind: AnomalyType) -> String {
    let option = |(name, wanted): &(&str, DetailType)| match wanted {
        DetailType::Text => format!(" --detail {name}=TEXT"),
        DetailType::Number => format!(" --detail {name}=N"),
        DetailType::Flag => format!(" --detail {name}=true"),
    };
    kind.required().iter().map(option).collect()
}
