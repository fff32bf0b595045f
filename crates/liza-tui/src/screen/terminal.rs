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

/// The changes to the terminal, which are undone exactly once.
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
        let entered = take_over().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal, changed, previous_hook }),
            Err(error) => {
                changed.restore();
                reset_panic_hook(&previous_hook);
                Err(error)
            }
        }
    }

    /// Puts a text into the clipboard, if the terminal allows it.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        let output = self.terminal.backend_mut();
        output.write_all(copying(text).as_bytes())?;
        io::Write::flush(output)
    }

    /// Gives the terminal to something else for as long as that runs.
    pub(crate) fn lend<T>(&mut self, run: impl FnOnce() -> T) -> io::Result<T> {
        self.changed.restore();
        let result = run();
        take_over()?;
        self.changed.active.store(true, Ordering::SeqCst);
        self.terminal.clear()?;
        Ok(result)
    }
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)
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

/// The control sequence OSC 52, which puts a text into the clipboard of the person's terminal, also over ssh.
fn copying(text: &str) -> String {
    format!("\u{1b}]52;c;{}\u{7}", base64(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        [18, 12, 6, 0].map(|shift| (bits >> shift) as usize % LETTERS.len())
    };
    let letters = bytes.chunks(3).flat_map(|three| {
        let places = group(three).into_iter().enumerate();
        places.map(|(at, place)| if at <= three.len() { char::from(LETTERS[place]) } else { '=' })
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AX-25
    #[test]
    fn a_text_is_copied_in_base64() {
        for (text, sent) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("é ÿ", "w6kgw78=")]
        {
            assert_eq!(copying(text), format!("\u{1b}]52;c;{sent}\u{7}"));
        }
    }
}
