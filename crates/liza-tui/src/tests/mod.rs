//! The screen on a test backend, and its keys, without a terminal.

#![allow(clippy::disallowed_methods, reason = "the board of a test is a file, and so is the guide")]

mod board;
mod keys;
mod pictures;
mod rows;
mod seat;

use std::sync::Arc;

use liza_core::model::{AgentStatus, Seconds, StopFileTimes, Timestamp};
use liza_host::local_time::LocalTime;
use liza_status::alarms::{Observations, SessionActivity};
use liza_status::command_line::CommandLine;
use liza_status::forecast::{Behind, Next, What};
use liza_status::view::{AgentView, HeldView, View, view};
use liza_store::Store;
use liza_testkit::boards::dated;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::ScreenMode;
use super::draw::{Painter, draw};
use super::model::{Effect, Event, LogLine, Model, Panel};
use super::theme::{Theme, ThemeName};
use super::update::{update, update_all};

const BUSY: &str = include_str!("../../../liza/tests/reading/boards/busy.yaml");
const FIRE: &str = include_str!("../../../liza/tests/reading/boards/fire.yaml");

fn now() -> Timestamp {
    "2026-01-17T14:00:00Z".parse().unwrap()
}

fn dark() -> Theme {
    Theme::new(ThemeName::Dark, None)
}

/// The view of a board; `@-90` in its text means ninety seconds ago.
fn view_of(board: &str, seen: &Observations) -> Arc<View> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".liza")).unwrap();
    std::fs::write(folder.path().join(".liza/state.yaml"), dated(board, now())).unwrap();
    let state = Store::open(folder.path()).unwrap().incremental_reader().read().unwrap();
    Arc::new(view(&state, seen, now()))
}

/// Observations of running sessions and of a dead agent.
fn observations() -> Observations {
    let activity = |action: &str, age: u64| SessionActivity {
        last_action: Some(action.to_owned()),
        last_output: now() - Seconds(age),
    };
    Observations {
        last_progress: Some(now()),
        sessions: [
            ("coder-1".parse().unwrap(), activity("shell: cargo test --workspace retry", 12)),
            ("code-reviewer-1".parse().unwrap(), activity("read: src/orders.rs", 3)),
        ]
        .into(),
        dead: ["coder-2".parse().unwrap()].into(),
        ..Observations::default()
    }
}

fn paused() -> Observations {
    let stop_files = StopFileTimes { pause: Some(now() - Seconds(60)), ..StopFileTimes::default() };
    Observations { stop_files, last_progress: Some(now()), ..Observations::default() }
}

fn model_of(board: &str, seen: &Observations, size: (u16, u16)) -> Model {
    let mut model = Model::new(ScreenMode::Observer, size);
    update(&mut model, Event::View(view_of(board, seen)), &dark());
    let line = |age: u64, who: &str, text: &str, is_alert: bool| LogLine {
        time: now() - Seconds(age),
        who: who.to_owned(),
        text: text.to_owned(),
        is_alert,
        earlier: false,
    };
    let lines = vec![
        line(300, "planner-1", "tasks_finalized retry-core, retry-users, retry-orders", false),
        line(120, "code-reviewer-1", "merged retry-core commit aaaaaaaa", false),
        line(60, "coder-1", "blocked retry-users the specification does not cover partial failures", true),
    ];
    update(&mut model, Event::Log(lines), &dark());
    model
}

fn drawn(model: &Model, theme: &Theme) -> Buffer {
    drawn_with_log(model, theme).0
}

/// The screen, and how far its log can be scrolled back.
fn drawn_with_log(model: &Model, theme: &Theme) -> (Buffer, usize) {
    let mut terminal = Terminal::new(TestBackend::new(model.size.0, model.size.1)).unwrap();
    let painter = Painter { model, theme, times: &LocalTime::utc() };
    let mut log_most = 0;
    terminal.draw(|frame| log_most = draw(frame, &painter)).unwrap();
    (terminal.backend().buffer().clone(), log_most)
}

fn picture(model: &Model) -> String {
    let buffer = drawn(model, &dark());
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width).map(|row| {
        let mut skip = 0;
        let mut text = String::new();
        for cell in row {
            // A wide character covers the cell after it.
            if skip == 0 {
                text.push_str(cell.symbol());
                skip = liza_host::columns::width(cell.symbol()).max(1);
            }
            skip -= 1;
        }
        text.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// A command as a test writes it.
fn line(text: &str) -> CommandLine {
    match text.strip_prefix("liza ") {
        Some(words) => CommandLine::liza(words.split(' ').map(|word| word.trim_matches('"'))),
        None => CommandLine::shell(text),
    }
}

/// An agent without a session and without work.
fn rest(agent: &mut AgentView) {
    (agent.status, agent.task, agent.in_session) = (AgentStatus::Waiting, None, false);
    (agent.last_session, agent.next) = (None, Next::agent(agent.id, What::Wait).behind(Behind::NewWork));
}

/// An agent whose program cannot be used.
fn hold(agent: &mut AgentView, held: HeldView) {
    rest(agent);
    agent.next = Next::agent(agent.id, What::Wait).behind(Behind::Program(held));
}

fn busy() -> Model {
    let mut model = model_of(BUSY, &observations(), (80, 24));
    model.panel = Panel::Tasks;
    model
}

fn press(model: &mut Model, code: KeyCode) -> Vec<Effect> {
    update(model, Event::Key(KeyEvent::from(code)), &dark())
}

/// Presses keys as a person types them; `\n` is Enter, `\t` is Tab.
fn type_in(model: &mut Model, keys: &str) -> Vec<Effect> {
    let code = |c: char| match c {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        c => KeyCode::Char(c),
    };
    keys.chars().flat_map(|c| press(model, code(c))).collect()
}

fn ctrl(model: &mut Model, key: char) -> Vec<Effect> {
    update(model, Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL)), &dark())
}

fn ctrl_c(model: &mut Model) -> Vec<Effect> {
    ctrl(model, 'c')
}

fn commands(effects: &[Effect]) -> Vec<String> {
    let command = |effect: &Effect| match effect {
        Effect::Execute(words) => Some(words.join(" ")),
        Effect::Load(_)
        | Effect::InTerminal(_)
        | Effect::Copy(_)
        | Effect::Redraw
        | Effect::StopTeam
        | Effect::Detach
        | Effect::Quit => None,
    };
    effects.iter().filter_map(command).collect()
}

fn select(model: &mut Model, task: &str) {
    model.task = model.tasks().iter().position(|view| view.id.as_str() == task).unwrap();
}
