//! What a supervisor does, done by the test: claim, build the prompt, start the program.

use std::fs::{self, File};
use std::process::{self, Stdio};

use liza_agents::contracts::Contract;
use liza_agents::prompts::{Brief, Job, prompt};
use liza_core::model::{Actor, Generation, Role};
use liza_core::protocol::CompleteSprint;
use liza_core::rules::triggers::planner_triggers;
use liza_team::engine::Engine;
use liza_team::project::{Project, now};

use crate::support::{Run, TestProject};

/// A registered agent.
pub(crate) struct Player<'p> {
    project: &'p TestProject,
    pub(crate) id: String,
    pub(crate) generation: u64,
}

impl<'p> Player<'p> {
    pub(crate) fn new(project: &'p TestProject, id: &str) -> Self {
        Self { project, id: id.to_owned(), generation: project.register(id) }
    }

    fn brief(&self, role: Role) -> Brief {
        let root = self.project.root.clone();
        Brief {
            state_file: root.join(".liza/state.yaml"),
            specs: root.join("specs"),
            worktrees: root.join(".worktrees"),
            project: root,
            contract: Contract::embedded(role),
            program: env!("CARGO_BIN_EXE_liza").into(),
            agent: self.id.parse().unwrap(),
            now: now(),
            integration_copy: None,
            writable: Vec::new(),
            model_only: false,
        }
    }

    /// The prompt of a session for that job.
    pub(crate) fn prompt(&self, job: &Job) -> String {
        prompt(&self.project.snapshot(), &self.brief(job.role()), job).unwrap()
    }

    /// The prompt of a coder for its task.
    pub(crate) fn code_prompt(&self, task: &str) -> String {
        let worktree = self.project.tree(task);
        self.prompt(&Job::Code {
            task: task.parse().unwrap(),
            worktree,
            staleness: None,
            other_side: Vec::new(),
        })
    }

    /// A session, ready to be started, with this playbook.
    pub(crate) fn session(&self, prompt: &str, playbook: &str) -> process::Command {
        let home = self.project.home();
        let (input, book) = (home.join(format!("{}.txt", self.id)), home.join(format!("{}.yaml", self.id)));
        fs::write(&input, prompt).unwrap();
        fs::write(&book, playbook).unwrap();
        let mut program = self.project.program();
        program.arg("rehearsal").stdin(File::open(input).unwrap()).env("LIZA_AGENT_ID", &self.id);
        program.env("LIZA_AGENT_GENERATION", self.generation.to_string());
        if !playbook.is_empty() {
            program.env("LIZA_PLAYBOOK", book);
        }
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        program
    }

    fn play(&self, job: &Job, playbook: &str) -> Run {
        let mut session = self.session(&self.prompt(job), playbook);
        match job {
            Job::Code { worktree, .. } | Job::Review { worktree, .. } => session.current_dir(worktree),
            Job::Plan { .. } => session.current_dir(&self.project.root),
        };
        self.project.run(&mut session)
    }

    /// Claims the task for this coder.
    #[track_caller]
    pub(crate) fn claim(&self, task: &str) {
        self.project.liza_as(&self.id, &["claim-task", task, &self.id]).ok();
    }

    /// Plays a coder's session on its task.
    pub(crate) fn code(&self, task: &str, playbook: &str) -> Run {
        let worktree = self.project.tree(task);
        let task = task.parse().unwrap();
        self.play(&Job::Code { task, worktree, staleness: None, other_side: Vec::new() }, playbook)
    }

    /// Claims the review and plays it.
    #[track_caller]
    pub(crate) fn review(&self, task: &str, playbook: &str) -> Run {
        self.project.liza_as(&self.id, &["claim-review", task, &self.id]).ok();
        self.play(
            &Job::Review {
                task: task.parse().unwrap(),
                worktree: self.project.tree(task),
                instructions: Vec::new(),
            },
            playbook,
        )
    }

    /// Merges as this reviewer's supervisor.
    pub(crate) fn merge(&self, task: &str) -> Run {
        self.project.liza_as(&self.id, &["wt-merge", task])
    }

    /// Completes the sprint as this agent's supervisor, if it is over.
    pub(crate) fn complete_sprint(&self) {
        let actor = Actor::Supervisor(self.id.parse().unwrap(), Generation(self.generation));
        let project = Project::open(&self.project.root).unwrap();
        // Refused while work is left.
        let _ = Engine::new(&project, actor).execute(CompleteSprint);
    }

    /// A planning session for all triggers.
    pub(crate) fn plan(&self, playbook: &str) -> Run {
        self.play(&Job::Plan { triggers: planner_triggers(&self.project.snapshot(), now()) }, playbook)
    }
}

/// Checks that a session ended with that exit code.
#[track_caller]
pub(crate) fn ended(run: &Run, code: i32) -> &str {
    assert_eq!(run.code, code, "{}\n{}\n{}", run.what, run.stdout, run.stderr);
    &run.stdout
}
