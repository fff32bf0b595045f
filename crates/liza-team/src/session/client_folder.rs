//! A private folder for the agent program of a session: its settings and its login as copies, so that a
//! session changes neither for others. Made and removed outside. `login_copies` writes refreshed logins back.

use std::io;
use std::path::{Path, PathBuf};

use liza_agents::providers::ClientHome;
use liza_host::private;
use liza_host::secrets::Masker;
use liza_sandbox::sys::remove_tree::{fresh_folder, remove_tree};
use serde::{Deserialize, Serialize};

use crate::session::conversations::KeptConversations;
use crate::session::login_copies::{LoginCopies, small_file};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFolder {
    pub path: PathBuf,
    /// Its first content.
    copies: Vec<FileCopy>,
    /// The conversations, if they are kept.
    kept: Option<KeptConversations>,
}

/// A file of the person's and its place in the private folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileCopy {
    from: PathBuf,
    to: PathBuf,
    /// True for a login, which is written back when the program has refreshed it.
    is_login: bool,
}

/// Every session: git reads its settings there, and would fail at a folder that it cannot read.
const CONFIG_FOLDER: (&str, &str) = ("XDG_CONFIG_HOME", ".config");
const GIT_FILES: &[&str] = &[".config/git/ignore", ".config/git/attributes"];

/// Copied files that don't steer a program: its state, keys.
const OTHER_FILES: &[&str] = &[".claude.json", ".env", "installation_id"];

impl ClientFolder {
    /// The folder for a session of a program with these files, and the variables that lead there. `variable` gives the person's.
    pub fn plan(
        path: PathBuf,
        client: &ClientHome,
        home: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> (Self, Vec<(String, String)>) {
        let mut folder = Self { path, copies: Vec::new(), kept: None };
        let mut variables = vec![folder.variable(CONFIG_FOLDER.0, CONFIG_FOLDER.1)];
        if let Some(home) = home {
            folder.copy(home, Path::new(""), GIT_FILES, false);
        }
        let own = client.variable.as_deref().and_then(variable);
        let from = own.clone().or_else(|| Some(home?.join(&client.folder)));
        if let Some(from) = &from {
            folder.copy(from, Path::new(&client.folder), &client.files, false);
            folder.copy(from, Path::new(&client.folder), &client.logins, true);
        }
        // Without the variable, these files lie beside the folder.
        let beside = home.filter(|_| own.is_none()).map(|home| {
            let copy = |(from, to): (&String, &String)| (home.join(from), PathBuf::from(to));
            client.beside.iter().map(copy).map(|(from, to)| FileCopy { from, to, is_login: false })
        });
        folder.copies.extend(beside.into_iter().flatten());
        variables.extend(client.variable.iter().map(|name| folder.variable(name, &client.folder)));
        variables.extend(client.variables.iter().map(|(name, below)| folder.variable(name, below)));
        (folder, variables)
    }

    /// The file of the person's login, if there is one.
    pub fn login_of(
        client: &ClientHome,
        home: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Option<PathBuf> {
        let own = client.variable.as_deref().and_then(variable);
        let folder = own.or_else(|| Some(home?.join(&client.folder)))?;
        Some(folder.join(client.logins.first()?))
    }

    /// The person's settings and instructions for a program that its sessions get as copies.
    pub fn settings_of(
        client: &ClientHome,
        home: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Vec<PathBuf> {
        let (folder, _) = Self::plan(PathBuf::new(), client, home, variable);
        let steers = |copy: &FileCopy| {
            let is_of_git = GIT_FILES.iter().any(|file| copy.to == Path::new(file));
            !copy.is_login && !is_of_git && !OTHER_FILES.iter().any(|file| copy.to.ends_with(file))
        };
        let steering = folder.copies.into_iter().filter(steers).map(|copy| copy.from);
        steering.filter(|path| path.is_file()).collect()
    }

    /// The texts of these settings.
    pub(crate) fn settings_texts(
        client: &ClientHome,
        home: Option<&Path>,
        variable: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Vec<String> {
        let files = Self::settings_of(client, home, variable);
        files.iter().filter_map(|file| String::from_utf8(small_file(file)?).ok()).collect()
    }

    /// Keeps the conversations of the session in `place`; with `restore`, the session gets the earlier ones.
    pub(crate) fn keep_conversations(&mut self, client: &ClientHome, place: PathBuf, restore: bool) {
        let below = client.conversations.as_ref().map(|below| Path::new(&client.folder).join(below));
        self.kept = below.map(|below| KeptConversations { below, place, restore });
    }

    fn variable(&self, name: &str, below: &str) -> (String, String) {
        (name.to_owned(), self.path.join(below).to_string_lossy().trim_end_matches('/').to_owned())
    }

    fn copy<N: AsRef<Path>>(&mut self, from: &Path, to: &Path, names: &[N], is_login: bool) {
        let copy = |name: &N| FileCopy { from: from.join(name), to: to.join(name), is_login };
        self.copies.extend(names.iter().map(copy));
    }

    /// Creates it with its copies, in the place of an earlier session's folder.
    pub fn create(&self) -> io::Result<LoginCopies> {
        fresh_folder(&self.path)?;
        let mut logins = LoginCopies::new(&self.path);
        for copy in &self.copies {
            let to = self.path.join(&copy.to);
            // Also without a file: codex refuses to start if its folder does not exist.
            to.parent().map_or(Ok(()), private::create_folder)?;
            let Some(content) = small_file(&copy.from) else { continue };
            io::Write::write_all(&mut private::create_new(&to)?, &content)?;
            if copy.is_login {
                logins.add(&copy.from, &copy.to, content);
            }
        }
        self.kept.as_ref().map_or(Ok(()), |kept| kept.restore(&self.path))?;
        Ok(logins)
    }

    /// Keeps the conversations, masked, and removes the folder.
    pub fn remove(&self, masker: &Masker) {
        if let Some(kept) = &self.kept {
            // Without them, the next session begins a new conversation.
            let _ = kept.keep(&self.path, masker);
        }
        // The next session gets a new one in any case.
        let _ = remove_tree(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use liza_agents::providers::{builtin_names, places_of};
    use liza_sandbox::confine::is_read_by_sessions;
    use serde_json::Value;

    use super::*;
    use crate::session::login_copies::RefusedLogin;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn folder(home: &Path, program: &str) -> (ClientFolder, Vec<(String, String)>) {
        ClientFolder::plan(home.join("private"), places(program), Some(home), &|_| None)
    }

    fn places(program: &str) -> &'static ClientHome {
        places_of(Path::new(program)).unwrap()
    }

    /// Ends a session; returns the messages about its logins.
    fn finish(private: &ClientFolder, logins: &mut LoginCopies) -> String {
        let refused = logins.finish(std::time::Duration::ZERO);
        private.remove(&Masker::default());
        refused.iter().map(RefusedLogin::message).collect()
    }

    const LOGIN: &str = r#"{"oauth": {"token": "a", "expires": 1, "scopes": ["x"]}}"#;

    /// Covers: IS-14
    #[test]
    fn no_session_reads_the_login_of_a_known_program() {
        for places in builtin_names().iter().map(|name| places(name)) {
            for login in &places.logins {
                let path = Path::new(&places.folder).join(login);
                assert!(!is_read_by_sessions(path.to_str().unwrap()), "{}", path.display());
            }
        }
        assert!(is_read_by_sessions(".rustup/toolchains/stable/bin/cargo"));
    }

    /// Covers: IS-15
    #[test]
    fn a_session_gets_copies_of_login_and_settings() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        write(&home.join(".claude/.credentials.json"), LOGIN);
        write(&home.join(".claude/settings.json"), "{}");
        write(&home.join(".claude.json"), r#"{"trust": true}"#);
        write(&home.join(".claude/projects/long.jsonl"), "history");
        let (private, variables) = folder(home, "/opt/bin/claude");
        let mut logins = private.create().unwrap();
        let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let at = PathBuf::from(value("CLAUDE_CONFIG_DIR").unwrap());
        assert_eq!(fs::read_to_string(at.join(".credentials.json")).unwrap(), LOGIN);
        assert_eq!(fs::read_to_string(at.join(".claude.json")).unwrap(), r#"{"trust": true}"#);
        assert!(at.join("settings.json").exists() && !at.join("projects").exists());
        assert!(value("XDG_CONFIG_HOME").is_some() && value("XDG_DATA_HOME").is_none());
        write(&at.join("settings.json"), r#"{"hooks": "planted"}"#);
        assert_eq!(finish(&private, &mut logins), "");
        assert_eq!(fs::read_to_string(home.join(".claude/settings.json")).unwrap(), "{}");
        assert!(!at.exists());
    }

    /// Covers: IS-15
    #[test]
    fn only_a_refreshed_login_is_written_back_and_the_rest_is_reported() {
        const REFRESHED: &str = r#"{"oauth": {"token": "b", "expires": 2, "scopes": ["x"]}}"#;
        let cases = [
            (REFRESHED, REFRESHED, ""),
            (
                r#"{"oauth": {"token": "b", "expires": 2, "scopes": ["x"], "command": "rm"}}"#,
                REFRESHED,
                "command",
            ),
            (r#"{"oauth": {"token": "b", "expires": 2, "scopes": ["y"]}}"#, REFRESHED, "changed scopes in"),
            (r#"{"oauth": {"token": 3, "expires": 1, "scopes": ["x"]}}"#, LOGIN, "changed token in"),
            (r#"{"oauth": null}"#, LOGIN, "changed oauth in"),
            ("not json", LOGIN, "left something else"),
        ];
        for (changed, expected, reported) in cases {
            let home = tempfile::tempdir().unwrap();
            let home = home.path();
            write(&home.join(".codex/auth.json"), LOGIN);
            let (private, variables) = folder(home, "codex");
            let mut logins = private.create().unwrap();
            let at = &variables.iter().find(|(name, _)| name == "CODEX_HOME").unwrap().1;
            write(&Path::new(at).join("auth.json"), changed);
            let message = finish(&private, &mut logins);
            assert!(message.contains(reported) && message.is_empty() == reported.is_empty(), "{message}");
            let now = fs::read_to_string(home.join(".codex/auth.json")).unwrap();
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(value(&now), value(expected), "{changed}");
        }
    }

    fn codex_session(home: &Path, name: &str) -> (ClientFolder, PathBuf) {
        let (private, _) = ClientFolder::plan(home.join(name), places("codex"), Some(home), &|_| None);
        let at = private.path.join(".codex/auth.json");
        (private, at)
    }

    /// Covers: AX-26
    #[test]
    fn a_used_login_never_replaces_a_refreshed_one() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let person = home.join(".codex/auth.json");
        let login = |token: &str| format!(r#"{{"tokens":{{"refresh_token":"{token}"}}}}"#);
        write(&person, &login("first"));
        let ((one, own), (other, others), (third, _)) =
            (codex_session(home, "1"), codex_session(home, "2"), codex_session(home, "3"));
        let mut logins = [&one, &other, &third].map(|session| session.create().unwrap());
        write(&own, &login("second"));
        write(&others, &login("third"));
        // The second session is too late, and the third one has not refreshed its copy.
        let reported = [&one, &other, &third].into_iter().zip(&mut logins);
        reported.for_each(|(session, logins)| assert_eq!(finish(session, logins), ""));
        assert!(fs::read_to_string(&person).unwrap().contains("second"));
        assert_eq!(logins.map(|logins| logins.is_outdated()), [false, true, true]);
    }

    /// Covers: IS-15
    #[test]
    fn a_link_in_the_place_of_the_login_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        write(&home.join(".codex/auth.json"), LOGIN);
        write(&home.join("other.json"), r#"{"oauth": {"token": "c", "expires": 2, "scopes": ["x"]}}"#);
        let (private, variables) = folder(home, "codex");
        let mut logins = private.create().unwrap();
        let at =
            Path::new(&variables.iter().find(|(name, _)| name == "CODEX_HOME").unwrap().1).join("auth.json");
        fs::remove_file(&at).unwrap();
        std::os::unix::fs::symlink(home.join("other.json"), &at).unwrap();
        assert_eq!(finish(&private, &mut logins), "");
        assert_eq!(fs::read_to_string(home.join(".codex/auth.json")).unwrap(), LOGIN);
    }

    /// Covers: IS-15
    #[test]
    fn a_folder_that_the_person_has_named_is_the_source() {
        let home = tempfile::tempdir().unwrap();
        write(&home.path().join("elsewhere/auth.json"), LOGIN);
        let own = home.path().join("elsewhere");
        let named = |name: &str| (name == "CODEX_HOME").then(|| own.clone());
        let (private, _) =
            ClientFolder::plan(home.path().join("private"), places("codex"), Some(home.path()), &named);
        private.create().unwrap();
        assert_eq!(fs::read_to_string(private.path.join(".codex/auth.json")).unwrap(), LOGIN);
    }

    /// Covers: SE-10
    #[test]
    fn conversations_are_kept_and_restored_on_request_and_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let place = home.join("kept");
        let session = |restore: bool| {
            let (mut private, _) = folder(home, "claude");
            private.keep_conversations(places("claude"), place.clone(), restore);
            private.create().unwrap();
            private
        };
        let log = home.join("private/.claude/projects/p/1.jsonl");
        let first = session(true);
        write(&log, "said");
        first.remove(&Masker::default());
        assert!(!first.path.exists() && place.join("p/1.jsonl").exists());
        let resumed = session(true);
        assert_eq!(fs::read_to_string(&log).unwrap(), "said");
        resumed.remove(&Masker::default());
        let fresh = session(false);
        assert!(!log.exists(), "a new conversation");
        fs::create_dir_all(home.join("mine/projects")).unwrap();
        let _ = fs::remove_dir_all(home.join("private/.claude"));
        std::os::unix::fs::symlink(home.join("mine"), home.join("private/.claude")).unwrap();
        fresh.remove(&Masker::default());
        assert!(home.join("mine/projects").exists() && !place.exists());
        let (mut other, _) = folder(home, "goose");
        other.keep_conversations(places("goose"), place, true);
        assert_eq!(other.kept, None);
    }
}
