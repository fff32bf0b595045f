//! Goal, sprint, checkpoint, pause, resume, abort, the breaker's record, archive.
//!
//! Nothing here resumes or aborts by itself: those are the human's.

use crate::agent::{Actor, AgentStatus};
use crate::board::Section;
use crate::breaker::{BreakerStatus, Finding, Trigger};
use crate::change::Appended;
use crate::command::CheckpointCause;
use crate::effect::{Effect, HaltFile};
use crate::event::{EventName, HistoryEvent, LogAction};
use crate::goal::{Alignment, Goal, GoalStatus};
use crate::ids::TaskId;
use crate::metrics::Metrics;
use crate::record::{Status, TaskRecord};
use crate::refusal::Refusal;
use crate::sprint::{DECISIONS, Decision, STOP, Sprint, SprintStatus, is_complete};
use crate::task::clear_owned;
use crate::time::Timestamp;
use crate::value::{Fields, Value};

use super::tx::{Tx, required};

fn open_goal(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    match tx.board.goal.get(Section::Goal)?.status {
        GoalStatus::InProgress => Ok(()),
        status @ (GoalStatus::Completed | GoalStatus::Aborted) => Err(Refusal::GoalNotOpen { status }),
    }
}

fn open_tasks(tx: &Tx<'_>) -> Vec<TaskId> {
    let open = |status: Option<Status>| !status.is_some_and(Status::is_terminal);
    tx.board.heads().filter(|head| open(head.status)).map(|head| head.id.clone()).collect()
}

fn refuse_open(tasks: &[TaskId]) -> Result<(), Refusal> {
    if tasks.is_empty() {
        return Ok(());
    }
    let names = tasks.iter().map(ToString::to_string).collect();
    Err(Refusal::TasksOpen { count: tasks.len(), tasks: names })
}

/// The goal is reached: refused while any task is open, and to the planner while the human looks at the sprint.
pub(super) fn complete_goal(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    open_goal(tx)?;
    refuse_open(&open_tasks(tx))?;
    if tx.actor == Actor::Human {
        // Who says so has looked.
        tx.effect(Effect::Lower(HaltFile::Checkpoint));
    } else {
        expect_sprint(tx, "goal complete", "the human's look at it to be over", |status| {
            status != SprintStatus::Checkpoint
        })?;
    }
    let now = tx.now;
    tx.goal()?.status = GoalStatus::Completed;
    let sprint = tx.sprint()?;
    if !sprint.status.is_terminal() {
        sprint.status = SprintStatus::Completed;
        sprint.timeline.ended = Some(now);
    }
    tx.log(LogAction::GoalEnded, None, "goal completed");
    tx.reply("goal", "COMPLETED");
    Ok(())
}

/// Sprint and goal are over for good, by the human.
pub(super) fn abort(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    end_for_good(tx)?;
    tx.log(LogAction::Aborted, None, "goal and sprint aborted");
    Ok(())
}

fn end_for_good(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    open_goal(tx)?;
    let now = tx.now;
    tx.goal()?.status = GoalStatus::Aborted;
    let sprint = tx.sprint()?;
    if !sprint.status.is_terminal() {
        sprint.status = SprintStatus::Aborted;
        sprint.timeline.ended = Some(now);
    }
    // In this order: at no moment does nothing hold the agents back.
    tx.effect(Effect::Raise(HaltFile::Abort));
    tx.effect(Effect::Lower(HaltFile::Checkpoint));
    tx.reply("goal", "ABORTED");
    Ok(())
}

/// States the next goal. What is left of an aborted one is given up; everything goes to the archive.
pub(super) fn new_goal(tx: &mut Tx<'_>, description: &str, spec_ref: Option<&str>) -> Result<(), Refusal> {
    let description = required(description, "the goal")?.to_owned();
    let old = tx.board.goal.get(Section::Goal)?.clone();
    let unstated = old.description.trim().is_empty() && old.status == GoalStatus::InProgress;
    if unstated && tx.board.tasks.is_empty() {
        return state_goal(tx, &description, spec_ref);
    }
    let open = open_tasks(tx);
    if old.status != GoalStatus::Aborted {
        refuse_open(&open)?;
    }
    for id in tx.board.tasks.keys() {
        let mut record = tx.board.body(id)?.record.clone();
        if open.contains(id) {
            give_up(tx, id, &mut record)?;
        }
        move_to_archive(tx, id, record);
    }
    let number = old.id.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(1u32);
    let goal = Goal {
        id: format!("goal-{}", number.saturating_add(1)),
        description: description.clone(),
        spec_ref: spec_ref.map(str::to_owned).or_else(|| old.spec_ref.clone()),
        created: Some(tx.now),
        status: GoalStatus::InProgress,
    };
    let (id, now) = (goal.id.clone(), tx.now);
    *tx.goal()? = goal;
    tx.close_goal(old);
    let past = tx.board.sprint.get(Section::Sprint)?.clone();
    let mut next = Sprint::begin(past.number().saturating_add(1), &id, now);
    next.timeline.paused_at = past.timeline.paused_at;
    *tx.sprint()? = next;
    tx.close_sprint(past);
    tx.handoffs()?.clear();
    // The look was at the sprint that is now in the archive. PAUSE stays: it is about the agents, not about the goal.
    tx.effect(Effect::Lower(HaltFile::Checkpoint));
    tx.effect(Effect::Lower(HaltFile::Abort));
    announce_goal(tx, id, &description);
    Ok(())
}

/// Says what is wanted where nobody had said it yet: there is nothing to put into the archive.
fn state_goal(tx: &mut Tx<'_>, description: &str, spec_ref: Option<&str>) -> Result<(), Refusal> {
    let goal = tx.goal()?;
    goal.description = description.to_owned();
    goal.spec_ref = spec_ref.map(str::to_owned).or_else(|| goal.spec_ref.take());
    let id = goal.id.clone();
    announce_goal(tx, id, description);
    Ok(())
}

fn announce_goal(tx: &mut Tx<'_>, id: String, description: &str) {
    let (timestamp, event) = (tx.now, "initialization".to_owned());
    let summary = format!("Initial alignment: {description}");
    tx.append(Appended::Alignment(Alignment { timestamp, event, summary }));
    tx.log(LogAction::GoalCreated, None, description);
    tx.reply("goal", id);
}

fn give_up(tx: &mut Tx<'_>, id: &TaskId, record: &mut TaskRecord) -> Result<(), Refusal> {
    for agent in [record.assigned_to, record.reviewing_by].into_iter().flatten() {
        tx.free_agent(agent, id, AgentStatus::Idle)?;
    }
    if record.worktree.is_some() {
        tx.effect(Effect::RemoveWorktree { task: id.clone() });
    }
    clear_owned(record);
    record.status = Some(Status::Abandoned);
    record.reservation = None;
    let event = HistoryEvent::new(tx.now, EventName::Abandoned, tx.actor).with("reason", "goal aborted");
    record.history.get_or_insert_default().push(event);
    Ok(())
}

/// Closes the sprint and begins the next one with what is still open.
pub(super) fn start_next_sprint(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let past = tx.sprint()?.clone();
    let goal = tx.board.goal.get(Section::Goal)?.id.clone();
    let mut next = Sprint::begin(past.number().saturating_add(1), &goal, tx.now);
    // What the planner has seen is not new because the sprint is.
    next.seen_triggers = past.seen_triggers.clone();
    next.timeline.paused_at = past.timeline.paused_at;
    for id in open_tasks(tx) {
        let stretch = past.scope.stretch.contains(&id);
        if stretch { next.scope.stretch.push(id) } else { next.scope.planned.push(id) }
    }
    tx.reply("sprint", next.id.as_str());
    *tx.sprint()? = next;
    tx.close_sprint(past);
    Ok(())
}

fn expect_sprint(
    tx: &mut Tx<'_>,
    verb: &'static str,
    needed: &'static str,
    fits: fn(SprintStatus) -> bool,
) -> Result<(), Refusal> {
    let status = tx.board.sprint.get(Section::Sprint)?.status;
    if fits(status) { Ok(()) } else { Err(Refusal::SprintStatus { status, verb, needed }) }
}

/// The next sprint, by the human.
pub(super) fn new_sprint(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    open_goal(tx)?;
    expect_sprint(tx, "sprint new", "a finished sprint", SprintStatus::is_terminal)?;
    start_next_sprint(tx)?;
    tx.effect(Effect::Lower(HaltFile::Checkpoint));
    let id = tx.sprint()?.id.clone();
    tx.log(LogAction::SprintStarted, None, &id);
    Ok(())
}

/// All planned tasks are terminal.
pub(super) fn complete(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    expect_sprint(tx, "completing it", "IN_PROGRESS", |status| status == SprintStatus::InProgress)?;
    let planning = tx.board.agents()?.values();
    let planning =
        planning.filter(|entry| entry.status == AgentStatus::Planning).any(|entry| entry.holds(tx.now));
    if !is_complete(tx.board, tx.board.sprint.get(Section::Sprint)?, planning) {
        let why = match open_tasks(tx).first() {
            Some(task) => format!("{task} is open"),
            None if planning => "a planning session runs".to_owned(),
            None => "nothing is planned".to_owned(),
        };
        return Err(Refusal::SprintNotComplete { why });
    }
    let now = tx.now;
    let sprint = tx.sprint()?;
    sprint.status = SprintStatus::Completed;
    sprint.timeline.ended = Some(now);
    let id = sprint.id.clone();
    tx.log_as("system", LogAction::SprintCompleted, None, &id);
    tx.reply("sprint", "COMPLETED");
    Ok(())
}

/// Everybody stops for a human's look.
pub(super) fn checkpoint(tx: &mut Tx<'_>, cause: &CheckpointCause) -> Result<(), Refusal> {
    expect_sprint(tx, "checkpoint", "an open sprint", |status| !status.is_terminal())?;
    let now = tx.now;
    if *cause == CheckpointCause::Deadline && !tx.board.sprint.get(Section::Sprint)?.deadline_due(now) {
        return Err(Refusal::NothingToDo { what: "check: the deadline has not come" });
    }
    let begun = enter_checkpoint(tx)?;
    match cause {
        CheckpointCause::Human if begun => tx.log(LogAction::Checkpoint, None, "checkpoint asked for"),
        CheckpointCause::Human => {}
        CheckpointCause::Deadline => {
            // A deadline that comes while somebody looks is met by that look.
            tx.sprint()?.timeline.checkpoint_at = Some(now);
            tx.log_as("system", LogAction::Checkpoint, None, "the sprint's deadline has come");
        }
    }
    tx.reply("sprint", "CHECKPOINT");
    tx.reply("changed", begun);
    Ok(())
}

/// Stops the sprint for a look; false where it had stopped before.
fn enter_checkpoint(tx: &mut Tx<'_>) -> Result<bool, Refusal> {
    tx.effect(Effect::Raise(HaltFile::Checkpoint));
    // A second call does not make the wait look shorter than it is.
    if tx.board.sprint.get(Section::Sprint)?.status == SprintStatus::Checkpoint {
        return Ok(false);
    }
    let now = tx.now;
    let sprint = tx.sprint()?;
    sprint.timeline.checkpoint_at = Some(now);
    sprint.status = SprintStatus::Checkpoint;
    Ok(true)
}

fn leave_checkpoint(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    if tx.board.sprint.get(Section::Sprint)?.status == SprintStatus::Checkpoint {
        tx.sprint()?.status = SprintStatus::InProgress;
    }
    tx.effect(Effect::Lower(HaltFile::Checkpoint));
    Ok(())
}

/// Everybody stops for a while. Said twice it is the same pause.
pub(super) fn pause(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let now = tx.now;
    // A blackboard whose sprint cannot be read is no reason to let everybody run on.
    let known = tx.board.sprint.ready().is_some_and(|sprint| sprint.timeline.paused_at.is_some());
    if !known && let Ok(sprint) = tx.sprint() {
        sprint.timeline.paused_at = Some(now);
    }
    tx.effect(Effect::Raise(HaltFile::Pause));
    let changed = !known || !tx.halt.pause;
    if changed {
        tx.log(LogAction::Paused, None, "paused");
    }
    tx.reply("paused", true);
    tx.reply("changed", changed);
    Ok(())
}

/// Everybody goes on; what the human decided is kept. The decision to stop ends the goal instead.
pub(super) fn resume(tx: &mut Tx<'_>, decision: Option<&str>, note: Option<&str>) -> Result<(), Refusal> {
    if let Some(decision) = decision.filter(|decision| !DECISIONS.contains(decision)) {
        let problem = format!("{decision:?} is not one of {}", DECISIONS.join(", "));
        return Err(Refusal::BadText { what: "decision", problem });
    }
    let before = tx.board.sprint.get(Section::Sprint)?.status;
    let at_checkpoint = before == SprintStatus::Checkpoint;
    let stop = decision == Some(STOP);
    if stop {
        end_for_good(tx)?
    } else {
        leave_checkpoint(tx)?
    }
    let paused = tx.board.sprint.get(Section::Sprint)?.timeline.paused_at.is_some();
    if paused {
        tx.sprint()?.timeline.paused_at = None;
    }
    tx.effect(Effect::Lower(HaltFile::Pause));
    if at_checkpoint || decision.is_some() {
        decide(tx, decision.unwrap_or("continue"), note)?;
    }
    let detail = match (decision, note) {
        (Some(decision), Some(note)) => format!("{decision}: {note}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => "resumed".to_owned(),
    };
    let stood = at_checkpoint || paused || tx.halt.pause || tx.halt.checkpoint;
    let changed = stood || decision.is_some() || note.is_some();
    if changed {
        tx.log(if stop { LogAction::Aborted } else { LogAction::Resumed }, None, &detail);
    }
    let after = match before {
        SprintStatus::InProgress | SprintStatus::Checkpoint if stop => SprintStatus::Aborted,
        SprintStatus::Checkpoint => SprintStatus::InProgress,
        same @ (SprintStatus::InProgress | SprintStatus::Completed | SprintStatus::Aborted) => same,
    };
    tx.reply("paused", false);
    tx.reply("changed", changed);
    tx.reply("sprint", after.to_string());
    Ok(())
}

/// The blackboard follows what a person did with the stop files. Whoever comes second finds nothing to do.
pub(super) fn follow_file(tx: &mut Tx<'_>, file: HaltFile, since: Option<Timestamp>) -> Result<(), Refusal> {
    let sprint = tx.board.sprint.get(Section::Sprint)?;
    let (status, paused, halt) = (sprint.status, sprint.timeline.paused_at.is_some(), tx.halt);
    let since = since.map(|since| since.min(tx.now).max(sprint.timeline.started.unwrap_or(since)));
    match (file, since) {
        (HaltFile::Abort, Some(_)) => abort(tx),
        (HaltFile::Checkpoint, Some(since)) if status == SprintStatus::InProgress => {
            enter_checkpoint(tx)?;
            tx.sprint()?.timeline.checkpoint_at = Some(since);
            tx.log(LogAction::Checkpoint, None, "CHECKPOINT was put up by hand");
            Ok(())
        }
        // Somebody may have put it up again since it was missed.
        (HaltFile::Checkpoint, None) if status == SprintStatus::Checkpoint && !halt.checkpoint => {
            leave_checkpoint(tx)?;
            decide(tx, "continue", Some("CHECKPOINT was taken away by hand"))?;
            tx.log(LogAction::Resumed, None, "CHECKPOINT was taken away by hand");
            Ok(())
        }
        (HaltFile::Pause, Some(since)) if !paused => {
            tx.sprint()?.timeline.paused_at = Some(since);
            tx.log(LogAction::Paused, None, "PAUSE was put up by hand");
            Ok(())
        }
        (HaltFile::Pause, None) if paused && !halt.pause => {
            tx.sprint()?.timeline.paused_at = None;
            tx.log(LogAction::Resumed, None, "PAUSE was taken away by hand");
            Ok(())
        }
        (HaltFile::Abort | HaltFile::Checkpoint | HaltFile::Pause, _) => {
            Err(Refusal::NothingToDo { what: "follow: the blackboard agrees with the file" })
        }
    }
}

/// Keeps what the human decided.
fn decide(tx: &mut Tx<'_>, decision: &str, note: Option<&str>) -> Result<(), Refusal> {
    let entry = Decision { timestamp: tx.now, decision: decision.to_owned(), note: note.map(str::to_owned) };
    tx.sprint()?.decisions.push(entry);
    Ok(())
}

/// When a human wants to look at the latest.
pub(super) fn set_deadline(tx: &mut Tx<'_>, deadline: Option<Timestamp>) -> Result<(), Refusal> {
    expect_sprint(tx, "sprint deadline", "an open sprint", |status| !status.is_terminal())?;
    tx.sprint()?.timeline.deadline = deadline;
    let detail = deadline.map_or("no deadline".to_owned(), |deadline| format!("deadline {deadline}"));
    tx.log(LogAction::SprintUpdated, None, &detail);
    tx.reply("deadline", deadline.map_or(Value::Null, Value::Time));
    Ok(())
}

/// What was learned.
pub(super) fn retrospective(tx: &mut Tx<'_>, text: &str) -> Result<(), Refusal> {
    tx.sprint()?.retrospective = Some(required(text, "the retrospective")?.to_owned());
    tx.log(LogAction::SprintUpdated, None, "retrospective written");
    Ok(())
}

/// The sprint's figures; no log entry, since nothing happened.
pub(super) fn update_metrics(tx: &mut Tx<'_>, metrics: &Metrics) -> Result<(), Refusal> {
    if tx.board.sprint.get(Section::Sprint)?.metrics != *metrics {
        tx.sprint()?.metrics = metrics.clone();
    }
    Ok(())
}

/// What the planner has been woken for; the same unchanged trigger does not wake it again.
pub(super) fn see_triggers(tx: &mut Tx<'_>, keys: &[String]) -> Result<(), Refusal> {
    if tx.board.sprint.get(Section::Sprint)?.seen_triggers != keys {
        tx.sprint()?.seen_triggers = keys.to_vec();
    }
    Ok(())
}

/// What the breaker found. It fires once per trigger; a quiet check clears nothing.
pub(super) fn record_analysis(tx: &mut Tx<'_>, findings: &[Finding]) -> Result<(), Refusal> {
    let (now, quiet) =
        (tx.now, tx.board.circuit_breaker.get(Section::CircuitBreaker)?.status == BreakerStatus::Ok);
    let resolved = tx.board.circuit_breaker.get(Section::CircuitBreaker)?.last_resolution();
    tx.breaker()?.last_check = Some(now);
    // They were found outside the lock: what a human has settled meanwhile does not fire again.
    let unsettled = |finding: &&Finding| {
        finding.evidence.iter().all(|(anomaly, _)| resolved.is_none_or(|when| anomaly.timestamp > when))
    };
    let Some(first) = findings.iter().find(unsettled).filter(|_| quiet) else {
        tx.reply("status", if quiet { "OK" } else { "TRIGGERED" });
        tx.reply("fired", false);
        return Ok(());
    };
    let breaker = tx.breaker()?;
    breaker.status = BreakerStatus::Triggered;
    breaker.current_trigger = Some(Trigger {
        timestamp: now,
        pattern: first.pattern.name().to_owned(),
        severity: Some(first.pattern.severity().to_owned()),
        common_factor: Some(first.common_factor.clone()),
        tasks: first.tasks(),
    });
    if !tx.board.sprint.get(Section::Sprint)?.status.is_terminal() {
        enter_checkpoint(tx)?;
    }
    let detail = format!("{} ({}): {}", first.pattern.name(), first.pattern.severity(), first.common_factor);
    tx.log_as("system", LogAction::CircuitBreaker, None, &detail);
    tx.reply("status", "TRIGGERED");
    tx.reply("fired", true);
    tx.reply("pattern", first.pattern.name());
    Ok(())
}

/// The human has settled what the breaker had found.
pub(super) fn resolve(tx: &mut Tx<'_>, resolution: &str) -> Result<(), Refusal> {
    let resolution = required(resolution, "how it was settled")?.to_owned();
    let now = tx.now;
    let breaker = tx.breaker()?;
    let Some(trigger) = breaker.current_trigger.take() else { return Err(Refusal::NothingToResolve) };
    breaker.status = BreakerStatus::Ok;
    breaker.history.push(Fields::from_iter([
        ("timestamp".to_owned(), Value::Time(trigger.timestamp)),
        ("pattern".to_owned(), Value::Text(trigger.pattern.clone())),
        ("severity".to_owned(), trigger.severity.map_or(Value::Null, Value::Text)),
        ("result".to_owned(), "TRIGGERED".into()),
        ("resolution".to_owned(), Value::Text(resolution.clone())),
        ("resolved_at".to_owned(), Value::Time(now)),
    ]));
    if tx.board.sprint.get(Section::Sprint)?.status == SprintStatus::Checkpoint {
        decide(tx, "continue", Some(&resolution))?;
    }
    leave_checkpoint(tx)?;
    tx.log(LogAction::CircuitBreaker, None, &format!("{} resolved: {resolution}", trigger.pattern));
    Ok(())
}

/// The archive gets the last record, and the record says so.
fn move_to_archive(tx: &mut Tx<'_>, id: &TaskId, mut record: TaskRecord) {
    record.history.get_or_insert_default().push(tx.event(EventName::Archived));
    tx.put_record(id.clone(), record);
    tx.archive(id.clone());
}

/// Moves terminal tasks out of the live file; their names and states stay.
pub(super) fn archive(tx: &mut Tx<'_>, tasks: &[TaskId]) -> Result<(), Refusal> {
    let sprint = tx.board.sprint.get(Section::Sprint)?;
    for id in tasks {
        let no = |why: &str| Refusal::NotArchivable { task: id.clone(), why: why.to_owned() };
        let record = tx.board.body(id)?.record.clone();
        match record.status {
            Some(status) if status.is_terminal() => {}
            Some(status) => return Err(no(&format!("it is {status}"))),
            None => return Err(no("its status is unknown")),
        }
        if !sprint.status.is_terminal() && sprint.names(id) {
            return Err(no("it belongs to the running sprint"));
        }
        move_to_archive(tx, id, record);
    }
    let names: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    if !names.is_empty() {
        tx.log(
            LogAction::Task(EventName::Archived),
            None,
            &format!("{} task(s): {}", names.len(), names.join(", ")),
        );
    }
    tx.reply("archived", names);
    Ok(())
}
