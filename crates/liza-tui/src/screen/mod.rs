//! The screen at work: takes events from the terminal, the project and the team, and does what `update` asks for.

mod action_queue;
mod terminal;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event as TerminalEvent};
use ratatui::crossterm::terminal::size;
use rustix::stdio::stdin;
use rustix::termios::{QueueSelector, tcflush};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::raise;

use crate::draw::{Painter, draw};
use crate::model::page::PageSource;
use crate::model::{Effect, Event, LogLine, Model};
use crate::screen::action_queue::ActionQueue;
use crate::screen::terminal::ScreenTerminal;
use crate::update::keys::keys_page;
use crate::update::update_all;
use crate::{CommandResult, Feed, ScreenMode, ScreenSetup};

/// The interval at which the thread that reads keys checks for the end of the screen.
const INPUT_POLL: Duration = Duration::from_millis(100);

/// The longest time that the end of the screen waits for running actions.
const LAST_ACTIONS: Duration = Duration::from_secs(10);

/// Shows the screen until the person leaves it, or a signal ends it.
pub fn show(setup: &ScreenSetup) -> io::Result<()> {
    let (sender, events) = channel();
    let lent = Arc::new(AtomicBool::new(false));
    let signals = end_on_signals(sender.clone(), Arc::clone(&lent))?;
    let shown = serve(setup, &sender, &events, &lent);
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
        let thread = thread::spawn(move || serve(&setup, &own, &events, &AtomicBool::new(false)));
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

/// Ends the screen by a signal. While the terminal is lent, Ctrl-C is for the program that has it.
fn end_on_signals(events: Sender<Event>, lent: Arc<AtomicBool>) -> io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    thread::spawn(move || {
        let mut ending =
            signals.forever().filter(|signal| *signal != SIGINT || !lent.load(Ordering::Relaxed));
        if ending.next().is_some() {
            let _ = events.send(Event::End);
        }
    });
    Ok(handle)
}

fn serve(
    setup: &ScreenSetup,
    sender: &Sender<Event>,
    events: &Receiver<Event>,
    lent: &AtomicBool,
) -> io::Result<()> {
    let screen = ScreenTerminal::enter()?;
    let ended = Arc::new(AtomicBool::new(false));
    setup.source.start(setup.mode, Feed(sender.clone()), Arc::clone(&ended));
    let actions = ActionQueue::start(&setup.commands, sender.clone());
    let keys = KeyReader::start(sender.clone());
    let mut live = Live { setup, sender, lent, screen, keys, actions, quits: false, detaches: false };
    let shown = live.run(events);
    ended.store(true, Ordering::Relaxed);
    let Live { actions, keys, screen, detaches, .. } = live;
    actions.finish(LAST_ACTIONS);
    keys.stop();
    drop(screen);
    if detaches && let Err(error) = setup.commands.detach() {
        let _ = writeln!(io::stderr(), "the team cannot be detached, and runs in this terminal: {error}");
    }
    shown
}

struct Live<'s> {
    setup: &'s ScreenSetup,
    sender: &'s Sender<Event>,
    /// True while another program has the terminal.
    lent: &'s AtomicBool,
    screen: ScreenTerminal,
    keys: KeyReader,
    actions: ActionQueue,
    quits: bool,
    detaches: bool,
}

impl Live<'_> {
    fn run(&mut self, events: &Receiver<Event>) -> io::Result<()> {
        let mut model = Model { label: self.setup.label, ..Model::new(self.setup.mode, size()?) };
        loop {
            let painter = Painter { model: &model, theme: &self.setup.theme, times: &self.setup.times };
            let mut log_most = 0;
            self.screen.terminal.draw(|frame| log_most = draw(frame, &painter))?;
            model.log_most = log_most;
            // Drawn again at the end: it shows what the team waits for.
            if self.quits {
                return Ok(());
            }
            let Ok(first) = events.recv() else { return Ok(()) };
            let pending = std::iter::once(first).chain(std::iter::from_fn(|| events.try_recv().ok()));
            for effect in update_all(&mut model, pending, &self.setup.theme) {
                self.perform(model.size.0, effect)?;
            }
        }
    }

    /// Does what `update` asked for; only what needs the terminal makes the screen wait.
    fn perform(&mut self, columns: u16, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Execute(words) => self.actions.add(words, columns),
            Effect::Load(source) => load(self.setup, self.sender.clone(), columns, source),
            Effect::InTerminal(words) => self.in_terminal(&words)?,
            Effect::Copy(text) => self.screen.copy(&text)?,
            Effect::Redraw => self.screen.terminal.clear()?,
            Effect::StopTeam if self.setup.mode == ScreenMode::Team => {
                // The team handles it like Ctrl-C in a terminal without a screen.
                let _ = raise(SIGINT);
            }
            Effect::StopTeam => {}
            Effect::Detach => self.detaches = true,
            Effect::Quit => self.quits = true,
        }
        Ok(())
    }

    /// Runs a command that needs the terminal; its error stays until the person has read it.
    fn in_terminal(&mut self, words: &[String]) -> io::Result<()> {
        self.keys.stop();
        self.lent.store(true, Ordering::Relaxed);
        let commands = &self.setup.commands;
        let ran = self.screen.lend(|| {
            let ran = commands.in_terminal(words);
            if !matches!(ran, Ok(true)) {
                let _ = write!(io::stderr(), "\nEnter goes back to the screen. ");
                let _ = io::stdin().read_line(&mut String::new());
            }
            ran
        })?;
        self.lent.store(false, Ordering::Relaxed);
        self.keys = KeyReader::start(self.sender.clone());
        let (columns, rows) = size()?;
        let result = match ran {
            Ok(_) => CommandResult { succeeded: true, text: String::new() },
            Err(error) => CommandResult { succeeded: false, text: error.to_string() },
        };
        let _ = self.sender.send(Event::Resize(columns, rows));
        let _ = self.sender.send(Event::Executed { words: words.to_vec(), result });
        Ok(())
    }
}

/// The thread that turns what the person types into events.
struct KeyReader {
    thread: JoinHandle<()>,
    ended: Arc<AtomicBool>,
}

impl KeyReader {
    fn start(events: Sender<Event>) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        Self { thread: read_keys(events, Arc::clone(&ended)), ended }
    }

    /// Ends the thread and drops keys that were typed for this screen: the next reader would take them. In a
    /// closed terminal the thread never returns, and there is no next reader.
    fn stop(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let began = Instant::now();
        while !self.thread.is_finished() {
            if began.elapsed() > READER_ENDS {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        // Not by reading: in a terminal that was closed, a read never ends.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }
}

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

/// The longest time in which the reader of the keys notices the end of the screen.
const READER_ENDS: Duration = Duration::from_millis(500);

/// Loads the content of a page, without making the screen wait.
fn load(setup: &ScreenSetup, sender: Sender<Event>, columns: u16, source: PageSource) {
    let (commands, source_of_text) = (Arc::clone(&setup.commands), Arc::clone(&setup.source));
    thread::spawn(move || {
        let result = match &source {
            PageSource::Command(words) => commands.execute(words, columns),
            PageSource::Prompt(agent, task) => {
                let text = source_of_text.newest_prompt(*agent, task.as_ref());
                CommandResult { succeeded: true, text: text.unwrap_or_else(|| "no prompt yet".to_owned()) }
            }
            PageSource::Keys => CommandResult { succeeded: true, text: keys_page(usize::from(columns)) },
        };
        let _ = sender.send(Event::Loaded(source, result));
    });
}
