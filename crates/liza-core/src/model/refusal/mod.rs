//! Every reason to refuse a request: the error, the right form, and the next command.
//!
//! Codes are a contract with programs; messages and hints are for people and agents, who take them literally.
//! Each row of the table is one reason; the enum, its messages and hints, and the rows of
//! `docs/reference/error-codes.md` follow.

use std::fmt;

use liza_ids::{AgentId, DirectEditId, DiscoveryId, Generation, Revision, Role, Sha, TaskId, Timestamp};

use crate::model::agent::AgentStatus;
use crate::model::goal::GoalStatus;
use crate::model::notes::AnomalyType;
use crate::model::record::Status;
use crate::model::sprint::SprintStatus;
use crate::model::stop_file::StopFile;
use crate::text::count;

mod phrases;

use phrases::{are, detail_options, gate_options, has_work, held_until, names, next_step, short_list};

/// The consequence of a refusal for the caller; the program turns it into an exit code in one place.
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

/// A reason to refuse without its data, for the page of error codes.
#[derive(Debug, Clone, Copy)]
pub struct RefusalRow {
    /// The stable word by which programs know it.
    pub code: &'static str,
    pub class: RefusalClass,
    /// Its meaning; each line begins with a space.
    pub means: &'static [&'static str],
    /// Its hints; data in braces.
    pub hints: &'static [&'static str],
}

/// Declares the reasons. A row: its meaning, its data, its code and class, its message, its hints.
macro_rules! refusals {
    ($(
        $(#[doc = $means:literal])+
        $name:ident $({ $($field:ident: $type:ty),+ })? = $code:literal $class:ident
            says($($says:tt)+)
            $(when($condition:expr) hint($special:literal $($special_data:tt)*))?
            $(hint($hint:literal $($data:tt)*))?;
    )+) => {
        /// Every reason to refuse.
        #[allow(missing_docs, reason = "each message shows what its fields are")]
        #[derive(Debug, Clone, PartialEq)]
        pub enum Refusal {
            $($(#[doc = $means])+ $name $({ $($field: $type),+ })?,)+
        }

        impl Refusal {
            /// The reasons without their data.
            pub const ROWS: &'static [RefusalRow] = &[$(RefusalRow {
                code: $code,
                class: RefusalClass::$class,
                means: &[$($means),+],
                hints: &[$($special,)? $($hint)?],
            },)+];

            pub fn code(&self) -> &'static str {
                match self { $(Self::$name { .. } => $code,)+ }
            }

            pub fn class(&self) -> RefusalClass {
                match self { $(Self::$name { .. } => RefusalClass::$class,)+ }
            }

            /// The next thing to do, if there is one.
            #[allow(unused_variables, reason = "a hint may need none of the data")]
            pub fn hint(&self) -> Option<String> {
                match self {
                    $(Self::$name $({ $($field),+ })? => {
                        $(if $condition { return Some(format!($special $($special_data)*)); })?
                        None$(.or(Some(format!($hint $($data)*))))?
                    })+
                }
            }
        }

        impl fmt::Display for Refusal {
            #[allow(unused_variables, reason = "a message may not show all data")]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$name $({ $($field),+ })? => write!(f, $($says)+),)+ }
            }
        }
    };
}

impl std::error::Error for Refusal {}

refusals! {
    /// that command is for another role
    NotPermitted { actor: String, verb: &'static str, allowed: String } = "not_permitted" Refused
        says("{actor} may not {verb}: that is for {allowed}")
        when(actor == "human") hint("LIZA_AGENT_ID=AGENT liza ... to act for that agent; liza status lists the agents")
        hint("to ask for it: liza mark-blocked or liza discover");
    /// an agent edited a field that has a command
    EditNotPermitted { actor: String, place: String } = "not_permitted" Refused
        says("{actor} may not edit {place} directly")
        hint("use the command for it (liza help --all lists them). Agents may only edit fields that liza does not know, and the notes of their own task");
    /// the caller acted for another agent
    NotYourAgent { actor: String, agent: AgentId } = "not_your_agent" Refused
        says("{actor} may not act for {agent}")
        hint("LIZA_AGENT_ID={agent} acts for it");
    /// the agent was registered again; this session is an old one
    Fenced { agent: AgentId, yours: Generation, current: Generation } = "fenced" Stop
        says("{agent} has registered again (generation {current}); this session belongs to generation {yours}")
        hint("end your turn now (with exit code 42 if you can choose one); the supervisor starts a new session if there is more to do");
    /// the task, its replacements or the planner had all sessions that the settings allow
    SessionBudget { what: String, used: u32 } = "session_budget" Refused
        says("the session budget of {what} is used up ({} without a merge or a decision of the human)", count(*used as usize, "session"))
        hint("only the human can continue: liza answer TASK \"...\", or liza note \"...\" for the planner");
    /// the deadline of a sprint is no time in the future
    PastDeadline { deadline: Timestamp } = "past_deadline" Refused
        says("the deadline {deadline} has passed")
        hint("liza sprint deadline +8h; to stop all agents now: liza checkpoint");
    /// a budget of `config.budget` is used up, so the checkpoint cannot end
    BudgetUsedUp { spent: String, setting: &'static str } = "budget_used_up" Refused
        says("a budget is used up: {spent}")
        hint("to raise it: liza config {setting} AMOUNT; then: liza resume");
    /// the task was blocked too often for the planner to unblock it again
    BlockLimit { task: TaskId, blocks: usize } = "block_limit" Refused
        says("{task} has been blocked {blocks} times since the human last unblocked it")
        hint("liza supersede-task or liza abandon-task; the human can continue: liza answer {task} \"...\"");
    /// the task replaces others too often in a row
    RescopeLimit { task: TaskId, depth: u32 } = "rescope_limit" Refused
        says("{task} is the last of {depth} replacements in a row")
        hint("liza abandon-task {task} --reason \"...\", or leave it BLOCKED for the human");
    /// the task was unblocked for another coder, and one is registered
    LeftToAnother { task: TaskId, coder: AgentId } = "left_to_another" Refused
        says("{task} was unblocked for a coder other than {coder}, and one is registered")
        hint("liza show {task}; another coder takes it");
    /// the verdict is the template of the prompt
    UnfilledTemplate { what: &'static str, placeholder: &'static str } = "unfilled_template" Refused
        says("{what} is an unfilled template: it still says {placeholder:?}")
        hint("replace every bracket with what you found");
    /// exactly this commit was rejected
    AlreadyRejected { task: TaskId, commit: Sha, by: String } = "already_rejected" Refused
        says("{commit} of {task} was rejected by {by}; submit a commit that answers the rejection")
        hint("liza show {task} has the rejection");
    /// the merge, or the validation, of exactly this commit failed
    AlreadyFailed { task: TaskId, commit: Sha, why: String } = "already_failed" Refused
        says("{commit} of {task} has failed ({why}); submit a commit that corrects it")
        hint("liza show {task} has the reason; if nothing in your change is wrong: liza mark-blocked {task} --reason \"...\" --question \"...\"");
    /// the commands that validate the task fail on exactly this commit; it goes back to its coder
    ValidationFailed { task: TaskId, commit: Sha, what: String } = "validation_failed" Refused
        says("{commit} of {task} does not pass its validation ({what}); it is REJECTED")
        hint("liza show {task} has the last lines");
    /// a command that validates the task fails, and its change is not blamed for it; the review waits
    ValidationHeld { task: TaskId, what: String } = "validation_held" Refused
        says("the review of {task} waits for the human: {what}; its change is not blamed for it")
        hint("correct the command (liza config validation) or the branch (liza sync); to try again: liza retry-validation {task}");
    /// more commands than a statement can hold
    TooManyCommands { task: TaskId, number: usize } = "too_many_commands" Refused
        says("{task} has {number} commands that validate it, and a statement holds at most 30")
        hint("put several into one script: liza config validation '[\"sh scripts/check.sh\"]'");
    /// commit, commands or protected files have changed since the validation
    ValidationStale { task: TaskId } = "validation_stale" Refused
        says("the validation of {task} was of another commit, of other commands or of another gate")
        hint("the next claim of the review runs the commands again");
    /// an approval needs a validation of exactly this commit that has passed
    NoReceipt { task: TaskId, commit: Sha } = "no_receipt" Refused
        says("{commit} of {task} has not passed its validation")
        hint("the next claim of the review runs its commands: liza claim-review {task}");
    /// the merge waits, since the integration test fails without the task too
    MergeHeld { task: TaskId, what: String } = "merge_held" Refused
        says("{task} waits for the human: the integration test fails even without its change ({what})")
        hint("correct the test on your branch, then: liza sync; or test again: liza resume");
    /// the task changes protected files, such as the integration test; it stays APPROVED and waits for the human
    GateChanged { task: TaskId } = "gate_changed" Refused
        says("{task} waits for the human: it changes what judges it")
        hint("liza show {task} says what changes; you accept it: liza accept-gate {task}; or send it back: liza submit-verdict {task} REJECTED \"...\"");
    /// `liza accept-gate`, but the merge fails under the protected files of the integration branch
    OldGateFails { task: TaskId, what: String } = "old_gate_fails" Refused
        says("{task} fails under the gate of the integration branch ({what})")
        hint("liza show {task} has its last lines; if the old gate is wrong: liza accept-gate {task} --old-fails");
    /// `liza accept-gate`, but the task does not wait for it
    NoGateChange { task: TaskId } = "no_gate_change" Refused
        says("{task} does not wait for your word on the gate")
        hint("liza show {task}");
    /// the task is APPROVED, but no other agent and no human approved exactly this commit
    NoApproval { task: TaskId, commit: Sha } = "no_approval" Refused
        says("{task} is APPROVED, but its history has no approval of {commit} by another agent or the human")
        hint("the human decides: liza submit-verdict {task} APPROVED, or REJECTED \"...\"");
    /// the integration branch has commits that Liza did not merge
    ForeignCommits { recorded: Sha, found: Sha } = "foreign_commits" Refused
        says("the integration branch is at {found}, not at {recorded}, where liza left it")
        hint("git log {recorded}..{found} shows them; liza accept-integration keeps them", recorded = recorded.short(), found = found.short());
    /// `.git/config` names programs, or ways to sign, that you have not accepted
    GitProgramsChanged { keys: Vec<String> } = "git_programs_changed" Refused
        says("merges wait: the project's git configuration is not as you accepted it ({})", keys.join(", "))
        hint("liza config --trust shows the changes and accepts them; git config --edit takes them out");
    /// the task is open on the blackboard, but its merge is on the integration branch: the database
    /// may have gone back to an older copy
    MergeNotRecorded { task: TaskId, merge: Sha } = "merge_not_recorded" Refused
        says("the merge of {task}, {}, is on the integration branch and not on the blackboard", merge.short())
        hint("the blackboard may have gone back to an older copy; to record the merge: liza accept-integration");
    /// no task was ever planned
    NothingPlanned = "nothing_planned" Refused
        says("no task was ever planned, so only the human can complete the goal")
        hint("liza goal complete (human), or plan tasks: liza add-task --help");
    /// the agent is not on the blackboard
    NotRegistered { agent: AgentId } = "not_registered" Refused
        says("{agent} is not registered")
        hint("liza register {agent}");
    /// the lease has expired
    LeaseLost { agent: AgentId, expired: Timestamp } = "lease_lost" Stop
        says("the lease of {agent} expired at {expired}")
        hint("end your turn now (with exit code 42 if you can choose one); the supervisor starts a new session if there is more to do");
    /// another agent has the task now
    TaskLost { task: TaskId, agent: AgentId, now_with: String } = "task_lost" Stop
        says("{agent} no longer has {task}: {now_with}")
        hint("end your turn now (with exit code 42 if you can choose one); the supervisor starts a new session if there is more to do");
    /// PAUSE, CHECKPOINT or ABORT is present
    Halted { file: StopFile, verb: &'static str } = "halted" Stop
        says(".liza/{} is present; {verb} is disabled", file.name())
        when(*file == StopFile::Abort) hint("liza goal new \"...\" starts a new goal; an agent stops now with exit code 42")
        hint("liza resume (human); an agent finishes what it has and stops with exit code 42");
    /// the goal was aborted
    GoalAborted = "goal_aborted" Stop
        says("the goal was aborted: no new work starts")
        hint("liza goal new \"...\" starts a new goal; an agent stops now with exit code 42");
    /// the target has changed since `--if-revision`
    StaleRevision { what: String, expected: Revision, current: Revision } = "stale_revision" Inconsistent
        says("{what} has changed since revision {expected}: it is at revision {current}")
        hint("read it again, then retry with --if-revision {current}");
    /// another agent has the name now: it has registered since `--if-generation`
    StaleGeneration { agent: AgentId, expected: Generation, current: Generation } = "stale_generation" Inconsistent
        says("{agent} has registered again: it is generation {current}, not {expected}")
        hint("liza status shows it; to stop it: liza deregister {agent} --if-generation {current}");
    /// the task does not exist
    UnknownTask { task: TaskId } = "unknown_task" Refused
        says("there is no task {task}")
        hint("liza status lists the tasks");
    /// the task is in the archive
    Archived { task: TaskId } = "archived" Refused
        says("{task} is archived")
        hint("to print its last record: liza show {task}");
    /// the name is taken
    TaskExists { task: TaskId } = "task_exists" Refused
        says("there is already a task {task}")
        hint("liza show {task}, or choose another ID");
    /// the task's record lacks what its status needs
    BrokenTask { task: TaskId, faults: Vec<String> } = "broken_task" Inconsistent
        says("the record of {task} is broken: {}", faults.join("; "))
        hint("liza edit {task} to fix it, liza abandon-task {task} --reason \"...\" to drop it; liza validate shows everything");
    /// one section cannot be read
    BrokenSection { section: &'static str, fault: String } = "broken_section" Inconsistent
        says("the section {section} is broken: {fault}")
        hint("liza edit to fix it; liza validate shows everything");
    /// a bug in liza
    NotLoaded { what: String } = "not_loaded" Inconsistent
        says("{what} was not loaded: this is a bug in liza")
        hint("please report it, with the command that you ran");
    /// its status does not allow that
    WrongStatus { task: TaskId, status: Status, verb: &'static str, needed: String, possible: &'static str } = "wrong_status" Refused
        says("{task} is {status}; {verb} needs {needed}. Possible now: {possible}")
        when(*verb == "abandon-task" && has_work(*status)) hint("to drop it, a person blocks it first: liza mark-blocked {task}, then: liza abandon-task {task} --reason TEXT")
        hint("liza {command} {task}{argument}", command = next_step(*status).0, argument = next_step(*status).1);
    /// its status does not allow a claim
    NotClaimable { task: TaskId, status: Status, possible: &'static str } = "not_claimable" Refused
        says("{task} is {status} and cannot be claimed. Possible now: {possible}")
        hint("liza {command} {task}{argument}", command = next_step(*status).0, argument = next_step(*status).1);
    /// other tasks must be MERGED first
    DependenciesUnmet { task: TaskId, unmet: Vec<String> } = "dependencies_unmet" Refused
        says("{task} waits for {}", unmet.join(", "))
        hint("they must be MERGED first; liza graph shows the order");
    /// another agent is claiming it
    Reserved { task: TaskId, by: AgentId, until: Timestamp } = "reserved" Refused
        says("{by} is claiming {task} (until {until})")
        hint("take another task, or wait 1 to 5 s and try again");
    /// the first step of the claim is missing
    NoReservation { task: TaskId, coder: AgentId } = "no_reservation" Refused
        says("{coder} has no reservation on {task}")
        hint("liza claim-task {task} {coder}");
    /// another agent has it
    ClaimedByOther { task: TaskId, by: AgentId, until: Timestamp } = "claimed_by_other" Refused
        says("{by} has {task} (lease until {until})")
        hint("take another task, or wait 1 to 5 s and try again");
    /// it goes back to its own coder, who is free or has to correct it
    ReservedForCoder { task: TaskId, coder: AgentId } = "reserved_for_coder" Refused
        says("{task} goes back to {coder}, which is registered")
        hint("liza claim-task {task} {coder}");
    /// that coder has failed at it
    FailedBefore { task: TaskId, coder: AgentId } = "failed_before" Refused
        says("{coder} has failed at {task}; another coder has to take it")
        hint("let another coder take it, or (planner) liza unblock-task {task} --same-coder");
    /// the coder has another task
    AgentBusy { agent: AgentId, task: TaskId } = "agent_busy" Refused
        says("{agent} already has {task}")
        hint("finish {task} first: submit, block or hand off");
    /// the agent has another role
    WrongRole { agent: AgentId, wanted: Role } = "wrong_role" Refused
        says("{agent} is a {}, not a {}", agent.role(), wanted)
        hint("use an agent such as {role}-1", role = wanted.id_prefix());
    /// too many attempts; it was blocked
    IterationLimit { task: TaskId, iterations: u32 } = "iteration_limit" Refused
        says("{task} was blocked after {} without approval", count(*iterations as usize, "iteration"))
        hint("the planner decides: liza supersede-task {task}, unblock-task or abandon-task");
    /// its owner is working
    LeaseLive { task: TaskId, by: AgentId, until: Timestamp } = "lease_live" Refused
        says("the lease of {by} on {task} is live until {until}")
        hint("liza release-claim {task} --force takes it anyway");
    /// there is no such claim
    NothingToRelease { task: TaskId } = "nothing_to_release" Refused
        says("{task} has no such claim")
        hint("liza show {task}");
    /// it is another agent's task
    NotYourTask { task: TaskId, agent: AgentId, with: String } = "not_your_task" Refused
        says("{agent} does not have {task}: {with}")
        hint("liza show {task}");
    /// it is another agent's review
    NotYourReview { task: TaskId, agent: AgentId, with: String } = "not_your_review" Refused
        says("{agent} does not have the review of {task}: {with}")
        hint("liza show {task}");
    /// no agent reviews its own code: another code reviewer does
    OwnWork { task: TaskId, agent: AgentId } = "own_work" Refused
        says("{agent} wrote {task} and cannot review it");
    /// of two approvals the second is another code reviewer's, or the human's
    HasApproved { task: TaskId, agent: AgentId } = "has_approved" Refused
        says("{agent} has approved {task} already, and one agent's word counts once")
        hint("another code reviewer claims it; or the human decides: liza submit-verdict {task} APPROVED");
    /// another agent reviews it
    ReviewClaimed { task: TaskId, by: AgentId, until: Timestamp } = "review_claimed" Refused
        says("{by} is reviewing {task} (lease until {until})")
        hint("take another task, or wait 1 to 5 s and try again");
    /// the agent belongs to another machine of the team
    OtherMachine { agent: AgentId, machine: String } = "other_machine" Refused
        says("{agent} is registered on {machine}, where its worktrees are")
        hint("send the command on that machine, or name an agent of this one: liza status");
    /// the folder is missing
    WorktreeMissing { task: TaskId } = "worktree_missing" Inconsistent
        says("the worktree of {task} is missing")
        hint("liza recover");
    /// the worktree, or the checkout of the review, is at another commit
    HeadMoved { task: TaskId, head: Sha, commit: Sha } = "head_moved" Refused
        says("the worktree of {task} is at {head}, not at {commit}")
        hint("a coder submits the commit that the worktree is at; a code reviewer reviews {commit} again", commit = commit.short());
    /// `config.setup` failed three times in the checkout of its review, and succeeds on the integration
    /// branch; it went back to its coder
    SubmissionUnusable { task: TaskId, commit: Sha, why: String } = "submission_unusable" Refused
        says("{task} was sent back: {why}")
        hint("the coder continues: liza claim-task {task} CODER");
    /// the worktree is not on `task/TASK`
    WrongBranch { task: TaskId } = "wrong_branch" Refused
        says("the worktree of {task} is not on its branch task/{task}")
        hint("git switch task/{task}, in the task's worktree");
    /// there are uncommitted changes
    DirtyWorktree { task: TaskId, paths: Vec<String> } = "dirty_worktree" Refused
        says("the worktree of {task} is not clean: {}", short_list(paths))
        hint("commit it, or add to .gitignore what does not belong to the task");
    /// the commit contains `.liza`, in any folder, or `.worktrees` at its top
    ReservedPath { task: TaskId, commit: Sha, path: String } = "reserved_path" Refused
        says("{commit} of {task} contains {path}, which is reserved for Liza")
        hint("git rm -r --cached {path}, commit, and submit that commit");
    /// the work of a session changes files from which agent programs take settings, hooks or plugins, such as `.claude` or `.mcp.json`
    ClientSettingsChanged { task: TaskId, path: String } = "client_settings_changed" Refused
        says("{task} changes {path}, from which agent programs take settings or hooks; only people change that")
        hint("leave it as it is on the integration branch; if the task needs it: liza mark-blocked {task} --reason \"...\" --question \"...\" (the human can set client_settings: allow)");
    /// the work of a session adds or changes a symbolic link that leads out of the repository
    LinkOutside { task: TaskId, path: String } = "link_outside" Refused
        says("{task} changes {path}, a link that leads out of the repository; only people make such links")
        hint("use a relative link that stays in the repository, or a copy; if the task needs it: liza mark-blocked {task} --reason \"...\" --question \"...\" (the human can set client_settings: allow)");
    /// a submodule is at a commit that exists only in the worktree
    UnpublishedSubmodule { task: TaskId, path: String, commit: Sha } = "unpublished_submodule" Refused
        says("{path} of {task} is at {commit}, which is on no remote of that submodule and would be lost")
        hint("use a published commit in {path}, or block the task: a person has to publish it");
    /// a commit names an agent that never had the task
    ForeignAuthor { task: TaskId, commit: Sha, agent: AgentId } = "foreign_author" Refused
        says("{commit} of {task} is the work of {agent}, which never had {task}")
        hint("leave {commit} out of the work; if {task} needs it: liza mark-blocked {task} --reason \"...\" --question \"...\"", commit = commit.short());
    /// files changed during the review
    ReviewTouched { task: TaskId, paths: Vec<String> } = "review_touched" Refused
        says("tracked files of {task} changed during the review: {}", short_list(paths))
        hint("a review must not change files; its checkout was created again, so review it again");
    /// the integration branch moved during the review, and the merge would now change something else; the
    /// third approval counts
    ChangeMoved { task: TaskId, head: Sha, what: Vec<String> } = "change_moved" Refused
        says("the integration branch moved to {}, and the merge of {task} would now change something else: {}", head.short(), short_list(what))
        hint("read it again: liza diff {task}; then give your verdict again");
    /// the commit is the one that the task started from
    NothingToReview { task: TaskId, commit: Sha } = "nothing_to_review" Refused
        says("{commit} is the commit that {task} started from: there is nothing to review")
        hint("commit the work on task/{task}, then submit that commit");
    /// the integration head has to be merged in first
    BaseNotMerged { task: TaskId, commit: Sha, base: Sha } = "base_not_merged" Refused
        says("{commit} does not contain the integration head {base}, which {task} has to merge in")
        hint("git merge {base}, resolve, commit, submit", base = base.short());
    /// a required text is blank: provide it
    Missing { what: &'static str } = "missing" Refused
        says("{what} is missing");
    /// a text has the wrong form, is too long or is not text; the message shows what is expected
    BadText { what: &'static str, problem: String } = "bad_text" Refused
        says("{what}: {problem}");
    /// a specification is a file inside the project, and none of Liza's or git's
    BadSpec { spec: String, folder: String } = "bad_spec" Refused
        says("{spec} lies in {folder}, which belongs to Liza or git: it is no specification")
        hint("name a file of the project, such as specs/vision.md");
    /// a second rejection must state what became of the first one's points
    PriorFeedbackMissing { task: TaskId } = "prior_feedback_missing" Refused
        says("{task} was rejected before: the reason needs a section \"{PRIOR_FEEDBACK}:\" with lines that begin with RESOLVED, STILL PRESENT or PARTIAL")
        hint("append: Prior Feedback Status:\\n- RESOLVED: ...\\n- STILL PRESENT: ...\\n- PARTIAL: ...");
    /// the agent that approved it is alive and merges it
    MergeBelongsTo { task: TaskId, by: AgentId } = "merge_belongs_to" Refused
        says("{by} approved {task} and is registered: its supervisor merges it")
        hint("LIZA_AGENT_ID={agent} to act for it", agent = by);
    /// another commit was approved: merge that one
    NotApprovedCommit { task: TaskId, approved: Sha, commit: Sha } = "not_approved_commit" Refused
        says("{task} was approved at {approved}, not at {commit}");
    /// it lacks `spec_ref`, `done_when` or `scope`
    GatesMissing { task: TaskId, missing: Vec<&'static str> } = "gates_missing" Refused
        says("{task} is not ready: {} missing", missing.join(", "))
        hint("liza edit-task {task} {options}", options = gate_options(missing));
    /// it depends on a task that does not exist
    UnknownDependency { task: TaskId, dependency: TaskId } = "unknown_dependency" Refused
        says("{task} depends on {dependency}, which does not exist")
        hint("liza add-task --id {dependency} ... first");
    /// two coders failed at it
    HypothesisExhausted { task: TaskId, failed_by: Vec<AgentId> } = "hypothesis_exhausted" Refused
        says("two coders failed at {task} ({}): its framing is presumed wrong", names(failed_by))
        hint("liza supersede-task {task} --by NEW --reason T --root-cause T, or liza abandon-task {task} --reason T");
    /// unblocking it needs the planner's assessment
    AssessmentNeeded { task: TaskId, cause: String } = "assessment_needed" Refused
        says("{task} is blocked by {cause}: unblocking it needs an assessment")
        hint("liza unblock-task {task} --assessment \"...\"");
    /// there is no coder or worktree to continue with
    NothingKept { task: TaskId, what: &'static str } = "nothing_kept" Refused
        says("{task} has no {what} to keep")
        when(*what == "coder") hint("liza unblock-task {task}, without --same-coder")
        hint("liza unblock-task {task}, without --keep-worktree");
    /// that task cannot replace it
    BadReplacement { task: TaskId, replacement: TaskId, why: String } = "bad_replacement" Refused
        says("{replacement} cannot replace {task}: {why}")
        hint("liza add-task --id {replacement} --draft ... creates it");
    /// another role logs that anomaly
    NotYourDuty { role: Role, kind: AnomalyType, duty: String } = "not_your_duty" Refused
        says("{role} does not log {kind}: that is for {duty}")
        hint("every role may log system_ambiguity");
    /// an anomaly lacks a detail or has one of the wrong type
    BadDetails { kind: AnomalyType, faults: Vec<String> } = "bad_details" Refused
        says("{}", faults.join("; "))
        hint("liza anomaly {kind} --task TASK{details}", details = detail_options(*kind));
    /// the discovery does not exist
    UnknownDiscovery { discovery: DiscoveryId } = "unknown_discovery" Refused
        says("there is no discovery {discovery}")
        hint("liza status lists the open discoveries");
    /// there is no such direct edit to dismiss
    UnknownEdit { edit: DirectEditId } = "unknown_edit" Refused
        says("there is no direct edit {edit} to dismiss")
        hint("liza status lists the direct edits");
    /// it is already a task
    AlreadyConverted { discovery: DiscoveryId, task: TaskId } = "already_converted" Refused
        says("{discovery} has already become {task}")
        hint("liza show {task}");
    /// the ID is in use
    AgentLive { agent: AgentId, until: Timestamp } = "agent_live" Refused
        says("{agent} is registered with a lease until {until}")
        hint("wait until its lease expires, or use another number");
    /// a planner is already running
    PlannerLive { other: AgentId } = "planner_live" Refused
        says("{other} is the project's planner; there can be only one at a time")
        hint("liza run and liza agent coder work with that planner; to end it first: liza deregister {planner}", planner = other);
    /// the role does not have that status
    BadAgentStatus { role: Role, status: AgentStatus } = "bad_agent_status" Refused
        says("a {role} cannot be {status}");
    /// the goal is COMPLETED or ABORTED
    GoalNotOpen { status: GoalStatus } = "goal_not_open" Refused
        says("the goal is {status}")
        hint("liza goal new \"...\" starts the next one");
    /// there are open tasks
    TasksOpen { count: usize, tasks: Vec<String> } = "tasks_open" Refused
        says("{} still open: {}", are(*count), short_list(tasks))
        hint("let the team finish them (liza status has the command that starts it); or end the goal without them: liza abort, then liza goal new \"...\"");
    /// the agent program is held for the team: not logged in, a limit, or it fails on every task
    ClientHeld { client: String, until: Option<Timestamp>, why: String } = "client_held" Refused
        says("{client} is held {}: {why}", held_until(*until))
        hint("liza status shows why; liza resume tries it again now");
    /// the sprint has another status
    SprintStatus { status: SprintStatus, verb: &'static str, needed: &'static str } = "sprint_status" Refused
        says("the sprint is {status}; {verb} needs {needed}")
        hint("liza sprint show");
    /// the sprint has open tasks, or none at all
    SprintNotComplete { why: String } = "sprint_not_complete" Refused
        says("the sprint is not complete: {why}")
        hint("liza sprint show");
    /// the circuit breaker has not fired
    NothingToResolve = "nothing_to_resolve" Refused
        says("the circuit breaker has not fired: there is nothing to resolve");
    /// it is open, or part of the current sprint
    NotArchivable { task: TaskId, why: String } = "not_archivable" Refused
        says("{task} cannot be archived: {why}");
    /// there is nothing to do
    NothingToDo { what: &'static str } = "nothing_to_do" Refused
        says("nothing to {what}");
}
