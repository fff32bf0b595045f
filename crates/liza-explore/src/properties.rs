//! The promises of the protocol, asked of every board and every step.

use std::collections::BTreeSet;

use liza_core::model::{
    AgentId, AgentStatus, Approver, Role, Status, StopFiles, TaskBody, TaskId, TaskRecord, TaskStatus,
};
use liza_core::protocol::{BeginMerge, ClaimReview, Command, Request, ReserveTask, apply};
use liza_core::rules::approvals::{has_approval, lacks_approval};
use liza_core::rules::invariants::validate;
use liza_core::rules::validation::is_validated;
use liza_core::supervise::{
    Backoffs, Situation, Step, WorkKind, WorkSubject, next_step, planner_needs_human, unseen_triggers,
};

use crate::alphabet::Action;
use crate::world::{LEASE, Tooth, World, sha};

/// `None` where the property says nothing.
pub type Answer = Option<Result<(), String>>;

/// A property of a board.
#[derive(Clone, Copy)]
pub struct Property {
    pub name: &'static str,
    pub check: fn(&World) -> Answer,
}

impl Property {
    pub fn ask(&self, world: &World) -> Answer {
        (self.check)(world)
    }
}

/// A property of a step.
#[derive(Clone, Copy)]
pub struct StepProperty {
    pub name: &'static str,
    pub check: fn(&World, &Action, &World) -> Answer,
}

impl StepProperty {
    pub fn ask(&self, before: &World, action: &Action, after: &World) -> Answer {
        (self.check)(before, action, after)
    }
}

pub const ONE_OWNER: &str = "one live owner";
pub const MERGED_IS_APPROVED: &str = "merged implies approved";
pub const MERGED_IS_VERIFIED: &str = "merged implies verified, or a person's word";
pub const CLAIMED_HAS_WORKTREE: &str = "claimed implies a worktree";
pub const MERGED_ONCE: &str = "a task is merged once";
pub const TERMINAL_STAYS: &str = "terminal is terminal";
pub const LIMITS_HOLD: &str = "limits hold";
pub const WORK_IS_CONSERVED: &str = "work is conserved";
pub const PLANNER_IS_WOKEN: &str = "the planner is woken for every blocked task";
pub const LATE_IS_REFUSED: &str = "fenced agents change nothing";
pub const BOARD_IS_VALID: &str = "the invariants hold";
pub const STOP_FILES_HOLD: &str = "under a stop file nothing begins";
pub const SESSIONS_END: &str = "sessions without progress are bounded";
pub const WAY_OUT: &str = "the goal can end, or a person is asked for a step that leads on";

const OF_BOARDS: &[Property] = &[
    Property { name: ONE_OWNER, check: one_owner },
    Property { name: CLAIMED_HAS_WORKTREE, check: claimed_has_worktree },
    Property { name: LIMITS_HOLD, check: limits_hold },
    Property { name: WORK_IS_CONSERVED, check: work_is_conserved },
    Property { name: PLANNER_IS_WOKEN, check: planner_is_woken },
    Property { name: STOP_FILES_HOLD, check: stop_files_hold },
];

/// The names of all promises.
pub fn names() -> impl Iterator<Item = &'static str> {
    let of_boards = OF_BOARDS.iter().map(|one| one.name);
    of_boards.chain(OF_STEPS.iter().map(|one| one.name)).chain([BOARD_IS_VALID, SESSIONS_END, WAY_OUT])
}

/// Promises that a person's edit can break at once.
const OF_RULES_ALONE: [&str; 3] = [ONE_OWNER, LIMITS_HOLD, BOARD_IS_VALID];

/// Asks a board for all promises. A person may write anything; the promises that no edit breaks hold on such a board
/// too. The invariants contain some of the promises, so they are asked where all others are kept.
pub fn ask_board(world: &World) -> Vec<(&'static str, Answer)> {
    let is_meant = |name: &str| !world.is_edited || !OF_RULES_ALONE.contains(&name);
    let all = OF_BOARDS.iter().filter(|one| is_meant(one.name));
    let mut answers: Vec<(&str, Answer)> = all.map(|one| (one.name, one.ask(world))).collect();
    let is_sound = !answers.iter().any(|(_, answer)| matches!(answer, Some(Err(_))));
    if is_sound && is_meant(BOARD_IS_VALID) {
        answers.push((BOARD_IS_VALID, board_is_valid(world)));
    }
    answers
}

pub const OF_STEPS: &[StepProperty] = &[
    StepProperty { name: MERGED_IS_APPROVED, check: merged_is_approved },
    StepProperty { name: MERGED_IS_VERIFIED, check: merged_is_verified },
    StepProperty { name: MERGED_ONCE, check: merged_once },
    StepProperty { name: TERMINAL_STAYS, check: terminal_stays },
    StepProperty { name: LATE_IS_REFUSED, check: late_is_refused },
];

/// Holds if nothing is wrong.
fn nothing(wrong: impl IntoIterator<Item = String>) -> Answer {
    let wrong: Vec<String> = wrong.into_iter().collect();
    Some(if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) })
}

/// Each agent that names a task holds it, and no two hold the same one.
fn one_owner(world: &World) -> Answer {
    let agents = world.state.board.agents.ready()?;
    let held: Vec<(&AgentId, &TaskId)> =
        agents.iter().filter_map(|(id, entry)| Some((id, entry.current_task.as_ref()?))).collect();
    let first = held.first()?;
    let tasks: BTreeSet<&TaskId> = held.iter().map(|(_, task)| *task).collect();
    let holds = |(id, task): &(&AgentId, &TaskId)| {
        world.state.board.summary(task).is_some_and(|summary| summary.is_held_by(**id))
    };
    let wrong =
        held.iter().filter(|pair| !holds(pair)).map(|(id, task)| format!("{id} does not hold {task}"));
    let doubled =
        (tasks.len() < held.len()).then(|| format!("{} and another agent hold the same task", first.0));
    nothing(wrong.chain(doubled))
}

/// A claimed task has its worktree. After an edit by hand at least its lease ends, and it is claimed again.
fn claimed_has_worktree(world: &World) -> Answer {
    let mut claimed = world.state.board.summaries().filter(|task| task.is(Status::Claimed)).peekable();
    claimed.peek()?;
    let lacks = claimed.filter(|task| {
        let has_end = world.is_edited && task.lease_expires.is_some();
        !has_end && !world.worktrees.contains_key(&task.id)
    });
    nothing(lacks.map(|task| format!("{} has no worktree", task.id)))
}

fn limits_hold(world: &World) -> Answer {
    let (board, mut wrong) = (&world.state.board, Vec::new());
    let (config, sprint) = (board.config.ready()?, board.sprint.ready()?);
    for (id, body) in world.state.bodies() {
        let record = body.record();
        let mut at_most = |what: &str, value: Option<u32>, limit: u32| {
            if value.unwrap_or(0) > limit {
                wrong.push(format!("{id}: {what} is {value:?}, at most {limit}"));
            }
        };
        at_most("iteration", record.iteration, config.max_iterations(record));
        at_most("rejections", record.review_cycles_current, config.max_review_cycles);
        at_most("crashes", record.crashes, config.max_crashes);
        at_most("idle exits", record.idle_exits, config.max_idle_exits);
        at_most("sessions", sprint.sessions.tasks.get(id).copied(), config.max_sessions);
        at_most("replacements", record.rescope_depth, config.max_rescopes);
        let blocks = u32::try_from(record.past().blocks_since_human).unwrap_or(u32::MAX);
        at_most("blocks since the human", Some(blocks), config.max_blocks);
    }
    let exits = sprint.planner_exits.count;
    if exits > config.max_crashes {
        wrong.push(format!("{exits} sessions of the planner had no result, one after the other"));
    }
    if sprint.sessions.planner > config.max_planner_sessions {
        wrong.push(format!("the planner had {} sessions", sprint.sessions.planner));
    }
    nothing(wrong)
}

/// A free agent that may take work, by `apply`, takes some of it, by `next_step`.
fn work_is_conserved(world: &World) -> Answer {
    let agents = world.state.board.agents.ready()?;
    let is_free = |id: &AgentId| {
        let entry = &agents[id];
        entry.current_task.is_none() && !entry.status.is_in_session() && entry.is_live(world.now)
    };
    let mut asked = false;
    let mut wrong = Vec::new();
    for id in agents.keys().filter(|id| id.role() != Role::Planner && is_free(id)) {
        let enabled = enabled(world, *id, StopFiles::default());
        if enabled.is_empty() {
            continue;
        }
        asked = true;
        let taken = candidates(world, *id);
        if !taken.iter().any(|item| enabled.contains(item)) {
            wrong.push(format!("{id} may take {enabled:?}, and takes {taken:?}"));
        }
    }
    if asked { nothing(wrong) } else { None }
}

type Item = (WorkKind, TaskId);

/// The work that the rules accept from this agent's supervisor.
fn enabled(world: &World, who: AgentId, stop_files: StopFiles) -> BTreeSet<Item> {
    let board = &world.state.board;
    let accepts = |command: Command| {
        let request = Request { stop_files, ..world.request(world.supervisor(who), command) };
        apply(board, &request).is_ok_and(|decided| decided.answer.is_ok())
    };
    let (mut found, waiting) = (BTreeSet::new(), world.found_merges());
    for (id, slot) in board.tasks.iter().filter(|(id, _)| waiting.of(id).is_none()) {
        let task = id.clone();
        match who.role() {
            Role::Coder => {
                let claim = ReserveTask { task, coder: who, head: sha(world.integration) };
                if accepts(Command::from(claim)) {
                    found.insert((WorkKind::Code, id.clone()));
                }
            }
            Role::CodeReviewer => {
                let gate = world.size.validation.then(|| world.gate());
                let integration = Some(sha(world.integration));
                let claim = ClaimReview { task, reviewer: who, setup_failure: None, integration, gate };
                if !slot.summary.review_dropped_by.contains(&who) && accepts(Command::from(claim)) {
                    found.insert((WorkKind::Review, id.clone()));
                }
                if !waiting.hold_merges() && accepts(Command::from(BeginMerge { task: id.clone() })) {
                    found.insert((WorkKind::Merge, id.clone()));
                }
            }
            Role::Planner => {}
        }
    }
    found
}

/// Work that a broken supervisor puts off for ever.
fn backoffs(world: &World, agent: AgentId) -> Backoffs {
    let mut backoffs = Backoffs::NONE;
    let kind = match world.tooth {
        Some(Tooth::LeavesWork) => WorkKind::Code,
        Some(Tooth::IgnoresBlocked) => WorkKind::Plan,
        _ => return backoffs,
    };
    backoffs.put_off(kind, WorkSubject::Agent(agent), world.now + LEASE);
    backoffs
}

pub(crate) fn decided(world: &World, agent: AgentId, stop_files: StopFiles) -> Step {
    let stop_files =
        if world.tooth == Some(Tooth::IgnoresStopFiles) { StopFiles::default() } else { stop_files };
    next_step(&Situation {
        state: &world.state,
        agent,
        stop_files,
        found_merges: &world.found_merges(),
        now: world.now,
        idle_since: world.now,
        in_team: true,
        clients: &["codex".to_owned()],
        backoffs: &backoffs(world, agent),
    })
}

fn candidates(world: &World, agent: AgentId) -> Vec<Item> {
    let approved = world.state.board.in_status(Status::Approved).next();
    if let Some(first) = approved.filter(|_| is_first_merge_only(world, agent)) {
        return vec![(WorkKind::Merge, first)];
    }
    let Step::Work(work) = decided(world, agent, StopFiles::default()) else { return Vec::new() };
    work.iter().filter_map(|work| Some((work.kind(), work.task()?.clone()))).collect()
}

/// A broken supervisor tries the first merge again and again before it looks for other work.
fn is_first_merge_only(world: &World, agent: AgentId) -> bool {
    world.tooth == Some(Tooth::FirstMergeOnly) && agent.role() == Role::CodeReviewer
}

/// A planner that waits is woken for a blocked task that it has not looked at, unless only a person can let it go on.
fn planner_is_woken(world: &World) -> Answer {
    let blocked: Vec<&TaskId> =
        world.state.bodies().filter(|(_, body)| is_blocked(body)).map(|(id, _)| id).collect();
    let planner = world.size.planner();
    let entry = world.state.board.agents.ready()?.get(&planner)?;
    let is_idle = entry.status != AgentStatus::Planning;
    if blocked.is_empty() || !is_idle || planner_needs_human(&world.state, world.now) {
        return None;
    }
    let seen = &world.state.board.sprint.ready()?.seen_triggers;
    let pending = unseen_triggers(&world.state, world.now);
    let is_known = |task: &TaskId| {
        let key = |key: &str| key.split(':').any(|part| part == task.as_str());
        pending.iter().any(|trigger| trigger.subject == task.as_str()) || seen.iter().any(|seen| key(seen))
    };
    let mut wrong: Vec<String> =
        blocked.iter().filter(|task| !is_known(task)).map(|task| format!("nobody looks at {task}")).collect();
    let step = decided(world, planner, StopFiles::default());
    if !pending.is_empty() && !matches!(step, Step::Work(_)) {
        wrong.push(format!("the planner does {step:?}"));
    }
    nothing(wrong)
}

/// True unless a person wrote the status alone into the file: that is a broken task, which the person is shown.
fn is_blocked(body: &TaskBody) -> bool {
    matches!(body.status(), Ok(TaskStatus::Blocked { .. }))
}

fn board_is_valid(world: &World) -> Answer {
    let wrong = validate(&world.state, world, world.now);
    // A lease that is over is an alarm, not a wrong board.
    nothing(wrong.iter().filter(|violation| !violation.has_alarm).map(ToString::to_string))
}

fn statuses<'w>(before: &'w World, after: &'w World) -> impl Iterator<Item = (&'w TaskId, Status, Status)> {
    let both = |id: &'w TaskId| Some((id, before.state.board.status(id)?, after.state.board.status(id)?));
    before.state.board.tasks.keys().filter_map(both)
}

/// The tasks that this step merges, as they were before it.
fn merged<'w>(
    before: &'w World,
    action: &Action,
    after: &'w World,
) -> Vec<(&'w TaskId, Option<&'w TaskRecord>)> {
    if matches!(action, Action::Edit(..)) {
        return Vec::new();
    }
    let merged = statuses(before, after).filter(|(_, from, to)| from != to && *to == Status::Merged);
    merged.map(|(id, _, _)| (id, before.state.board.body(id).ok().map(TaskBody::record))).collect()
}

fn merged_is_approved(before: &World, action: &Action, after: &World) -> Answer {
    let merged = merged(before, action, after);
    merged.first()?;
    let lacks = merged.iter().filter(|(_, record)| !record.is_some_and(has_approval));
    nothing(lacks.map(|(id, _)| format!("{id} is MERGED by {action:?} without an approval")))
}

/// What an agent approved has passed its commands on exactly that commit.
fn merged_is_verified(before: &World, action: &Action, after: &World) -> Answer {
    let config = before.state.board.config.ready().filter(|config| !config.validation.is_empty())?;
    let merged = merged(before, action, after);
    merged.first()?;
    let is_verified = |record: &TaskRecord| {
        let commit = record.review_commit.as_ref();
        let passed = commit.is_some_and(|commit| is_validated(config, record, commit, None));
        passed || record.approved_by == Some(Approver::Human)
    };
    let lacks = merged.iter().filter(|(_, record)| !record.is_some_and(is_verified));
    nothing(lacks.map(|(id, _)| format!("{id} is MERGED by {action:?}, and its commands have not passed")))
}

/// A merge whose record was lost is recorded, or settled by a person, and not made again.
fn merged_once(before: &World, action: &Action, after: &World) -> Answer {
    let (lost, _) = before.unrecorded.as_ref()?;
    let is_again =
        matches!(action, Action::Merge(_, task) | Action::LoseMerge(_, task) if *task == lost.task);
    (before.integration != after.integration)
        .then(|| if is_again { Err(format!("{} is on the branch twice", lost.task)) } else { Ok(()) })
}

/// True if the task has ended. One that a person has set to MERGED in the file has not: a person judges it.
pub(crate) fn has_ended(world: &World, task: &TaskId) -> bool {
    let Ok(body) = world.state.board.body(task) else { return false };
    body.record().status.is_some_and(Status::is_terminal) && !lacks_approval(body.record())
}

fn terminal_stays(before: &World, action: &Action, after: &World) -> Answer {
    if matches!(action, Action::Edit(..)) {
        return None;
    }
    let mut ended = statuses(before, after).filter(|(id, _, _)| has_ended(before, id)).peekable();
    ended.peek()?;
    let moved = ended.filter(|(_, from, to)| from != to);
    nothing(moved.map(|(id, from, to)| format!("{id}: {from} → {to} by {action:?}")))
}

/// A late command is refused, so it is no step at all.
fn late_is_refused(_: &World, action: &Action, _: &World) -> Answer {
    action.is_late().then(|| Err(format!("{action:?} was accepted")))
}

/// Under each stop file no agent is offered work, and the rules refuse what would begin some.
fn stop_files_hold(world: &World) -> Answer {
    let files = [
        StopFiles { pause: true, ..StopFiles::default() },
        StopFiles { checkpoint: true, ..StopFiles::default() },
        StopFiles { abort: true, ..StopFiles::default() },
    ];
    let agents: Vec<AgentId> = world.state.board.agents.ready()?.keys().copied().collect();
    let begins = |agent: AgentId, file: StopFiles| {
        let works = matches!(decided(world, agent, file), Step::Work(_));
        let taken = enabled(world, agent, file).into_iter().find(|(kind, _)| *kind != WorkKind::Merge);
        (works || taken.is_some()).then(|| format!("{agent} begins {taken:?} under {:?}", file.strongest()))
    };
    let all = agents.into_iter().flat_map(|agent| files.map(|file| begins(agent, file)));
    nothing(all.flatten())
}
