//! The screen at work: takes events from the terminal, the project and the team, and does what `update` asks for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use liza_host::columns::wrap;
use ratatui::crossterm::event::{self, Event as TerminalEvent};
use ratatui::crossterm::terminal::size;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::raise;

use crate::action_queue::ActionQueue;
use crate::draw::{Painter, draw};
use crate::keys::KEYS;
use crate::model::{Effect, Event, LogLine, Model};
use crate::page::PageSource;
use crate::terminal::ScreenTerminal;
use crate::update::update_all;
use crate::{CommandResult, Feed, ScreenMode, ScreenSetup};

/// How often the thread that reads keys checks whether the screen has ended.
const INPUT_POLL: Duration = Duration::from_millis(100);

/// How long the end of the screen waits for actions that still run.
const LAST_ACTIONS: Duration = Duration::from_secs(10);

/// Shows the screen until the person leaves it, or a signal ends it.
pub fn show(setup: &ScreenSetup) -> io::Result<()> {
    let (sender, events) = channel();
    let signals = end_on_signals(sender.clone())?;
    let shown = serve(setup, &sender, &events);
    signals.close();
    shown
}

/// The screen of a team that this process runs; the terminal is restored when it is dropped.
pub struct LiveScreen {
    events: Sender<Event>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl LiveScreen {
    pub fn start(setup: ScreenSetup) -> Self {
        let (sender, events) = channel();
        let own = sender.clone();
        let thread = thread::spawn(move || serve(&setup, &own, &events));
        Self { events: sender, thread: Some(thread) }
    }

    /// Adds a line to the log; false if the screen has ended, so that the line has to be shown otherwise.
    pub fn report(&self, line: LogLine) -> bool {
        self.events.send(Event::Log(vec![line])).is_ok()
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        let _ = self.events.send(Event::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn end_on_signals(events: Sender<Event>) -> io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    thread::spawn(move || {
        for _ in signals.forever() {
            if events.send(Event::End).is_err() {
                return;
            }
        }
    });
    Ok(handle)
}

/// Draws and handles events until the screen ends.
fn serve(setup: &ScreenSetup, sender: &Sender<Event>, events: &Receiver<Event>) -> io::Result<()> {
    let mut screen = ScreenTerminal::enter()?;
    let ended = Arc::new(AtomicBool::new(false));
    let keys = read_keys(sender.clone(), Arc::clone(&ended));
    setup.source.start(setup.mode, Feed(sender.clone()), Arc::clone(&ended));
    let mut model = Model { label: setup.label, ..Model::new(setup.mode, size()?) };
    let actions = ActionQueue::start(&setup.commands, sender.clone());
    let mut quits = false;
    let shown = loop {
        let painter = Painter { model: &model, theme: &setup.theme, times: &setup.times };
        let drawn = screen.terminal.draw(|frame| draw(frame, &painter));
        // Drawn again at the end: it shows what the team waits for.
        match drawn {
            Ok(_) if quits => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
        let Ok(first) = events.recv() else { break Ok(()) };
        let pending = std::iter::once(first).chain(std::iter::from_fn(|| events.try_recv().ok()));
        for effect in update_all(&mut model, pending, &setup.theme) {
            quits |= effect == Effect::Quit;
            perform(setup, sender, &actions, model.size.0, effect);
        }
    };
    ended.store(true, Ordering::Relaxed);
    actions.finish(LAST_ACTIONS);
    drop_keys(&keys);
    shown
}

/// Turns what the person types into events.
fn read_keys(events: Sender<Event>, ended: Arc<AtomicBool>) -> JoinHandle<()> {
    thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            let event = match event::poll(INPUT_POLL).and_then(|ready| ready.then(event::read).transpose()) {
                Ok(Some(TerminalEvent::Key(key))) => Event::Key(key),
                Ok(Some(TerminalEvent::Paste(text))) => Event::Paste(text),
                Ok(Some(TerminalEvent::Resize(columns, rows))) => Event::Resize(columns, rows),
                Ok(
                    Some(TerminalEvent::FocusGained | TerminalEvent::FocusLost | TerminalEvent::Mouse(_))
                    | None,
                ) => {
                    continue;
                }
                // The terminal is gone.
                Err(_) => Event::End,
            };
            let is_end = matches!(event, Event::End);
            if events.send(event).is_err() || is_end {
                return;
            }
        }
    })
}

/// How long the reader of the keys may take to notice that the screen has ended.
const READER_ENDS: Duration = Duration::from_millis(500);

/// Drops the keys that were typed for a screen that has ended: the next reader of the terminal would take them.
/// In a terminal that was closed the reader never returns, and there is no next one.
fn drop_keys(reader: &JoinHandle<()>) {
    let began = Instant::now();
    while !reader.is_finished() {
        if began.elapsed() > READER_ENDS {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    while event::poll(Duration::ZERO).is_ok_and(|is_typed| is_typed) && event::read().is_ok() {}
}

/// Does what `update` asked for, without making the screen wait.
fn perform(setup: &ScreenSetup, sender: &Sender<Event>, actions: &ActionQueue, columns: u16, effect: Effect) {
    match effect {
        Effect::Execute(words) => actions.add(words, columns),
        Effect::Load(source) => {
            let (commands, sender) = (Arc::clone(&setup.commands), sender.clone());
            let source_of_text = Arc::clone(&setup.source);
            thread::spawn(move || {
                let result = match &source {
                    PageSource::Command(words) => commands.execute(words, columns),
                    PageSource::Prompt(agent, task) => {
                        let text = source_of_text.newest_prompt(*agent, task.as_ref());
                        let text = text.unwrap_or_else(|| "no prompt yet".to_owned());
                        CommandResult { succeeded: true, text }
                    }
                    PageSource::Keys => {
                        CommandResult { succeeded: true, text: keys_page(usize::from(columns)) }
                    }
                };
                let _ = sender.send(Event::Loaded(source, result));
            });
        }
        Effect::StopTeam if setup.mode == ScreenMode::Team => {
            // The team handles it like Ctrl-C in a terminal without a screen.
            let _ = raise(SIGINT);
        }
        Effect::StopTeam | Effect::Quit => {}
    }
}

/// Where the texts of the keys begin.
const KEY_COLUMNS: usize = 14;

/// What the keys do, folded at words.
pub(crate) fn keys_page(columns: usize) -> String {
    let moving = [
        ("↑ ↓ j k", "select, or scroll"),
        ("PgUp PgDn", "a page up or down"),
        ("g G", "first, last"),
        ("Tab ← →", "next panel, or next tab of a page"),
        ("1 2 3 4", "tab of a page"),
        ("Enter", "open a task or an agent; answer what needs you"),
        ("Esc q", "back; q on the board leaves the screen, and the team goes on"),
        ("Ctrl-C", "leave the screen; in liza run: stop the team, a second time kills its sessions"),
        ("?", "this page"),
    ];
    let line = |key: &str, what: &str| {
        let folded = wrap(what, columns.saturating_sub(KEY_COLUMNS).max(1));
        format!("  {key:<12}{}", folded.join(&format!("\n{}", " ".repeat(KEY_COLUMNS))))
    };
    let at_once =
        "p, r and an answer that only resumes or reads run at once; the others show their command first.";
    let mut lines = wrap(at_once, columns);
    lines.extend(["A command that runs is shown at the bottom.".to_owned(), String::new()]);
    lines.extend(KEYS.iter().map(|(key, _, what)| line(&key.to_string(), what)));
    lines.push(String::new());
    lines.extend(moving.iter().map(|(key, what)| line(key, what)));
    lines.join("\n")
}
