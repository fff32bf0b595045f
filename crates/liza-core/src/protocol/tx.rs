//! The working copy that a rule changes: reads fall through to the board, writes are collected.

use indexmap::IndexMap;

use crate::model::{
    Actor, AgentId, AgentRecord, AgentStatus, Appended, Board, Change, CircuitBreaker, Config, DirectEdit,
    Discovery, Effect, EventName, FileVersion, Goal, Handoff, HistoryEvent, LogAction, LogEntry, OpenSession,
    Refusal, Revision, Sprint, Status, StopFile, StopFiles, Task, TaskBody, TaskId, TaskRecord, Timestamp,
    ways_out,
};
use crate::text::one_line;

use super::reply::TaskReply;

/// The longest log line.
const DETAIL_MAX: usize = 300;

/// The board as a rule sees it, with the rule's changes so far.
#[derive(Debug)]
pub struct Tx<'a> {
    pub(super) board: &'a Board,
    pub(super) actor: Actor,
    pub(super) now: Timestamp,
    pub(super) stop_files: StopFiles,
    verb: &'static str,
    change: Change,
    writes_anyway: bool,
}

impl<'a> Tx<'a> {
    pub(super) fn new(
        board: &'a Board,
        actor: Actor,
        now: Timestamp,
        stop_files: StopFiles,
        verb: &'static str,
    ) -> Self {
        let change = Change { revision: board.revision.next(), ..Change::default() };
        Self { board, actor, now, stop_files, verb, change, writes_anyway: false }
    }

    /// Raises the file version: programs that know only linked worktrees must not write any more.
    pub(super) fn require_own_repositories(&mut self) {
        if self.board.version < FileVersion::OWN_REPOSITORIES {
            self.change.version = Some(FileVersion::OWN_REPOSITORIES);
        }
    }

    pub(super) fn finish(self) -> Change {
        self.change
    }

    pub(super) fn change(&self) -> &Change {
        &self.change
    }

    pub(super) fn revision(&self) -> Revision {
        self.change.revision
    }

    pub(super) fn config(&self) -> Result<&'a Config, Refusal> {
        self.board.config()
    }

    /// The task as it is now, changes of this command included.
    pub(super) fn task(&self, id: &TaskId) -> Result<Task, Refusal> {
        match self.change.tasks.get(id) {
            Some(record) => Task::from_body(id, &TaskBody::new(record.clone(), Vec::new())),
            None => self.board.task(id),
        }
    }

    pub(super) fn status(&self, id: &TaskId) -> Option<Status> {
        match self.change.tasks.get(id) {
            Some(record) => record.status,
            None => self.board.status(id),
        }
    }

    pub(super) fn knows(&self, id: &TaskId) -> bool {
        self.change.tasks.contains_key(id) || self.board.knows(id)
    }

    /// Refuses a task that a command names and that does not exist.
    pub(super) fn check_known(&self, task: Option<&TaskId>) -> Result<(), Refusal> {
        match task.filter(|task| !self.knows(task)) {
            Some(unknown) => Err(Refusal::UnknownTask { task: unknown.clone() }),
            None => Ok(()),
        }
    }

    /// Stores a changed task; it carries the revision of this write.
    pub(super) fn put(&mut self, task: Task) -> TaskReply {
        let reply = TaskReply::from(&task);
        let id = task.id.clone();
        self.put_record(id, task.into_record());
        reply
    }

    pub(super) fn put_record(&mut self, id: TaskId, mut record: TaskRecord) {
        record.revision = Some(self.change.revision);
        self.change.tasks.insert(id, record);
    }

    /// Stores a task whose lease or usage changed, which is not a new revision of the task.
    pub(super) fn put_quietly(&mut self, task: Task) {
        let id = task.id.clone();
        self.change.tasks.insert(id, task.into_record());
    }

    /// Stores the task and logs the event under its own name.
    pub(super) fn save(&mut self, task: Task, event: EventName, detail: &str) -> TaskReply {
        self.log(LogAction::Task(event), Some(&task.id), detail);
        self.put(task)
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

    /// Frees the agents that hold this task, in the same write that takes the task away from them.
    pub(super) fn free_agents(
        &mut self,
        holders: impl IntoIterator<Item = AgentId>,
        task: &TaskId,
        status: AgentStatus,
    ) -> Result<(), Refusal> {
        holders.into_iter().try_for_each(|id| self.free_agent(id, task, status))
    }

    fn free_agent(&mut self, id: AgentId, task: &TaskId, status: AgentStatus) -> Result<(), Refusal> {
        let entry = self.find_agent(id)?;
        if let Some(mut entry) = entry.filter(|entry| entry.current_task.as_ref() == Some(task)) {
            entry.release(status);
            self.put_agent(id, entry);
        }
        Ok(())
    }

    /// The agent's session has a result: this write.
    pub(super) fn note_result(&mut self) -> Result<(), Refusal> {
        let written = Revision(self.board.revision.0 + 1);
        if let Some(agent) = self.actor.agent()
            && let Some(mut entry) = self.find_agent(agent)?
        {
            entry.last_result = Some(written);
            entry.session = entry.session.map(|session| OpenSession { result: Some(self.now), ..session });
            self.put_agent(agent, entry);
        }
        Ok(())
    }

    /// A coder that waits for a verdict is idle again.
    pub(super) fn stop_waiting(&mut self, coder: AgentId) -> Result<(), Refusal> {
        let waiting =
            |entry: &AgentRecord| entry.status == AgentStatus::Waiting && entry.current_task.is_none();
        if let Some(mut entry) = self.find_agent(coder)?.filter(waiting) {
            entry.status = AgentStatus::Idle;
            self.put_agent(coder, entry);
        }
        Ok(())
    }

    pub(super) fn goal(&mut self) -> Result<&mut Goal, Refusal> {
        let goal = self.board.goal()?;
        Ok(self.change.goal.get_or_insert_with(|| goal.clone()))
    }

    pub(super) fn sprint(&mut self) -> Result<&mut Sprint, Refusal> {
        let sprint = self.board.sprint()?;
        Ok(self.change.sprint.get_or_insert_with(|| sprint.clone()))
    }

    pub(super) fn breaker(&mut self) -> Result<&mut CircuitBreaker, Refusal> {
        let breaker = self.board.circuit_breaker()?;
        Ok(self.change.circuit_breaker.get_or_insert_with(|| breaker.clone()))
    }

    pub(super) fn discovered(&mut self) -> Result<&mut Vec<Discovery>, Refusal> {
        let discovered = self.board.discovered()?;
        Ok(self.change.discovered.get_or_insert_with(|| discovered.clone()))
    }

    pub(super) fn handoffs(&mut self) -> Result<&mut IndexMap<TaskId, Handoff>, Refusal> {
        let handoffs = self.board.handoffs()?;
        Ok(self.change.handoff.get_or_insert_with(|| handoffs.clone()))
    }

    pub(super) fn direct_edits(&mut self) -> Result<&mut Vec<DirectEdit>, Refusal> {
        let edits = self.board.direct_edits()?;
        Ok(self.change.direct_edits.get_or_insert_with(|| edits.clone()))
    }

    pub(super) fn drop_handoff(&mut self, task: &TaskId) -> Result<(), Refusal> {
        if self.board.handoffs()?.contains_key(task) {
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

    /// Moves a task to the archive; its last record says so.
    pub(super) fn archive(&mut self, id: &TaskId, mut record: TaskRecord) {
        record.history.get_or_insert_default().push(self.event(EventName::Archived));
        self.put_record(id.clone(), record);
        self.change.archived.push(id.clone());
    }

    pub(super) fn append(&mut self, note: Appended) {
        self.change.appended.push(note);
    }

    /// Has the stop file created before this change is written.
    pub(super) fn create_stop_file(&mut self, file: StopFile) {
        self.change.stop_files.push(file);
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.change.effects.push(effect);
    }

    /// Returns a refusal, and still writes the change so far: a lost race is logged, a limit blocks.
    pub(super) fn refuse_but_write(&mut self, refusal: Refusal) -> Refusal {
        self.writes_anyway = true;
        refusal
    }

    pub(super) fn writes_anyway(&self) -> bool {
        self.writes_anyway
    }

    pub(super) fn event(&self, name: EventName) -> HistoryEvent {
        HistoryEvent::new(self.now, name, self.actor)
    }

    pub(super) fn system_event(&self, name: EventName) -> HistoryEvent {
        HistoryEvent::new(self.now, name, "system")
    }

    /// Sets the log entry of this command, by the caller.
    pub(super) fn log(&mut self, action: LogAction, task: Option<&TaskId>, detail: &str) {
        self.log_as(self.actor, action, task, detail);
    }

    /// Sets the log entry of this command, by an agent that the caller acts for, or by the system.
    #[allow(clippy::needless_pass_by_value, reason = "names are small, and the calls read better")]
    pub(super) fn log_as(
        &mut self,
        agent: impl ToString,
        action: LogAction,
        task: Option<&TaskId>,
        detail: &str,
    ) {
        self.change.log = Some(LogEntry {
            timestamp: self.now,
            agent: agent.to_string(),
            action: action.name().to_owned(),
            task: task.cloned(),
            detail: one_line(detail, DETAIL_MAX),
        });
    }

    pub(super) fn wrong_status(&self, task: &Task, needed: &str) -> Refusal {
        let status = task.status.name();
        Refusal::WrongStatus {
            task: task.id.clone(),
            status,
            verb: self.verb,
            needed: needed.to_owned(),
            possible: ways_out(status),
        }
    }
}

/// Trims the text; refuses a blank one.
pub(super) fn required<'t>(text: &'t str, what: &'static str) -> Result<&'t str, Refusal> {
    non_blank(Some(text)).ok_or(Refusal::Missing { what })
}

/// Trims the text; `None` if it is blank.
pub(super) fn non_blank(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}
