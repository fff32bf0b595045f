//! Alarms about the team: agents that wait for the human, and missing roles.

use liza_core::model::{
    AgentId, ClientRecord, EventName, GoalStatus, Role, Seconds, Sprint, State, Status, TaskBody, TaskRecord,
    TaskSummary, Timestamp,
};
use liza_core::rules::approvals::lacks_approval;
use liza_core::rules::claimable::claimable;
use liza_core::rules::clients::{Continuation, describe_hold};
use liza_core::rules::impact::high_impact;
use liza_core::rules::questions::{Question, open_questions};
use liza_core::rules::session_budget::SessionBudget;
use liza_core::rules::spending::{Amount, Spending, SpendingScope, exceeded_by_last_session, spending};
use liza_core::rules::triggers::{Trigger, TriggerKind, in_words};
use liza_core::supervise::{PlannerStop, planner_stop, unseen_triggers};
use liza_core::text::count;

use super::{Alarm, AlarmKind, AlarmLevel, AlarmSubject, AlarmText, Observations};

/// The time that work may wait for a role of which no agent is running, while others are.
const MISSING_GRACE: Seconds = Seconds(120);

pub(super) fn alarms(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let mut found: Vec<Alarm> = open_questions(state).iter().map(question).collect();
    found.extend(exceeded_by_last_session(&state.board).iter().map(exceeded));
    if state.board.goal.ready().is_none_or(|goal| goal.status != GoalStatus::InProgress) {
        found.extend(spending(&state.board, now).iter().filter(|spent| spent.is_used_up()).map(exceeded));
        return found;
    }
    found.extend(planner_stopped(state, now));
    found.extend(held_clients(state, seen, now));
    found.extend(spending(&state.board, now).iter().filter_map(budget));
    found.extend(dropped_reviews(state, seen, now));
    found.extend(second_reviewers(state, seen, now));
    let stopped = seen.stop_files.pause.is_some() || seen.stop_files.checkpoint.is_some();
    if !stopped {
        found.extend(
            [Role::Planner, Role::Coder, Role::CodeReviewer]
                .into_iter()
                .filter_map(|role| missing_role(state, role, seen, now)),
        );
    }
    found
}

/// Clients that cannot be used now.
fn held_clients(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let has_team = seen.presence(&state.board, now).has_team();
    let then = Continuation { has_team, run: &seen.start.run };
    let alarm = |(name, client): (&String, &ClientRecord)| {
        let hold = client.hold.as_ref()?;
        let text = format!("{name}: {}", describe_hold(hold, then, now));
        let alarm = match hold.until {
            None => Alarm::critical(AlarmKind::ClientHeld, name.as_str(), text),
            Some(_) => Alarm::warning(AlarmKind::ClientHeld, name.as_str(), text),
        };
        Some(alarm.since(hold.since))
    };
    state.board.sprint.ready().into_iter().flat_map(|sprint| &sprint.clients).filter_map(alarm).collect()
}

/// A budget of which much is used. 80 % and 100 % are two alarms; so are dollars and tokens, and two days.
fn budget(spent: &Spending) -> Option<Alarm> {
    if !spent.is_used_up() {
        return spent.is_high().then(|| exceeded(spent));
    }
    let setting = spent.setting();
    let text =
        format!("{spent}; nothing new starts. To raise it: liza config {setting} AMOUNT; then: liza resume");
    Some(Alarm { level: AlarmLevel::Critical, text: text.into(), ..exceeded(spent) })
}

/// A budget that stops nothing: most of it is used, or the last session has exceeded it.
fn exceeded(spent: &Spending) -> Alarm {
    let since = match &spent.scope {
        SpendingScope::Task(_) | SpendingScope::Sprint => None,
        SpendingScope::Day(until) => Some(*until),
    };
    Alarm::warning(AlarmKind::Budget, budget_subject(spent), spent.to_string()).since(since)
}

pub(crate) fn budget_subject(spent: &Spending) -> AlarmSubject {
    let name = match (&spent.amount, spent.is_used_up()) {
        (Amount::Dollars { .. }, false) => "80 % of the dollars",
        (Amount::Dollars { .. }, true) => "100 % of the dollars",
        (Amount::Tokens { .. }, false) => "80 % of the tokens",
        (Amount::Tokens { .. }, true) => "100 % of the tokens",
    };
    match &spent.scope {
        SpendingScope::Task(task) => AlarmSubject::Figure(task.clone(), name),
        SpendingScope::Sprint => AlarmSubject::Name(format!("sprint {name}")),
        SpendingScope::Day(_) => AlarmSubject::Name(format!("day {name}")),
    }
}

fn question(question: &Question) -> Alarm {
    let about = question.task.as_ref().map_or_else(|| "the goal".to_owned(), ToString::to_string);
    let subject = question.task.as_ref().map_or_else(|| AlarmSubject::from("goal"), AlarmSubject::from);
    let text = format!("{} asks about {about}: {}", question.by, question.text);
    Alarm::warning(AlarmKind::Question, subject, text).since(question.asked)
}

/// The planner waits for the human although there is something to plan.
fn planner_stopped(state: &State, now: Timestamp) -> Option<Alarm> {
    let (sprint, stop) = (state.board.sprint.ready()?, planner_stop(state, now)?);
    let pending = unseen_triggers(state, now);
    let first = pending.first()?;
    Some(match stop {
        PlannerStop::NoResult => no_result(sprint, &pending),
        PlannerStop::SessionsUsedUp => {
            let used = SessionBudget::Planner.used(sprint);
            let used = count(usize::try_from(used).unwrap_or(usize::MAX), "session");
            let text =
                format!("the planner had {used} without a merge; {} {} waits", first.kind, first.subject);
            Alarm::critical(AlarmKind::SessionBudget, "planner", text)
        }
    })
}

fn no_result(sprint: &Sprint, pending: &[Trigger]) -> Alarm {
    let exits = &sprint.planner_exits;
    let woken = exits.woken_because.clone().unwrap_or_else(|| in_words(pending));
    let mut text = sessions_without_result(exits.count, &woken, exits.last_words.as_deref());
    let stop = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    text.push_str(&format!("{stop} If it asks something, answer first: liza note \"...\""));
    if let Some(draft) = pending.iter().find(|trigger| trigger.kind == TriggerKind::NewDraft) {
        text.push_str(&format!("; or drop the draft: liza abandon-task {} --reason TEXT", draft.subject));
    }
    Alarm::critical(AlarmKind::PlannerStopped, "planner", text)
}

/// The sentence about planning sessions that ended without a result; `woken` is their reason in words.
pub fn sessions_without_result(sessions: u32, woken: &str, last_words: Option<&str>) -> String {
    let sessions = count(sessions as usize, "planning session");
    let woken = if woken.is_empty() { String::new() } else { format!("; woken because {woken}") };
    let words = last_words.unwrap_or("nothing");
    format!("{sessions} in a row ended without a result{woken}; the last one ended with: {words}")
}

/// Submissions that every running code reviewer has dropped.
fn dropped_reviews(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let here = seen.presence(&state.board, now);
    let dropped = |summary: &&TaskSummary| {
        let mut reviewers = here.of(Role::CodeReviewer);
        summary.is(Status::ReadyForReview)
            && !summary.review_dropped_by.is_empty()
            && reviewers.all(|(id, _)| summary.review_dropped_by.contains(&id))
    };
    let alarm = |summary: &TaskSummary| {
        let names: Vec<String> = summary.review_dropped_by.iter().map(ToString::to_string).collect();
        let (id, names) = (&summary.id, names.join(", "));
        let record = state.board.body(id).ok().map(TaskBody::record);
        let last =
            record.and_then(|record| record.events().rev().find(|event| event.is(EventName::SessionEnded)));
        let why =
            last.and_then(|event| event.text("refused")).map(|why| format!(": {why}")).unwrap_or_default();
        let what = format!(
            "the sessions of {names} ended without a verdict{why}. Look at it (liza diff {id}), then approve it, send it back \
             (liza submit-verdict {id} REJECTED \"...\"), or let them try again: liza answer {id} \"...\""
        );
        let text = AlarmText::of_task(id, what);
        Alarm::critical(AlarmKind::ReviewDropped, &summary.id, text)
    };
    state.board.summaries().filter(dropped).map(alarm).collect()
}

/// Submissions of high impact that one code reviewer has approved, if no other is here for longer than a lease.
fn second_reviewers(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let (here, config) = (seen.presence(&state.board, now), state.board.config.ready());
    let alarm = |summary: &TaskSummary| {
        let (record, config) = (state.board.body(&summary.id).ok()?.record(), config?);
        let approved = &summary.approved_so_far;
        let waits = summary.is(Status::ReadyForReview) && !approved.is_empty() && summary.review_is_free(now);
        let may_not = |id: AgentId| approved.contains(&id) || summary.review_dropped_by.contains(&id);
        let since = record.last_event(EventName::Approved)?.time;
        let is_late = now >= since + config.lease_duration;
        if !waits || !is_late || !here.of(Role::CodeReviewer).all(|(id, _)| may_not(id)) {
            return None;
        }
        let names: Vec<String> = approved.iter().map(ToString::to_string).collect();
        let (id, names) = (&summary.id, names.join(", "));
        let what = format!(
            "its impact is high ({}), so two code reviewers have to approve it. {names} did, and no other is running. \
             Look at it (liza diff {id}), then approve it, send it back (liza submit-verdict {id} REJECTED \"...\"), or \
             start another one: {}",
            high_impact(config, record).join(", "),
            seen.start.agent(Role::CodeReviewer)
        );
        let text = AlarmText::of_task(id, what);
        Some(Alarm::critical(AlarmKind::SecondReviewer, id, text).since(since))
    };
    state.board.summaries().filter_map(alarm).collect()
}

/// Work waits for a role of which no agent is running, while agents of other roles are.
fn missing_role(state: &State, role: Role, seen: &Observations, now: Timestamp) -> Option<Alarm> {
    let here = seen.presence(&state.board, now);
    if here.has_role(role) || !here.agents().any(|(_, entry)| entry.is_live(now)) {
        return None;
    }
    let waiting = match role {
        Role::Planner => unseen_triggers(state, now).iter().map(|_| seen.last_progress).collect(),
        Role::Coder => seen
            .found_merges()
            .without_waiting(claimable(&state.board, now))
            .iter()
            .map(|id| last_event(state.board.body(id).ok()?.record()))
            .collect(),
        Role::CodeReviewer => {
            let waits = |summary: &&TaskSummary| {
                let is_open = summary.is(Status::ReadyForReview) || summary.is(Status::Approved);
                let waits_for_you = || {
                    let body = state.board.body(&summary.id);
                    body.is_ok_and(|body| lacks_approval(body.record()))
                };
                is_open && seen.found_merges().of(&summary.id).is_none() && !waits_for_you()
            };
            let ids = state.board.summaries().filter(waits).map(|summary| &summary.id);
            ids.map(|id| last_event(state.board.body(id).ok()?.record())).collect::<Vec<_>>()
        }
    };
    let since = waiting.iter().flatten().min().copied()?;
    let what = if role == Role::Planner { "decision" } else { "task" };
    let verb = if waiting.len() == 1 { "waits" } else { "wait" };
    let text = format!("no {} is running, and {} {verb} for one", role.title(), count(waiting.len(), what));
    (now.since(since) > MISSING_GRACE)
        .then(|| Alarm::critical(AlarmKind::RoleMissing, role.id_prefix(), text).since(since))
}

fn last_event(record: &TaskRecord) -> Option<Timestamp> {
    record.events().next_back().map(|event| event.time).or(record.created)
}
