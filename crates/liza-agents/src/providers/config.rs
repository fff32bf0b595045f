//! Providers and roles in the blackboard's config.
//!
//! ```yaml
//! config:
//!   providers:
//!     mine: {program: my-agent, args: [--json], model_args: [--model, "{model}"], prompt: stdin, env: {MODE: auto}}
//!   roles:
//!     coder: {provider: mine, model: big, count: 4}
//!     planner: claude
//! ```

use liza_core::model::{Config, Network, Role, Value};

use super::builtin::{builtin_names, find, own_name};
use super::error::ProviderError;
use super::settings::{Setting, WrongSetting, one_of, words};
use super::template::CommandTemplate;

/// The rights of a program of one's own whose entry does not name them.
const OWN_RIGHTS: &str = "what config.providers gives it";

pub(super) const DEFAULT_PROVIDER: &str = "claude";

/// A template, and the model and its effort that the config names for it.
#[derive(Debug)]
pub(super) struct ChosenTemplate {
    pub name: String,
    pub template: CommandTemplate,
    pub model: Option<String>,
    pub effort: Option<String>,
}

/// The template and model of a role, then those that take over while it is held.
pub(super) fn choose_templates(
    config: &Config,
    role: Role,
    asked: Option<&str>,
    default: &str,
) -> Result<(ChosenTemplate, Vec<ChosenTemplate>), ProviderError> {
    let RoleChoice { programs, model, effort } = role_choice(config, role)?;
    let name = asked.or(programs.first().map(String::as_str)).unwrap_or(default);
    let template = find_template(config, name)?;
    let own = |name: &str| match config.providers.contains_key(name) {
        true => name.to_owned(),
        false => own_name(name).to_owned(),
    };
    // A model and its effort belong to the provider with which they are configured.
    let is_own = programs.first().is_none_or(|named| named == name);
    let (model, effort) = (model.filter(|_| is_own), effort.filter(|_| is_own));
    if effort.is_some() && template.effort_args.is_empty() {
        let problem = format!("{name} has no argument for effort (effort_args in config.providers)");
        return Err(wrong(&format!("roles.{role}"), problem));
    }
    let others = programs.iter().skip(1).filter(|_| asked.is_none());
    let other = |name: &String| {
        let template = find_template(config, name)?;
        Ok(ChosenTemplate { name: own(name), template, model: None, effort: None })
    };
    let others: Result<Vec<_>, ProviderError> = others.map(other).collect();
    Ok((ChosenTemplate { name: own(name), template, model, effort }, others?))
}

pub(super) fn find_template(config: &Config, name: &str) -> Result<CommandTemplate, ProviderError> {
    match config.providers.get(name) {
        Some(value) => template_from(name, value),
        None => find(name).cloned().ok_or_else(|| unknown(config, name)),
    }
}

fn unknown(config: &Config, name: &str) -> ProviderError {
    let mut known: Vec<String> = builtin_names().iter().map(ToString::to_string).collect();
    known.extend(config.providers.keys().filter(|own| !builtin_names().contains(&own.as_str())).cloned());
    ProviderError::Unknown { name: name.to_owned(), known }
}

pub fn agent_count(config: &Config, role: Role) -> Result<Option<u32>, ProviderError> {
    let place = format!("roles.{role}");
    let count = match role_entry(config, role) {
        Some(Value::Map(fields)) => fields.get("count"),
        None | Some(_) => None,
    };
    let number = match count {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Int(number)) => u32::try_from(*number).ok(),
        Some(_) => None,
    };
    number.map(Some).ok_or_else(|| wrong(&place, "count must be a number of agents"))
}

/// Checks all providers and roles in the config. An unknown program is no error: another place may define it.
pub fn check_sections(config: &Config) -> Result<(), ProviderError> {
    for (name, value) in &config.providers {
        template_from(name, value)?;
    }
    for role in Role::ALL {
        role_choice(config, role)?;
        agent_count(config, role)?;
        role_network(config, role)?;
    }
    Ok(())
}

pub fn role_network(config: &Config, role: Role) -> Result<Network, ProviderError> {
    let chosen = match role_entry(config, role) {
        Some(Value::Map(fields)) => fields.get("network").filter(|value| **value != Value::Null),
        None | Some(_) => None,
    };
    let wrong = |problem: WrongSetting| misplaced(&format!("roles.{role}"), problem.at("network"));
    chosen.map_or(Ok(Network::Open), |value| one_of(value).map_err(wrong))
}

fn role_entry(config: &Config, role: Role) -> Option<&Value> {
    config.roles.get(&role.to_string()).or_else(|| config.roles.get(role.id_prefix()))
}

/// The providers of a role, the preferred one first, and the model of that one with its effort.
#[derive(Default)]
struct RoleChoice {
    programs: Vec<String>,
    model: Option<String>,
    effort: Option<String>,
}

fn role_choice(config: &Config, role: Role) -> Result<RoleChoice, ProviderError> {
    let place = format!("roles.{role}");
    match role_entry(config, role) {
        None | Some(Value::Null) => Ok(RoleChoice::default()),
        Some(Value::Text(name)) => Ok(RoleChoice { programs: vec![name.clone()], ..RoleChoice::default() }),
        Some(Value::Map(fields)) => {
            let given = |key: &str| fields.get(key).filter(|value| **value != Value::Null);
            let at = |key: &'static str| {
                let place = &place;
                move |problem: WrongSetting| misplaced(place, problem.at(key))
            };
            let one = |key: &'static str| -> Result<Option<String>, ProviderError> {
                let mut text = None;
                given(key).map_or(Ok(()), |value| text.accept(value)).map_err(at(key))?;
                Ok(text)
            };
            let programs = match given("provider") {
                Some(list @ Value::List(_)) => words(list).map_err(at("provider"))?,
                Some(_) | None => one("provider")?.into_iter().collect(),
            };
            Ok(RoleChoice { programs, model: one("model")?, effort: one("effort")? })
        }
        Some(_) => Err(wrong(
            &place,
            "expected the name of an agent program, or a map with provider, model, effort, count and network",
        )),
    }
}

/// A provider of the config; one with the name of a built-in provider changes that.
fn template_from(name: &str, value: &Value) -> Result<CommandTemplate, ProviderError> {
    let Value::Map(fields) = value else {
        return Err(wrong(&format!("providers.{name}"), "expected a map with program, args and so on"));
    };
    let base = || {
        let program = fields.get("program").and_then(Value::as_text).unwrap_or(name).to_owned();
        let own = CommandTemplate { program, rights: OWN_RIGHTS.to_owned(), ..CommandTemplate::default() };
        let known = find(own.stem()).map(CommandTemplate::like).unwrap_or_default();
        CommandTemplate { program: own.program, rights: own.rights, ..known }
    };
    let mut template = find(name).cloned().unwrap_or_else(base);
    template.accept(value).map_err(|problem| misplaced(&format!("providers.{name}"), problem))?;
    Ok(template)
}

fn misplaced(place: &str, WrongSetting { place: keys, problem, .. }: WrongSetting) -> ProviderError {
    let keys = keys.into_iter().map(|key| format!(".{key}"));
    wrong(&format!("{place}{}", keys.collect::<String>()), problem)
}

fn wrong(place: &str, problem: impl Into<String>) -> ProviderError {
    ProviderError::Config { place: place.to_owned(), problem: problem.into() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn choose(providers: &str, name: &str) -> Result<CommandTemplate, String> {
        let providers = serde_json::from_str(providers).unwrap();
        let config = Config { providers, ..Config::default() };
        let chosen = choose_templates(&config, Role::Coder, Some(name), DEFAULT_PROVIDER);
        chosen.map(|(chosen, _)| chosen.template).map_err(|error| error.to_string())
    }

    /// Covers: AG-13
    #[test]
    fn a_wrong_entry_is_reported_with_its_place() {
        let cases = [
            (r#"{"a": 1}"#, "expected a map with program, args and so on"),
            (r#"{"a": {"args": 7}}"#, "args must be a list of words"),
            (r#"{"a": {"program": ["x"]}}"#, "program must be a text"),
            (r#"{"a": {"prompt": "pipe"}}"#, "prompt must be stdin or file"),
            (
                r#"{"a": {"events": "json"}}"#,
                "events must be none or rehearsal or claude or codex or gemini or goose or opencode or vibe or \
                 copilot or qwen",
            ),
            (r#"{"a": {"env": []}}"#, "env must be a map of names to values"),
        ];
        for (providers, problem) in cases {
            assert_eq!(choose(providers, "a").unwrap_err(), format!("config.providers.a: {problem}"));
        }
        let nested = [
            (r#"{"a": {"home": {"files": 1}}}"#, "a.home: files must be a list of words"),
            (
                r#"{"a": {"home": {"file": "x"}}}"#,
                "a.home: unknown key file; did you mean files?; known keys: variable",
            ),
            (
                r#"{"a": {"login_signs": ["b/c"]}}"#,
                "a: login_signs must be names of variables and files that begin with ~/",
            ),
            (
                r#"{"a": {"faults": {"auht": {}}}}"#,
                "a.faults: unknown key auht; did you mean auth?; known keys: refused",
            ),
            (
                r#"{"a": {"faults": {"auth": {"exits": ["x"]}}}}"#,
                "a.faults.auth: exits must be a list of numbers",
            ),
        ];
        for (providers, problem) in nested {
            let found = choose(providers, "a").unwrap_err();
            assert!(found.starts_with(&format!("config.providers.{problem}")), "{found}");
        }
        let unknown = choose(r#"{"a": {"argv": []}}"#, "a").unwrap_err();
        assert!(unknown.starts_with(
            "config.providers.a: unknown key argv; did you mean args?; known keys: program, args, model_args"
        ));
    }

    /// Covers: SE-04
    #[test]
    fn the_first_provider_of_a_list_is_preferred_and_the_others_take_over() {
        let roles =
            serde_json::from_str(r#"{"coder": {"provider": ["codex", "vibe", "goose"], "model": "m"}}"#);
        let config = Config { roles: roles.unwrap(), ..Config::default() };
        let names = |asked: Option<&str>| {
            let (first, others) = choose_templates(&config, Role::Coder, asked, DEFAULT_PROVIDER).unwrap();
            let others: Vec<String> = others.into_iter().map(|other| other.name).collect();
            (first.name, first.model, others)
        };
        let both = ["vibe".to_owned(), "goose".to_owned()];
        assert_eq!(names(None), ("codex".to_owned(), Some("m".to_owned()), both.to_vec()));
        assert_eq!(names(Some("goose")), ("goose".to_owned(), None, Vec::new()));
        let wrong = serde_json::from_str(r#"{"coder": {"provider": ["codex", "nope"]}}"#).unwrap();
        let config = Config { roles: wrong, ..Config::default() };
        let error = choose_templates(&config, Role::Coder, None, DEFAULT_PROVIDER).unwrap_err().to_string();
        assert!(error.starts_with("unknown agent program \"nope\""), "{error}");
    }

    /// Covers: AG-13
    #[test]
    fn an_entry_changes_the_built_in_provider_of_that_name() {
        let changed =
            choose(r#"{"codex": {"install": "brew install codex", "args": null}}"#, "codex").unwrap();
        let built_in = choose("{}", "codex").unwrap();
        assert_eq!(changed, CommandTemplate { install: "brew install codex".to_owned(), ..built_in });
        assert_eq!(choose("{}", "vibe"), choose("{}", "mistral"));
        let known = "claude, codex, gemini, vibe, opencode, goose, copilot, qwen, rehearsal, mine";
        let message = format!("unknown agent program \"x\"; known programs: {known}");
        assert_eq!(choose(r#"{"mine": {}}"#, "x"), Err(message));
    }

    /// Covers: AX-34
    #[test]
    fn a_program_of_ones_own_can_say_all_that_a_built_in_one_says() {
        for (name, built_in) in super::super::builtin::built_in().filter(|(name, _)| *name != "rehearsal") {
            // The same table under another name, whose program is not known.
            let table = include_str!("builtin.jsonc");
            let lines: Vec<&str> =
                table.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            let entries: Vec<serde_json::Value> = serde_json::from_str(&lines.join("\n")).unwrap();
            let mut entry = entries.into_iter().find(|entry| entry["program"] == name).unwrap();
            entry["program"] = "other".into();
            let own = choose(&serde_json::json!({ "own": entry }).to_string(), "own").unwrap();
            assert_eq!(own, CommandTemplate { program: "other".to_owned(), ..built_in.clone() });
        }
    }

    /// Covers: AX-34
    #[test]
    fn a_known_program_keeps_its_login_and_its_files_under_another_name() {
        let own = choose(
            r#"{"mine": {"program": "/opt/claude", "args": "--json", "pass_env": ["MY_KEY"]}}"#,
            "mine",
        )
        .unwrap();
        let claude = choose("{}", "claude").unwrap();
        assert_eq!((&own.home, &own.login_signs), (&claude.home, &claude.login_signs));
        assert_eq!(own.args, ["--json"]);
        assert!(own.pass_env.is_superset(&claude.pass_env) && own.pass_env.contains("MY_KEY"));
    }
}
