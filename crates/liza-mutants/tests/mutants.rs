//! The mutants of a sample, their switches in a program, and the published page.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use liza_mutants::find::{Mutant, mutants};
use liza_mutants::report::{Fate, Report, one_line, page, reasons};
use liza_mutants::rewrite::{CHOSEN, REACHED, mutant_at, rewritten, switch_module};
use liza_mutants::shuffle;

/// Prints what it decides, so that a mutant shows.
const SAMPLE: &str = "\
mod mutant;
const LIMIT: u32 = 3;
fn main() {
    let held = |n: u32| Some(n).filter(|n| *n > 1 && *n <= LIMIT);
    println!(\"{:?} {:?} {}\", held(1), held(3), is_free(4));
}
fn is_free(n: u32) -> bool {
    if n == 9 {
        return false;
    }
    !matches!(n, 5..=6)
}
const fn fixed() -> u32 {
    1 + 1
}
#[cfg(test)]
mod tests {
    fn one() -> u32 {
        1 + 1
    }
}
";

/// The changes that the sample does not print.
const SILENT: [(&str, &str); 7] = [
    ("1", "2"),
    ("{ … }", "true"),
    ("n == 9", "false"),
    ("9", "10"),
    ("9", "8"),
    ("return false;", ""),
    ("false", "true"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn found(text: &str) -> Vec<Mutant> {
    mutants(text).unwrap()
}

fn numbered(found: &[Mutant]) -> Vec<(usize, &Mutant)> {
    found.iter().enumerate().collect()
}

/// Covers: PV-06
#[test]
fn mutants_are_found_where_a_switch_fits() {
    let found = found(SAMPLE);
    let shown: Vec<String> = found
        .iter()
        .map(|mutant| format!("{} {}: {} -> {}", mutant.line, mutant.function, mutant.old, mutant.new))
        .collect();
    let expected = [
        "3 main: { … } -> ",
        "4 main: Some(n).filter(|n| *n > 1 && *n <= LIMIT) -> Some(n)",
        "4 main: Some(n) -> None",
        "4 main: *n > 1 && *n <= LIMIT -> true",
        "4 main: *n > 1 && *n <= LIMIT -> (*n > 1) || (*n <= LIMIT)",
        "4 main: *n > 1 -> *n >= 1",
        "4 main: 1 -> 2",
        "4 main: 1 -> 0",
        "4 main: *n <= LIMIT -> *n < LIMIT",
        "7 is_free: { … } -> true",
        "7 is_free: { … } -> false",
        "8 is_free: n == 9 -> true",
        "8 is_free: n == 9 -> false",
        "8 is_free: n == 9 -> n != 9",
        "8 is_free: 9 -> 10",
        "8 is_free: 9 -> 8",
        "9 is_free: return false; -> ",
        "9 is_free: false -> true",
        "11 is_free: !matches!(n, 5..=6) -> matches!(n, 5..=6)",
        "11 is_free: matches!(n, 5..=6) -> !matches!(n, 5..=6)",
    ];
    assert_eq!(shown, expected);
}

/// Covers: PV-06
#[test]
fn a_condition_that_binds_a_name_stays_as_it_is() {
    let text = "fn f(n: Option<u8>) -> u8 {
        let Some(m) = n else { return 0; };
        if let Some(k) = n && k == m { k } else { m }
    }";
    let found = found(text);
    let shown: Vec<_> = found.iter().map(|mutant| (mutant.old.as_str(), mutant.new.as_str())).collect();
    assert_eq!(shown, [("0", "1"), ("k == m", "k != m")]);
}

/// Covers: PV-06
#[test]
fn each_switch_changes_what_the_program_does_and_only_when_it_is_on() {
    let folder = tempfile::tempdir().unwrap();
    let found = found(SAMPLE);
    let text = rewritten(SAMPLE, &numbered(&found));
    fs::write(folder.path().join("main.rs"), &text).unwrap();
    fs::write(folder.path().join("mutant.rs"), switch_module(found.len())).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "--cap-lints=allow", "main.rs", "-o", "sample"]).current_dir(&folder);
    let built = rustc.output().unwrap();
    assert!(built.status.success(), "{text}\n{}", String::from_utf8_lossy(&built.stderr));
    let run = |variable: &str, value: &str| {
        let output = Command::new(folder.path().join("sample")).env(variable, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let reached = folder.path().join("reached");
    assert_eq!(run(REACHED, reached.to_str().unwrap()), "None Some(3) true\n");
    let seen = fs::read_to_string(reached).unwrap();
    for (number, mutant) in numbered(&found) {
        let said = run(CHOSEN, &number.to_string());
        let is_silent = SILENT.contains(&(mutant.old.as_str(), mutant.new.as_str()));
        let is_reached = seen.lines().any(|line| line == number.to_string());
        assert_eq!(said == "None Some(3) true\n", is_silent, "{mutant:?}: {said}");
        assert_eq!(is_reached, mutant.line != 9, "{mutant:?}");
    }
}

/// Covers: PV-06
#[test]
fn an_error_of_the_compiler_finds_its_mutant() {
    let found = found(SAMPLE);
    let text = rewritten(SAMPLE, &numbered(&found));
    let wrong = text.find("{ *n >= 1 }").unwrap();
    let number = found.iter().position(|mutant| mutant.new == "*n >= 1");
    assert_eq!(mutant_at(&text, wrong..wrong + 3), number);
    assert_eq!(mutant_at(&text, 0..3), None);
}

/// Covers: PV-06
#[test]
fn the_seed_alone_decides_the_sample() {
    let sample = |seed| {
        let mut numbers: Vec<u32> = (0..1000).collect();
        shuffle(&mut numbers, seed);
        numbers.truncate(300);
        numbers
    };
    assert_eq!(sample(1), sample(1));
    assert_ne!(sample(1), sample(2));
    let mut sorted = sample(1);
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 300);
}

/// Covers: PV-06
#[test]
fn the_published_page_agrees_with_its_figures() {
    let path = |name: &str| root().join("docs").join(name);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let published: Report = serde_json::from_str(&read("mutants.json")).unwrap();
    let mut again = Report { results: Vec::new(), ..published.clone() };
    published.results.iter().cloned().for_each(|tried| again.add(tried));
    if std::env::var_os("LIZA_BLESS").is_some() {
        fs::write(path("mutants.json"), serde_json::to_string(&again).unwrap() + "\n").unwrap();
        fs::write(path("mutants.md"), page(&again)).unwrap();
    }
    assert!(read("mutants.md") == page(&again), "run `just bless` and read the diff");
    let published: Report = serde_json::from_str(&read("mutants.json")).unwrap();
    // A number with a point may differ in its last digit once it was read.
    assert!((again.rate - published.rate).abs() < 1e-9);
    let again = Report { rate: published.rate, interval_95: published.interval_95, ..again };
    assert!(again == published, "the figures follow from the mutants, and the reasons from `equivalent.tsv`");
    assert!(published.counted >= 300, "a sample of {}", published.counted);
    let page = read("mutants.md");
    let survivors = published.results.iter().filter(|tried| tried.fate != Fate::Killed);
    for tried in survivors {
        assert!(page.contains(&format!("`{}:{}`", tried.file, tried.line)), "{tried:?}");
    }
}

/// Covers: PV-06
#[test]
fn each_reason_is_of_a_mutant_that_exists() {
    for reason in reasons() {
        let path = root().join("crates/liza-core/src").join(reason.file);
        let found = found(&fs::read_to_string(path).unwrap());
        let is_of = |mutant: &Mutant| {
            let shown = (mutant.function.as_str(), one_line(&mutant.old), one_line(&mutant.new));
            shown == (reason.function, reason.old.to_owned(), reason.new.to_owned())
        };
        assert!(found.iter().any(is_of) && reason.text.len() > 20, "{reason:?}");
    }
}
