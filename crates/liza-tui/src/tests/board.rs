//! The board while the team changes, and the subjects of its pages and dialogs.

use liza_core::model::{FaultKind, GoalStatus, Role, Status, Usage};
use liza_core::rules::spending::{Amount, Spending, SpendingScope};
use liza_status::alarms::{AlarmKind, MainBranch};
use liza_status::needs_you::NeedsYou;
use liza_status::view::{AgentView, HeldView, MergeView, TaskPhase, TaskView};
use ratatui::crossterm::event::KeyCode;

use crate::model::page::PageSource;
use crate::model::{Effect, Panel};

use super::*;

/// Covers: UI-01, UI-03
#[test]
fn a_new_view_keeps_the_selected_decision_among_similar_ones() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    let discovery = |number: usize| {
        let text = format!("disc-{number} (high): found").into();
        let (kind, command) = (AlarmKind::Discovery, line(&format!("liza dismiss disc-{number}")));
        NeedsYou { kind, text, command, ..view.needs_you[0].clone() }
    };
    view.needs_you = (1..=3).map(discovery).collect();
    update(&mut model, Event::View(Arc::new(view.clone())), &dark());
    press(&mut model, KeyCode::End);
    // Its age is part of a text, and the first one was answered.
    view.needs_you[2].text = "disc-3 (high): found 1s ago".into();
    update(&mut model, Event::View(Arc::new(view.clone())), &dark());
    assert_eq!(model.need, 2);
    view.needs_you.remove(0);
    update(&mut model, Event::View(Arc::new(view)), &dark());
    assert_eq!(commands(&type_in(&mut model, "\ny")), ["dismiss disc-3"]);
}

/// Covers: UI-01, UI-03
#[test]
fn a_shared_file_is_accepted_only_where_the_person_sees_it() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    view.needs_you[model.need].command = line("liza config --trust");
    update(&mut model, Event::View(Arc::new(view)), &dark());
    assert_eq!(type_in(&mut model, "\n"), []);
    assert!(picture(&model).contains("in another terminal: liza config --trust"), "{}", picture(&model));
}

/// Covers: UI-01
#[test]
fn a_dialog_quotes_only_what_it_is_about() {
    let mut model = model_of(FIRE, &Observations::default(), (80, 24));
    model.panel = Panel::NeedsYou;
    model.need = model.needs().iter().position(|need| need.task.is_some()).unwrap();
    let text = liza_host::columns::cut(&model.needs()[model.need].text, 40);
    for key in ["X", "c"] {
        type_in(&mut model, key);
        let shown = picture(&model);
        let dialog = shown.lines().skip_while(|line| {
            !line.contains("───") || !(line.contains("Abort") || line.contains("Checkpoint"))
        });
        let dialog: Vec<&str> = dialog.collect();
        assert!(!dialog.is_empty() && !dialog.join("\n").contains(text.trim_end_matches('…')), "{shown}");
        press(&mut model, KeyCode::Esc);
    }
}

/// Covers: UI-01
#[test]
fn the_page_of_a_task_shows_the_output_of_that_task() {
    let mut model = busy();
    for task in ["retry-users", "retry-core"] {
        select(&mut model, task);
        type_in(&mut model, "\n");
        let effects = type_in(&mut model, "4");
        let words = ["tail", task, "--no-follow", "--last", "2000"].map(str::to_owned).to_vec();
        assert_eq!(effects, [Effect::Load(PageSource::Command(words))], "{task}");
        press(&mut model, KeyCode::Esc);
    }
}

/// Covers: UI-01, UI-03
#[test]
fn what_needs_the_person_gets_the_keys_unless_the_person_has_used_them() {
    let quiet = |model: &Model| {
        let mut view = (*model.view.clone().unwrap()).clone();
        view.needs_you.clear();
        Event::View(Arc::new(view))
    };
    for (key, panel) in [(None, Panel::NeedsYou), (Some(KeyCode::Tab), Panel::Agents)] {
        let mut model = model_of(FIRE, &paused(), (80, 24));
        let with_needs = Event::View(model.view.clone().unwrap());
        let event = quiet(&model);
        update(&mut model, event, &dark());
        assert_eq!(model.panel, Panel::Tasks);
        if let Some(key) = key {
            press(&mut model, key);
        }
        update(&mut model, with_needs, &dark());
        assert_eq!(model.panel, panel, "{key:?}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn agents_in_a_session_come_first_and_hidden_ones_are_counted() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    let idle = view.agents.iter().find(|agent| !agent.status.is_in_session()).unwrap().clone();
    let more =
        (3..12).map(|number| AgentView { id: format!("coder-{number}").parse().unwrap(), ..idle.clone() });
    view.agents = more.chain(view.agents.clone()).collect();
    update(&mut model, Event::View(Arc::new(view)), &dark());
    assert!(model.agents()[0].status.is_in_session() && model.agents()[1].status.is_in_session());
    let shown = picture(&model);
    assert!(shown.contains("code-reviewer-1") && shown.contains(" more"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn without_the_keys_the_list_of_agents_begins_with_those_at_work_and_those_that_cannot_work() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    let working = view.agents.iter().find(|agent| agent.status.is_in_session()).unwrap().clone();
    let idle = view.agents.iter().find(|agent| agent.id.to_string() == "planner-1").unwrap();
    let mut idle = idle.clone();
    rest(&mut idle);
    let agent = |of: &AgentView, id: &str| AgentView { id: id.parse().unwrap(), ..of.clone() };
    let held = HeldView { client: "codex".to_owned(), kind: FaultKind::Overloaded, again_in: None };
    // The first one is selected before the others begin to work.
    view.agents = vec![agent(&idle, "planner-1")];
    update(&mut model, Event::View(Arc::new(view.clone())), &dark());
    view.agents.extend((2..=9).map(|number| agent(&idle, &format!("coder-{number}"))));
    view.agents.push(agent(&idle, "code-reviewer-1"));
    hold(&mut view.agents[9], held);
    view.agents.push(agent(&working, "coder-10"));
    update(&mut model, Event::View(Arc::new(view.clone())), &dark());
    let names: Vec<String> = model.agents().iter().take(2).map(|agent| agent.id.to_string()).collect();
    assert_eq!(names, ["coder-10", "code-reviewer-1"]);
    let shown = picture(&model);
    assert!(shown.contains("● coder-10") && shown.contains("● code-reviewer-1"), "{shown}");
    view.agents.iter_mut().for_each(|agent| agent.in_session = true);
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    let visible = model.agents().iter().filter(|agent| shown.contains(&format!("● {} ", agent.id))).count();
    let hidden = model.agents().len() - visible;
    assert!(shown.contains(&format!("… {hidden} more, {hidden} at work")), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn a_long_decision_is_cut_before_its_command_and_not_at_it() {
    for (size, others) in [((80, 24), 0), ((80, 24), 4), ((60, 16), 2)] {
        let mut model = model_of(FIRE, &paused(), size);
        let mut view = (*model.view.clone().unwrap()).clone();
        let text = format!("the test failed. Correct it. {}", "It printed this and that. ".repeat(40)).into();
        let command = line("liza resume");
        let short = NeedsYou { text: "short".into(), ..view.needs_you[0].clone() };
        view.needs_you = vec![short; others];
        let long = NeedsYou { text, command, ..model.needs()[0].clone() };
        view.needs_you.push(long);
        update(&mut model, Event::View(Arc::new(view)), &dark());
        model.panel = Panel::Tasks;
        model.need = others;
        let shown = picture(&model);
        assert!(shown.contains("     → liza resume\n"), "{size:?}: {shown}");
        assert!(
            shown.contains("Correct it.") && shown.contains("…\n     → liza resume"),
            "{size:?}: {shown}"
        );
    }
}

/// Covers: UI-01, UI-03
#[test]
fn the_key_that_resumes_raises_a_budget_that_is_used_up() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    let command = line("liza config budget.day.tokens \"...\"");
    view.needs_you[0] = NeedsYou { kind: AlarmKind::Budget, command, ..view.needs_you[0].clone() };
    let amount = Amount::Tokens { used: 996_000, limit: 880_000 };
    view.budgets = vec![Spending { scope: SpendingScope::Day(Timestamp::from_unix(0)), amount }];
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let keys = picture(&model).lines().next_back().unwrap_or_default().to_owned();
    assert!(keys.contains("r raise") && !keys.contains("r resume"), "{keys}");
    type_in(&mut model, "r");
    let asked = picture(&model);
    assert!(asked.contains(" Raise the budget of today ─"), "{asked}");
    assert!(asked.contains(" Tokens (now 880000):"), "{asked}");
    assert_eq!(commands(&type_in(&mut model, "5000000\n")), ["config budget.day.tokens 5000000"]);
}

/// Covers: UI-01, UI-03
#[test]
fn when_a_held_agent_continues_is_not_cut_in_two_columns() {
    let mut model = model_of(BUSY, &observations(), (120, 40));
    model.mode = ScreenMode::Team;
    let mut view = (*model.view.clone().unwrap()).clone();
    let planner = view.agents.iter_mut().find(|agent| agent.id.to_string() == "planner-1").unwrap();
    let (client, again_in) = ("codex".to_owned(), Some(Seconds(27)));
    hold(planner, HeldView { client, kind: FaultKind::Overloaded, again_in });
    planner.usage = Some(Usage { input: 57_000, ..Usage::default() });
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    assert!(
        shown.contains("HELD: codex overloaded\n") || shown.contains("HELD: codex overloaded "),
        "{shown}"
    );
    assert!(shown.contains("again in 27s; now: r"), "{shown}");
    let keys = shown.lines().next_back().unwrap_or_default();
    assert!(keys.contains("r try now") && keys.contains("p pause") && keys.contains("? keys"), "{keys}");
}

/// Covers: UI-01, UI-03
#[test]
fn every_decision_is_unfolded_while_there_is_room() {
    let commands = |model: &Model| picture(model).matches("\n     → liza").count();
    let model = model_of(FIRE, &paused(), (140, 90));
    assert_eq!(commands(&model), model.needs().len(), "{}", picture(&model));
    let model = model_of(FIRE, &paused(), (80, 24));
    assert_eq!(commands(&model), 1, "{}", picture(&model));
}

/// Covers: UI-01, UI-03
#[test]
fn a_message_that_comes_late_is_shown_where_it_happened() {
    let mut model = busy();
    let line = |age: u64, text: &str, earlier: bool| LogLine {
        time: now() - Seconds(age),
        who: if earlier { "coder-1".to_owned() } else { "code-reviewer-1".to_owned() },
        text: text.to_owned(),
        is_alert: false,
        earlier,
    };
    update(&mut model, Event::Log(vec![line(10, "effect", false)]), &dark());
    update(&mut model, Event::Log(vec![line(10, "cause", true), line(20, "before", true)]), &dark());
    let texts: Vec<&str> = model.log.iter().rev().take(3).map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["effect", "cause", "before"]);
    // The start of an agent's work comes before its result.
    let began = line(5, "reviewing t", false);
    let result = LogLine { earlier: true, text: "t APPROVED".to_owned(), ..began.clone() };
    let merge = LogLine { text: "merging t".to_owned(), ..began.clone() };
    update(&mut model, Event::Log(vec![began]), &dark());
    update(&mut model, Event::Log(vec![result]), &dark());
    update(&mut model, Event::Log(vec![merge]), &dark());
    let texts: Vec<&str> = model.log.iter().rev().take(3).map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["merging t", "t APPROVED", "reviewing t"]);
}

/// Covers: UI-01
#[test]
fn long_lines_of_a_page_are_wrapped() {
    let mut model = busy();
    type_in(&mut model, "\n2");
    let text = format!("{}\nshort\n{}END", "a".repeat(100), "日本".repeat(30));
    let source = model.page.as_ref().unwrap().source().unwrap().clone();
    let result = crate::CommandResult { succeeded: true, text };
    update(&mut model, Event::Loaded(source, result), &dark());
    let shown = picture(&model);
    assert!(shown.contains(&format!("\n{}\nshort\n", "a".repeat(20))), "{shown}");
    assert!(shown.contains("END"), "{shown}");
    // Wrapped again for another width.
    assert_eq!(update(&mut model, Event::Resize(120, 24), &dark()).len(), 1);
}

/// Covers: UI-01, UI-03
#[test]
fn names_that_begin_alike_are_not_cut() {
    let mut model = busy();
    let mut view = (*model.view.clone().unwrap()).clone();
    for (task, end) in view.tasks.iter_mut().zip(["one", "two"]) {
        task.id = format!("a-very-long-name-of-a-task-that-ends-in-{end}").parse().unwrap();
    }
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    assert!(shown.contains("ends-in-one") && shown.contains("ends-in-two"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn the_keys_at_the_bottom_are_those_that_do_something_here() {
    let mut model = busy();
    let keys = |model: &Model| picture(model).lines().next_back().unwrap_or_default().to_owned();
    model.panel = Panel::Tasks;
    for (task, answers, notes) in [("retry-users", false, true), ("retry-core", false, false)] {
        select(&mut model, task);
        let shown = keys(&model);
        assert_eq!(
            (shown.contains("a answer"), shown.contains("n note")),
            (answers, notes),
            "{task}: {shown}"
        );
        assert!(shown.contains("p pause") && shown.contains("? keys"), "{shown}");
    }
    let mut asking = model_of(FIRE, &Observations::default(), (80, 24));
    let blocked = asking.tasks().iter().find(|task| task.status == Some(Status::Blocked)).unwrap();
    let blocked = blocked.id.to_string();
    asking.panel = Panel::Tasks;
    select(&mut asking, &blocked);
    asking.mode = ScreenMode::Team;
    let shown = keys(&asking);
    assert!(shown.contains("a answer") && shown.contains("p pause"), "{shown}");
    type_in(&mut model, "?");
    let lines = vec![ratatui::text::Line::raw("a key"); 27];
    model.page.as_mut().unwrap().lines = Some(lines);
    let shown = keys(&model);
    assert!(shown.contains("scroll, 7 more below") && !shown.contains("tab"), "{shown}");
    press(&mut model, KeyCode::End);
    assert!(!keys(&model).contains("more below"), "{}", keys(&model));
}

/// Covers: UI-01
#[test]
fn an_agent_without_a_task_waits_and_shows_no_lease() {
    let mut model = busy();
    let mut view = (*model.view.clone().unwrap()).clone();
    view.tasks.clear();
    view.needs_you.clear();
    for agent in &mut view.agents {
        rest(agent);
        if agent.role == Role::Planner {
            agent.next = Next::agent(agent.id, What::Wait).behind(Behind::Answer);
        }
    }
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    assert!(!shown.contains("lease") && !shown.contains("IDLE"), "{shown}");
    assert!(shown.contains("WAITING for your answer") && shown.contains("WAITING for a task"), "{shown}");
    assert!(shown.contains("\n  No tasks yet; planner-1 waits for your answer."), "{shown}");
    let mut view = (*model.view.clone().unwrap()).clone();
    view.goal.as_mut().unwrap().description.clear();
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    assert!(shown.contains("\n  No tasks yet: no goal is stated."), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn a_team_whose_program_is_held_is_not_shown_as_planning() {
    let mut model = busy();
    model.mode = ScreenMode::Team;
    let mut view = (*model.view.clone().unwrap()).clone();
    view.tasks.clear();
    view.needs_you.clear();
    for agent in &mut view.agents {
        let (client, again_in) = ("codex".to_owned(), Some(Seconds(60)));
        hold(agent, HeldView { client, kind: FaultKind::Overloaded, again_in });
    }
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    assert!(shown.contains("\n  codex overloaded, again in 1m. To try it now: liza resume\n"), "{shown}");
    assert!(shown.contains("planner-1        HELD: codex overloaded, again in 1m"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn tasks_that_are_not_visible_are_counted() {
    let large = picture(&model_of(BUSY, &observations(), (80, 40)));
    assert!(!large.contains(" more"), "{large}");
    let mut model = model_of(BUSY, &observations(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    let ready = view.tasks.iter().position(|task| task.status == Some(Status::Unclaimed)).unwrap();
    for number in 0..3 {
        let id = format!("retry-{number}").parse().unwrap();
        view.tasks.insert(ready, TaskView { id, ..view.tasks[ready].clone() });
    }
    let all = view.tasks.iter().filter(|task| task.phase != TaskPhase::Ended).count();
    update(&mut model, Event::View(Arc::new(view)), &dark());
    for key in [KeyCode::Home, KeyCode::End] {
        model.panel = Panel::Tasks;
        press(&mut model, key);
        let shown = picture(&model);
        let open = model.tasks().iter().filter(|task| task.phase != TaskPhase::Ended);
        let visible = open.filter(|task| shown.contains(&format!("\n  {} ", task.id)));
        let hidden = all - visible.count();
        assert!(hidden > 0 && shown.contains(&format!("\n  … {hidden} more\n AGENTS")), "{hidden}: {shown}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn what_an_agent_does_comes_before_its_figures() {
    let shown = picture(&model_of(BUSY, &observations(), (80, 24)));
    let line = shown.lines().find(|line| line.contains("WORKING retry-users")).unwrap();
    assert!(line.ends_with("shell: cargo test --workspace retry"), "{shown}");
    let line = shown.lines().find(|line| line.contains("REVIEWING retry-orders")).unwrap();
    assert!(line.contains("read: src/orders.rs "), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn the_result_of_a_goal_is_announced_in_a_whole_sentence_at_80_columns() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    if let Some(goal) = &mut view.goal {
        goal.status = GoalStatus::Completed;
    }
    view.main_branch = Some(MainBranch { name: "main".to_owned(), ahead: 7, behind: 0 });
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    let line = "\n The goal is reached. Review it: liza diff · liza finish · liza goal new \"…\"";
    assert!(shown.contains(line), "{shown}");
    let rest = "liza diff · take it: liza finish · next goal: liza goal new \"…\"";
    for (columns, reached) in
        [(120, "The goal is reached."), (130, "The goal is reached, 7 commits ahead of main.")]
    {
        model.size.0 = columns;
        let shown = picture(&model);
        assert!(shown.contains(&format!("\n {reached} Review it: {rest}")), "{columns}: {shown}");
    }
    model.size.0 = 60;
    let shown = picture(&model);
    assert!(shown.contains("\n The goal is reached. Review it: liza diff · liza finish\n"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn long_task_ids_are_cut_in_the_middle_and_stay_different() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    for (task, end) in [("retry-users", "min"), ("retry-orders", "max")] {
        let long = format!("retry-requests-of-users-with-a-backoff-that-grows-to-{end}").parse().unwrap();
        view.tasks.iter_mut().find(|shown| shown.id.as_str() == task).unwrap().id = long;
    }
    let need = view.needs_you.iter_mut().find(|need| need.task.is_some()).unwrap();
    need.task = "retry-requests-of-users-with-a-backoff-that-grows-to-min".parse().ok();
    update(&mut model, Event::View(Arc::new(view)), &dark());
    let shown = picture(&model);
    for name in ["retry-request…grows-to-min  ", "retry-request…grows-to-max  "] {
        assert!(shown.contains(&format!("\n  {name}")), "{shown}");
    }
    let heading = " ! ANOMALY retry-requests-of-users-with-a-backoff-that-grows-to-min";
    assert!(shown.contains(heading), "{shown}");
}

/// Covers: UI-01, UI-09
#[test]
fn a_time_in_a_message_is_shown_as_the_others_are() {
    let mut model = busy();
    let text = "waiting for codex until 2026-01-17T20:04:57Z: overloaded".to_owned();
    let line = LogLine { time: now(), who: "coder-1".to_owned(), text, is_alert: false, earlier: false };
    update(&mut model, Event::Log(vec![line]), &dark());
    let shown = picture(&model);
    assert!(shown.contains("2026-01-17 20:04:57") && !shown.contains("57Z"), "{shown}");
}

/// Covers: UI-01, UI-03
#[test]
fn a_team_that_is_stopping_says_for_which_merge_it_waits() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    model.mode = ScreenMode::Team;
    ctrl_c(&mut model);
    let mut view = (*model.view.clone().unwrap()).clone();
    let (task, by) = ("retry-orders".parse().unwrap(), "code-reviewer-1".parse().ok());
    view.merge = Some(MergeView { task, by, age: Seconds(9), is_testing: true, team_leaves: true });
    update(&mut model, Event::View(Arc::new(view.clone())), &dark());
    let shown = picture(&model);
    assert!(shown.lines().next().unwrap().contains(" STOPPING "), "{shown}");
    assert!(
        shown.contains("\n stopping; waits for the merge of retry-orders; Ctrl-C again: at once"),
        "{shown}"
    );
    ctrl_c(&mut model);
    update(&mut model, Event::View(Arc::new(view)), &dark());
    assert!(picture(&model).contains("\n killing the sessions"));
}
