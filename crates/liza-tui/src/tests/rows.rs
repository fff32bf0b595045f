//! Rows that are too short, and the selection.

use liza_core::model::{FaultKind, GoalStatus, Role, Status, Usage};
use liza_core::rules::spending::{Amount, Spending, SpendingScope};
use liza_status::alarms::{AlarmKind, AlarmLevel};
use liza_status::needs_you::{NeedsYou, PlannedTask};
use liza_status::view::{HeldView, TaskPhase, View};

use super::*;

fn change(model: &mut Model, change: impl FnOnce(&mut View)) {
    let mut view = (*model.view.clone().unwrap()).clone();
    change(&mut view);
    update(model, Event::View(Arc::new(view)), &dark());
}

/// Covers: UI-01, UI-03
#[test]
fn the_state_of_a_task_comes_before_its_title() {
    let mut model = model_of(BUSY, &observations(), (120, 40));
    for (reason, shown) in [
        ("its merge waits for liza resume", "approved; its merge waits for liza resume\n"),
        ("the integration test fails without it too", "approved; the integration test fails without"),
    ] {
        change(&mut model, |view| {
            let task = view.tasks.iter_mut().find(|task| task.id.as_str() == "retry-orders").unwrap();
            (task.status, task.usage) = (Some(Status::Approved), None);
            task.reason = Some(reason.to_owned());
            view.agents.clear();
        });
        let page = picture(&model);
        let line = page.lines().find(|line| line.contains("  retry-orders ")).unwrap();
        let left: String = line.chars().take(66).collect();
        assert!(format!("{}\n", left.trim_end()).contains(shown), "{page}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn a_team_that_a_program_holds_up_says_so_above_the_tasks() {
    let mut model = model_of(BUSY, &observations(), (120, 40));
    model.mode = ScreenMode::Team;
    assert!(!picture(&model).contains("HELD"));
    change(&mut model, |view| {
        for agent in &mut view.agents {
            let (client, again_in) = ("codex".to_owned(), Some(Seconds(11_460)));
            hold(agent, HeldView { client, kind: FaultKind::Quota, again_in });
        }
    });
    let shown = picture(&model);
    assert!(shown.lines().next().unwrap().contains(" HELD "), "{shown}");
    let banner = "\n codex at its usage limit, again in 3h 11m. To try it now: liza resume\n";
    assert!(shown.contains(banner), "{shown}");
    // The stop of the whole team is said instead.
    model.stopping = true;
    assert!(!picture(&model).contains(" HELD "), "{}", picture(&model));
}

/// Covers: UI-01, UI-03
#[test]
fn figures_give_way_before_words_in_two_columns() {
    let mut model = model_of(BUSY, &observations(), (120, 40));
    change(&mut model, |view| {
        for agent in &mut view.agents {
            agent.usage = Some(Usage { input: 196_000, ..Usage::default() });
            agent.last_action =
                agent.last_action.take().map(|_| "thinking, after shell: cargo test --workspace".to_owned());
        }
    });
    let shown = picture(&model);
    assert!(shown.contains("REVIEWING retry-orders"), "{shown}");
    assert!(shown.contains("thinking, after shell: cargo test --workspa"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn the_first_decision_is_selected_until_the_person_selects_another() {
    let mut model = model_of(FIRE, &Observations::default(), (80, 24));
    let need = |kind: AlarmKind, command: &str, of: &NeedsYou| NeedsYou {
        kind,
        task: None,
        command: line(command),
        ..of.clone()
    };
    let first = model.needs()[0].clone();
    let vision = need(AlarmKind::Vision, "${EDITOR:-vi} specs/vision.md", &first);
    let login = need(AlarmKind::Login, "codex login", &first);
    change(&mut model, |view| view.needs_you = vec![vision.clone()]);
    change(&mut model, |view| view.needs_you = vec![login.clone(), vision.clone()]);
    assert_eq!(model.need, 0);
    press(&mut model, KeyCode::Down);
    change(&mut model, |view| view.needs_you = vec![first, login, vision]);
    assert_eq!(model.need, 2, "the person has selected it");
}

/// Covers: UI-01, UI-03
#[test]
fn a_decision_that_only_has_a_command_for_elsewhere_is_not_answered_here() {
    let mut model = model_of(FIRE, &Observations::default(), (80, 24));
    for (command, key) in [
        ("codex login", "Enter show the command"),
        ("liza config --trust", "Enter show the command"),
        ("liza answer t \"...\"", "Enter answer"),
        ("liza goal new \"...\"", "Enter answer"),
        ("liza resume", "Enter run it"),
    ] {
        change(&mut model, |view| {
            view.needs_you.truncate(1);
            view.needs_you[0].command = line(command);
        });
        let keys = picture(&model).lines().next_back().unwrap_or_default().to_owned();
        assert!(keys.contains(key), "{command}: {keys}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn a_goal_that_has_ended_offers_no_pause() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    change(&mut model, |view| view.goal.as_mut().unwrap().status = GoalStatus::Completed);
    let keys = picture(&model).lines().next_back().unwrap_or_default().to_owned();
    assert!(!keys.contains("p pause") && keys.contains("q leave"), "{keys}");
}

/// Covers: UI-01, UI-03
#[test]
fn leaving_says_that_the_team_goes_on() {
    let mut model = model_of(BUSY, &observations(), (120, 40));
    let keys = |model: &Model| picture(model).lines().next_back().unwrap_or_default().to_owned();
    assert!(keys(&model).ends_with("q leave, the team goes on"), "{}", keys(&model));
    model.size.0 = 80;
    assert!(keys(&model).ends_with("n note  p pause  ? keys  q leave"), "{}", keys(&model));
    model.size.0 = 120;
    change(&mut model, |view| view.agents.clear());
    assert!(keys(&model).ends_with("q leave"), "{}", keys(&model));
    let page = crate::update::keys::keys_page(120);
    for text in ["  r           resume after", "HELD: try", "used up: raise", "the team goes on"] {
        assert!(page.contains(text), "{page}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn the_page_of_the_keys_breaks_no_word() {
    let page = crate::update::keys::keys_page(80);
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let resume = "  r           resume after a pause or a checkpoint; HELD: try it now; a budget\n";
    assert!(page.contains(&format!("{resume}              is used up: raise it\n")), "{page}");
    assert!(page.contains("show their\ncommand first.\n"), "{page}");
}

/// Covers: UI-01, UI-03
#[test]
fn a_result_that_is_a_page_leaves_the_keys() {
    let mut model = busy();
    let text =
        "checkpoint: no new work starts\n  1 of 4 planned tasks done\nAfter your review: liza resume\n";
    let result = crate::CommandResult { succeeded: true, text: text.to_owned() };
    let words = vec!["checkpoint".to_owned()];
    update(&mut model, Event::Executed { words, result }, &dark());
    let shown = picture(&model);
    assert!(shown.contains("After your review") && shown.contains(" Esc back "), "{shown}");
}

/// The words in capitals that texts of a source file begin with.
fn capitals(source: &str) -> Vec<String> {
    let texts = source.split('"').skip(1).step_by(2);
    let words = texts.map(|text| {
        let end = text.find(|c: char| !c.is_ascii_uppercase() && c != ' ').unwrap_or(text.len());
        text[..end].trim().to_owned()
    });
    words.filter(|word| word.len() > 3).collect()
}

/// Covers: UI-01, UI-03
#[test]
fn the_guide_explains_every_word_in_capitals() {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/screen.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let words = include_str!("../../../liza-status/src/words.rs");
    let mut shown = capitals(words);
    shown.extend(capitals(include_str!("../draw/mod.rs")));
    let states = ["STARTING", "WORKING", "REVIEWING", "PLANNING", "WAITING", "HANDOFF"];
    shown.extend(states.map(str::to_owned));
    assert!(shown.len() > 20, "{shown:?}");
    let missing: Vec<&String> = shown.iter().filter(|word| !guide.contains(&format!("`{word}"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Covers: UI-01
#[test]
fn the_page_of_a_task_names_it_once() {
    let mut model = busy();
    select(&mut model, "retry-users");
    type_in(&mut model, "\n");
    let source = model.page.as_ref().unwrap().source().unwrap().clone();
    let text = "retry-users  IN PROGRESS  priority 2\nRetry calls of the user service\n".to_owned();
    let result = crate::CommandResult { succeeded: true, text };
    update(&mut model, Event::Loaded(source, result), &dark());
    let shown = picture(&model);
    assert_eq!(shown.matches("retry-users").count(), 1, "{shown}");
    assert!(shown.contains("Retry calls of the user service"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn in_one_second_a_person_comes_first_and_the_same_line_is_shown_once() {
    let mut model = busy();
    let line = |age: u64, who: &str, text: &str| LogLine {
        time: now() - Seconds(age),
        who: who.to_owned(),
        text: text.to_owned(),
        is_alert: false,
        earlier: false,
    };
    let lines = vec![line(9, "coder-1", "working on t"), line(9, "human", "answers t: yes")];
    update(&mut model, Event::Log(lines), &dark());
    update(&mut model, Event::Log(vec![line(6, "coder-1", "t APPROVED")]), &dark());
    update(&mut model, Event::Log(vec![line(4, "coder-1", "t APPROVED")]), &dark());
    let texts: Vec<&str> = model.log.iter().rev().take(3).map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["t APPROVED", "working on t", "answers t: yes"]);
}

/// Covers: UI-01, UI-03
#[test]
fn the_agent_that_merges_is_among_those_at_work_and_its_test_has_a_row() {
    let mut model = model_of(BUSY, &observations(), (120, 40));
    let mut view = (*model.view.clone().unwrap()).clone();
    for agent in &mut view.agents {
        rest(agent);
    }
    let merger = view.agents.iter_mut().find(|agent| agent.role == Role::CodeReviewer).unwrap();
    let what = What::MergeNow { is_testing: true, age: Seconds(8) };
    merger.next = Next::agent(merger.id, what).on("retry-users".parse().ok());
    let name = merger.id.to_string();
    update(&mut model, Event::View(Arc::new(view)), &dark());
    assert_eq!(model.agents()[0].id.to_string(), name);
    let shown = picture(&model);
    assert!(shown.contains(&format!("AGENTS  1 of {} at work", model.agents().len())), "{shown}");
    let at = shown.lines().position(|line| line.contains("MERGING retry-users")).unwrap();
    let rows: Vec<&str> = shown.lines().skip(at).take(2).collect();
    assert!(!rows[0].contains("integration test"), "{shown}");
    assert!(rows[1].contains("   integration test, 8s"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn a_folded_decision_has_its_command_and_hidden_ones_are_counted() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    assert!(picture(&model).contains(" !! BLOCKED exhausted → liza "), "{}", picture(&model));
    change(&mut model, |view| view.needs_you.extend(view.needs_you.clone()));
    let all = model.needs().len();
    model.panel = Panel::Tasks;
    for need in [0, all / 2, all - 1] {
        model.need = need;
        let shown = picture(&model);
        let heading = shown.lines().find(|line| line.contains("NEEDS YOU")).unwrap();
        let hidden = |sign: &str| -> usize {
            let rest = heading.split_once(sign).map(|(_, rest)| rest.split(' ').next().unwrap());
            rest.map_or(0, |number| number.parse().unwrap())
        };
        let (above, below) = (hidden("↑ "), hidden("↓ "));
        let entries = |line: &&str| line.starts_with(" !! ") || line.starts_with("  ! ");
        assert_eq!(above + below + shown.lines().filter(entries).count(), all, "{shown}");
        assert!((need > 0 || above == 0) && (need < all - 1 || below == 0), "{shown}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn no_heading_is_the_last_row_of_the_tasks() {
    for height in 14..30 {
        let shown = picture(&model_of(BUSY, &observations(), (80, height)));
        let lines: Vec<&str> = shown.lines().collect();
        let Some(more) = lines.iter().position(|line| line.starts_with("  … ")) else { continue };
        let is_heading = |line: &str| !line.starts_with("  ") && !line.contains("TASKS");
        assert!(!is_heading(lines[more - 1]), "{height}: {shown}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn an_urgent_decision_that_arrives_is_unfolded_beside_the_selected_one() {
    let mut model = model_of(FIRE, &Observations::default(), (80, 24));
    let question = NeedsYou {
        level: AlarmLevel::Warning,
        questions: vec!["Is it rounded up? ".repeat(8), "Two codes? ".repeat(9)],
        ..model.needs().iter().find(|need| need.task.is_some()).unwrap().clone()
    };
    let broken = NeedsYou {
        kind: AlarmKind::IntegrationTestBroken,
        level: AlarmLevel::Critical,
        task: None,
        text: "the integration test failed with exit status 1 without any task too".into(),
        questions: Vec::new(),
        command: line("liza sync, or liza resume"),
        ..question.clone()
    };
    change(&mut model, |view| view.needs_you = vec![question.clone()]);
    press(&mut model, KeyCode::Down);
    change(&mut model, |view| view.needs_you = vec![broken.clone(), question.clone()]);
    let shown = picture(&model);
    assert_eq!(model.need, 1, "the keys stay where the person has put them");
    for text in ["     the integration test failed with", "     → liza sync, or liza resume"] {
        assert!(shown.contains(text), "{shown}");
    }
    assert!(shown.contains(&format!("     → {}", question.command)), "{shown}");
    // Once seen, it is as any other.
    press(&mut model, KeyCode::Up);
    press(&mut model, KeyCode::Down);
    let shown = picture(&model);
    assert!(shown.contains(" !! INTEGRATION TEST BROKEN → liza sync"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn blocked_tasks_that_are_decisions_are_only_counted_when_rows_are_few() {
    let mut model = model_of(FIRE, &Observations::default(), (80, 24));
    let shown = picture(&model);
    assert!(shown.contains("\n BLOCKED 2, see NEEDS YOU\n"), "{shown}");
    model.panel = Panel::Tasks;
    assert!(picture(&model).contains("\n  exhausted "), "{}", picture(&model));
    model.panel = Panel::NeedsYou;
    model.size = (80, 70);
    assert!(picture(&model).contains("\n  exhausted "), "{}", picture(&model));
}

/// Covers: UI-03, AX-24
#[test]
fn the_drafts_of_a_plan_that_is_listed_above_are_only_counted() {
    let mut model = model_of(BUSY, &observations(), (80, 40));
    change(&mut model, |view| {
        let task = view.tasks.iter_mut().find(|task| task.id.as_str() == "retry-report").unwrap();
        task.phase = TaskPhase::Draft;
        let planned = PlannedTask {
            task: task.id.clone(),
            description: task.description.clone(),
            done_when: None,
            depends_on: Vec::new(),
            validation: vec!["cargo test".to_owned()],
        };
        let need = &mut view.needs_you[0];
        (need.task, need.plan) = (None, vec![planned]);
    });
    let shown = picture(&model);
    assert!(shown.contains("\n DRAFT 2, 1 of them in NEEDS YOU\n"), "{shown}");
    assert!(shown.contains("1. retry-report: ") || shown.contains("     retry-report: "), "{shown}");
    assert_eq!(shown.matches("retry-report").count(), 1, "{shown}");
    assert!(shown.contains("\n  retry-docs "), "others have their rows: {shown}");
    model.panel = Panel::Tasks;
    assert!(picture(&model).contains("\n  retry-report "), "{}", picture(&model));
}

/// Covers: UI-03, AX-22
#[test]
fn the_deadline_of_the_sprint_is_visible_at_80_columns() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    change(&mut model, |view| {
        let sprint = view.sprint.as_mut().unwrap();
        (sprint.progress.replaced, sprint.deadline_left) = (2, Some(7_200));
        sprint.usage = Some(Usage { input: 12_000, ..Usage::default() });
    });
    let shown = picture(&model);
    assert!(shown.lines().nth(1).unwrap().ends_with(" · due in 2h"), "{shown}");
    assert!(!shown.contains("replaced") && !shown.contains("tokens"), "{shown}");
}

/// Covers: UI-03, AX-20
#[test]
fn a_long_failure_shows_its_cause() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    change(&mut model, |view| {
        let planner = view.agents.iter_mut().find(|agent| agent.role == Role::Planner).unwrap();
        let path = "a-long-folder/".repeat(9);
        let last = serde_json::json!({
            "client": "rehearsal", "started": now(), "ended": now(), "failed": true,
            "result": format!("rehearsal exited 1: liza: /{path}pb.yaml:4:170: unknown step"),
        });
        planner.last_session = Some(serde_json::from_value(last).unwrap());
    });
    let shown = picture(&model);
    assert!(shown.contains("rehearsal exited 1:") && shown.contains(": unknown step"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn the_reason_of_a_block_is_said_once_at_every_size() {
    for size in [(80, 24), (120, 40), (200, 60)] {
        let mut model = model_of(FIRE, &Observations::default(), size);
        let blocked = |need: &NeedsYou| need.kind == AlarmKind::Blocked;
        model.need = model.needs().iter().position(blocked).unwrap();
        let need = &model.needs()[model.need];
        let task = model.task_view(need.task.as_ref().unwrap()).unwrap();
        let reason: String = task.reason.clone().unwrap().chars().take(12).collect();
        for panel in [Panel::NeedsYou, Panel::Tasks] {
            model.panel = panel;
            let shown = picture(&model);
            assert!(shown.matches(&reason).count() <= 1, "{reason}:\n{shown}");
        }
    }
}

/// Covers: UI-01, UI-03
#[test]
fn an_agent_that_waits_has_one_row_and_the_log_the_whole_width() {
    let mut model = model_of(BUSY, &observations(), (120, 40));
    change(&mut model, |view| {
        for agent in view.agents.iter_mut().filter(|agent| agent.role == Role::Planner) {
            rest(agent);
        }
        view.needs_you.clear();
    });
    let text = "a text of the log that is longer than half of the screen is, but not longer than all of it";
    let line = LogLine {
        time: now(),
        who: "liza".to_owned(),
        text: text.to_owned(),
        is_alert: false,
        earlier: false,
    };
    update(&mut model, Event::Log(vec![line]), &dark());
    for size in [(120, 40), (200, 60)] {
        model.size = size;
        let shown = picture(&model);
        assert!(shown.contains(text), "{shown}");
        let right: Vec<&str> =
            shown.lines().filter_map(|line| line.split_once("● ")).map(|(_, text)| text).collect();
        assert!(right.iter().any(|line| line.starts_with("planner-1")), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        let at = lines.iter().position(|line| line.contains("planner-1        WAITING")).unwrap();
        let below = lines[at + 1];
        assert!(below.contains('●') || below.contains('✗') || below.starts_with(" LOG"), "{shown}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn a_budget_is_whole_before_the_tokens_of_the_sprint() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    change(&mut model, |view| {
        view.sprint.as_mut().unwrap().usage = Some(Usage { input: 151_000, ..Usage::default() });
        let amount = Amount::Tokens { used: 968_000, limit: 880_000 };
        view.budgets = vec![Spending { scope: SpendingScope::Day(now()), amount }];
    });
    for (columns, tokens) in [(80, false), (200, true)] {
        model.size.0 = columns;
        let line = picture(&model).lines().nth(1).unwrap().to_owned();
        assert!(line.ends_with("of 880k tokens"), "{line}");
        assert_eq!(line.contains("151k tokens"), tokens, "{line}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn while_the_team_stops_only_those_at_work_are_counted() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    model.stopping = true;
    let shown = picture(&model);
    assert!(shown.contains(" AGENTS  2 still at work ─"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn a_key_after_the_end_of_the_screen_does_nothing() {
    let mut model = model_of(BUSY, &paused(), (80, 24));
    let key = |key: char| Event::Key(KeyEvent::from(KeyCode::Char(key)));
    let events = [key('p'), Event::End, key('r')];
    let effects = update_all(&mut model, events.into_iter(), &dark());
    assert_eq!(commands(&effects), ["pause"]);
    assert!(effects.ends_with(&[Effect::Quit]), "{effects:?}");
}
