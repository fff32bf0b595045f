//! Names of branches, checked once so that they are safe in any git command. A valid name need not exist.

use std::fmt;
use std::str::FromStr;

use liza_ids::TaskId;

/// The folders of the branches that Liza creates; a branch of that name would be in their way.
pub(crate) const RESERVED: [&str; 2] = ["task", "rescue"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BranchError {
    #[error("{text:?} is not a valid branch name")]
    Invalid { text: String },
    #[error(
        "{text:?} cannot be the integration branch: Liza uses task/… and rescue/… for the branches of tasks"
    )]
    Reserved { text: String },
}

/// The name of a local branch, such as `integration` or `task/task-3`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch(String);

impl Branch {
    pub fn of(task: &TaskId) -> Self {
        Self(task.branch())
    }

    pub fn rescue(task: &TaskId, number: u32) -> Self {
        Self(format!("rescue/{task}-{number}"))
    }

    /// The same for a repository inside a task's worktree; `slug` has only letters, digits and dashes.
    pub(crate) fn nested_rescue(task: &TaskId, slug: &str, number: u32) -> Self {
        Self(format!("rescue/{task}-in-{slug}-{number}"))
    }

    /// A branch that approved work can be merged to.
    pub fn for_integration(text: &str) -> Result<Self, BranchError> {
        let branch: Self = text.parse()?;
        match text.split('/').next() {
            Some(first) if RESERVED.contains(&first) => Err(BranchError::Reserved { text: text.to_owned() }),
            Some(_) | None => Ok(branch),
        }
    }

    /// Without `refs/heads/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The full name, which cannot be mistaken for an option or another kind of reference.
    pub fn full(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Branch {
    type Err = BranchError;

    fn from_str(text: &str) -> Result<Self, BranchError> {
        let allowed = |c: char| !c.is_ascii_control() && !" ~^:?*[\\".contains(c);
        let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let whole = !text.starts_with('-') && !text.ends_with('.') && text != "@" && text != "HEAD";
        let pairs = !text.contains("..") && !text.contains("@{");
        if whole && pairs && text.chars().all(allowed) && text.split('/').all(part) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BranchError::Invalid { text: text.to_owned() })
        }
    }
}

/// The branch that keeps git from creating one of Liza's, according to git's message.
pub(crate) fn blocking_branch(message: &str) -> Option<&'static str> {
    RESERVED.into_iter().find(|name| message.contains(&format!("'refs/heads/{name}' exists")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_git_accepts_are_valid() {
        for good in ["integration", "release/1.x", "task/task-3", "wörk", "a@b"] {
            assert!(good.parse::<Branch>().is_ok(), "{good}");
        }
        let bad = [
            "", "-D", "a..b", "a b", "a~1", "a^", "a:b", "/a", "a/", "a//b", ".a", "a.lock", "a.", "@",
            "a@{1}", "HEAD", "a\n", "a*", "a\\b",
        ];
        for bad in bad {
            assert!(bad.parse::<Branch>().is_err(), "{bad:?}");
        }
    }
}
