//! Ways for a session to push to the project's remotes: from the files that it could read, and from the kind
//! of their addresses. Contacts no one and reads no secret.

use std::path::{Path, PathBuf};

/// Files below the home folder with logins for remotes over https.
pub const HTTPS_LOGINS: [&str; 5] = [
    ".git-credentials",
    ".netrc",
    ".config/git/credentials",
    ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml",
];

/// Variables with tokens, or with a program that knows one.
pub const TOKEN_VARIABLES: [&str; 4] = ["GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "GIT_CONFIG_COUNT"];

/// The means of a session to push.
#[derive(Default)]
pub struct SessionReach<'a> {
    pub agent: Option<PathBuf>,
    pub keys: Vec<PathBuf>,
    pub logins: Vec<PathBuf>,
    pub tokens: Vec<String>,
    pub reads_addresses: bool,
    /// `None` if it can write to all folders.
    pub writable: Option<&'a [PathBuf]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemoteKind {
    Folder,
    Ssh,
    Https,
}

/// The means with which a session could push to one of these remotes (names and addresses), in words.
pub fn way_to_push(remotes: &[(String, String)], reach: &SessionReach<'_>) -> Option<String> {
    remotes.iter().find_map(|(name, address)| {
        let with = match kind_of(address) {
            RemoteKind::Folder => reach.folder(address),
            RemoteKind::Ssh => reach.ssh(),
            RemoteKind::Https => reach.https(address),
        };
        with.map(|with| format!("a session could push to {name}: {with}"))
    })
}

fn kind_of(address: &str) -> RemoteKind {
    let before = address.split('/').next().unwrap_or_default();
    match address.split_once("://") {
        Some(("https" | "http" | "ftp" | "ftps", _)) => RemoteKind::Https,
        Some(("file", _)) => RemoteKind::Folder,
        Some(_) => RemoteKind::Ssh,
        // As in `git@host:path`.
        None if before.contains(':') => RemoteKind::Ssh,
        None => RemoteKind::Folder,
    }
}

impl SessionReach<'_> {
    fn folder(&self, address: &str) -> Option<String> {
        let folder = Path::new(address.strip_prefix("file://").unwrap_or(address));
        let writes = self.writable.is_none_or(|granted| granted.iter().any(|path| folder.starts_with(path)));
        writes.then(|| format!("it can write to {}", folder.display()))
    }

    fn ssh(&self) -> Option<String> {
        let agent = self.agent.as_ref().map(|socket| format!("it reaches the agent at {}", socket.display()));
        agent.or_else(|| self.keys.first().map(|key| format!("it reads {}", key.display())))
    }

    fn https(&self, address: &str) -> Option<String> {
        let token = self.tokens.first().map(|name| format!("it has the variable {name}"));
        let login = || self.logins.first().map(|file| format!("it reads {}", file.display()));
        let host = address.split('/').nth(2).unwrap_or_default();
        let in_address = || {
            let known = self.reads_addresses && host.contains('@');
            known.then(|| "it reads the login in the remote's address".to_owned())
        };
        token.or_else(login).or_else(in_address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(address: &str, reach: &SessionReach<'_>) -> Option<String> {
        way_to_push(&[("origin".to_owned(), address.to_owned())], reach)
    }

    /// Covers: IS-14
    #[test]
    fn a_session_pushes_with_what_it_can_read() {
        let addresses = ["git@example.com:a/b", "ssh://example.com/a", "https://example.com/a", "/srv/a.git"];
        let nothing = SessionReach { writable: Some(&[]), ..SessionReach::default() };
        assert_eq!(addresses.map(|address| way(address, &nothing)), [None, None, None, None]);
        let key = SessionReach {
            keys: vec!["/home/a/.ssh/id_rsa".into()],
            writable: Some(&[]),
            ..Default::default()
        };
        assert_eq!(addresses.map(|address| way(address, &key).is_some()), [true, true, false, false]);
        let agent =
            SessionReach { agent: Some("/run/agent".into()), writable: Some(&[]), ..Default::default() };
        assert_eq!(addresses.map(|address| way(address, &agent).is_some()), [true, true, false, false]);
        let token =
            SessionReach { tokens: vec!["GH_TOKEN".to_owned()], writable: Some(&[]), ..Default::default() };
        assert_eq!(addresses.map(|address| way(address, &token).is_some()), [false, false, true, false]);
        let login =
            SessionReach { logins: vec!["/home/a/.netrc".into()], writable: Some(&[]), ..Default::default() };
        assert_eq!(
            way("https://example.com/a", &login).as_deref(),
            Some("a session could push to origin: it reads /home/a/.netrc")
        );
        let folder = [PathBuf::from("/srv")];
        let folder = SessionReach { writable: Some(&folder), ..Default::default() };
        assert_eq!(addresses.map(|address| way(address, &folder).is_some()), [false, false, false, true]);
        let with_login = "https://user:token@example.com/a";
        assert!(way(with_login, &SessionReach { reads_addresses: true, ..nothing }).is_some());
    }
}
