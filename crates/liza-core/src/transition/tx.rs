//! The working copy that a transition changes: reads fall through to the board, writes are collected.

use indexmap::IndexMap;

use crate::agent::{Actor, AgentRecord, AgentStatus};
use crate::board::{Board, Body, Section};
use crate::breaker::CircuitBreaker;
use crate::change::{Appended, Change};
use crate::command::{Halt, Request};
use crate::config::Config;
use crate::effect::Effect;
use crate::event::{EventName, HistoryEvent, LogAction, LogEntry, one_line};
use crate::goal::Goal;
use crate::ids::{AgentId, Revision, TaskId};
use crate::notes::{Discovery, Handoff};
use crate::record::{Status, TaskRecord, ways_out};
use crate::refusal::Refusal;
use crate::sprint::Sprint;
use crate::task::{Task, TaskStatus};
use crate::time::Timestamp;
use crate::value::Value;

/// How long a log line may be.
const DETAIL_MAX: usize = 300;

pub(super) struct Tx<'a> {
    pub(super) board: &'a Board,
    pub(super) actor: Actor,
    pub(super) now: Timestamp,
    pub(super) halt: Halt,
    verb: &'static str,
    change: Change,
}

impl<'a> Tx<'a> {
    pub(super) fn new(board: &'a Board, request: &'a Request) -> Self {
        let change = Change { revision: board.revision.next(), ..Change::default() };
        let Request { actor, now, halt, .. } = *request;
        Self { board, actor, now, halt, verb: request.command.verb(), change }
    }

    pub(super) fn finish(self) -> Change {
        self.change
    }

    pub(super) fn revision(&self) -> Revision {
        self.change.revision
    }

    pub(super) fn config(&self) -> Result<&'a Config, Refusal> {
        self.board.config()
    }

    /// The task as it stands now, changes of this command included.
    pub(super) fn task(&self, id: &TaskId) -> Result<Task, Refusal> {
        match self.change.tasks.get(id) {
            Some(record) => Task::from_body(id, &Body { record: record.clone(), faults: Vec::new() }),
            None => self.board.task(id),
        }
    }

    pub(super) fn status(&self, id: &TaskId) -> Option<Status> {
        match self.change.tasks.get(id) {
            Some(record) => record.status,
            None => self.board.status(id),
        }
    }

    /// Whether the name is taken.
    pub(super) fn knows(&self, id: &TaskId) -> bool {
        self.change.tasks.contains_key(id) || self.board.knows(id)
    }

    /// Stores a changed task; it carries the revision of this write.
    pub(super) fn put(&mut self, task: Task) {
        let id = task.id.clone();
        self.put_record(id, task.into_record());
    }

    pub(super) fn put_record(&mut self, id: TaskId, mut record: TaskRecord) {
        record.revision = Some(self.change.revision);
        self.change.tasks.insert(id, record);
    }

    /// Stores a task whose lease was renewed, which is no change that anybody has to notice.
    pub(super) fn put_quietly(&mut self, task: Task) {
        let id = task.id.clone();
        self.change.tasks.insert(id, task.into_record());
    }

    pub(super) fn agent(&self, id: AgentId) -> Result<AgentRecord, Refusal> {
        self.find_agent(id)?.ok_or(Refusal::NotRegistered { agent: id })
    }

    pub(super) fn find_agent(&self, id: AgentId) -> Result<Option<AgentRecord>, Refusal> {
        match self.change.agents.get(&id) {
            Some(entry) => Ok(entry.clone()),
            None => Ok(self.board.agents()?.get(&id).cloned()),
        }
    }

    pub(super) fn put_agent(&mut self, id: AgentId, entry: AgentRecord) {
        self.change.agents.insert(id, Some(entry));
    }

    pub(super) fn remove_agent(&mut self, id: AgentId) {
        self.change.agents.insert(id, None);
    }

    /// Frees an agent that holds this task, in the same write that takes the task away from it.
    pub(super) fn free_agent(
        &mut self,
        id: AgentId,
        task: &TaskId,
        status: AgentStatus,
    ) -> Result<(), Refusal> {
        if let Some(mut entry) =
            self.find_agent(id)?.filter(|entry| entry.current_task.as_ref() == Some(task))
        {
            entry.release(status);
            self.put_agent(id, entry);
        }
        Ok(())
    }

    pub(super) fn goal(&mut self) -> Result<&mut Goal, Refusal> {
        let goal = self.board.goal.get(Section::Goal)?;
        Ok(self.change.goal.get_or_insert_with(|| goal.clone()))
    }

    pub(super) fn sprint(&mut self) -> Result<&mut Sprint, Refusal> {
        let sprint = self.board.sprint.get(Section::Sprint)?;
        Ok(self.change.sprint.get_or_insert_with(|| sprint.clone()))
    }

    pub(super) fn breaker(&mut self) -> Result<&mut CircuitBreaker, Refusal> {
        let breaker = self.board.circuit_breaker.get(Section::CircuitBreaker)?;
        Ok(self.change.circuit_breaker.get_or_insert_with(|| breaker.clone()))
    }

    pub(super) fn discovered(&mut self) -> Result<&mut Vec<Discovery>, Refusal> {
        let discovered = self.board.discovered.get(Section::Discovered)?;
        Ok(self.change.discovered.get_or_insert_with(|| discovered.clone()))
    }

    pub(super) fn handoffs(&mut self) -> Result<&mut IndexMap<TaskId, Handoff>, Refusal> {
        let handoffs = self.board.handoff.get(Section::Handoff)?;
        Ok(self.change.handoff.get_or_insert_with(|| handoffs.clone()))
    }

    /// Takes away the notes for a task, if there are any.
    pub(super) fn drop_handoff(&mut self, task: &TaskId) -> Result<(), Refusal> {
        if self.board.handoff.get(Section::Handoff)?.contains_key(task) {
            self.handoffs()?.shift_remove(task);
        }
        Ok(())
    }

    pub(super) fn close_sprint(&mut self, sprint: Sprint) {
        self.change.closed_sprint = Some(sprint);
    }

    pub(super) fn close_goal(&mut self, goal: Goal) {
        self.change.closed_goal = Some(goal);
    }

    pub(super) fn archive(&mut self, task: TaskId) {
        self.change.archived.push(task);
    }

    pub(super) fn append(&mut self, note: Appended) {
        self.change.appended.push(note);
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.change.effects.push(effect);
    }

    pub(super) fn reply(&mut self, key: &str, value: impl Into<Value>) {
        self.change.reply.insert(key.to_owned(), value.into());
    }

    /// Says that the caller did not get what it asked for, although this change is written.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.change.refusal = Some(refusal);
    }

    /// An event by the caller.
    pub(super) fn event(&self, name: EventName) -> HistoryEvent {
        HistoryEvent::new(self.now, name, self.actor)
    }

    /// An event that the rules themselves bring about.
    pub(super) fn system_event(&self, name: EventName) -> HistoryEvent {
        HistoryEvent::new(self.now, name, "system")
    }

    /// Writes the log entry of this command, in the caller's name.
    pub(super) fn log(&mut self, action: LogAction, task: Option<&TaskId>, detail: &str) {
        self.log_as(&self.actor.to_string(), action, task, detail);
    }

    /// Writes the log entry of this command in the name of an agent for whom a supervisor or a person acts.
    pub(super) fn log_as(&mut self, agent: &str, action: LogAction, task: Option<&TaskId>, detail: &str) {
        self.change.log = Some(LogEntry {
            timestamp: self.now,
            agent: agent.to_owned(),
            action: action.name().to_owned(),
            task: task.cloned(),
            detail: one_line(detail, DETAIL_MAX),
        });
    }

    /// Tells the caller where the task stands now.
    pub(super) fn reply_task(&mut self, task: &Task) {
        self.reply("task", task.id.as_str());
        self.reply("status", task.status.name().name());
        if let Some(worktree) = task.status.kept().worktree {
            self.reply("worktree", worktree.as_str());
        }
    }

    /// Stores the task, logs the event under its own name and tells the caller.
    pub(super) fn settle(&mut self, task: Task, event: EventName, detail: &str) {
        self.log(LogAction::Task(event), Some(&task.id), detail);
        self.reply_task(&task);
        self.put(task);
    }

    pub(super) fn wrong_status(&self, task: &Task, needed: &str) -> Refusal {
        wrong_status(&task.id, &task.status, self.verb, needed)
    }
}

fn wrong_status(task: &TaskId, status: &TaskStatus, verb: &'static str, needed: &str) -> Refusal {
    let status = status.name();
    Refusal::WrongStatus {
        task: task.clone(),
        status,
        verb,
        needed: needed.to_owned(),
        possible: ways_out(status),
    }
}

/// The text, if it says something.
pub(super) fn required<'t>(text: &'t str, what: &'static str) -> Result<&'t str, Refusal> {
    let text = text.trim();
    if text.is_empty() { Err(Refusal::Missing { what }) } else { Ok(text) }
}
