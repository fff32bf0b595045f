//! Providers and roles as the blackboard's config writes them.
//!
//! ```yaml
//! config:
//!   providers:
//!     mine: {program: my-agent, args: [--json], model_args: [--model, "{model}"], prompt: stdin, env: {MODE: auto}}
//!   roles:
//!     coder: {provider: mine, model: big, count: 4}
//!     planner: claude
//! ```

use liza_core::model::{Config, Fields, Role, Value};

use super::builtin::{self, NAMES};
use super::usage::Stream;
use super::{DEFAULT, Prompt, ProviderError, Template};

impl Template {
    /// The template for a role, and the model that the config names for it.
    pub(super) fn choose(
        config: &Config,
        role: Role,
        asked: Option<&str>,
    ) -> Result<(Self, Option<String>), ProviderError> {
        let (named, model) = of_role(config, role)?;
        let name = asked.map(str::to_owned).or(named.clone()).unwrap_or_else(|| DEFAULT.to_owned());
        // A model belongs to the provider that it was named with.
        let model = model.filter(|_| named.as_ref().is_none_or(|named| *named == name));
        let template = match config.providers.get(&name) {
            Some(value) => from_config(&name, value)?,
            None => builtin::template(&name).ok_or_else(|| unknown(config, &name))?,
        };
        Ok((template, model))
    }
}

fn unknown(config: &Config, name: &str) -> ProviderError {
    let mut known: Vec<String> = NAMES.map(str::to_owned).to_vec();
    known.extend(config.providers.keys().filter(|own| !NAMES.contains(&own.as_str())).cloned());
    ProviderError::Unknown { name: name.to_owned(), known }
}

/// How many agents of a role the config wants in a team.
///
/// # Errors
///
/// When it says something else than a number.
pub fn count(config: &Config, role: Role) -> Result<Option<u32>, ProviderError> {
    let place = format!("roles.{role}");
    let number = match entry(config, role) {
        Some(Value::Map(fields)) => fields.get("count"),
        None | Some(_) => None,
    };
    match number {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int(number)) => {
            u32::try_from(*number).map(Some).map_err(|_| wrong(&place, "count is a number of agents"))
        }
        Some(_) => Err(wrong(&place, "count is a number of agents")),
    }
}

fn entry(config: &Config, role: Role) -> Option<&Value> {
    config.roles.get(&role.to_string()).or_else(|| config.roles.get(role.id_prefix()))
}

fn of_role(config: &Config, role: Role) -> Result<(Option<String>, Option<String>), ProviderError> {
    let place = format!("roles.{role}");
    match entry(config, role) {
        None | Some(Value::Null) => Ok((None, None)),
        Some(Value::Text(name)) => Ok((Some(name.clone()), None)),
        Some(Value::Map(fields)) => Ok((text(fields, "provider", &place)?, text(fields, "model", &place)?)),
        Some(_) => Err(wrong(&place, "expected the name of a provider, or provider:, model: and count:")),
    }
}

/// A provider of the config's own; where it has a built-in one's name, that is what it changes.
fn from_config(name: &str, value: &Value) -> Result<Template, ProviderError> {
    let place = format!("providers.{name}");
    let Value::Map(fields) = value else { return Err(wrong(&place, "expected program:, args: and so on")) };
    const KEYS: [&str; 11] = [
        "program",
        "args",
        "model_args",
        "writing_args",
        "reading_args",
        "last_args",
        "interactive_args",
        "prompt",
        "env",
        "events",
        "install",
    ];
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(wrong(&place, &format!("{key} is not known; known: {}", KEYS.join(", "))));
    }
    let mut template = builtin::template(name).unwrap_or_else(|| builtin::empty(name, Some(name), ""));
    if let Some(program) = text(fields, "program", &place)? {
        template.program = Some(program);
    }
    let lists = [
        ("args", &mut template.arguments),
        ("model_args", &mut template.model),
        ("writing_args", &mut template.writing),
        ("reading_args", &mut template.reading),
        ("last_args", &mut template.last),
        ("interactive_args", &mut template.interactive),
    ];
    for (key, list) in lists {
        if let Some(words) = words(fields, key, &place)? {
            *list = words;
        }
    }
    match text(fields, "prompt", &place)?.as_deref() {
        None => {}
        Some("stdin") => template.prompt = Prompt::Stdin,
        Some("file") => template.prompt = Prompt::File,
        Some(_) => return Err(wrong(&place, "prompt is stdin or file")),
    }
    match fields.get("env") {
        None | Some(Value::Null) => {}
        Some(Value::Map(more)) => {
            let pairs = more.iter().map(|(name, value)| (name.clone(), value.to_string()));
            template.environment.extend(pairs);
        }
        Some(_) => return Err(wrong(&place, "env is a map of names and values")),
    }
    if let Some(name) = text(fields, "events", &place)? {
        let known = Stream::NAMES.iter().find(|(known, _)| *known == name);
        let names = Stream::NAMES.map(|(name, _)| name).join(" or ");
        template.stream = known.ok_or_else(|| wrong(&place, &format!("events is {names}")))?.1;
    }
    template.install = text(fields, "install", &place)?.unwrap_or(template.install);
    Ok(template)
}

fn wrong(place: &str, problem: &str) -> ProviderError {
    ProviderError::Config { place: place.to_owned(), problem: problem.to_owned() }
}

fn text(fields: &Fields, key: &str, place: &str) -> Result<Option<String>, ProviderError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::List(_) | Value::Map(_)) => Err(wrong(place, &format!("{key} is a text"))),
        Some(value) => Ok(Some(value.to_string())),
    }
}

fn words(fields: &Fields, key: &str, place: &str) -> Result<Option<Vec<String>>, ProviderError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::List(items)) => Ok(Some(items.iter().map(ToString::to_string).collect())),
        Some(_) => Err(wrong(place, &format!("{key} is a list of words"))),
    }
}
