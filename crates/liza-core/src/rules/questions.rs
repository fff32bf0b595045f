//! Questions of agents to the human, and the answers.
//!
//! An agent cannot wait for an answer: it records its question and ends. The question stays open until the
//! human writes a note or changes a specification.

use crate::model::{Actor, AgentId, Anomaly, AnomalyType, State, Status, TaskId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub asked: Timestamp,
    pub by: String,
    /// The question is about the goal if absent.
    pub task: Option<TaskId>,
    pub text: String,
    /// The time and the text of the human's answer.
    pub answer: Option<(Timestamp, String)>,
}

impl Question {
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    pub fn is_from(&self, agent: AgentId) -> bool {
        self.by == agent.to_string()
    }
}

/// The questions about this goal, oldest first. Those about a task that has ended need no answer, nor does one about a
/// goal without a task, once the planner has planned it.
pub fn questions(state: &State) -> Vec<Question> {
    let since = state.board.goal.ready().and_then(|goal| goal.created);
    let current = |anomaly: &&Anomaly| {
        let ended = |task: &TaskId| state.board.status(task).is_none_or(Status::is_terminal);
        is_question(anomaly)
            && since.is_none_or(|since| anomaly.timestamp >= since)
            && !anomaly.task.as_ref().map_or_else(|| is_planned_since(state, anomaly.timestamp), ended)
    };
    state.journal.anomalies.iter().filter(current).map(|anomaly| question(state, anomaly)).collect()
}

/// True if there was no task then, and a planner has made some later.
fn is_planned_since(state: &State, asked: Timestamp) -> bool {
    let records = || state.bodies().map(|(_, body)| body.record());
    state.board.archived.is_empty()
        && records().all(|record| record.created.is_some_and(|created| created > asked))
        && records().any(|record| record.past().by_planner)
}

pub fn open_questions(state: &State) -> Vec<Question> {
    questions(state).into_iter().filter(Question::is_open).collect()
}

/// The reports of agents in this sprint that are not questions, and that the human has not commented on by a
/// note, a change of a specification or a decision. Those about a task that has ended need no comment.
pub fn unresolved_anomalies(state: &State) -> Vec<&Anomaly> {
    let Some(sprint) = state.board.sprint.ready() else { return Vec::new() };
    let decided = sprint.decisions.last().map(|decision| decision.timestamp);
    let ended = |task: &TaskId| state.board.status(task).is_none_or(Status::is_terminal);
    let open = |anomaly: &&Anomaly| {
        !is_question(anomaly)
            && !is_by_human(anomaly)
            && sprint.timeline.started.is_none_or(|started| anomaly.timestamp >= started)
            && decided.is_none_or(|decided| anomaly.timestamp > decided)
            && !anomaly.task.as_ref().is_some_and(ended)
            && answer(state, anomaly).is_none()
    };
    state.journal.anomalies.iter().filter(open).collect()
}

fn is_by_human(anomaly: &Anomaly) -> bool {
    anomaly.reporter.as_deref() == Some(&Actor::Human.to_string())
}

fn is_question(anomaly: &Anomaly) -> bool {
    let kind: Option<AnomalyType> = anomaly.kind.parse().ok();
    kind.is_some_and(AnomalyType::is_question) && !is_by_human(anomaly)
}

fn question(state: &State, anomaly: &Anomaly) -> Question {
    Question {
        asked: anomaly.timestamp,
        by: anomaly.reporter.clone().unwrap_or_else(|| "unknown".to_owned()),
        task: anomaly.task.clone(),
        text: text(anomaly),
        answer: answer(state, anomaly),
    }
}

/// The question itself, or all details.
fn text(anomaly: &Anomaly) -> String {
    let named =
        ["question", "gap", "description", "what"].into_iter().find_map(|key| anomaly.details.get(key));
    let other = || anomaly.details.iter().map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>();
    named.map_or_else(|| other().join(", "), ToString::to_string)
}

/// The first note, changed specification or unblocking by the human after the question.
fn answer(state: &State, anomaly: &Anomaly) -> Option<(Timestamp, String)> {
    let later = |time: Timestamp| time >= anomaly.timestamp;
    let notes = state.journal.human_notes.iter();
    let notes = notes.filter(|note| note.to.is_none() || note.to == anomaly.task);
    let notes = notes.map(|note| (note.timestamp, note.message.clone()));
    let changes = state.journal.spec_changes.iter();
    let changes = changes.map(|change| (change.timestamp, format!("{}: {}", change.spec, change.change)));
    let record = anomaly.task.as_ref().and_then(|task| Some(state.board.body(task).ok()?.record()));
    let unblocked = record.into_iter().flat_map(|record| record.past().unblocked_by_human);
    let unblocked = unblocked.map(|time| (time, "unblocked".to_owned()));
    notes.chain(changes).chain(unblocked).filter(|(time, _)| later(*time)).min_by_key(|(time, _)| *time)
}
