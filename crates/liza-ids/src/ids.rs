//! Names that agents and people type: parsed once, valid from then on.
//!
//! Every ID that reaches a path, a branch name or a shell word is one of these types, so no other code asks
//! whether it is safe. Nothing here looks anything up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::role::Role;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not kebab-case, too long, or unsafe as a file or branch name.
    #[error(
        "{text:?} is not a task ID: use kebab-case (a-z, 0-9, single dashes between), at most {max} characters"
    )]
    Task { text: String, max: usize },
    #[error("{text:?} is not an agent ID: expected coder-N, code-reviewer-N or planner-N, such as coder-1")]
    Agent { text: String },
    /// Not a hexadecimal object name.
    #[error("{text:?} is not a commit: expected 7 to 64 hexadecimal digits")]
    Sha { text: String },
    #[error("{text:?} is not a digest: expected 64 hexadecimal digits")]
    Digest { text: String },
    #[error("{text:?} is not a discovery ID: expected disc-N, such as disc-1")]
    Discovery { text: String },
    #[error("{text:?} is not the ID of a direct edit: expected edit-N, such as edit-12")]
    DirectEdit { text: String },
    /// Not a relative path below the project root.
    #[error("{text:?} is not a path inside the project")]
    Path { text: String },
}

/// The longest task ID; it becomes a folder name and a branch name.
pub const TASK_ID_MAX: usize = 100;

/// A task's name: kebab-case, safe as a folder and as a branch name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(String);

impl TaskId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The branch that this task's work is committed to.
    pub fn branch(&self) -> String {
        format!("task/{self}")
    }
}

impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if text.len() <= TASK_ID_MAX && text.split('-').all(word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError::Task { text: text.to_owned(), max: TASK_ID_MAX })
        }
    }
}

/// An agent's name: its role and a number, such as `code-reviewer-2`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId {
    role: Role,
    number: u32,
}

impl AgentId {
    pub fn new(role: Role, number: u32) -> Self {
        Self { role, number }
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn number(&self) -> u32 {
        self.number
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.role.id_prefix(), self.number)
    }
}

impl FromStr for AgentId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let (prefix, digits) = text.rsplit_once('-')?;
            let role = Role::ALL.into_iter().find(|role| role.id_prefix() == prefix)?;
            let canonical = digits.bytes().all(|b| b.is_ascii_digit());
            // `coder-01` would be a second spelling of `coder-1`; one agent has one name.
            let canonical = canonical && (digits == "0" || !digits.starts_with('0'));
            canonical.then(|| digits.parse().ok()).flatten().map(|number| Self { role, number })
        };
        parse().ok_or_else(|| IdError::Agent { text: text.to_owned() })
    }
}

/// The author of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approver {
    Human,
    Agent(AgentId),
}

impl Approver {
    pub fn agent(self) -> Option<AgentId> {
        match self {
            Approver::Human => None,
            Approver::Agent(agent) => Some(agent),
        }
    }
}

impl fmt::Display for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Approver::Human => f.write_str("human"),
            Approver::Agent(agent) => agent.fmt(f),
        }
    }
}

impl FromStr for Approver {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text == "human" { Ok(Approver::Human) } else { text.parse().map(Approver::Agent) }
    }
}

/// A commit's name: 40 hexadecimal digits (64 in a repository with long hashes), or the first 7 or more of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha(String);

impl Sha {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if all digits are present.
    pub fn is_full(&self) -> bool {
        matches!(self.0.len(), 40 | 64)
    }

    /// The first eight digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..self.0.len().min(8)]
    }

    /// True if one is the beginning of the other.
    pub fn names_same_commit(&self, other: &Sha) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }
}

impl FromStr for Sha {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let hex = text.bytes().all(|b| b.is_ascii_hexdigit());
        if hex && (7..=64).contains(&text.len()) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(IdError::Sha { text: text.to_owned() })
        }
    }
}

/// The SHA-256 of a content, as 64 hexadecimal digits in lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first two digits and the others.
    pub fn parts(&self) -> (&str, &str) {
        self.0.split_at(2)
    }
}

impl FromStr for Digest {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 64 && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError::Digest { text: text.to_owned() })
        }
    }
}

/// `disc-N`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiscoveryId(pub u32);

impl fmt::Display for DiscoveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disc-{}", self.0)
    }
}

impl FromStr for DiscoveryId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.strip_prefix("disc-").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        number
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| IdError::Discovery { text: text.to_owned() })
    }
}

/// `edit-N`, where N is the revision of the write that found it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectEditId(pub Revision);

impl fmt::Display for DirectEditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edit-{}", self.0.0)
    }
}

impl FromStr for DirectEditId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.strip_prefix("edit-").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        number
            .and_then(|digits| digits.parse().ok())
            .map(|revision| Self(Revision(revision)))
            .ok_or_else(|| IdError::DirectEdit { text: text.to_owned() })
    }
}

/// The path of a task's worktree, relative to the project root.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worktree(String);

impl Worktree {
    /// The only path allowed for the worktree of `task`.
    pub fn of(task: &TaskId) -> Self {
        Self(format!(".worktrees/{task}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Worktree {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let safe = |part: &str| !part.is_empty() && part != "." && part != "..";
        let clean = text.trim_end_matches('/');
        if clean.split('/').all(safe) && !clean.contains(['\\', '\0', '\n']) {
            Ok(Self(clean.to_owned()))
        } else {
            Err(IdError::Path { text: text.to_owned() })
        }
    }
}

/// The number of a write; it grows by one with every write of the blackboard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The format of the file: a program that knows only older formats must not write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileVersion(pub i64);

impl FileVersion {
    /// Worktrees are linked, or there are none yet.
    pub const FIRST: Self = Self(1);
    /// Worktrees have repositories of their own.
    pub const OWN_REPOSITORIES: Self = Self(2);
    /// The newest that this program knows.
    pub const NEWEST: Self = Self::OWN_REPOSITORIES;
}

impl Default for FileVersion {
    fn default() -> Self {
        Self::FIRST
    }
}

/// The fencing token of one registration: the revision of the write that registered the agent, so it only grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Gives a text-like type its serde form: written as text, parsed (and so checked) when read.
macro_rules! serde_as_text {
    ($($name:ty),+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

serde_as_text!(TaskId, AgentId, Approver, Sha, Digest, DiscoveryId, DirectEditId, Worktree);

/// Shows a newtype around text as that text, also in debug output, where the quotes tell it from a word.
macro_rules! show_inner {
    ($($name:ty),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

show_inner!(TaskId, Sha, Digest, Worktree);

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for DirectEditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for DiscoveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IV-13
    #[test]
    fn task_ids_are_kebab_case_and_safe() {
        for good in ["task-1", "a", "task-4a", "0", "add-retry-to-order-api", &"x".repeat(100)] {
            assert!(good.parse::<TaskId>().is_ok(), "{good}");
        }
        let long = "x".repeat(101);
        let bad = [
            "", "-x", "x-", "a--b", "../x", "a b", "A", "a_b", "a.lock", "a/b", "é", "a\n", "..", "~",
            "@{1}", &long,
        ];
        for bad in bad {
            assert!(bad.parse::<TaskId>().is_err(), "{bad:?}");
        }
    }

    /// Covers: AG-01
    #[test]
    fn agent_ids_say_their_role_and_have_one_spelling() {
        let reviewer: AgentId = "code-reviewer-12".parse().unwrap();
        assert_eq!((reviewer.role(), reviewer.number()), (Role::CodeReviewer, 12));
        assert_eq!(reviewer.to_string(), "code-reviewer-12");
        for bad in
            ["coder", "coder-", "coder-x", "coder-01", "coder--1", "reviewer-1", "Coder-1", "coder-1 ", ""]
        {
            assert!(bad.parse::<AgentId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn short_and_full_commits_name_the_same_one() {
        let full: Sha = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678".parse().unwrap();
        let short: Sha = "A1B2C3D4".parse().unwrap();
        assert!(full.is_full() && !short.is_full());
        assert!(full.names_same_commit(&short) && short.names_same_commit(&full));
        assert!(!full.names_same_commit(&"a1b2c3d5".parse().unwrap()));
        for bad in ["", "abc", "HEAD", "a1b2c3g", &"a".repeat(65)] {
            assert!(bad.parse::<Sha>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn worktrees_stay_inside_the_project() {
        assert_eq!(Worktree::of(&"task-1".parse().unwrap()).as_str(), ".worktrees/task-1");
        for bad in ["/etc", "../x", "a/../b", "", "a//b", "./a"] {
            assert!(bad.parse::<Worktree>().is_err(), "{bad:?}");
        }
    }
}
