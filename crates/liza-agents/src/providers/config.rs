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

use std::str::FromStr;

use liza_core::model::{Config, Fields, Network, Role, Value};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::builtin::BuiltIn;
use super::error::ProviderError;
use super::event::EventFormat;
use super::template::{CommandTemplate, PromptDelivery};

pub(super) const DEFAULT_PROVIDER: &str = "claude";

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
enum ProviderKey {
    Program,
    Args,
    ModelArgs,
    EffortArgs,
    WritingArgs,
    ReadingArgs,
    LastArgs,
    InteractiveArgs,
    Prompt,
    Env,
    PassEnv,
    Events,
    Install,
}

/// A template, and the model and its effort that the config names for it.
#[derive(Debug)]
pub(super) struct ChosenTemplate {
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
    // A model and its effort belong to the provider with which they are configured.
    let is_own = programs.first().is_none_or(|named| named == name);
    let (model, effort) = (model.filter(|_| is_own), effort.filter(|_| is_own));
    if effort.is_some() && template.effort_args.is_empty() {
        let problem = format!("{name} has no argument for effort (effort_args in config.providers)");
        return Err(wrong(&format!("roles.{role}"), problem));
    }
    let others = programs.iter().skip(1).filter(|_| asked.is_none());
    let other = |name: &String| {
        Ok(ChosenTemplate { template: find_template(config, name)?, model: None, effort: None })
    };
    let others: Result<Vec<_>, ProviderError> = others.map(other).collect();
    Ok((ChosenTemplate { template, model, effort }, others?))
}

pub(super) fn find_template(config: &Config, name: &str) -> Result<CommandTemplate, ProviderError> {
    match config.providers.get(name) {
        Some(value) => template_from(name, value),
        None => name.parse().map(BuiltIn::template).map_err(|_| unknown(config, name)),
    }
}

fn unknown(config: &Config, name: &str) -> ProviderError {
    let mut known: Vec<String> = BuiltIn::VARIANTS.iter().map(ToString::to_string).collect();
    known.extend(config.providers.keys().filter(|own| !BuiltIn::VARIANTS.contains(&own.as_str())).cloned());
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
    chosen.map_or(Ok(Network::Open), |value| one_of(value, "network", &format!("roles.{role}")))
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
            let programs = match given("provider") {
                Some(list @ Value::List(_)) => words(list, "provider", &place)?,
                Some(one) => vec![text(one, "provider", &place)?],
                None => Vec::new(),
            };
            let one = |key| given(key).map(|value| text(value, key, &place)).transpose();
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
    let place = format!("providers.{name}");
    let Value::Map(fields) = value else {
        return Err(wrong(&place, "expected a map with program, args and so on"));
    };
    let base = name.parse().map(BuiltIn::template);
    let mut template = base.unwrap_or_else(|_| CommandTemplate::new(name, Some(name), ""));
    for (key, value) in known_keys(fields, &place)? {
        set(&mut template, key, value, &place)?;
    }
    Ok(template)
}

/// The given keys with their values, without null; all must be known.
fn known_keys<'a>(fields: &'a Fields, place: &str) -> Result<Vec<(ProviderKey, &'a Value)>, ProviderError> {
    let parse = |(key, value): (&'a String, &'a Value)| {
        let known = || format!("unknown key {key}; known keys: {}", ProviderKey::VARIANTS.join(", "));
        key.parse().map(|key| (key, value)).map_err(|_| wrong(place, known()))
    };
    let keys: Result<Vec<_>, _> = fields.iter().map(parse).collect();
    Ok(keys?.into_iter().filter(|(_, value)| **value != Value::Null).collect())
}

fn set(
    template: &mut CommandTemplate,
    key: ProviderKey,
    value: &Value,
    place: &str,
) -> Result<(), ProviderError> {
    let name: &str = key.into();
    match key {
        ProviderKey::Program => template.program = Some(text(value, name, place)?),
        ProviderKey::Args => template.args = words(value, name, place)?,
        ProviderKey::ModelArgs => template.model_args = words(value, name, place)?,
        ProviderKey::EffortArgs => template.effort_args = words(value, name, place)?,
        ProviderKey::WritingArgs => template.writing_args = words(value, name, place)?,
        ProviderKey::ReadingArgs => template.reading_args = words(value, name, place)?,
        ProviderKey::LastArgs => template.last_args = words(value, name, place)?,
        ProviderKey::InteractiveArgs => template.interactive_args = words(value, name, place)?,
        ProviderKey::Prompt => template.prompt = one_of::<PromptDelivery>(value, name, place)?,
        ProviderKey::Env => {
            let Value::Map(variables) = value else {
                return Err(wrong(place, "env must be a map of names to values"));
            };
            let pairs = variables.iter().map(|(name, value)| (name.clone(), value.to_string()));
            template.environment.extend(pairs);
        }
        ProviderKey::PassEnv => template.pass_env.extend(words(value, name, place)?),
        ProviderKey::Events => template.events = one_of::<EventFormat>(value, name, place)?,
        ProviderKey::Install => template.install = text(value, name, place)?,
    }
    Ok(())
}

fn wrong(place: &str, problem: impl Into<String>) -> ProviderError {
    ProviderError::Config { place: place.to_owned(), problem: problem.into() }
}

fn text(value: &Value, key: &str, place: &str) -> Result<String, ProviderError> {
    if matches!(value, Value::List(_) | Value::Map(_)) {
        return Err(wrong(place, format!("{key} must be a text")));
    }
    Ok(value.to_string())
}

fn words(value: &Value, key: &str, place: &str) -> Result<Vec<String>, ProviderError> {
    let Value::List(items) = value else {
        return Err(wrong(place, format!("{key} must be a list of words")));
    };
    Ok(items.iter().map(ToString::to_string).collect())
}

fn one_of<T: FromStr + VariantNames>(value: &Value, key: &str, place: &str) -> Result<T, ProviderError> {
    let names = || format!("{key} must be {}", T::VARIANTS.join(" or "));
    text(value, key, place)?.parse().map_err(|_| wrong(place, names()))
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
            (r#"{"a": {"args": "x"}}"#, "args must be a list of words"),
            (r#"{"a": {"program": ["x"]}}"#, "program must be a text"),
            (r#"{"a": {"prompt": "pipe"}}"#, "prompt must be stdin or file"),
            (
                r#"{"a": {"events": "json"}}"#,
                "events must be none or rehearsal or claude or codex or gemini or goose or opencode or vibe",
            ),
            (r#"{"a": {"env": []}}"#, "env must be a map of names to values"),
        ];
        for (providers, problem) in cases {
            assert_eq!(choose(providers, "a").unwrap_err(), format!("config.providers.a: {problem}"));
        }
        let unknown = choose(r#"{"a": {"argv": []}}"#, "a").unwrap_err();
        assert!(
            unknown
                .starts_with("config.providers.a: unknown key argv; known keys: program, args, model_args")
        );
    }

    /// Covers: SE-04
    #[test]
    fn the_first_provider_of_a_list_is_preferred_and_the_others_take_over() {
        let roles =
            serde_json::from_str(r#"{"coder": {"provider": ["codex", "vibe", "goose"], "model": "m"}}"#);
        let config = Config { roles: roles.unwrap(), ..Config::default() };
        let names = |asked: Option<&str>| {
            let (first, others) = choose_templates(&config, Role::Coder, asked, DEFAULT_PROVIDER).unwrap();
            let others: Vec<String> = others.into_iter().map(|other| other.template.name).collect();
            (first.template.name, first.model, others)
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
        let known = "claude, codex, gemini, vibe, opencode, goose, rehearsal, mine";
        let message = format!("unknown agent program \"x\"; known programs: {known}");
        assert_eq!(choose(r#"{"mine": {}}"#, "x"), Err(message));
    }
}
