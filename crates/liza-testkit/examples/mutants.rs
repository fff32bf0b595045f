//! Mutants of the rules: a random sample by seed of small changes in the source, each of which the tests of `liza-core` must notice.
//!
//! `cargo run -p liza-testkit --example mutants -- NUMBER SEED`. Works on a copy of the sources below `target/`; the result is in
//! `target/mutants.json`. A survivor that is no gap of the tests has its reason in `mutants.tsv` beside this crate's manifest.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a tool of this repository")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

/// The folders of `liza-core` whose rules are tried.
const FOLDERS: [&str; 3] = ["src/protocol", "src/rules", "src/supervise"];

/// The longest run of the tests, in seconds. A mutant that loops is noticed.
const LIMIT: &str = "900";

/// Each text and its replacement.
const SWAPS: [(&str, &str); 25] = [
    (" == ", " != "),
    (" != ", " == "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    ("true", "false"),
    ("false", "true"),
    ("if !", "if "),
    (".is_some()", ".is_none()"),
    (".is_none()", ".is_some()"),
    (".is_some_and(", ".is_none_or("),
    (".is_none_or(", ".is_some_and("),
    (".any(", ".all("),
    (".all(", ".any("),
    (".is_empty()", ".is_empty().eq(&false)"),
    ("(0)", "(1)"),
    ("(1)", "(0)"),
    (".rev()", ""),
    (".min(", ".max("),
    (".max(", ".min("),
];

struct Mutant {
    file: PathBuf,
    /// From 0.
    line: usize,
    old: String,
    new: String,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum Fate {
    Killed,
    Survived,
    /// The compiler refuses it: not counted.
    Unbuildable,
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let (number, seed) = (words.next().unwrap_or(300), words.next().unwrap_or(1));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let copy = target.join("mutants");
    copy_sources(root, &copy);
    assert!(tests_pass(&copy, &target) == Fate::Survived, "the tests fail without a mutant");
    let mut mutants: Vec<Mutant> = FOLDERS
        .iter()
        .flat_map(|folder| sources(&copy.join("crates/liza-core").join(folder)))
        .flat_map(|file| mutants_of(&file))
        .collect();
    let all = mutants.len();
    shuffle(&mut mutants, seed);
    let (mut killed, mut counted, mut results) = (0, 0, Vec::new());
    let reasons = fs::read_to_string(root.join("crates/liza-testkit/mutants.tsv")).unwrap_or_default();
    for mutant in &mutants {
        if counted == number {
            break;
        }
        let fate = fate(mutant, &copy, &target);
        if fate == Fate::Unbuildable {
            continue;
        }
        counted += 1;
        killed += u64::from(fate == Fate::Killed);
        let file = mutant.file.strip_prefix(&copy).unwrap().display().to_string();
        let (old, new) = (mutant.old.trim(), mutant.new.trim());
        let reason = reasons.lines().find_map(|line| line.strip_prefix(&format!("{file}\t{old}\t{new}\t")));
        let place = format!("{file}:{}", mutant.line + 1);
        if fate == Fate::Survived {
            println!("survived: {place}\n  {old}\n  {new}\n  {}", reason.unwrap_or("NO REASON YET"));
        }
        results.push(json!({"place": place, "old": old, "new": new, "fate": fate, "reason": reason}));
    }
    let (low, high) = wilson(killed, counted);
    println!(
        "{killed} of {counted} killed: {:.3} ({low:.3} to {high:.3}), of {all} mutants, seed {seed}",
        rate(killed, counted)
    );
    let result = json!({
        "seed": seed, "mutants": all, "counted": counted, "killed": killed, "rate": rate(killed, counted),
        "interval_95": [low, high], "results": results,
    });
    fs::write(target.join("mutants.json"), format!("{result:#}\n")).unwrap();
    assert!(rate(killed, counted) >= 0.95, "fewer than 95 of 100 mutants are killed");
}

/// Copies what git knows, and keeps the times of files that have not changed: cargo builds them once.
fn copy_sources(root: &Path, copy: &Path) {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), copy.join(name));
        let Ok(text) = fs::read(&from) else { continue };
        if fs::read(&to).ok().as_ref() != Some(&text) {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(to, text).unwrap();
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn mutants_of(file: &Path) -> Vec<Mutant> {
    let text = fs::read_to_string(file).unwrap();
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
    let is_code =
        |line: &str| !["//", "#", "use ", "const ", "pub const "].iter().any(|word| line.starts_with(word));
    let mut found = Vec::new();
    for (line, old) in code.filter(|(_, line)| is_code(line.trim_start())) {
        let mut add = |new: String| {
            if new != old {
                found.push(Mutant { file: file.to_owned(), line, old: old.to_owned(), new });
            }
        };
        for (from, to) in SWAPS {
            for (at, _) in old.match_indices(from) {
                add(format!("{}{to}{}", &old[..at], &old[at + from.len()..]));
            }
        }
        // A step that is left out.
        let step = old.trim();
        let is_step = step.ends_with(';')
            && (step.starts_with("tx.") || step.starts_with("task.") || step.contains(".push("));
        if is_step && !step.starts_with("let ") {
            add(String::new());
        }
    }
    found
}

fn shuffle(mutants: &mut [Mutant], seed: u64) {
    let mut state = seed;
    for at in (1..mutants.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        mutants.swap(at, (state >> 33) as usize % (at + 1));
    }
}

fn fate(mutant: &Mutant, copy: &Path, target: &Path) -> Fate {
    let text = fs::read_to_string(&mutant.file).unwrap();
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines[mutant.line] = &mutant.new;
    fs::write(&mutant.file, lines.join("\n")).unwrap();
    let fate = match cargo(copy, target, &["check", "-q", "-p", "liza-core", "--lib"]) {
        true => tests_pass(copy, target),
        false => Fate::Unbuildable,
    };
    fs::write(&mutant.file, text).unwrap();
    fate
}

fn tests_pass(copy: &Path, target: &Path) -> Fate {
    match cargo(copy, target, &["test", "-q", "-p", "liza-core", "--lib", "--tests"]) {
        true => Fate::Survived,
        false => Fate::Killed,
    }
}

fn cargo(copy: &Path, target: &Path, words: &[&str]) -> bool {
    let mut command = Command::new("timeout");
    // Mutants cause warnings, and no snapshot is rewritten.
    let command = command.args(["-k", "5", LIMIT, "cargo"]).args(words).current_dir(copy);
    let command = command.env("CARGO_TARGET_DIR", target).env("INSTA_UPDATE", "no");
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

fn rate(killed: u64, counted: u64) -> f64 {
    if counted == 0 { 0.0 } else { killed as f64 / counted as f64 }
}

/// The interval of Wilson at 95 %.
fn wilson(killed: u64, counted: u64) -> (f64, f64) {
    let (n, p, z) = (counted.max(1) as f64, rate(killed, counted), 1.96_f64);
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt() / (1.0 + z * z / n);
    (middle - half, middle + half)
}
