//! The embedded contracts and templates: their texts, their installation, and the part for one role. A
//! project's `contracts/` folder takes precedence over `~/.liza`, and that over the embedded texts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::model::Role;
use liza_core::text::one_line;
use liza_host::durable::replace_file;

/// The rules for all modes: mode selection, tiers of invariants.
pub const CORE: &str = include_str!("CORE.md");
/// The rules for one person with one agent.
const PAIRING_MODE: &str = include_str!("PAIRING_MODE.md");
/// The rules for many agents on one blackboard.
pub const MULTI_AGENT_MODE: &str = include_str!("MULTI_AGENT_MODE.md");
const VISION: &str = include_str!("templates/vision-template.md");

/// The template's placeholder for the goal's name.
const VISION_NAME: &str = "[name of the goal]";
/// The template's placeholder for the person's wish.
const VISION_GOAL: &str = "[One or two sentences: who will be able to do what they cannot do now.]";

pub fn vision_template(goal: &str) -> String {
    match one_line(goal, 120) {
        name if name.is_empty() => VISION.to_owned(),
        name => VISION.replace(VISION_NAME, &name),
    }
}

/// True while the placeholder for the person's wish is still there.
pub fn is_vision_template(text: &str) -> bool {
    text.contains(VISION_GOAL)
}

pub const CORE_NAME: &str = "CORE.md";
const MODE_NAME: &str = "MULTI_AGENT_MODE.md";

/// Every text with its file name, relative to the folder where `liza setup` installs it.
pub const FILES: [(&str, &str); 6] = [
    (CORE_NAME, CORE),
    ("PAIRING_MODE.md", PAIRING_MODE),
    (MODE_NAME, MULTI_AGENT_MODE),
    ("templates/vision-template.md", VISION),
    ("templates/adr-template.md", include_str!("templates/adr-template.md")),
    ("templates/README.md", include_str!("templates/README.md")),
];

#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct ContractError {
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ContractError {
    move |source| ContractError { action, path: path.to_owned(), source }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// New and replaced files.
    pub written: Vec<&'static str>,
    /// Files that a person changed; they were not touched.
    pub kept: Vec<&'static str>,
    pub unchanged: Vec<&'static str>,
}

/// Installs every text below `dir`. Files that a person changed stay, unless `force` is given.
pub fn install(dir: &Path, force: bool) -> Result<Installed, ContractError> {
    let mut done = Installed::default();
    for (name, text) in FILES {
        let path = dir.join(name);
        match fs::read(&path) {
            Ok(old) if old == text.as_bytes() => done.unchanged.push(name),
            Ok(_) if !force => done.kept.push(name),
            Ok(_) => write(&path, text).map(|()| done.written.push(name))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write(&path, text).map(|()| done.written.push(name))?;
            }
            Err(error) => return Err(failed("read", &path)(error)),
        }
    }
    Ok(done)
}

/// Writes a text; a kill leaves the old file or the new one.
fn write(path: &Path, text: &str) -> Result<(), ContractError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(failed("create", folder))?;
    replace_file(path, text.as_bytes()).map_err(failed("write", path))
}

/// The contract of one session: its documents, and the part that its role reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// Embedded documents have no path.
    pub paths: Vec<PathBuf>,
    pub text: String,
}

impl Contract {
    pub fn embedded(role: Role) -> Self {
        Self { paths: Vec::new(), text: for_role(CORE, MULTI_AGENT_MODE, role) }
    }

    /// Loads each document from the project's `contracts/`, else from `~/.liza`, else the embedded one.
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

const ROLE_HEADING: &str = "## Role: ";

const GATE_HEADING: &str = "## Mode selection gate";

/// Joins the core rules and the mode document, without the parts for other roles and the mode selection: the
/// prompt states the mode.
pub fn for_role(core: &str, mode: &str, role: Role) -> String {
    let mut text = String::new();
    let mut is_included = true;
    for line in core.trim_end().lines() {
        if line.starts_with("# ") || line.starts_with("## ") {
            is_included = line.trim_end() != GATE_HEADING;
        }
        push_line(&mut text, line, is_included);
    }
    push_line(&mut text, "", true);
    is_included = true;
    for line in mode.lines() {
        if let Some(title) = line.strip_prefix(ROLE_HEADING) {
            is_included = title.trim() == role.title();
        }
        push_line(&mut text, line, is_included);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn push_line(text: &mut String, line: &str, is_included: bool) {
    if is_included {
        text.push_str(line);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: BB-15
    #[test]
    fn the_vision_template_is_named_after_the_goal_and_known_until_it_is_filled_in() {
        assert!(vision_template("Retry\n  everything").starts_with("# Vision: Retry everything\n"));
        assert_eq!(vision_template(""), VISION);
        assert!(VISION.contains(VISION_NAME) && is_vision_template(VISION));
        assert!(!is_vision_template("# Vision\n\nEverything retries.\n"));
    }
}
