//! The git program and its variables. Nothing inherited may point git at another repository.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use liza_sandbox::sys::find_program_in;

use crate::program::programs::ALWAYS;

/// Git variables that are inherited: they say who and how, never which repository. Other `GIT_` variables are dropped.
const INHERITED: [&str; 11] = [
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
];

/// Variables of every git command: no prompts, English messages, no index written only to speed up the next
/// command, no replacements and grafts, and no transport that runs a program.
pub(crate) const FIXED: [(&str, &str); 13] = [
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // A file that cannot exist: for an empty one, git prints advice.
    ("GIT_GRAFT_FILE", "/dev/null/none"),
    ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
    // Otherwise ssh asks on the terminal that it finds, which may show a screen, and waits there.
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("LC_ALL", "C"),
];

#[derive(Debug, Clone)]
pub struct GitEnvironment {
    pub program: PathBuf,
    /// The program of Liza, which can keep filters.
    pub liza: PathBuf,
    pub variables: Arc<[(OsString, OsString)]>,
}

impl GitEnvironment {
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables: Arc<[(OsString, OsString)]> =
            variables.into_iter().filter(|(name, _)| may_be_inherited(name)).collect();
        let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        // With a full path the standard library can use `posix_spawn`; with a name and another environment it forks.
        let program = find_program_in("git", path.unwrap_or_default()).unwrap_or_else(|| "git".into());
        let liza = std::env::current_exe().unwrap_or_else(|_| "liza".into());
        Self { program, liza, variables }
    }

    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    pub fn home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new).filter(|home| home.is_absolute())
    }

    /// The files of settings that no repository has. A git that was built elsewhere may have another one for the machine.
    pub(crate) fn settings_files(&self) -> Vec<PathBuf> {
        let system =
            self.variable("GIT_CONFIG_SYSTEM").map_or_else(|| "/etc/gitconfig".into(), PathBuf::from);
        if let Some(global) = self.variable("GIT_CONFIG_GLOBAL") {
            return vec![system, global.into()];
        }
        let more = self.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let more = more.or_else(|| self.home().map(|home| home.join(".config")));
        let own = self.home().map(|home| home.join(".gitconfig"));
        [system].into_iter().chain(more.map(|folder| folder.join("git/config"))).chain(own).collect()
    }
}

fn may_be_inherited(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    !text.starts_with("GIT_") || INHERITED.contains(&text.as_ref())
}

/// The variables that set configuration for one command, where a key may contain any character.
pub(crate) fn setting_variables(more: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let always = ALWAYS.iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    let settings: Vec<_> = always.chain(more.iter().cloned()).collect();
    let mut variables = vec![("GIT_CONFIG_COUNT".into(), settings.len().to_string().into())];
    for (number, (key, value)) in settings.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{number}").into(), key));
        variables.push((format!("GIT_CONFIG_VALUE_{number}").into(), value));
    }
    variables
}
