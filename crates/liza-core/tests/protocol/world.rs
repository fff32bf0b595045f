//! The team of the random sequences: the test world with the part of git that the rules need.
//!
//! Checks every board that it gets, besides the changes that the test world checks.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use liza_core::model::{Actor, AgentId, Change, Effect, Generation, Refusal, Sha, Status, TaskId, Worktree};
use liza_core::protocol::{
    AddTask, BeginMerge, Command, MergeFailure, NewTask, RecordMerge, RecordMergeFailure, Register, Reply,
    SubmitVerdict, Verdict, WorktreeFacts,
};
use liza_core::rules::invariants::validate;
use liza_testkit::team::{empty_state, now};
use liza_testkit::worlds::{self, No, claim, claim_review, reserve, submit};

pub(crate) fn number_sha(number: u64) -> Sha {
    format!("{number:040x}").parse().unwrap()
}

/// A team, its blackboard, its clock, and the part of git that the rules need.
#[derive(Clone)]
pub(crate) struct World {
    world: worlds::World,
    pub(crate) worktrees: BTreeMap<TaskId, u64>,
    commits: u64,
    pub(crate) integration: u64,
    approved: BTreeSet<(TaskId, Sha)>,
    merged: BTreeSet<TaskId>,
    pub(crate) written: usize,
}

impl Deref for World {
    type Target = worlds::World;

    fn deref(&self) -> &worlds::World {
        &self.world
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut worlds::World {
        &mut self.world
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = worlds::World::empty();
        (world.state, world.now) = (empty_state(), now());
        liza_testkit::boards::agents(&mut world.state).clear();
        let (worktrees, approved, merged) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { world, worktrees, commits: 1, integration: 1, approved, merged, written: 0 }
    }

    fn generation(&self, id: AgentId) -> Generation {
        let agents = self.state.board.agents.ready().unwrap();
        agents.get(&id).and_then(|entry| entry.generation).unwrap_or_default()
    }

    pub(crate) fn supervisor(&self, id: AgentId) -> Actor {
        Actor::Supervisor(id, self.generation(id))
    }

    pub(crate) fn session(&self, id: AgentId) -> Actor {
        Actor::Agent(id, self.generation(id))
    }

    /// Runs a command, checks everything that must hold, and carries out its effects.
    #[expect(clippy::needless_pass_by_value, reason = "callers make a command for each call")]
    pub(crate) fn run(&mut self, actor: Actor, command: Command) -> Result<(), Refusal> {
        self.world.disk.worktrees = self.worktrees.keys().map(Worktree::of).collect();
        // A person may have edited the file.
        self.world.recount();
        let before: BTreeMap<TaskId, Status> = self
            .state
            .board
            .tasks
            .keys()
            .filter_map(|id| Some((id.clone(), self.state.board.status(id)?)))
            .collect();
        let done = match self.world.run(actor, command.clone()) {
            Ok(done) => done,
            Err(No::Refused(refusal)) => return Err(refusal),
            Err(No::Violates(new)) => {
                // A dependency cycle or an unknown dependency: the store refuses the write, so nothing happened.
                assert!(is_about_dependencies(&command), "{command:?} made {new:?}");
                return Err(Refusal::NothingToDo { what: "write: the invariants forbid it" });
            }
        };
        self.written += 1;
        if let Ok(Reply::ReserveTask(reserved)) = &done.answer {
            let head = u64::from_str_radix(reserved.base_commit.as_str(), 16).unwrap_or(1);
            self.worktrees.entry(reserved.task.task.clone()).or_insert(head);
        }
        for effect in &done.effects {
            if let Effect::RemoveWorktree(task) = effect {
                self.worktrees.remove(task);
            }
        }
        self.check_change(&before, &command, &done.change);
        self.check_board(&command);
        done.answer.map(drop)
    }

    /// Ended tasks stay, and only approved work is merged, once.
    fn check_change(&mut self, before: &BTreeMap<TaskId, Status>, command: &Command, change: &Change) {
        for (id, record) in &change.tasks {
            let (Some(from), to) = (before.get(id).copied(), record.status.unwrap()) else { continue };
            assert!(!from.is_terminal() || from == to, "{id}: {from} → {to} by {command:?}");
            if to == Status::Approved && from != to {
                self.approved.insert((id.clone(), record.review_commit.clone().unwrap()));
            }
            if to == Status::Merged && from != to {
                let commit = record.review_commit.clone().unwrap();
                assert!(self.approved.contains(&(id.clone(), commit)), "{id} merged without approval");
                assert!(self.merged.insert(id.clone()), "{id} merged twice");
            }
        }
    }

    fn check_board(&self, command: &Command) {
        let wrong: Vec<String> = validate(&self.state, &self.disk, self.now)
            .iter()
            // An expired lease is an alarm, not the result of a command.
            .filter(|violation| !violation.has_alarm)
            .map(ToString::to_string)
            .collect();
        assert_eq!(wrong, Vec::<String>::new(), "after {command:?}");
        for (id, entry) in self.state.board.agents.ready().unwrap() {
            let Some(held) = &entry.current_task else { continue };
            let task = self.state.board.task(held).unwrap();
            assert!(task.status.is_held_by(*id), "{id} names {held} as its task, after {command:?}");
        }
    }

    pub(crate) fn facts(&self, id: &TaskId) -> WorktreeFacts {
        WorktreeFacts::clean(number_sha(self.worktrees.get(id).copied().unwrap_or(0)))
    }

    /// The coder commits in its worktree.
    pub(crate) fn commit(&mut self, id: &TaskId) {
        self.commits += 1;
        let commit = self.commits;
        if let Some(head) = self.worktrees.get_mut(id) {
            *head = commit;
        }
    }

    pub(crate) fn add(&mut self, id: &TaskId, draft: bool, depends_on: Vec<TaskId>) -> Result<(), Refusal> {
        let text = |text: &str| Some(text.to_owned());
        let new = NewTask {
            description: "do it".to_owned(),
            spec_ref: text("specs/x.md"),
            done_when: text("done"),
            scope: text("all"),
            depends_on,
            draft,
            ..NewTask::default()
        };
        self.run(Actor::Human, Command::from(AddTask { task: id.clone(), new }))
    }

    pub(crate) fn register(&mut self, id: AgentId) -> Result<(), Refusal> {
        self.run(
            Actor::Operator(id),
            Command::from(Register {
                agent: id,
                terminal: String::new(),
                machine: None,
                proven_dead: None,
                generation: None,
            }),
        )
    }

    pub(crate) fn claim(&mut self, id: &TaskId, coder: AgentId) -> Result<(), Refusal> {
        let head = number_sha(self.integration);
        self.run(self.supervisor(coder), reserve(id.as_str(), coder, head))?;
        self.run(self.supervisor(coder), claim(id.as_str(), coder))
    }

    pub(crate) fn submit(&mut self, id: &TaskId, coder: AgentId) -> Result<(), Refusal> {
        if self.state.board.status(id) == Some(Status::Claimed) {
            self.commit(id);
        }
        self.run(self.session(coder), submit(id.as_str(), self.facts(id).head))
    }

    pub(crate) fn claim_review(&mut self, id: &TaskId, reviewer: AgentId) -> Result<(), Refusal> {
        self.run(self.supervisor(reviewer), claim_review(id.as_str(), reviewer))
    }

    pub(crate) fn verdict(&mut self, id: &TaskId, reviewer: AgentId, good: bool) -> Result<(), Refusal> {
        let reason = "Blockers: 1\nPrior Feedback Status:\n- STILL PRESENT: all of it";
        let verdict = if good {
            Verdict::Approved(Some("cargo test: passed".into()))
        } else {
            Verdict::Rejected(reason.to_owned())
        };
        // The checkout of the review is at the submitted commit, also if the coder has gone on.
        let submitted = self.state.board.body(id).ok().and_then(|body| body.record().review_commit.clone());
        let (task, facts) = (id.clone(), submitted.map(WorktreeFacts::clean));
        let command = SubmitVerdict { task, verdict, facts, commit: None, moved: None };
        self.run(self.session(reviewer), Command::from(command))
    }

    pub(crate) fn merge(&mut self, id: &TaskId, reviewer: AgentId, clean: bool) -> Result<(), Refusal> {
        self.run(self.supervisor(reviewer), Command::from(BeginMerge { task: id.clone() }))?;
        let commit = self.state.board.body(id).unwrap().record().review_commit.clone().unwrap();
        let command = if clean {
            self.commits += 1;
            self.integration = self.commits;
            let merge_commit = number_sha(self.integration);
            Command::from(RecordMerge {
                task: id.clone(),
                commit,
                merge_commit,
                drift_commits: 0,
                old_head: None,
            })
        } else {
            let failure = MergeFailure::Conflict { files: vec!["x".to_owned()] };
            Command::from(RecordMergeFailure { task: id.clone(), commit, failure })
        };
        self.run(self.supervisor(reviewer), command)
    }
}

fn is_about_dependencies(command: &Command) -> bool {
    matches!(command, Command::EditTask(_) | Command::SupersedeTask(_) | Command::AddTask(_))
}
