//! Budgets in dollars and tokens: what counts, the warning, the checkpoint, and that nothing new starts.

use liza_core::model::{
    Actor, GoalStatus, Seconds, SpendingLimit, SprintStatus, Status, StopFileTimes, Timestamp, Usage,
};
use liza_core::protocol::{
    AbandonTask, Checkpoint, CheckpointCause, Command, NewSprint, RecordUsage, Resume,
};
use liza_core::rules::figures::GoalFigures;
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::spending::{Amount, SpendingScope, left_for, spending, used_up};
use liza_core::supervise::stop_files::reconcile;
use liza_core::supervise::{Backoffs, Situation, Step, WaitReason, next_step};
use liza_status::alarms::{AlarmLevel, Observations, alarms};
use liza_status::needs_you::needs_you;
use liza_status::view::charts;
use liza_testkit::boards;
use liza_testkit::worlds::*;

fn dollars(dollars: f64) -> Option<SpendingLimit> {
    Some(SpendingLimit { dollars: Some(dollars), tokens: None })
}

fn tokens(tokens: u64) -> Option<SpendingLimit> {
    Some(SpendingLimit { dollars: None, tokens: Some(tokens) })
}

/// A coder with a task, and a second task that it could claim.
fn team() -> World {
    let mut world = World::with_task(Status::Claimed);
    world.add("u", ready());
    world
}

fn spend(world: &mut World, cost_usd: f64, day_ends: Timestamp) {
    let usage = Usage { input: 700, output: 100, cached: 90_000, cost_usd, ..Usage::default() };
    let command =
        RecordUsage { agent: coder(1), task: Some(task("t")), usage, context_percent: None, day_ends };
    let supervisor = world.supervisor(coder(1));
    world.must(supervisor, Command::from(command));
}

fn midnight(world: &World) -> Timestamp {
    world.now + Seconds::hours(10)
}

fn step(world: &World) -> Step {
    next_step(&Situation {
        state: &world.state,
        agent: coder(1),
        stop_files: world.stop_files,
        found_merges: &FoundMerges::NONE,
        now: world.now,
        idle_since: world.now,
        in_team: true,
        clients: &[],
        backoffs: &Backoffs::NONE,
    })
}

fn budget_alarms(world: &World) -> Vec<(AlarmLevel, String)> {
    let found = alarms(&world.state, &Observations::default(), world.now);
    let budgets = found.iter().filter(|alarm| alarm.kind.to_string() == "BUDGET");
    budgets.map(|alarm| (alarm.level, alarm.text.to_string())).collect()
}

fn checkpoint(world: &World) -> Option<Command> {
    reconcile(&world.state, StopFileTimes::default(), world.now)
}

/// Covers: SE-06, UI-03
#[test]
fn dollars_and_tokens_that_are_used_up_are_two_alarms_with_their_own_commands() {
    let mut world = team();
    world.config().budget.sprint = Some(SpendingLimit { dollars: Some(1.0), tokens: Some(500) });
    let day_ends = midnight(&world);
    spend(&mut world, 2.0, day_ends);
    let found = alarms(&world.state, &Observations::default(), world.now);
    let subjects: Vec<String> = found.iter().map(|alarm| alarm.subject.clone()).collect();
    assert_eq!(subjects, ["sprint 100 % of the dollars", "sprint 100 % of the tokens"]);
    let needs = needs_you(&world.state, &Observations::default(), &found, world.now);
    let commands: Vec<&str> = needs.iter().map(|need| need.command.as_str()).collect();
    assert_eq!(
        commands,
        ["liza config budget.sprint.dollars \"...\"", "liza config budget.sprint.tokens \"...\""]
    );
}

/// Covers: SE-06
#[test]
fn at_eighty_percent_it_is_a_warning_and_at_a_hundred_nothing_new_starts() {
    for scope in ["task", "sprint", "day"] {
        let mut world = team();
        let limit = dollars(10.0);
        match scope {
            "task" => world.config().budget.task = limit,
            "sprint" => world.config().budget.sprint = limit,
            _ => world.config().budget.day = limit,
        }
        let day = midnight(&world);
        spend(&mut world, 7.99, day);
        assert_eq!((budget_alarms(&world), checkpoint(&world)), (Vec::new(), None), "{scope}");
        assert!(matches!(step(&world), Step::Work(_)), "{scope}");
        spend(&mut world, 0.01, day);
        let warning = budget_alarms(&world);
        assert_eq!(warning.len(), 1, "{scope}");
        assert_eq!(warning[0].0, AlarmLevel::Warning);
        assert!(warning[0].1.ends_with("$8.00 of $10.00 used (80 %)"), "{warning:?}");
        assert!(matches!(step(&world), Step::Work(_)), "{scope}");
        spend(&mut world, 2.0, day);
        let critical = budget_alarms(&world);
        assert_eq!((critical.len(), critical[0].0), (1, AlarmLevel::Critical));
        assert!(
            critical[0].1.contains(&format!("liza config budget.{scope}.dollars AMOUNT")),
            "{critical:?}"
        );
        let waits = step(&world);
        assert!(matches!(waits, Step::Wait { why: WaitReason::BudgetUsedUp(_), .. }), "{waits:?}");
        assert_eq!(checkpoint(&world), Some(Checkpoint { cause: CheckpointCause::Budget }.into()), "{scope}");
    }
}

/// Covers: SE-06
#[test]
fn the_checkpoint_stays_until_the_human_raises_the_budget() {
    let mut world = team();
    world.config().budget.task = tokens(800);
    let day = midnight(&world);
    let budget = || Command::from(Checkpoint { cause: CheckpointCause::Budget });
    world.refused_with("nothing_to_do", world.supervisor(coder(1)), budget());
    spend(&mut world, 0.0, day);
    world.refused_with("not_permitted", world.agent(coder(1)), budget());
    world.must(world.supervisor(coder(1)), budget());
    assert_eq!(world.sprint().status, SprintStatus::Checkpoint);
    assert_eq!(world.last_log().detail, "a budget is used up: t: 800 of 800 tokens used (100 %)");
    world.refused_with("nothing_to_do", world.supervisor(coder(1)), budget());
    let seen = alarms(&world.state, &Observations::default(), world.now);
    let needed = needs_you(&world.state, &Observations::default(), &seen, world.now);
    assert!(
        needed.iter().any(|need| need.command == "liza config budget.task.tokens \"...\""
            && need.text.contains("800 of 800"))
    );
    let resume = || Command::from(Resume { decision: None, note: None });
    let refusal = world.refused_with("budget_used_up", Actor::Human, resume());
    assert!(
        refusal.hint().is_some_and(|hint| hint.contains("liza config budget.task.tokens AMOUNT")),
        "{refusal}"
    );
    world.config().budget.task = tokens(801);
    world.must(Actor::Human, resume());
    assert_eq!((world.sprint().status, checkpoint(&world)), (SprintStatus::InProgress, None));
}

/// Covers: SE-06
#[test]
fn tokens_from_the_cache_do_not_count_and_ended_tasks_have_no_budget() {
    let mut world = team();
    world.config().budget.task = tokens(1000);
    let day = midnight(&world);
    spend(&mut world, 0.0, day);
    let of_t = |world: &World| {
        let found = spending(&world.state.board, world.now);
        found.into_iter().find(|one| one.scope == SpendingScope::Task(task("t"))).map(|one| one.amount)
    };
    assert_eq!(of_t(&world), Some(Amount::Tokens { used: 800, limit: 1000 }));
    spend(&mut world, 0.0, day);
    assert!(used_up(&world.state.board, world.now).is_some());
    for status in [Status::Merged, Status::Blocked, Status::Approved, Status::Abandoned] {
        let mut ended = world.clone();
        ended.edit_record("t", |record| record.status = Some(status));
        assert_eq!(used_up(&ended.state.board, ended.now), None, "{status}");
    }
}

/// Covers: AX-22
#[test]
fn a_budget_that_the_last_session_exceeds_is_an_alarm_that_asks_for_nothing() {
    let mut world = team();
    world.config().budget.task = tokens(1000);
    world.config().budget.sprint = dollars(4.5);
    let day = midnight(&world);
    spend(&mut world, 2.5, day);
    assert_eq!(budget_alarms(&world).len(), 1, "80 % of the task's tokens");
    spend(&mut world, 2.5, day);
    world.edit_record("t", |record| {
        (record.status, record.merge_commit) =
            (Some(Status::Merged), record.review_commit.take().or(Some(sha('a'))));
    });
    let of_task = (AlarmLevel::Warning, "t: 1.6k of 1.0k tokens used (160 %)".to_owned());
    assert!(budget_alarms(&world).contains(&of_task), "{:?}", budget_alarms(&world));
    boards::goal(&mut world.state).status = GoalStatus::Completed;
    let of_sprint = (AlarmLevel::Warning, "the sprint: $5.00 of $4.50 used (111 %)".to_owned());
    assert_eq!(budget_alarms(&world), [of_task, of_sprint]);
    let found = alarms(&world.state, &Observations::default(), world.now);
    assert_eq!(needs_you(&world.state, &Observations::default(), &found, world.now), []);
}

/// Covers: AX-22
#[test]
fn the_tasks_and_the_planner_add_up_to_the_goal() {
    let mut world = team();
    let day_ends = midnight(&world);
    for cost in [0.1, 0.2, 0.7] {
        spend(&mut world, cost, day_ends);
    }
    assert!(GoalFigures::of(&world.state, world.now).other.is_none(), "no planner has worked");
    let usage = Usage { input: 40, cost_usd: 0.53, ..Usage::default() };
    let command = RecordUsage { agent: planner(), task: None, usage, context_percent: None, day_ends };
    let supervisor = world.supervisor(planner());
    world.must(supervisor, Command::from(command));
    let figures = GoalFigures::of(&world.state, world.now);
    assert_eq!(figures.other.in_words().as_deref(), Some("40 tokens, $0.53"));
    assert_eq!(figures.total.in_words(), world.sprint().usage.as_ref().and_then(Usage::in_words));
    assert_eq!(charts(&world.state, world.now).goal.total, figures.total);
}

/// Covers: AX-29
#[test]
fn a_session_may_use_what_is_left_of_the_smallest_budget() {
    let mut world = team();
    let left = |world: &World, of: Option<&str>| {
        let SpendingLimit { dollars, tokens } =
            left_for(&world.state.board, of.map(task).as_ref(), world.now);
        (dollars, tokens)
    };
    assert_eq!(left(&world, Some("t")), (None, None), "without a budget");
    world.config().budget.task = dollars(5.0);
    world.config().budget.sprint = Some(SpendingLimit { dollars: Some(20.0), tokens: Some(10_000) });
    world.config().budget.day = tokens(2_000);
    let day = midnight(&world);
    spend(&mut world, 2.0, day);
    assert_eq!(left(&world, Some("t")), (Some(3.0), Some(1_200)));
    assert_eq!(left(&world, Some("u")), (Some(5.0), Some(1_200)), "another task has its own");
    assert_eq!(left(&world, None), (Some(18.0), Some(1_200)), "a planner has none");
    spend(&mut world, 4.0, day);
    assert_eq!(left(&world, Some("t")), (Some(0.0), Some(400)), "never less than nothing");
}

/// Covers: SE-06, UI-03
#[test]
fn a_checkpoint_of_a_budget_that_is_used_up_is_one_entry_whose_command_is_not_refused() {
    let mut world = team();
    world.config().budget.day = tokens(500);
    let day_ends = midnight(&world);
    spend(&mut world, 0.0, day_ends);
    let stop_files = StopFileTimes { checkpoint: Some(world.now), ..StopFileTimes::default() };
    let seen = Observations { stop_files, ..Observations::default() };
    let needs = |world: &World| {
        let found = alarms(&world.state, &seen, world.now);
        let needs = needs_you(&world.state, &seen, &found, world.now);
        needs.iter().map(|need| (need.kind.to_string(), need.command.to_string())).collect::<Vec<_>>()
    };
    let raise = ("BUDGET".to_owned(), "liza config budget.day.tokens \"...\"".to_owned());
    assert_eq!(needs(&world).first(), Some(&raise));
    assert!(!needs(&world).iter().any(|(_, command)| command == "liza resume"), "{:?}", needs(&world));
    world.config().budget.day = tokens(5_000);
    let resume = ("CHECKPOINT".to_owned(), "liza resume".to_owned());
    assert_eq!(needs(&world).first(), Some(&resume));
}

/// Covers: SE-06
#[test]
fn a_day_ends_at_midnight_and_outlives_a_sprint() {
    let mut world = World::new();
    world.config().budget.day = dollars(5.0);
    let day = midnight(&world);
    spend(&mut world, 3.0, day);
    spend(&mut world, 3.0, day + Seconds::hours(24));
    assert_eq!(world.sprint().today.as_ref().unwrap().until, day, "the same day");
    assert!(used_up(&world.state.board, world.now).is_some());
    let kept = world.sprint().today.clone();
    let reason = "too expensive".to_owned();
    world.must(Actor::Human, Command::from(AbandonTask { task: task("t"), reason }));
    world.edit_sprint().status = SprintStatus::Completed;
    world.must(Actor::Human, Command::from(NewSprint));
    assert_eq!((world.sprint().today.clone(), world.sprint().usage.clone()), (kept, None));
    assert!(used_up(&world.state.board, world.now).is_some());
    assert_eq!(used_up(&world.state.board, day), None, "a new day");
    world.pass(Seconds::hours(10).0);
    world.heartbeat(coder(1));
    spend(&mut world, 1.0, day + Seconds::hours(24));
    let today = world.sprint().today.clone().unwrap();
    assert_eq!((today.until, today.usage.cost_usd), (day + Seconds::hours(24), 1.0));
}
