//! The permission table as data, compared with every command and every kind of caller.

use liza_core::model::{
    Actor, AgentId, AgentStatus, AnomalyType, DirectEditId, DiscoveryId, Fields, Generation, Reservation,
    Revision, Severity, Status, StopFile, Timestamp, Urgency, Usage, ValidationResult,
};
use liza_core::protocol::{
    Abort, AbortGoal, AcceptGate, AcceptIntegration, AddTask, AdoptIntegration, Align, Answer, Archive,
    BeginMerge, CancelReservation, Checkpoint, CheckpointCause, ClaimRole, ClaimTask, ClearStaleReviewClaims,
    Command, CompleteGoal, CompleteSprint, ConvertDiscovery, CountExit, CountPlannerExit, CreateWorktree,
    DeleteWorktree, Deregister, Discover, DismissDiscovery, DismissEdit, DropReservation, Finalize, Finish,
    FollowStopFile, HandoffNotes, Heartbeat, Intent, LogAnomaly, MarkTriggersSeen, NewGoal, NewSprint,
    NewTask, Operation, Pause, PreCheck, ReadNotes, RecordAnalysis, RecordSession, RecordSpecChange,
    RecordUsage, Recover, RefundSession, Register, ReleaseClaim, ReleaseReview, Resolve, Resume,
    RetryValidation, SetDeadline, SetStatus, TakeHandoff, TaskEdit, UnproductiveExit, UpdateSprintMetrics,
    UseClient, WriteHandoff, WriteNote, WriteRetro,
};
use liza_testkit::worlds::*;

/// Which callers may try it: planner, coder, reviewer, supervisor, human.
struct Row {
    rights: &'static str,
    commands: Vec<Command>,
}

fn table() -> Vec<Row> {
    vec![
        Row { rights: "P---H", commands: planning() },
        Row { rights: "---SH", commands: supervision() },
        Row {
            rights: "PCRSH",
            commands: vec![
                Command::from(Heartbeat { agents: vec![(coder(1), None)], length: None }),
                Command::from(LogAnomaly { kind: AnomalyType::SpecGap, task: None, details: Fields::new() }),
                discover(),
                Command::from(UpdateSprintMetrics),
            ],
        },
        Row {
            rights: "-C---",
            commands: vec![
                Command::from(PreCheck { task: task("t"), intent: Intent::default() }),
                submit("t", sha('a')),
            ],
        },
        Row { rights: "-C-SH", commands: vec![block("t")] },
        Row {
            rights: "PCR--",
            commands: vec![Command::from(WriteHandoff {
                task: Some(task("t")),
                notes: HandoffNotes::default(),
                dirty: Vec::new(),
            })],
        },
        Row { rights: "--R-H", commands: vec![verdict("t", approved())] },
        Row { rights: "----H", commands: human() },
    ]
}

fn discover() -> Command {
    Command::from(Discover {
        task: None,
        description: "x".into(),
        severity: Severity::Low,
        urgency: Urgency::Deferred,
        recommendation: None,
    })
}

fn planning() -> Vec<Command> {
    vec![
        Command::from(AddTask { task: task("n"), new: NewTask::default() }),
        edit("t", TaskEdit::default()),
        Command::from(Finalize { tasks: Vec::new(), unchanged_since: None }),
        supersede("t", &["n"]),
        abandon("t"),
        unblock("t"),
        Command::from(ConvertDiscovery { discovery: DiscoveryId(1), task: task("t") }),
        Command::from(Align { summary: "x".into() }),
        Command::from(DeleteWorktree { task: task("t") }),
        Command::from(CompleteGoal),
    ]
}

fn supervision() -> Vec<Command> {
    let (agent, coder, reviewer) = (coder(1), coder(1), reviewer(1));
    vec![
        Command::from(Register {
            agent,
            terminal: String::new(),
            machine: None,
            proven_dead: None,
            generation: None,
        }),
        Command::from(Deregister::any(agent)),
        Command::from(SetStatus::new(agent, AgentStatus::Idle)),
        reserve("t", coder, base()),
        Command::from(ClaimTask { task: task("t"), coder }),
        Command::from(CancelReservation { task: task("t"), coder }),
        Command::from(DropReservation { task: task("t"), reservation: reservation(coder) }),
        Command::from(Recover { repaired: Vec::new() }),
        claim_review("t", reviewer),
        Command::from(ReleaseReview { task: task("t"), reviewer }),
        Command::from(ClearStaleReviewClaims),
        Command::from(CreateWorktree { task: task("t"), fresh: false, head: base() }),
        Command::from(BeginMerge { task: task("t") }),
        merged("t", sha('a')),
        conflict("t", sha('a')),
        head_test(None),
        hold("t", sha('a')),
        record_validation("t", reviewer, validation(ValidationResult::Green)),
        begin_review("t", reviewer),
        Command::from(CountExit {
            task: task("t"),
            agent,
            exit: UnproductiveExit::Crash,
            last_words: None,
            pause: liza_core::model::Seconds(0),
        }),
        Command::from(TakeHandoff { task: task("t") }),
        Command::from(MarkTriggersSeen { keys: Vec::new() }),
        Command::from(ReadNotes { agent, task: None, number: 1 }),
        Command::from(RecordUsage {
            agent,
            task: None,
            usage: Usage::default(),
            context_percent: None,
            day_ends: World::new().now,
        }),
        Command::from(Checkpoint { cause: CheckpointCause::Deadline }),
        Command::from(Checkpoint { cause: CheckpointCause::Budget }),
        Command::from(CompleteSprint),
        Command::from(AdoptIntegration { head: base() }),
        Command::from(CountPlannerExit {
            agent: planner(),
            last_words: None,
            woken_because: None,
            woken_for: Vec::new(),
            pause: liza_core::model::Seconds(0),
        }),
        Command::from(RefundSession { agent, task: None }),
        Command::from(UseClient { agent, client: "c".into() }),
        Command::from(RecordSession::new(agent, None, "c", Timestamp::from_unix(0))),
    ]
}

fn reservation(by: AgentId) -> Reservation {
    Reservation { by, generation: Generation(1), expires: Timestamp::from_unix(0), base_commit: base() }
}

fn human() -> Vec<Command> {
    vec![
        Command::from(AbortGoal),
        Command::from(NewGoal { description: "x".into(), spec_ref: None }),
        Command::from(ReleaseClaim { task: task("t"), role: ClaimRole::Both, force: false, reason: None }),
        Command::from(WriteNote { message: "x".into(), to: None }),
        Command::from(RecordSpecChange { spec: "a".into(), change: "b".into(), triggered_by: "c".into() }),
        Command::from(Checkpoint { cause: CheckpointCause::Human }),
        Command::from(Pause),
        Command::from(Resume { decision: None, note: None }),
        Command::from(Abort),
        Command::from(FollowStopFile { file: StopFile::Pause, since: None }),
        Command::from(NewSprint),
        Command::from(SetDeadline { deadline: None }),
        Command::from(WriteRetro { text: "x".into() }),
        Command::from(RecordAnalysis { findings: Vec::new() }),
        Command::from(Resolve { resolution: "x".into() }),
        Command::from(Archive { tasks: Vec::new() }),
        Command::from(Answer { task: task("t"), text: "x".into() }),
        Command::from(DismissDiscovery { discovery: DiscoveryId(1) }),
        Command::from(DismissEdit { edit: DirectEditId(Revision(1)) }),
        Command::from(AcceptGate { task: task("t"), old_fails: false }),
        Command::from(RetryValidation { task: task("t") }),
        Command::from(AcceptIntegration { head: base(), detail: "x".into(), merged: Vec::new() }),
        Command::from(Finish { head: base(), detail: "x".into() }),
    ]
}

/// Every command and a number for it, so that a new one cannot be forgotten here.
fn number(command: &Command) -> usize {
    match command {
        Command::AddTask(_) => 0,
        Command::EditTask(_) => 1,
        Command::Finalize(_) => 2,
        Command::SupersedeTask(_) => 3,
        Command::AbandonTask(_) => 4,
        Command::UnblockTask(_) => 5,
        Command::Align(_) => 6,
        Command::CompleteGoal(_) => 7,
        Command::AbortGoal(_) => 8,
        Command::NewGoal(_) => 9,
        Command::Register(_) => 10,
        Command::Heartbeat(_) => 11,
        Command::Deregister(_) => 12,
        Command::SetStatus(_) => 13,
        Command::ReserveTask(_) => 14,
        Command::ClaimTask(_) => 15,
        Command::CancelReservation(_) => 16,
        Command::ReleaseClaim(_) => 17,
        Command::PreCheck(_) => 18,
        Command::SubmitForReview(_) => 19,
        Command::ClaimReview(_) => 20,
        Command::ReleaseReview(_) => 21,
        Command::SubmitVerdict(_) => 22,
        Command::ClearStaleReviewClaims(_) => 23,
        Command::BeginMerge(_) => 24,
        Command::RecordMerge(_) => 25,
        Command::RecordMergeFailure(_) => 26,
        Command::CreateWorktree(_) => 27,
        Command::DeleteWorktree(_) => 28,
        Command::MarkBlocked(_) => 29,
        Command::CountExit(_) => 30,
        Command::WriteHandoff(_) => 31,
        Command::TakeHandoff(_) => 32,
        Command::LogAnomaly(_) => 33,
        Command::Discover(_) => 34,
        Command::ConvertDiscovery(_) => 35,
        Command::WriteNote(_) => 36,
        Command::RecordSpecChange(_) => 37,
        Command::Checkpoint(Checkpoint { cause: CheckpointCause::Human }) => 38,
        Command::Checkpoint(Checkpoint { cause: CheckpointCause::Deadline }) => 39,
        Command::Pause(_) => 40,
        Command::Resume(_) => 41,
        Command::Abort(_) => 42,
        Command::CompleteSprint(_) => 43,
        Command::NewSprint(_) => 44,
        Command::SetDeadline(_) => 45,
        Command::WriteRetro(_) => 46,
        Command::UpdateSprintMetrics(_) => 47,
        Command::MarkTriggersSeen(_) => 48,
        Command::RecordAnalysis(_) => 49,
        Command::Resolve(_) => 50,
        Command::Archive(_) => 51,
        Command::RecordUsage(_) => 52,
        Command::DropReservation(_) => 53,
        Command::Recover(_) => 54,
        Command::FollowStopFile(_) => 55,
        Command::Answer(_) => 56,
        Command::DismissDiscovery(_) => 57,
        Command::AcceptIntegration(_) => 58,
        Command::AdoptIntegration(_) => 59,
        Command::CountPlannerExit(_) => 60,
        Command::RefundSession(_) => 61,
        Command::DismissEdit(_) => 62,
        Command::UseClient(_) => 63,
        Command::RecordSession(_) => 64,
        Command::Finish(_) => 65,
        Command::Checkpoint(Checkpoint { cause: CheckpointCause::Budget }) => 66,
        Command::RecordHeadTest(_) => 67,
        Command::HoldMerge(_) => 68,
        Command::AcceptGate(_) => 69,
        Command::ReadNotes(_) => 70,
        Command::RecordValidation(_) => 71,
        Command::BeginReview(_) => 72,
        Command::RetryValidation(_) => 73,
    }
}

/// Covers: AG-12
#[test]
fn the_table_has_every_command_once() {
    let mut seen: Vec<usize> = table().iter().flat_map(|row| row.commands.iter().map(number)).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..74).collect::<Vec<_>>());
}

fn may(rights: &str, actor: &Actor) -> bool {
    let has = |letter: char| rights.contains(letter);
    let of_role = |id: &AgentId| {
        let letters = [(planner(), 'P'), (coder(1), 'C'), (reviewer(1), 'R')];
        letters.iter().any(|(role, letter)| role == id && has(*letter))
    };
    match actor {
        Actor::Human => has('H'),
        Actor::Agent(id, _) => of_role(id),
        Actor::Operator(id) => of_role(id) || has('S'),
        Actor::Supervisor(..) => has('S'),
    }
}

/// Covers: AG-12
#[test]
fn every_kind_of_caller_may_do_exactly_what_the_table_lists() {
    let world = World::new();
    for row in table() {
        for command in row.commands {
            let mut actors = vec![Actor::Human];
            for id in [planner(), coder(1), reviewer(1)] {
                actors.extend([world.agent(id), Actor::Operator(id), world.supervisor(id)]);
            }
            for actor in actors {
                let expected = may(row.rights, &actor);
                assert_eq!(command.rights().allow(&actor), expected, "{actor:?} {}", command.verb());
                let refused = match world.clone().run(actor, command.clone()) {
                    Err(No::Refused(refusal)) => refusal.code() == "not_permitted",
                    _ => false,
                };
                assert_eq!(refused, !expected, "{actor:?} {}", command.verb());
            }
        }
    }
}

/// Covers: AG-12
#[test]
fn a_refusal_names_the_roles_that_may() {
    let mut world = World::new();
    let refusal = world.refused_with("not_permitted", world.agent(coder(1)), abandon("t"));
    let message = refusal.to_string();
    assert_eq!(message, "coder-1 may not abandon-task: that is for the planner or the human");
}

/// Covers: AG-12
#[test]
fn the_permission_is_checked_before_any_other_refusal() {
    let mut world = World::new();
    let old = Actor::Agent(coder(1), Generation(0));
    world.refused_with("not_permitted", old, abandon("t"));
    world.refused_with("fenced", old, submit("t", sha('a')));
}

/// Covers: AG-12
#[test]
fn an_operator_may_act_for_agent_and_supervisor() {
    let mut world = World::new();
    let stand_in = Actor::Operator(coder(1));
    world.must(stand_in, reserve("t", coder(1), base()));
    world.must(stand_in, Command::from(ClaimTask { task: task("t"), coder: coder(1) }));
    world.must(stand_in, submit("t", sha('a')));
    assert_eq!(world.status("t"), Status::ReadyForReview);
    world.refused_with("not_permitted", stand_in, verdict("t", approved()));
}
