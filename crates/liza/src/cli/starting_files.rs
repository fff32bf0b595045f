//! The files that `init` writes for a person on request: the vision document and the integration test. Never
//! replaces a file that exists.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use liza_agents::contracts::vision_template;
use liza_core::model::GateSettings;
use liza_git::UnusedTest;
use liza_ids::gate::{DECIDING, GatePatterns, protect_command};
use liza_team::observe::last_run::last_run;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::spec_path;
use crate::cli::test_trial::TriedProposal;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use crate::recognition::test_command::{self, SCRIPT};

/// The integration test that there is, or that could be.
pub(crate) fn test_in_words(root: &Path, written: bool, unused: Option<UnusedTest>) -> String {
    match (root.join(SCRIPT).exists(), test_command::find(root)) {
        (true, Some(command)) if written => {
            format!("{}; commit it, then: liza sync{}", written_in_words(&command), to_protect(root))
        }
        (true, None) if written => format!("{SCRIPT} is written; commit it, then: liza sync"),
        (true, _) => match unused {
            Some(unused) => format!("{}; to use it: {}", unused.problem(), unused.fix()),
            None => SCRIPT.to_owned(),
        },
        (false, Some(command)) => format!("none; to run {command} before every merge: liza init --test"),
        (false, None) => format!("none; to test every merge, write {SCRIPT}"),
    }
}

/// The files of a project without settings that decide what the test runs, and how to protect them.
fn to_protect(root: &Path) -> String {
    let settings = GateSettings::default();
    let present = DECIDING.into_iter().filter(|file| root.join(file).is_file());
    match GatePatterns::new(&settings).unprotected_deciding(present).as_slice() {
        [] => String::new(),
        open => format!(
            ". Tasks can change what decides what it runs ({}); to have a say in that: {}",
            open.join(", "),
            protect_command(&settings, open)
        ),
    }
}

fn written_in_words(command: &str) -> String {
    format!("{SCRIPT} is written: it runs {command} before every merge")
}

/// Writes the integration test; returns the files and folders that were made.
pub(crate) fn new_test(root: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let Some(command) = test_command::find(root) else {
        let message = "no test command was found: no Cargo.toml, no script \"test\" in package.json, no go.mod, \
                       no tests in Python and no target test in a Makefile";
        return Err(CommandError::refused("no_test_command", message).hint(format!(
            "write the command that tests this project to {SCRIPT}, then try it: liza init --test"
        )));
    };
    let path = root.join(SCRIPT);
    let made = write_new(&path, &test_command::script(&command))?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&path, executable).map_err(|error| failed("make executable", &path, &error))?;
    Ok(made)
}

/// Writes the integration test of a project that has a blackboard, if it has none, and tries it.
pub(crate) fn write_test(context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let root = project.root();
    let is_new = !root.join(SCRIPT).exists();
    let command = if is_new { test_command::find(root) } else { None };
    if is_new {
        new_test(root)?;
    }
    let proposal = TriedProposal::new(context, &project, true)?;
    let next = "commit it, then bring it to the agents: liza sync";
    let text = match &command {
        Some(command) => format!("{}; {next}{}", written_in_words(command), to_protect(root)),
        None => format!("{SCRIPT} is yours and stays as it is"),
    };
    let result = json!({
        "written": is_new.then_some(SCRIPT),
        "runs": command,
        "proposed_settings": proposal.settings(),
        "trial": proposal.trial(),
    });
    Ok(Reply::new(format!("{text}\n{}", proposal.lines()).trim_end(), result).exit(proposal.exit()))
}

/// Writes a new file with its folders; returns what it created, outermost first.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<Vec<PathBuf>, CommandError> {
    let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
    let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    made.reverse();
    let write = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        io::Write::write_all(&mut fs::File::create_new(path)?, text.as_bytes())
    };
    write().map_err(|error| failed("write", path, &error))?;
    made.push(path.to_owned());
    Ok(made)
}

/// Writes the vision document of a project that has none yet.
pub(crate) fn write_missing_vision(context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let goal = state.board.goal.ready();
    let named = goal.and_then(|goal| goal.spec_ref.clone());
    let spec = spec_path::within(project.root(), named.as_deref().unwrap_or(spec_path::DEFAULT))?;
    let path = project.root().join(spec_path::file_of(&spec));
    let run = last_run(&project).run;
    if path.exists() {
        let message = format!("{} already exists", spec_path::file_of(&spec));
        return Err(CommandError::refused("exists", message).hint(format!("edit it, then: {run}")));
    }
    write_new(&path, &vision_template(goal.map_or("", |goal| &goal.description)))?;
    let text = format!("{spec} created from the template; fill it in, then: {run}");
    Ok(Reply::new(text, json!({"spec": spec})).at(state.board.revision.0))
}

/// An error of the file system while `init` works.
pub(crate) fn failed(action: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::refused("io", format!("cannot {action} {}: {error}", path.display()))
        .hint("check its permissions and the free disk space, then try again")
}
