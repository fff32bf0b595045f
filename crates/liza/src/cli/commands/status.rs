//! `liza status`: alerts, progress, tasks and agents on one page.

use std::collections::BTreeSet;

use liza_core::model::{AgentId, GoalStatus, Network, TaskId};
use liza_host::columns::{cut_middle, fitting_parts, name_columns};
use liza_host::local_time::LocalTime;
use liza_status::alarms::{AlarmKind, AlarmLevel, Confinement};
use liza_status::view::{AgentView, Alert, Liveness, SprintView, TaskPhase, TaskView, View, view};
use liza_status::words::{
    PHASES, agent_activity, agent_doing, agent_facts, agent_sign, budgets, ended_counts, full_columns,
    in_needs, is_well, next_steps, sprint_facts, task_facts, team_does,
};
use liza_team::observe::observe;
use liza_team::project::now;
use serde_json::Value;

use crate::cli::context::Context;
use crate::cli::team_notes::{uncounted_by_roles, untested};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{
    BOLD, CYAN, DIM, GREEN, RED, YELLOW, command, cut, indent, one_line, pad, paint, width, wrap,
};
use crate::cli::ui::output::{Reply, to_json};

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

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    // As what is observed: the file is read once.
    let state = project.state()?;
    let now = now();
    let view = view(&state, &observe(&project, &state, now), now);
    if context.screen.json {
        return Ok(Reply::new("", to_json(&view)).at(view.revision.0));
    }
    let (columns, times) = (context.screen.columns(), context.screen.local_time());
    let mut text = render(&view, &Page { columns, all: args.all, times });
    let uncounted = state.board.config.ready().and_then(uncounted_by_roles);
    for note in untested(&project, &state).into_iter().chain(uncounted) {
        let lines: Vec<String> = wrap(&note, columns).iter().map(|line| paint(DIM, line)).collect();
        text.push_str(&format!("\n\n{}", lines.join("\n")));
    }
    Ok(Reply::new(text, Value::Null).at(view.revision.0))
}

/// The most items that need attention; the rest is only counted.
const MANY: usize = 8;

/// A description with less room than this says nothing.
const LEAST_TEXT: usize = 8;

/// The layout of a page.
struct Page {
    columns: usize,
    all: bool,
    times: LocalTime,
}

impl Page {
    /// A heading and the first items below it; the rest is only counted, unless everything is wanted.
    fn few<T>(&self, title: &str, items: &[T], draw: impl Fn(&T) -> Vec<String>) -> Vec<String> {
        if items.is_empty() {
            return Vec::new();
        }
        let shown = if self.all { items.len() } else { MANY };
        let mut lines = vec![paint(BOLD, title)];
        lines.extend(items.iter().take(shown).flat_map(draw));
        if items.len() > shown {
            let hidden = items.len() - shown;
            lines.push(format!("     and {hidden} more: {}", paint(CYAN, "liza status --all")));
        }
        lines
    }
}

fn render(view: &View, page: &Page) -> String {
    let Page { columns, all, .. } = *page;
    let mut lines = head(view, columns);
    let blocks = [
        needs(view, page),
        alerts(view, page),
        tasks(view, columns, all),
        agents(view, columns),
        next(view, columns),
    ];
    for block in blocks.into_iter().filter(|block| !block.is_empty()) {
        lines.push(String::new());
        lines.extend(block);
    }
    lines.join("\n")
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
    let facts = fitting_parts(sprint_facts(sprint), columns.saturating_sub(width(&sprint.id) + 2));
    let id = paint(DIM, &sprint.id);
    let room = columns.saturating_sub(width(&sprint.id) + width(&facts) + 4).min(20);
    if progress.total == 0 || room < 6 {
        return format!("{id}  {}", cut(&facts, columns.saturating_sub(width(&sprint.id) + 2)));
    }
    let full = full_columns(sprint, room);
    format!("{id}  {}{}  {facts}", paint(GREEN, &"█".repeat(full)), paint(DIM, &"░".repeat(room - full)))
}

fn needs(view: &View, page: &Page) -> Vec<String> {
    page.few("NEEDS YOU", &view.needs_you, |need| {
        let text = need.text.words();
        let kinds = std::iter::once(need.kind.to_string()).chain(need.also.iter().map(ToString::to_string));
        let mut lines = heading(need.level, need.task.as_ref(), &kinds.collect::<Vec<_>>(), page.columns);
        // A decision for a person is never cut.
        lines.extend(indent(&one_line(&page.times.in_text(text)), 5, page.columns));
        for question in &need.questions {
            lines.extend(indent(&one_line(&format!("? {question}")), 5, page.columns));
        }
        for (at, task) in need.plan.iter().enumerate() {
            lines.extend(indent(&one_line(&format!("{}. {}", at + 1, task.line())), 5, page.columns));
        }
        lines.extend(command(&need.command, 5, page.columns));
        lines
    })
}

/// The alerts that agents handle, and the human should know.
fn alerts(view: &View, page: &Page) -> Vec<String> {
    let mut seen: BTreeSet<&TaskId> = BTreeSet::new();
    let others: Vec<&Alert> = view.other_alerts().collect();
    let first = others.iter().filter(|alert| alert.task.as_ref().is_none_or(|task| seen.insert(task)));
    page.few("ALERTS", &first.collect::<Vec<_>>(), |alert| matter(view, alert, &others, page))
}

fn heading(level: AlarmLevel, task: Option<&TaskId>, kinds: &[String], columns: usize) -> Vec<String> {
    let (sign, style) = match level {
        AlarmLevel::Critical => ("!!", RED),
        AlarmLevel::Warning => (" !", YELLOW),
    };
    let name = task.map(|id| format!("{id}  ")).unwrap_or_default();
    let kinds = kinds.join(", ");
    if 5 + width(&name) + width(&kinds) <= columns {
        return vec![format!("  {} {}{}", paint(style, sign), paint(BOLD, &name), paint(style, &kinds))];
    }
    // Another ID may differ only at its end.
    let mut names = wrap(&name, columns.saturating_sub(5)).into_iter();
    let first = names.next().unwrap_or_default();
    let mut lines = vec![format!("  {} {}", paint(style, sign), paint(BOLD, &first))];
    lines.extend(names.map(|line| format!("     {}", paint(BOLD, &line))));
    lines.extend(
        wrap(&kinds, columns.saturating_sub(5)).iter().map(|line| format!("     {}", paint(style, line))),
    );
    lines
}

/// One alert, together with the kinds of the others about the same task.
fn matter(view: &View, alert: &Alert, others: &[&Alert], page: &Page) -> Vec<String> {
    let task = alert.task.as_ref().and_then(|id| view.tasks.iter().find(|task| &task.id == id));
    let same = |other: &&&Alert| alert.task.is_some() && other.task == alert.task;
    let mut kinds = vec![alert.kind.to_string()];
    for other in others.iter().filter(same).map(|other| other.kind.to_string()) {
        if !kinds.contains(&other) {
            kinds.push(other);
        }
    }
    let mut lines = heading(alert.level, alert.task.as_ref(), &kinds, page.columns);
    let said = match task.and_then(|task| task.reason.as_deref()) {
        Some(reason) => reason.to_owned(),
        None => {
            let bare = alert.text.words();
            // An alert that only names its task would repeat the line above.
            if alert.task.as_ref().is_some_and(|task| task.as_str() == bare) {
                task.map(|task| task.next.to_string()).unwrap_or_default()
            } else {
                page.times.in_text(bare)
            }
        }
    };
    lines.extend(brief(&said, page.columns));
    let asked = task.filter(|_| alert.kind == AlarmKind::Blocked);
    for question in asked.into_iter().flat_map(|task| &task.questions) {
        lines.extend(indent(&one_line(&format!("? {question}")), 5, page.columns));
    }
    lines.extend(alert.command.iter().flat_map(|step| command(step, 5, page.columns)));
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

fn tasks(view: &View, columns: usize, all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let open = view.tasks.iter().filter(|task| all || task.phase != TaskPhase::Ended);
    let names: Vec<&str> = open.map(|task| task.id.as_str()).collect();
    let name = name_columns(&names, columns / 3, cut);
    for (phase, title) in PHASES {
        let rows: Vec<&TaskView> = view.tasks.iter().filter(|task| task.phase == phase).collect();
        if rows.is_empty() {
            continue;
        }
        // The list of a plan says more than the rows of its tasks.
        let (planned, own): (Vec<&TaskView>, Vec<&TaskView>) = rows
            .iter()
            .copied()
            .partition(|task| !all && task.phase == TaskPhase::Draft && view.is_in_needs(task));
        let number =
            if planned.is_empty() { rows.len().to_string() } else { in_needs(planned.len(), rows.len()) };
        lines.push(format!("{} {}", paint(BOLD, title), paint(DIM, &number)));
        lines.extend(own.into_iter().flat_map(|task| row(task, name, columns)));
    }
    lines.extend(over(view, name, columns, all));
    lines
}

/// A task: its ID, its description, and its current facts at the right.
fn row(task: &TaskView, name: usize, columns: usize) -> Vec<String> {
    let facts = task_facts(task).join(" · ");
    let id = pad(&cut(task.id.as_str(), name), name);
    if 2 + name + LEAST_TEXT > columns {
        return long_row(task, &facts, columns);
    }
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

/// A task whose ID leaves no room beside it: the ID whole, the rest below.
fn long_row(task: &TaskView, facts: &str, columns: usize) -> Vec<String> {
    let id = indent(task.id.as_str(), 2, columns).into_iter().map(|line| paint(CYAN, &line));
    let about = cut(&task.description, columns.saturating_sub(4));
    let facts = indent(facts, 4, columns).into_iter().map(|line| paint(DIM, &line));
    id.chain([format!("    {about}")]).chain(facts).collect()
}

/// The ended tasks: counted, and named as far as there is room; all of them with --all.
fn over(view: &View, name: usize, columns: usize, all: bool) -> Vec<String> {
    let done: Vec<&TaskView> = view.tasks.iter().filter(|task| task.phase == TaskPhase::Ended).collect();
    if done.is_empty() && view.archived == 0 {
        return Vec::new();
    }
    let counts = ended_counts(view);
    let mut lines = vec![format!("{} {}", paint(BOLD, "DONE"), paint(DIM, &counts.join(" · ")))];
    if all {
        lines.extend(done.iter().flat_map(|task| {
            let status = task.status.map(|status| status.to_string()).unwrap_or_default();
            if 2 + name + LEAST_TEXT + width(&status) > columns {
                return long_row(task, &status, columns);
            }
            let room = columns.saturating_sub(name + 4 + width(&status) + 2);
            let about = pad(&cut(&task.description, room), room);
            vec![format!("  {}  {about}  {}", pad(&cut(task.id.as_str(), name), name), paint(DIM, &status))]
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
        lines.extend(agent_lines(agent, name, columns));
        let room = columns.saturating_sub(name + 6);
        // The action of a session begins with its tool; a failure ends with its cause.
        let cut = if agent.is_in_session() { cut } else { cut_middle };
        lines.extend(
            agent_activity(agent)
                .map(|text| format!("{}{}", " ".repeat(name + 6), paint(DIM, &cut(&text, room)))),
        );
    }
    lines
}

/// The confinement of live agents' sessions: the weakest of them.
fn confinement(view: &View, columns: usize) -> Vec<String> {
    let live = view.agents.iter().filter(|agent| agent.liveness.is_present());
    let known: Vec<(AgentId, &Confinement)> =
        live.filter_map(|agent| Some((agent.id, agent.confinement.as_ref()?))).collect();
    let levels = known.iter().map(|(_, one)| one);
    let Some(least) = levels.max_by_key(|one| one.weakness) else { return Vec::new() };
    let closed = known.iter().filter(|(_, one)| one.network == Network::ModelOnly);
    let closed: Vec<String> = closed.map(|(id, _)| id.to_string()).collect();
    let network = match closed.len() {
        0 => String::new(),
        all if all == known.len() => ", network model-only".to_owned(),
        _ => format!(", network model-only for {}", closed.join(", ")),
    };
    let mut lines = indent(&format!("confinement {}{network}", least.level), 2, columns);
    let Some(shared) = &least.shared else { return lines };
    // Beside the level if there is room, and one line at most: `liza doctor` has all of it.
    let words = format!("shared with you: {shared}");
    match lines.last_mut().filter(|last| width(last) + 2 + width(&words) <= columns) {
        Some(last) => last.push_str(&format!("; {words}")),
        None => lines.push(format!("  {}", cut(&words, columns.saturating_sub(2)))),
    }
    lines
}

fn agent_lines(agent: &AgentView, name: usize, columns: usize) -> Vec<String> {
    let (sign, doing) = (agent_sign(agent), agent_doing(agent));
    let style = match agent.liveness {
        Liveness::Live => GREEN,
        Liveness::Grace => YELLOW,
        Liveness::Gone | Liveness::Dead => RED,
    };
    let facts = agent_facts(agent).join(" · ");
    let room = columns.saturating_sub(2 + 2 + name + 2);
    let doing = cut(&doing, room);
    let fits = width(&doing) + 2 + width(&facts) <= room;
    let beside = if fits {
        format!("{}{}", " ".repeat(room - width(&doing) - width(&facts)), paint(DIM, &facts))
    } else {
        String::new()
    };
    let line = format!("  {} {}  {doing}{beside}", paint(style, sign), pad(&agent.id.to_string(), name));
    let below = if fits { Vec::new() } else { wrap(&facts, room.max(10)) };
    let below = below.into_iter().map(|line| format!("{}{}", " ".repeat(name + 6), paint(DIM, &line)));
    std::iter::once(line.trim_end().to_owned()).chain(below).collect()
}

/// The next steps that only a person can take.
fn next(view: &View, columns: usize) -> Vec<String> {
    let mut steps = next_steps(view);
    let is_open = view.goal.as_ref().is_some_and(|goal| goal.status == GoalStatus::InProgress);
    if steps.is_empty() && is_open && is_well(view) && view.has_team() && view.needs_you.is_empty() {
        steps.push((format!("Nothing: {}. Watch it:", team_does(view)), "liza tui"));
    }
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
