//! The permitted senders of each command.
//!
//! Each command names its row of the table. "Own task" and "own review" are checked by the command's rule.

use crate::model::{Actor, Role};

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    pub planner: bool,
    pub coder: bool,
    pub reviewer: bool,
    pub supervisor: bool,
    pub human: bool,
}

const fn rights(planner: bool, coder: bool, reviewer: bool, supervisor: bool, human: bool) -> Rights {
    Rights { planner, coder, reviewer, supervisor, human }
}

pub(super) const PLANNING: Rights = rights(true, false, false, false, true);
pub(super) const SUPERVISION: Rights = rights(false, false, false, true, true);
pub(super) const CODING: Rights = rights(false, true, false, false, false);
pub(super) const BLOCKING: Rights = rights(false, true, false, true, true);
pub(super) const REVIEWING_OR_HUMAN: Rights = rights(false, false, true, false, true);
pub(super) const AGENTS: Rights = rights(true, true, true, false, false);
pub(super) const EVERYONE: Rights = rights(true, true, true, true, true);
pub(super) const HUMAN: Rights = rights(false, false, false, false, true);

impl Rights {
    fn of_role(self, role: Role) -> bool {
        match role {
            Role::Planner => self.planner,
            Role::Coder => self.coder,
            Role::CodeReviewer => self.reviewer,
        }
    }

    pub fn allow(self, actor: &Actor) -> bool {
        match actor {
            Actor::Human => self.human,
            Actor::Agent(id, _) => self.of_role(id.role()),
            Actor::Operator(id) => self.of_role(id.role()) || self.supervisor,
            Actor::Supervisor(..) => self.supervisor,
        }
    }

    pub(super) fn names(self) -> String {
        let all = [
            (self.planner, "the planner"),
            (self.coder, "the task's coder"),
            (self.reviewer, "the task's code reviewer"),
            (self.supervisor, "supervisors"),
            (self.human, "the human"),
        ];
        let names: Vec<&str> = all.iter().filter(|(may, _)| *may).map(|(_, who)| *who).collect();
        names.join(" or ")
    }
}
