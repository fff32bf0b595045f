//! The commands in the help: grouped by user, the most common first. `liza --help` shows those for people,
//! `liza help --all` also those of agents and supervisors.

use clap::Command;

/// A heading and its commands.
pub(crate) type Group = (&'static str, &'static [&'static str]);

/// The number of groups for people, which come first.
const FOR_PEOPLE: usize = 3;

/// The commands that the help lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    ForPeople,
    All,
}

/// The command with its help grouped.
pub(crate) fn grouped(command: Command, groups: &[Group], listed: Listed) -> Command {
    let command = command.mut_subcommands(with_whole_examples);
    let width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let line = |verb: &Command| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:<width$}  {about}\n", verb.get_name())
    };
    let mut list = String::new();
    let count = match listed {
        Listed::ForPeople => FOR_PEOPLE,
        Listed::All => groups.len(),
    };
    for (heading, verbs) in groups.iter().take(count) {
        let verbs = verbs.iter().filter_map(|name| command.find_subcommand(name));
        let lines: String = verbs.filter(|verb| !verb.is_hide_set()).map(line).collect();
        list.push_str(&format!("{heading}:\n{lines}\n"));
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
