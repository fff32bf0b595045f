//! The use of the budgets in `config.budget`: a warning at 80 %, a checkpoint at 100 %.
//!
//! A used-up budget stops running sessions like any checkpoint; none starts until the human raises it.

use std::fmt;

use serde::Serialize;

use crate::model::{Board, DayUsage, SpendingLimit, Status, TaskId, Timestamp, Usage};
use crate::text::compact_number;

/// From this share on, a budget is a warning.
const WARNING_PERCENT: u8 = 80;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpendingScope {
    Task(TaskId),
    Sprint,
    /// The day, until this midnight.
    Day(Timestamp),
}

impl fmt::Display for SpendingScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpendingScope::Task(task) => task.fmt(f),
            SpendingScope::Sprint => f.write_str("the sprint"),
            SpendingScope::Day(_) => f.write_str("today"),
        }
    }
}

/// The used part of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// `unpriced` are tokens of unknown cost.
    Dollars {
        used: f64,
        limit: f64,
        unpriced: u64,
    },
    Tokens {
        used: u64,
        limit: u64,
    },
}

impl Amount {
    /// True if this share of it is used.
    fn reaches(&self, percent: u8) -> bool {
        match self {
            Amount::Dollars { used, limit, .. } => *used >= limit * f64::from(percent) / 100.0,
            Amount::Tokens { used, limit } => {
                u128::from(*used) * 100 >= u128::from(*limit) * u128::from(percent)
            }
        }
    }

    fn percent(&self) -> String {
        match self {
            Amount::Dollars { used, limit, .. } => format!("{:.0} %", (used / limit * 100.0).floor()),
            Amount::Tokens { used, limit } => {
                format!("{} %", u128::from(*used) * 100 / u128::from(*limit).max(1))
            }
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Dollars { used, limit, unpriced: 0 } => write!(f, "${used:.2} of ${limit:.2}"),
            Amount::Dollars { used, limit, unpriced } => {
                let rest = compact_number(*unpriced);
                write!(f, "${used:.2} and {rest} tokens without a price of ${limit:.2}")
            }
            Amount::Tokens { used, limit } => {
                write!(f, "{} of {} tokens", compact_number(*used), compact_number(*limit))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spending {
    pub scope: SpendingScope,
    pub amount: Amount,
}

impl Spending {
    /// The setting that limits it, as `liza config` names it.
    pub fn setting(&self) -> &'static str {
        match (&self.scope, &self.amount) {
            (SpendingScope::Task(_), Amount::Dollars { .. }) => "budget.task.dollars",
            (SpendingScope::Task(_), Amount::Tokens { .. }) => "budget.task.tokens",
            (SpendingScope::Sprint, Amount::Dollars { .. }) => "budget.sprint.dollars",
            (SpendingScope::Sprint, Amount::Tokens { .. }) => "budget.sprint.tokens",
            (SpendingScope::Day(_), Amount::Dollars { .. }) => "budget.day.dollars",
            (SpendingScope::Day(_), Amount::Tokens { .. }) => "budget.day.tokens",
        }
    }

    /// True if the human should know that it will soon be used up, or may be.
    pub fn is_high(&self) -> bool {
        let is_unknown = matches!(self.amount, Amount::Dollars { unpriced: 1.., .. });
        is_unknown || self.amount.reaches(WARNING_PERCENT)
    }

    /// True if no session may start.
    pub fn is_used_up(&self) -> bool {
        self.amount.reaches(100)
    }
}

impl fmt::Display for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, amount } = self;
        write!(f, "{scope}: {amount} used ({})", amount.percent())
    }
}

/// The budgets of the sprint and the day, and those of the tasks that can have another session.
pub fn spending(board: &Board, now: Timestamp) -> Vec<Spending> {
    let (Some(config), Some(sprint)) = (board.config.ready(), board.sprint.ready()) else {
        return Vec::new();
    };
    let budget = &config.budget;
    let none = Usage::default();
    let mut found = of_limit(budget.sprint, &SpendingScope::Sprint, sprint.usage.as_ref().unwrap_or(&none));
    let today = sprint.today.as_ref().filter(|day| day.until > now);
    let (until, used) = today.map_or((now, &none), |day| (day.until, &day.usage));
    found.extend(of_limit(budget.day, &SpendingScope::Day(until), used));
    found.extend(of_tasks(board, budget.task, needs_sessions));
    found
}

/// The budgets of tasks that their last session has exceeded: none of them stops anything.
pub fn exceeded_by_last_session(board: &Board) -> Vec<Spending> {
    let limit = board.config.ready().and_then(|config| config.budget.task);
    of_tasks(board, limit, |status| !needs_sessions(status)).filter(Spending::is_used_up).collect()
}

fn of_tasks(
    board: &Board,
    limit: Option<SpendingLimit>,
    is_meant: fn(Status) -> bool,
) -> impl Iterator<Item = Spending> {
    let tasks = board.summaries().filter(move |task| limit.is_some() && task.status.is_some_and(is_meant));
    tasks.flat_map(move |task| {
        let record = board.body(&task.id).ok().map(|body| body.record());
        let usage = record.and_then(|record| record.usage.clone()).unwrap_or_default();
        of_limit(limit, &SpendingScope::Task(task.id.clone()), &usage)
    })
}

/// The first budget that is used up.
pub fn used_up(board: &Board, now: Timestamp) -> Option<Spending> {
    spending(board, now).into_iter().find(Spending::is_used_up)
}

/// The amount that a session on this task can use until one of the budgets is used up.
pub fn left_for(board: &Board, task: Option<&TaskId>, now: Timestamp) -> SpendingLimit {
    let applies = |spending: &Spending| match &spending.scope {
        SpendingScope::Task(other) => Some(other) == task,
        SpendingScope::Sprint | SpendingScope::Day(_) => true,
    };
    let mut left = SpendingLimit::default();
    for spending in spending(board, now).iter().filter(|spending| applies(spending)) {
        match spending.amount {
            Amount::Dollars { used, limit, .. } => {
                let rest = (limit - used).max(0.0);
                left.dollars = Some(left.dollars.map_or(rest, |other| other.min(rest)));
            }
            Amount::Tokens { used, limit } => {
                let rest = limit.saturating_sub(used);
                left.tokens = Some(left.tokens.map_or(rest, |other| other.min(rest)));
            }
        }
    }
    left
}

/// The tasks whose budgets count.
pub(crate) fn tasks_with_budget(board: &Board) -> Vec<TaskId> {
    let has_budget = board.config.ready().is_some_and(|config| config.budget.task.is_some());
    let open = board.summaries().filter(|task| has_budget && task.status.is_some_and(needs_sessions));
    open.map(|task| task.id.clone()).collect()
}

/// Adds one more report to the usage of a day.
pub(crate) fn add_to_day(day: Option<DayUsage>, usage: &Usage, ends: Timestamp, now: Timestamp) -> DayUsage {
    let same = day.filter(|day| day.until > now);
    let mut day = same.unwrap_or(DayUsage { until: ends, usage: Usage::default() });
    day.usage.add(usage);
    day
}

/// True if a task in this state can have another session without a decision of the human or the planner.
fn needs_sessions(status: Status) -> bool {
    match status {
        Status::Unclaimed
        | Status::Claimed
        | Status::ReadyForReview
        | Status::Rejected
        | Status::IntegrationFailed => true,
        Status::Draft
        | Status::Approved
        | Status::Merged
        | Status::Blocked
        | Status::Superseded
        | Status::Abandoned => false,
    }
}

fn of_limit(limit: Option<SpendingLimit>, scope: &SpendingScope, usage: &Usage) -> Vec<Spending> {
    let Some(SpendingLimit { dollars, tokens }) = limit else { return Vec::new() };
    let (used, unpriced) = (usage.cost_usd, usage.unpriced);
    let dollars = dollars.map(|limit| Amount::Dollars { used, limit, unpriced });
    let tokens = tokens.map(|limit| Amount::Tokens { used: usage.tokens(), limit });
    let spending = |amount| Spending { scope: scope.clone(), amount };
    dollars.into_iter().chain(tokens).map(spending).collect()
}
