//! The parts of a blackboard in a few words: names, commits, times, an empty board, its sections and tasks.

use indexmap::IndexMap;
use liza_core::model::{
    AgentId, AgentRecord, Board, Config, EventName, Goal, HistoryEvent, Loaded, Seconds, Sha, Sprint, State,
    TaskId, TaskRecord, Timestamp,
};

/// The time of boards that need no other.
pub fn now() -> Timestamp {
    Timestamp::from_unix(1_800_000_000)
}

/// That many minutes before [`now`].
pub fn ago(minutes: u64) -> Timestamp {
    now() - Seconds::minutes(minutes)
}

pub fn task(id: &str) -> TaskId {
    id.parse().unwrap()
}

pub fn agent(id: &str) -> AgentId {
    id.parse().unwrap()
}

/// A full commit hash that is easy to recognize: `sha('a')` is 40 times `a`.
pub fn sha(digit: char) -> Sha {
    digit.to_string().repeat(40).parse().unwrap()
}

pub fn event(minutes: u64, name: EventName, who: &str) -> HistoryEvent {
    HistoryEvent::new(ago(minutes), name, who)
}

/// A board with a planned goal and a first sprint that began then, without agents and tasks.
pub fn empty(goal: &str, began: Timestamp) -> State {
    let spec_ref = Some("specs/vision.md".to_owned());
    let board = Board {
        agents: Loaded::Ready(IndexMap::new()),
        config: Loaded::Ready(Config::default()),
        goal: Loaded::Ready(Goal { spec_ref, planned: true, ..Goal::begin(1, goal, began) }),
        sprint: Loaded::Ready(Sprint::begin(1, "goal-1", began)),
        circuit_breaker: Loaded::Ready(Default::default()),
        discovered: Loaded::Ready(Vec::new()),
        handoff: Loaded::Ready(IndexMap::new()),
        ..Board::default()
    };
    State { board, journal: Default::default() }
}

/// The content of a section, to be changed as a person with an editor would.
#[track_caller]
pub fn part<T>(section: &mut Loaded<T>) -> &mut T {
    match section {
        Loaded::Ready(content) => content,
        Loaded::Absent | Loaded::Broken(_) => panic!("the board has no such section"),
    }
}

#[track_caller]
pub fn config(state: &mut State) -> &mut Config {
    part(&mut state.board.config)
}

#[track_caller]
pub fn goal(state: &mut State) -> &mut Goal {
    part(&mut state.board.goal)
}

#[track_caller]
pub fn sprint(state: &mut State) -> &mut Sprint {
    part(&mut state.board.sprint)
}

#[track_caller]
pub fn agents(state: &mut State) -> &mut IndexMap<AgentId, AgentRecord> {
    part(&mut state.board.agents)
}

#[track_caller]
pub fn entry<'s>(state: &'s mut State, name: &str) -> &'s mut AgentRecord {
    agents(state).get_mut(&agent(name)).unwrap_or_else(|| panic!("{name} is not registered"))
}

#[track_caller]
pub fn record_of<'s>(state: &'s State, id: &str) -> &'s TaskRecord {
    state.board.body(&task(id)).unwrap().record()
}

#[track_caller]
pub fn edit_task(state: &mut State, id: &str, change: impl FnOnce(&mut TaskRecord)) {
    let mut record = record_of(state, id).clone();
    change(&mut record);
    state.board.put(task(id), record);
}

/// Puts a task on the board and into the sprint's plan.
pub fn plan(state: &mut State, record: TaskRecord) {
    let id = record.id.clone().unwrap();
    sprint(state).scope.planned.push(id.clone());
    state.board.put(id, record);
}

/// Fills in the times of a board file: `@-90` means ninety seconds before `now`, `@+90` after it.
pub fn dated(text: &str, now: Timestamp) -> String {
    let mut parts = text.split('@');
    let mut dated = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part[1..].find(|c: char| !c.is_ascii_digit()).map_or(part.len(), |end| end + 1);
        let seconds = Seconds(part[1..end].parse().unwrap());
        let time = if part.starts_with('-') { now - seconds } else { now + seconds };
        dated.push_str(&format!("{time}{}", &part[end..]));
    }
    dated
}
