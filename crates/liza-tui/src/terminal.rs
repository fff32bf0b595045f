//! The terminal as the screen uses it, and its restoration: at the end, after an error, and before the message of a panic.

use std::io::{self, Stdout, Write as _};
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

type PanicHook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send + 'static>;

/// What was changed in the terminal, so that it is changed back exactly once.
struct ChangedTerminal {
    active: AtomicBool,
    owner: ThreadId,
    /// Messages of panics in other threads, which would be painted over.
    panics: Mutex<Vec<String>>,
}

impl ChangedTerminal {
    /// Undoes everything, as far as possible.
    fn restore(&self) {
        if !self.active.swap(false, Ordering::SeqCst) {
            return;
        }
        let _ = execute!(io::stdout(), DisableBracketedPaste, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
        let panics = std::mem::take(&mut *self.panics.lock().unwrap_or_else(PoisonError::into_inner));
        for text in panics {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

/// The terminal while the screen is shown; restored when dropped.
pub(crate) struct ScreenTerminal {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
    changed: Arc<ChangedTerminal>,
    previous_hook: Arc<Mutex<Option<PanicHook>>>,
}

impl ScreenTerminal {
    pub(crate) fn enter() -> io::Result<Self> {
        let owner = thread::current().id();
        let changed =
            Arc::new(ChangedTerminal { active: AtomicBool::new(true), owner, panics: Mutex::default() });
        let previous_hook = set_panic_hook(&changed);
        let entered = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide))
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal, changed, previous_hook }),
            Err(error) => {
                changed.restore();
                reset_panic_hook(&previous_hook);
                Err(error)
            }
        }
    }
}

impl Drop for ScreenTerminal {
    fn drop(&mut self) {
        self.changed.restore();
        // A hook cannot be changed by a thread that panics.
        if !thread::panicking() {
            reset_panic_hook(&self.previous_hook);
        }
    }
}

/// Restores the terminal before a panic of the screen is printed; keeps those of other threads for later.
fn set_panic_hook(changed: &Arc<ChangedTerminal>) -> Arc<Mutex<Option<PanicHook>>> {
    let previous = Arc::new(Mutex::new(Some(panic::take_hook())));
    let (changed, kept) = (Arc::clone(changed), Arc::clone(&previous));
    panic::set_hook(Box::new(move |info| {
        let is_shown = changed.active.load(Ordering::SeqCst);
        if is_shown && thread::current().id() != changed.owner {
            changed.panics.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
            return;
        }
        changed.restore();
        if let Some(hook) = kept.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            hook(info);
        }
    }));
    previous
}

fn reset_panic_hook(previous: &Mutex<Option<PanicHook>>) {
    if let Some(hook) = previous.lock().unwrap_or_else(PoisonError::into_inner).take() {
        panic::set_hook(hook);
    }
}
