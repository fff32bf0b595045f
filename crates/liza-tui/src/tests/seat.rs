//! The keys of the screen itself: searching, copying, the diff, the editor, leaving, and scrolling the log.

use crate::CommandResult;
use crate::model::page::PageSource;
use crate::update::keys::{KEYS, SCREEN_KEYS};

use super::*;

/// The last row.
fn bottom(model: &Model) -> String {
    picture(model).lines().next_back().unwrap_or_default().trim().to_owned()
}

/// A screen with that many lines in its log, which has the keys, drawn once.
fn with_log(lines: usize) -> Model {
    let mut model = busy();
    model.panel = Panel::Log;
    let line = |at: usize| LogLine {
        time: now() + Seconds(at as u64),
        who: "coder-1".to_owned(),
        text: format!("line {at}"),
        is_alert: false,
        earlier: false,
    };
    update(&mut model, Event::Log((1..=lines).map(line).collect()), &dark());
    draw_once(&mut model);
    model
}

fn draw_once(model: &mut Model) {
    model.log_most = drawn_with_log(model, &dark()).1;
}

fn log_rows(model: &Model) -> Vec<String> {
    let shown = picture(model);
    let rows = shown.lines().skip_while(|line| !line.starts_with(" LOG")).skip(1);
    let rows: Vec<String> = rows.map(str::to_owned).collect();
    rows[..rows.len() - 1].to_vec()
}

/// Covers: AX-25
#[test]
fn the_oldest_lines_of_the_log_fill_their_panel() {
    let mut model = with_log(50);
    let full = log_rows(&model).len();
    assert!(full > 4 && log_rows(&model).iter().all(|row| !row.is_empty()), "{:?}", log_rows(&model));
    press(&mut model, KeyCode::Char('g'));
    let rows = log_rows(&model);
    assert!(rows[0].contains("planner-1") && rows.iter().all(|row| !row.is_empty()), "{rows:?}");
    assert_eq!(rows.len(), full);
    // The next key moves by one line, not by as many as the first one went too far.
    draw_once(&mut model);
    press(&mut model, KeyCode::Down);
    let next = log_rows(&model);
    assert_ne!(next[0], rows[0]);
    assert_eq!(next[0], rows[1]);
}

/// Covers: AX-25
#[test]
fn in_a_small_terminal_the_team_is_stopped_and_not_left() {
    let mut model = busy();
    model.mode = ScreenMode::Team;
    update(&mut model, Event::Resize(39, 9), &dark());
    let shown = picture(&model).replace('\n', " ");
    assert!(shown.contains("Ctrl-C stops the team.") && !shown.contains("leaves"), "{shown}");
}

/// Covers: AX-25
#[test]
fn who_leaves_the_screen_of_a_team_may_detach_it_or_stop_it() {
    let mut model = busy();
    model.mode = ScreenMode::Team;
    assert!(bottom(&model).ends_with("q detach or stop"), "{}", bottom(&model));
    assert_eq!(type_in(&mut model, "q"), []);
    let shown = picture(&model);
    assert!(
        shown.contains("goes on in the background") && shown.contains("d detach   s stop the team"),
        "{shown}"
    );
    // Other keys are no answer.
    assert_eq!(type_in(&mut model, "pX\n"), []);
    press(&mut model, KeyCode::Esc);
    assert!(!picture(&model).contains("d detach   s"));
    assert_eq!(type_in(&mut model, "qd"), [Effect::Detach, Effect::Quit]);
    let mut model = busy();
    model.mode = ScreenMode::Team;
    assert_eq!(type_in(&mut model, "qs"), [Effect::StopTeam]);
    assert!(bottom(&model).starts_with("stopping the team"), "{}", bottom(&model));
}

/// Covers: AX-25
#[test]
fn a_search_selects_the_next_place_in_the_panel() {
    let mut model = busy();
    let selected = |model: &Model| model.subject().unwrap().id.to_string();
    type_in(&mut model, "/ORDERS");
    assert_eq!(bottom(&model), "Search: ORDERS");
    press(&mut model, KeyCode::Enter);
    assert_eq!(selected(&model), "retry-orders");
    type_in(&mut model, "/retry-\n");
    let first = selected(&model);
    type_in(&mut model, "/\n");
    assert_ne!(selected(&model), first, "without a text: the next one");
    type_in(&mut model, "/nowhere\n");
    assert_eq!(bottom(&model), "not found: nowhere");
    // Typed text is no action.
    type_in(&mut model, "/Xp");
    assert!(model.dialog.is_none() && model.running.is_empty());
    update(&mut model, Event::Paste("\ry".to_owned()), &dark());
    assert_eq!(bottom(&model), "Search: Xp y");
    press(&mut model, KeyCode::Esc);
    model.panel = Panel::Agents;
    type_in(&mut model, "/code-reviewer\n");
    assert_eq!(model.selected_agent().unwrap().to_string(), "code-reviewer-1");
    let mut fire = model_of(FIRE, &paused(), (80, 24));
    type_in(&mut fire, "/disc-1\n");
    assert!(fire.needs()[fire.need].command.contains("disc-1"));
}

/// Covers: AX-25
#[test]
fn a_search_in_the_log_goes_up_and_does_not_stay_at_the_oldest_lines() {
    let mut model = with_log(50);
    type_in(&mut model, "/line 2\n");
    let rows = log_rows(&model);
    assert!(rows.last().unwrap().contains("line 29"), "{rows:?}");
    for _ in 0..9 {
        type_in(&mut model, "/\n");
        draw_once(&mut model);
    }
    assert!(log_rows(&model).last().unwrap().contains("line 20"), "{:?}", log_rows(&model));
    type_in(&mut model, "/\n");
    let rows = log_rows(&model);
    assert!(rows.iter().any(|row| row.ends_with("line 2")), "{rows:?}");
    assert!(rows.iter().all(|row| !row.is_empty()), "the panel is full: {rows:?}");
    draw_once(&mut model);
    let mut scrolled = with_log(50);
    scrolled.log_back = model.log_back;
    press(&mut scrolled, KeyCode::Down);
    assert_eq!(log_rows(&scrolled)[0], rows[1], "the next key moves by one line");
    type_in(&mut model, "/\n");
    assert!(log_rows(&model).last().unwrap().contains("line 29"), "it begins again");
}

/// Covers: AX-25
#[test]
fn a_search_in_a_page_shows_the_line() {
    let mut model = busy();
    select(&mut model, "retry-users");
    let opened = type_in(&mut model, "d");
    let [Effect::Load(source)] = opened.as_slice() else { panic!("{opened:?}") };
    let text: Vec<String> = (0..200).map(|at| format!("number {at}")).collect();
    let result = CommandResult { succeeded: true, text: text.join("\n") };
    update(&mut model, Event::Loaded(source.clone(), result), &dark());
    type_in(&mut model, "/number 9\n");
    assert!(picture(&model).contains("\nnumber 9\n"), "{}", picture(&model));
    type_in(&mut model, "/\n");
    assert_eq!(picture(&model).lines().nth(3), Some("number 90"), "{}", picture(&model));
    type_in(&mut model, "/number 199\n");
    assert!(picture(&model).contains("\nnumber 199\n"), "{}", picture(&model));
}

/// Covers: AX-25
#[test]
fn one_key_opens_the_diff_and_one_the_editor() {
    let mut model = busy();
    select(&mut model, "retry-users");
    let diff = PageSource::Command(vec!["diff".to_owned(), "retry-users".to_owned()]);
    assert_eq!(type_in(&mut model, "d"), [Effect::Load(diff)]);
    assert!(picture(&model).contains("retry-users"));
    let edit = Effect::InTerminal(vec!["edit".to_owned(), "retry-users".to_owned()]);
    assert_eq!(type_in(&mut model, "e"), [edit]);
    // The Ctrl-C of the editor would stop the team of this process.
    model.mode = ScreenMode::Team;
    assert_eq!(type_in(&mut model, "e"), []);
    assert_eq!(bottom(&model), "in another terminal: liza edit retry-users");
    press(&mut model, KeyCode::Esc);
    model.panel = Panel::Log;
    for key in ["d", "e"] {
        assert_eq!(type_in(&mut model, key), []);
        assert_eq!(bottom(&model), "select a task first");
    }
}

/// Covers: AX-25
#[test]
fn the_command_of_what_is_selected_is_copied_and_named() {
    let copied = |model: &mut Model, command: &str| {
        assert_eq!(type_in(model, "y"), [Effect::Copy(command.to_owned())]);
        assert_eq!(bottom(model), format!("copied: {command}"));
    };
    let mut model = busy();
    select(&mut model, "retry-users");
    copied(&mut model, "liza show retry-users");
    type_in(&mut model, "d");
    copied(&mut model, "liza diff retry-users");
    type_in(&mut model, "?");
    assert_eq!(type_in(&mut model, "y"), []);
    assert_eq!(bottom(&model), "there is no command to copy");
    let mut model = model_of(FIRE, &paused(), (80, 24));
    copied(&mut model, "liza resume");
    model.panel = Panel::Agents;
    let agent = model.selected_agent().unwrap();
    copied(&mut model, &format!("liza tail {agent}"));
}

/// Covers: AX-25
#[test]
fn ctrl_l_paints_the_screen_again() {
    let mut model = busy();
    assert_eq!(ctrl(&mut model, 'l'), [Effect::Redraw]);
    type_in(&mut model, "N");
    assert_eq!(ctrl(&mut model, 'l'), [Effect::Redraw]);
    assert!(model.dialog.is_some());
}

/// Covers: AX-25
#[test]
fn the_guide_lists_every_key() {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/screen.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, table) = guide.split_once("\n## Keys\n").unwrap();
    let rows: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    let listed: Vec<&str> = rows.iter().flat_map(|row| row.split([' ', ','])).collect();
    let of_screen = SCREEN_KEYS.iter().flat_map(|(keys, _)| keys.split(' ').map(str::to_owned));
    let known: Vec<String> = KEYS.iter().map(|(key, ..)| key.to_string()).chain(of_screen).collect();
    let missing: Vec<&String> = known.iter().filter(|key| !listed.contains(&key.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
