//! `liza status`: alerts, progress, tasks and agents on one page.

use std::collections::BTreeSet;

use liza_core::model::{AgentId, GoalStatus, Role, Seconds, Status, StopFile, TaskId};
use liza_core::text::count;
use liza_core::watch::alarms::AlarmKind;
use liza_core::watch::view::{
    AgentView, Alert, LeaseView, Liveness, SprintView, StopView, TaskPhase, TaskView, UnmetDependency, View,
    view,
};

use crate::confine::MODEL_ONLY;
use crate::observations::observe;
use crate::project::now;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{
    BOLD, CYAN, DIM, GREEN, RED, YELLOW, ago, budgets, command, cut, indent, list, one_line, pad, paint,
    used, width, wrap,
};
use crate::cli::ui::output::Reply;

/// Show what needs your attention, the tasks and the agents.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza status
  liza status --json | jq '.result.claimable'")]
pub(crate) struct Args {
    /// List everything, including ended tasks.
    #[arg(long, short)]
    all: bool,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let now = now();
    let view = view(&state, &observe(&project, &state, now), now);
    let result = serde_json::to_value(&view).unwrap_or_default();
    Ok(Reply::new(render(&view, context.screen.columns(), args.all), result).at(view.revision.0))
}

/// How many items need attention before the rest is only counted.
const MANY: usize = 8;

/// The whole page.
fn render(view: &View, columns: usize, all: bool) -> String {
    let mut page = head(view, columns);
    let blocks =
        [needs(view, columns, all), tasks(view, columns, all), agents(view, columns), next(view, columns)];
    for block in blocks.into_iter().filter(|block| !block.is_empty()) {
        page.push(String::new());
        page.extend(block);
    }
    page.join("\n")
}

fn head(view: &View, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(goal) = &view.goal {
        let wanted = match goal.description.trim() {
            "" => "no goal stated yet",
            text => text,
        };
        let tail = match goal.status {
            GoalStatus::InProgress => String::new(),
            GoalStatus::Completed | GoalStatus::Aborted => format!("  {}", goal.status),
        };
        let room = columns.saturating_sub(width(&goal.id) + 2 + width(&tail));
        lines.push(format!("{}  {}{tail}", paint(DIM, &goal.id), paint(BOLD, &cut(wanted, room))));
    }
    lines.extend(view.sprint.as_ref().map(|sprint| progress(sprint, columns)));
    lines.extend(budgets(&view.budgets).map(|line| paint(DIM, &cut(&line, columns))));
    lines
}

fn progress(sprint: &SprintView, columns: usize) -> String {
    let progress = &sprint.progress;
    let mut facts = match progress.total {
        0 => vec!["nothing is planned yet".to_owned()],
        total => vec![format!("{} of {total} done", progress.done())],
    };
    let count = |n: usize, what: &str| (n > 0).then(|| format!("{n} {what}"));
    facts.extend(count(progress.in_progress, "in progress"));
    facts.extend(count(progress.blocked, "blocked"));
    facts.extend(count(progress.waiting, "to do"));
    match sprint.deadline_left {
        _ if sprint.status.is_terminal() => facts.push(sprint.status.to_string()),
        Some(left) if left >= 0 => facts.push(format!("due in {}", length(left))),
        Some(left) => facts.push(format!("overdue by {}", length(left))),
        None => {}
    }
    facts.extend(sprint.usage.as_ref().and_then(used));
    let facts = facts.join(" · ");
    let id = paint(DIM, &sprint.id);
    let room = columns.saturating_sub(width(&sprint.id) + width(&facts) + 4).min(20);
    if progress.total == 0 || room < 6 {
        return format!("{id}  {}", cut(&facts, columns.saturating_sub(width(&sprint.id) + 2)));
    }
    let full = progress.done() * room / progress.total;
    format!("{id}  {}{}  {facts}", paint(GREEN, &"█".repeat(full)), paint(DIM, &"░".repeat(room - full)))
}

/// A number of seconds without its sign.
fn length(seconds: i64) -> Seconds {
    Seconds(seconds.unsigned_abs())
}

fn needs(view: &View, columns: usize, all: bool) -> Vec<String> {
    let mut matters: Vec<Vec<String>> =
        view.stopped.iter().map(|stop| stopped(view, stop, columns)).collect();
    matters.extend(invalid(view, columns));
    let again = |alert: &Alert| view.stopped.iter().any(|stop| alert.kind.stop_file() == Some(stop.file));
    let news: Vec<&Alert> =
        view.alerts.iter().filter(|alert| alert.kind != AlarmKind::InvalidState && !again(alert)).collect();
    let has_alert = |task: &TaskView| news.iter().any(|alert| alert.task.as_ref() == Some(&task.id));
    let broken = view.tasks.iter().filter(|task| task.phase == TaskPhase::Stuck && !has_alert(task));
    matters.extend(broken.map(|task| stuck(task, columns)));
    let mut seen: BTreeSet<&TaskId> = BTreeSet::new();
    let fresh = news.iter().filter(|alert| alert.task.as_ref().is_none_or(|task| seen.insert(task)));
    matters.extend(fresh.map(|alert| matter(view, alert, columns)));
    if matters.is_empty() {
        return Vec::new();
    }
    let hidden = if all { 0 } else { matters.len().saturating_sub(MANY) };
    let mut lines = vec![paint(BOLD, "NEEDS YOU")];
    lines.extend(matters.into_iter().take(if all { usize::MAX } else { MANY }).flatten());
    if hidden > 0 {
        lines.push(format!("     and {hidden} more: {}", paint(CYAN, "liza status --all")));
    }
    lines
}

/// All violations as one item: `validate` lists them.
fn invalid(view: &View, columns: usize) -> Option<Vec<String>> {
    let mut found = view.alerts.iter().filter(|alert| alert.kind == AlarmKind::InvalidState);
    let first = found.next()?;
    let rest = match found.count() {
        0 => String::new(),
        more => format!("  and {more} more"),
    };
    let mut lines = vec![format!(
        "  {} {}{}",
        paint(RED, "!!"),
        paint(RED, &AlarmKind::InvalidState.to_string()),
        paint(DIM, &rest)
    )];
    lines.extend(brief(&first.text, columns));
    lines.extend(command("liza validate", 5, columns));
    Some(lines)
}

fn stopped(view: &View, stop: &StopView, columns: usize) -> Vec<String> {
    let since = view.now.since(stop.since);
    let (what, rest, step) = match stop.file {
        StopFile::Abort => ("Aborted", "; all work has ended", "liza goal new \"…\""),
        StopFile::Checkpoint => {
            ("Checkpoint began", "; no new work starts. Read .liza/sprint_summary.md", "liza resume")
        }
        StopFile::Pause => ("Paused", "; no new work starts", "liza resume"),
    };
    let text = format!("{what} {}{rest}", ago(since));
    let mut lines = vec![format!("  {} {}", paint(RED, "!!"), paint(BOLD, stop.file.name()))];
    lines.extend(indent(&text, 5, columns));
    lines.extend(command(step, 5, columns));
    lines
}

/// One alert, together with the kinds of the other alerts about the same task.
fn matter(view: &View, alert: &Alert, columns: usize) -> Vec<String> {
    let task = alert.task.as_ref().and_then(|id| view.tasks.iter().find(|task| &task.id == id));
    let same = |other: &&Alert| {
        alert.task.is_some() && other.task == alert.task && other.kind != AlarmKind::InvalidState
    };
    let mut kinds = vec![alert.kind];
    for other in view.alerts.iter().filter(same) {
        if !kinds.contains(&other.kind) {
            kinds.push(other.kind);
        }
    }
    let (sign, style) = if alert.is_critical() { ("!!", RED) } else { (" !", YELLOW) };
    let name = alert.task.as_ref().map(|id| format!("{id}  ")).unwrap_or_default();
    let kinds = cut(&list(&kinds), columns.saturating_sub(5 + width(&name)));
    let mut lines = vec![format!("  {} {}{}", paint(style, sign), paint(BOLD, &name), paint(style, &kinds))];
    let said = match task.and_then(|task| task.reason.as_deref()) {
        Some(reason) => reason.to_owned(),
        None => {
            let bare = alert.task.as_ref().and_then(|id| alert.text.strip_prefix(&format!("{id} — ")));
            let bare = bare.unwrap_or(&alert.text);
            // An alert that only names its task would repeat the line above.
            if name.trim() == bare {
                task.map(|task| task.next.clone()).unwrap_or_default()
            } else {
                bare.to_owned()
            }
        }
    };
    lines.extend(brief(&said, columns));
    lines.extend(alert.command.iter().flat_map(|step| command(step, 5, columns)));
    lines
}

fn stuck(task: &TaskView, columns: usize) -> Vec<String> {
    let mut lines = vec![format!("  {} {}", paint(RED, "!!"), paint(BOLD, task.id.as_str()))];
    lines.extend(brief(&task.broken.join("; "), columns));
    lines.extend(task.command.iter().flat_map(|step| command(step, 5, columns)));
    lines
}

/// Two lines at most: `liza show` has the rest.
fn brief(text: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(5).max(10);
    let mut lines = wrap(&one_line(text), room);
    if lines.len() > 2 {
        let rest = lines.split_off(1).join(" ");
        lines.push(cut(&rest, room));
    }
    lines.into_iter().map(|line| format!("     {line}")).collect()
}

const GROUPS: [(TaskPhase, &str); 5] = [
    (TaskPhase::Working, "IN PROGRESS"),
    (TaskPhase::Reviewing, "IN REVIEW"),
    (TaskPhase::Ready, "READY"),
    (TaskPhase::Waiting, "WAITING"),
    (TaskPhase::Draft, "DRAFT"),
];

fn tasks(view: &View, columns: usize, all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let names =
        view.tasks.iter().filter(|task| task.phase != TaskPhase::Ended).map(|task| width(task.id.as_str()));
    let name = names.max().unwrap_or(0).min(columns / 3);
    for (phase, title) in GROUPS {
        let rows: Vec<&TaskView> = view.tasks.iter().filter(|task| task.phase == phase).collect();
        if rows.is_empty() {
            continue;
        }
        lines.push(format!("{} {}", paint(BOLD, title), paint(DIM, &rows.len().to_string())));
        lines.extend(rows.into_iter().flat_map(|task| row(task, name, columns)));
    }
    lines.extend(over(view, name, columns, all));
    lines
}

/// A task: its ID, its description, and its current facts at the right.
fn row(task: &TaskView, name: usize, columns: usize) -> Vec<String> {
    let facts = facts(task).join(" · ");
    let id = pad(&cut(task.id.as_str(), name), name);
    let room = columns.saturating_sub(2 + name + 2);
    let left = room.saturating_sub(width(&facts) + 2);
    if left >= width(&one_line(&task.description)).min(24) || facts.is_empty() {
        let about = pad(&cut(&task.description, if facts.is_empty() { room } else { left }), left);
        return vec![
            format!("  {}  {about}  {}", paint(CYAN, &id), paint(DIM, &facts)).trim_end().to_owned(),
        ];
    }
    let below = wrap(&facts, room.max(10)).into_iter();
    let below = below.map(|line| format!("{}{}", " ".repeat(name + 4), paint(DIM, &line)));
    std::iter::once(format!("  {}  {}", paint(CYAN, &id), cut(&task.description, room)))
        .chain(below)
        .collect()
}

/// A limit behind a number; nothing while the settings cannot be read.
fn of(limit: Option<u32>) -> String {
    limit.map(|limit| format!(" of {limit}")).unwrap_or_default()
}

fn facts(task: &TaskView) -> Vec<String> {
    let mut facts = Vec::new();
    let owner = task.owner.map(|owner| owner.to_string());
    match task.phase {
        TaskPhase::Working => {
            facts.extend(owner);
            if task.status == Some(Status::Rejected) {
                facts.push("sent back".to_owned());
            }
            facts.extend(task.iteration.map(|n| format!("attempt {n}{}", of(task.max_iterations))));
            if task.review_cycles > 0 {
                facts.push(format!("rejection {}{}", task.review_cycles, of(task.max_review_cycles)));
            }
            facts.extend(task.lease.map(lease));
        }
        TaskPhase::Reviewing if task.status == Some(Status::Approved) => {
            facts.push("approved, waiting for its merge".to_owned())
        }
        TaskPhase::Reviewing => match owner.filter(|_| task.lease.is_some_and(|lease| lease.left >= 0)) {
            Some(reviewer) => {
                facts.push(reviewer);
                facts.extend(task.lease.map(lease));
            }
            None => facts.push("waiting for a code reviewer".to_owned()),
        },
        TaskPhase::Waiting => {
            let names: Vec<String> = task.waits_for.iter().map(waiting).collect();
            facts.push(format!("after {}", names.join(", ")));
        }
        TaskPhase::Ready => {
            match task.status {
                Some(Status::Rejected) => facts.push("sent back".to_owned()),
                Some(Status::IntegrationFailed) => facts.push("merge failed".to_owned()),
                Some(Status::Claimed) => facts.push("its coder is gone".to_owned()),
                _ => {}
            }
            facts.push(format!("P{}", task.priority));
        }
        TaskPhase::Draft | TaskPhase::Stuck | TaskPhase::Ended => {}
    }
    if task.handoff_pending {
        facts.push("handoff".to_owned());
    }
    facts.extend(task.usage.as_ref().and_then(used));
    facts
}

/// A task that has to be merged first; with its status if it never will be.
fn waiting(waiting: &UnmetDependency) -> String {
    match waiting.status {
        Some(status @ (Status::Abandoned | Status::Superseded)) => format!("{} ({status})", waiting.task),
        None => format!("{} (unknown)", waiting.task),
        Some(
            Status::Draft
            | Status::Unclaimed
            | Status::Claimed
            | Status::ReadyForReview
            | Status::Rejected
            | Status::Approved
            | Status::Merged
            | Status::Blocked
            | Status::IntegrationFailed,
        ) => waiting.task.to_string(),
    }
}

fn lease(lease: LeaseView) -> String {
    match lease.left {
        left @ 0.. => format!("lease {}", length(left)),
        left => format!("lease expired {} ago", length(left)),
    }
}

/// The ended tasks: counted, and named as far as there is room; all of them with --all.
fn over(view: &View, name: usize, columns: usize, all: bool) -> Vec<String> {
    let done: Vec<&TaskView> = view.tasks.iter().filter(|task| task.phase == TaskPhase::Ended).collect();
    if done.is_empty() && view.archived == 0 {
        return Vec::new();
    }
    let count = |status: Status| done.iter().filter(|task| task.status == Some(status)).count();
    let counts = [
        (count(Status::Merged), "merged"),
        (count(Status::Superseded), "replaced"),
        (count(Status::Abandoned), "abandoned"),
        (view.archived, "in the archive"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let mut lines = vec![format!("{} {}", paint(BOLD, "DONE"), paint(DIM, &counts.join(" · ")))];
    if all {
        lines.extend(done.iter().map(|task| {
            let status = task.status.map(|status| status.to_string()).unwrap_or_default();
            let room = columns.saturating_sub(name + 4 + width(&status) + 2);
            let about = pad(&cut(&task.description, room), room);
            format!("  {}  {about}  {}", pad(&cut(task.id.as_str(), name), name), paint(DIM, &status))
        }));
    } else {
        let names: Vec<&str> = done.iter().map(|task| task.id.as_str()).collect();
        lines.extend(indent(&cut(&names.join(" "), columns.saturating_sub(2) * 2 - 4), 2, columns));
    }
    lines
}

fn agents(view: &View, columns: usize) -> Vec<String> {
    if view.agents.is_empty() {
        return Vec::new();
    }
    let name = view.agents.iter().map(|agent| width(&agent.id.to_string())).max().unwrap_or(0);
    let mut lines = vec![paint(BOLD, "AGENTS")];
    lines.extend(confinement(view, columns));
    for agent in &view.agents {
        lines.push(agent_line(agent, name, columns));
        let room = columns.saturating_sub(name + 6);
        lines.extend(
            activity(agent).map(|text| format!("{}{}", " ".repeat(name + 6), paint(DIM, &cut(&text, room)))),
        );
    }
    lines
}

/// What its session does now, or how its last one failed.
fn activity(agent: &AgentView) -> Option<String> {
    let failed = || agent.last_session.as_ref().filter(|last| last.failed).map(|last| last.result.clone());
    if agent.status.is_in_session() { agent.last_action.clone() } else { failed() }
}

/// How well the sessions of live agents are confined: the least of them.
fn confinement(view: &View, columns: usize) -> Vec<String> {
    let live = view.agents.iter().filter(|agent| agent.liveness != Liveness::Gone);
    let described = |agent: &AgentView| Some((agent.id, split_network(agent.confinement.as_deref()?)));
    let known: Vec<(AgentId, (String, bool))> = live.filter_map(described).collect();
    let levels = known.iter().map(|(_, (level, _))| level.as_str());
    let Some(least) = levels.max_by_key(|level| (*level != "enforced", *level == "off")) else {
        return Vec::new();
    };
    let closed: Vec<String> =
        known.iter().filter(|(_, (_, closed))| *closed).map(|(id, _)| id.to_string()).collect();
    let network = match closed.len() {
        0 => String::new(),
        all if all == known.len() => MODEL_ONLY.to_owned(),
        _ => format!("{MODEL_ONLY} for {}", closed.join(", ")),
    };
    indent(&format!("confinement {least}{network}"), 2, columns)
}

/// The level of a session, and whether it reaches only its model.
fn split_network(confinement: &str) -> (String, bool) {
    match confinement.strip_suffix(MODEL_ONLY) {
        Some(level) => (level.to_owned(), true),
        None => (confinement.to_owned(), false),
    }
}

fn agent_line(agent: &AgentView, name: usize, columns: usize) -> String {
    let holding = agent.task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    let (sign, style, doing) = match agent.liveness {
        Liveness::Live => ("●", GREEN, format!("{}{holding}", agent.status)),
        Liveness::Grace => ("◐", YELLOW, format!("silent, was {}{holding}", agent.status)),
        Liveness::Gone => ("○", RED, format!("gone, was {}{holding}", agent.status)),
    };
    let mut facts: Vec<String> =
        agent.heartbeat_age.map(|age| format!("heartbeat {}", ago(age))).into_iter().collect();
    facts.extend(agent.output_age.map(|age| format!("output {}", ago(age))));
    facts.extend(agent.context_percent.map(|percent| format!("context {percent} %")));
    facts.extend(agent.usage.as_ref().and_then(used));
    let facts = facts.join(" · ");
    let room = columns.saturating_sub(2 + 2 + name + 2);
    let doing = cut(&doing, room);
    let fits = width(&doing) + 2 + width(&facts) <= room;
    let facts = if fits {
        format!("{}{}", " ".repeat(room - width(&doing) - width(&facts)), paint(DIM, &facts))
    } else {
        String::new()
    };
    format!("  {} {}  {doing}{facts}", paint(style, sign), pad(&agent.id.to_string(), name))
        .trim_end()
        .to_owned()
}

/// What only a person can do now.
fn next(view: &View, columns: usize) -> Vec<String> {
    let steps = steps(view);
    if steps.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![paint(BOLD, "NEXT")];
    for (text, step) in steps {
        lines.extend(indent(&one_line(&text), 2, columns));
        lines.extend(command(step, 2, columns));
    }
    lines
}

fn steps(view: &View) -> Vec<(String, &'static str)> {
    let Some(goal) = &view.goal else { return Vec::new() };
    match goal.status {
        _ if goal.description.trim().is_empty() => {
            return vec![("There is no goal yet. State it:".to_owned(), "liza goal new \"…\"")];
        }
        GoalStatus::InProgress if view.stopped.is_empty() => {}
        GoalStatus::InProgress => return Vec::new(),
        GoalStatus::Completed => {
            return vec![("The goal is reached. State the next one:".to_owned(), "liza goal new \"…\"")];
        }
        GoalStatus::Aborted => {
            return vec![("The goal is aborted. State another one:".to_owned(), "liza goal new \"…\"")];
        }
    }
    let here =
        |role: Role| view.agents.iter().any(|agent| agent.role == role && agent.liveness != Liveness::Gone);
    let mut steps = Vec::new();
    if view.tasks.is_empty() && view.archived == 0 && !here(Role::Planner) {
        steps.push(("There are no tasks yet. Start the team:".to_owned(), "liza run"));
        steps.push(("or add one yourself:".to_owned(), "liza add-task --help"));
        return steps;
    }
    let to_merge = view.tasks.iter().filter(|task| task.status == Some(Status::Approved)).count();
    let unseen = view.planner_triggers.iter().filter(|trigger| !trigger.seen).count();
    let waiting = [
        (unseen, Role::Planner, "decision", "pending, but no planner is running:", "liza agent planner"),
        (view.claimable.len(), Role::Coder, "task", "ready, but no coder is running:", "liza agent coder"),
        (
            view.reviewable.len() + to_merge,
            Role::CodeReviewer,
            "task",
            "to review or merge, but no code reviewer is running:",
            "liza agent code-reviewer",
        ),
    ];
    let missing = waiting.into_iter().filter(|(n, role, ..)| *n > 0 && !here(*role));
    steps.extend(missing.map(|(n, _, noun, what, step)| (format!("{} {what}", count(n, noun)), step)));
    let all_gone = view.agents.iter().all(|agent| agent.liveness == Liveness::Gone);
    if all_gone && !steps.is_empty() {
        steps.push(("or the whole team:".to_owned(), "liza run"));
    }
    steps
}
