//! Proposes the settings that bring a project's dependencies into every checkout, and tries the integration test
//! once with them. Changes no setting.

use std::path::Path;

use liza_core::model::{Config, TestFailure};
use liza_git::Repo;
use liza_team::lifecycle::try_test;
use liza_team::project::Project;
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::recognition::dependencies::{ProposedSettings, VENV, recognize};

/// The reason of most failures, and the way out of them.
const ADVICE: &str = "A new checkout has only what is committed, what config.copy names and what config.setup \
                      installs. Correct what is missing, then try again: liza init --test";

/// Proposed settings, and the result of the test with them.
#[derive(Default)]
pub(crate) struct TriedProposal {
    settings: ProposedSettings,
    /// `None` if nothing was tried.
    result: Option<Result<(), TestFailure>>,
}

impl TriedProposal {
    /// Proposes the settings that are not set yet, and with `tries` runs the test of the person's checkout on
    /// their last commit.
    pub(crate) fn new(context: &Context, project: &Project, tries: bool) -> Result<Self, CommandError> {
        let state = project.store().snapshot()?;
        let mut config = state.board.config()?.clone();
        let settings = proposed(project.repo()?, &config);
        let result = match tries {
            true => {
                settings.apply_to(&mut config);
                Some(run_once(context, project, &config)?)
            }
            false => None,
        };
        Ok(Self { settings, result })
    }

    /// Titles with their texts.
    pub(crate) fn lines(&self) -> String {
        let commands = self.settings.commands();
        let settings = (!commands.is_empty()).then(|| {
            let commands = commands.join("; ");
            format!("dependencies        to have them in every new checkout: {commands}\n")
        });
        let settings = settings.unwrap_or_default();
        match &self.result {
            None => settings,
            Some(Ok(())) => {
                format!("{settings}tried once          it passes in a new checkout{}\n", self.with())
            }
            Some(Err(failure)) => format!(
                "{settings}tried once          it fails in a new checkout{}: {}\n{ADVICE}\n",
                self.with(),
                failure_in_words(failure, Path::new(""))
            ),
        }
    }

    fn with(&self) -> &'static str {
        if self.settings == ProposedSettings::default() { "" } else { " with these settings" }
    }

    pub(crate) fn trial(&self) -> Value {
        match &self.result {
            None => Value::Null,
            Some(Ok(())) => json!({"passed": true}),
            Some(Err(failure)) => json!({"passed": false, "failure": failure}),
        }
    }

    pub(crate) fn settings(&self) -> &ProposedSettings {
        &self.settings
    }
}

/// A failure with its last lines and the file that has all of them.
pub(crate) fn failure_in_words(failure: &TestFailure, root: &Path) -> String {
    let lines: String = failure.last_lines.iter().map(|line| format!("\n  | {line}")).collect();
    let output = match failure.output.as_str() {
        "" => String::new(),
        output => format!("\n  all of its output: {}", root.join(output).display()),
    };
    format!("{}{lines}{output}", failure.what)
}

/// A lock file that git ignores is in no checkout, so no command can use it there.
fn proposed(repo: &Repo, config: &Config) -> ProposedSettings {
    let is_usable = |name: &str| name == VENV || !repo.is_ignored(Path::new(name)).unwrap_or(false);
    recognize(|name| repo.root().join(name).exists() && is_usable(name)).unless_set(config)
}

fn run_once(
    context: &Context,
    project: &Project,
    config: &Config,
) -> Result<Result<(), TestFailure>, CommandError> {
    context.screen.note("liza: the test runs once in a new checkout, as before a merge; Ctrl-C ends it");
    let repo = project.repo()?;
    let commit = repo.commit_with_test(&repo.head()?.commit)?;
    Ok(try_test(project, config, &commit)?.map_or(Ok(()), Err))
}
