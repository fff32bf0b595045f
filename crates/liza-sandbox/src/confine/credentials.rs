//! Files that no session may read although their folder is readable. A final `*` matches the rest of a name.

/// Below `/etc`, for a person who works as root.
pub(super) const IN_ETC: &[&str] = &[
    "shadow*",
    "gshadow*",
    "sudoers",
    "sudoers.d",
    "ssl/private",
    "ssh/ssh_host_*",
    "krb5.keytab",
    "wireguard",
];

/// Below the project's `.git`: remote addresses may contain tokens, and `liza` has a copy of the blackboard.
pub(super) const IN_GIT: &[&str] = &["config*", "FETCH_HEAD", "liza", "logs"];

/// Below each repository of a submodule.
pub(super) const IN_MODULE: &[&str] = &["config", "FETCH_HEAD", "logs"];

/// In folders of tools, wherever they are: settings of package managers, of which each installation and environment can have
/// its own, with tokens. A tool starts without them.
pub(super) const IN_TOOL_FOLDERS: &[&str] = &[
    ".condarc*",
    ".env",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".yarnrc*",
    "NuGet.Config",
    "_netrc",
    "auth.json",
    "auth.toml",
    "condarc*",
    "credentials*",
    "gradle.properties",
    "npmrc",
    "nuget.config",
    "pip.conf",
];

/// So many folders lie above these at most: `.volta/tools/image/node/22/etc`.
pub(super) const LEVELS_OF_TOOLS: usize = 5;

/// Folders of an installation with its code and its packages: thousands of files, and no settings.
pub(super) const CODE: &[&str] = &[
    ".git",
    "bin",
    "cache",
    "include",
    "lib",
    "lib64",
    "libexec",
    "mod",
    "modules-2",
    "node_modules",
    "packages",
    "pkgs",
    "repository",
    "share",
    "snapshots",
    "src",
    "store",
];
