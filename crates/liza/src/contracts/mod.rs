//! The contracts and templates that the program brings along: the texts, their installation, and what of them one role
//! has to read.
//!
//! A project's own `contracts/` folder comes before `~/.liza`, which comes before the embedded texts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::agent::Role;
use liza_store::durable::replace_file;

/// Universal rules, mode selection gate, tiers of invariants.
pub const CORE: &str = include_str!("CORE.md");
/// One person, one agent.
pub const PAIRING_MODE: &str = include_str!("PAIRING_MODE.md");
/// Many agents, one blackboard.
pub const MULTI_AGENT_MODE: &str = include_str!("MULTI_AGENT_MODE.md");
/// A vision document to fill in.
pub const VISION: &str = include_str!("templates/vision-template.md");

/// What the universal rules are called on disk.
pub const CORE_NAME: &str = "CORE.md";
const MODE_NAME: &str = "MULTI_AGENT_MODE.md";

/// Every text by the name under which `liza setup` installs it.
pub const FILES: [(&str, &str); 6] = [
    (CORE_NAME, CORE),
    ("PAIRING_MODE.md", PAIRING_MODE),
    (MODE_NAME, MULTI_AGENT_MODE),
    ("templates/vision-template.md", VISION),
    ("templates/adr-template.md", include_str!("templates/adr-template.md")),
    ("templates/README.md", include_str!("templates/README.md")),
];

/// The embedded text of that name.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// A text that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct ContractError {
    /// What was being done.
    pub action: &'static str,
    /// To what.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ContractError {
    move |source| ContractError { action, path: path.to_owned(), source }
}

/// What an installation did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Files that are new or were replaced.
    pub written: Vec<&'static str>,
    /// Files that a person had changed, and that were left alone.
    pub kept: Vec<&'static str>,
    /// Files that were there already, just so.
    pub unchanged: Vec<&'static str>,
}

/// Installs every text below `dir`. What a person has changed there stays, unless `force` is given.
pub fn install(dir: &Path, force: bool) -> Result<Installed, ContractError> {
    let mut done = Installed::default();
    for (name, text) in FILES {
        let path = dir.join(name);
        match fs::read(&path) {
            Ok(old) if old == text.as_bytes() => done.unchanged.push(name),
            Ok(_) if !force => done.kept.push(name),
            Ok(_) => put(&path, text).map(|()| done.written.push(name))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                put(&path, text).map(|()| done.written.push(name))?;
            }
            Err(error) => return Err(failed("read", &path)(error)),
        }
    }
    Ok(done)
}

/// Writes a text; a kill leaves the old file or the new one.
fn put(path: &Path, text: &str) -> Result<(), ContractError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(failed("create", folder))?;
    replace_file(path, text.as_bytes()).map_err(failed("write", path))
}

/// The contract of one session: where its documents are, and what of them its role has to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// Where the documents are; none where the embedded ones hold.
    pub paths: Vec<PathBuf>,
    /// The rules for this role.
    pub text: String,
}

impl Contract {
    /// The embedded contract.
    pub fn embedded(role: Role) -> Self {
        Self { paths: Vec::new(), text: for_role(CORE, MULTI_AGENT_MODE, role) }
    }

    /// The contract that holds in a project: each document from the project's `contracts/`, else from `~/.liza`, else
    /// as embedded.
    pub fn load(project: &Path, home: Option<&Path>, role: Role) -> Result<Self, ContractError> {
        let mut folders = vec![project.join("contracts")];
        folders.extend(home.map(|home| home.join(".liza")));
        let mut paths = Vec::new();
        let core = read_first(&folders, CORE_NAME, CORE, &mut paths)?;
        let mode = read_first(&folders, MODE_NAME, MULTI_AGENT_MODE, &mut paths)?;
        Ok(Self { paths, text: for_role(&core, &mode, role) })
    }
}

fn read_first(
    folders: &[PathBuf],
    name: &str,
    embedded: &str,
    paths: &mut Vec<PathBuf>,
) -> Result<String, ContractError> {
    for path in folders.iter().map(|folder| folder.join(name)) {
        match fs::read_to_string(&path) {
            Ok(text) => {
                paths.push(path);
                return Ok(text);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &path)(error)),
        }
    }
    Ok(embedded.to_owned())
}

/// How a role's own part begins in the mode document.
const ROLE_HEADING: &str = "## Role: ";

/// The core and, of the mode, what is for all and what is for this role.
pub fn for_role(core: &str, mode: &str, role: Role) -> String {
    let mut text = format!("{}\n\n", core.trim_end());
    let mut reading = true;
    for line in mode.lines() {
        if let Some(title) = line.strip_prefix(ROLE_HEADING) {
            reading = title.trim() == role.title();
        }
        if reading {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
