//! `.liza/store.yaml` names the database with the blackboard of this project. Never has a password.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use liza_host::durable::{read_file, replace_private_file, sync_folder};
use liza_host::private;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::yaml::{self, YamlError, to_value};

use super::Address;

const NAME: &str = "store.yaml";

#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    pub address: Address,
    pub name: String,
}

impl DatabaseSettings {
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("{} (project {})", self.address, self.name))
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    address: String,
    project: String,
}

pub fn settings_file(root: &Path) -> PathBuf {
    root.join(".liza").join(NAME)
}

/// `None` if the blackboard is a file.
pub(crate) fn settings_of(root: &Path) -> Result<Option<DatabaseSettings>, StoreError> {
    let path = settings_file(root);
    let bytes = match read_file(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    let broken = |message: String| StoreError::broken(&path, YamlError::new(message));
    let text = String::from_utf8(bytes).map_err(|_| broken("not valid UTF-8".to_owned()))?;
    let file: SettingsFile = yaml::read(&text).map_err(|error| broken(error.to_string()))?;
    let address = file.address.parse().map_err(|error| broken(format!("address: {error}")))?;
    Ok(Some(DatabaseSettings { address, name: file.project }))
}

pub(crate) fn write_settings(root: &Path, settings: &DatabaseSettings) -> Result<(), StoreError> {
    let path = settings_file(root);
    let folder = root.join(".liza");
    if fs::symlink_metadata(folder.join("state.yaml")).is_ok() {
        return Err(StoreError::Exists { path: folder.join("state.yaml") });
    }
    private::create_folder(&folder).map_err(StoreError::io("create", &folder))?;
    let file = SettingsFile { address: settings.address.to_string(), project: settings.name.clone() };
    let value = to_value(&file).map_err(|source| StoreError::Encode { path: path.clone(), source })?;
    let text = value.as_map().map(yaml::document).unwrap_or_default();
    replace_private_file(&path, text.as_bytes()).map_err(StoreError::io("write", &path))?;
    sync_folder(&folder).map_err(StoreError::io("sync", &folder))
}
