//! A project under a clock of its own, and a real `liza watch` beside it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use liza::effects::run_halts_at;
use liza::project::Project;
use liza::watch::{Options, Watcher};
use liza_core::model::{Actor, AgentId, Generation, Seconds, Sha, State, StopFiles, TaskId, Timestamp};
use liza_core::protocol::{ClaimTask, Command, Heartbeat, Register, Request, ReserveTask};

use crate::support::TestProject;

/// A blackboard whose time is told, not measured.
pub(crate) struct Clocked {
    pub(crate) test: TestProject,
    pub(crate) project: Project,
    /// When its day began.
    pub(crate) start: Timestamp,
    pub(crate) now: Timestamp,
}

impl Clocked {
    pub(crate) fn new() -> Self {
        let test = TestProject::new();
        let project = Project::open(&test.root).unwrap();
        let start = project.store().snapshot().unwrap().board.goal.ready().unwrap().created.unwrap();
        Self { test, project, start, now: start }
    }

    pub(crate) fn at_minute(&mut self, minute: u64) {
        self.now = self.start + Seconds::minutes(minute);
    }

    /// Does it now, stop files included.
    #[track_caller]
    pub(crate) fn submit(&self, actor: Actor, command: Command) {
        let request =
            Request { actor, now: self.now, halt: StopFiles::default(), if_revision: None, command };
        let outcome = self.project.submit_request(&request).unwrap();
        assert_eq!(outcome.refusal, None);
        run_halts_at(&self.project, &outcome.effects, self.now).unwrap();
    }

    pub(crate) fn human(&self, command: Command) {
        self.submit(Actor::Human, command);
    }

    pub(crate) fn state(&self) -> State {
        self.project.store().snapshot().unwrap()
    }

    pub(crate) fn watcher(&self, options: Options) -> Watcher {
        Watcher::new(&self.project, options).unwrap()
    }

    /// Registers an agent with a lease that outlasts the day.
    pub(crate) fn register(&self, name: &str) -> Actor {
        let agent: AgentId = name.parse().unwrap();
        self.human(Command::from(Register { agent, terminal: "test".to_owned(), proven_dead: None }));
        self.human(Command::from(Heartbeat {
            agents: vec![(agent, None)],
            length: Some(Seconds::hours(48)),
        }));
        let generation: Generation =
            self.state().board.agents().unwrap().get(&agent).unwrap().generation.unwrap();
        Actor::Supervisor(agent, generation)
    }

    /// A coder takes a task, worktree and all.
    pub(crate) fn claim(&self, task: &str, by: Actor) {
        let (id, coder): (TaskId, AgentId) = (task.parse().unwrap(), by.agent().unwrap());
        let head: Sha = self.test.git(&["rev-parse", "integration"]).parse().unwrap();
        self.submit(by, Command::from(ReserveTask { task: id.clone(), coder, head: head.clone() }));
        let (branch, tree) = (format!("task/{task}"), format!(".worktrees/{task}"));
        self.test.git(&["worktree", "add", "-q", "-b", &branch, &tree, head.as_str()]);
        self.submit(by, Command::from(ClaimTask { task: id, coder }));
    }

    /// Sets a field of the file as a person would with an editor.
    #[track_caller]
    pub(crate) fn by_hand(&self, from: &str, to: &str) {
        let text = self.test.state();
        assert_eq!(text.matches(from).count(), 1, "{from:?} in\n{text}");
        self.test.write(".liza/state.yaml", &text.replace(from, to));
    }

    pub(crate) fn put_up(&self, file: &str) {
        self.test.write(&format!(".liza/{file}"), &format!("{}\n", self.now));
    }

    pub(crate) fn take_away(&self, file: &str) {
        fs::remove_file(self.test.root.join(".liza").join(file)).unwrap();
    }

    pub(crate) fn stands(&self, file: &str) -> bool {
        self.test.root.join(".liza").join(file).exists()
    }
}

/// A `liza watch` that runs.
pub(crate) struct Watching {
    pub(crate) child: Child,
    out: PathBuf,
}

impl Watching {
    pub(crate) fn start(project: &TestProject, words: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let out = project.home().join(format!("watch-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let file = fs::File::create(&out).unwrap();
        let mut program = project.program();
        program.arg("watch").args(words).stdout(file.try_clone().unwrap()).stderr(file).stdin(Stdio::null());
        Self { child: program.spawn().unwrap(), out }
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    #[track_caller]
    pub(crate) fn until_said(&self, text: &str) {
        let said = until_or(|| self.said().contains(text).then_some(()));
        assert!(said.is_some(), "never said {text:?}:\n{}", self.said());
    }

    /// Sends a signal and gives the exit code.
    #[track_caller]
    pub(crate) fn stop(&mut self, signal: &str) -> i32 {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap();
        assert!(sent.success());
        self.ends()
    }

    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        let status = until_or(|| self.child.try_wait().unwrap());
        status.unwrap_or_else(|| panic!("it goes on:\n{}", self.said())).code().unwrap_or(-1)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is something; fails after a long time.
#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_or(look).unwrap_or_else(|| panic!("never: {what}"))
}

fn until_or<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
