//! What every command has in common: who sends it, what it loads, what it replies.

use std::fmt;

use serde::Serialize;

use crate::model::{Actor, Board, Refusal, Revision, Section, StopFiles, TaskId, Timestamp};
use crate::order::sort_by;

use super::permission::Rights;
use super::tx::Tx;

/// What the store and the supervisors know of a command; every [`Rule`] is one, and so is the enum of all commands.
pub trait Operation: fmt::Debug {
    /// What the caller gets back.
    type Reply: fmt::Debug + Serialize;
    fn verb(&self) -> &'static str;
    fn rights(&self) -> Rights;
    fn stage(&self) -> Stage;
    fn target(&self) -> Option<&TaskId>;
    fn scope(&self) -> LoadScope;
    fn other_tasks(&self, board: &Board, now: Timestamp) -> Vec<TaskId>;
    fn is_result(&self) -> bool;
    fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Reply, Refusal>;
}

/// One command: the type is what it carries, this is everything else about it.
pub trait Rule: fmt::Debug {
    /// What the caller gets back.
    type Reply: fmt::Debug + Serialize;
    /// The word people use for it, in messages and in the matrix of states and commands.
    const VERB: &'static str;
    /// Who may send it. "Own task" and "own review" are checked by the rule.
    const RIGHTS: Rights;
    /// Whether it begins or ends something, which decides what stop files and fencing do to it.
    const STAGE: Stage = Stage::Ongoing;
    /// What it has to see of the blackboard. The store loads this and no more, which keeps a heartbeat cheap beside
    /// ten thousand tasks.
    const LOADS: LoadScope = LoadScope::named(&[]);

    /// Who may send it, where that depends on what it carries.
    fn rights(&self) -> Rights {
        Self::RIGHTS
    }

    /// The one task that it is about.
    fn target(&self) -> Option<&TaskId> {
        None
    }

    /// What it loads, where that depends on what it carries.
    fn scope(&self) -> LoadScope {
        Self::LOADS
    }

    /// Tasks besides the target whose records it reads or changes; the sections of its scope are loaded.
    fn other_tasks(&self, _board: &Board, _now: Timestamp) -> Vec<TaskId> {
        Vec::new()
    }

    /// Whether a session that sent it has a result: a decision of the planner, or a question to the human.
    fn is_result(&self) -> bool {
        false
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Reply, Refusal>;
}

impl<R: Rule> Operation for R {
    type Reply = R::Reply;

    fn verb(&self) -> &'static str {
        R::VERB
    }

    fn rights(&self) -> Rights {
        Rule::rights(self)
    }

    fn stage(&self) -> Stage {
        R::STAGE
    }

    fn target(&self) -> Option<&TaskId> {
        Rule::target(self)
    }

    fn scope(&self) -> LoadScope {
        Rule::scope(self)
    }

    fn other_tasks(&self, board: &Board, now: Timestamp) -> Vec<TaskId> {
        Rule::other_tasks(self, board, now)
    }

    fn is_result(&self) -> bool {
        Rule::is_result(self)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<R::Reply, Refusal> {
        Rule::run(self, tx)
    }
}

/// Where in the life of a piece of work a command belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// An agent joins; it has no registration yet that could be checked.
    Joins,
    /// Work begins; refused under every stop file.
    Starts,
    Ongoing,
    /// An agent lets go of something; allowed even under ABORT.
    Leaves,
}

/// What a command has to see of the blackboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadScope {
    /// Sections besides `agents`, which is always loaded: every caller is checked.
    pub sections: &'static [Section],
    /// Whether it needs the summaries of all tasks, or only of those that it names.
    pub all_summaries: bool,
}

impl LoadScope {
    /// Only the tasks that the command names.
    pub const fn named(sections: &'static [Section]) -> Self {
        Self { sections, all_summaries: false }
    }

    /// All tasks: names, dependencies, who has which claim, the plan.
    pub const fn all(sections: &'static [Section]) -> Self {
        Self { sections, all_summaries: true }
    }
}

/// A command with who sends it, when, and what they had read.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<C> {
    pub actor: Actor,
    pub now: Timestamp,
    /// Which stop files are present.
    pub stop_files: StopFiles,
    /// The revision that the caller had read; refused if the target has changed since.
    pub if_revision: Option<Revision>,
    pub command: C,
}

impl<C: Operation> Request<C> {
    pub fn sections(&self) -> Vec<Section> {
        let more = self.command.scope().sections.iter().filter(|section| **section != Section::Agents);
        std::iter::once(Section::Agents).chain(more.copied()).collect()
    }

    /// The only tasks whose summaries are needed; `None` means all. The sections are loaded.
    pub fn summaries(&self, board: &Board) -> Option<Vec<TaskId>> {
        (!self.command.scope().all_summaries).then(|| self.named_tasks(board))
    }

    /// The tasks whose records are needed; the sections and summaries are loaded.
    pub fn bodies(&self, board: &Board) -> Vec<TaskId> {
        let mut tasks = self.named_tasks(board);
        tasks.retain(|task| board.tasks.contains_key(task));
        sort_by(&mut tasks, &TaskId::cmp);
        tasks.dedup();
        tasks
    }

    /// The tasks that the command names or finds on the board, whether they exist or not.
    pub fn named_tasks(&self, board: &Board) -> Vec<TaskId> {
        let target = self.command.target().cloned();
        target.into_iter().chain(self.command.other_tasks(board, self.now)).collect()
    }
}
