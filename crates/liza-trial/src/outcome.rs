//! The result of one pair in one arm, as the oracles see it.

use crate::arms::Script;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// True if the script did what it is about. What did not take place is not counted as survived.
    pub occurred: bool,
    pub merged: bool,
    /// True if the hidden tests fail on the merged head, or git has what no one approved.
    pub defective: bool,
    /// True if a misbehaviour against the protocol had its effect.
    pub broke_protocol: bool,
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

impl Outcome {
    /// True if the defect, or the effect of the script, got through.
    pub fn escaped(&self, script: Option<Script>) -> bool {
        match script {
            Some(Script::ForgesEvidence | Script::ApprovesItself | Script::LateVerdict) => {
                self.broke_protocol
            }
            Some(Script::Hangs | Script::Loops) => self.unended,
            Some(_) | None => self.merged && self.defective,
        }
    }
}
