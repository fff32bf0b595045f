//! The announcement of a team before its first session in a project: the rights of the agents. Shown once;
//! rehearsals, which run no agent program, are not announced.

use std::io;

use liza_core::model::Config;
use liza_host::durable;
use liza_sandbox::confine::Level;

use crate::project::Project;
use crate::supervisor::Post;

/// Sets a budget that can be kept with every agent program.
pub const TOKEN_BUDGET: &str = "liza config budget.day.tokens 2000000";

/// Marks that it was shown.
const SHOWN: &str = "first-run";

/// The text to show before the first session; `None` if it was shown before. Remembers that it was shown.
pub fn first_run_notice(project: &Project, config: &Config, posts: &[Post], level: &Level) -> Option<String> {
    let clients = clients(posts);
    let mark = project.folder().join(SHOWN);
    if clients.is_empty() || mark.exists() {
        return None;
    }
    // If it cannot be written, it is shown again.
    let _: io::Result<()> =
        durable::replace_private_file(&mark, b"What agents are allowed to do was shown.\n");
    let mut lines = vec!["First run in this project. The agents are allowed to do this:".to_owned()];
    lines.extend(clients.iter().map(|(name, rights)| format!("  {name}: {rights}")));
    lines.push(format!("  confined: {}", confinement(level)));
    lines
        .push("  They use your login; their usage is billed to you or counts against your quota.".to_owned());
    lines.push(
        "  Merges go to the integration branch only; your own branches and your checkout stay as they are."
            .to_owned(),
    );
    lines.push("  Details: liza doctor; liza agent coder --explain".to_owned());
    let limit = match posts.iter().any(|post| post.provider.without_cost(config).is_some()) {
        true => TOKEN_BUDGET,
        false => "liza config budget.day.dollars 20",
    };
    lines.push(format!("  To limit the cost: {limit}"));
    Some(lines.join("\n"))
}

pub fn is_first_run(project: &Project) -> bool {
    !project.folder().join(SHOWN).exists()
}

/// The agent programs of a team with their rights, each once.
fn clients(posts: &[Post]) -> Vec<(&str, &str)> {
    let mut clients: Vec<(&str, &str)> = Vec::new();
    for (name, rights) in posts.iter().flat_map(|post| post.provider.rights()) {
        if !rights.is_empty() && !clients.iter().any(|(known, _)| *known == name) {
            clients.push((name, rights));
        }
    }
    clients
}

fn confinement(level: &Level) -> String {
    match level {
        Level::Isolated => {
            "yes: they write only their own checkout and folders, and read neither credentials nor other processes".to_owned()
        }
        Level::Restricted(_) | Level::Unenforced(_) => level.to_string(),
        Level::Off => "no: they can do what you can do. To change that: liza config sandbox auto".to_owned(),
    }
}
