//! The page of error codes agrees with the code: every error code, its exit code, nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::{Refusal, RefusalClass, RefusalRow};

/// Error codes and the exit codes that each can have; empty if the sources do not state them in one place.
type Codes = BTreeMap<String, BTreeSet<u8>>;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn exit_of(row: &RefusalRow) -> u8 {
    match row.class {
        RefusalClass::Refused => 1,
        RefusalClass::Inconsistent => 4,
        RefusalClass::Stop => 42,
    }
}

/// The error codes of the rules.
fn rule_codes() -> Codes {
    let mut codes = Codes::new();
    for row in Refusal::ROWS {
        codes.entry(row.code.to_owned()).or_default().insert(exit_of(row));
    }
    codes
}

/// The line of the page about a code of the rules.
fn rule_line(code: &str) -> Option<String> {
    let rows: Vec<&RefusalRow> = Refusal::ROWS.iter().filter(|row| row.code == code).collect();
    let means: Vec<String> = rows.iter().map(|row| row.means.concat().trim().to_owned()).collect();
    let hints: Vec<String> =
        rows.iter().flat_map(|row| row.hints).map(|hint| with_placeholders(hint)).collect();
    let to_do = if hints.is_empty() { "–".to_owned() } else { hints.join("; or: ") };
    let exit = exit_of(rows.first()?);
    Some(format!("| `{code}` | {exit} | {} | {to_do} |", means.join("; or: ")))
}

/// A hint as the page shows it: `{task}` is TASK.
fn with_placeholders(hint: &str) -> String {
    let mut text = String::new();
    for part in hint.split_inclusive(['{', '}']) {
        match part.strip_suffix('}') {
            Some(name) => text.push_str(&name.to_uppercase()),
            None => text.push_str(part.strip_suffix('{').unwrap_or(part)),
        }
        // An argument that may be left out brings its own space.
        if part.ends_with('{') && text.ends_with(char::is_alphanumeric) {
            text.push(' ');
        }
    }
    text
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(path) } else { vec![path] }).collect()
}

/// The error codes of the commands themselves.
fn command_codes() -> Codes {
    let mut codes = Codes::new();
    for path in files(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli")) {
        let source = fs::read_to_string(path).unwrap();
        let source: String = source.split_whitespace().collect::<Vec<_>>().join(" ");
        for call in ["refused(", "made(", "=> (", "=> { ("] {
            for rest in source.split(call).skip(1) {
                let Some((code, after)) =
                    rest.trim_start().strip_prefix('"').and_then(|it| it.split_once('"'))
                else {
                    continue;
                };
                let word = !code.is_empty() && code.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                let exit = after.strip_prefix(", Exit::").map(exit);
                // A pair is an error only if it names its exit code.
                if word && (exit.is_some() || !call.starts_with("=>")) {
                    codes.entry(code.to_owned()).or_default().extend(exit);
                }
            }
        }
    }
    codes
}

fn exit(name: &str) -> u8 {
    let exits =
        [("Refused", 1), ("Locked", 2), ("Git", 3), ("Inconsistent", 4), ("Missing", 5), ("Stop", 42)];
    exits.iter().find(|(exit, _)| name.starts_with(exit)).unwrap_or_else(|| panic!("{name}")).1
}

/// The code that a line of the page is about.
fn code_of(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once("` | ").map(|(code, _)| code)
}

fn page_codes() -> Codes {
    let mut codes = Codes::new();
    for line in read("docs/reference/error-codes.md").lines() {
        let Some(code) = code_of(line) else { continue };
        let cells: Vec<&str> = line.split(" | ").collect();
        assert_eq!(cells.len(), 4, "{line}");
        let exits = cells[1].split(", ").map(|exit| exit.parse().unwrap()).collect();
        assert_eq!(codes.insert(code.to_owned(), exits), None, "{code} is listed twice");
    }
    codes
}

/// Covers: CM-02, CM-03, CM-05
#[test]
fn every_error_code_is_documented_with_its_exit_code() {
    let (page, mut known) = (page_codes(), rule_codes());
    assert!(known.len() > 50 && page.len() > 90, "{} {}", known.len(), page.len());
    for (code, exits) in command_codes() {
        known.entry(code).or_default().extend(exits);
    }
    let names = |codes: &Codes| codes.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&known), names(&page));
    for (code, exits) in &known {
        assert!(exits.is_subset(&page[code]), "{code} exits with {exits:?}, the page has {:?}", page[code]);
    }
}

/// The rows of the page about refusals are the table of the rules.
///
/// Covers: CM-02, CM-05
#[test]
fn the_page_shows_the_table_of_refusals() {
    let page = read("docs/reference/error-codes.md");
    let generated = |line: &str| rule_line(code_of(line)?);
    if std::env::var_os("LIZA_BLESS").is_some() {
        let lines = page.lines().map(|line| generated(line).unwrap_or(line.to_owned()) + "\n");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/error-codes.md");
        fs::write(path, lines.collect::<String>()).unwrap();
        return;
    }
    for line in page.lines() {
        let expected = generated(line);
        assert_eq!(line, expected.as_deref().unwrap_or(line), "run `just bless` and read the diff");
    }
}
