//! Changes in the project's own git configuration since the human accepted its programs. A confined session
//! cannot write that configuration; one without a sandbox can. Programs that are not accepted do not run, and
//! merges wait for the human.

use std::fmt;
use std::path::Path;

use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::program::error::GitError;
use crate::program::programs::{ProgramSetting, program_settings};
use crate::program::repo::Repo;

/// The largest configuration file that is searched for words; git reads larger ones.
const LARGEST: u64 = 1 << 20;

/// Words without which a configuration names no program and does not sign.
const WORDS: [&str; 12] = [
    "filter",
    "driver",
    "gpg",
    "signingkey",
    "helper",
    "sshcommand",
    "gitproxy",
    "alternaterefscommand",
    "uploadpack",
    "receivepack",
    "include",
    "worktreeconfig",
];

/// Settings that differ from the accepted ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramChanges {
    pub changes: Vec<ProgramChange>,
    now: Vec<ProgramSetting>,
}

impl ProgramChanges {
    pub fn keys(&self) -> Vec<String> {
        self.changes.iter().map(|change| change.key.clone()).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramChange {
    pub key: String,
    old: Vec<String>,
    new: Vec<String>,
}

impl fmt::Display for ProgramChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |values: &[String]| match values {
            [] => "none".to_owned(),
            values => values.join(", "),
        };
        write!(f, "{}: {} → {}", self.key, shown(&self.old), shown(&self.new))
    }
}

/// The differences in the order of the keys.
fn changes(old: &[ProgramSetting], new: &[ProgramSetting]) -> Vec<ProgramChange> {
    let mut keys: Vec<&Vec<u8>> = old.iter().chain(new).map(|setting| &setting.key).collect();
    keys.sort();
    keys.dedup();
    let of = |settings: &[ProgramSetting], key: &[u8]| -> Vec<String> {
        let found = settings.iter().filter(|setting| setting.key == key);
        found.map(|setting| String::from_utf8_lossy(&setting.value).into_owned()).collect()
    };
    let change = |key: &Vec<u8>| {
        let (old, new) = (of(old, key), of(new, key));
        (old != new).then(|| ProgramChange { key: String::from_utf8_lossy(key).into_owned(), old, new })
    };
    keys.into_iter().filter_map(change).collect()
}

impl Repo {
    /// The settings of the project's own configuration that the human has not accepted as they are. Asks git
    /// only where there can be any.
    pub fn changed_programs(&self) -> Result<ProgramChanges, GitError> {
        let accepted = self.accepted().read();
        if accepted.is_empty() && !self.may_name_programs() {
            return Ok(ProgramChanges::default());
        }
        let now = self.program_settings()?;
        Ok(ProgramChanges { changes: changes(&accepted, &now), now })
    }

    /// Accepts the settings as they were when the person saw them.
    pub fn accept_programs(&self, seen: &ProgramChanges) -> Result<(), GitError> {
        if seen.changes.is_empty() {
            return Ok(());
        }
        let path = self.accepted().file.clone().unwrap_or_default();
        let keep = self.accepted().write(&seen.now);
        keep.map_err(|error| GitError::io("keeping what you accepted", &path, error))
    }

    fn program_settings(&self) -> Result<Vec<ProgramSetting>, GitError> {
        Ok(program_settings(&self.settings()?))
    }

    fn may_name_programs(&self) -> bool {
        let folder = UntrustedFolder::open_yours(self.common_dir());
        let Ok(text) = folder.and_then(|folder| folder.read(Path::new("config"), LARGEST)) else {
            return true;
        };
        let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: &str) -> ProgramSetting {
        ProgramSetting { key: key.into(), value: value.into() }
    }

    /// Covers: IS-08
    #[test]
    fn each_changed_setting_is_named_with_both_values() {
        let old = [
            setting("filter.x.clean", "a"),
            setting("credential.helper", "one"),
            setting("gpg.program", "g"),
        ];
        let new = [
            setting("filter.x.clean", "b"),
            setting("credential.helper", "one"),
            setting("merge.m.driver", "d"),
        ];
        let texts: Vec<String> = changes(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["filter.x.clean: a → b", "gpg.program: g → none", "merge.m.driver: none → d"]);
        assert_eq!(changes(&old, &old), []);
    }
}
