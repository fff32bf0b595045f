//! `liza config`: every setting and its source; sets one, or accepts the shared file.

use liza_core::model::{
    Actor, Config, Fields, LogAction, SettingSource, TEAM_FILE, TeamFile, Value, WorktreePlace, source_of,
};
use liza_core::rules::misspelled::{meant_setting, unknown_gate_part, unknown_role_part, unknown_settings};
use liza_git::{GitError, Repo};
use liza_store::{ValueSyntax, settings_as_fields, yaml};
use liza_team::lifecycle::{place_of_worktrees, place_worktrees, worktrees_in_use};
use liza_team::project::team_file::{self, TeamFileContent, TeamFileError};
use liza_team::project::{Project, now};
use liza_team::run::{TOKEN_BUDGET, TeamOptions, team_posts};
use serde_json::json;

use crate::cli::agent_programs::default_client;
use crate::cli::confirm::{accepts, at_terminal};
use crate::cli::context::Context;
use crate::cli::setting_check;
use crate::cli::shared_settings::{
    accept_file_settings, accept_setting, note_unused_settings, trust_settings, unused_in_words,
};
use crate::cli::team_notes::uncounted;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{CYAN, DIM, clean, paint};
use crate::cli::ui::output::Reply;
use crate::cli::ui::settings_text::{changes, first_part, in_lines, in_one_line, without_setting};

use super::lock::{as_refusal, begin_edit, log_entry, masked_addresses, unmasked};

/// The setting with the place of worktrees.
const PLACE: &str = "worktrees";

/// Accepted for older projects.
const WITHOUT_EFFECT: &str = "sandbox_read";

/// Show the settings and where each comes from; set one.
///
/// A team shares settings in liza.yaml, in the root of the repository: any setting except those of the confinement, the
/// branches and the remote. They apply once you have accepted them, and again after each change. What is set on the
/// blackboard (liza config KEY VALUE) overrides the file. With a database, what other machines set that names a program or
/// lowers protection applies here once you have accepted it. --trust shows and accepts these settings, the file, and the
/// programs that .git/config names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza config
  liza config lease_duration
  liza config lease_duration 600
  liza config roles.coder.count 4
  liza config lease_duration --unset
  liza config --trust")]
pub(crate) struct Args {
    /// Only this setting.
    #[arg(value_name = "KEY", conflicts_with = "trust")]
    key: Option<String>,
    /// Set it on the blackboard, in this project only. A list or a map is written as YAML.
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
    /// Remove it from the blackboard, so that liza.yaml or the default applies.
    #[arg(long, requires = "key", conflicts_with = "value")]
    unset: bool,
    /// Accept liza.yaml as it is now, and show what changes; in a terminal, ask first.
    #[arg(long)]
    trust: bool,
    /// Do not ask.
    #[arg(long, short, requires = "trust")]
    yes: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    if args.trust {
        return trust(context, &project, args.yes);
    }
    if let (Some(key), true) = (&args.key, args.unset || args.value.is_some()) {
        return change(context, &project, key, args.value.as_deref());
    }
    show(context, &project, args.key.as_deref())
}

/// Every setting in force, or one of them, with its source.
fn show(context: &Context, project: &Project, key: Option<&str>) -> Result<Reply, CommandError> {
    let config = project.store().snapshot()?.board.config()?.clone();
    let defaults = default_settings()?;
    let mut settings = settings_as_fields(&config).map_err(unreadable)?;
    settings.shift_remove("team_file");
    // It has no effect any more, so it is listed where a project has it.
    if settings.get(WITHOUT_EFFECT) == Some(&Value::Null) && key != Some(WITHOUT_EFFECT) {
        settings.shift_remove(WITHOUT_EFFECT);
    }
    if let Some(key) = key {
        settings = Fields::from_iter([(key.to_owned(), setting(&settings, key)?)]);
    }
    let own = own_settings(project)?;
    let source = |key: &str| source_of(key, &own, &defaults);
    let unused = config.unaccepted.as_ref().map(|unaccepted| unused_in_words(&unaccepted.keys));
    let notice = key.is_none().then(|| file_notice(context, project)).flatten().or(unused);
    if let Some(notice) = &notice {
        context.screen.note(&format!("liza: {notice}"));
    }
    let width = settings.keys().map(String::len).max().unwrap_or(0);
    let lines: Vec<String> =
        settings.iter().map(|(key, value)| line(key, value, source(key), width)).collect();
    let result: serde_json::Map<_, _> = settings
        .iter()
        .map(|(key, value)| (key.clone(), json!({"value": value, "source": source(key).to_string()})))
        .collect();
    let addresses = masked_addresses(project, false, context)?;
    let result = addresses.mask_json(json!({"settings": result, "notice": notice}));
    Ok(Reply::new(addresses.mask(&lines.join("\n")), result))
}

/// The value of one setting: `lease_duration`, or `roles.coder.count`.
fn setting(settings: &Fields, key: &str) -> Result<Value, CommandError> {
    check_known(first_part(key))?;
    let mut parts = key.split('.');
    let first = parts.next().and_then(|part| settings.get(part));
    let found = first.and_then(|first| parts.try_fold(first, |value, part| value.as_map()?.get(part)));
    found.cloned().ok_or_else(|| {
        CommandError::refused("unknown_setting", format!("{key} is not set"))
            .hint(format!("set it: liza config {key} VALUE"))
    })
}

fn default_settings() -> Result<Fields, CommandError> {
    settings_as_fields(&Config::default()).map_err(unreadable)
}

/// Refuses a single word for a setting that is a list, and shows how a list is written.
fn check_form(key: &str, value: &str) -> Result<(), CommandError> {
    let is_list = matches!(default_settings()?.get(key), Some(Value::List(_)));
    if !is_list || value == "null" || value.trim_start().starts_with('[') {
        return Ok(());
    }
    Err(CommandError::refused("bad_config", format!("{key} is a list"))
        .hint(format!("write it in brackets: liza config {key} '[{value}]'")))
}

/// Sets a setting on the blackboard, or removes it.
fn change(
    context: &Context,
    project: &Project,
    key: &str,
    value: Option<&str>,
) -> Result<Reply, CommandError> {
    context.human_only("config")?;
    let first = first_part(key);
    check_known(first)?;
    if let Some(problem) = value.and_then(|_| unknown_gate_part(key)) {
        return Err(CommandError::refused("unknown_setting", problem).hint("what is set: liza config gate"));
    }
    if let Some(problem) = value.and_then(|_| unknown_role_part(key)) {
        return Err(CommandError::refused("unknown_setting", problem).hint("what is set: liza config roles"));
    }
    let value = value.map(|value| unmasked(project, value.to_owned())).transpose()?;
    if first == PLACE {
        check_no_worktrees(project)?;
    }
    if let Some(value) = value.as_deref() {
        check_form(key, value)?;
        setting_check::check(project, key, value)?;
    }
    let value = value.map(|value| setting_check::in_digits(key, &value)).transpose()?;
    let value = value.as_deref();
    if let Some((role, long)) = value.and_then(|_| in_long_form(&own_settings(project).ok()?, key)) {
        let log = log_entry(context, LogAction::Configured, &format!("{role} {long}"))?;
        let session = begin_edit(project, context, "config")?;
        session.set(&format!(".config.{role}"), &long, ValueSyntax::Yaml, &log, now()).map_err(as_refusal)?;
    }
    let session = begin_edit(project, context, "config")?;
    let (text, edited) = match value {
        Some(value) => {
            let log = log_entry(context, LogAction::Configured, &format!("{key} {value}"))?;
            let structured = value.starts_with(['[', '{']) || key != first;
            let syntax = if structured { ValueSyntax::Yaml } else { ValueSyntax::BySchema };
            let edited = session.set(&format!(".config.{key}"), value, syntax, &log, now());
            (format!("{key} is set on the blackboard: {value}"), edited.map_err(as_refusal)?)
        }
        None => {
            let Some(text) = without_setting(&session.text()?, key) else {
                let message = format!("{key} is not set on the blackboard");
                return Err(CommandError::refused("unknown_setting", message)
                    .hint(format!("where it comes from: liza config {first}")));
            };
            let log = log_entry(context, LogAction::Configured, &format!("{key} --unset"))?;
            let edited = session.replace(&text, &log, now()).map_err(as_refusal)?;
            (format!("{key} is no longer set on the blackboard"), edited)
        }
    };
    context.report_notices(&edited.notices);
    context.warn_of_misspelled_keys(&edited.misspelled);
    if value.is_some()
        && source_of(first, &own_settings(project)?, &default_settings()?) == SettingSource::TeamFile
    {
        context.screen.note(&format!(
            "liza: this is the default, which does not override {TEAM_FILE}; what applies: liza config {first}"
        ));
    }
    accept_setting(context, project, key, edited.revision)?;
    if first == PLACE {
        place_worktrees(project)?;
    }
    if first == "budget" && value.is_some() {
        warn_of_unkept_budget(context, project)?;
    }
    let addresses = masked_addresses(project, false, context)?;
    let result = addresses.mask_json(json!({"key": key, "value": value}));
    Ok(Reply::new(addresses.mask(&text), result).at(edited.revision.0))
}

/// Refuses another place of worktrees while there are some: none is moved.
fn check_no_worktrees(project: &Project) -> Result<(), CommandError> {
    let found = worktrees_in_use(project);
    if found.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let place = match place_of_worktrees(project) {
        WorktreePlace::Inside => "below the project",
        WorktreePlace::Outside => "outside the project",
    };
    let message = format!("worktrees stay {place} while there are some: {}", clean(&names.join(", ")));
    Err(CommandError::refused("worktrees_in_use", message).hint(
        "once their tasks are merged or dropped, try again; to take one away now, its work saved on a branch: \
         liza wt-delete TASK",
    ))
}

/// Says if a budget cannot be kept, before the next run is refused or spends without a limit.
fn warn_of_unkept_budget(context: &Context, project: &Project) -> Result<(), CommandError> {
    let config = project.store().snapshot()?.board.config()?.clone();
    // A mistake elsewhere in the settings is reported by the run.
    let options =
        TeamOptions { default_provider: Some(default_client(context).to_owned()), ..TeamOptions::default() };
    let posts = team_posts(&config, &options).unwrap_or_default();
    if let Some(note) = uncounted(&config, posts.iter().map(|post| &post.provider)) {
        context.screen.note(&format!("liza: {note}"));
    }
    let refused = posts.iter().find_map(|post| post.provider.check_budget(&config).err());
    if let Some(error) = refused {
        let scopes =
            [("task", &config.budget.task), ("sprint", &config.budget.sprint), ("day", &config.budget.day)];
        let in_dollars = scopes
            .into_iter()
            .filter(|(_, limit)| limit.as_ref().is_some_and(|limit| limit.dollars.is_some()));
        let without = in_dollars.map(|(scope, _)| format!("liza config budget.{scope}.dollars null"));
        let without = without.collect::<Vec<_>>().join("; ");
        context.screen.note(&format!(
            "liza: {error}, and liza run refuses it. In tokens: {TOKEN_BUDGET}; without the dollars: {without}"
        ));
    }
    Ok(())
}

/// The role of the key and its long form, if it is only the name of a program, which has no parts to set.
fn in_long_form<'k>(own: &Fields, key: &'k str) -> Option<(&'k str, String)> {
    let (role, _) = key.rsplit_once('.').filter(|(role, _)| role.starts_with("roles."))?;
    let Ok(Value::Text(provider)) = setting(own, role) else { return None };
    Some((role, json!({"provider": provider}).to_string()))
}

/// Refuses a key that is no setting, or that is not set this way.
fn check_known(key: &str) -> Result<(), CommandError> {
    let fields = Fields::from_iter([(key.to_owned(), Value::Null)]);
    if key == "team_file" {
        let message = format!("team_file is the copy of {TEAM_FILE} that you accepted");
        return Err(
            CommandError::refused("unknown_setting", message).hint("to update it: liza config --trust")
        );
    }
    if unknown_settings(&fields).is_empty() {
        return Ok(());
    }
    let hint = match meant_setting(key) {
        Some(meant) => format!("did you mean {meant}? To list the settings: liza config"),
        None => "to list the settings: liza config".to_owned(),
    };
    Err(CommandError::refused("unknown_setting", format!("{key} is not a setting")).hint(hint))
}

fn line(key: &str, value: &Value, source: SettingSource, width: usize) -> String {
    let value = in_one_line(value);
    let source = match source {
        SettingSource::Default => paint(DIM, "default"),
        SettingSource::TeamFile => paint(CYAN, TEAM_FILE),
        SettingSource::Blackboard => paint(CYAN, "blackboard"),
        SettingSource::Both => paint(CYAN, "blackboard and liza.yaml"),
    };
    format!("{key:<width$}  {value}  ({source})")
}

fn unreadable(error: yaml::YamlError) -> CommandError {
    CommandError::refused("bad_config", error.to_string())
}

/// The section as it is written, without the settings of the file.
fn own_settings(project: &Project) -> Result<Fields, CommandError> {
    let found = project.store().read_path(".config")?;
    Ok(found.first().and_then(Value::as_map).cloned().unwrap_or_default())
}

fn trust(context: &Context, project: &Project, yes: bool) -> Result<Reply, CommandError> {
    context.human_only("config --trust")?;
    let ask = !yes && at_terminal(context);
    let programs = trust_programs(context, project, ask)?;
    let settings = trust_settings(context, project, ask)?;
    place_worktrees(project)?;
    let accepted = accepted_in_words(&programs, &settings);
    let Some(content) = team_file::read(project)? else {
        if !accepted.is_empty() {
            let result = json!({"git_programs": programs, "shared_settings": settings});
            return Ok(Reply::new(accepted.join("\n"), result));
        }
        if let Some(known) = known_file(project)? {
            apply(context, project, None)?;
            let dropped = in_lines(&changes(&known.values, &Fields::new()));
            let text = format!("{TEAM_FILE} is gone; its settings no longer apply:{dropped}");
            let result = json!({"hash": null, "settings": [], "git_programs": [], "shared_settings": []});
            return Ok(Reply::new(text, result));
        }
        let message = format!("there is no {TEAM_FILE} in {}", project.root().display());
        return Err(CommandError::refused("no_team_file", message)
            .hint(format!("write {TEAM_FILE}, one setting per line; to list the settings: liza config")));
    };
    let old = known_file(project)?.map(|file| file.values).unwrap_or_default();
    let changes = changes(&old, &content.values);
    if ask {
        confirm_changes(context, &changes)?;
    }
    team_file::accept(context.environment.home().as_deref(), project.root(), &content.hash)?;
    apply(context, project, Some(&content))?;
    let names: Vec<&str> = content.values.keys().map(String::as_str).collect();
    let mut text = format!("{TEAM_FILE} is accepted: {}", names.join(", "));
    if !ask {
        text.push_str(&in_lines(&changes));
    }
    let text = accepted.into_iter().chain([text]).collect::<Vec<_>>().join("\n");
    let result = json!({
        "hash": content.hash, "settings": names, "git_programs": programs, "shared_settings": settings,
    });
    Ok(Reply::new(text, result))
}

/// Accepts the programs that the project's git configuration names now; returns the settings that changed.
fn trust_programs(context: &Context, project: &Project, ask: bool) -> Result<Vec<String>, CommandError> {
    let seen = project.repo()?.changed_programs()?;
    let changes = &seen.changes;
    if ask && !changes.is_empty() {
        let lines: String =
            changes.iter().map(|change| format!("\n  {}", clean(&change.to_string()))).collect();
        let question =
            format!("Programs that git runs, and how it signs, by .git/config:{lines}\nAccept it?");
        accepts(context, &question, "merges wait; to take the changes out: git config --edit")?;
    }
    project.repo()?.accept_programs(&seen)?;
    Ok(seen.keys())
}

/// Accepts the programs that a repository's git configuration names now; returns the settings that changed.
fn accept_programs(repo: &Repo) -> Result<Vec<String>, GitError> {
    let seen = repo.changed_programs()?;
    repo.accept_programs(&seen)?;
    Ok(seen.keys())
}

/// Accepts the programs of a new project: no agent has been at work, so its git configuration is the human's.
pub(super) fn note_accepted_programs(context: &Context, repo: &Repo) {
    match accept_programs(repo) {
        Ok(keys) if keys.is_empty() => {}
        Ok(keys) => context.screen.note(&format!("liza: {}", programs_in_words(&keys))),
        Err(error) => context.screen.note(&format!(
            "liza: the programs that .git/config names could not be accepted ({error}); again: liza config --trust"
        )),
    }
}

fn accepted_in_words(programs: &[String], settings: &[String]) -> Vec<String> {
    let programs = (!programs.is_empty()).then(|| programs_in_words(programs));
    let settings =
        (!settings.is_empty()).then(|| format!("accepted from the blackboard: {}", settings.join(", ")));
    programs.into_iter().chain(settings).collect()
}

fn programs_in_words(keys: &[String]) -> String {
    format!("accepted from .git/config: {}", clean(&keys.join(", ")))
}

/// The file as the human accepted it last.
fn known_file(project: &Project) -> Result<Option<TeamFile>, CommandError> {
    Ok(project.store().snapshot()?.board.config()?.team_file.clone())
}

/// Shows the changes since the file was accepted last, and asks.
fn confirm_changes(context: &Context, changes: &[String]) -> Result<(), CommandError> {
    let lines = if changes.is_empty() { "\n  no setting changes".to_owned() } else { in_lines(changes) };
    let hint = format!("the settings that you accepted before still apply; edit {TEAM_FILE} first");
    accepts(context, &format!("{TEAM_FILE} changes:{lines}\nAccept it?"), &hint)
}

/// Brings the accepted file to the blackboard before a team starts; reports a part that does not apply.
pub(crate) fn use_team_file(context: &Context, project: &Project) -> Result<(), CommandError> {
    if context.actor()? != Actor::Human {
        return Ok(());
    }
    place_worktrees(project)?;
    use_accepted_file(context, project)?;
    note_unused_settings(context, project.store())
}

fn use_accepted_file(context: &Context, project: &Project) -> Result<(), CommandError> {
    let known = known_file(project)?.map(|file| file.hash);
    match team_file::read(project)? {
        None if known.is_some() => apply(context, project, None),
        Some(content) if known.as_ref() != Some(&content.hash) => {
            let home = context.environment.home();
            if team_file::is_accepted(home.as_deref(), project.root(), &content.hash) {
                return apply(context, project, Some(&content));
            }
            if let Some(notice) = file_notice(context, project) {
                context.screen.note(&format!("liza: {notice}"));
            }
            Ok(())
        }
        None | Some(_) => Ok(()),
    }
}

/// The notice about a file that does not apply as it is.
fn file_notice(context: &Context, project: &Project) -> Option<String> {
    let content = match team_file::read(project) {
        Ok(Some(content)) => content,
        Ok(None) => {
            known_file(project).ok().flatten()?;
            let drop = "the next liza run drops them; now: liza config --trust";
            return Some(format!("{TEAM_FILE} is gone; its settings still apply: {drop}"));
        }
        Err(error) => return Some(error.to_string()),
    };
    let home = context.environment.home();
    let accepted = team_file::is_accepted(home.as_deref(), project.root(), &content.hash);
    (!accepted).then(|| {
        format!("you have not accepted this version of {TEAM_FILE}, so it is not used; read it, then: liza config --trust")
    })
}

/// Writes the settings of the file to the blackboard, or removes them.
fn apply(
    context: &Context,
    project: &Project,
    content: Option<&TeamFileContent>,
) -> Result<(), CommandError> {
    let value = match content {
        None => Value::Null,
        Some(TeamFileContent { hash, values }) => {
            let file = TeamFile { hash: hash.clone(), accepted: now(), values: values.clone() };
            let config = Config { team_file: Some(file), ..Default::default() };
            settings_as_fields(&config).map_err(unreadable)?.swap_remove("team_file").unwrap_or(Value::Null)
        }
    };
    let text = value.as_map().map_or_else(|| "null".to_owned(), yaml::document);
    let session = begin_edit(project, context, "config")?;
    let log = log_entry(context, LogAction::SettingsApplied, TEAM_FILE)?;
    session.set(".config.team_file", &text, ValueSyntax::Yaml, &log, now()).map_err(as_refusal)?;
    content.map_or(Ok(()), |content| accept_file_settings(project, &content.values))
}

impl From<TeamFileError> for CommandError {
    fn from(error: TeamFileError) -> Self {
        let message = error.to_string();
        match error {
            TeamFileError::Git(error) => error.into(),
            TeamFileError::Io { .. } => Self::refused("io", message),
            TeamFileError::Invalid(_) => {
                Self::refused("bad_team_file", message).hint("correct it; to list the settings: liza config")
            }
            TeamFileError::NoHome => {
                Self::refused("no_home", message).hint("HOME=/home/you liza config --trust")
            }
        }
    }
}
