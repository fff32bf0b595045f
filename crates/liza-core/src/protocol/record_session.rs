//! record-session: the end and the usage of a session, on its task, its agent and its client.

use serde::Serialize;

use crate::model::{
    AgentId, Board, ClientFault, ClientHold, EventName, HistoryEvent, LogAction, ModelEnd, ModelPart,
    Refusal, RefusedResult, Repair, Section, SessionSummary, Sha, TaskId, Timestamp, Usage, Value,
};
use crate::rules::clients::{ClientEnd, after_end, missing_variable, session_line};

use super::operation::{LoadScope, Rule};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::tx::Tx;

/// The name of a planning session among the tasks on which sessions of a client fail.
const PLANNING: &str = "plan";

/// Records a session that has ended. An error of its client holds the client for the whole team.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordSession {
    pub agent: AgentId,
    /// `None` for a planner.
    pub task: Option<TaskId>,
    pub client: String,
    pub started: Timestamp,
    /// Its ending, such as `exited 1`.
    pub end: String,
    /// The last words of the client.
    pub said: Option<String>,
    pub fault: Option<ClientFault>,
    /// The human's remedy for the error.
    pub repair: Option<Repair>,
    /// True if it ended by itself without a result.
    pub failed: bool,
    pub model: ModelPart,
    /// The behaviour of the model that left no result: no sign that its client fails.
    pub by_model: Option<ModelEnd>,
    /// The result that Liza refused, so that it has none: no sign that its client fails.
    pub refusal: Option<RefusedResult>,
    /// The commit that a coder left without submitting it.
    pub unsubmitted: Option<Sha>,
    pub usage: Usage,
    /// The client's name for the conversation, if it may be resumed.
    pub conversation: Option<String>,
}

/// The consequences of the session's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionRecorded {
    /// Its ending, in one line.
    pub line: String,
    /// True if the client is at fault, so that the session counts against no task and no agent.
    pub is_clients_fault: bool,
    /// The hold of the client, if no other session has reported it: one that began before the hold fails like
    /// the first, and one that tries the client again is news.
    pub new_hold: Option<ClientHold>,
}

impl Rule for RecordSession {
    type Reply = SessionRecorded;
    const VERB: &'static str = "record-session";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn other_tasks(&self, _board: &Board, _now: Timestamp) -> Vec<TaskId> {
        self.task.clone().into_iter().collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<SessionRecorded, Refusal> {
        check_acts_for(tx, self.agent)?;
        let (new_hold, is_clients_fault) = self.update_client(tx)?;
        let repair = self.repair().filter(|_| is_clients_fault);
        let refusal = self.refusal.as_ref().map(ToString::to_string);
        let said = refusal.as_deref().or(self.said.as_deref());
        let line = session_line(&self.client, &self.end, said, repair.as_ref());
        self.update_agent(tx, &line)?;
        self.update_history(tx);
        tx.log_as(self.agent, LogAction::Task(EventName::SessionEnded), self.task.as_ref(), &line);
        Ok(SessionRecorded { line, is_clients_fault, new_hold })
    }
}

impl RecordSession {
    /// One that exited without a result of any kind: nothing is known but whose it was, and when it began.
    pub fn new(agent: AgentId, task: Option<TaskId>, client: &str, started: Timestamp) -> Self {
        Self {
            agent,
            task,
            client: client.to_owned(),
            started,
            end: "exited".to_owned(),
            said: None,
            fault: None,
            repair: None,
            failed: false,
            model: ModelPart::Unknown,
            by_model: None,
            refusal: None,
            unsubmitted: None,
            usage: Usage::default(),
            conversation: None,
        }
    }

    /// The human's remedy: the missing key that the error names says more than the way to log in.
    fn repair(&self) -> Option<Repair> {
        let error = self.fault.as_ref().map(|fault| fault.message.as_str()).or(self.said.as_deref());
        let set = |name: &str| Repair::Set { variable: name.to_owned(), meaning: None };
        error.and_then(missing_variable).map(set).or_else(|| self.repair.clone())
    }

    fn update_client(&self, tx: &mut Tx<'_>) -> Result<(Option<ClientHold>, bool), Refusal> {
        let before = tx.board.sprint()?.clients.get(&self.client).cloned().unwrap_or_default();
        let end = ClientEnd {
            fault: self.fault.clone(),
            failed: self.failed && self.refusal.is_none() && self.by_model.is_none(),
            is_silent: self.model == ModelPart::Silent,
            end: self.end.clone(),
            said: self.said.clone(),
            subject: self.task.as_ref().map_or(PLANNING, TaskId::as_str).to_owned(),
            repair: self.repair(),
        };
        let (after, is_clients_fault) = after_end(&before, &end, tx.now);
        let is_known = |hold: &ClientHold| {
            let other = before.hold.as_ref();
            // Before the first try, all failing sessions had begun without knowing of the hold.
            let is_unaware = |other: &ClientHold| self.started <= other.since || other.probes == 0;
            other.is_some_and(|other| other.kind == hold.kind && is_unaware(other))
        };
        let new_hold = after.hold.clone().filter(|hold| is_clients_fault && !is_known(hold));
        if after != before {
            let clients = &mut tx.sprint()?.clients;
            if after == Default::default() {
                clients.shift_remove(&self.client);
            } else {
                clients.insert(self.client.clone(), after);
            }
        }
        Ok((new_hold, is_clients_fault))
    }

    fn update_agent(&self, tx: &mut Tx<'_>, line: &str) -> Result<(), Refusal> {
        let mut entry = tx.agent(self.agent)?;
        entry.session = None;
        entry.last_session = Some(SessionSummary {
            client: self.client.clone(),
            task: self.task.clone(),
            started: self.started,
            ended: tx.now,
            result: line.to_owned(),
            failed: self.failed || self.fault.is_some() || self.refusal.is_some(),
            fault: self.fault.as_ref().map(|fault| fault.kind),
            again: None,
        });
        tx.put_agent(self.agent, entry);
        Ok(())
    }

    /// A task that is broken or archived must not keep the session from being recorded.
    fn update_history(&self, tx: &mut Tx<'_>) {
        let Some(mut task) = self.task.as_ref().and_then(|id| tx.task(id).ok()) else { return };
        let context = tx.agent(self.agent).ok().and_then(|entry| entry.context_percent);
        let whole = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let event = HistoryEvent::new(tx.now, EventName::SessionEnded, self.agent)
            .with("client", self.client.as_str())
            .with("end", self.end.as_str())
            .with("seconds", whole(tx.now.since(self.started).0))
            .with_some("said", self.said.as_deref().filter(|_| self.failed || self.fault.is_some()))
            .with_some("refused", self.refusal.as_ref().map(ToString::to_string))
            .with_some("fault", self.fault.as_ref().map(|fault| fault.kind.to_string()))
            .with_some("by_model", self.by_model.map(|cause| cause.to_string()))
            .with_some("conversation", self.conversation.as_deref())
            .with_some("context_percent", context.map(u64::from).map(whole))
            .with_some("unsubmitted", self.unsubmitted.as_ref().map(Sha::as_str))
            .with_some("tokens", Some(self.usage.tokens()).filter(|tokens| *tokens > 0).map(whole))
            .with_some("output", Some(self.usage.output).filter(|output| *output > 0).map(whole))
            .with_some("cached", Some(self.usage.cached).filter(|cached| *cached > 0).map(whole))
            .with_some("cost_usd", self.usage.dollars().map(Value::Float));
        task.record.history.get_or_insert_default().push(event);
        tx.put_quietly(task);
    }
}
