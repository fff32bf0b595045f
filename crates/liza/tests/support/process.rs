//! A program that runs during the test, and its output so far.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::TestProject;

/// The longest that anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// A running program; always killed at the end of the test.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
}

impl Running {
    /// Starts `liza` with these arguments.
    pub(crate) fn liza(project: &TestProject, arguments: &[&str]) -> Self {
        let mut program = project.program();
        program.args(arguments);
        Self::start(project, program)
    }

    /// The same in its own terminal.
    pub(crate) fn liza_in_terminal(project: &TestProject, arguments: &[&str]) -> Self {
        let mut program = project.command("script");
        let line = format!("{} {}", env!("CARGO_BIN_EXE_liza"), arguments.join(" "));
        program.env("TERM", "xterm").env("COLUMNS", "100");
        program.args(["-qefc", &line, "/dev/null"]);
        Self::start(project, program)
    }

    /// Starts any program without input; its output goes to a file.
    pub(crate) fn start(project: &TestProject, mut program: Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let out = project.home().join(format!("output-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let file = fs::File::create(&out).unwrap();
        program.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { child: program.spawn().unwrap(), out }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    /// Waits until it has printed that text.
    #[track_caller]
    pub(crate) fn wait_for_output(&self, text: &str) {
        let printed = wait_up_to(LONG, || self.output().contains(text).then_some(()));
        assert!(printed.is_some(), "never printed {text:?}:\n{}", self.output());
    }

    /// Waits until it ends; returns the exit code.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> i32 {
        let status = wait_up_to(LONG, || self.child.try_wait().unwrap());
        let status = status.unwrap_or_else(|| panic!("it does not end:\n{}", self.output()));
        status.code().unwrap_or(-1)
    }

    /// Its exit code, if it has ended.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(send_signal(name, &self.id().to_string()), "{name}");
    }

    /// Asks it to end and checks that it exits with 0.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        self.signal("TERM");
        assert_eq!(self.wait(), 0, "{}", self.output());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal with the shell's own `kill`, which every machine has; false if there is no such process.
pub(crate) fn send_signal(name: &str, process: &str) -> bool {
    Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status().unwrap().success()
}

/// A command that no other run of the tests on this machine starts.
pub(crate) fn own_sleep(seconds: u32) -> String {
    format!("sleep {seconds}.{:07}", std::process::id())
}

/// Whether a process with this command line exists.
pub(crate) fn is_running(line: &str) -> bool {
    process_of(line).is_some()
}

/// Ends the process with this command line.
pub(crate) fn end(line: &str) {
    assert!(send_signal("TERM", &process_of(line).unwrap()));
}

fn process_of(line: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut processes = processes.filter_map(|process| {
        let found = fs::read(process.path().join("cmdline")).ok()?;
        let found = String::from_utf8_lossy(&found).trim_end_matches('\0').replace('\0', " ");
        (found == line).then(|| process.file_name().to_string_lossy().into_owned())
    });
    processes.next()
}

/// Waits until there is a result; fails after a long time.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, check: impl FnMut() -> Option<T>) -> T {
    wait_up_to(LONG, check).unwrap_or_else(|| panic!("not within {LONG:?}: {what}"))
}

/// Waits until there is a result, at most that long.
pub(crate) fn wait_up_to<T>(limit: Duration, mut check: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = check();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
