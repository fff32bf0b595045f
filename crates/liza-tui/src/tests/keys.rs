//! The keys: the commands that they run, the questions that they ask, and the keys that do nothing.

use liza_core::model::{Revision, Status};
use liza_status::alarms::{AlarmKind, VisionGap};
use liza_status::needs_you::PlannedTask;
use liza_status::view::{AgentView, TaskView};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::CommandResult;
use crate::model::page::PageSource;
use crate::model::{ActionNotice, Effect, Panel};

use super::*;

/// Covers: UI-01
#[test]
fn what_can_be_undone_runs_at_once() {
    for (keys, command) in [("p", "pause"), ("r", "resume")] {
        let mut model = busy();
        assert_eq!(commands(&type_in(&mut model, keys)), [command]);
        assert!(picture(&model).ends_with(&format!(" → liza {command} …")), "{}", picture(&model));
    }
}

/// Covers: UI-01
#[test]
fn a_checkpoint_asks_first() {
    let mut model = busy();
    assert_eq!(type_in(&mut model, "c\n"), []);
    assert!(picture(&model).contains("→ liza checkpoint"), "{}", picture(&model));
    assert_eq!(commands(&type_in(&mut model, "y")), ["checkpoint"]);
}

/// Covers: UI-01, UI-03, AX-24
#[test]
fn the_approval_of_a_plan_asks_first() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    let need = &mut view.needs_you[model.need];
    (need.command, need.seen) = (line("liza plan --approve"), Some(Revision(12)));
    let planned = |number: usize| PlannedTask {
        task: format!("step-{number:02}").parse().unwrap(),
        description: "Retry on a server error".to_owned(),
        done_when: Some("it retries".to_owned()),
        depends_on: Vec::new(),
        validation: Vec::new(),
    };
    need.plan = (1..=20).map(planned).collect();
    update(&mut model, Event::View(Arc::new(view)), &dark());
    assert!(picture(&model).contains("→ liza plan --approve\n"), "{}", picture(&model));
    assert_eq!(type_in(&mut model, "\n\n"), []);
    // It can be read where it is approved.
    let shown = picture(&model);
    assert!(shown.contains("1. step-01: Retry on a server error. Done when: it retries."), "{shown}");
    assert!(shown.contains("and 5 more: liza plan"), "{shown}");
    // The approved plan is the shown one.
    assert!(picture(&model).contains("→ liza plan --approve --if-revision 12"), "{}", picture(&model));
    assert_eq!(commands(&type_in(&mut model, "y")), ["plan --approve --if-revision 12"]);
}

/// Covers: UI-01, BB-11
#[test]
fn a_verdict_is_about_what_was_on_the_screen_when_its_key_was_pressed() {
    let mut model = busy();
    select(&mut model, "retry-orders");
    let view = model.view.clone().unwrap();
    let changed = |revision: u64| {
        let mut view = (*view).clone();
        view.tasks.iter_mut().for_each(|task| task.revision = Revision(revision));
        Event::View(Arc::new(view))
    };
    update(&mut model, changed(38), &dark());
    type_in(&mut model, "v");
    update(&mut model, changed(39), &dark());
    let words = "submit-verdict --if-revision 38 retry-orders APPROVED";
    assert!(picture(&model).contains(words), "{}", picture(&model));
    assert_eq!(commands(&type_in(&mut model, "\n")), [words]);
}

/// Covers: UI-01
#[test]
fn an_abort_asks_first() {
    let mut model = busy();
    assert_eq!(type_in(&mut model, "X\n"), []);
    assert!(picture(&model).contains("→ liza abort"), "{}", picture(&model));
    assert_eq!(type_in(&mut model, "n"), []);
    assert!(model.dialog.is_none());
    assert_eq!(commands(&type_in(&mut model, "Xy")), ["abort"]);
    type_in(&mut model, "X");
    press(&mut model, KeyCode::Esc);
    assert_eq!(commands(&type_in(&mut model, "y")), [""; 0]);
}

/// Covers: UI-01
#[test]
fn texts_are_typed_and_become_the_command() {
    let cases = [
        ("retry-users", "aUse 3\n", "answer retry-users Use 3"),
        ("retry-users", "nMind q and p\n", "note Mind q and p --for retry-users"),
        ("retry-users", "NAll of you\n", "note All of you"),
        ("retry-users", "u\n", "release-claim retry-users --force"),
        ("retry-users", "uIt hangs\n", "release-claim retry-users --force --reason It hangs"),
        ("retry-users", "bSplit it\n", "mark-blocked retry-users --reason Split it"),
        ("retry-orders", "v\n", "submit-verdict --if-revision 0 retry-orders APPROVED"),
        ("retry-orders", "vRan it\n", "submit-verdict --if-revision 0 retry-orders APPROVED Ran it"),
        ("retry-orders", "xLine 12\n", "submit-verdict --if-revision 0 retry-orders REJECTED Line 12"),
        ("retry-core", "iA page for errors\n", "add A page for errors"),
    ];
    for (task, keys, command) in cases {
        let mut model = busy();
        select(&mut model, task);
        assert_eq!(commands(&type_in(&mut model, keys)), [command], "{keys}");
        assert!(model.dialog.is_none());
    }
}

/// Covers: UI-01
#[test]
fn a_required_text_cannot_be_left_out() {
    let mut model = busy();
    select(&mut model, "retry-orders");
    assert_eq!(type_in(&mut model, "x  \n\n"), []);
    assert!(model.dialog.is_some());
    let words = "submit-verdict --if-revision 0 retry-orders REJECTED   why";
    assert_eq!(commands(&type_in(&mut model, "why\n")), [words]);
}

/// Covers: UI-01
#[test]
fn what_makes_no_sense_for_a_task_says_why() {
    for (task, key, why) in [
        ("retry-mail", "v", "waits for a verdict"),
        ("retry-mail", "u", "no agent has claimed"),
        ("retry-core", "a", "has ended"),
    ] {
        let mut model = busy();
        select(&mut model, task);
        assert_eq!(type_in(&mut model, key), []);
        let notice = model.notice.as_ref().unwrap();
        assert!(!notice.succeeded && notice.text.contains(why), "{notice:?}");
    }
}

/// Covers: UI-01
#[test]
fn a_paste_is_text_and_never_keys() {
    let mut model = busy();
    assert_eq!(update(&mut model, Event::Paste("Xyp".to_owned()), &dark()), []);
    assert!(model.dialog.is_none() && model.notice.is_none());
    type_in(&mut model, "N");
    update(&mut model, Event::Paste("two\r\nlines\rand\u{1b}[31m\u{202e}\tx".to_owned()), &dark());
    assert_eq!(commands(&type_in(&mut model, "\n")), ["note two lines and[31m    x"]);
}

/// Covers: UI-01
#[test]
fn a_text_can_be_corrected() {
    let mut model = busy();
    type_in(&mut model, "Nzwei 日本");
    for code in [KeyCode::Backspace, KeyCode::Home, KeyCode::Delete, KeyCode::Char('d'), KeyCode::End] {
        press(&mut model, code);
    }
    press(&mut model, KeyCode::Left);
    assert_eq!(commands(&type_in(&mut model, "x\n")), ["note dwei x日"]);
    type_in(&mut model, "None two");
    let control = |c| Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    update(&mut model, control('w'), &dark());
    assert_eq!(model.dialog.as_ref().unwrap().fields[0].text, "one ");
    update(&mut model, control('u'), &dark());
    assert_eq!(model.dialog.as_ref().unwrap().fields[0].text, "");
}

/// Covers: UI-01, UI-03
#[test]
fn what_needs_the_human_is_selected_first_and_answered_with_its_command() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    assert_eq!(model.panel, Panel::NeedsYou);
    assert_eq!(commands(&type_in(&mut model, "\n")), ["resume"]);
    let place = |model: &Model, kind: &str| {
        model.needs().iter().position(|need| need.kind.to_string() == kind).unwrap()
    };
    model.need = place(&model, "BLOCKED");
    assert_eq!(commands(&type_in(&mut model, "\nboth\n")), ["answer exhausted both"]);
    model.need = place(&model, "DISCOVERY");
    assert_eq!(type_in(&mut model, "\n"), []);
    assert_eq!(commands(&type_in(&mut model, "y")), ["dismiss disc-1"]);
    // A command that needs a terminal of its own is only shown.
    model.need = place(&model, "BROKEN RECORD");
    assert_eq!(type_in(&mut model, "\n"), []);
    assert_eq!(model.notice.as_ref().unwrap().text, "in another terminal: liza edit broken");
}

/// Covers: UI-01
#[test]
fn a_notice_gives_way_to_the_keys_the_error_of_a_command_stays() {
    let mut model = busy();
    let later = |model: &mut Model, seconds: u64| {
        let mut view = View::clone(model.view.as_ref().unwrap());
        view.now = view.now + Seconds(seconds);
        update(model, Event::View(Arc::new(view)), &dark());
    };
    for (succeeded, remains) in [(true, false), (false, true)] {
        model.notice = Some(ActionNotice::new("done", succeeded));
        later(&mut model, 1);
        assert!(model.notice.is_some());
        later(&mut model, 20);
        assert_eq!(model.notice.is_some(), remains, "{succeeded}");
    }
    select(&mut model, "retry-mail");
    type_in(&mut model, "x");
    for (seconds, remains) in [(1, true), (4, true), (5, false)] {
        later(&mut model, seconds);
        assert_eq!(model.notice.is_some(), remains, "{seconds}");
    }
}

/// Covers: UI-01, UI-03
#[test]
fn an_answer_goes_to_the_task_that_asks_and_shows_its_question() {
    let asking = BUSY.replacen(
        "    status: UNCLAIMED\n",
        "    status: BLOCKED\n    blocked_reason: no spec\n    blocked_questions: [None or an error?]\n",
        1,
    );
    let mut model = model_of(&asking, &observations(), (80, 24));
    let blocked = |task: &TaskView| task.status == Some(Status::Blocked);
    let ended = model.tasks().iter().position(|task| task.status == Some(Status::Merged)).unwrap();
    let asked = model.tasks().iter().find(|task| blocked(task)).unwrap().id.clone();
    (model.panel, model.task) = (Panel::Tasks, ended);
    // A key that does nothing here would let the text that follows act as keys.
    assert_eq!(type_in(&mut model, "a"), []);
    assert_eq!(model.dialog.as_ref().unwrap().action.task, Some(asked.clone()));
    let screen = picture(&model);
    assert!(screen.contains("? None or an error?"), "{screen}");
    assert_eq!(commands(&type_in(&mut model, "pause\n")), [format!("answer {asked} pause")]);
}

/// Covers: UI-01, UI-03
#[test]
fn a_command_of_another_program_is_only_shown() {
    let unwritten = Observations { vision_gap: Some(VisionGap::Template), ..Observations::default() };
    // Nothing is planned yet.
    let (goal, rest) = BUSY.split_once("\ntasks:").unwrap();
    let (_, sprint) = rest.split_once("\nsprint:").unwrap();
    let unplanned = format!("{goal}\ntasks: []\nagents: {{}}\nsprint:{sprint}");
    let mut model = model_of(&unplanned, &unwritten, (80, 24));
    model.panel = Panel::NeedsYou;
    model.need = model.needs().iter().position(|need| need.kind == AlarmKind::Vision).unwrap();
    assert_eq!(type_in(&mut model, "\n"), []);
    assert_eq!(model.notice.as_ref().unwrap().text, "in another terminal: ${EDITOR:-vi} specs/vision.md");
}

/// Covers: UI-01
#[test]
fn the_selection_follows_its_task_when_the_board_changes() {
    let mut model = busy();
    select(&mut model, "retry-mail");
    let earlier = BUSY.replace("status: UNCLAIMED", "status: DRAFT");
    update(&mut model, Event::View(view_of(&earlier, &observations())), &dark());
    assert_eq!(model.subject().unwrap().id.as_str(), "retry-mail");
    for code in [KeyCode::End, KeyCode::Down, KeyCode::PageDown] {
        press(&mut model, code);
    }
    assert_eq!(model.task, model.tasks().len() - 1);
    press(&mut model, KeyCode::Home);
    press(&mut model, KeyCode::Up);
    assert_eq!(model.task, 0);
}

/// Covers: UI-01, AX-25
#[test]
fn a_task_opens_with_history_diff_prompt_and_output() {
    let mut model = busy();
    select(&mut model, "retry-users");
    let words = |effects: &[Effect]| match effects {
        [Effect::Load(PageSource::Command(words))] => words.join(" "),
        [Effect::Load(PageSource::Prompt(agent, task))] => format!("prompt {agent:?} {task:?}"),
        other => format!("{other:?}"),
    };
    assert_eq!(words(&type_in(&mut model, "\n")), "show retry-users");
    assert_eq!(words(&type_in(&mut model, "2")), "diff retry-users");
    assert!(words(&type_in(&mut model, "\t")).starts_with("prompt None"));
    assert_eq!(words(&type_in(&mut model, "4")), "tail retry-users --no-follow --last 2000");
    // Actions are about the open task.
    assert_eq!(commands(&type_in(&mut model, "ayes\n")), ["answer retry-users yes"]);
    press(&mut model, KeyCode::Esc);
    assert!(model.page.is_none());
    model.panel = Panel::Agents;
    assert_eq!(words(&type_in(&mut model, "\n")), "tail coder-1 --no-follow --last 2000");
}

/// Covers: UI-01
#[test]
fn an_open_page_is_read_again_every_second_and_only_once_at_a_time() {
    let mut model = busy();
    select(&mut model, "retry-users");
    let opened = type_in(&mut model, "\n");
    let [Effect::Load(source)] = opened.as_slice() else { panic!("{opened:?}") };
    let view = model.view.clone().unwrap();
    assert_eq!(update(&mut model, Event::View(view.clone()), &dark()), [], "it is being loaded");
    let result = CommandResult { succeeded: true, text: "one".to_owned() };
    update(&mut model, Event::Loaded(source.clone(), result), &dark());
    assert_eq!(update(&mut model, Event::View(view.clone()), &dark()), [], "the same second");
    let mut later = (*view).clone();
    later.now = later.now + Seconds(1);
    let effects = update(&mut model, Event::View(Arc::new(later)), &dark());
    assert_eq!(effects, [Effect::Load(source.clone())]);
}

/// Covers: UI-01
#[test]
fn the_diff_of_a_task_is_read_again_when_the_task_has_changed() {
    let mut model = busy();
    select(&mut model, "retry-orders");
    type_in(&mut model, "\n");
    let opened = type_in(&mut model, "2");
    let [Effect::Load(source)] = opened.as_slice() else { panic!("{opened:?}") };
    let result = CommandResult { succeeded: true, text: "one".to_owned() };
    update(&mut model, Event::Loaded(source.clone(), result), &dark());
    let mut view = (*model.view.clone().unwrap()).clone();
    view.now = view.now + Seconds(1);
    assert_eq!(update(&mut model, Event::View(Arc::new(view.clone())), &dark()), []);
    view.tasks.iter_mut().for_each(|task| task.revision = task.revision.next());
    let effects = update(&mut model, Event::View(Arc::new(view)), &dark());
    assert_eq!(effects, [Effect::Load(source.clone())]);
}

/// Covers: UI-01
#[test]
fn no_key_runs_an_action_again_whose_result_is_a_page() {
    let mut model = busy();
    let words = vec!["checkpoint".to_owned()];
    let result = CommandResult { succeeded: true, text: "one\ntwo\nthree\n".to_owned() };
    update(&mut model, Event::Executed { words, result }, &dark());
    model.notice = None;
    let shown = picture(&model);
    assert!(shown.contains("three"), "{shown}");
    assert_eq!(type_in(&mut model, "\t1\t"), []);
    press(&mut model, KeyCode::Left);
    let view = model.view.clone().unwrap();
    assert_eq!(update(&mut model, Event::View(view), &dark()), []);
    assert_eq!(picture(&model), shown);
}

/// Covers: UI-01, UI-06
#[test]
fn leaving_the_screen_leaves_the_team_unless_it_runs_here() {
    let mut model = busy();
    assert_eq!(type_in(&mut model, "q"), [Effect::Quit]);
    assert_eq!(ctrl_c(&mut model), [Effect::Quit]);
    model.mode = ScreenMode::Team;
    assert_eq!(type_in(&mut model, "qq"), []);
    type_in(&mut model, "X");
    assert_eq!(ctrl_c(&mut model), [Effect::StopTeam]);
    assert_eq!(ctrl_c(&mut model), [Effect::StopTeam]);
    assert!(picture(&model).contains("killing the sessions"), "{}", picture(&model));
    assert_eq!(update(&mut model, Event::End, &dark()), [Effect::Quit]);
}

/// Covers: UI-01
#[test]
fn a_result_is_shown_until_the_next_key_and_a_refusal_in_full() {
    let mut model = busy();
    type_in(&mut model, "p");
    let executed = |succeeded: bool, text: &str| Event::Executed {
        words: vec!["pause".to_owned()],
        result: CommandResult { succeeded, text: text.to_owned() },
    };
    update(&mut model, executed(true, "paused: no new work starts\n"), &dark());
    assert!(picture(&model).ends_with(" paused: no new work starts"), "{}", picture(&model));
    press(&mut model, KeyCode::Down);
    assert!(picture(&model).contains("? keys"), "{}", picture(&model));
    update(&mut model, executed(false, "liza: refused\n  hint: liza resume\n"), &dark());
    assert!(picture(&model).contains("liza: refused hint: liza resume"), "{}", picture(&model));
}

/// Covers: UI-01
#[test]
fn the_log_keeps_its_place_while_a_person_reads_it() {
    let mut model = busy();
    model.panel = Panel::Log;
    press(&mut model, KeyCode::Up);
    assert_eq!(model.log_back, 1);
    let line =
        LogLine { time: now(), who: "x".to_owned(), text: "new".to_owned(), is_alert: false, earlier: false };
    update(&mut model, Event::Log(vec![line]), &dark());
    assert_eq!(model.log_back, 2);
    press(&mut model, KeyCode::End);
    assert_eq!(model.log_back, 0);
}

/// Covers: UI-01
#[test]
fn keys_do_nothing_while_the_terminal_is_too_small_to_show_what_they_act_on() {
    let mut model = busy();
    update(&mut model, Event::Resize(39, 24), &dark());
    assert_eq!(type_in(&mut model, "pXy"), []);
    assert!(model.dialog.is_none());
    assert!(
        picture(&model).starts_with("Too small: 40 × 10 is needed. Keys are\nignored; Ctrl-C leaves."),
        "{}",
        picture(&model)
    );
    assert_eq!(type_in(&mut model, "q"), [Effect::Quit]);
    assert_eq!(ctrl_c(&mut model), [Effect::Quit]);
    update(&mut model, Event::Resize(80, 24), &dark());
    assert_eq!(commands(&type_in(&mut model, "p")), ["pause"]);
    // Neither is a question answered that is no longer visible.
    type_in(&mut model, "c");
    update(&mut model, Event::Resize(80, 9), &dark());
    assert_eq!(type_in(&mut model, "y"), []);
}

/// Covers: UI-01, UI-03
#[test]
fn the_screen_says_that_no_team_runs_and_how_to_start_it() {
    let mut seen = observations();
    let all = busy().agents().iter().map(|agent| agent.id).collect();
    assert!(!picture(&busy()).contains("NO TEAM"));
    seen.dead = all;
    let mut model = model_of(BUSY, &seen, (80, 24));
    let shown = picture(&model);
    assert!(shown.contains("NO TEAM") && shown.contains("No team is running. Start it: liza run"), "{shown}");
    // In the process of its own team, which is about to register.
    model.mode = ScreenMode::Team;
    assert!(!picture(&model).contains("liza run"));
}

/// Covers: UI-01
#[test]
fn agents_are_started_and_stopped_by_key() {
    let mut model = busy();
    assert_eq!(type_in(&mut model, "S"), []);
    assert!(picture(&model).contains("select an agent first"), "{}", picture(&model));
    assert_eq!(commands(&type_in(&mut model, "scoder\n")), ["agent coder --detach"]);
    model.panel = Panel::Agents;
    let agent = model.selected_agent().unwrap();
    assert_eq!(type_in(&mut model, "S"), []);
    assert!(picture(&model).contains("Its session ends"), "{}", picture(&model));
    assert_eq!(commands(&type_in(&mut model, "y")), [format!("deregister {agent}")]);
}

/// Covers: UI-01
#[test]
fn the_agent_that_is_stopped_is_the_one_that_was_shown_when_the_key_was_pressed() {
    let of = |generation: u64| {
        let coder = format!("  coder-1:\n    generation: {generation}\n");
        view_of(&BUSY.replace("  coder-1:\n", &coder), &observations())
    };
    let mut model = busy();
    update(&mut model, Event::View(of(12)), &dark());
    model.panel = Panel::Agents;
    let first = |agent: &AgentView| agent.id.to_string() == "coder-1";
    model.agent = model.agents().iter().position(first).unwrap();
    assert_eq!(type_in(&mut model, "S"), []);
    // Another one takes the name while the person decides.
    update(&mut model, Event::View(of(34)), &dark());
    assert_eq!(commands(&type_in(&mut model, "y")), ["deregister coder-1 --if-generation 12"]);
}

/// Covers: UI-01, UI-03
#[test]
fn a_result_is_on_the_screen_and_soon_gives_way_to_the_keys() {
    let mut model = busy();
    let words = vec!["resume".to_owned()];
    let result = CommandResult { succeeded: true, text: "work continues; to see it: liza status".to_owned() };
    update(&mut model, Event::Executed { words, result }, &dark());
    let bottom = |model: &Model| picture(model).lines().next_back().unwrap_or_default().trim().to_owned();
    assert_eq!(bottom(&model), "work continues; to see it: liza status");
    let mut view = (*model.view.clone().unwrap()).clone();
    update(&mut model, Event::View(Arc::new(view.clone())), &dark());
    view.now = view.now + Seconds(3);
    update(&mut model, Event::View(Arc::new(view)), &dark());
    assert!(bottom(&model).contains("? keys"), "{}", bottom(&model));
}

/// Covers: UI-01, UI-03
#[test]
fn the_first_goal_is_stated_without_a_warning() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    let mut view = (*model.view.clone().unwrap()).clone();
    view.needs_you[model.need].command = line("liza goal new \"...\"");
    update(&mut model, Event::View(Arc::new(view)), &dark());
    type_in(&mut model, "\n");
    let shown = picture(&model);
    assert!(shown.contains("liza goal new") && !shown.contains("cannot be undone"), "{shown}");
}
