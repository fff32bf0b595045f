//! The words in which every screen shows tasks, agents and the sprint.
//!
//! Decides nothing and knows no layout: the same view gives the same words on every screen.

use crate::forecast::{AFTER_RESUME, Behind, What, progress};
use crate::task_words::plain;
use crate::view::{
    AgentView, HeldView, LeaseView, Liveness, Progress, SprintView, TaskPhase, TaskView, UnmetDependency,
    View,
};
use liza_core::model::{AgentStatus, GoalStatus, Role, Seconds, Status, TaskId, Usage};
use liza_core::rules::impact::APPROVALS;
use liza_core::rules::spending::{Spending, SpendingScope};
use liza_core::text::count;
use liza_ids::order::sort_by_key;

/// The phases of open tasks with their headings, in the order in which they are shown.
pub const PHASES: [(TaskPhase, &str); 7] = [
    (TaskPhase::Stuck, "BLOCKED"),
    (TaskPhase::Working, "IN PROGRESS"),
    (TaskPhase::Stopped, "STOPPED"),
    (TaskPhase::Reviewing, "IN REVIEW"),
    (TaskPhase::Ready, "READY"),
    (TaskPhase::Waiting, "WAITING"),
    (TaskPhase::Draft, "DRAFT"),
];

/// The words for a task that was open when its goal was aborted.
const DROPPED: &str = "dropped with the goal; its work is kept";

pub fn ago(age: Seconds) -> String {
    if age.0 < 2 { "just now".to_owned() } else { format!("{age} ago") }
}

/// The parts of the sprint's line, the most important first: where there is no room, the last of these gives way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SprintPart {
    Merged,
    /// The deadline; of a sprint that has ended, how it ended.
    Due,
    Budgets,
    /// Those that need a decision give way last.
    Open(TaskPhase),
    Used,
    /// Replaced, abandoned and dropped tasks.
    Ended,
}

/// The state of the sprint: merged tasks first; replaced and abandoned ones apart.
pub fn sprint_facts(sprint: &SprintView) -> Vec<(SprintPart, String)> {
    let progress = &sprint.progress;
    let merged = match progress.to_merge() {
        0 if progress.total == 0 => "nothing is planned yet".to_owned(),
        total => format!("{} of {total} merged", progress.merged),
    };
    let due = match sprint.deadline_left {
        _ if sprint.goal_is_open => Some("goal not judged yet".to_owned()),
        _ if sprint.status.is_terminal() => Some(sprint.status.to_string()),
        Some(left) if left >= 0 => Some(format!("due in {}", length(left))),
        Some(left) => Some(format!("overdue by {}", length(left))),
        None => None,
    };
    let used = sprint.usage.as_ref().and_then(Usage::in_words);
    let after = [(SprintPart::Due, due), (SprintPart::Used, used)];
    let after = after.into_iter().filter_map(|(part, text)| Some((part, text?)));
    [(SprintPart::Merged, merged)].into_iter().chain(not_merged(progress)).chain(after).collect()
}

/// The numbers of planned tasks that are not merged: the open ones by the headings of the board, then the others.
pub fn not_merged(progress: &Progress) -> impl Iterator<Item = (SprintPart, String)> {
    let open = PHASES.map(|(phase, heading)| {
        (SprintPart::Open(phase), progress.in_phases(&[phase]), heading.to_lowercase())
    });
    let ended = [
        (progress.replaced, "replaced"),
        (progress.abandoned, "abandoned"),
        (progress.with_goal, "dropped with the goal"),
    ];
    let ended = ended.map(|(number, what)| (SprintPart::Ended, number, what.to_owned()));
    let some = open.into_iter().chain(ended).filter(|(_, number, _)| *number > 0);
    some.map(|(part, number, what)| (part, format!("{number} {what}")))
}

/// The use of the budgets: those of the sprint and the day, and of tasks that have used much.
pub fn budgets(all: &[Spending]) -> Option<String> {
    let shown = all.iter().filter(|one| !matches!(one.scope, SpendingScope::Task(_)) || one.is_high());
    let words: Vec<String> = shown.map(|one| format!("{} {}", one.scope, one.amount)).collect();
    (!words.is_empty()).then(|| format!("budget: {}", words.join(" · ")))
}

/// The full columns of a bar: the merged tasks among those that are to be merged.
pub fn full_columns(sprint: &SprintView, columns: usize) -> usize {
    match sprint.progress.to_merge() {
        0 => 0,
        total => sprint.progress.merged * columns / total,
    }
}

/// An agent's status and task; the last ones if it is not present.
pub fn agent_doing(agent: &AgentView) -> String {
    doing(agent, true)
}

/// The same, without the contents of a second row: the progress of a merge, and the next try of a program.
pub fn agent_doing_short(agent: &AgentView) -> String {
    doing(agent, false)
}

fn doing(agent: &AgentView, is_long: bool) -> String {
    let holding = agent.task.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    // One word for every agent that waits.
    let is_idle = agent.status == AgentStatus::Idle;
    let was = || format!("was {}{holding}", if is_idle { AgentStatus::Waiting } else { agent.status });
    match agent.liveness {
        Liveness::Live => {}
        Liveness::Grace => return format!("silent, {}", was()),
        Liveness::Gone => return format!("gone, {}", was()),
        Liveness::Dead => return format!("dead, {}", was()),
    }
    let on = || agent.next.on.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    let next = &agent.next;
    if let What::MergeNow { is_testing, age } = next.what {
        let progress = if is_testing && !is_long { String::new() } else { progress(is_testing, age) };
        return format!("MERGING{}{progress}", on());
    }
    if let What::EndSession { age } = next.what {
        return format!("ENDING its {}, {age}", ended(agent));
    }
    if let What::LookAt(subject) = &next.what
        && agent.in_session
    {
        return format!("LOOKING at {subject}");
    }
    if next.what == What::SetUp {
        return format!("SETTING UP{}", on());
    }
    if let Some(held) = agent.held() {
        return format!("HELD: {}", if is_long { held.text() } else { held.reason() });
    }
    if let Some(retry) = next.retry() {
        return format!("FAILED {} of {}, again {}", retry.failed, retry.limit, retry.again());
    }
    match (&next.what, &agent.task) {
        (What::Judge, _) if agent.in_session => "JUDGING the goal".to_owned(),
        (What::Continue, _) => format!("WAITING to continue{holding}"),
        (What::Validate, _) => format!("VALIDATING{holding}"),
        (_, Some(_)) => format!("{}{holding}", agent.status),
        (What::Merge, None) => format!("WAITING to merge{}", on()),
        (_, None) => status_words(agent),
    }
}

/// The session that has submitted or decided.
fn ended(agent: &AgentView) -> String {
    match (&agent.next.on, agent.role) {
        (None, _) => "session".to_owned(),
        (Some(task), Role::CodeReviewer) => format!("review of {task}"),
        (Some(task), Role::Coder | Role::Planner) => format!("work on {task}"),
    }
}

/// True if work waits only for an agent program that cannot be used; a stop of the team comes first.
pub fn is_held_up(view: &View) -> bool {
    view.stopped.is_empty() && !view.is_stopping() && first_held(view).is_some()
}

/// True if a person has nothing to do: no failed session, and no held program without a running session.
pub fn is_well(view: &View) -> bool {
    let is_held = !view.held_clients.is_empty() && !view.agents.iter().any(AgentView::is_in_session);
    !is_held && view.agents.iter().all(|agent| agent.next.retry().is_none())
}

/// The team's present work, in words, if a person need not do anything.
pub fn team_does(view: &View) -> String {
    let judge =
        view.agents.iter().find(|agent| agent.next.what == What::Judge && agent.liveness.is_present());
    match (&view.merge, judge) {
        (Some(merge), _) if view.is_stopping() => {
            format!("the team is stopping; {}", stop_waits_for(Some(&merge.task)))
        }
        (_, Some(planner)) => format!("{} judges whether the goal is reached", planner.id),
        (_, None) => "the team is working".to_owned(),
    }
}

/// The reason that a stopping team waits: its merge, if one is running.
pub fn stop_waits_for(merge: Option<&TaskId>) -> String {
    match merge {
        Some(task) => format!("it waits for the merge of {task}"),
        None => "sessions may take a moment to end".to_owned(),
    }
}

/// The number of agents in a session or a merge, and that of all unless they are leaving.
pub fn at_work(view: &View, is_stopping: bool) -> String {
    let working = view.agents.iter().filter(|agent| agent.is_at_work()).count();
    match is_stopping || view.is_stopping() {
        true => format!("{working} still at work"),
        false => format!("{working} of {} at work", view.agents.len()),
    }
}

/// The program that is tried again first, if no agent is in a session.
fn first_held(view: &View) -> Option<&HeldView> {
    let mut present = view.agents.iter().filter(|agent| agent.liveness.is_present());
    if present.clone().any(AgentView::is_in_session) {
        return None;
    }
    let held = present.by_ref().filter_map(AgentView::held);
    held.min_by_key(|held| held.again_in.map_or(u64::MAX, |left| left.0))
}

/// An agent's status in one word; if it waits, with the matter that it waits for.
fn status_words(agent: &AgentView) -> String {
    let next = &agent.next;
    if !matches!(agent.status, AgentStatus::Waiting | AgentStatus::Idle) {
        // The number of a running session's try, after others without a result.
        let What::Plan { attempt: Some((number, limit)) } = next.what else {
            return agent.status.to_string();
        };
        return format!("{}, try {number} of {limit}", agent.status);
    }
    let on = next.on.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    let what = match (&next.what, next.behind.first(), agent.role) {
        (What::Plan { .. }, _, _) => "to plan".to_owned(),
        (What::Judge, _, _) => "to judge the goal".to_owned(),
        (What::LookAt(subject), _, _) => format!("to look at {subject}"),
        (What::Claim, _, _) => format!("to begin{on}"),
        (What::Review, _, _) => format!("to review{on}"),
        (_, Some(Behind::Goal), _) => "for a goal".to_owned(),
        (_, Some(Behind::Verdict), _) => "for a verdict".to_owned(),
        (_, Some(Behind::Answer), _) => "for your answer".to_owned(),
        (_, Some(Behind::StoppedPlanner), _) => "for you".to_owned(),
        (_, _, Role::Planner) => "until needed".to_owned(),
        (_, _, Role::Coder) => "for a task".to_owned(),
        (_, _, Role::CodeReviewer) => "for a submission".to_owned(),
    };
    format!("WAITING {what}")
}

/// The lease of an agent that holds a task; that of another one is no news.
pub fn agent_lease(agent: &AgentView) -> Option<String> {
    agent.lease.filter(|_| agent.task.is_some()).map(lease_left)
}

pub fn agent_sign(agent: &AgentView) -> &'static str {
    match agent.liveness {
        Liveness::Live => "●",
        Liveness::Grace => "◐",
        Liveness::Gone => "○",
        Liveness::Dead => "✗",
    }
}

pub fn agent_facts(agent: &AgentView) -> Vec<String> {
    let mut facts: Vec<String> = agent.machine.iter().map(|machine| format!("on {machine}")).collect();
    facts.extend(agent.heartbeat_age.map(|age| format!("heartbeat {}", ago(age))));
    facts.extend(agent.output_age.map(|age| format!("output {}", ago(age))));
    facts.extend(agent.context_percent.map(|percent| format!("context {percent} %")));
    facts.extend(agent.usage.as_ref().and_then(Usage::in_words));
    facts
}

/// The action of its session, or the failure of its last one.
pub fn agent_activity(agent: &AgentView) -> Option<String> {
    let failed = || agent.last_session.as_ref().filter(|last| last.failed).map(|last| last.result.clone());
    if agent.is_in_session() { agent.last_action.clone() } else { failed() }
}

/// A limit behind a number; nothing while the settings cannot be read.
fn of(limit: Option<u32>) -> String {
    limit.map(|limit| format!(" of {limit}")).unwrap_or_default()
}

/// The state of a task, as the board's headings name it.
pub fn task_status(task: &TaskView) -> String {
    let heading = PHASES.iter().find(|(phase, _)| *phase == task.phase).map(|(_, heading)| *heading);
    let Some(status) = task.status else { return "unknown status".to_owned() };
    let is_by_phase = matches!(status, Status::Claimed | Status::Unclaimed | Status::ReadyForReview);
    match heading.filter(|_| is_by_phase || task.phase == TaskPhase::Stopped) {
        _ if task.is_dropped() => "ENDED".to_owned(),
        Some(heading) => heading.to_owned(),
        None => plain(&status.to_string()),
    }
}

/// The words of a task's row beside its description.
pub fn task_facts(task: &TaskView) -> Vec<String> {
    let mut facts = Vec::new();
    let is_later = task.next.is_after_resume();
    let later = if is_later { AFTER_RESUME } else { "" };
    let owner = task.owner.map(|owner| owner.to_string());
    match task.phase {
        TaskPhase::Working => {
            let after = match task.next.behind.first() {
                Some(Behind::Work(other)) => format!(" after {other}"),
                _ => String::new(),
            };
            facts.extend(owner.map(|owner| format!("{owner}{after}{later}")));
            if task.status == Some(Status::Rejected) {
                facts.push("rejected".to_owned());
            }
            if task.review_cycles > 0 {
                facts.push(format!("rejection {}{}", task.review_cycles, of(task.max_review_cycles)));
            }
            facts.extend(task.iteration.map(|n| format!("attempt {n}{}", of(task.max_iterations))));
            facts.extend(task.lease.map(lease_left));
        }
        TaskPhase::Reviewing if task.status == Some(Status::Approved) => {
            facts.push(match &task.reason {
                Some(why) => format!("approved; {why}"),
                None => "approved, waiting for its merge".to_owned(),
            });
        }
        TaskPhase::Reviewing => {
            let lease = task.lease.filter(|lease| lease.left >= 0 && !task.stopped);
            match owner.filter(|_| lease.is_some()) {
                Some(reviewer) => {
                    facts.push(reviewer);
                    facts.extend(lease.map(lease_left));
                }
                None if is_later => facts.push("reviewed after liza resume".to_owned()),
                None => {
                    let held = task.reason.clone().filter(|_| task.next.what == What::FixValidation);
                    facts.push(held.unwrap_or_else(|| "waiting for a code reviewer".to_owned()));
                }
            }
            facts.extend(approvals_in_words(task));
        }
        TaskPhase::Waiting => {
            // First those that never will be: a narrow screen cuts the end.
            let mut unmet: Vec<&UnmetDependency> = task.waits_for.iter().collect();
            sort_by_key(&mut unmet, |unmet| !is_dead(unmet));
            let names: Vec<String> = unmet.into_iter().map(waiting).collect();
            facts.push(format!("after {}", names.join(", ")));
        }
        TaskPhase::Ready => {
            match task.status {
                Some(Status::Rejected) => facts.push("rejected".to_owned()),
                Some(Status::IntegrationFailed) => facts.push("merge failed".to_owned()),
                Some(Status::Claimed) => facts.push("its coder is gone".to_owned()),
                _ => {}
            }
            facts.extend(Some(task.next.to_string()).filter(|_| task.next.what == What::SetUp));
            facts.extend(is_later.then(|| "after liza resume".to_owned()));
            facts.push(format!("P{}", task.priority));
        }
        TaskPhase::Stopped => {
            facts.extend(task.owner.map(|owner| format!("stopped; {owner} continues{later}")));
            facts.push(format!("P{}", task.priority));
        }
        TaskPhase::Draft => facts.extend(task.reason.as_ref().map(|reason| format!("{reason}{later}"))),
        TaskPhase::Ended if task.is_dropped() => facts.push(DROPPED.to_owned()),
        TaskPhase::Stuck | TaskPhase::Ended => {}
    }
    if task.handoff_pending {
        facts.push("handoff".to_owned());
    }
    facts.extend(task.usage.as_ref().and_then(Usage::in_words));
    facts
}

/// The approvals of a task that needs more than one; `None` if one is enough.
pub fn approvals_in_words(task: &TaskView) -> Option<String> {
    let names: Vec<String> = task.approved_so_far.iter().map(ToString::to_string).collect();
    let by = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    (!task.high_impact.is_empty())
        .then(|| format!("high impact, {} of {APPROVALS} approvals{by}", names.len()))
}

/// The number of all tasks below a heading, some of which are in NEEDS YOU.
pub fn in_needs(some: usize, all: usize) -> String {
    match some == all {
        true => format!("{all}, see NEEDS YOU"),
        false => format!("{all}, {some} of them in NEEDS YOU"),
    }
}

/// The numbers of ended tasks, by their end.
pub fn ended_counts(view: &View) -> Vec<String> {
    let ended = || view.tasks.iter().filter(|task| task.phase == TaskPhase::Ended);
    let number = |status: Status| ended().filter(|task| task.status == Some(status)).count();
    let counts = [
        (number(Status::Merged), "merged"),
        (number(Status::Superseded), "replaced"),
        (number(Status::Abandoned), "abandoned"),
        (view.tasks.iter().filter(|task| task.is_dropped()).count(), "dropped with the goal"),
        (view.archived, "in the archive"),
    ];
    counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
}

/// A task that has to be merged first; with its status if it never will be.
fn waiting(waiting: &UnmetDependency) -> String {
    match waiting.status {
        Some(status) if is_dead(waiting) => format!("{} ({status})", waiting.task),
        Some(_) => waiting.task.to_string(),
        None => format!("{} (unknown)", waiting.task),
    }
}

/// True if it will never be merged.
fn is_dead(waiting: &UnmetDependency) -> bool {
    waiting.status.is_none_or(|status| matches!(status, Status::Abandoned | Status::Superseded))
}

/// The remaining time of a lease, after its name.
pub fn lease_left(lease: LeaseView) -> String {
    format!("lease {}", lease_length(lease))
}

pub fn lease_length(lease: LeaseView) -> String {
    match lease.left {
        left @ 0.. => length(left).to_string(),
        left => format!("expired {} ago", length(left)),
    }
}

fn length(seconds: i64) -> Seconds {
    Seconds(seconds.unsigned_abs())
}

/// The next steps of a person, each with its command.
pub fn next_steps(view: &View) -> Vec<(String, &str)> {
    steps(view, true)
}

/// The same without the distance and the way of a result, for a narrow screen.
pub fn next_steps_short(view: &View) -> Vec<(String, &str)> {
    steps(view, false)
}

/// Those whose start of a team or an agent no entry of `needs_you` asks for.
fn steps(view: &View, is_long: bool) -> Vec<(String, &str)> {
    let starts = || view.start.agents.iter().chain([&view.start.run]);
    let is_asked = |command: &str| view.needs_you.iter().any(|need| need.command == command);
    let mut steps = all_steps(view, is_long);
    steps.retain(|(_, command)| !starts().any(|start| start == command) || !is_asked(command));
    steps
}

fn all_steps(view: &View, is_long: bool) -> Vec<(String, &str)> {
    let Some(goal) = &view.goal else { return Vec::new() };
    match goal.status {
        // The entry in `needs_you` says it.
        GoalStatus::InProgress if goal.description.trim().is_empty() => return Vec::new(),
        GoalStatus::InProgress if view.stopped.is_empty() => {}
        GoalStatus::InProgress => return Vec::new(),
        GoalStatus::Completed => return take_result(view, is_long),
        GoalStatus::Aborted => {
            return vec![("The goal is aborted. State another one:".to_owned(), "liza goal new \"…\"")];
        }
    }
    if !view.has_team() {
        return start_team(view);
    }
    if view.is_stopping() {
        return Vec::new();
    }
    if let Some(held) = first_held(view) {
        // A hold that only the human ends is in `needs_you`.
        let step = held.again_in.map(|_| (format!("{}. To try it now:", held.text()), "liza resume"));
        return step.into_iter().collect();
    }
    let has_planner =
        view.agents.iter().any(|agent| agent.role == Role::Planner && agent.liveness.is_present());
    let unseen = view.planner_triggers.iter().filter(|trigger| !trigger.seen && !has_planner).count();
    let behind = |role: Role| view.tasks.iter().filter(|task| task.next.missing_role() == Some(role)).count();
    let waiting = [
        (unseen, Role::Planner, "decision", "pending, but no planner is running:"),
        (behind(Role::Coder), Role::Coder, "task", "ready, but no coder is running:"),
        (
            behind(Role::CodeReviewer),
            Role::CodeReviewer,
            "task",
            "to review or merge, but no code reviewer is running:",
        ),
    ];
    let missing = waiting.into_iter().filter(|(n, ..)| *n > 0);
    let start = |role: Role| view.start.agent(role).as_str();
    missing.map(|(n, role, noun, what)| (format!("{} {what}", count(n, noun)), start(role))).collect()
}

fn take_result(view: &View, is_long: bool) -> Vec<(String, &str)> {
    let next = "liza goal new \"…\"";
    if view.result_is_taken() {
        let how = view.goal.as_ref().and_then(|goal| goal.taken.as_ref());
        let how = how.map(|taken| format!(" ({})", taken.how)).unwrap_or_default();
        let aside = if is_long { format!(", and you have its result{how}") } else { String::new() };
        return vec![(format!("The goal is reached{aside}. State the next one:"), next)];
    }
    let distance = view.main_branch.as_ref().filter(|_| is_long).map(|main| {
        let behind = if main.behind > 0 { format!(", {} behind", main.behind) } else { String::new() };
        format!(
            ", {} ahead of {}{behind}",
            count(usize::try_from(main.ahead).unwrap_or(usize::MAX), "commit"),
            main.name
        )
    });
    vec![
        (format!("The goal is reached{}. Review it:", distance.unwrap_or_default()), "liza diff"),
        ("take it:".to_owned(), "liza finish"),
        ("next goal:".to_owned(), next),
    ]
}

fn start_team(view: &View) -> Vec<(String, &str)> {
    let run = view.start.run.as_str();
    if view.tasks.is_empty() && view.archived == 0 {
        return vec![
            ("There are no tasks yet, and no team is running. Start it:".to_owned(), run),
            ("or add a task yourself:".to_owned(), "liza add \"TEXT\""),
        ];
    }
    let has_ended = |task: &TaskView| task.status.is_some_and(Status::is_terminal);
    let is_unplanned = |sprint: &SprintView| sprint.progress.total == 0;
    if view.tasks.iter().all(has_ended) && view.sprint.as_ref().is_some_and(is_unplanned) {
        let goal = view.goal.as_ref().map_or("the goal", |goal| goal.id.as_str());
        let why = format!("Nothing is planned yet for {goal}, and no team is running. Start it:");
        return vec![(why, run)];
    }
    if view.tasks.iter().all(has_ended) {
        let why = "All tasks have ended; the planner has not judged the goal yet, and no team is running.";
        return vec![(format!("{why} Start it:"), run)];
    }
    vec![("No team is running. Start it:".to_owned(), run)]
}
