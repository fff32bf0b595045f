//! Agent programs of the team that had no login when it started. The start of a team keeps them in a file,
//! since other commands don't know its programs; each look searches again, in its own environment, so that an
//! entry ends with the login.

use std::fs;
use std::path::{Path, PathBuf};

use liza_agents::providers::{LoginAdvice, LoginPlaces, missing_logins};
use liza_core::model::Config;
use liza_host::{durable, private};
use liza_status::alarms::MissingLogin;

const LONGEST: u64 = 4096;

/// Keeps the names of the programs that a team starts without a login.
pub fn record(folder: &Path, names: &[&str]) {
    // Without it, only an entry of the screens is missing.
    let file = file(folder);
    let _ = match names.is_empty() {
        true => durable::remove_if_present(&file),
        false => {
            let made = file.parent().map_or(Ok(()), private::create_folder);
            made.and_then(|()| durable::replace_private_file(&file, names.join("\n").as_bytes()))
        }
    };
}

/// The recorded programs that still have no login.
pub fn look(folder: &Path, config: &Config, places: &LoginPlaces<'_>) -> Vec<MissingLogin> {
    let file = file(folder);
    let is_small = fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST);
    let text = if is_small { durable::read_text(&file).unwrap_or_default() } else { String::new() };
    let names: Vec<String> = text.lines().map(str::to_owned).collect();
    let missing = missing_logins(config, places, &names).into_iter();
    let login = |(client, LoginAdvice { command, more })| MissingLogin { client, command, more };
    missing.map(login).collect()
}

fn file(folder: &Path) -> PathBuf {
    folder.join("agent-locks").join("missing-logins")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-03
    #[test]
    fn a_program_is_listed_until_it_has_a_login() {
        let home = tempfile::tempdir().unwrap();
        let places = LoginPlaces { home: Some(home.path()), variable: &|_| None };
        let found = || {
            look(home.path(), &Config::default(), &places)
                .into_iter()
                .map(|login| login.client)
                .collect::<Vec<_>>()
        };
        assert!(found().is_empty());
        // It is unknown whether a program of the settings, or the rehearsal, has a login.
        record(home.path(), &["codex", "rehearsal", "own"]);
        assert_eq!(found(), ["codex"]);
        fs::create_dir(home.path().join(".codex")).unwrap();
        fs::write(home.path().join(".codex/auth.json"), "{}").unwrap();
        assert!(found().is_empty());
        fs::remove_file(home.path().join(".codex/auth.json")).unwrap();
        record(home.path(), &[]);
        assert!(found().is_empty());
    }
}
