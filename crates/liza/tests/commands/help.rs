//! The help: every command is listed under a heading and shows how it is used.

use crate::support::TestProject;

/// The verbs that the help lists.
fn verbs(help: &str) -> Vec<String> {
    let lists = help.split("Options:").next().unwrap();
    let lines = lists.lines().filter(|line| line.starts_with("  "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Covers: CM-05
#[test]
fn the_help_groups_the_commands_and_fits_a_terminal() {
    let project = TestProject::bare();
    let help = project.liza(&["help", "--all"]).ok().to_owned();
    for heading in ["Start:", "Inspect:", "Steer:", "Plan:", "Work and review:", "Supervise and repair:"] {
        assert!(help.contains(&format!("\n{heading}\n")), "{heading}: {help}");
    }
    let lists = help.split("Options:").next().unwrap();
    assert!(lists.lines().all(|line| line.chars().count() <= 100), "{lists}");
    assert!(verbs(&help).len() > 30);
    let short = project.liza(&["-h"]).ok().to_owned();
    assert_eq!(short, project.liza(&["help"]).ok());
    assert!(short.contains("\nSteer:\n") && !short.contains("\nWork and review:\n"), "{short}");
    assert!(short.contains("liza help --all"), "{short}");
    assert!(short.lines().count() <= 55, "{short}");
    assert_eq!(project.liza(&[]).code, 1);
}

/// Covers: CM-05
#[test]
fn every_command_that_writes_shows_an_example() {
    let project = TestProject::bare();
    let help = project.liza(&["help", "--all"]).ok().to_owned();
    for verb in verbs(&help).iter().filter(|verb| verb.as_str() != "validate") {
        let text = project.liza(&[verb, "--help"]).ok().to_owned();
        assert!(text.contains("Example") && text.contains(&format!("  liza {verb}")), "{verb}: {text}");
    }
}

/// Covers: CM-05
#[test]
fn help_with_a_command_is_the_help_of_that_command() {
    let project = TestProject::bare();
    for words in [&["note"][..], &["lock", "write"]] {
        let asked: Vec<&str> = ["help"].into_iter().chain(words.iter().copied()).collect();
        let option: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
        assert_eq!(project.liza(&asked).ok(), project.liza(&option).ok());
    }
    assert_eq!(project.liza(&["help", "nonsense"]).code, 1);
}
