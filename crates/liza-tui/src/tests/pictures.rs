//! The screen at several sizes and in every theme.

use liza_core::text::is_unprintable;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::{Color, Modifier};

use crate::CommandResult;
use crate::model::{Effect, Panel};

use super::*;

/// Covers: UI-01, UI-03
#[test]
fn a_busy_team_at_every_size() {
    for size in [(80, 24), (120, 40), (200, 60)] {
        let shown = picture(&model_of(BUSY, &observations(), size));
        insta::assert_snapshot!(format!("busy_{}x{}", size.0, size.1), shown);
    }
}

/// Covers: UI-01, UI-03
#[test]
fn everything_that_needs_the_human_at_80_by_24() {
    insta::assert_snapshot!(picture(&model_of(FIRE, &paused(), (80, 24))));
}

/// Covers: UI-01
#[test]
fn sizes_without_room_do_not_fail() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    for dialog in [false, true] {
        for (columns, rows) in (1..60).step_by(3).flat_map(|columns| (1..16).map(move |rows| (columns, rows)))
        {
            update(&mut model, Event::Resize(columns, rows), &dark());
            picture(&model);
        }
        model.need = 3;
        if !dialog {
            update(&mut model, Event::Key(KeyEvent::from(KeyCode::Enter)), &dark());
        }
    }
    let small = picture(&model_of(BUSY, &observations(), (30, 3)));
    assert_eq!(small, "Too small: 40 × 10 is needed.\nKeys are ignored; Ctrl-C\nleaves.");
}

/// Covers: UI-01
#[test]
fn a_task_with_its_tabs() {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    model.panel = Panel::Tasks;
    let effects = update(&mut model, Event::Key(KeyEvent::from(KeyCode::Enter)), &dark());
    let [Effect::Load(source)] = effects.as_slice() else { panic!("{effects:?}") };
    let text = (1..=40).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let loaded = Event::Loaded(source.clone(), CommandResult { succeeded: true, text });
    update(&mut model, loaded, &dark());
    update(&mut model, Event::Key(KeyEvent::from(KeyCode::PageDown)), &dark());
    insta::assert_snapshot!(picture(&model));
}

/// Covers: UI-01
#[test]
fn a_dialog_shows_the_question_and_the_command() {
    let mut model = model_of(FIRE, &paused(), (80, 24));
    let blocked = model.needs().iter().position(|need| need.kind.to_string() == "BLOCKED").unwrap();
    model.need = blocked;
    update(&mut model, Event::Key(KeyEvent::from(KeyCode::Enter)), &dark());
    update(&mut model, Event::Paste("Retry everything, it's fine".to_owned()), &dark());
    insta::assert_snapshot!(picture(&model));
}

/// Covers: UI-01
#[test]
fn without_colour_there_is_none_and_on_white_nothing_pale() {
    let model = model_of(FIRE, &paused(), (100, 40));
    let colors = |theme: &Theme| -> Vec<Color> {
        drawn(&model, theme).content.iter().flat_map(|cell| [cell.fg, cell.bg]).collect()
    };
    let plain = Theme::new(ThemeName::Plain, None);
    assert!(colors(&plain).iter().all(|color| *color == Color::Reset));
    let light = Theme::new(ThemeName::Auto, Some("0;15"));
    let pale = [Color::Yellow, Color::Cyan, Color::White, Color::Gray, Color::LightRed];
    assert!(colors(&light).contains(&Color::Magenta));
    assert!(!colors(&light).iter().any(|color| pale.contains(color)));
    let dark = Theme::new(ThemeName::Auto, Some("15;0"));
    assert!(colors(&dark).contains(&Color::LightRed));
    // The selection can be seen without colour.
    let reversed = |cell: &ratatui::buffer::Cell| cell.modifier.contains(Modifier::REVERSED);
    assert!(drawn(&model, &plain).content.iter().any(reversed));
}

/// Covers: IS-09, UI-01
#[test]
fn nothing_that_agents_write_reaches_the_terminal_as_control() {
    let evil = "evil\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}5m\u{202e}txt\u{2066} \u{8}end";
    let quoted = r#""evil\e]0;owned\a\e[2J\x9b5m\u202etxt\u2066 \bend""#;
    let board = FIRE
        .replace("description: Two coders failed at this", &format!("description: {quoted}"))
        .replace("blocked_questions: [Which one?]", &format!("blocked_questions: [{quoted}]"))
        .replace("description: The password is in the repository", &format!("description: {quoted}"));
    let mut seen = observations();
    for activity in seen.sessions.values_mut() {
        activity.last_action = Some(evil.to_owned());
    }
    let mut model = model_of(&board, &seen, (120, 40));
    let line =
        LogLine { time: now(), who: evil.to_owned(), text: evil.to_owned(), is_alert: false, earlier: false };
    update(&mut model, Event::Log(vec![line]), &dark());
    for at in 0..model.needs().len() {
        model.need = at;
        let buffer = drawn(&model, &dark());
        assert!(!buffer.content.iter().any(|cell| cell.symbol().contains(is_unprintable)));
    }
    assert!(picture(&model).contains("txt"), "{}", picture(&model));
}
