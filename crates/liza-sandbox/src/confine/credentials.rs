//! Files that no session may read although their folder is readable. A final `*` matches the rest of a name.

pub(super) const IN_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".vault-token",
    ".cargo/credentials*",
    ".gem/credentials",
    ".terraform.d/credentials*",
    ".m2/settings-security.xml",
    ".s3cfg",
    ".boto",
    ".config/containers/auth.json",
    ".config/github-copilot",
    ".config/sops",
    ".config/age",
    ".config/gh",
    ".config/glab",
    ".config/gcloud",
    ".config/git",
    ".config/hub",
    ".config/doctl",
    ".config/rclone",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    // Keyrings and password managers.
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".password-store",
    "Library/Keychains",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome*",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge*",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    "Library/Application Support/Google",
    "Library/Application Support/Firefox",
    "Library/Cookies",
    // Typed input, secrets included.
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".local/share/fish/fish_history",
    // Logins of agent programs, current and former: a session gets its own copy.
    ".claude/.credentials.json*",
    ".claude.json*",
    ".codex/auth.json*",
    ".gemini/oauth_creds.json*",
    ".gemini/google_accounts.json*",
    ".config/goose/secrets.yaml*",
    ".local/share/opencode/auth.json*",
    ".vibe/.env",
];

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
pub(super) const IN_GIT: &[&str] = &["config", "config.worktree", "FETCH_HEAD", "liza", "logs"];

/// Below each repository of a submodule.
pub(super) const IN_MODULE: &[&str] = &["config", "FETCH_HEAD", "logs"];

/// True if sessions may not read a file below the home folder.
pub fn is_kept_from_sessions(below_home: &str) -> bool {
    let is_hidden = |hidden: &&str| match hidden.strip_suffix('*') {
        Some(start) => below_home.starts_with(start),
        None => below_home == *hidden || below_home.starts_with(&format!("{hidden}/")),
    };
    IN_HOME.iter().any(is_hidden)
}
