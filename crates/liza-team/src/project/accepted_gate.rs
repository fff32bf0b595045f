//! The patterns of the gate that the person of this machine accepted. A shared blackboard can add to them,
//! and take nothing away. Kept in the home folder, outside the repository, where neither a merge nor a
//! confined session can change them.

use std::fs;
use std::io;
use std::path::Path;

use liza_core::model::GateSettings;
use liza_git::GitError;
use liza_host::{durable, private};

use crate::project::Project;

/// The patterns that judge merges on this machine. The first merge here accepts those of the blackboard.
pub(crate) fn gate_here(project: &Project, shared: &GateSettings) -> Result<GateSettings, GitError> {
    if !project.store().is_in_database() {
        return Ok(shared.clone());
    }
    let Some(file) = project.repo()?.accepted_gate() else { return Ok(shared.clone()) };
    match read(&file).map_err(|error| GitError::io("reading what you accepted", &file, error))? {
        Some(accepted) => Ok(joined(accepted, shared)),
        None => accept_gate_here(project, shared).map(|()| shared.clone()),
    }
}

pub fn accept_gate_here(project: &Project, settings: &GateSettings) -> Result<(), GitError> {
    match project.repo()?.accepted_gate().filter(|_| project.store().is_in_database()) {
        None => Ok(()),
        Some(file) => {
            write(&file, settings).map_err(|error| GitError::io("keeping what you accepted", &file, error))
        }
    }
}

fn joined(mut accepted: GateSettings, shared: &GateSettings) -> GateSettings {
    let add = |to: &mut Vec<String>, more: &[String]| {
        let missing: Vec<String> = more.iter().filter(|pattern| !to.contains(pattern)).cloned().collect();
        to.extend(missing);
    };
    add(&mut accepted.runs, &shared.runs);
    add(&mut accepted.watched, &shared.watched);
    accepted
}

fn read(file: &Path) -> io::Result<Option<GateSettings>> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => serde_json::from_slice(&read?).map(Some).map_err(io::Error::from),
    }
}

fn write(file: &Path, settings: &GateSettings) -> io::Result<()> {
    file.parent().map_or(Ok(()), private::create_folder)?;
    durable::replace_private_file(file, &serde_json::to_vec(settings)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(runs: &[&str], watched: &[&str]) -> GateSettings {
        let list = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        GateSettings { runs: list(runs), watched: list(watched) }
    }

    /// Covers: JU-01
    #[test]
    fn another_machine_adds_patterns_and_takes_none_away() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("projects/x/gate");
        assert_eq!(read(&file).unwrap(), None);
        let accepted = settings(&["scripts/**"], &["Makefile"]);
        write(&file, &accepted).unwrap();
        assert_eq!(read(&file).unwrap(), Some(accepted.clone()));
        let found = joined(accepted, &settings(&[], &["package.json", "Makefile"]));
        assert_eq!(found, settings(&["scripts/**"], &["Makefile", "package.json"]));
        fs::write(&file, "{").unwrap();
        assert!(read(&file).is_err(), "what cannot be read lowers nothing");
    }
}
