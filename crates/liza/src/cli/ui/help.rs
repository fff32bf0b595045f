//! How `liza --help` lists the commands: grouped by who needs them, the most common first.

use clap::Command;

/// The groups and their verbs. A verb that is in none of them is listed at the end.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["init", "setup", "demo", "run", "agent"]),
    ("Inspect", &["status", "show", "log", "get", "graph", "tui", "web", "audit", "validate"]),
    (
        "Steer",
        &[
            "answer",
            "note",
            "dismiss",
            "goal",
            "sprint",
            "pause",
            "resume",
            "checkpoint",
            "abort",
            "retro",
            "watch",
            "analyze",
            "resolve",
            "spec-change",
            "sync",
            "accept-integration",
            "edit",
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
            "doctor",
            "recover",
            "archive",
        ],
    ),
];

/// The command with its help grouped.
pub(crate) fn grouped(command: Command) -> Command {
    let width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let line = |verb: &Command| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:<width$}  {about}\n", verb.get_name())
    };
    let mut list = String::new();
    for (heading, verbs) in GROUPS {
        let known = verbs.iter().filter_map(|name| command.find_subcommand(name));
        push_group(&mut list, heading, &known.map(line).collect::<String>());
    }
    let grouped = |name: &str| GROUPS.iter().any(|(_, verbs)| verbs.contains(&name));
    let rest = command.get_subcommands().filter(|verb| !grouped(verb.get_name()) && !verb.is_hide_set());
    push_group(&mut list, "More", &rest.map(line).collect::<String>());
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}\n\n\
         Details and examples: liza COMMAND --help"
    ))
}

fn push_group(list: &mut String, heading: &str, lines: &str) {
    if !lines.is_empty() {
        list.push_str(&format!("{heading}:\n{lines}\n"));
    }
}
