//! A program that runs beside the test, in a terminal or not, and what it has said so far.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::TestProject;

/// The longest that anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// It ends with the test, whatever happens.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
}

impl Running {
    /// Starts `liza` with these words.
    pub(crate) fn liza(project: &TestProject, words: &[&str]) -> Self {
        let mut program = project.program();
        program.args(words);
        Self::of(project, program)
    }

    /// The same in a terminal of its own.
    pub(crate) fn liza_in_terminal(project: &TestProject, words: &[&str]) -> Self {
        let mut program = project.command("script");
        let line = format!("{} {}", env!("CARGO_BIN_EXE_liza"), words.join(" "));
        program.env("TERM", "xterm").env("COLUMNS", "100");
        program.args(["-qefc", &line, "/dev/null"]);
        Self::of(project, program)
    }

    fn of(project: &TestProject, mut program: Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let out = project.home().join(format!("said-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let file = fs::File::create(&out).unwrap();
        program.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: program.spawn().unwrap(), out }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    #[track_caller]
    pub(crate) fn until_said(&self, text: &str) {
        let said = until(|| self.said().contains(text).then_some(()));
        assert!(said.is_some(), "never said {text:?}:\n{}", self.said());
    }

    /// Waits for its end and gives the exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        let status = until(|| self.child.try_wait().unwrap());
        let status = status.unwrap_or_else(|| panic!("it goes on:\n{}", self.said()));
        status.code().unwrap_or(-1)
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is something, for a long time.
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + LONG;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
