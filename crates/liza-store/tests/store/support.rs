//! A project with a blackboard in a folder of its own, and common requests. Also used by the benchmark.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use liza_core::model::{
    Actor, Alignment, Config, Loaded, LogEntry, Revision, Seconds, State, StopFile, StopFiles, Timestamp,
};
use liza_core::protocol::{AddTask, Command, Heartbeat, NewTask, Register, Request, WriteNote};
use liza_store::{Call, Host, Store, StoreError, Written};
use liza_testkit::boards;
pub(crate) use liza_testkit::boards::{agent, task};

/// The example of the schema.
pub(crate) const EXAMPLE: &str = include_str!("../fixtures/schema-example.yaml");

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn now() -> Timestamp {
    time("2025-01-17T14:00:00Z")
}

/// A blackboard as `init` creates it, with two settings that tests change.
pub(crate) fn fresh_state() -> State {
    let mut state = boards::empty("Make it so: all of it", now());
    state.board.revision = Revision(1);
    *boards::config(&mut state) =
        Config { max_coder_iterations: 11, lock_timeout: Seconds(11), ..Config::default() };
    state.board.direct_edits = Loaded::Ready(Vec::new());
    state.journal.alignment_history.push(Alignment {
        timestamp: now(),
        event: "initialization".to_owned(),
        summary: "One.\nTwo.\n".to_owned(),
    });
    state
}

pub(crate) fn first_entry() -> LogEntry {
    LogEntry {
        timestamp: now(),
        agent: "human".to_owned(),
        action: "goal_created".to_owned(),
        task: None,
        detail: "Make it so".to_owned(),
    }
}

pub(crate) struct Project {
    pub(crate) root: PathBuf,
}

impl Project {
    /// A folder without a blackboard.
    pub(crate) fn empty(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")), &unique)
    }

    /// A folder without a blackboard, in another folder.
    pub(crate) fn below(folder: &Path, name: &str) -> Self {
        let root = folder.join(name);
        std::fs::create_dir_all(root.join(".liza")).unwrap();
        std::fs::create_dir_all(root.join("specs")).unwrap();
        std::fs::write(root.join("specs/x.md"), "# x\n").unwrap();
        Self { root }
    }

    /// A fresh blackboard.
    pub(crate) fn new(name: &str) -> Self {
        let project = Self::empty(name);
        Store::create(&project.root, &fresh_state(), &first_entry()).unwrap();
        project
    }

    /// A blackboard with this text, as if a person had written it.
    pub(crate) fn with_text(name: &str, text: &str) -> Self {
        let project = Self::empty(name);
        std::fs::write(project.file("state.yaml"), text).unwrap();
        project
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.root).unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.join(".liza").join(name)
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.file("state.yaml")).unwrap()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.file("log.yaml")).unwrap_or_default()
    }

    pub(crate) fn write(&self, text: &str) {
        std::fs::write(self.file("state.yaml"), text).unwrap();
    }

    pub(crate) fn submit(&self, command: Command) -> Result<Written, StoreError> {
        submit(&self.store(), human(command))
    }

    /// Submits a command that must succeed, and returns its revision.
    pub(crate) fn run(&self, command: Command) -> u64 {
        self.submit(command).unwrap().revision.0
    }

    pub(crate) fn add_task(&self, id: &str) -> u64 {
        self.run(add_task(id))
    }

    /// The names in `.liza`, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(".liza")).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// A request by the human, at the fixed time.
pub(crate) fn human(command: Command) -> Request<Command> {
    Request { actor: Actor::Human, now: now(), stop_files: StopFiles::default(), if_revision: None, command }
}

/// A host at the time of a request.
struct FixedHost(Timestamp, StopFiles);

impl Host for FixedHost {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn stop_files(&self) -> StopFiles {
        self.1
    }

    fn create_stop_files(&self, files: &[StopFile], _: Timestamp) -> std::io::Result<()> {
        assert_eq!(files, [], "these tests stop no one");
        Ok(())
    }

    fn masked(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// Submits a request; a refusal that is written counts as an error.
pub(crate) fn submit(store: &Store, request: Request<Command>) -> Result<Written, StoreError> {
    let Request { actor, now, stop_files, if_revision, command } = request;
    let outcome = store.submit(Call { actor, if_revision, command }, &FixedHost(now, stop_files))?;
    outcome.answer?;
    Ok(outcome.written)
}

pub(crate) fn add_task(id: &str) -> Command {
    let new = NewTask {
        description: format!("Do {id}: \"all\" of it # really"),
        spec_ref: Some("specs/x.md".to_owned()),
        done_when: Some("It works\nand is tested\n".to_owned()),
        scope: Some("src/".to_owned()),
        ..NewTask::default()
    };
    Command::from(AddTask { task: task(id), new })
}

pub(crate) fn register(id: &str) -> Command {
    Command::from(Register {
        agent: agent(id),
        terminal: "/dev/pts/1".to_owned(),
        machine: None,
        proven_dead: None,
        generation: None,
    })
}

pub(crate) fn heartbeat(id: &str) -> Command {
    Command::from(Heartbeat { agents: vec![(agent(id), None)], length: None })
}

pub(crate) fn note(text: &str) -> Command {
    Command::from(WriteNote { message: text.to_owned(), to: None })
}

/// Waits until a condition is true.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < deadline, "timeout: {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}
