//! The interface of every command: its senders, its load scope and its reply.

use std::fmt;

use serde::Serialize;

use crate::model::{Actor, Board, Refusal, Revision, Section, StopFiles, TaskId, Timestamp};
use liza_ids::order::sort_by;

use super::permission::Rights;
use super::tx::Tx;

/// A command as the store and the supervisors know it: every [`Rule`], and the enum of all commands.
pub trait Operation: fmt::Debug {
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

/// One command: the type carries its data, the trait everything else.
pub trait Rule: fmt::Debug {
    type Reply: fmt::Debug + Serialize;
    /// The word for people, in messages and in the matrix of states and commands.
    const VERB: &'static str;
    /// The permitted senders. "Own task" and "own review" are checked by the rule.
    const RIGHTS: Rights;
    /// The stage decides the effect of stop files and fencing.
    const STAGE: Stage = Stage::Ongoing;
    /// The needed part of the blackboard. No more is loaded, so a heartbeat is cheap beside 10,000 tasks.
    const LOADS: LoadScope = LoadScope::named(&[]);

    /// The permitted senders, where they depend on the data.
    fn rights(&self) -> Rights {
        Self::RIGHTS
    }

    /// The one task that it is about.
    fn target(&self) -> Option<&TaskId> {
        None
    }

    /// The load scope, where it depends on the data.
    fn scope(&self) -> LoadScope {
        Self::LOADS
    }

    /// Tasks besides the target whose records it reads or changes; the sections of its scope are loaded.
    fn other_tasks(&self, _board: &Board, _now: Timestamp) -> Vec<TaskId> {
        Vec::new()
    }

    /// True if it is the result of a session: a decision of the planner, or a question to the human.
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

/// The place of a command in the life of a piece of work.
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

/// The part of the blackboard that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadScope {
    /// Sections besides `agents`, which is always loaded: every caller is checked.
    pub sections: &'static [Section],
    /// If false, only the summaries of the tasks that it names are loaded.
    pub all_summaries: bool,
}

impl LoadScope {
    /// Only the tasks that the command names.
    pub const fn named(sections: &'static [Section]) -> Self {
        Self { sections, all_summaries: false }
    }

    /// All tasks: names, dependencies, claims, the plan.
    pub const fn all(sections: &'static [Section]) -> Self {
        Self { sections, all_summaries: true }
    }
}

/// A command with its sender, its time and the revision that the sender had read.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<C> {
    pub actor: Actor,
    pub now: Timestamp,
    pub stop_files: StopFiles,
    /// Refused if the target has changed since this revision.
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

    /// The tasks that the command names or finds on the board, existing or not.
    pub fn named_tasks(&self, board: &Board) -> Vec<TaskId> {
        let target = self.command.target().cloned();
        target.into_iter().chain(self.command.other_tasks(board, self.now)).collect()
    }
}
