//! A project with a virtual clock.

use std::fs;

use liza_core::model::{Actor, AgentId, Generation, Seconds, Sha, State, TaskId, Timestamp};
use liza_core::protocol::{ClaimTask, Heartbeat, Operation, Register, ReserveTask};
use liza_team::project::Project;
use liza_team::watch::{WatchOptions, Watcher};

use crate::support::TestProject;

/// A blackboard with a virtual clock.
pub(crate) struct Clocked {
    pub(crate) test: TestProject,
    pub(crate) project: Project,
    /// The start of the day.
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

    /// Runs a command now, stop files included.
    #[track_caller]
    pub(crate) fn submit<C: Operation>(&self, actor: Actor, command: C) {
        let _ = self.test.execute_at(actor, self.now, command);
    }

    pub(crate) fn human<C: Operation>(&self, command: C) {
        self.submit(Actor::Human, command);
    }

    pub(crate) fn state(&self) -> State {
        self.project.store().snapshot().unwrap()
    }

    pub(crate) fn watcher(&self, options: WatchOptions) -> Watcher {
        Watcher::new(&self.project, options).unwrap()
    }

    /// Registers an agent with a lease that outlasts the day.
    pub(crate) fn register(&self, name: &str) -> Actor {
        let agent: AgentId = name.parse().unwrap();
        self.human(Register {
            agent,
            terminal: "test".to_owned(),
            machine: None,
            proven_dead: None,
            generation: None,
        });
        self.human(Heartbeat { agents: vec![(agent, None)], length: Some(Seconds::hours(24)) });
        let generation: Generation =
            self.state().board.agents().unwrap().get(&agent).unwrap().generation.unwrap();
        Actor::Supervisor(agent, generation)
    }

    /// A coder claims a task, with its worktree.
    pub(crate) fn claim(&self, task: &str, by: Actor) {
        let (id, coder): (TaskId, AgentId) = (task.parse().unwrap(), by.agent().unwrap());
        let head: Sha = self.test.git(&["rev-parse", "integration"]).parse().unwrap();
        self.submit(by, ReserveTask { task: id.clone(), coder, head: head.clone() });
        let (branch, tree) = (format!("task/{task}"), format!(".worktrees/{task}"));
        self.test.git(&["worktree", "add", "-q", "-b", &branch, &tree, head.as_str()]);
        self.submit(by, ClaimTask { task: id, coder });
    }

    /// Sets a field of the file as a person does with an editor.
    #[track_caller]
    pub(crate) fn edit_file(&self, from: &str, to: &str) {
        let text = self.test.state();
        assert_eq!(text.matches(from).count(), 1, "{from:?} in\n{text}");
        self.test.write(".liza/state.yaml", &text.replace(from, to));
    }

    pub(crate) fn create_stop_file(&self, file: &str) {
        self.test.write(&format!(".liza/{file}"), &format!("{}\n", self.now));
    }

    pub(crate) fn remove_stop_file(&self, file: &str) {
        fs::remove_file(self.test.root.join(".liza").join(file)).unwrap();
    }

    pub(crate) fn has_file(&self, file: &str) -> bool {
        self.test.root.join(".liza").join(file).exists()
    }
}
