//! Installed agent programs, their versions, and their logins. Logins are found by files and variables; the
//! caller asks a program for its version.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread;

use liza_sandbox::sys::find_program;
use strum::VariantArray as _;

use super::builtin::BuiltIn;
use super::codex::key_variable;
use super::template::{ClientFile, CommandTemplate, LoginSign};

/// The largest settings file that is searched.
const SETTINGS_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledClient {
    pub name: &'static str,
    pub version: Option<String>,
    /// The place of its login; else the way to log in.
    pub login: Result<String, LoginAdvice>,
    pub rights: &'static str,
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

/// The built-in providers whose programs are installed; `version` asks a program for its version.
pub fn installed_clients(
    places: &LoginPlaces<'_>,
    version: fn(&Path) -> Option<String>,
) -> Vec<InstalledClient> {
    let templates = BuiltIn::VARIANTS.iter().map(|one| (one.name(), one.template()));
    let found = templates.filter_map(|(name, template)| {
        let program = find_program(template.program.as_ref()?)?;
        // All at once: some take seconds.
        Some((name, template, thread::spawn(move || version(&program))))
    });
    let found: Vec<_> = found.collect();
    let client = |(name, template, version): (_, CommandTemplate, thread::JoinHandle<_>)| InstalledClient {
        name,
        version: version.join().ok().flatten(),
        login: places.login(&template),
        rights: template.rights,
    };
    found.into_iter().map(client).collect()
}

/// The provider to use if none is named: the first installed one with a login, else the first installed one.
pub fn default_provider(places: &LoginPlaces<'_>) -> Option<&'static str> {
    let is_installed = |template: &CommandTemplate| {
        template.program.as_ref().is_some_and(|name| find_program(name).is_some())
    };
    let templates = BuiltIn::VARIANTS.iter().map(|one| (one.name(), one.template()));
    let installed: Vec<_> = templates.filter(|(_, template)| is_installed(template)).collect();
    let with_login = installed.iter().find(|(_, template)| places.login(template).is_ok());
    with_login.or(installed.first()).map(|(name, _)| *name)
}

/// True if more than one agent program is installed.
pub fn has_choice() -> bool {
    let programs = BuiltIn::VARIANTS.iter().filter_map(|one| one.template().program);
    programs.filter(|name| find_program(name).is_some()).nth(1).is_some()
}

/// Those of the named providers for which no login is found, with the command that logs in.
pub fn missing_logins(places: &LoginPlaces<'_>, names: &[String]) -> Vec<(&'static str, LoginAdvice)> {
    let named = BuiltIn::VARIANTS.iter().filter(|one| names.iter().any(|name| name == one.name()));
    let templates = named.map(|one| (one.name(), one.template()));
    let checked = templates.filter(|(_, template)| !template.login_signs.is_empty());
    checked.filter_map(|(name, template)| Some((name, places.login(&template).err()?))).collect()
}

/// The rights of a provider's sessions; `None` if it is not built in.
pub fn rights_of(name: &str) -> Option<&'static str> {
    name.parse::<BuiltIn>().ok().map(|one| one.template().rights)
}

impl LoginPlaces<'_> {
    /// The place of a program's login; else the way to log in.
    fn login(&self, template: &CommandTemplate) -> Result<String, LoginAdvice> {
        // Without its key the chosen provider refuses every session, also if there is another login.
        if let Some(problem) = template.login_signs.iter().find_map(|sign| self.missing_key(sign)) {
            return Err(problem);
        }
        template.login_signs.iter().find_map(|sign| self.found(sign)).ok_or_else(|| login_advice(template))
    }

    /// The place of this sign of a login.
    fn found(&self, sign: &LoginSign) -> Option<String> {
        match sign {
            LoginSign::Variable(name) => self.is_set(name).then(|| (*name).to_owned()),
            LoginSign::File(file) => {
                self.path(file).filter(|path| path.is_file()).map(|path| path.display().to_string())
            }
            LoginSign::Setting(file, text) => self.setting(file, text),
            LoginSign::CodexProvider(file) => self.setting(file, "model_provider"),
        }
    }

    /// Advice about the variable with the key of the chosen provider, if it is not set.
    fn missing_key(&self, sign: &LoginSign) -> Option<LoginAdvice> {
        let (variable, path) = self.chosen_key(sign)?;
        (!self.is_set(&variable)).then(|| set_key(&variable, &path))
    }

    /// The variable with the key of the chosen provider, and the file that names it.
    fn chosen_key(&self, sign: &LoginSign) -> Option<(String, PathBuf)> {
        let LoginSign::CodexProvider(file) = sign else { return None };
        let path = self.path(file)?;
        Some((key_variable(&content(&path)?)?, path))
    }

    pub fn login_variables(&self, template: &CommandTemplate) -> Vec<String> {
        let sign = |sign: &LoginSign| match sign {
            LoginSign::Variable(name) => Some((*name).to_owned()),
            LoginSign::CodexProvider(_) => self.chosen_key(sign).map(|(variable, _)| variable),
            LoginSign::File(_) | LoginSign::Setting(..) => None,
        };
        let signs = template.login_signs.iter().filter_map(sign);
        let switched = template.pass_env_if.iter().filter(|(switch, _)| self.is_set(switch));
        let switched = switched.flat_map(|(_, names)| names.iter().cloned());
        let named = template.pass_env.iter().chain(&template.address_variables).cloned();
        named.chain(signs).chain(switched).collect()
    }

    /// The human's next step if a program has no valid login.
    pub fn advice(&self, template: &CommandTemplate) -> Option<String> {
        let key = template.login_signs.iter().find_map(|sign| self.chosen_key(sign));
        let set = key.map(|(variable, path)| format!("Set {variable}, {}", env_key(&path)));
        set.or_else(|| (!template.login.is_empty()).then(|| format!("Run {}", login_advice(template))))
    }

    /// Looks for a variable with which a program logs in.
    pub fn has_key(&self, template: &CommandTemplate) -> bool {
        let is_set = |sign: &LoginSign| matches!(sign, LoginSign::Variable(name) if self.is_set(name));
        template.login_signs.iter().any(is_set)
    }

    fn is_set(&self, variable: &str) -> bool {
        (self.variable)(variable).is_some_and(|value| !value.is_empty())
    }

    /// The file, if one of its lines begins with this text.
    fn setting(&self, file: &ClientFile, text: &str) -> Option<String> {
        let path = self.path(file)?;
        let is_set = content(&path)?.lines().any(|line| line.trim_start().starts_with(text));
        is_set.then(|| path.display().to_string())
    }

    fn path(&self, file: &ClientFile) -> Option<PathBuf> {
        let own = file.variable.and_then(|name| (self.variable)(name)).map(PathBuf::from);
        Some(own.or_else(|| Some(self.home?.join(file.folder)))?.join(file.name))
    }
}

fn login_advice(template: &CommandTemplate) -> LoginAdvice {
    LoginAdvice { command: template.login.clone(), more: template.login_more.map(str::to_owned) }
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
            places.login(&name.parse::<BuiltIn>().unwrap().template()).ok()
        };
        for name in ["claude", "codex", "gemini", "vibe", "opencode", "goose"] {
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
        let advice = |name: &str| places.advice(&name.parse::<BuiltIn>().unwrap().template()).unwrap();
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
            let names = places.login_variables(&name.parse::<BuiltIn>().unwrap().template());
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
        for one in BuiltIn::VARIANTS.iter().filter(|one| **one != BuiltIn::Rehearsal) {
            let template = one.template();
            let page = fs::read_to_string(folder.join(format!("{}.md", one.name()))).unwrap();
            let login = &template.login;
            for text in [format!("`{}`", template.install), format!("`{login}`"), template.rights.to_owned()]
            {
                assert!(page.contains(&text), "{}: {text}", one.name());
            }
            for row in ["| Install |", "| Log in |", "| May do |", "| Costs |", "| Try it |"] {
                assert!(page.contains(row), "{}: {row}", one.name());
            }
            let reports =
                page.lines().find(|line| line.starts_with("| Costs |")).unwrap().contains("config.prices");
            assert!(reports || template.events.reports_cost() || page.contains("prices:"), "{}", one.name());
        }
    }
}
