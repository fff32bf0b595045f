//! The result of one pair in one arm, as the oracles see it.

use liza_core::model::FactKind;

use crate::work::Content;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What the oracles of misbehaviours ask.
    pub seen: Seen,
    pub merged: bool,
    /// True if the hidden tests fail on the merged head, or git has what no one approved.
    pub defective: bool,
    /// True if a rework has broken correct work.
    pub harmed: bool,
    /// True if correct work was blocked.
    pub false_block: bool,
    /// True if the task waits for the human.
    pub asked: bool,
    pub unended: bool,
    pub sessions: u32,
    pub found_by_tests: bool,
    pub found_by_review: bool,
    /// What no run may have: broken invariants, merges without an approval of exactly that commit.
    pub faults: Vec<String>,
}

/// What can be seen of one pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub submissions: Vec<Submission>,
    pub verdicts: Vec<Spoken>,
    /// The sessions of coders.
    pub sessions: Vec<CodingSession>,
    /// True if the worktree had another head than the commit under review.
    pub has_later_commits: bool,
}

/// A submission; of a single agent, what it calls done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Submission {
    pub content: Content,
    /// What git counts in the change.
    pub facts: Vec<FactKind>,
    /// True if the worktree had more than its commit.
    pub is_dirty: bool,
    /// True if the branch had moved since the worktree was made.
    pub is_stale: bool,
    pub is_accepted: bool,
}

/// A verdict, and the process that spoke it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spoken {
    pub speaker: Speaker,
    pub approves: bool,
    /// True if its evidence is a template that nobody has filled.
    pub is_unfilled: bool,
    pub is_accepted: bool,
}

/// The process that gives a verdict, whoever it says that it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speaker {
    pub is_coder: bool,
    /// True if its agent has been registered again since it began.
    pub is_replaced: bool,
    /// True if it has not read the change.
    pub is_blind: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodingSession {
    pub is_over_time: bool,
    pub has_result: bool,
}
