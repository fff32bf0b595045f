//! The settings of a shared blackboard that the person of this machine accepted. Kept in the home folder,
//! outside the repository, where neither a merge nor a confined session can change them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::{Board, Config, Loaded};
use liza_core::rules::accepted_settings::as_accepted;
use liza_host::{durable, private};

use crate::codec::settings_to_write;
use crate::error::StoreError;
use crate::yaml;

#[derive(Debug, Clone)]
pub struct AcceptedSettings {
    file: PathBuf,
}

impl AcceptedSettings {
    /// Those of the project in this folder. Without a home folder nothing is accepted, and nothing can be.
    pub fn of(root: &Path) -> Self {
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let place = root.strip_prefix("/").unwrap_or(&root);
        Self { file: home.join(".config/liza/projects").join(place).join(".liza/settings.yaml") }
    }

    /// The defaults if nothing was accepted, or if it cannot be read.
    pub fn read(&self) -> Config {
        let text = fs::read_to_string(&self.file).ok().filter(|_| self.file.is_absolute());
        text.and_then(|text| yaml::read(&text).ok()).unwrap_or_default()
    }

    pub fn write(&self, accepted: &Config) -> Result<(), StoreError> {
        let failed = |action| StoreError::io(action, &self.file);
        let text = settings_to_write(accepted)
            .map_err(|source| StoreError::Encode { path: self.file.clone(), source })?;
        let text = text.as_map().map_or_else(String::new, yaml::document);
        self.file.parent().map_or(Ok(()), private::create_folder).map_err(failed("create"))?;
        durable::replace_private_file(&self.file, text.as_bytes()).map_err(failed("write"))
    }

    /// Leaves out what was not accepted.
    pub fn apply(&self, board: &mut Board) {
        if let Loaded::Ready(config) = &mut board.config {
            *config = as_accepted(std::mem::take(config), &self.read());
        }
    }
}
