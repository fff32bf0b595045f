//! The reasons that the merge of an approved task waits, and its change of the gate.
//!
//! Plain data. `rules::claimable` decides if a hold is still in effect.

use std::fmt;
use std::str::FromStr;

use liza_ids::{Sha, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::goal::TestFailure;

/// The reason that a merge waits. In the file it is one word: `head-SHA` or `gate-NUMBER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeHold {
    /// The integration test fails on this head with and without the task.
    HeadFails(Sha),
    /// The task changes what judges it. In effect while `goal.gate_version` has this number.
    Gate(u32),
}

impl fmt::Display for MergeHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeHold::HeadFails(head) => write!(f, "head-{head}"),
            MergeHold::Gate(version) => write!(f, "gate-{version}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no reason for a merge to wait: expected head-SHA or gate-NUMBER")]
pub struct MergeHoldError(String);

impl FromStr for MergeHold {
    type Err = MergeHoldError;

    fn from_str(text: &str) -> Result<Self, MergeHoldError> {
        let hold = match text.split_once('-') {
            Some(("head", head)) => head.parse().ok().map(MergeHold::HeadFails),
            Some(("gate", version)) => version.parse().ok().map(MergeHold::Gate),
            Some(_) | None => None,
        };
        hold.ok_or_else(|| MergeHoldError(text.to_owned()))
    }
}

impl Serialize for MergeHold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MergeHold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A change of protected files by a task, and the human's word on exactly this change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateChange {
    pub commit: Sha,
    /// The digest of the protected files of the integration branch.
    pub before: String,
    /// The digest of the protected files of the merge.
    pub after: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The failure under the integration branch's protected files; absent if it passes or has no test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_failure: Option<TestFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<GateAcceptance>,
}

/// The human's word on a change of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateAcceptance {
    pub time: Timestamp,
    /// If true, it is valid although the merge fails under the old gate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub old_fails: bool,
}

impl GateChange {
    /// True if both are the same change of the same commit.
    pub fn is_same(&self, other: &GateChange) -> bool {
        self.commit.names_same_commit(&other.commit)
            && self.before == other.before
            && self.after == other.after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: JU-01
    #[test]
    fn a_hold_is_one_word_that_is_read_back() {
        let head: Sha = "0123456789012345678901234567890123456789".parse().unwrap();
        for hold in [MergeHold::HeadFails(head), MergeHold::Gate(7)] {
            assert_eq!(hold.to_string().parse::<MergeHold>().unwrap(), hold);
            let text = serde_json::to_string(&hold).unwrap();
            assert_eq!(serde_json::from_str::<MergeHold>(&text).unwrap(), hold);
        }
        for wrong in ["", "gate", "gate-x", "head-", "0123456"] {
            assert!(wrong.parse::<MergeHold>().is_err(), "{wrong}");
        }
    }
}
