//! The page of error codes agrees with the code: every error code, its exit code, nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::{RefusalClass, RefusalKind};
use strum::IntoEnumIterator as _;

/// Error codes and the exit codes that each can have; empty if the sources do not state them in one place.
type Codes = BTreeMap<String, BTreeSet<u8>>;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The error codes of the rules.
fn rule_codes() -> Codes {
    let mut codes = Codes::new();
    for kind in RefusalKind::iter() {
        let exit = match kind.class() {
            RefusalClass::Refused => 1,
            RefusalClass::Inconsistent => 4,
            RefusalClass::Stop => 42,
        };
        codes.entry(kind.code().to_owned()).or_default().insert(exit);
    }
    codes
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

fn page_codes() -> Codes {
    let mut codes = Codes::new();
    for line in read("docs/reference/error-codes.md").lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let Some(code) = cells[0].strip_prefix("| `").and_then(|code| code.strip_suffix('`')) else {
            continue;
        };
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
