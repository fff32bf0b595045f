//! handoff: a session whose context is used up leaves its knowledge to the next one.

use serde::Serialize;

use crate::model::{
    AgentId, AgentStatus, EventName, Goal, Handoff, HistoryEvent, IdError, LogAction, Refusal, Role, Section,
    Status, Task, TaskId,
};

use super::operation::{LoadScope, Rule};
use super::ownership::own_claim;
use super::permission::{AGENTS, Rights, SUPERVISION};
use super::reply::TaskReply;
use super::tx::{Tx, required};

/// The longest phrase that a session can still write and the next one can still take in.
const PHRASE_MAX: usize = 300;

#[derive(Debug, Clone, PartialEq)]
pub struct WriteHandoff {
    /// A planner may leave it out.
    pub task: Option<TaskId>,
    pub notes: HandoffNotes,
    /// Uncommitted paths in the worktree.
    pub dirty: Vec<String>,
}

/// The notes of a session for the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandoffNotes {
    /// The progress on the task.
    pub summary: String,
    pub next_action: String,
    pub approach: Option<String>,
    pub blockers: Option<String>,
    pub files_modified: Vec<String>,
    pub next_steps: Vec<String>,
    pub context_percent: Option<u32>,
}

/// The next session has the notes in its prompt; they stay readable, the flag goes.
#[derive(Debug, Clone, PartialEq)]
pub struct TakeHandoff {
    pub task: TaskId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandoffWritten {
    /// `None` if the notes are about the goal.
    pub task: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

impl Rule for WriteHandoff {
    type Reply = HandoffWritten;
    const VERB: &'static str = "handoff";
    const RIGHTS: Rights = AGENTS;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal, Section::Handoff]);

    fn target(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<HandoffWritten, Refusal> {
        match &self.task {
            Some(id) => self.about_task(tx, id),
            None => self.about_goal(tx),
        }
    }
}

impl WriteHandoff {
    fn about_task(&self, tx: &mut Tx<'_>, id: &TaskId) -> Result<HandoffWritten, Refusal> {
        let mut task = tx.task(id)?;
        let agent = writer(tx, &task)?;
        if agent.role() == Role::Coder && !self.dirty.is_empty() {
            return Err(Refusal::DirtyWorktree { task: id.clone(), paths: self.dirty.clone() });
        }
        let handoff = self.keep(tx, agent, id)?;
        if agent.role() != Role::Planner {
            task.record.handoff_pending = Some(true);
            task.record.clear_exit_counts();
        }
        task.push_event(add_notes(tx.event(EventName::Handoff), &handoff));
        let task = tx.save(task, EventName::Handoff, &handoff.summary);
        Ok(HandoffWritten { task: Some(task.task), status: task.status })
    }

    /// A planner's notes to its next session, kept under the goal's name.
    fn about_goal(&self, tx: &mut Tx<'_>) -> Result<HandoffWritten, Refusal> {
        let agent = tx.actor.agent().filter(|agent| agent.role() == Role::Planner);
        let agent = agent.ok_or(Refusal::Missing { what: "the task (only the planner can leave it out)" })?;
        let goal = goal_key(tx.board.goal()?)?;
        let handoff = self.keep(tx, agent, &goal)?;
        tx.log(LogAction::Task(EventName::Handoff), None, &handoff.summary);
        Ok(HandoffWritten { task: None, status: None })
    }

    /// Keeps the notes, and shows the agent as handing off.
    fn keep(&self, tx: &mut Tx<'_>, agent: AgentId, key: &TaskId) -> Result<Handoff, Refusal> {
        let notes = &self.notes;
        let summary = phrase(&notes.summary, "how far the work is (--summary)")?;
        let next_action = phrase(&notes.next_action, "what to do first (--next-action)")?;
        let entry = tx.find_agent(agent)?;
        let measured = entry.as_ref().and_then(|entry| entry.context_percent);
        let handoff = Handoff {
            agent,
            role: Some(agent.role()),
            context_used: notes.context_percent.or(measured).map(|percent| format!("{percent}%")),
            timestamp: Some(tx.now),
            summary: summary.to_owned(),
            next_action: next_action.to_owned(),
            approach: notes.approach.clone(),
            blockers: notes.blockers.clone(),
            files_modified: notes.files_modified.clone(),
            next_steps: notes.next_steps.clone(),
        };
        tx.handoffs()?.insert(key.clone(), handoff.clone());
        if let Some(mut entry) = entry {
            entry.status = AgentStatus::Handoff;
            tx.put_agent(agent, entry);
        }
        Ok(handoff)
    }
}

/// The key of a planner's notes that are about no single task.
pub fn goal_key(goal: &Goal) -> Result<TaskId, Refusal> {
    let problem = |error: IdError| Refusal::BadText { what: "goal.id", problem: error.to_string() };
    goal.id.parse().map_err(problem)
}

/// The history keeps the notes when the handoff itself is gone.
fn add_notes(event: HistoryEvent, notes: &Handoff) -> HistoryEvent {
    let list = |items: &Vec<String>| Some(items.clone()).filter(|items| !items.is_empty());
    event
        .with("summary", notes.summary.as_str())
        .with("next_action", notes.next_action.as_str())
        .with_some("approach", notes.approach.as_deref())
        .with_some("blockers", notes.blockers.as_deref())
        .with_some("files_modified", list(&notes.files_modified))
        .with_some("next_steps", list(&notes.next_steps))
}

impl Rule for TakeHandoff {
    type Reply = TaskReply;
    const VERB: &'static str = "take-handoff";
    const RIGHTS: Rights = SUPERVISION;

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let mut task = tx.task(&self.task)?;
        if let Some(agent) = tx.actor.agent().filter(|agent| !task.status.is_held_by(*agent)) {
            let with = format!("it is {}", task.status.name());
            return Err(Refusal::NotYourTask { task: self.task.clone(), agent, with });
        }
        if task.record.handoff_pending != Some(true) {
            return Err(Refusal::NothingToDo { what: "take over: no handoff is pending" });
        }
        task.record.handoff_pending = Some(false);
        Ok(tx.put(task))
    }
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

fn phrase<'t>(text: &'t str, what: &'static str) -> Result<&'t str, Refusal> {
    let text = required(text, what)?;
    if text.contains('\n') || text.chars().count() > PHRASE_MAX {
        let problem = format!("one phrase on one line, at most {PHRASE_MAX} characters");
        return Err(Refusal::BadText { what, problem });
    }
    Ok(text)
}
