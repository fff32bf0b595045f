//! The three roles, their spelling, and the prefixes of agents' names. Knows nothing else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Splits the goal into tasks and rescopes them.
    Planner,
    /// Implements a task in its worktree.
    Coder,
    /// Gives a binding verdict on an exact commit.
    #[serde(alias = "code-reviewer")]
    CodeReviewer,
}

impl Role {
    /// All roles, in the order in which work passes through them.
    pub const ALL: [Role; 3] = [Role::Planner, Role::Coder, Role::CodeReviewer];

    /// The beginning of an agent ID.
    pub const fn id_prefix(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Coder => "coder",
            Role::CodeReviewer => "code-reviewer",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Role::Planner => "Planner",
            Role::Coder => "Coder",
            Role::CodeReviewer => "Code Reviewer",
        }
    }
}

impl fmt::Display for Role {
    /// The spelling on the blackboard.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Planner => "planner",
            Role::Coder => "coder",
            Role::CodeReviewer => "code_reviewer",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role: expected planner, coder or code_reviewer")]
pub struct RoleError(String);

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        let spelled = |role: &Role| text == role.to_string() || text == role.id_prefix();
        Role::ALL.into_iter().find(spelled).ok_or_else(|| RoleError(text.to_owned()))
    }
}
