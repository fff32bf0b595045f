//! Alarms about the team: agents that wait for the human, and missing roles.

use liza_core::model::{
    AgentId, ClientRecord, EventName, Role, Seconds, Sprint, Status, TaskId, TaskRecord, TaskSummary,
    Timestamp,
};
use liza_core::rules::approvals::lacks_approval;
use liza_core::rules::claimable::claimable;
use liza_core::rules::clients::{Continuation, describe_hold, first_verb, waits_for_human};
use liza_core::rules::impact::high_impact;
use liza_core::rules::questions::{Question, open_questions};
use liza_core::rules::session_budget::SessionBudget;
use liza_core::rules::spending::{Amount, Spending, SpendingScope, exceeded_by_last_session, spending};
use liza_core::rules::triggers::{Trigger, TriggerKind, in_words};
use liza_core::supervise::{PlannerStop, planner_stop, unseen_triggers};
use liza_core::text::count;

use super::task::verdict_command;
use super::{Alarm, AlarmKind, AlarmLevel, Moment, answer_question};
use crate::command_line::{OPEN, liza};

/// The time that work may wait for a role of which no agent is running, while others are.
const MISSING_GRACE: Seconds = Seconds(120);

pub(super) fn alarms(at: Moment<'_>) -> Vec<Alarm> {
    let Moment { state, seen, now } = at;
    let mut found: Vec<Alarm> = open_questions(state).iter().map(question).collect();
    found.extend(exceeded_by_last_session(&state.board).iter().map(exceeded));
    if at.open_goal().is_none() {
        found.extend(spending(&state.board, now).iter().filter(|spent| spent.is_used_up()).map(exceeded));
        return found;
    }
    found.extend(planner_stopped(at));
    found.extend(held_clients(at));
    found.extend(spending(&state.board, now).iter().filter_map(budget));
    found.extend(state.board.summaries().filter_map(|summary| dropped_review(at, summary)));
    found.extend(state.board.summaries().filter_map(|summary| second_reviewer(at, summary)));
    if seen.stop_files.pause.is_none() && seen.stop_files.checkpoint.is_none() {
        found.extend(Role::ALL.into_iter().filter_map(|role| missing_role(at, role)));
    }
    found
}

/// Clients that cannot be used now.
fn held_clients(at: Moment<'_>) -> impl Iterator<Item = Alarm> {
    let then = Continuation { has_team: at.here().has_team(), run: &at.seen.start.run };
    let alarm = move |(name, client): (&String, &ClientRecord)| {
        let hold = client.hold.as_ref()?;
        let text = format!("{name}: {}", describe_hold(hold, then, at.now));
        let level = if hold.until.is_none() { AlarmLevel::Critical } else { AlarmLevel::Warning };
        let answer = waits_for_human(client).then(|| match then.has_team {
            true => liza!(first_verb(hold)),
            false => at.seen.start.run.clone(),
        });
        Some(Alarm::new(AlarmKind::ClientHeld, name, text).at(level).since(hold.since).answered(answer))
    };
    at.sprint().into_iter().flat_map(|sprint| &sprint.clients).filter_map(alarm)
}

/// A budget of which much is used. 80 % and 100 % are two alarms; so are dollars and tokens, and two days.
fn budget(spent: &Spending) -> Option<Alarm> {
    if !spent.is_used_up() {
        return spent.is_high().then(|| exceeded(spent));
    }
    let setting = spent.setting();
    let text =
        format!("{spent}; nothing new starts. To raise it: liza config {setting} AMOUNT; then: liza resume");
    let alarm = Alarm { text: text.into(), ..exceeded(spent) };
    Some(alarm.at(AlarmLevel::Critical).answered(liza!("config", setting, OPEN)))
}

/// A budget that stops nothing: most of it is used, or the last session has exceeded it.
fn exceeded(spent: &Spending) -> Alarm {
    let since = match &spent.scope {
        SpendingScope::Task(_) | SpendingScope::Sprint => None,
        SpendingScope::Day(until) => Some(*until),
    };
    let unit = match spent.amount {
        Amount::Dollars { .. } => "dollars",
        Amount::Tokens { .. } => "tokens",
    };
    let amount = format!("{} % of the {unit}", if spent.is_used_up() { 100 } else { 80 });
    let (subject, task) = match &spent.scope {
        SpendingScope::Task(task) => (format!("{task}:{amount}"), Some(task)),
        SpendingScope::Sprint => (format!("sprint {amount}"), None),
        SpendingScope::Day(_) => (format!("day {amount}"), None),
    };
    Alarm::new(AlarmKind::Budget, subject, spent.to_string()).about(task).since(since)
}

fn question(question: &Question) -> Alarm {
    let task = question.task.as_ref();
    let about = task.map_or("the goal", TaskId::as_str);
    let text = format!("{} asks about {about}: {}", question.by, question.text);
    let alarm = Alarm::new(AlarmKind::Question, task.map_or("goal", TaskId::as_str), text).about(task);
    alarm.since(question.asked).answered(answer_question(task))
}

/// The planner waits for the human although there is something to plan.
fn planner_stopped(at: Moment<'_>) -> Option<Alarm> {
    let (sprint, stop) = (at.sprint()?, planner_stop(at.state, at.now)?);
    let pending = unseen_triggers(at.state, at.now);
    let first = pending.first()?;
    Some(match stop {
        PlannerStop::NoResult => no_result(at, sprint, &pending),
        PlannerStop::SessionsUsedUp => {
            let used = SessionBudget::Planner.used(sprint);
            let used = count(usize::try_from(used).unwrap_or(usize::MAX), "session");
            let text =
                format!("the planner had {used} without a merge; {} {} waits", first.kind, first.subject);
            Alarm::new(AlarmKind::SessionBudget, "planner", text)
        }
    })
}

fn no_result(at: Moment<'_>, sprint: &Sprint, pending: &[Trigger]) -> Alarm {
    let exits = &sprint.planner_exits;
    let woken = exits.woken_because.clone().unwrap_or_else(|| in_words(pending));
    let mut text = sessions_without_result(exits.count, &woken, exits.last_words.as_deref());
    let stop = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    text.push_str(&format!("{stop} If it asks something, answer first: liza note \"...\""));
    if let Some(draft) = pending.iter().find(|trigger| trigger.kind == TriggerKind::NewDraft) {
        text.push_str(&format!("; or drop the draft: liza abandon-task {} --reason TEXT", draft.subject));
    }
    // A planner that runs reads a note; each new one begins from zero.
    let command = match at.here().has_role(Role::Planner) {
        true => liza!("note", OPEN),
        false => at.start(Role::Planner).clone(),
    };
    Alarm::new(AlarmKind::PlannerStopped, "planner", text).answered(command)
}

/// The sentence about planning sessions that ended without a result; `woken` is their reason in words.
pub fn sessions_without_result(sessions: u32, woken: &str, last_words: Option<&str>) -> String {
    let sessions = count(sessions as usize, "planning session");
    let woken = if woken.is_empty() { String::new() } else { format!("; woken because {woken}") };
    let words = last_words.unwrap_or("nothing");
    format!("{sessions} in a row ended without a result{woken}; the last one ended with: {words}")
}

/// A submission that every running code reviewer has dropped.
fn dropped_review(at: Moment<'_>, summary: &TaskSummary) -> Option<Alarm> {
    let dropped = &summary.review_dropped_by;
    if !summary.is(Status::ReadyForReview)
        || dropped.is_empty()
        || !at.here().of(Role::CodeReviewer).all(|(id, _)| dropped.contains(&id))
    {
        return None;
    }
    let (id, names) = (&summary.id, names(dropped));
    let record = at.record(id)?;
    let last = record.events().rev().find(|event| event.is(EventName::SessionEnded));
    let why = last.and_then(|event| event.text("refused")).map(|why| format!(": {why}")).unwrap_or_default();
    let what = format!(
        "the sessions of {names} ended without a verdict{why}. Look at it (liza diff {id}), then approve it, send it back \
         (liza submit-verdict {id} REJECTED \"...\"), or let them try again: liza answer {id} \"...\""
    );
    Some(Alarm::of_task(AlarmKind::ReviewDropped, id, what).answered(verdict_command(id, record)))
}

/// A submission of high impact that one code reviewer has approved, if no other is here for longer than a lease.
fn second_reviewer(at: Moment<'_>, summary: &TaskSummary) -> Option<Alarm> {
    let (id, approved) = (&summary.id, &summary.approved_so_far);
    let (record, config) = (at.record(id)?, at.config()?);
    let waits = summary.is(Status::ReadyForReview) && !approved.is_empty() && summary.review_is_free(at.now);
    let may_not = |id: AgentId| approved.contains(&id) || summary.review_dropped_by.contains(&id);
    let since = record.last_event(EventName::Approved)?.time;
    let is_late = at.now >= since + config.lease_duration;
    if !waits || !is_late || !at.here().of(Role::CodeReviewer).all(|(id, _)| may_not(id)) {
        return None;
    }
    let what = format!(
        "its impact is high ({}), so two code reviewers have to approve it. {} did, and no other is running. \
         Look at it (liza diff {id}), then approve it, send it back (liza submit-verdict {id} REJECTED \"...\"), or \
         start another one: {}",
        high_impact(config, record).join(", "),
        names(approved),
        at.seen.start.agent(Role::CodeReviewer)
    );
    let alarm = Alarm::of_task(AlarmKind::SecondReviewer, id, what).since(since);
    Some(alarm.answered(verdict_command(id, record)))
}

fn names(agents: &[AgentId]) -> String {
    agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Work waits for a role of which no agent is running, while agents of other roles are.
fn missing_role(at: Moment<'_>, role: Role) -> Option<Alarm> {
    if at.here().has_role(role) || !at.here().agents().any(|(_, entry)| entry.is_live(at.now)) {
        return None;
    }
    let last_of = |id: &TaskId| last_event(at.record(id)?);
    let waiting: Vec<Option<Timestamp>> = match role {
        Role::Planner => unseen_triggers(at.state, at.now).iter().map(|_| at.seen.last_progress).collect(),
        Role::Coder => {
            let open = at.seen.found_merges().without_waiting(claimable(at.board(), at.now));
            open.iter().map(last_of).collect()
        }
        Role::CodeReviewer => {
            let waits = |summary: &&TaskSummary| {
                (summary.is(Status::ReadyForReview) || summary.is(Status::Approved))
                    && at.seen.found_merges().of(&summary.id).is_none()
                    && !at.record(&summary.id).is_some_and(lacks_approval)
            };
            at.board().summaries().filter(waits).map(|summary| last_of(&summary.id)).collect()
        }
    };
    let since = waiting.iter().flatten().min().copied()?;
    let what = if role == Role::Planner { "decision" } else { "task" };
    let verb = if waiting.len() == 1 { "waits" } else { "wait" };
    let text = format!("no {} is running, and {} {verb} for one", role.title(), count(waiting.len(), what));
    let alarm = || Alarm::new(AlarmKind::RoleMissing, role.id_prefix(), text).since(since);
    (at.now.since(since) > MISSING_GRACE).then(|| alarm().answered(at.start(role).clone()))
}

fn last_event(record: &TaskRecord) -> Option<Timestamp> {
    record.events().next_back().map(|event| event.time).or(record.created)
}
