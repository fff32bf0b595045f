//! What `recover` found, and what it did about each.

use std::fmt;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FindingKind {
    /// An interrupted write of the blackboard, or a stale save.
    Blackboard,
    /// Processes whose liza is gone.
    Process,
    /// A lock of a dead git process.
    GitLock,
    /// Files of a dead process.
    Leftover,
    /// A checkout that was behind its branch.
    Checkout,
    /// The reservation of a claim that did not finish.
    Reservation,
    /// An agent whose supervisor was killed.
    Registration,
    /// A merge that was not recorded on the blackboard.
    Merge,
    /// The integration branch, which was missing.
    Branch,
    /// Merged work that is not on the integration branch.
    LostMerge,
    /// Work that could not be exchanged with other machines.
    Remote,
    /// A worktree that is missing or incomplete.
    MissingWorktree,
    /// A worktree or branch that no task needs.
    UnneededWorktree,
}

impl FindingKind {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Something that a crash left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// The task, agent, file or process.
    pub subject: String,
    pub found: String,
    /// What was done about it, or why it could not be repaired.
    pub done: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} – {}", self.subject, self.found, self.done)
    }
}

/// The result of `recover`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    pub repaired: Vec<Finding>,
    /// What a person must repair.
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

    /// Notes what could not be repaired.
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
