//! How the help lists the commands: grouped by who needs them, the most common first. `liza --help` shows those for people,
//! `liza help --all` also those that agents and supervisors use.

use clap::Command;

/// The groups and their verbs. A verb that is in none of them is listed at the end.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Start",
        &["init", "setup", "demo", "run", "attach", "stop", "agent", "join", "doctor", "config", "remove"],
    ),
    ("Inspect", &["tui", "status", "web", "show", "diff", "log", "tail", "graph"]),
    (
        "Steer",
        &[
            "add",
            "plan",
            "answer",
            "note",
            "dismiss",
            "goal",
            "sprint",
            "pause",
            "resume",
            "checkpoint",
            "abort",
            "sync",
            "finish",
        ],
    ),
    (
        "Examine and correct",
        &[
            "get",
            "validate",
            "edit",
            "export",
            "import",
            "retro",
            "watch",
            "analyze",
            "resolve",
            "spec-change",
            "accept-integration",
            "accept-gate",
        ],
    ),
    (
        "Plan",
        &[
            "add-task",
            "edit-task",
            "finalize",
            "unblock-task",
            "supersede-task",
            "abandon-task",
            "convert-discovery",
            "align",
        ],
    ),
    (
        "Work and review",
        &[
            "pre-check",
            "submit-for-review",
            "check",
            "submit-verdict",
            "mark-blocked",
            "handoff",
            "anomaly",
            "discover",
        ],
    ),
    (
        "Supervise and repair",
        &[
            "register",
            "heartbeat",
            "deregister",
            "claim-task",
            "claim-review",
            "release-claim",
            "clear-stale-review-claims",
            "wt-create",
            "wt-merge",
            "wt-delete",
            "update-sprint-metrics",
            "lock",
            "recover",
            "archive",
        ],
    ),
];

/// How many of the groups are for people.
const FOR_PEOPLE: usize = 3;

/// Which commands the help lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Those for people.
    ForPeople,
    /// All.
    All,
}

/// The command with its help grouped.
pub(crate) fn grouped(command: Command, listed: Listed) -> Command {
    let command = command.mut_subcommands(with_whole_examples);
    let width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let line = |verb: &Command| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:<width$}  {about}\n", verb.get_name())
    };
    let mut list = String::new();
    let groups = match listed {
        Listed::ForPeople => FOR_PEOPLE,
        Listed::All => GROUPS.len(),
    };
    for (heading, verbs) in GROUPS.into_iter().take(groups) {
        let known = verbs.iter().filter_map(|name| command.find_subcommand(name));
        push_group(&mut list, heading, &known.map(line).collect::<String>());
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, verbs)| verbs.contains(&name));
    let rest = command.get_subcommands().filter(|verb| !is_grouped(verb.get_name()) && !verb.is_hide_set());
    let rest: String = rest.map(line).collect();
    if listed == Listed::All {
        push_group(&mut list, "More", &rest);
    }
    let more = match listed {
        Listed::ForPeople => "\nAll commands, including those for agents: liza help --all",
        Listed::All => "",
    };
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}\n\n\
         Details and examples: liza help COMMAND{more}"
    ))
}

/// The command with its examples as they are: wrapped ones could not be copied.
fn with_whole_examples(command: Command) -> Command {
    let command = command.mut_subcommands(with_whole_examples);
    match command.get_after_help().map(ToString::to_string) {
        None => command,
        Some(examples) => command.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{all-args}}\n\n{examples}"
        )),
    }
}

fn push_group(list: &mut String, heading: &str, lines: &str) {
    if !lines.is_empty() {
        list.push_str(&format!("{heading}:\n{lines}\n"));
    }
}
