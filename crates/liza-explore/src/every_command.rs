//! One sample of every command, as its usual sender would send it at this moment: most are refused, and boards with
//! equal fingerprints refuse them for the same reason.

use liza_core::model::{
    Actor, AgentId, AgentStatus, AnomalyType, DirectEditId, DiscoveryId, Fields, Reservation, Revision,
    Seconds, Severity, Sha, StopFile, TaskId, Timestamp, Urgency, Usage, Validation, ValidationResult,
};
use liza_core::protocol::*;

use crate::canonical::plain;
use crate::world::{World, sha};

/// A task in a world, and the agents that the commands are about.
struct Moment<'w> {
    world: &'w World,
    task: TaskId,
    coder: AgentId,
    reviewer: AgentId,
    planner: AgentId,
}

/// Declares the samples; a command without one does not compile.
macro_rules! samples {
    ($moment:ident: $($name:ident by $actor:ident => $command:expr,)+) => {
        /// The name, the sender and the command, in a fixed order.
        fn samples($moment: &Moment<'_>) -> Vec<(&'static str, Actor, Command)> {
            vec![$((stringify!($name), $moment.$actor(), Command::from($command))),+]
        }

        const _: fn(&Command) = |command| match command { $(Command::$name(_) => {})+ };
    };
}

samples! { m:
    AbandonTask by planner => AbandonTask { task: m.task(), reason: text() },
    Abort by human => Abort,
    AbortGoal by human => AbortGoal,
    AcceptGate by human => AcceptGate { task: m.task(), old_fails: true },
    AcceptIntegration by human => AcceptIntegration { head: sha(9_999), detail: text(), merged: Vec::new() },
    AddTask by planner => AddTask { task: "new".parse().unwrap(), new: NewTask { description: text(), draft: true, ..NewTask::default() } },
    AdoptIntegration by reviewers_supervisor => AdoptIntegration { head: m.head() },
    Align by planner => Align { summary: text() },
    Answer by human => Answer { task: m.task(), text: text() },
    Archive by human => Archive { tasks: vec![m.task()] },
    BeginMerge by reviewers_supervisor => BeginMerge { task: m.task() },
    BeginReview by reviewers_supervisor => BeginReview { task: m.task(), reviewer: m.reviewer, gate: "gate".to_owned() },
    CancelReservation by coders_supervisor => CancelReservation { task: m.task(), coder: m.coder },
    Checkpoint by human => Checkpoint { cause: CheckpointCause::Human },
    ClaimReview by reviewers_supervisor => ClaimReview { task: m.task(), reviewer: m.reviewer, setup_failure: Some(text()), integration: Some(m.head()), gate: None },
    ClaimTask by coders_supervisor => ClaimTask { task: m.task(), coder: m.coder },
    ClearStaleReviewClaims by human => ClearStaleReviewClaims,
    CompleteGoal by human => CompleteGoal,
    CompleteSprint by human => CompleteSprint,
    ConvertDiscovery by planner => ConvertDiscovery { discovery: DiscoveryId(1), task: m.task() },
    CountExit by coders_supervisor => CountExit { task: m.task(), agent: m.coder, exit: UnproductiveExit::Crash, last_words: None, pause: Seconds(0) },
    CountPlannerExit by planners_supervisor => CountPlannerExit { agent: m.planner, last_words: None, woken_because: Some(text()), woken_for: vec![text()], pause: Seconds(0) },
    CreateWorktree by human => CreateWorktree { task: m.task(), fresh: true, head: m.head() },
    DeleteWorktree by human => DeleteWorktree { task: m.task() },
    Deregister by human => Deregister::any(m.coder),
    Discover by coder => Discover { task: Some(m.task()), description: text(), severity: Severity::Low, urgency: Urgency::Deferred, recommendation: None },
    DismissDiscovery by human => DismissDiscovery { discovery: DiscoveryId(1) },
    DismissEdit by human => DismissEdit { edit: DirectEditId(Revision(1)) },
    DropReservation by coders_supervisor => DropReservation { task: m.task(), reservation: m.reservation() },
    EditTask by human => EditTask { task: m.task(), edit: TaskEdit { scope: Some(text()), ..TaskEdit::default() } },
    Finalize by planner => Finalize { tasks: vec![m.task()], unchanged_since: None },
    Finish by human => Finish { head: m.head(), detail: text() },
    FollowStopFile by human => FollowStopFile { file: StopFile::Checkpoint, since: Some(m.now()) },
    Heartbeat by coders_supervisor => Heartbeat { agents: vec![(m.coder, Some(m.world.generation(m.coder)))], length: None },
    HoldMerge by reviewers_supervisor => HoldMerge { task: m.task(), commit: m.work(), cause: HoldCause::HeadFails { head: m.head() } },
    LogAnomaly by coder => LogAnomaly { kind: AnomalyType::SpecAmbiguity, task: Some(m.task()), details: Fields::new() },
    MarkBlocked by coder => MarkBlocked { task: m.task(), reason: text(), questions: vec![text()], attempted: vec![text()] },
    MarkTriggersSeen by planners_supervisor => MarkTriggersSeen { keys: vec![text()] },
    NewGoal by human => NewGoal { description: text(), spec_ref: None },
    NewSprint by human => NewSprint,
    Pause by human => Pause,
    PreCheck by coder => PreCheck { task: m.task(), intent: Intent { intent: text(), validation: text(), ..Intent::default() } },
    ReadNotes by coders_supervisor => ReadNotes { agent: m.coder, task: Some(m.task()), number: 1 },
    RecordAnalysis by human => RecordAnalysis { findings: Vec::new() },
    RecordHeadTest by reviewers_supervisor => RecordHeadTest { head: m.head(), failure: None, settings: text() },
    RecordMerge by reviewers_supervisor => RecordMerge { task: m.task(), commit: m.work(), merge_commit: sha(9_999), drift_commits: 0, old_head: Some(m.head()) },
    RecordMergeFailure by reviewers_supervisor => RecordMergeFailure { task: m.task(), commit: m.work(), failure: MergeFailure::Unrelated },
    RecordSession by coders_supervisor => RecordSession::new(m.coder, Some(m.task()), &text(), m.now()),
    RecordSpecChange by human => RecordSpecChange { spec: text(), change: text(), triggered_by: text() },
    RecordUsage by coders_supervisor => RecordUsage { agent: m.coder, task: Some(m.task()), usage: Usage::default(), context_percent: None, day_ends: m.now() },
    RecordValidation by reviewers_supervisor => RecordValidation { task: m.task(), reviewer: m.reviewer, validation: m.green() },
    Recover by human => Recover { repaired: vec![text()] },
    RefundSession by coders_supervisor => RefundSession { agent: m.coder, task: Some(m.task()) },
    Register by human => Register { agent: m.coder, terminal: text(), machine: None, proven_dead: None, generation: None },
    ReleaseClaim by human => ReleaseClaim { task: m.task(), role: ClaimRole::Both, force: false, reason: None },
    ReleaseReview by reviewers_supervisor => ReleaseReview { task: m.task(), reviewer: m.reviewer },
    ReserveTask by coders_supervisor => ReserveTask { task: m.task(), coder: m.coder, head: m.head() },
    Resolve by human => Resolve { resolution: text() },
    Resume by human => Resume { decision: None, note: None },
    RetryValidation by human => RetryValidation { task: m.task() },
    SetDeadline by human => SetDeadline { deadline: Some(m.now() + Seconds(3_600)) },
    SetStatus by coders_supervisor => SetStatus::new(m.coder, AgentStatus::Handoff),
    SubmitForReview by coder => SubmitForReview { task: m.task(), commit: m.world.head(&m.task), facts: Some(WorktreeFacts::clean(m.world.head(&m.task))), authors: vec![] },
    SubmitVerdict by human => SubmitVerdict { task: m.task(), verdict: Verdict::WithoutValidation(None), facts: None, commit: None, moved: None },
    SupersedeTask by planner => SupersedeTask { task: m.task(), by: m.world.size.task_ids().filter(|other| *other != m.task).collect(), reason: text(), root_cause: text(), summary: None },
    TakeHandoff by coders_supervisor => TakeHandoff { task: m.task() },
    UnblockTask by planner => UnblockTask { task: m.task(), reset_cycles: false, same_coder: true, keep_worktree: true, assessment: Some(text()) },
    UpdateSprintMetrics by human => UpdateSprintMetrics,
    UseClient by coders_supervisor => UseClient { agent: m.coder, client: text() },
    WriteHandoff by coder => WriteHandoff { task: Some(m.task()), notes: HandoffNotes { summary: text(), next_action: text(), ..HandoffNotes::default() }, dirty: Vec::new() },
    WriteNote by human => WriteNote { message: text(), to: None },
    WriteRetro by human => WriteRetro { text: text() },
}

fn text() -> String {
    "text".to_owned()
}

impl Moment<'_> {
    fn task(&self) -> TaskId {
        self.task.clone()
    }

    fn now(&self) -> Timestamp {
        self.world.now
    }

    fn head(&self) -> Sha {
        sha(self.world.integration)
    }

    /// The commit under review, or the head of the branch.
    fn work(&self) -> Sha {
        let body = self.world.state.board.body(&self.task).ok();
        body.and_then(|body| body.record().review_commit.clone()).unwrap_or_else(|| self.head())
    }

    fn reservation(&self) -> Reservation {
        let generation = self.world.generation(self.coder);
        Reservation { by: self.coder, generation, expires: self.now(), base_commit: self.head() }
    }

    fn green(&self) -> Validation {
        Validation {
            commit: self.work(),
            result: ValidationResult::Green,
            commands: vec!["cargo test".to_owned()],
            gate: "gate".to_owned(),
            tree: None,
            time: self.now(),
            command: None,
            failure: None,
            flaky: Vec::new(),
            head: None,
            settings: Vec::new(),
            receipt: None,
        }
    }

    fn human(&self) -> Actor {
        Actor::Human
    }

    fn planner(&self) -> Actor {
        self.world.session(self.planner)
    }

    fn coder(&self) -> Actor {
        self.world.session(self.coder)
    }

    fn planners_supervisor(&self) -> Actor {
        self.world.supervisor(self.planner)
    }

    fn coders_supervisor(&self) -> Actor {
        self.world.supervisor(self.coder)
    }

    fn reviewers_supervisor(&self) -> Actor {
        self.world.supervisor(self.reviewer)
    }
}

/// The result of a command: the next board with the answer, or the refusal.
type Outcome = Result<(u128, bool, Option<&'static str>), &'static str>;

fn outcome(world: &World, actor: Actor, command: Command) -> Outcome {
    let mut next = world.clone();
    match next.run(actor, command) {
        Ok(done) => Ok((plain(&next), done.is_empty, done.answer.err().map(|refusal| refusal.code()))),
        Err(refusal) => Err(refusal.code()),
    }
}

fn of_world(world: &World) -> Vec<(&'static str, Actor, Command)> {
    let size = world.size;
    let moment = |task| Moment {
        world,
        task,
        coder: size.coder_ids().next().unwrap(),
        reviewer: size.reviewer_ids().next().unwrap(),
        planner: size.planner(),
    };
    size.task_ids().flat_map(|task| samples(&moment(task))).collect()
}

/// Sends every command to two boards; returns those with different outcomes.
pub(crate) fn differences(one: &World, other: &World) -> Vec<String> {
    let pairs = of_world(one).into_iter().zip(of_world(other));
    let differs = pairs.filter_map(|((name, by, command), (_, other_by, other_command))| {
        let (first, second) = (outcome(one, by, command), outcome(other, other_by, other_command));
        (first != second).then(|| format!("{name}: {first:?} / {second:?}"))
    });
    differs.collect()
}
