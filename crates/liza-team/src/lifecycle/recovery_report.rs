//! The findings of `recover`, and the repairs.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FindingKind {
    /// An interrupted write of the blackboard, or a stale save.
    Blackboard,
    /// Processes whose liza is gone.
    Process,
    GitLock,
    Leftover,
    /// A checkout that was behind its branch.
    Checkout,
    /// The reservation of a claim that did not finish.
    Reservation,
    /// An agent whose supervisor was killed.
    Registration,
    /// A merge that was not recorded on the blackboard.
    Merge,
    Branch,
    /// Merged work that is not on the integration branch.
    LostMerge,
    Remote,
    /// A missing or incomplete worktree.
    MissingWorktree,
    /// A worktree or branch that no task needs.
    UnneededWorktree,
}

impl FindingKind {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// The task, agent, file or process.
    pub subject: String,
    pub found: String,
    /// The repair, or the reason why it failed.
    pub done: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} – {}", self.subject, self.found, self.done)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    pub repaired: Vec<Finding>,
    /// For a person to repair.
    pub left: Vec<Finding>,
}

#[allow(clippy::needless_pass_by_value, reason = "shorter calls")]
impl RecoveryReport {
    pub fn repaired(
        &mut self,
        kind: FindingKind,
        subject: impl ToString,
        found: impl ToString,
        done: impl ToString,
    ) {
        self.repaired.push(finding(kind, &subject, &found, &done));
    }

    pub fn left(
        &mut self,
        kind: FindingKind,
        subject: impl ToString,
        found: impl ToString,
        why: impl ToString,
    ) {
        self.left.push(finding(kind, &subject, &found, &why));
    }
}

fn finding(kind: FindingKind, subject: &dyn ToString, found: &dyn ToString, done: &dyn ToString) -> Finding {
    Finding { kind, subject: subject.to_string(), found: found.to_string(), done: done.to_string() }
}
