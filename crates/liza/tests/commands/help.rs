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

/// Covers: CM-05
#[test]
fn each_command_is_found_by_its_name_or_by_the_map_of_the_code() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let map = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let rows: Vec<&str> =
        map.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    let help = TestProject::bare().liza(&["help", "--all"]).ok().to_owned();
    for verb in verbs(&help) {
        let file = verb.replace('-', "_");
        assert!(root.join(format!("crates/liza/src/cli/commands/{file}.rs")).is_file(), "{verb}");
        let in_core = root.join(format!("crates/liza-core/src/protocol/{file}.rs")).is_file();
        let named =
            rows.iter().any(|row| row.contains(&format!("`{verb}`")) || row.contains(&format!("`{verb} ")));
        assert!(in_core || named, "{verb}: no rule of that name, and no row in docs/architecture.md");
    }
    for path in map.split('`').filter(|text| text.starts_with("liza") && text.contains("/src/")) {
        assert!(root.join("crates").join(path).exists(), "docs/architecture.md names {path}");
    }
}
