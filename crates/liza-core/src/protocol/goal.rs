//! goal complete, goal abort, goal new: the start and the end of a goal.

use serde::Serialize;

use crate::model::{
    Actor, Alignment, Appended, Board, Effect, Goal, GoalStatus, LogAction, Refusal, Section, Sprint,
    SprintStatus, StopFile, TaskId, Timestamp,
};

use super::dropping::abandon;
use super::open_work::{check_open, open_tasks};
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, PLANNING, Rights};
use super::tx::{Tx, required};

/// The goal is reached: refused while any task is open, and to the planner during a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompleteGoal;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AbortGoal;

/// The next goal. The rest of an aborted one is abandoned; everything goes to the archive.
#[derive(Debug, Clone, PartialEq)]
pub struct NewGoal {
    pub description: String,
    /// The vision document; that of the last goal if absent.
    pub spec_ref: Option<String>,
}

/// The goal's new status, or the new goal's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoalReply {
    /// COMPLETED, ABORTED or `goal-N`.
    pub goal: String,
}

impl Rule for CompleteGoal {
    type Reply = GoalReply;
    const VERB: &'static str = "goal complete";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint]);

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<GoalReply, Refusal> {
        check_open(tx)?;
        refuse_open_tasks(&open_tasks(tx.board))?;
        if tx.actor != Actor::Human && tx.board.tasks.is_empty() && tx.board.archived.is_empty() {
            return Err(Refusal::NothingPlanned);
        }
        let sprint = tx.board.sprint()?.status;
        if tx.actor == Actor::Human {
            // Completing the goal is the review that the checkpoint waits for.
            tx.effect(Effect::RemoveStopFile(StopFile::Checkpoint));
        } else if sprint == SprintStatus::Checkpoint {
            let needed = "the checkpoint to be over";
            return Err(Refusal::SprintStatus { status: sprint, verb: Self::VERB, needed });
        }
        end(tx, GoalStatus::Completed, SprintStatus::Completed)?;
        tx.log(LogAction::GoalEnded, None, "goal completed");
        Ok(GoalReply { goal: GoalStatus::Completed.to_string() })
    }
}

impl Rule for AbortGoal {
    type Reply = GoalReply;
    const VERB: &'static str = "goal abort";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<GoalReply, Refusal> {
        abort(tx)
    }
}

impl Rule for NewGoal {
    type Reply = GoalReply;
    const VERB: &'static str = "goal new";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint, Section::Handoff]);

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        board.tasks.keys().cloned().collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<GoalReply, Refusal> {
        let description = required(&self.description, "the goal")?.to_owned();
        let old = tx.board.goal()?.clone();
        let empty = old.description.trim().is_empty() && old.status == GoalStatus::InProgress;
        if empty && tx.board.tasks.is_empty() {
            return self.state_first(tx, &description);
        }
        let open = open_tasks(tx.board);
        if old.status != GoalStatus::Aborted {
            refuse_open_tasks(&open)?;
        }
        for id in tx.board.tasks.keys() {
            let mut record = tx.board.body(id)?.record().clone();
            if open.contains(id) {
                abandon(tx, id, &mut record, "goal aborted")?;
            }
            tx.archive(id, record);
        }
        let number = old.id.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or(1u32);
        let goal = Goal {
            spec_ref: self.spec_ref.clone().or_else(|| old.spec_ref.clone()),
            integration_head: old.integration_head.clone(),
            ..Goal::begin(number.saturating_add(1), &description, tx.now)
        };
        let (id, now) = (goal.id.clone(), tx.now);
        *tx.goal()? = goal;
        tx.close_goal(old);
        let past = tx.board.sprint()?.clone();
        let mut next = Sprint::begin(past.number().saturating_add(1), &id, now);
        next.timeline.paused_at = past.timeline.paused_at;
        next.today = past.today.clone();
        *tx.sprint()? = next;
        tx.close_sprint(past);
        tx.handoffs()?.clear();
        // The checkpoint was about the sprint that is now archived. PAUSE is about the agents, so it stays.
        tx.effect(Effect::RemoveStopFile(StopFile::Checkpoint));
        tx.effect(Effect::RemoveStopFile(StopFile::Abort));
        Ok(announce(tx, id, &description))
    }
}

impl NewGoal {
    /// States the goal of a project that was set up without one; there is nothing to archive.
    fn state_first(&self, tx: &mut Tx<'_>, description: &str) -> Result<GoalReply, Refusal> {
        let goal = tx.goal()?;
        goal.description = description.to_owned();
        goal.spec_ref = self.spec_ref.clone().or_else(|| goal.spec_ref.take());
        let id = goal.id.clone();
        Ok(announce(tx, id, description))
    }
}

fn announce(tx: &mut Tx<'_>, id: String, description: &str) -> GoalReply {
    let (timestamp, event) = (tx.now, "initialization".to_owned());
    let summary = format!("Initial alignment: {description}");
    tx.append(Appended::Alignment(Alignment { timestamp, event, summary }));
    tx.log(LogAction::GoalCreated, None, description);
    GoalReply { goal: id }
}

/// Ends goal and sprint for good, and stops every agent.
pub(super) fn abort(tx: &mut Tx<'_>) -> Result<GoalReply, Refusal> {
    let reply = abort_without_log(tx)?;
    tx.log(LogAction::Aborted, None, "goal and sprint aborted");
    Ok(reply)
}

pub(super) fn abort_without_log(tx: &mut Tx<'_>) -> Result<GoalReply, Refusal> {
    check_open(tx)?;
    end(tx, GoalStatus::Aborted, SprintStatus::Aborted)?;
    // ABORT exists before CHECKPOINT goes: at no moment is there no file that holds the agents back.
    tx.create_stop_file(StopFile::Abort);
    tx.effect(Effect::RemoveStopFile(StopFile::Checkpoint));
    Ok(GoalReply { goal: GoalStatus::Aborted.to_string() })
}

fn end(tx: &mut Tx<'_>, goal: GoalStatus, sprint_status: SprintStatus) -> Result<(), Refusal> {
    let now = tx.now;
    tx.goal()?.status = goal;
    let sprint = tx.sprint()?;
    if !sprint.status.is_terminal() {
        sprint.status = sprint_status;
        sprint.timeline.ended = Some(now);
    }
    Ok(())
}

fn refuse_open_tasks(tasks: &[TaskId]) -> Result<(), Refusal> {
    if tasks.is_empty() {
        return Ok(());
    }
    let names = tasks.iter().map(ToString::to_string).collect();
    Err(Refusal::TasksOpen { count: tasks.len(), tasks: names })
}
