//! The shared settings file `liza.yaml`: read, checked, and used only after the human has accepted its
//! content. The acceptance is kept outside the repository, out of reach of merges and agents.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_agents::providers::check_sections;
use liza_core::model::{Config, Fields, NEVER_SHARED, TEAM_FILE, out_of_range};
use liza_core::rules::misspelled::{unknown_part_of_gate, unknown_part_of_roles, unknown_settings};
use liza_git::GitError;
use liza_host::{durable, private};
use liza_store::yaml;
use liza_store::yaml::YamlError;

use crate::project::Project;

const LARGEST: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct TeamFileContent {
    /// The name that git gives to the content.
    pub hash: String,
    pub values: Fields,
}

#[derive(Debug, thiserror::Error)]
pub enum TeamFileError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{TEAM_FILE}: {0}")]
    Invalid(String),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("HOME is not set, so what you accept cannot be kept")]
    NoHome,
}

/// `None` if the project has no such file.
pub fn read(project: &Project) -> Result<Option<TeamFileContent>, TeamFileError> {
    let path = project.root().join(TEAM_FILE);
    let failed = |source| TeamFileError::Io { action: "read", path: path.clone(), source };
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(data) if !data.is_file() || data.len() > LARGEST => {
            return Err(TeamFileError::Invalid(
                "it is not a regular file, or is larger than 1 MiB".to_owned(),
            ));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(&path).map_err(failed)?;
    let values = parse(&text).map_err(TeamFileError::Invalid)?;
    Ok(Some(TeamFileContent { hash: project.repo()?.blob_id(text.as_bytes())?.to_string(), values }))
}

fn parse(text: &str) -> Result<Fields, String> {
    let values: Option<Fields> = yaml::read(text).map_err(with_place)?;
    let values = values.unwrap_or_default();
    if let Some(key) = values.keys().find(|key| NEVER_SHARED.contains(&key.as_str())) {
        return Err(format!(
            "{key} cannot be set in {TEAM_FILE}; set it in the project: liza config {key} VALUE"
        ));
    }
    if let [key, ..] = unknown_settings(&values).as_slice() {
        return Err(format!("{key} is not a setting (liza config lists them)"));
    }
    if let Some(wrong) = out_of_range(&values) {
        return Err(wrong.to_string());
    }
    let config = yaml::read::<Option<Config>>(text).map_err(with_place)?.unwrap_or_default();
    if let Some(wrong) = unknown_part_of_roles(&config.roles).or_else(|| unknown_part_of_gate(&values)) {
        return Err(wrong);
    }
    check_sections(&config).map_err(|error| error.to_string())?;
    Ok(values)
}

fn with_place(error: YamlError) -> String {
    let place = error.position.map(|position| format!("{position}: ")).unwrap_or_default();
    let key = error.key.map(|key| format!("{key}: ")).unwrap_or_default();
    format!("{place}{key}{}", error.message)
}

pub fn is_accepted(home: Option<&Path>, root: &Path, hash: &str) -> bool {
    let accepted = home.and_then(|home| fs::read_to_string(kept_in(home)).ok()).unwrap_or_default();
    accepted.lines().any(|line| line == entry(root, hash))
}

pub fn accept(home: Option<&Path>, root: &Path, hash: &str) -> Result<(), TeamFileError> {
    let path = kept_in(home.ok_or(TeamFileError::NoHome)?);
    let failed = |source| TeamFileError::Io { action: "write", path: path.clone(), source };
    let old = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(failed)?,
    };
    let mut lines: Vec<&str> = old.lines().collect();
    let new = entry(root, hash);
    if !lines.contains(&new.as_str()) {
        lines.push(&new);
    }
    if let Some(folder) = path.parent() {
        private::create_folder(folder).map_err(failed)?;
    }
    durable::replace_private_file(&path, format!("{}\n", lines.join("\n")).as_bytes()).map_err(failed)
}

fn kept_in(home: &Path) -> PathBuf {
    home.join(".config/liza/accepted")
}

fn entry(root: &Path, hash: &str) -> String {
    format!("{hash} {}", root.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-11
    #[test]
    fn a_file_with_a_mistake_is_refused_with_its_place() {
        assert_eq!(parse("").unwrap(), Fields::new());
        assert_eq!(parse("max_crashes: 2\nroles: {coder: {count: 4}}\n").unwrap().len(), 2);
        let refused = |text: &str| parse(text).unwrap_err();
        assert!(refused("sandbox: off").contains("cannot be set in liza.yaml"));
        assert!(refused("max_crashse: 2").contains("max_crashse is not a setting"));
        assert!(refused("max_crashes: 0").contains("allowed: 1 to"));
        assert!(refused("max_crashes: [1]").contains("line 1"), "{}", refused("max_crashes: [1]"));
        assert!(refused("- a").contains("line 1"), "{}", refused("- a"));
        assert!(refused("roles: {coder: {coun: 3}}").starts_with("roles.coder.coun is not a setting"));
        assert!(refused("gate: {run: [x]}").starts_with("gate.run is not a setting"));
        assert!(refused("roles: {codr: claude}").starts_with("codr is not a role"));
        assert!(refused("roles: {coder: {count: many}}").contains("roles.coder: count must be a number"));
        assert!(refused("providers: {mine: {argv: [x]}}").contains("providers.mine: unknown key argv"));
        assert!(
            refused("budget: {day: {token: 5}}").contains("token"),
            "{}",
            refused("budget: {day: {token: 5}}")
        );
    }
}
