//! The permission table of the decisions as data, held against every command and every kind of caller.

use liza_core::agent::{Actor, AgentStatus};
use liza_core::command::{
    CheckpointCause, ClaimRole, Command, FruitlessExit, HandoffNotes, Intent, NewTask, TaskEdit, Verdict,
};
use liza_core::effect::HaltFile;
use liza_core::ids::{AgentId, DiscoveryId, Generation};
use liza_core::metrics::Metrics;
use liza_core::notes::{AnomalyType, Severity, Urgency};
use liza_core::permission::rights_for;
use liza_core::record::{Reservation, Status, Usage};
use liza_core::time::Timestamp;
use liza_core::value::Fields;

use crate::steps::*;
use crate::support::*;

/// Who may try it: planner, coder, reviewer, supervisor, human.
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
                Command::Heartbeat { agents: vec![(coder(1), None)], length: None },
                Command::Anomaly { kind: AnomalyType::SpecGap, task: None, details: Fields::new() },
                discover(),
                Command::UpdateMetrics { metrics: Metrics::default() },
            ],
        },
        Row {
            rights: "-C---",
            commands: vec![
                Command::PreCheck { task: task("t"), intent: Intent::default() },
                submit("t", sha('a')),
            ],
        },
        Row { rights: "-C-SH", commands: vec![block("t")] },
        Row {
            rights: "PCR--",
            commands: vec![Command::Handoff {
                task: task("t"),
                notes: HandoffNotes::default(),
                dirty: Vec::new(),
            }],
        },
        Row { rights: "--R--", commands: vec![verdict("t", Verdict::Approved)] },
        Row { rights: "----H", commands: human() },
    ]
}

fn discover() -> Command {
    Command::Discover {
        task: None,
        description: "x".into(),
        severity: Severity::Low,
        urgency: Urgency::Deferred,
        recommendation: None,
    }
}

fn planning() -> Vec<Command> {
    vec![
        Command::AddTask { task: task("n"), new: NewTask::default() },
        edit("t", TaskEdit::default()),
        Command::Finalize { tasks: Vec::new() },
        supersede("t", &["n"]),
        abandon("t"),
        unblock("t"),
        Command::ConvertDiscovery { discovery: DiscoveryId(1), task: task("t") },
        Command::Align { summary: "x".into() },
        Command::DeleteWorktree { task: task("t") },
        Command::CompleteGoal,
    ]
}

fn supervision() -> Vec<Command> {
    let (agent, coder, reviewer) = (coder(1), coder(1), reviewer(1));
    vec![
        Command::Register { agent, terminal: String::new(), proven_dead: None },
        Command::Deregister { agent },
        Command::SetStatus { agent, status: AgentStatus::Idle },
        reserve("t", coder, base()),
        Command::Claim { task: task("t"), coder },
        Command::CancelReservation { task: task("t"), coder },
        Command::DropReservation { task: task("t"), reservation: reservation(coder) },
        Command::Recover { settled: Vec::new() },
        claim_review("t", reviewer, None),
        Command::GiveUpReview { task: task("t"), reviewer },
        Command::ClearStaleReviews,
        Command::CreateWorktree { task: task("t"), fresh: false, head: base() },
        Command::BeginMerge { task: task("t") },
        merged("t", sha('a')),
        conflict("t", sha('a')),
        Command::CountExit { task: task("t"), agent, exit: FruitlessExit::Crash },
        Command::TakeHandoff { task: task("t") },
        Command::SeeTriggers { keys: Vec::new() },
        Command::RecordUsage { agent, task: None, usage: Usage::default(), context_percent: None },
        Command::Checkpoint { cause: CheckpointCause::Deadline },
        Command::CompleteSprint,
    ]
}

fn reservation(by: AgentId) -> Reservation {
    Reservation { by, generation: Generation(1), expires: Timestamp::from_unix(0), base_commit: base() }
}

fn human() -> Vec<Command> {
    vec![
        Command::AbortGoal,
        Command::NewGoal { description: "x".into(), spec_ref: None },
        Command::ReleaseClaim { task: task("t"), role: ClaimRole::Both, force: false, reason: None },
        Command::Note { message: "x".into(), to: None },
        Command::SpecChange { spec: "a".into(), change: "b".into(), triggered_by: "c".into() },
        Command::Checkpoint { cause: CheckpointCause::Human },
        Command::Pause,
        Command::Resume { decision: None, note: None },
        Command::Abort,
        Command::FollowFile { file: HaltFile::Pause, since: None },
        Command::NewSprint,
        Command::SetDeadline { deadline: None },
        Command::Retrospective { text: "x".into() },
        Command::RecordAnalysis { findings: Vec::new() },
        Command::Resolve { resolution: "x".into() },
        Command::Archive { tasks: Vec::new() },
    ]
}

/// Every command and a number for it, so that a new one cannot be forgotten here.
fn number(command: &Command) -> usize {
    match command {
        Command::AddTask { .. } => 0,
        Command::EditTask { .. } => 1,
        Command::Finalize { .. } => 2,
        Command::Supersede { .. } => 3,
        Command::Abandon { .. } => 4,
        Command::Unblock { .. } => 5,
        Command::Align { .. } => 6,
        Command::CompleteGoal => 7,
        Command::AbortGoal => 8,
        Command::NewGoal { .. } => 9,
        Command::Register { .. } => 10,
        Command::Heartbeat { .. } => 11,
        Command::Deregister { .. } => 12,
        Command::SetStatus { .. } => 13,
        Command::Reserve { .. } => 14,
        Command::Claim { .. } => 15,
        Command::CancelReservation { .. } => 16,
        Command::ReleaseClaim { .. } => 17,
        Command::PreCheck { .. } => 18,
        Command::SubmitForReview { .. } => 19,
        Command::ClaimReview { .. } => 20,
        Command::GiveUpReview { .. } => 21,
        Command::SubmitVerdict { .. } => 22,
        Command::ClearStaleReviews => 23,
        Command::BeginMerge { .. } => 24,
        Command::RecordMerge { .. } => 25,
        Command::RecordMergeFailure { .. } => 26,
        Command::CreateWorktree { .. } => 27,
        Command::DeleteWorktree { .. } => 28,
        Command::MarkBlocked { .. } => 29,
        Command::CountExit { .. } => 30,
        Command::Handoff { .. } => 31,
        Command::TakeHandoff { .. } => 32,
        Command::Anomaly { .. } => 33,
        Command::Discover { .. } => 34,
        Command::ConvertDiscovery { .. } => 35,
        Command::Note { .. } => 36,
        Command::SpecChange { .. } => 37,
        Command::Checkpoint { cause: CheckpointCause::Human } => 38,
        Command::Checkpoint { cause: CheckpointCause::Deadline } => 39,
        Command::Pause => 40,
        Command::Resume { .. } => 41,
        Command::Abort => 42,
        Command::CompleteSprint => 43,
        Command::NewSprint => 44,
        Command::SetDeadline { .. } => 45,
        Command::Retrospective { .. } => 46,
        Command::UpdateMetrics { .. } => 47,
        Command::SeeTriggers { .. } => 48,
        Command::RecordAnalysis { .. } => 49,
        Command::Resolve { .. } => 50,
        Command::Archive { .. } => 51,
        Command::RecordUsage { .. } => 52,
        Command::DropReservation { .. } => 53,
        Command::Recover { .. } => 54,
        Command::FollowFile { .. } => 55,
    }
}

/// Covers: AG-12
#[test]
fn the_table_has_every_command_once() {
    let mut seen: Vec<usize> = table().iter().flat_map(|row| row.commands.iter().map(number)).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..56).collect::<Vec<_>>());
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
fn every_kind_of_caller_may_do_what_the_table_says_and_no_more() {
    let world = World::new();
    for row in table() {
        for command in row.commands {
            let mut actors = vec![Actor::Human];
            for id in [planner(), coder(1), reviewer(1)] {
                actors.extend([world.agent(id), Actor::Operator(id), world.supervisor(id)]);
            }
            for actor in actors {
                let expected = may(row.rights, &actor);
                assert_eq!(rights_for(&command).allow(&actor), expected, "{actor:?} {}", command.verb());
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
fn a_refusal_names_who_may() {
    let mut world = World::new();
    let refusal = world.refused_with("not_permitted", world.agent(coder(1)), abandon("t"));
    let message = refusal.to_string();
    assert_eq!(message, "coder-1 may not abandon-task: that is for the planner or the human");
}

/// Covers: AG-12
#[test]
fn the_right_to_try_is_checked_before_anything_is_told() {
    let mut world = World::new();
    let old = Actor::Agent(coder(1), Generation(0));
    world.refused_with("not_permitted", old, abandon("t"));
    world.refused_with("fenced", old, submit("t", sha('a')));
}

/// Covers: AG-12
#[test]
fn an_operator_stands_in_for_agent_and_supervisor() {
    let mut world = World::new();
    let stand_in = Actor::Operator(coder(1));
    world.must(stand_in, reserve("t", coder(1), base()));
    world.must(stand_in, Command::Claim { task: task("t"), coder: coder(1) });
    world.must(stand_in, submit("t", sha('a')));
    assert_eq!(world.status("t"), Status::ReadyForReview);
    world.refused_with("not_permitted", stand_in, verdict("t", Verdict::Approved));
}
