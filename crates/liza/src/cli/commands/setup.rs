//! `liza setup`: installs contracts, templates and the old script names in `~/.liza/`.
//!
//! Must not overwrite what a person has changed there, unless --force is given.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use liza_agents::contracts;
use liza_core::model::Section;
use liza_team::engine::integration_branch;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::contract_links::{self, ContractLinks};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::old_names::OLD_NAMES;
use crate::cli::ui::output::Reply;

/// Install contracts, templates and the old script names in ~/.liza.
///
/// Files that you have changed are kept. Run it again if the liza program has moved: the old names are links to it.
///
/// With --link, in a project, CLAUDE.md, AGENTS.md and GEMINI.md become links to the contract where they are missing, so
/// that agent programs that you start yourself read it too. Sessions that Liza starts do not need them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza setup
  liza setup --force
  liza setup --link      # in a project; undo it: liza setup --unlink")]
pub(crate) struct Args {
    /// Write every file again, including those that you have changed.
    #[arg(long)]
    force: bool,
    /// Link the contract as CLAUDE.md, AGENTS.md and GEMINI.md in this project; the links are excluded from git.
    #[arg(long, conflicts_with = "unlink")]
    link: bool,
    /// Remove those links.
    #[arg(long)]
    unlink: bool,
}

const AGAIN: &str = "files already written are complete; to write the rest: liza setup";

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("setup")?;
    let home = context.environment.home().ok_or_else(|| {
        CommandError::refused("no_home", "HOME is not set").hint("HOME=/home/you liza setup")
    })?;
    let folder = home.join(".liza");
    let texts = contracts::install(&folder, args.force)
        .map_err(|error| CommandError::refused("io", error.to_string()).hint(AGAIN))?;
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let (written, kept) = (owned(texts.written), owned(texts.kept));
    let mut install = Install { folder: &folder, force: args.force, written, kept };
    for (name, _) in OLD_NAMES {
        install.link(&format!("scripts/{name}"), &context.program)?;
    }
    let Install { written, kept, .. } = install;
    let kept_note = match kept.as_slice() {
        [] => String::new(),
        kept => format!("\nkept your changes to {}; to replace them: liza setup --force", kept.join(", ")),
    };
    let done = if written.is_empty() {
        "is up to date"
    } else {
        "has the contracts, the templates and the old script names"
    };
    if args.unlink {
        let removed = contract_links::unlink(context.project()?.repo()?)?;
        let text = match removed.as_slice() {
            [] => "this project has no links to the contract".to_owned(),
            names => format!("removed the links {}", names.join(", ")),
        };
        return Ok(Reply::new(text, json!({"folder": folder, "unlinked": removed})));
    }
    let links = if args.link { Some(link_here(context)?) } else { None };
    let next = match (&links, context.project()) {
        (Some(links), _) => format!("in this project: {}", links.in_words()),
        (None, Ok(_)) => "next: liza status".to_owned(),
        (None, Err(_)) => "next, in your repository: liza init \"GOAL\"".to_owned(),
    };
    let text = format!("{} {done}{kept_note}\n{next}", folder.display());
    let linked = links.map(|links| links.as_json());
    Ok(Reply::new(text, json!({"folder": folder, "written": written, "kept": kept, "linked": linked})))
}

fn link_here(context: &Context) -> Result<ContractLinks, CommandError> {
    let project = context.project()?;
    let board = project.store().read_parts(&[Section::Config], &[])?;
    let (repo, home) = (project.repo()?, context.environment.home());
    Ok(contract_links::link(repo, &integration_branch(&board)?, home.as_deref()))
}

struct Install<'s> {
    folder: &'s Path,
    force: bool,
    written: Vec<String>,
    kept: Vec<String>,
}

impl Install<'_> {
    fn link(&mut self, name: &str, program: &Path) -> Result<(), CommandError> {
        let path = self.prepare(name)?;
        match fs::read_link(&path) {
            Ok(target) if target == program => return Ok(()),
            // A link to a liza that has moved was made by `setup`, so it is updated.
            Ok(target) if target.file_name() == program.file_name() || !path.exists() => {}
            Ok(_) | Err(_) if path.exists() && !self.force => {
                self.kept.push(name.to_owned());
                return Ok(());
            }
            Ok(_) | Err(_) => {}
        }
        // Made under another name and renamed, so that a kill leaves either the old or the new one.
        let step = path.with_extension("new");
        let _ = fs::remove_file(&step);
        symlink(program, &step)
            .and_then(|()| fs::rename(&step, &path))
            .map_err(|error| failed("write", &path, &error))?;
        self.written.push(name.to_owned());
        Ok(())
    }

    fn prepare(&self, name: &str) -> Result<PathBuf, CommandError> {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(self.folder);
        fs::create_dir_all(folder).map_err(|error| failed("create", folder, &error))?;
        Ok(path)
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::refused("io", format!("cannot {action} {}: {error}", path.display())).hint(AGAIN)
}
