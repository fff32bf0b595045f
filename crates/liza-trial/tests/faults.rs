//! `just faults` runs exactly the tests that note what they have tried: `.config/faults` names them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All sources in this folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// A function of a source.
struct Function {
    name: String,
    is_test: bool,
    body: String,
}

/// The functions of a source. A test of a macro that lists names is one of them: its line is the name and a semicolon.
fn functions(text: &str) -> Vec<Function> {
    let listed: BTreeSet<&str> = text.lines().filter_map(|line| line.trim().strip_suffix(';')).collect();
    let (mut found, mut is_test): (Vec<Function>, bool) = (Vec::new(), false);
    for line in text.lines() {
        let words = line.trim_start().split_once("fn ").filter(|(before, _)| {
            before.split_whitespace().all(|word| word.starts_with("pub") || word == "async")
        });
        let name = words.and_then(|(_, rest)| rest.split(['(', '<']).next());
        if let Some(name) = name {
            let is_test = std::mem::take(&mut is_test) || listed.contains(name);
            found.push(Function { name: name.to_owned(), is_test, body: String::new() });
        } else if line.trim() == "#[test]" {
            is_test = true;
        } else if let Some(last) = found.last_mut() {
            last.body.push_str(line);
            last.body.push('\n');
        }
    }
    found
}

/// True if the text calls the function.
fn calls(text: &str, name: &str) -> bool {
    let is_whole =
        |at: usize| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    text.match_indices(&format!("{name}(")).any(|(at, _)| is_whole(at))
}

/// The tests of a source that note something, by themselves or by functions of the same source.
fn noting(text: &str) -> BTreeSet<String> {
    let all = functions(text);
    let mut found = BTreeSet::from(["tried".to_owned()]);
    loop {
        let is_new =
            |one: &&Function| !found.contains(&one.name) && found.iter().any(|known| calls(&one.body, known));
        let new: Vec<String> = all.iter().filter(is_new).map(|one| one.name.clone()).collect();
        if new.is_empty() {
            let is_test = |name: &String| all.iter().any(|one| one.is_test && one.name == *name);
            return found.into_iter().filter(is_test).collect();
        }
        found.extend(new);
    }
}

/// A test that notes and is not named there would be missing in the scorecard; another one that is named there would only cost time.
///
/// Covers: TR-04
#[test]
fn just_faults_runs_exactly_the_tests_that_note_what_they_tried() {
    let (mut noted, mut tests) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for path in sources(&repository().join("crates")) {
        let text = fs::read_to_string(&path).unwrap();
        let names: BTreeSet<String> =
            functions(&text).into_iter().filter(|one| one.is_test).map(|one| one.name).collect();
        names.into_iter().for_each(|name| *tests.entry(name).or_default() += 1);
        if text.lines().any(|line| line.starts_with("use liza_testkit::evidence::")) {
            noted.extend(noting(&text));
        }
    }
    let named = fs::read_to_string(repository().join(".config/faults")).unwrap();
    assert_eq!(named.lines().map(str::to_owned).collect::<BTreeSet<_>>(), noted);
    let doubled: Vec<&str> = named.lines().filter(|name| tests.get(*name) != Some(&1)).collect();
    assert_eq!(doubled, Vec::<&str>::new(), "a test of another source has this name too");
    let recipe = fs::read_to_string(repository().join("justfile")).unwrap();
    assert!(recipe.contains("paste -sd'|' .config/faults"));
}

/// Covers: TR-04
#[test]
fn a_test_notes_by_itself_or_by_a_function_that_it_calls() {
    let text = "fn twice() {\n tried(\"x\", 2);\n}\n#[test]\nfn one() {\n twice();\n}\n#[test]\nfn other() {\n entried(1);\n}\n\
                both! {\n  third;\n}\nfn third(kind: Kind) {\n tried(\"y\", 1);\n}\n";
    assert_eq!(noting(text), BTreeSet::from(["one", "third"].map(str::to_owned)));
}
