//! Proposes the settings that bring a project's dependencies into every checkout, and tries the integration test
//! once with them. Changes no setting.

use std::path::Path;

use liza_core::model::{Config, TestFailure};
use liza_core::text::one_line;
use liza_git::Repo;
use liza_host::durable;
use liza_team::lifecycle::try_test;
use liza_team::project::Project;
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::recognition::active_environment::{self, LeadsBack};
use crate::recognition::dependencies::{ProposedSettings, VENV, recognize};

/// The reason of most failures, and the way out of them.
const ADVICE: &str = "A new checkout has only what is committed, what config.copy names and what config.setup \
                      installs. Correct what is missing, then try again: liza init --test";

/// The lines of a long output that are shown of its beginning, and the longest of them.
const FIRST_LINES: usize = 4;
const LINE_MAX: usize = 200;

/// Proposed settings, and the result of the test with them.
#[derive(Default)]
pub(crate) struct TriedProposal {
    settings: ProposedSettings,
    /// `None` if nothing was tried.
    result: Option<Result<(), TestFailure>>,
    /// The failure in words.
    failure: String,
    leads_back: Option<LeadsBack>,
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
        let failed = result.as_ref().and_then(|result| result.as_ref().err());
        let failure = failed.map(|failure| failure_in_words(failure, Path::new(""), project.root()));
        let failure = failure.unwrap_or_default();
        let leads_back = active_environment::find(project.root(), &config, |name| std::env::var_os(name));
        Ok(Self { settings, result, failure, leads_back })
    }

    /// Titles with their texts.
    pub(crate) fn lines(&self) -> String {
        let commands = self.settings.commands();
        let settings = (!commands.is_empty()).then(|| {
            let commands = commands.join("; ");
            format!("dependencies        to have them in every new checkout: {commands}\n")
        });
        let environment = self.leads_back.iter();
        let environment =
            environment.map(|found| format!("environment         {}; {}\n", found.problem, found.fix));
        let settings: String = settings.into_iter().chain(environment).collect();
        match &self.result {
            None => settings,
            Some(Ok(())) => {
                format!("{settings}tried once          it passes in a new checkout{}\n", self.with())
            }
            Some(Err(_)) => format!(
                "{settings}tried once          it fails in a new checkout{}: {}\n{ADVICE}\n",
                self.with(),
                self.failure
            ),
        }
    }

    fn with(&self) -> &'static str {
        if self.settings == ProposedSettings::default() { "" } else { " with these settings" }
    }

    /// A test that fails before any work is a failure of the command that tries it.
    pub(crate) fn exit(&self) -> Exit {
        if matches!(self.result, Some(Err(_))) { Exit::Refused } else { Exit::Success }
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

/// A failure with its first and last lines and the file that has all of them, named from this folder.
pub(crate) fn failure_in_words(failure: &TestFailure, named_from: &Path, root: &Path) -> String {
    let lines = first_lines(failure, root).into_iter().chain(failure.last_lines.iter().cloned());
    let lines: String = lines.map(|line| format!("\n  | {line}")).collect();
    let output = match failure.output.as_str() {
        "" => String::new(),
        output => format!("\n  all of its output: {}", named_from.join(output).display()),
    };
    format!("{}{lines}{output}", failure.what)
}

/// What a trial does, one after the other, and how long each may take.
pub(crate) fn limits_in_words(config: &Config) -> String {
    let setup = config.setup.as_ref().map(|line| format!("{line:?} (at most {}), then ", config.setup_limit));
    format!("{}the test (at most {})", setup.unwrap_or_default(), config.integration_test_limit)
}

/// The beginning of an output of which the failure has the end only: a test runner often says there what it could not find.
fn first_lines(failure: &TestFailure, root: &Path) -> Vec<String> {
    let text = durable::read_file(&root.join(&failure.output)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let before = lines.len().saturating_sub(failure.last_lines.len());
    let shown = lines.iter().take(before.min(FIRST_LINES)).map(|line| one_line(line, LINE_MAX));
    let gap = (before > FIRST_LINES).then(|| "…".to_owned());
    shown.chain(gap).collect()
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
    context.screen.note(&format!(
        "liza: the test runs once in a new checkout, as before a merge: {}; Ctrl-C ends it",
        limits_in_words(config)
    ));
    let repo = project.repo()?;
    let commit = repo.commit_with_test(&repo.head()?.commit)?;
    Ok(try_test(project, config, &commit)?.map_or(Ok(()), Err))
}
