//! The agent programs that a person named for the last team on this machine, so that suggested commands name them
//! too. No rule depends on it.

use std::io;

use liza_core::model::Role;
use liza_host::durable;
use liza_status::command_line::{CommandLine, StartCommands};

use crate::project::Project;

const FILE: &str = "last-run";

/// The program that plays in a copy unless a person says otherwise: the next command is about the same project.
const REHEARSAL: &str = "rehearsal";

/// Remembers the programs that were named: for all roles, the planner, the coders and the code reviewers.
pub fn remember_run(project: &Project, named: [Option<&str>; 4]) {
    let write = || durable::replace_private_file(&project.folder().join(FILE), &serde_json::to_vec(&named)?);
    // Without it, the commands name no program.
    let _: io::Result<()> = write();
}

/// The commands that start a team like the last one, or an agent like one of it.
pub fn last_run(project: &Project) -> StartCommands {
    let read = || serde_json::from_slice(&durable::read_file(&project.folder().join(FILE)).ok()?).ok();
    let named: [Option<String>; 4] = read().unwrap_or_default();
    // They become words of a command that a person copies.
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let [all, own @ ..] = named.each_ref().map(|name| name.as_deref().filter(is_plain));
    let options = ["--planner-cli", "--coder-cli", "--reviewer-cli"].into_iter().zip(own);
    let named = [("--cli", all)].into_iter().chain(options);
    let words = named.filter_map(|(option, name)| Some([option, name?])).flatten();
    let in_place = own.into_iter().chain([all]).any(|name| name == Some(REHEARSAL)).then_some("--in-place");
    let agent = |(role, own): (Role, Option<&str>)| {
        let named = own.or(all).map(|name| ["--cli", name]);
        CommandLine::liza(["agent", role.id_prefix()].into_iter().chain(named.into_iter().flatten()))
    };
    let [planner, coder, reviewer] = own;
    let agents = [(Role::Planner, planner), (Role::Coder, coder), (Role::CodeReviewer, reviewer)].map(agent);
    StartCommands { run: CommandLine::liza(["run"].into_iter().chain(words).chain(in_place)), agents }
}
