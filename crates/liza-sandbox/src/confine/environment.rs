//! The environment of everything that runs agents' work, built from nothing: allowed variables, those that
//! the agent program needs to reach its model, and those that the person passes on (`config.pass_env`). Reads
//! no variable itself; variables that Liza sets are added afterwards.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use liza_ids::Role;

use super::allowed_variables::{ALLOWED, PROXIES};

pub type Variable = (OsString, OsString);

/// Variables that lead to the password of the team's database: for no program that Liza starts.
const DATABASE_VARIABLES: &[&str] = &[liza_ids::STORE_URL_ENV, "PGPASSFILE", "PGPASSWORD", "PGSERVICEFILE"];

/// The folders of git's settings and temporary files. For other programs, Liza sets both.
const GIT_PLACES: &[&str] = &["XDG_CONFIG_HOME", "TMPDIR"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentUse<'a> {
    /// An agent program, which also needs these variables for its login and hands them to its commands.
    AgentProgram(&'a [String]),
    /// Code that no person has read: `liza check`, `config.setup` and integration tests.
    CodeUnderTest,
    /// Git on agents' files, which has the person's own settings.
    Git,
}

/// The part of the parent's environment that a confined program gets.
pub fn passed_environment(
    parent: impl IntoIterator<Item = Variable>,
    used_for: EnvironmentUse<'_>,
    pass_env: &[String],
) -> Vec<Variable> {
    let is_passed = |(name, value): &Variable| is_passed(name, value, used_for, pass_env);
    parent.into_iter().filter(is_passed).collect()
}

fn is_passed(name: &OsStr, value: &OsStr, used_for: EnvironmentUse<'_>, pass_env: &[String]) -> bool {
    let text = name.to_string_lossy();
    let is_named = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, &text));
    let is_listed = |patterns: &[&str]| patterns.iter().any(|pattern| matches(pattern, &text));
    if is_of_database(name) {
        return false;
    }
    let is_needed = match used_for {
        // Without its proxy it doesn't reach its model, with a password or without.
        EnvironmentUse::AgentProgram(login) => is_named(login) || is_listed(PROXIES),
        EnvironmentUse::Git => is_listed(GIT_PLACES),
        EnvironmentUse::CodeUnderTest => false,
    };
    let is_harmless =
        || (is_listed(ALLOWED) || is_listed(PROXIES)) && !has_password(&value.to_string_lossy());
    is_needed || is_named(pass_env) || is_harmless()
}

/// Variables whose folders are not those of one tool, git's settings, which can have tokens, and go's folder, which can have
/// other projects: what builds need of it is a cache.
const NO_TOOLS: &[&str] = &["HOME", "PATH", "GOPATH", "XDG_*", "GIT_*"];

/// The files and folders that allowed variables name: `JAVA_HOME`, `VIRTUAL_ENV`, `SSL_CERT_FILE`, …
pub fn named_tools(environment: impl IntoIterator<Item = Variable>) -> Vec<PathBuf> {
    let is_listed = |patterns: &[&str], name: &str| patterns.iter().any(|pattern| matches(pattern, name));
    let names_tool = |(name, value): &Variable| {
        let name = name.to_string_lossy();
        Path::new(value).is_absolute() && is_listed(ALLOWED, &name) && !is_listed(NO_TOOLS, &name)
    };
    environment.into_iter().filter(names_tool).map(|(_, value)| PathBuf::from(value)).collect()
}

/// True if a variable leads to the password of the database.
pub fn is_of_database(name: &OsStr) -> bool {
    DATABASE_VARIABLES.iter().any(|variable| name == *variable)
}

/// Variables that decide which programs or files a shell, git or the loader runs first.
const STEERING: &[&str] = &["BASH_ENV", "ENV", "BASH_FUNC_*", "LD_*", "GIT_*"];

/// True if a session of the role does not get a variable of the person: with it, code under review could run
/// as the reviewer. Variables that Liza sets itself are not meant.
pub fn is_withheld(role: Role, name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    role == Role::CodeReviewer && STEERING.iter().any(|pattern| matches(pattern, &name))
}

/// A search path without folders below these, and without relative ones, which lead there.
pub fn search_path_outside(path: &OsStr, folders: &[&Path]) -> OsString {
    let is_outside = |entry: &PathBuf| {
        let real = entry.canonicalize().unwrap_or_else(|_| entry.clone());
        let is_below = |place: &Path| folders.iter().any(|folder| place.starts_with(folder));
        entry.is_absolute() && !is_below(entry) && !is_below(&real)
    };
    let outside = std::env::split_paths(path).filter(is_outside);
    std::env::join_paths(outside).unwrap_or_default()
}

/// Compares a name with a pattern, in which one `*` matches any text.
fn matches(pattern: &str, name: &str) -> bool {
    // Fast path: most differ here, and each git on agents' files waits for all comparisons.
    if !pattern.starts_with('*') && pattern.as_bytes().first() != name.as_bytes().first() {
        return false;
    }
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

/// True if an address in the value has credentials: `https://ada:secret@host`.
fn has_password(value: &str) -> bool {
    let host =
        |rest: &str| rest.split(['/', '?', '#', ',', '|', ' ']).next().is_some_and(|host| host.contains('@'));
    // A proxy can be written without a scheme.
    host(value) || value.split("://").skip(1).any(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(used_for: EnvironmentUse<'_>, pass_env: &[&str], parent: &[(&str, &str)]) -> Vec<String> {
        let pass_env: Vec<String> = pass_env.iter().map(ToString::to_string).collect();
        let parent = parent.iter().map(|(name, value)| (name.into(), value.into()));
        let passed = passed_environment(parent, used_for, &pass_env).into_iter();
        passed.map(|(name, _)| name.into_string().unwrap()).collect()
    }

    /// Covers: RO-02
    #[test]
    fn keys_are_passed_only_to_their_program_or_by_name() {
        let parent = [
            ("PATH", "/bin"),
            ("LC_TIME", "C"),
            ("CARGO_REGISTRIES_MINE_INDEX", "sparse+https://host/"),
            ("CARGO_REGISTRIES_MINE_TOKEN", "x"),
            ("ANTHROPIC_API_KEY", "x"),
            ("OPENAI_API_KEY", "x"),
            ("DATABASE_URL", "postgres://host/db"),
            ("PGPASSWORD", "x"),
            ("SSH_AUTH_SOCK", "/run/agent"),
        ];
        let harmless = ["PATH", "LC_TIME", "CARGO_REGISTRIES_MINE_INDEX"];
        assert_eq!(passed(EnvironmentUse::CodeUnderTest, &[], &parent), harmless);
        let login = ["ANTHROPIC_*".to_owned()];
        let program = EnvironmentUse::AgentProgram(&login);
        assert_eq!(passed(program, &[], &parent), [&harmless[..], &["ANTHROPIC_API_KEY"]].concat());
        let named = passed(EnvironmentUse::CodeUnderTest, &["DATABASE_URL", "PGPASSWORD"], &parent);
        assert_eq!(
            named,
            [&harmless[..], &["DATABASE_URL"]].concat(),
            "never the password of the team's database"
        );
    }

    /// Covers: RO-02
    #[test]
    fn an_address_with_a_password_is_a_secret_and_a_program_still_gets_its_proxy() {
        let parent = [
            ("HTTPS_PROXY", "http://ada:secret@proxy:3128"),
            ("http_proxy", "ada:secret@proxy:3128"),
            ("NO_PROXY", "localhost,.example.com"),
            ("PIP_INDEX_URL", "https://token@mirror/simple"),
            ("GOPROXY", "https://mirror,https://a:b@other,direct"),
            ("NODE_PATH", "/opt/@scope/lib"),
        ];
        let plain = ["NO_PROXY", "NODE_PATH"];
        assert_eq!(passed(EnvironmentUse::CodeUnderTest, &[], &parent), plain);
        let program = passed(EnvironmentUse::AgentProgram(&[]), &[], &parent);
        assert_eq!(program, ["HTTPS_PROXY", "http_proxy", "NO_PROXY", "NODE_PATH"]);
        assert_eq!(
            passed(EnvironmentUse::CodeUnderTest, &["GOPROXY"], &parent),
            ["NO_PROXY", "GOPROXY", "NODE_PATH"]
        );
    }

    /// Covers: JU-08
    #[test]
    fn nothing_that_steers_a_shell_or_git_reaches_a_reviewer() {
        for name in ["BASH_ENV", "ENV", "BASH_FUNC_grep%%", "LD_PRELOAD", "GIT_EXTERNAL_DIFF"] {
            assert!(is_withheld(Role::CodeReviewer, name.as_ref()), "{name}");
            assert!(!is_withheld(Role::Coder, name.as_ref()), "{name}");
        }
        assert!(!is_withheld(Role::CodeReviewer, "PATH".as_ref()));
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("p/.worktrees/t")).unwrap();
        std::os::unix::fs::symlink("p/.worktrees/t", place.path().join("link")).unwrap();
        let [checkout, link] = ["p/.worktrees", "link"].map(|name| place.path().join(name));
        let path =
            format!("/usr/bin:.::tools:{}/t/bin:{}:/p/node_modules/.bin", checkout.display(), link.display());
        let real = checkout.canonicalize().unwrap();
        let left = search_path_outside(path.as_ref(), &[&checkout, &real]);
        assert_eq!(left, "/usr/bin:/p/node_modules/.bin");
    }

    /// Covers: RO-02
    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("LC_*", "LC_ALL") && matches("A_*_INDEX", "A_B_INDEX") && matches("A", "A"));
        assert!(!matches("LC_*", "LC") && !matches("A_*_INDEX", "A_INDEX") && !matches("A", "AB"));
    }
}
