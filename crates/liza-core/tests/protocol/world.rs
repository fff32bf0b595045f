//! The team of the random sequences: its blackboard, its clock, and the part of git that the rules need.
//!
//! Checks every change and every board that it gets.

use std::collections::{BTreeMap, BTreeSet};

use liza_core::model::{
    Actor, AgentId, Change, Effect, Generation, Loaded, Refusal, Sha, State, Status, StopFiles, TaskId,
    Timestamp, Worktree,
};
use liza_core::protocol::{
    AddTask, BeginMerge, ClaimReview, ClaimTask, Command, Decided, MergeFailure, NewTask, RecordMerge,
    RecordMergeFailure, Register, Reply, Request, ReserveTask, SubmitForReview, SubmitVerdict, Verdict,
    WorktreeFacts, apply,
};
use liza_core::rules::invariants::{DiskFacts, introduced, validate};

use crate::fixture::empty_state;

pub(crate) fn number_sha(number: u64) -> Sha {
    format!("{number:040x}").parse().unwrap()
}

/// A team, its blackboard, its clock, and the part of git that the rules need.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) now: Timestamp,
    pub(crate) worktrees: BTreeMap<TaskId, u64>,
    commits: u64,
    pub(crate) integration: u64,
    approved: BTreeSet<(TaskId, Sha)>,
    merged: BTreeSet<TaskId>,
    pub(crate) written: usize,
}

impl DiskFacts for World {
    fn worktree_exists(&self, worktree: &Worktree) -> bool {
        self.worktrees.keys().any(|id| Worktree::of(id) == *worktree)
    }

    fn spec_exists(&self, _: &str) -> bool {
        true
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let mut state = empty_state();
        state.board.agents = Loaded::Ready(indexmap::IndexMap::new());
        let now = crate::fixture::now();
        Self {
            state,
            now,
            worktrees: BTreeMap::new(),
            commits: 1,
            integration: 1,
            approved: BTreeSet::new(),
            merged: BTreeSet::new(),
            written: 0,
        }
    }

    /// The same team at the same moment.
    pub(crate) fn copy(&self) -> Self {
        let (worktrees, approved, merged) =
            (self.worktrees.clone(), self.approved.clone(), self.merged.clone());
        Self { state: self.state.clone(), worktrees, approved, merged, ..*self }
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
    pub(crate) fn run(&mut self, actor: Actor, command: Command) -> Result<(), Refusal> {
        let request =
            Request { actor, now: self.now, stop_files: StopFiles::default(), if_revision: None, command };
        let decided = apply(&self.state.board, &request)?;
        self.check_scope(&request, &decided);
        let worktrees = self.worktrees.clone();
        self.prepare(&decided);
        let Decided { change, answer } = decided;
        let new = introduced(&self.state.board, &change, self, self.now);
        if !new.is_empty() {
            // A dependency cycle or an unknown dependency: the store refuses the write, so nothing happened.
            assert!(is_about_dependencies(&request.command), "{:?} made {new:?}", request.command);
            self.worktrees = worktrees;
            return Err(Refusal::NothingToDo { what: "write: the invariants forbid it" });
        }
        self.check_change(&request, &change);
        self.state.apply(&change);
        self.written += 1;
        self.clean_up(&change);
        self.check_board(&request);
        answer.map(drop)
    }

    /// The board that the store would load for this command has the same outcome.
    fn check_scope(&self, request: &Request<Command>, decided: &Decided<Reply>) {
        let mut lean = self.state.board.clone();
        let bodies = request.bodies(&self.state.board);
        for (id, slot) in &mut lean.tasks {
            if !bodies.contains(id) {
                slot.body = None;
            }
        }
        if let Some(only) = request.summaries(&lean) {
            lean.tasks.retain(|id, _| only.contains(id));
        }
        assert_eq!(apply(&lean, request).as_ref(), Ok(decided), "{:?}", request.command);
    }

    /// Worktrees that are created before the write, for the second step of a claim.
    fn prepare(&mut self, decided: &Decided<Reply>) {
        if let Ok(Reply::ReserveTask(reserved)) = &decided.answer {
            let head = u64::from_str_radix(reserved.base_commit.as_str(), 16).unwrap_or(1);
            self.worktrees.entry(reserved.task.task.clone()).or_insert(head);
        }
    }

    fn clean_up(&mut self, change: &Change) {
        for effect in &change.effects {
            if let Effect::RemoveWorktree(task) = effect {
                self.worktrees.remove(task);
            }
        }
    }

    /// History only grows, terminal tasks stay, every changed task has the new revision.
    fn check_change(&mut self, request: &Request<Command>, change: &Change) {
        assert_eq!(change.revision, self.state.board.revision.next());
        for (id, record) in &change.tasks {
            let Ok(old) = self.state.board.body(id) else { continue };
            let past = old.record().history.clone().unwrap_or_default();
            let present = record.history.clone().unwrap_or_default();
            assert!(present.starts_with(&past), "{:?} rewrote the history of {id}", request.command);
            let (from, to) = (old.record().status.unwrap(), record.status.unwrap());
            assert!(!from.is_terminal() || from == to, "{id}: {from} → {to} by {:?}", request.command);
            if from != to {
                assert!(present.len() > past.len(), "{id}: {from} → {to} without an event");
                assert!(change.log.is_some(), "{id}: {from} → {to} without a log entry");
            }
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

    fn check_board(&self, request: &Request<Command>) {
        let wrong: Vec<String> = validate(&self.state, self, self.now)
            .iter()
            .map(ToString::to_string)
            // An expired lease is an alarm, not the result of a command.
            .filter(|text| !text.contains("lease ended"))
            .collect();
        assert_eq!(wrong, Vec::<String>::new(), "after {:?}", request.command);
        for (id, entry) in self.state.board.agents.ready().unwrap() {
            let Some(held) = &entry.current_task else { continue };
            let task = self.state.board.task(held).unwrap();
            assert!(
                task.status.is_held_by(*id),
                "{id} names {held} as its task, after {:?}",
                request.command
            );
        }
    }

    fn facts(&self, id: &TaskId) -> WorktreeFacts {
        let head = self.worktrees.get(id).copied().unwrap_or(0);
        WorktreeFacts {
            head: number_sha(head),
            on_task_branch: true,
            dirty: Vec::new(),
            changed_tracked: Vec::new(),
            has_base: true,
            takes_back: Vec::new(),
        }
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
        self.run(self.supervisor(coder), Command::from(ReserveTask { task: id.clone(), coder, head }))?;
        self.run(self.supervisor(coder), Command::from(ClaimTask { task: id.clone(), coder }))
    }

    pub(crate) fn submit(&mut self, id: &TaskId, coder: AgentId) -> Result<(), Refusal> {
        if self.state.board.status(id) == Some(Status::Claimed) {
            self.commit(id);
        }
        let facts = self.facts(id);
        let commit = facts.head.clone();
        self.run(
            self.session(coder),
            Command::from(SubmitForReview { task: id.clone(), commit, facts: Some(facts), authors: vec![] }),
        )
    }

    pub(crate) fn claim_review(&mut self, id: &TaskId, reviewer: AgentId) -> Result<(), Refusal> {
        let head = self.worktrees.get(id).map(|head| number_sha(*head));
        let claim = ClaimReview { task: id.clone(), reviewer, head, setup_failure: None, integration: None };
        self.run(self.supervisor(reviewer), Command::from(claim))
    }

    pub(crate) fn verdict(&mut self, id: &TaskId, reviewer: AgentId, good: bool) -> Result<(), Refusal> {
        let reason = "Blockers: 1\nPrior Feedback Status:\n- STILL PRESENT: all of it";
        let verdict = if good {
            Verdict::Approved(Some("cargo test: passed".into()))
        } else {
            Verdict::Rejected(reason.to_owned())
        };
        let facts = self.facts(id);
        self.run(
            self.session(reviewer),
            Command::from(SubmitVerdict {
                task: id.clone(),
                verdict,
                facts: Some(facts),
                commit: None,
                moved: None,
            }),
        )
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
