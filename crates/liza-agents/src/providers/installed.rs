//! Installed agent programs, their versions, and their logins. Logins are found by files and variables; the
//! caller asks a program for its version.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread;

use liza_core::model::{Config, Repair};
use liza_sandbox::sys::find_program;

use super::builtin::built_in;
use super::codex::key_variable;
use super::config::find_template;
use super::template::{ClientHome, CommandTemplate, FileSign, LoginSign};

/// The largest settings file that is searched.
const SETTINGS_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledClient {
    pub name: String,
    pub home: ClientHome,
    pub version: Option<String>,
    /// The place of its login, or the way to log in; `None` if its entry names no sign of a login.
    pub login: Option<Result<String, LoginAdvice>>,
    pub rights: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginAdvice {
    pub command: String,
    /// The text that follows it, or replaces it.
    pub more: Option<String>,
}

impl fmt::Display for LoginAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)?;
        self.more.iter().try_for_each(|more| write!(f, ", {more}"))
    }
}

/// The places in which a login is looked for.
pub struct LoginPlaces<'a> {
    pub home: Option<&'a Path>,
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The folders of data, as variables of the system name them.
const DATA_FOLDERS: [(&str, &str); 2] = [("XDG_CONFIG_HOME", ".config/"), ("XDG_DATA_HOME", ".local/share/")];

/// The built-in providers and those of the config whose programs are installed; `version` asks a program for its version.
pub fn installed_clients(
    config: Option<&Config>,
    places: &LoginPlaces<'_>,
    version: fn(&Path) -> Option<String>,
) -> Vec<InstalledClient> {
    let own = config.into_iter().flat_map(|config| {
        config.providers.keys().filter_map(|name| Some((name.clone(), find_template(config, name).ok()?)))
    });
    let own: Vec<(String, CommandTemplate)> = own.collect();
    let is_changed = |name: &str| own.iter().any(|(known, _)| known == name);
    let others = built_in().filter(|(name, _)| !is_changed(name));
    let others: Vec<_> = others.map(|(name, template)| (name.to_owned(), template.clone())).collect();
    let found = others.into_iter().chain(own).filter_map(|(name, template)| {
        let program = find_program(Some(template.program.as_str()).filter(|program| !program.is_empty())?)?;
        // All at once: some take seconds.
        Some((name, template, thread::spawn(move || version(&program))))
    });
    let found: Vec<_> = found.collect();
    let client = |(name, template, version): (_, CommandTemplate, thread::JoinHandle<_>)| InstalledClient {
        name,
        version: version.join().ok().flatten(),
        login: (!template.login_signs.is_empty()).then(|| places.login(&template)),
        rights: template.rights,
        home: template.home,
    };
    found.into_iter().map(client).collect()
}

/// The provider to use if none is named: the first installed one with a login, else the first installed one.
pub fn default_provider(places: &LoginPlaces<'_>) -> Option<&'static str> {
    let installed: Vec<_> = built_in().filter(|(_, template)| is_installed(template)).collect();
    let with_login = installed.iter().find(|(_, template)| places.login(template).is_ok());
    with_login.or(installed.first()).map(|(name, _)| *name)
}

/// True if more than one agent program is installed.
pub fn has_choice() -> bool {
    built_in().filter(|(_, template)| is_installed(template)).nth(1).is_some()
}

fn is_installed(template: &CommandTemplate) -> bool {
    !template.program.is_empty() && find_program(&template.program).is_some()
}

/// Those of the named providers for which no login is found, with the command that logs in.
pub fn missing_logins(
    config: &Config,
    places: &LoginPlaces<'_>,
    names: &[String],
) -> Vec<(String, LoginAdvice)> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    let templates = names.into_iter().filter_map(|name| Some((find_template(config, &name).ok()?, name)));
    let checked = templates.filter(|(template, _)| !template.login_signs.is_empty());
    checked.filter_map(|(template, name)| Some((name, places.login(&template).err()?))).collect()
}

impl LoginPlaces<'_> {
    /// The place of a program's login; else the way to log in.
    fn login(&self, template: &CommandTemplate) -> Result<String, LoginAdvice> {
        // Without its key the chosen provider refuses every session, also if there is another login.
        if let Some(problem) = template.login_signs.iter().find_map(|sign| self.missing_key(template, sign)) {
            return Err(problem);
        }
        template
            .login_signs
            .iter()
            .find_map(|sign| self.found(template, sign))
            .ok_or_else(|| login_advice(template))
    }

    /// The place of this sign of a login.
    fn found(&self, template: &CommandTemplate, sign: &LoginSign) -> Option<String> {
        let FileSign { file, line, codex_provider } = match sign {
            LoginSign::Variable(name) => return self.is_set(name).then(|| name.clone()),
            LoginSign::File(sign) => sign,
        };
        let path = self.path(&template.home, file).filter(|path| path.is_file())?;
        let line = if *codex_provider { Some("model_provider") } else { line.as_deref() };
        let is_found = line.is_none_or(|line| {
            let begins = |text: &str| text.trim_start().starts_with(line);
            content(&path).is_some_and(|content| content.lines().any(begins))
        });
        is_found.then(|| path.display().to_string())
    }

    /// Advice about the variable with the key of the chosen provider, if it is not set.
    fn missing_key(&self, template: &CommandTemplate, sign: &LoginSign) -> Option<LoginAdvice> {
        let (variable, path) = self.chosen_key(template, sign)?;
        (!self.is_set(&variable)).then(|| set_key(&variable, &path))
    }

    /// The variable with the key of the chosen provider, and the file that names it.
    fn chosen_key(&self, template: &CommandTemplate, sign: &LoginSign) -> Option<(String, PathBuf)> {
        let LoginSign::File(FileSign { file, codex_provider: true, .. }) = sign else { return None };
        let path = self.path(&template.home, file)?;
        Some((key_variable(&content(&path)?)?, path))
    }

    pub fn login_variables(&self, template: &CommandTemplate) -> Vec<String> {
        let sign = |sign: &LoginSign| match sign {
            LoginSign::Variable(name) => Some(name.clone()),
            LoginSign::File(_) => self.chosen_key(template, sign).map(|(variable, _)| variable),
        };
        let signs = template.login_signs.iter().filter_map(sign);
        let switched = template.pass_env_if.iter().filter(|(switch, _)| self.is_set(switch));
        let switched = switched.flat_map(|(_, names)| names.iter().cloned());
        let named = template.pass_env.iter().chain(&template.address_variables).cloned();
        named.chain(signs).chain(switched).collect()
    }

    /// The human's next step if a program has no valid login.
    pub fn repair(&self, template: &CommandTemplate) -> Option<Repair> {
        let key = template.login_signs.iter().find_map(|sign| self.chosen_key(template, sign));
        let set = key.map(|(variable, path)| Repair::Set { variable, meaning: Some(env_key(&path)) });
        let login = || Repair::Run(login_advice(template).to_string());
        set.or_else(|| (!template.login.is_empty()).then(login))
    }

    /// Looks for a variable with which a program logs in.
    pub fn has_key(&self, template: &CommandTemplate) -> bool {
        let is_set = |sign: &LoginSign| matches!(sign, LoginSign::Variable(name) if self.is_set(name));
        template.login_signs.iter().any(is_set)
    }

    fn is_set(&self, variable: &str) -> bool {
        (self.variable)(variable).is_some_and(|value| !value.is_empty())
    }

    /// The place of a file below the home folder, unless a variable moves the folder that it is in.
    fn path(&self, home: &ClientHome, file: &str) -> Option<PathBuf> {
        let below = file.strip_prefix("~/")?;
        let own = home.variable.as_deref().map(|variable| (variable, home.folder.as_str()));
        let moved = own.into_iter().chain(DATA_FOLDERS).find_map(|(variable, folder)| {
            let name = below.strip_prefix(folder)?.trim_start_matches('/');
            Some(PathBuf::from((self.variable)(variable)?).join(name))
        });
        moved.or_else(|| Some(self.home?.join(below)))
    }
}

fn login_advice(template: &CommandTemplate) -> LoginAdvice {
    let command = match template.login.as_str() {
        "" => template.login_signs.iter().map(LoginSign::to_make).collect::<Vec<_>>().join(" or "),
        command => command.to_owned(),
    };
    LoginAdvice { command, more: template.login_more.clone() }
}

/// Advice about a key that is missing or refused.
fn set_key(variable: &str, path: &Path) -> LoginAdvice {
    LoginAdvice { command: format!("set {variable}"), more: Some(env_key(path)) }
}

fn env_key(path: &Path) -> String {
    format!("the env_key of the provider in {}", path.display())
}

/// Reads at most [`SETTINGS_MAX`] bytes.
fn content(path: &Path) -> Option<String> {
    let mut content = Vec::new();
    fs::File::open(path).ok()?.take(SETTINGS_MAX).read_to_end(&mut content).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::builtin::find;
    use super::*;

    /// Covers: SE-09
    #[test]
    fn a_login_is_found_by_its_file_its_variable_or_its_setting() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let login = |name: &str, variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            };
            let places = LoginPlaces { home: Some(home.path()), variable: &variable };
            places.login(find(name).unwrap()).ok()
        };
        for name in ["claude", "codex", "gemini", "vibe", "opencode", "goose", "copilot", "qwen"] {
            assert_eq!(login(name, &[]), None, "{name}");
        }
        assert_eq!(login("claude", &[("ANTHROPIC_API_KEY", "x")]).as_deref(), Some("ANTHROPIC_API_KEY"));
        assert_eq!(login("claude", &[("ANTHROPIC_API_KEY", "")]), None);
        // codex exec sends no header for the first one.
        assert_eq!(login("codex", &[("OPENAI_API_KEY", "x")]), None);
        assert_eq!(login("codex", &[("CODEX_API_KEY", "x")]).as_deref(), Some("CODEX_API_KEY"));
        write(".claude/.credentials.json", "{}");
        write(".codex/config.toml", "# model_provider = \"no\"\n");
        write("other/auth.json", "{}");
        assert!(login("claude", &[]).unwrap().ends_with(".claude/.credentials.json"));
        assert_eq!(login("codex", &[]), None, "a comment is no setting");
        write(".codex/config.toml", "model_provider = \"mine\"\n");
        assert!(login("codex", &[]).unwrap().ends_with("config.toml"));
        let other = home.path().join("other").display().to_string();
        assert!(login("codex", &[("CODEX_HOME", &other)]).unwrap().ends_with("other/auth.json"));
        let settings = "model_provider = \"mine\"\n[model_providers.mine]\nenv_key = \"MY_KEY\"\n".to_owned();
        write(".codex/config.toml", &settings);
        let variable = |_: &str| None;
        let places = LoginPlaces { home: Some(home.path()), variable: &variable };
        let advice = |name: &str| places.repair(find(name).unwrap()).unwrap().to_string();
        assert!(advice("codex").starts_with("Set MY_KEY, the env_key of the provider in "));
        assert!(advice("claude").starts_with("Run claude"));
        write(".config/goose/config.yaml", "GOOSE_PROVIDER: openai\n");
        assert!(login("goose", &[]).is_some());
    }

    /// Covers: RO-02
    #[test]
    fn a_program_needs_its_own_keys_and_those_of_a_cloud_only_while_it_uses_that() {
        let home = tempfile::tempdir().unwrap();
        let needs = |name: &str, set: &[&str], wanted: &str| {
            let variable = |name: &str| set.contains(&name).then(|| OsString::from("1"));
            let places = LoginPlaces { home: Some(home.path()), variable: &variable };
            let names = places.login_variables(find(name).unwrap());
            names.iter().any(|name| name == wanted)
        };
        assert!(needs("claude", &[], "ANTHROPIC_*") && needs("claude", &[], "ANTHROPIC_BASE_URL"));
        assert!(!needs("claude", &[], "AWS_*") && !needs("claude", &[], "OPENAI_*"));
        assert!(needs("claude", &["CLAUDE_CODE_USE_BEDROCK"], "AWS_*"));
        assert!(!needs("codex", &[], "MY_KEY"));
        fs::create_dir(home.path().join(".codex")).unwrap();
        let settings = "model_provider = \"mine\"\n[model_providers.mine]\nenv_key = \"MY_KEY\"\n";
        fs::write(home.path().join(".codex/config.toml"), settings).unwrap();
        assert!(needs("codex", &[], "MY_KEY"));
    }

    /// Covers: SE-09
    #[test]
    fn every_client_has_a_page_that_says_how_to_install_and_log_in_and_what_it_may_do() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/clients");
        for (name, template) in built_in().filter(|(name, _)| *name != "rehearsal") {
            let page = fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
            let login = &template.login;
            for text in [format!("`{}`", template.install), format!("`{login}`"), template.rights.clone()] {
                assert!(page.contains(&text), "{}: {text}", name);
            }
            for row in ["| Install |", "| Log in |", "| May do |", "| Costs |", "| Try it |"] {
                assert!(page.contains(row), "{}: {row}", name);
            }
            let reports =
                page.lines().find(|line| line.starts_with("| Costs |")).unwrap().contains("config.prices");
            assert!(reports || template.events.reports_cost() || page.contains("prices:"), "{}", name);
        }
    }
}
