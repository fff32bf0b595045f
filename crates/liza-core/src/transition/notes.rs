//! Notes between minds: handoff, anomaly, discover, convert-discovery, note, spec-change, align.

use crate::agent::{Actor, AgentStatus, Role};
use crate::change::Appended;
use crate::command::HandoffNotes;
use crate::event::{EventName, LogAction};
use crate::goal::Alignment;
use crate::ids::{AgentId, DiscoveryId, TaskId};
use crate::notes::{
    Anomaly, AnomalyType, Discovery, Handoff, HumanNote, Severity, SpecChange, Urgency, detail_faults,
};
use crate::refusal::Refusal;
use crate::task::Task;
use crate::value::{Fields, Value};

use super::own::own_claim;
use super::tx::{Tx, required};

/// As long as a phrase may be that a tired agent can still write and a fresh one can still take in.
const PHRASE_MAX: usize = 300;

fn phrase<'t>(text: &'t str, what: &'static str) -> Result<&'t str, Refusal> {
    let text = required(text, what)?;
    if text.contains('\n') || text.chars().count() > PHRASE_MAX {
        let problem = format!("one phrase on one line, at most {PHRASE_MAX} characters");
        return Err(Refusal::BadText { what, problem });
    }
    Ok(text)
}

/// The agent that writes the notes; they are for the next session on what it holds.
fn writer(tx: &Tx<'_>, task: &Task) -> Result<AgentId, Refusal> {
    let agent = tx.actor.agent().ok_or_else(|| tx.wrong_status(task, "an agent's own session"))?;
    match agent.role() {
        Role::Coder => own_claim(tx, task).map(|(coder, _)| coder),
        Role::CodeReviewer if task.status.review().is_some_and(|review| review.by == agent) => Ok(agent),
        Role::CodeReviewer => {
            let with = format!("it is {}", task.status.name());
            Err(Refusal::NotYourReview { task: task.id.clone(), agent, with })
        }
        Role::Planner if task.status.name().is_terminal() => Err(tx.wrong_status(task, "an open task")),
        Role::Planner => Ok(agent),
    }
}

/// A session whose context is used up leaves its knowledge to the next one.
pub(super) fn handoff(
    tx: &mut Tx<'_>,
    id: &TaskId,
    notes: &HandoffNotes,
    dirty: &[String],
) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    let agent = writer(tx, &task)?;
    let summary = phrase(&notes.summary, "where the task stands (--summary)")?;
    let next_action = phrase(&notes.next_action, "what to do first (--next-action)")?;
    if agent.role() == Role::Coder && !dirty.is_empty() {
        return Err(Refusal::DirtyWorktree { task: id.clone(), paths: dirty.to_vec() });
    }
    let entry = tx.find_agent(agent)?;
    let percent = notes.context_percent.or_else(|| entry.as_ref().and_then(|entry| entry.context_percent));
    let record = Handoff {
        agent,
        role: Some(agent.role()),
        context_used: percent.map(|percent| format!("{percent}%")),
        timestamp: Some(tx.now),
        summary: summary.to_owned(),
        next_action: next_action.to_owned(),
        approach: notes.approach.clone(),
        blockers: notes.blockers.clone(),
        files_modified: notes.files_modified.clone(),
        next_steps: notes.next_steps.clone(),
    };
    tx.handoffs()?.insert(id.clone(), record);
    if let Some(mut entry) = entry {
        entry.status = AgentStatus::Handoff;
        tx.put_agent(agent, entry);
    }
    if agent.role() != Role::Planner {
        task.record.handoff_pending = Some(true);
        task.record.crashes = None;
        task.record.idle_exits = None;
    }
    task.remember(tx.event(EventName::Handoff).with("summary", summary).with("next_action", next_action));
    tx.settle(task, EventName::Handoff, summary);
    Ok(())
}

/// The next session has been given the notes; they stay to be read, the flag goes.
pub(super) fn take_handoff(tx: &mut Tx<'_>, id: &TaskId) -> Result<(), Refusal> {
    let mut task = tx.task(id)?;
    if let Some(agent) = tx.actor.agent().filter(|agent| !task.status.is_held_by(*agent)) {
        let with = format!("it is {}", task.status.name());
        return Err(Refusal::NotYourTask { task: id.clone(), agent, with });
    }
    if task.record.handoff_pending != Some(true) {
        return Err(Refusal::NothingToDo { what: "take over: no handoff is pending" });
    }
    task.record.handoff_pending = Some(false);
    tx.reply_task(&task);
    tx.put(task);
    Ok(())
}

/// The task that a note names, if it names one, exists.
fn check_task(tx: &Tx<'_>, task: Option<&TaskId>) -> Result<(), Refusal> {
    match task.filter(|task| !tx.knows(task)) {
        Some(unknown) => Err(Refusal::UnknownTask { task: unknown.clone() }),
        None => Ok(()),
    }
}

/// Each role logs what the duty table gives it; people and supervisors log anything.
fn check_duty(tx: &Tx<'_>, kind: AnomalyType) -> Result<(), Refusal> {
    let role = match tx.actor {
        Actor::Human | Actor::Supervisor(..) => return Ok(()),
        Actor::Agent(id, _) | Actor::Operator(id) => id.role(),
    };
    if kind.duty_of().contains(&role) {
        return Ok(());
    }
    let duty: Vec<&str> = kind.duty_of().iter().map(|role| role.title()).collect();
    Err(Refusal::NotYourDuty { role, kind: kind.name(), duty: duty.join(" and ") })
}

/// Gives each detail its field's type, so that patterns can be found in them.
fn typed_details(kind: AnomalyType, details: &Fields) -> Fields {
    let typed = |(key, value): (&String, &Value)| {
        let value = match value.as_text() {
            Some(text) => kind.detail_type(key).parse(text).unwrap_or_else(|| value.clone()),
            None => value.clone(),
        };
        (key.clone(), value)
    };
    details.iter().map(typed).collect()
}

/// Something is not as it should be.
pub(super) fn anomaly(
    tx: &mut Tx<'_>,
    kind: AnomalyType,
    task: Option<&TaskId>,
    details: &Fields,
) -> Result<(), Refusal> {
    check_duty(tx, kind)?;
    check_task(tx, task)?;
    let details = typed_details(kind, details);
    let faults = detail_faults(kind, &details);
    if !faults.is_empty() {
        return Err(Refusal::BadDetails { kind: kind.name(), faults });
    }
    let detail = match Value::Map(details.clone()).to_string() {
        text if text.is_empty() => kind.name().to_owned(),
        text => format!("{kind}: {text}"),
    };
    tx.append(Appended::Anomaly(Anomaly {
        timestamp: tx.now,
        task: task.cloned(),
        reporter: Some(tx.actor.to_string()),
        kind: kind.name().to_owned(),
        details,
    }));
    tx.log(LogAction::Anomaly, task, &detail);
    tx.reply("type", kind.name());
    Ok(())
}

/// Something else needs doing; the planner decides.
pub(super) fn discover(
    tx: &mut Tx<'_>,
    task: Option<&TaskId>,
    description: &str,
    severity: Severity,
    urgency: Urgency,
    recommendation: Option<&str>,
) -> Result<(), Refusal> {
    check_task(tx, task)?;
    let description = required(description, "what was discovered (--desc)")?.to_owned();
    let (by, now) = (tx.actor.to_string(), tx.now);
    let discovered = tx.discovered()?;
    let id = DiscoveryId(discovered.iter().map(|found| found.id.0).max().unwrap_or(0).saturating_add(1));
    discovered.push(Discovery {
        id,
        by: Some(by),
        during: task.cloned(),
        description: description.clone(),
        severity,
        urgency,
        recommendation: recommendation.map(str::to_owned),
        created: Some(now),
        converted_to_task: None,
    });
    tx.log(LogAction::Discovered, task, &format!("{id}: {description}"));
    tx.reply("discovery", id.to_string());
    Ok(())
}

/// A discovery has become a task.
pub(super) fn convert(tx: &mut Tx<'_>, id: DiscoveryId, task: &TaskId) -> Result<(), Refusal> {
    check_task(tx, Some(task))?;
    let found = tx.discovered()?.iter_mut().find(|found| found.id == id);
    let found = found.ok_or(Refusal::UnknownDiscovery { discovery: id })?;
    if let Some(earlier) = &found.converted_to_task {
        return Err(Refusal::AlreadyConverted { discovery: id, task: earlier.clone() });
    }
    found.converted_to_task = Some(task.clone());
    tx.log(LogAction::Discovered, Some(task), &format!("{id} became {task}"));
    tx.reply("discovery", id.to_string());
    tx.reply("task", task.as_str());
    Ok(())
}

/// The human has something to say, to all or to whoever works on one task.
pub(super) fn note(tx: &mut Tx<'_>, message: &str, to: Option<&TaskId>) -> Result<(), Refusal> {
    check_task(tx, to)?;
    let message = required(message, "the note")?.to_owned();
    tx.log(LogAction::Note, to, &message);
    tx.reply("for", to.map_or(Value::Null, |task| task.as_str().into()));
    tx.append(Appended::HumanNote(HumanNote { timestamp: tx.now, message, to: to.cloned() }));
    Ok(())
}

/// A specification changed.
pub(super) fn spec_change(
    tx: &mut Tx<'_>,
    spec: &str,
    change: &str,
    triggered_by: &str,
) -> Result<(), Refusal> {
    let spec = required(spec, "which specification (--spec)")?.to_owned();
    let change = required(change, "what changed (--change)")?.to_owned();
    let triggered_by = required(triggered_by, "what made it necessary (--triggered-by)")?.to_owned();
    tx.log(LogAction::SpecUpdated, None, &format!("{spec}: {change}"));
    tx.reply("spec", spec.as_str());
    let triggered_by = Some(triggered_by);
    tx.append(Appended::SpecChange(SpecChange { timestamp: tx.now, spec, change, triggered_by }));
    Ok(())
}

/// How the work stands to the goal.
pub(super) fn align(tx: &mut Tx<'_>, summary: &str) -> Result<(), Refusal> {
    let summary = required(summary, "how the work stands to the goal (--summary)")?.to_owned();
    tx.log(LogAction::Aligned, None, &summary);
    let event = "alignment".to_owned();
    tx.reply("event", event.as_str());
    tx.append(Appended::Alignment(Alignment { timestamp: tx.now, event, summary }));
    Ok(())
}
