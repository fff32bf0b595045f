//! The parts of the home folder that sessions read: tools and their data. Everything else there is the person's.

use std::path::{Path, PathBuf};

use super::readable::{LeftOut, Look};

/// Toolchains, their packages and their downloads: folders with code. What tools keep beside it can be a login.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".deno/bin",
    ".dotnet/dotnet",
    ".dotnet/host",
    ".dotnet/library-packs",
    ".dotnet/metadata",
    ".dotnet/packs",
    ".dotnet/sdk",
    ".dotnet/sdk-manifests",
    ".dotnet/shared",
    ".dotnet/templates",
    ".dotnet/tools",
    ".elan",
    ".fnm",
    ".foundry/bin",
    ".ghcup",
    ".goenv",
    ".gradle/caches/modules-2",
    ".gradle/wrapper/dists",
    ".ivy2/cache",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx/shared",
    ".local/pipx/venvs",
    ".local/share/fnm",
    ".local/share/mise/installs",
    ".local/share/mise/plugins",
    ".local/share/mise/shims",
    ".local/share/pipx/py",
    ".local/share/pipx/shared",
    ".local/share/pipx/venvs",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
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
    "flutter",
    "go/bin",
    "go/pkg/mod",
];

/// Installations of conda.
const CONDA: &[&str] = &["anaconda3", "mambaforge", "micromamba", "miniconda3", "miniforge3"];

/// Keys and tokens in folders of tools that are readable as a whole: the names in one are those of versions, or a variable
/// names the folder.
const IN_TOOLS: &[&str] = &[".dotnet/corefx*", ".opam/plugins/opam-publish*"];

/// Go's own downloads of other versions of itself, and how their names begin.
const GO_VERSIONS: (&str, &str) = ("sdk", "go1");

/// Folders that many programs share, and so the installation of none.
const OF_MANY: &[&str] = &[".cache", ".config", ".local", ".local/share", ".local/state"];

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

/// Logins that no session reads, also in a folder that is otherwise readable. The stage tries them, so that a setting which opens the home folder is seen.
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

/// The folders of tools in the home folder, besides those of the search path.
pub(super) fn tools_in_home(home: &Path, named: &[PathBuf], yours: &Yours, look: &dyn Look) -> Vec<PathBuf> {
    let known = TOOLS.iter().chain(CONDA).map(|name| home.join(name));
    let (downloads, version) = GO_VERSIONS;
    let is_version = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(version.as_bytes()))
    };
    let versions = look.entries(&home.join(downloads)).into_iter().filter(is_version);
    let named = named.iter().filter(|tool| tool.starts_with(home) && !yours.are_in(tool)).cloned();
    known.chain(versions).chain(named).collect()
}

/// The readable files of the home folder.
pub(super) fn files_in_home(home: &Path, git_settings: &[PathBuf], look: &dyn Look) -> Vec<PathBuf> {
    let is_contract = |path: &PathBuf| path.extension().is_some_and(|extension| extension == CONTRACT);
    let contracts = look.entries(&home.join(CONTRACTS)).into_iter().filter(is_contract);
    git_files(home, git_settings, look).into_iter().chain(contracts).collect()
}

/// Leaves out the logins of the home folder, wherever a tool or its settings would have them granted.
pub(super) fn leave_out_logins(left_out: &mut LeftOut, look: &dyn Look, home: &Path) {
    left_out.add(look, home, CLOSED);
    left_out.add(look, home, IN_TOOLS);
}

/// The files of git's settings, and those that they name below the home folder.
fn git_files(home: &Path, more: &[PathBuf], look: &dyn Look) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = GIT_SETTINGS.iter().map(|name| home.join(name)).collect();
    files.extend(more.iter().cloned());
    let mut next = 0;
    while let Some(file) = files.get(next).cloned().filter(|_| next < SETTINGS_MAX) {
        let named: Vec<PathBuf> =
            look.text(&file).iter().flat_map(|text| named_paths(text, &file, home)).collect();
        files.extend(named.into_iter().filter(|path| path != home && path.starts_with(home)));
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

/// The folders of the person that are the installation of no program, by their names and where links lead.
pub(super) struct Yours {
    homes: Vec<PathBuf>,
    places: Vec<PathBuf>,
}

impl Yours {
    pub(super) fn new(home: Option<&Path>, root: &Path, look: &dyn Look) -> Self {
        let both = |path: &Path| look.real(path).into_iter().chain([path.to_owned()]);
        // The root folder is not a home folder.
        let homes: Vec<PathBuf> =
            home.filter(|home| home.parent().is_some()).into_iter().flat_map(both).collect();
        let of_many = homes.iter().flat_map(|home| OF_MANY.iter().map(|name| home.join(name)));
        let places = of_many.chain([root.to_owned()]).flat_map(|place| both(&place).collect::<Vec<_>>());
        Self { places: places.chain(homes.iter().cloned()).collect(), homes }
    }

    /// A folder of the search path, with the installation beside it.
    pub(super) fn searched(&self, folder: &Path) -> Option<PathBuf> {
        if !folder.is_absolute() {
            return None;
        }
        self.installation(&folder.join("program"))
            .or_else(|| Some(folder.to_owned()).filter(|folder| !self.are_in(folder)))
    }

    /// The folder with everything that belongs to a program and nothing else, as far as its path shows it. At the top of the
    /// home folder, its logins could be there, too.
    pub(super) fn installation(&self, program: &Path) -> Option<PathBuf> {
        let is_modules = |folder: &&Path| folder.file_name().is_some_and(|name| name == "node_modules");
        let parent = program.parent()?;
        let prefix = parent.parent().filter(|_| parent.file_name().is_some_and(|name| name == "bin"));
        let folder = program.ancestors().filter(is_modules).last().or(prefix).unwrap_or(parent);
        let is_at_top = folder.parent().is_some_and(|above| self.homes.iter().any(|home| home == above));
        (!self.are_in(folder) && !is_at_top).then(|| folder.to_owned())
    }

    /// True if a folder is or contains one of them.
    fn are_in(&self, folder: &Path) -> bool {
        folder.parent().is_none() || self.places.iter().any(|place| place.starts_with(folder))
    }
}

/// True if sessions may read a file below the home folder.
pub fn is_read_by_sessions(below_home: &str) -> bool {
    let below_home = Path::new(below_home);
    TOOLS.iter().chain(CONDA).chain(GIT_SETTINGS).any(|readable| below_home.starts_with(readable))
}

/// A path of the settings; `~/` means the home folder.
pub fn expand(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), path, home) {
        (Some(rest), _, Some(home)) => home.join(rest),
        (None, "~", Some(home)) => home.to_owned(),
        (_, path, _) => PathBuf::from(path),
    }
}
