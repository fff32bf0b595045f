//! Git in sessions: who commits, and where a search for a repository ends. Sessions that look at the work of others also
//! have settings: their git runs nothing that a commit or a checkout names. They are variables, which win over the settings of every repository. Code under test
//! doesn't get them: its use of git is its own business.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use liza_core::model::AgentId;
use liza_git::Repo;
use liza_host::worktrees::worktrees_folder;

const COUNT: &str = "GIT_CONFIG_COUNT";

/// A folder of a commit is taken for no repository, and neither a monitor of files nor a hook is started.
const SETTINGS: [(&str, &str); 3] =
    [("safe.bareRepository", "explicit"), ("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null")];

type Setting = (OsString, OsString);

/// The variables for a session, after the settings that the person has set in the same way.
pub(crate) fn inert_git_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<(String, String)> {
    let first = settings(variable).len();
    let mut variables = vec![(COUNT.to_owned(), (first + SETTINGS.len()).to_string())];
    for (number, (key, value)) in (first..).zip(SETTINGS) {
        let [key_name, value_name] = names(number);
        variables.extend([(key_name, key.to_owned()), (value_name, value.to_owned())]);
    }
    variables
}

/// If a checkout loses its repository, git must not take the one around it, which is the person's.
pub(crate) fn ceiling_variable(root: &Path) -> (String, String) {
    ("GIT_CEILING_DIRECTORIES".to_owned(), worktrees_folder(root).to_string_lossy().into_owned())
}

/// The variables with the git identity: some agent programs hide the person's git settings from their tools. An agent is
/// the author of its commits, so that they are not taken for the person's own, even if the person's own shell says who
/// they are. Other variables that are already set win; unknown ones stay unset.
pub(crate) fn identity_variables(repo: &Repo, author: Option<AgentId>) -> Vec<(String, String)> {
    let Ok(identity) = repo.identity() else { return Vec::new() };
    let Some((name, email)) = identity.strip_suffix('>').and_then(|identity| identity.rsplit_once(" <"))
    else {
        return Vec::new();
    };
    let author_name = author.map_or_else(|| name.to_owned(), |agent| format!("{agent} for {name}"));
    let is_inherited = |variable: &str| {
        let is_agents = variable == "GIT_AUTHOR_NAME" && author.is_some();
        std::env::var_os(variable).is_some() && !is_agents
    };
    let all = [
        ("GIT_AUTHOR_NAME", author_name.as_str()),
        ("GIT_AUTHOR_EMAIL", email),
        ("GIT_COMMITTER_NAME", name),
        ("GIT_COMMITTER_EMAIL", email),
    ];
    let unset = all.into_iter().filter(|(variable, _)| !is_inherited(variable));
    unset.map(|(variable, value)| (variable.to_owned(), value.to_owned())).collect()
}

/// Removes these settings, which this process may have, from a command; those of the person stay.
pub(crate) fn remove_inert_git(command: &mut Command) {
    let all = settings(&|name| std::env::var_os(name));
    let Some(left) = without_ours(&all) else { return };
    for number in 0..all.len() {
        for name in names(number) {
            command.env_remove(name);
        }
    }
    command.env_remove(COUNT);
    if left.is_empty() {
        return;
    }
    command.env(COUNT, left.len().to_string());
    for (number, (key, value)) in left.into_iter().enumerate() {
        let [key_name, value_name] = names(number);
        command.env(key_name, key).env(value_name, value);
    }
}

/// `None` if ours are not present.
fn without_ours(all: &[Setting]) -> Option<Vec<Setting>> {
    let is_ours = |window: &[Setting]| {
        window.iter().zip(SETTINGS).all(|((k, v), ours)| (k, v) == (&ours.0.into(), &ours.1.into()))
    };
    let start = all.windows(SETTINGS.len()).rposition(is_ours)?;
    let outside = |number: usize| number < start || number >= start + SETTINGS.len();
    Some(all.iter().enumerate().filter(|(number, _)| outside(*number)).map(|(_, it)| it.clone()).collect())
}

/// The settings in variables; none if git would refuse them.
fn settings(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Setting> {
    let count = variable(COUNT).and_then(|count| count.to_str()?.parse::<usize>().ok()).unwrap_or(0);
    let setting = |number| {
        let [key, value] = names(number);
        Some((variable(&key)?, variable(&value)?))
    };
    (0..count).map_while(setting).collect()
}

fn names(number: usize) -> [String; 2] {
    [format!("GIT_CONFIG_KEY_{number}"), format!("GIT_CONFIG_VALUE_{number}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-13
    #[test]
    fn settings_of_the_person_stay_in_front_and_are_what_is_left() {
        let own =
            [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.pager"), ("GIT_CONFIG_VALUE_0", "cat")];
        for own in [&own[..], &[]] {
            let person =
                |name: &str| own.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            let before = settings(&person);
            let added = inert_git_variables(&person);
            let session = |name: &str| {
                let ours = added.iter().find(|(known, _)| known == name).map(|(_, value)| value.into());
                ours.or_else(|| person(name))
            };
            let all = settings(&session);
            assert_eq!(all.len(), before.len() + 3);
            assert_eq!(all.last(), Some(&("core.hooksPath".into(), "/dev/null".into())));
            assert_eq!(without_ours(&all), Some(before.clone()));
            assert_eq!(without_ours(&before), None);
        }
    }
}
