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
