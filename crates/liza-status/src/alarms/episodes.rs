//! The raised alarms: an episode lasts while its condition is true.

use std::collections::BTreeSet;

use liza_core::model::Sha;

use super::{Alarm, AlarmKind};

/// The keys of the raised alarms that are still true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Episodes(pub BTreeSet<String>);

impl Episodes {
    /// Returns the new alarms and remembers all current ones. A condition that ended may be raised again.
    pub fn advance(&mut self, current: &[Alarm]) -> Vec<Alarm> {
        let fresh = current.iter().filter(|alarm| !self.0.contains(&alarm.key())).cloned().collect();
        self.0 = current.iter().map(Alarm::key).collect();
        fresh
    }

    /// The same if the blackboard could not be read: an unseen alarm may still be true, so none is forgotten.
    pub fn advance_blind(&mut self, current: &[Alarm]) -> Vec<Alarm> {
        let before = std::mem::take(&mut self.0);
        let fresh = current.iter().filter(|alarm| !before.contains(&alarm.key())).cloned().collect();
        self.0 = before.into_iter().chain(current.iter().map(Alarm::key)).collect();
        fresh
    }
}

/// True if an alarm with this key may be true unseen: commits on the remote's branch are seen when the branch
/// here has followed. They are settled when they are the recorded head.
pub fn is_seen_late(key: &str, recorded: Option<&Sha>) -> bool {
    let head = key.strip_prefix(&format!("{}:", AlarmKind::ForeignCommits));
    head.is_some_and(|head| recorded.is_none_or(|recorded| head != recorded.as_str()))
}
