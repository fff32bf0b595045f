//! The last words of a team: time and cost of each task, open decisions, next steps.

use liza_core::model::{EventName, GoalStatus, Seconds, State, Status, TaskId, TaskRecord, Timestamp, Usage};
use liza_core::rules::clients::no_client_left;
use liza_core::rules::figures::GoalFigures;
use liza_core::rules::spending::{Spending, exceeded_by_last_session, spending};
use liza_core::text::{count, exact_number, one_line};
use liza_host::local_time::LocalTime;
use liza_status::needs_you::NeedsYou;
use liza_status::view::{HeldClient, TaskView, view};
use liza_team::observe::observe;
use liza_team::project::{Project, now};

use crate::cli::ui::layout::{cut, pad, width, wrap};

/// The most decisions that are listed when a team ends; `liza status` has all.
const MOST_NEEDS: usize = 3;

/// The most characters of an agent's text that are printed when a team ends.
const LONGEST_TEXT: usize = 500;

/// The most tasks that are listed when a team ends; `liza status --all` has all.
const MOST_TASKS: usize = 30;

/// The widest name of a task in the table.
const WIDEST_NAME: usize = 24;

/// The narrowest column for the story of a task; below that it is on lines of its own.
const NARROWEST_STORY: usize = 30;

/// The tasks with their time, tokens, dollars, rejections and story, the sum, and the budgets that are almost
/// used up or exceeded. Without any usage, as in a rehearsal, its columns are left out.
pub(crate) fn figures_table(state: &State, now: Timestamp, columns: usize) -> Vec<String> {
    let figures = GoalFigures::of(state, now);
    if figures.tasks.is_empty() && figures.total.is_none() {
        return Vec::new();
    }
    let row = |name: &str, time: Option<Seconds>, usage: &Usage, rejections: Option<u32>, story: String| {
        let time = time.map(|time| time.to_string());
        let tokens = (!usage.is_none()).then(|| exact_number(usage.tokens()));
        let dollars = usage.dollars().map(|dollars| format!("${dollars:.2}"));
        let dollars = dollars.or((usage.tokens() > 0).then(|| "no price".to_owned()));
        let rejections = rejections.map(|number| number.to_string());
        let figures = [time, tokens, dollars, rejections].map(Option::unwrap_or_default);
        (cut(name, WIDEST_NAME), figures, story)
    };
    let titles = ["TIME", "TOKENS", "DOLLARS", "REJECTIONS"].map(str::to_owned);
    let mut rows = vec![("TASK".to_owned(), titles, String::new())];
    for task in figures.tasks.iter().take(MOST_TASKS) {
        let record = state.board.body(&task.task).ok().map(|body| body.record());
        let story = record.map(|record| story(&task.task, record)).unwrap_or_default();
        rows.push(row(task.task.as_str(), task.time, &task.usage, Some(task.rejections), story));
    }
    let more = figures.tasks.len().saturating_sub(MOST_TASKS);
    if more > 0 {
        rows.push((format!("… {more} more"), Default::default(), "liza status --all".to_owned()));
    }
    if !figures.other.is_none() {
        rows.push(row("planning", None, &figures.other, None, String::new()));
    }
    rows.push(row("total", None, &figures.total, Some(figures.rejections), String::new()));
    let shown: &[usize] = if figures.total.is_none() { &[0, 3] } else { &[0, 1, 2, 3] };
    let mut lines = aligned(&rows, shown, columns);
    if figures.total.unpriced > 0 && figures.total.dollars().is_some() {
        lines.push(format!("  {} of the tokens have no price", exact_number(figures.total.unpriced)));
    }
    let budgets = spending(&state.board, now).into_iter().filter(Spending::is_high);
    let budgets = budgets.chain(exceeded_by_last_session(&state.board));
    lines.extend(budgets.map(|spent| format!("  budget of {spent}")));
    lines
}

/// Rows in columns: the name, the figures that are shown, and the text beside or below them.
fn aligned(rows: &[(String, [String; 4], String)], shown: &[usize], columns: usize) -> Vec<String> {
    let widest = |cells: &mut dyn Iterator<Item = &String>| cells.map(|cell| width(cell)).max().unwrap_or(0);
    let name = widest(&mut rows.iter().map(|(name, ..)| name));
    let figures: Vec<(usize, usize)> =
        shown.iter().map(|at| (*at, widest(&mut rows.iter().map(|row| &row.1[*at])))).collect();
    let left = 2 + name + figures.iter().map(|(_, width)| width + 2).sum::<usize>() + 2;
    let is_beside = columns >= left + NARROWEST_STORY;
    let room = columns.saturating_sub(if is_beside { left } else { 4 }).max(10);
    let mut lines = Vec::new();
    for (title, cells, text) in rows {
        let mut line = format!("  {}", pad(title, name));
        for (at, wide) in &figures {
            line.push_str(&format!("  {:>wide$}", cells[*at]));
        }
        let mut words = if text.is_empty() { Vec::new() } else { wrap(text, room) }.into_iter();
        if is_beside {
            line.extend(words.next().map(|first| format!("  {first}")));
        }
        lines.push(line.trim_end().to_owned());
        lines.extend(words.map(|more| format!("{}{more}", " ".repeat(if is_beside { left } else { 4 }))));
    }
    lines
}

/// A task's history in a few words.
fn story(id: &TaskId, record: &TaskRecord) -> String {
    let number = |name: EventName| record.events().filter(|event| event.is(name)).count();
    let mut words = Vec::new();
    // Without a verdict: its validation or its set-up has failed.
    let rejections = record.past().rejections as usize;
    let times = [
        (rejections, "rejected"),
        (number(EventName::Rejected) - rejections, "sent back by Liza"),
        (number(EventName::Blocked), "blocked"),
        (number(EventName::Handoff), "handed off"),
        (number(EventName::IntegrationFailed), "merge failed"),
    ];
    for (number, word) in times {
        match number {
            0 => {}
            1 => words.push(format!("{word} once")),
            number => words.push(format!("{word} {number} times")),
        }
    }
    match (record.status, &record.superseded_by) {
        (Some(Status::Superseded), Some(by)) => {
            let by: Vec<String> = by.iter().map(ToString::to_string).collect();
            words.push(format!("replaced by {}", by.join(" and ")));
        }
        (Some(Status::Merged), _) => {
            let by = record.approved_by.map_or(String::new(), |by| format!(" (approved by {by})"));
            let then = if words.is_empty() { "" } else { "then " };
            words.push(format!("{then}merged{by}"));
        }
        (Some(status), _) => {
            // The current status is named once.
            words.retain(|word| {
                word.strip_suffix(" once").is_none_or(|word| !word.eq_ignore_ascii_case(status.name()))
            });
            words.push(status.to_string());
        }
        (None, _) => words.push(format!("{id} is broken")),
    }
    words.join(", ")
}

/// The open decisions when a team ends before its goal, and the agent programs that are held: the screen that
/// showed them is gone.
pub(crate) fn what_waits(project: &Project, state: &State, times: &LocalTime) -> String {
    if state.board.goal.ready().is_none_or(|goal| goal.status != GoalStatus::InProgress) {
        return String::new();
    }
    let view = view(state, &observe(project, state, now()), now());
    // On one line each: with line breaks, an agent's text could pass for a line of the program.
    let line = |need: &NeedsYou| {
        let questions =
            need.questions.iter().map(|question| format!("\n  ? {}", one_line(question, LONGEST_TEXT)));
        let (kind, text) = (need.kind, one_line(&need.text, LONGEST_TEXT));
        format!("\nneeds you: {kind}: {text}{}\n  → {}", questions.collect::<String>(), need.command)
    };
    let needs = view.needs_you.iter().take(MOST_NEEDS).map(line);
    let held = view.held_clients.iter().filter_map(|held| until(held, &view.start.run, times));
    needs.chain(held).chain(to_merge(&view.tasks)).collect()
}

/// Approved tasks whose merge was stopped, or has not begun.
fn to_merge(tasks: &[TaskView]) -> Option<String> {
    let waits = |task: &&TaskView| task.status == Some(Status::Approved) && task.reason.is_none();
    let approved: Vec<&TaskView> = tasks.iter().filter(waits).collect();
    Some(match approved.as_slice() {
        [] => return None,
        [one] => format!("\n{} is approved; the next liza run merges it", one.id),
        more => format!("\n{} are approved; the next liza run merges them", count(more.len(), "task")),
    })
}

/// The end of a hold that ends by itself; the others are among the human's decisions.
fn until(held: &HeldClient, run: &str, times: &LocalTime) -> Option<String> {
    let until = times.short(held.until.filter(|until| *until > now())?);
    Some(format!("\n{} is held until {until}; to try it at once: liza resume, then {run}", held.name))
}

/// The reason why a team without a usable agent program has ended; first, since no key was pressed.
pub(crate) fn why_it_ended(state: &State) -> String {
    let why = state.board.sprint.ready().map(no_client_left).unwrap_or_default();
    format!("the team has ended: {why}\n")
}

/// The next steps of a person after a team has ended.
pub(crate) fn next_steps(state: &State, again: &str) -> String {
    match state.board.goal.ready().map(|goal| goal.status) {
        Some(GoalStatus::InProgress) => {
            format!("\nwhere it stopped  liza status\nto continue       {again}")
        }
        Some(GoalStatus::Aborted) => "\nNothing was deleted. Start over: liza goal new \"GOAL\"".to_owned(),
        Some(GoalStatus::Completed) => {
            "\nreview it  liza diff\ntake it    liza finish\nnext goal  liza goal new \"GOAL\"".to_owned()
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use liza_core::model::SpendingLimit;
    use liza_testkit::boards::{agent, config, edit_task, event, goal, now};
    use liza_testkit::team::with;

    use super::*;
    use liza_core::model::Approver;

    fn used(input: u64, cost_usd: f64) -> Usage {
        Usage { input, cached: 1_000_000, cost_usd, ..Usage::default() }
    }

    /// Covers: AX-22
    #[test]
    fn a_run_ends_with_the_time_the_tokens_the_dollars_and_the_rejections_of_each_task() {
        let mut state = with(Status::Merged, |record| {
            record.usage = Some(used(196_000, 1.99));
            record.approved_by = Some(Approver::Agent(agent("code-reviewer-1")));
        });
        let events = [
            (9, EventName::Claimed, "coder-1"),
            (4, EventName::Rejected, "system"),
            (2, EventName::Rejected, "code-reviewer-1"),
        ];
        let mut events: Vec<_> = events.map(|(ago, name, who)| event(ago, name, who)).into();
        events.push(event(1, EventName::Merged, "code-reviewer-1"));
        edit_task(&mut state, "t", |record| record.history = Some(events));
        let others: Vec<TaskId> = state.board.tasks.keys().filter(|id| id.as_str() != "t").cloned().collect();
        others.iter().for_each(|id| drop(state.board.tasks.shift_remove(id)));
        let without = figures_table(&state, now(), 80);
        goal(&mut state).usage = Some(Usage { unpriced: 30_000, ..used(226_000, 2.52) });
        config(&mut state).budget.task = Some(SpendingLimit { tokens: Some(100_000), dollars: None });
        let lines = [
            "  TASK      TIME   TOKENS  DOLLARS  REJECTIONS",
            "  t           8m  196,000    $1.99           1  rejected once, sent back by Liza",
            "                                                once, then merged (approved by",
            "                                                code-reviewer-1)",
            "  planning         30,000    $0.53",
            "  total           226,000    $2.52           1",
            "  30,000 of the tokens have no price",
            "  budget of t: 196k of 100k tokens used (196 %)",
        ];
        assert_eq!(figures_table(&state, now(), 80), lines);
        assert_eq!(without.last().map(String::as_str), Some("  total        196,000    $1.99           1"));
        let narrow = figures_table(&state, now(), 60);
        assert_eq!(narrow[2], "    rejected once, sent back by Liza once, then merged");
        edit_task(&mut state, "t", |record| record.usage = None);
        goal(&mut state).usage = None;
        assert_eq!(figures_table(&state, now(), 80)[0], "  TASK   TIME  REJECTIONS");
    }
}
