//! The parts of the home folder that sessions read: tools and their data. Everything else there is the person's.

use std::path::{Path, PathBuf};

use super::readable::Look;

/// Toolchains, their packages and their downloads. None of these folders has a file with a login.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".deno/bin",
    ".dotnet",
    ".elan",
    ".fnm",
    ".foundry/bin",
    ".ghcup",
    ".goenv",
    ".gradle/caches",
    ".gradle/wrapper",
    ".ivy2/cache",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2/repository",
    ".nix-profile",
    ".nuget/packages",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".stack/programs",
    ".stack/snapshots",
    ".volta",
    "Android/Sdk",
    "anaconda3",
    "flutter",
    "go/bin",
    "go/pkg/mod",
    "mambaforge",
    "micromamba",
    "miniconda3",
    "miniforge3",
    "sdk",
];

/// Git's settings. A git that cannot read them does not start.
const GIT_SETTINGS: &[&str] =
    &[".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];

/// Settings of git that name a file or a folder which git needs.
const NAMED_BY_GIT: &[&str] = &[
    "path",
    "excludesfile",
    "attributesfile",
    "hookspath",
    "templatedir",
    "template",
    "clean",
    "smudge",
    "process",
];

/// Settings can include others; so many files are read at most.
const SETTINGS_MAX: usize = 16;

/// Logins that no session reads. The stage tries them, so that a setting which opens the home folder is seen.
pub(super) const CLOSED: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".config/gh",
    ".mozilla",
];

/// True if a path leads to logins of the person, which nobody should be asked to open, or if there is no home folder to
/// know that by.
pub fn has_logins(path: &Path, home: Option<&Path>) -> bool {
    let Some(home) = home else { return true };
    path == home || CLOSED.iter().any(|name| path.starts_with(home.join(name)))
}

/// Contracts of agents, which prompts name.
const CONTRACTS: &str = ".liza";
const CONTRACT: &str = "md";

/// The readable parts of the home folder, besides the folders of the search path.
pub(super) fn readable_in_home(
    home: &Path,
    tools: &[PathBuf],
    git_settings: &[PathBuf],
    look: &dyn Look,
) -> Vec<PathBuf> {
    let is_contract = |path: &PathBuf| path.extension().is_some_and(|extension| extension == CONTRACT);
    let contracts = look.entries(&home.join(CONTRACTS)).into_iter().filter(is_contract);
    let settings = git_files(home, git_settings, look);
    let known = TOOLS.iter().map(|name| home.join(name));
    let named = tools.iter().filter(|tool| is_below(tool, home)).cloned();
    known.chain(named).chain(settings).chain(contracts).collect()
}

/// The files of git's settings, and those that they name below the home folder.
fn git_files(home: &Path, more: &[PathBuf], look: &dyn Look) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = GIT_SETTINGS.iter().map(|name| home.join(name)).collect();
    files.extend(more.iter().cloned());
    let mut next = 0;
    while let Some(file) = files.get(next).cloned().filter(|_| next < SETTINGS_MAX) {
        let named: Vec<PathBuf> =
            look.text(&file).iter().flat_map(|text| named_paths(text, &file, home)).collect();
        files.extend(named.into_iter().filter(|path| is_below(path, home)));
        next += 1;
    }
    files
}

/// The paths that a file of git's settings names.
fn named_paths(text: &str, file: &Path, home: &Path) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(home);
    let named = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let is_path = NAMED_BY_GIT.contains(&key.trim().to_lowercase().as_str());
        let value = value.trim().trim_matches('"').split(' ').next().unwrap_or_default();
        let is_command = key.trim() != "path" && !value.contains('/');
        (is_path && !value.is_empty() && !is_command).then(|| folder.join(expand(value, Some(home))))
    };
    text.lines().filter_map(named).collect()
}

/// True if a folder lies below the home folder, and does not contain most of it.
fn is_below(folder: &Path, home: &Path) -> bool {
    folder.strip_prefix(home).is_ok_and(|below| below.components().count() > 0)
}

/// The installation folder that belongs to a folder of the search path: its parent could be `~/.local`.
pub(super) fn is_deep(folder: &Path, home: Option<&Path>) -> bool {
    home.and_then(|home| folder.strip_prefix(home).ok()).is_none_or(|below| below.components().count() > 1)
}

/// True if sessions may read a file below the home folder.
pub fn is_read_by_sessions(below_home: &str) -> bool {
    let below_home = Path::new(below_home);
    TOOLS.iter().chain(GIT_SETTINGS).any(|readable| below_home.starts_with(readable))
}

/// A path of the settings; `~/` means the home folder.
pub fn expand(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), path, home) {
        (Some(rest), _, Some(home)) => home.join(rest),
        (None, "~", Some(home)) => home.to_owned(),
        (_, path, _) => PathBuf::from(path),
    }
}
