//! The help: every command is listed under a heading and shows how it is used.

use std::collections::BTreeSet;

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

pub(crate) fn repository() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The files below a folder whose names end so, with their texts.
fn files(folder: std::path::PathBuf, ending: &str) -> Vec<(std::path::PathBuf, String)> {
    let (mut open, mut found) = (vec![folder], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension().is_some_and(|extension| extension == ending) {
                true => found.push((entry.clone(), std::fs::read_to_string(entry).unwrap())),
                false if entry.is_dir() => open.push(entry),
                false => {}
            }
        }
    }
    found
}

/// The pages for users.
pub(crate) fn pages() -> Vec<(std::path::PathBuf, String)> {
    let root = repository();
    let more = ["README.md", "CONTRIBUTING.md"].map(|name| root.join(name));
    let more = more.map(|page| (page.clone(), std::fs::read_to_string(page).unwrap()));
    files(root.join("docs"), "md").into_iter().chain(more).collect()
}

/// Covers: UI-13
#[test]
fn every_requirement_has_a_test_and_every_cited_one_is_defined() {
    let page = std::fs::read_to_string(repository().join("docs/reference/requirements.md")).unwrap();
    let ids: Vec<&str> = page.lines().filter_map(first_cell).filter(|cell| is_requirement(cell)).collect();
    let defined: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), defined.len(), "a requirement is defined twice");
    let sources = files(repository().join("crates"), "rs");
    let cited: BTreeSet<&str> =
        sources.iter().flat_map(|(_, text)| text.lines()).flat_map(citations).collect();
    let untested: Vec<_> = defined.difference(&cited).collect();
    assert!(untested.is_empty(), "no test cites {untested:?}");
    let undefined: Vec<_> = cited.difference(&defined).collect();
    assert!(undefined.is_empty(), "docs/reference/requirements.md does not define {undefined:?}");
}

/// The first cell of a row of a table.
pub(crate) fn first_cell(line: &str) -> Option<&str> {
    line.strip_prefix("| ")?.split_once(" |").map(|(cell, _)| cell)
}

/// The requirements that a doc comment cites.
fn citations(line: &str) -> impl Iterator<Item = &str> {
    let list = line.trim_start().strip_prefix("/// Covers:").unwrap_or_default();
    list.split([' ', ',']).filter(|word| is_requirement(word))
}

/// Two capital letters, a hyphen, two digits.
fn is_requirement(word: &str) -> bool {
    let parts = word.split_once('-');
    parts.is_some_and(|(area, number)| {
        area.len() == 2
            && area.chars().all(|c| c.is_ascii_uppercase())
            && number.len() == 2
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

/// Covers: UI-03, CM-05
#[test]
fn the_hints_of_the_program_name_only_options_that_exist() {
    let project = TestProject::bare();
    let verbs = verbs(project.liza(&["help", "--all"]).ok());
    let mut help = std::collections::BTreeMap::new();
    let mut seen = 0;
    let sources = files(repository().join("crates"), "rs").into_iter();
    for (file, text) in sources.filter(|(file, _)| file.components().any(|part| part.as_os_str() == "src")) {
        for rest in text.split("liza ").skip(1) {
            // Up to the end of the sentence or of the text.
            let hint = rest.split(['"', '\n', '`', ';', '\\']).next().unwrap();
            let mut words = hint.split(" -- ").next().unwrap().split_whitespace();
            let Some(verb) = words.next().filter(|verb| verbs.iter().any(|known| known == verb)) else {
                continue;
            };
            let known = help.entry(verb.to_owned()).or_insert_with(|| project.liza(&[verb, "--help"]));
            for option in words.filter(|word| word.starts_with("--")) {
                let option = option.trim_end_matches(|c: char| !c.is_alphanumeric());
                let option = option.split('=').next().unwrap();
                assert!(known.stdout.contains(option), "{}: liza {hint}", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

/// Covers: UI-13
#[test]
fn the_pages_name_only_commands_and_options_that_exist() {
    let project = TestProject::bare();
    let mut help = std::collections::BTreeMap::new();
    let mut seen = 0;
    for (page, text) in pages() {
        for rest in text.split("`liza ").skip(1).chain(text.split("\nliza ").skip(1)) {
            let line = rest.split(['`', '\n', '#', '|', ';']).next().unwrap();
            let mut words = line.split_whitespace();
            let Some(verb) =
                words.next().filter(|verb| verb.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
            else {
                continue;
            };
            if verb.starts_with('-') {
                continue;
            }
            let known = help.entry(verb.to_owned()).or_insert_with(|| project.liza(&[verb, "--help"]));
            assert_eq!(known.code, 0, "{}: liza {line}", page.display());
            seen += 1;
            // What follows -- belongs to another program, and in quotes are texts.
            let unquoted: String = line.split(['"', '\'']).step_by(2).collect();
            for option in unquoted.split(" -- ").next().unwrap().split_whitespace() {
                let name = option.trim_start_matches('[').split(['=', ']', ',', '…']).next().unwrap();
                if name.starts_with("--") && name.len() > 2 {
                    assert!(known.stdout.contains(name), "{}: liza {line}: {name}", page.display());
                }
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

/// Covers: UI-13
#[test]
fn the_links_of_the_pages_lead_somewhere() {
    for (page, text) in pages() {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            assert!(page.parent().unwrap().join(file).exists(), "{}: {target}", page.display());
        }
    }
}

/// Covers: CM-05
#[test]
fn examples_can_be_copied_at_any_width() {
    let project = TestProject::bare();
    let help = |verb: &str, columns: &str| {
        let run = project.run(project.program().args([verb, "--help"]).env("COLUMNS", columns));
        run.ok().to_owned()
    };
    for verb in verbs(project.liza(&["help", "--all"]).ok()) {
        let examples = |text: &str| text.split_once("\nExample").map(|(_, rest)| rest.to_owned());
        let (narrow, wide) = (help(&verb, "40"), help(&verb, "300"));
        assert_eq!(examples(&narrow), examples(&wide), "{verb}");
        assert_eq!(examples(&help(&verb, "")), examples(&wide), "{verb}");
    }
}
