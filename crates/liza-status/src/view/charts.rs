//! The figures behind the charts: planned and merged tasks over time, cycle times, costs and verdicts. Draws
//! nothing. Tasks in the archive count as merged before the first point; their times are not known.

use indexmap::IndexMap;

use serde::Serialize;

use liza_core::model::{AgentId, EventName, Seconds, State, Status, TaskId, TaskRecord, Timestamp, Usage};
use liza_core::rules::figures::GoalFigures;
use liza_ids::order::{sort_by, sort_by_key};

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Charts {
    /// Planned and merged tasks, at each moment when one of them changed, and now.
    pub burn_up: Vec<BurnUpPoint>,
    /// In the order of the merges.
    pub cycle_times: Vec<CycleTime>,
    /// The figures of the goal, with the most expensive task first.
    pub goal: GoalFigures,
    pub agent_costs: Vec<AgentCost>,
    pub reviewers: Vec<ReviewerFigures>,
    /// The merged tasks that were never rejected.
    pub merged_at_first_review: usize,
}

/// The progress of the work at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BurnUpPoint {
    pub time: Timestamp,
    /// The tasks that are or will be merged.
    pub planned: usize,
    pub merged: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CycleTime {
    pub task: TaskId,
    pub merged: Timestamp,
    /// From its first claim to its merge.
    pub took: Seconds,
    /// By code reviewers and the human.
    pub rejections: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentCost {
    pub agent: AgentId,
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewerFigures {
    pub reviewer: String,
    pub approvals: usize,
    pub rejections: usize,
}

pub fn charts(state: &State, now: Timestamp) -> Charts {
    let records: Vec<(&TaskId, &TaskRecord)> = state.bodies().map(|(id, body)| (id, body.record())).collect();
    let mut cycle_times: Vec<CycleTime> =
        records.iter().filter_map(|(id, record)| cycle_time(id, record)).collect();
    sort_by_key(&mut cycle_times, |cycle| cycle.merged);
    let mut goal = GoalFigures::of(state, now);
    sort_by(&mut goal.tasks, &|a, b| {
        let cost = b.usage.cost_usd.total_cmp(&a.usage.cost_usd);
        cost.then_with(|| b.usage.tokens().cmp(&a.usage.tokens()))
    });
    let agents = state.board.agents.entries();
    let agent_costs = agents.filter_map(|(agent, entry)| {
        let usage = entry.usage.clone().filter(|usage| !usage.is_none())?;
        Some(AgentCost { agent: *agent, usage })
    });
    Charts {
        burn_up: burn_up(state, &records, now),
        merged_at_first_review: cycle_times.iter().filter(|cycle| cycle.rejections == 0).count(),
        cycle_times,
        goal,
        agent_costs: agent_costs.collect(),
        reviewers: reviewers(&records),
    }
}

fn cycle_time(id: &TaskId, record: &TaskRecord) -> Option<CycleTime> {
    let merged = record.last_event(EventName::Merged)?.time;
    let claimed = record.events().find(|event| event.is_claim())?.time;
    Some(CycleTime {
        task: id.clone(),
        merged,
        took: merged.since(claimed),
        rejections: record.past().rejections,
    })
}

fn burn_up(state: &State, records: &[(&TaskId, &TaskRecord)], now: Timestamp) -> Vec<BurnUpPoint> {
    let archived = state.board.archived.values().filter(|status| **status == Status::Merged).count();
    // The steps of both lines at one moment.
    let mut steps: Vec<(Timestamp, (isize, isize))> = Vec::new();
    for (_, record) in records {
        let first = record.events().map(|event| event.time).min();
        let Some(created) = record.created.or(first) else { continue };
        steps.push((created, (1, 0)));
        let ended = |name: EventName| record.last_event(name).map(|event| event.time);
        let step = match record.status {
            Some(Status::Merged) => ended(EventName::Merged).map(|time| (time, (0, 1))),
            Some(Status::Superseded | Status::Abandoned) => {
                let time = ended(EventName::Superseded).or_else(|| ended(EventName::Abandoned));
                Some((time.unwrap_or(created), (-1, 0)))
            }
            Some(_) | None => None,
        };
        steps.extend(step);
    }
    let (mut planned, mut merged) = (archived, archived);
    let mut points: Vec<BurnUpPoint> = Vec::new();
    sort_by_key(&mut steps, |(time, _)| *time);
    for (time, step) in steps {
        planned = planned.saturating_add_signed(step.0);
        merged = merged.saturating_add_signed(step.1);
        points.pop_if(|last| last.time == time);
        points.push(BurnUpPoint { time, planned, merged });
    }
    if points.last().is_some_and(|last| last.time < now) {
        points.push(BurnUpPoint { time: now, planned, merged });
    }
    points
}

fn reviewers(records: &[(&TaskId, &TaskRecord)]) -> Vec<ReviewerFigures> {
    let mut counts: IndexMap<&str, (usize, usize)> = IndexMap::new();
    for event in records.iter().flat_map(|(_, record)| record.events()) {
        // A submission that the system sent back is not a code reviewer's verdict.
        let Some(reviewer) = event.agent.as_deref().filter(|agent| *agent != "system") else { continue };
        let verdict = (event.is(EventName::Approved), event.is(EventName::Rejected));
        if verdict != (false, false) {
            let (approvals, rejections) = counts.entry(reviewer).or_default();
            *approvals += usize::from(verdict.0);
            *rejections += usize::from(verdict.1);
        }
    }
    let figures = |(reviewer, (approvals, rejections)): (&str, (usize, usize))| ReviewerFigures {
        reviewer: reviewer.to_owned(),
        approvals,
        rejections,
    };
    let mut reviewers: Vec<ReviewerFigures> = counts.into_iter().map(figures).collect();
    sort_by(&mut reviewers, &|a, b| a.reviewer.cmp(&b.reviewer));
    reviewers
}
