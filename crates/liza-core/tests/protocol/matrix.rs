//! Every status × every command × every kind of caller, as a readable table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use liza_core::model::{
    Actor, AgentStatus, AnomalyType, DiscoveryId, Fields, Role, Seconds, Severity, SprintStatus, State,
    Status, StopFile, Urgency, Usage,
};
use liza_core::protocol::{
    AbandonTask, Abort, AbortGoal, AcceptGate, AddTask, Align, Archive, BeginMerge, CancelReservation,
    Checkpoint, CheckpointCause, ClaimReview, ClaimRole, ClaimTask, ClearStaleReviewClaims, Command,
    CompleteGoal, CompleteSprint, ConvertDiscovery, CountExit, CreateWorktree, Decided, DeleteWorktree,
    Deregister, Discover, DropReservation, EditTask, Finalize, FollowStopFile, HandoffNotes, Heartbeat,
    HoldCause, HoldMerge, Intent, LogAnomaly, MarkBlocked, MarkTriggersSeen, MergeFailure, NewGoal,
    NewSprint, NewTask, Operation, Pause, PreCheck, ReadNotes, RecordAnalysis, RecordMerge,
    RecordMergeFailure, RecordSpecChange, RecordUsage, Recover, Register, ReleaseClaim, ReleaseReview,
    ReserveTask, Resolve, Resume, SetDeadline, SetStatus, SubmitForReview, SubmitVerdict, SupersedeTask,
    TakeHandoff, TaskEdit, UnblockTask, UnproductiveExit, UpdateSprintMetrics, Verdict, WorktreeFacts,
    WriteHandoff, WriteNote, WriteRetro, apply,
};
use liza_core::rules::invariants::introduced;
use liza_testkit::team::*;

/// Every kind of caller, by the name of its column.
pub(crate) fn callers() -> Vec<(&'static str, Actor)> {
    let id = |name: &str| agent(name);
    let by_agent = |name: &str| Actor::Agent(id(name), generation(id(name)));
    let supervisor = |name: &str| Actor::Supervisor(id(name), generation(id(name)));
    vec![
        ("human", Actor::Human),
        ("planner", by_agent("planner-1")),
        ("its coder", by_agent("coder-1")),
        ("other coder", by_agent("coder-2")),
        ("its reviewer", by_agent("code-reviewer-1")),
        ("other reviewer", by_agent("code-reviewer-2")),
        ("sup. its coder", supervisor("coder-1")),
        ("sup. other coder", supervisor("coder-2")),
        ("sup. its reviewer", supervisor("code-reviewer-1")),
        ("sup. other reviewer", supervisor("code-reviewer-2")),
    ]
}

/// The commands about one task, as this caller would run them.
pub(crate) fn task_commands(actor: &Actor) -> Vec<Command> {
    let t = || task("t");
    let (coder, reviewer) = (acting(actor, Role::Coder), acting(actor, Role::CodeReviewer));
    let reason = || "because".to_owned();
    vec![
        Command::from(EditTask {
            task: t(),
            edit: TaskEdit { scope: Some("the client".to_owned()), ..TaskEdit::default() },
        }),
        Command::from(Finalize { tasks: vec![t()], unchanged_since: None }),
        Command::from(ReserveTask { task: t(), coder, head: sha(HEAD) }),
        Command::from(ClaimTask { task: t(), coder }),
        Command::from(CancelReservation { task: t(), coder }),
        Command::from(DropReservation { task: t(), reservation: reservation(coder) }),
        Command::from(ReleaseClaim { task: t(), role: ClaimRole::Both, force: true, reason: None }),
        Command::from(CreateWorktree { task: t(), fresh: false, head: sha(HEAD) }),
        Command::from(DeleteWorktree { task: t() }),
        Command::from(PreCheck {
            task: t(),
            intent: Intent { intent: reason(), validation: reason(), ..Intent::default() },
        }),
        Command::from(SubmitForReview {
            task: t(),
            commit: sha(WORK),
            facts: Some(WorktreeFacts::clean(sha(WORK))),
            authors: vec![],
        }),
        Command::from(ClaimReview {
            task: t(),
            reviewer,
            setup_failure: None,
            integration: None,
            gate: None,
        }),
        Command::from(ClaimReview {
            task: t(),
            reviewer,
            setup_failure: Some("exited 3".into()),
            integration: None,
            gate: None,
        }),
        Command::from(ReleaseReview { task: t(), reviewer }),
        Command::from(SubmitVerdict {
            task: t(),
            verdict: Verdict::Approved(Some("cargo test: passed".into())),
            facts: Some(WorktreeFacts::clean(sha(WORK))),
            commit: None,
            moved: None,
        }),
        Command::from(SubmitVerdict {
            task: t(),
            verdict: Verdict::Rejected(reason()),
            facts: Some(WorktreeFacts::clean(sha(WORK))),
            commit: None,
            moved: None,
        }),
        Command::from(BeginMerge { task: t() }),
        Command::from(RecordMerge {
            task: t(),
            commit: sha(WORK),
            merge_commit: sha(HEAD),
            drift_commits: 0,
            old_head: None,
        }),
        Command::from(RecordMergeFailure {
            task: t(),
            commit: sha(WORK),
            failure: MergeFailure::Conflict { files: vec!["a.rs".to_owned()] },
        }),
        Command::from(HoldMerge {
            task: t(),
            commit: sha(WORK),
            cause: HoldCause::HeadFails { head: sha(HEAD) },
        }),
        Command::from(AcceptGate { task: t(), old_fails: false }),
        Command::from(MarkBlocked {
            task: t(),
            reason: reason(),
            questions: vec!["Which?".to_owned()],
            attempted: Vec::new(),
        }),
        Command::from(CountExit {
            task: t(),
            agent: actor.agent().unwrap_or(coder),
            exit: UnproductiveExit::Crash,
            last_words: None,
            pause: Seconds(0),
        }),
        Command::from(UnblockTask {
            task: t(),
            reset_cycles: false,
            same_coder: false,
            keep_worktree: false,
            assessment: Some(reason()),
        }),
        Command::from(SupersedeTask {
            task: t(),
            by: vec![task("next")],
            reason: reason(),
            root_cause: reason(),
            summary: None,
        }),
        Command::from(AbandonTask { task: t(), reason: reason() }),
        Command::from(WriteHandoff {
            task: Some(t()),
            notes: HandoffNotes { summary: reason(), next_action: reason(), ..HandoffNotes::default() },
            dirty: Vec::new(),
        }),
        Command::from(TakeHandoff { task: t() }),
        Command::from(Archive { tasks: vec![t()] }),
    ]
}

/// The name of the row group; a command with different facts has one group for each.
pub(crate) fn title(command: &Command) -> String {
    match command {
        Command::ClaimReview(ClaimReview { setup_failure: Some(_), .. }) => {
            "claim-review, if its set-up fails".to_owned()
        }
        Command::SubmitVerdict(SubmitVerdict { verdict: Verdict::Approved(_), .. }) => {
            "submit-verdict APPROVED".to_owned()
        }
        Command::SubmitVerdict(_) => "submit-verdict REJECTED".to_owned(),
        other => other.verb().to_owned(),
    }
}

/// The board for one cell: everything else that the command needs is present, so that only the status decides.
pub(crate) fn board_for(status: Status, command: &Command) -> State {
    let mut state = state_with(status);
    place(&mut state, "next", Status::Draft);
    match command {
        Command::ClaimTask(ClaimTask { coder, .. })
        | Command::CancelReservation(CancelReservation { coder, .. }) => {
            reserve(&mut state, "t", *coder);
        }
        Command::DropReservation(DropReservation { reservation, .. }) => {
            reserve(&mut state, "t", reservation.by)
        }
        Command::TakeHandoff(_) => {
            let mut record = record("t", status);
            record.handoff_pending = Some(true);
            state.board.put(task("t"), record);
        }
        Command::Archive(_) => {
            sprint(&mut state).status = SprintStatus::Completed;
        }
        _ => {}
    }
    state
}

/// The outcome in a word: the new status, `ok` if it stays the same, or the code of the refusal.
fn cell(status: Status, actor: &Actor, command: &Command) -> String {
    let state = board_for(status, command);
    match apply(&state.board, &request(*actor, command.clone())) {
        Err(refusal) if refusal.code() == "not_permitted" => "·".to_owned(),
        Err(refusal) => refusal.code().to_owned(),
        Ok(Decided { change, answer }) => {
            assert_eq!(
                introduced(&state.board, &change, &AllThere, now()),
                [],
                "{status} {}",
                command.verb()
            );
            let mut after = state.clone();
            after.apply(&change);
            if change.archived.contains(&task("t")) {
                return "archived".to_owned();
            }
            let to = after.board.status(&task("t")).unwrap();
            let moved = if to == status { "ok".to_owned() } else { format!("→ {to}") };
            match answer {
                Err(refusal) => format!("{moved}, {}", refusal.code()),
                Ok(_) => moved,
            }
        }
    }
}

/// One table: statuses as rows, callers that get beyond `·` as columns; statuses with the same row share it.
fn table(index: usize) -> String {
    let callers = callers();
    let row = |status: Status| -> Vec<String> {
        callers.iter().map(|(_, actor)| cell(status, actor, &task_commands(actor)[index])).collect()
    };
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for &status in Status::ALL {
        let cells = row(status);
        match rows.last_mut().filter(|(_, last)| *last == cells) {
            Some((names, _)) => write!(names, ", {status}").unwrap(),
            None => rows.push((status.to_string(), cells)),
        }
    }
    let shown: Vec<usize> =
        (0..callers.len()).filter(|n| rows.iter().any(|(_, cells)| cells[*n] != "·")).collect();
    let mut text = format!("== {}\n", title(&task_commands(&Actor::Human)[index]));
    let width = |n: usize| {
        let cells = rows.iter().map(|(_, cells)| cells[n].chars().count());
        cells.max().unwrap_or(0).max(callers[n].0.len())
    };
    let first = rows.iter().map(|(names, _)| names.len()).max().unwrap_or(0);
    let mut line = |names: &str, cells: Vec<&str>| {
        let mut row = format!("{names:first$}");
        for (place, n) in shown.iter().enumerate() {
            write!(row, " | {:w$}", cells[place], w = width(*n)).unwrap();
        }
        writeln!(text, "{}", row.trim_end()).unwrap();
    };
    line("", shown.iter().map(|n| callers[*n].0).collect());
    for (names, cells) in &rows {
        line(names, shown.iter().map(|n| cells[*n].as_str()).collect());
    }
    text
}

/// The commands that are not about the status of one task.
pub(crate) fn other_commands(actor: &Actor) -> Vec<Command> {
    let text = || "text".to_owned();
    let own = actor.agent().unwrap_or(agent("coder-1"));
    vec![
        Command::from(AddTask {
            task: task("new"),
            new: NewTask { description: text(), draft: true, ..NewTask::default() },
        }),
        Command::from(Align { summary: text() }),
        Command::from(CompleteGoal),
        Command::from(AbortGoal),
        Command::from(NewGoal { description: text(), spec_ref: None }),
        Command::from(Register {
            agent: own,
            terminal: text(),
            machine: None,
            proven_dead: None,
            generation: None,
        }),
        Command::from(Heartbeat { agents: vec![(own, None)], length: None }),
        Command::from(Deregister::any(own)),
        Command::from(SetStatus::new(own, AgentStatus::Handoff)),
        Command::from(ClearStaleReviewClaims),
        Command::from(Recover { repaired: vec![text()] }),
        Command::from(LogAnomaly { kind: AnomalyType::SpecAmbiguity, task: None, details: Fields::new() }),
        Command::from(Discover {
            task: None,
            description: text(),
            severity: Severity::Low,
            urgency: Urgency::Deferred,
            recommendation: None,
        }),
        Command::from(ConvertDiscovery { discovery: DiscoveryId(1), task: task("t") }),
        Command::from(WriteNote { message: text(), to: None }),
        Command::from(RecordSpecChange { spec: text(), change: text(), triggered_by: text() }),
        Command::from(Checkpoint { cause: CheckpointCause::Human }),
        Command::from(Pause),
        Command::from(Resume { decision: None, note: None }),
        Command::from(Abort),
        Command::from(FollowStopFile { file: StopFile::Checkpoint, since: Some(now()) }),
        Command::from(CompleteSprint),
        Command::from(NewSprint),
        Command::from(SetDeadline { deadline: Some(now() + Seconds::hours(1)) }),
        Command::from(WriteRetro { text: text() }),
        Command::from(UpdateSprintMetrics),
        Command::from(MarkTriggersSeen { keys: vec![text()] }),
        Command::from(RecordAnalysis { findings: Vec::new() }),
        Command::from(Resolve { resolution: text() }),
        Command::from(ReadNotes { agent: own, task: None, number: 1 }),
        Command::from(RecordUsage {
            agent: own,
            task: None,
            usage: Usage::default(),
            context_percent: Some(40),
            day_ends: now(),
        }),
    ]
}

fn others_table() -> String {
    let mut text = String::from("== commands without a task's state\n");
    let callers = callers();
    for (index, command) in other_commands(&Actor::Human).iter().enumerate() {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, actor) in &callers {
            let command = other_commands(actor)[index].clone();
            let outcome = match apply(&state_with(Status::Merged).board, &request(*actor, command)) {
                Ok(_) => "ok".to_owned(),
                Err(refusal) => refusal.code().to_owned(),
            };
            match groups.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, names)) => names.push(name),
                None => groups.push((outcome, vec![name])),
            }
        }
        let cells: Vec<String> = groups
            .iter()
            .map(|(outcome, names)| {
                if names.len() == callers.len() {
                    format!("{outcome}: everybody")
                } else {
                    format!("{outcome}: {}", names.join(", "))
                }
            })
            .collect();
        writeln!(text, "{:26} {}", command.verb(), cells.join(" | ")).unwrap();
    }
    text
}

/// Covers: TS-01, TS-02, AG-12
#[test]
fn every_status_with_every_command_by_every_caller() {
    let mut text = String::from(
        "What happens to a task in each state, by each command, for each caller.\n\
         `→ STATE` it moves there; `ok` accepted, the state stays; `·` not permitted; else the code of the refusal.\n\
         A column that is `·` throughout is left out. \"its reviewer\" holds the review, or gave the approval.\n\n",
    );
    for index in 0..task_commands(&Actor::Human).len() {
        text.push_str(&table(index));
        text.push('\n');
    }
    text.push_str(&others_table());
    insta::assert_snapshot!("matrix", text);
}

/// The forbidden transitions, for every command and every caller.
///
/// Covers: TS-02
#[test]
fn forbidden_transitions_never_happen() {
    let forbidden: BTreeSet<(Status, Status)> = BTreeSet::from([
        (Status::Draft, Status::Claimed),
        (Status::Claimed, Status::Merged),
        (Status::Claimed, Status::Approved),
        (Status::Rejected, Status::Approved),
    ]);
    let mut seen = 0;
    for (from, to, verb) in edges() {
        assert!(!forbidden.contains(&(from, to)), "{from} → {to} by {verb}");
        assert!(!from.is_terminal() || from == to, "{from} → {to} by {verb}");
        seen += 1;
    }
    assert!(seen > 20, "the search found only {seen} transitions");
}

/// Every transition that any command by any caller makes, also with all counters at their limits.
pub(crate) fn edges() -> BTreeSet<(Status, Status, String)> {
    let mut found = BTreeSet::new();
    for &status in Status::ALL {
        for (_, actor) in callers() {
            for command in task_commands(&actor) {
                for at_limit in [false, true] {
                    let mut state = board_for(status, &command);
                    if at_limit {
                        exhaust(&mut state);
                    }
                    let Ok(decided) = apply(&state.board, &request(actor, command.clone())) else { continue };
                    let Some(record) = decided.change.tasks.get(&task("t")) else { continue };
                    let to = record.status.unwrap();
                    let claims = matches!(command, Command::ClaimTask(_));
                    if to != status || claims {
                        found.insert((status, to, command.verb().to_owned()));
                    }
                }
            }
        }
    }
    found
}

/// All counters are at their limits.
fn exhaust(state: &mut State) {
    edit_task(state, "t", |record| {
        record.iteration = Some(10);
        record.crashes = Some(4);
        record.max_review_cycles = Some(1);
    });
    config(state).max_review_cycles = 1;
}
