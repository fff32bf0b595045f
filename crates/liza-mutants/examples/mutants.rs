//! `cargo run -p liza-mutants --example mutants -- NUMBER SEED`: builds a copy of the sources with all mutants below `target/mutants`,
//! and lets the tests notice a random sample of them. The result is `docs/mutants.json` and `docs/mutants.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a tool of this repository")]

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use liza_mutants::find::{Mutant, mutants};
use liza_mutants::report::{AIM, Fate, Report, Tried, page};
use liza_mutants::rewrite::{CHOSEN, REACHED, mutant_at, rewritten, switch_module};
use liza_mutants::shuffle;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The folders of `liza-core` whose rules are tried.
const FOLDERS: [&str; 3] = ["protocol", "rules", "supervise"];

/// The crates whose tests are asked.
const TESTS: [&str; 3] = ["liza-core", "liza-status", "liza-explore"];

/// A test that needs more seconds of the processor without a mutant is not asked.
const LONGEST: u64 = 3;

/// What the tests reach, for the next run.
const KNOWN: &str = "target/known.json";

struct Source {
    /// From the root of the repository.
    name: String,
    text: String,
    mutants: Vec<(usize, Mutant)>,
}

#[derive(Serialize, Deserialize)]
struct Test {
    binary: PathBuf,
    folder: PathBuf,
    name: String,
    time: Duration,
    reaches: BTreeSet<usize>,
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let (number, seed) = (words.next().unwrap_or(300), words.next().unwrap_or(1));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let copy = target.join("mutants");
    let sources = sources(root);
    let count: usize = sources.iter().map(|source| source.mutants.len()).sum();
    copy_sources(root, &copy, &sources);
    let unbuildable = leave_out_unbuildable(&copy, &sources, count);
    let tests = reached(built_tests(&copy), &copy);
    let mut sample: Vec<(&Source, usize, &Mutant)> = sources
        .iter()
        .flat_map(|source| source.mutants.iter().map(move |(number, mutant)| (source, *number, mutant)))
        .filter(|(_, number, _)| !unbuildable.contains(number))
        .collect();
    let buildable = sample.len();
    shuffle(&mut sample, seed);
    sample.truncate(usize::try_from(number).unwrap());
    let (commit, unbuildable, tests_asked) = (commit(root), unbuildable.len(), tests.len());
    let mut report =
        Report { commit, seed, mutants: buildable, unbuildable, tests: tests_asked, ..Report::default() };
    for (source, number, mutant) in sample {
        let (fate, by) = fate(number, &tests);
        report.add(Tried {
            file: source.name.trim_start_matches("crates/liza-core/src/").to_owned(),
            line: mutant.line,
            function: mutant.function.clone(),
            kind: mutant.kind.to_owned(),
            old: mutant.old.clone(),
            new: mutant.new.clone(),
            fate,
            by,
            reason: None,
        });
        progress(&report);
    }
    eprintln!();
    let published = root.join("docs/mutants.json");
    let before =
        fs::read_to_string(&published).ok().map(|text| serde_json::from_str::<Report>(&text).unwrap());
    fs::write(published, serde_json::to_string(&report).unwrap() + "\n").unwrap();
    fs::write(root.join("docs/mutants.md"), page(&report)).unwrap();
    let (rate, aim) = (100.0 * report.rate, 100.0 * AIM);
    println!("{rate:.1} of 100 are noticed; the aim is {aim}. Read the diff of docs/mutants.md");
    let least = before.filter(|before| before.seed == seed).map_or(0.0, |before| before.interval_95.0);
    assert!(report.rate >= least, "fewer than the last page has, beyond chance");
}

fn progress(report: &Report) {
    let last = report.results.last().unwrap();
    if last.fate != Fate::Killed {
        let reason = last.reason.as_deref().unwrap_or("NO REASON YET");
        let place = format!("{}:{} {}", last.file, last.line, last.function);
        println!("\n{:?}: {place}\n  - {}\n  + {}\n  {}; {reason}", last.fate, last.old, last.new, last.by);
    }
    eprint!("\r{} tried, {} noticed ", report.counted, report.killed);
}

fn sources(root: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut next = 0;
    for name in tracked(root) {
        let Some(inside) = name.strip_prefix("crates/liza-core/src/") else { continue };
        if !FOLDERS.contains(&inside.split('/').next().unwrap()) || !name.ends_with(".rs") {
            continue;
        }
        let text = fs::read_to_string(root.join(&name)).unwrap();
        let found = mutants(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mutants: Vec<_> = (next..).zip(found).collect();
        next += mutants.len();
        sources.push(Source { name, text, mutants });
    }
    sources
}

fn tracked(root: &Path) -> Vec<String> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn commit(root: &Path) -> String {
    let git = |words: &[&str]| Command::new("git").args(words).current_dir(root).output().unwrap();
    let head = String::from_utf8(git(&["rev-parse", "--short=12", "HEAD"]).stdout).unwrap();
    let is_unchanged = git(&["diff", "--quiet", "HEAD", "--", "crates/liza-core"]).status.success();
    format!("{}{}", head.trim(), if is_unchanged { "" } else { "-changed" })
}

/// Copies what git knows, except what gets switches; files that have not changed keep their times, so cargo builds them once.
fn copy_sources(root: &Path, copy: &Path, sources: &[Source]) {
    for name in tracked(root) {
        if sources.iter().any(|source| source.name == name) {
            continue;
        }
        let Ok(mut text) = fs::read(root.join(&name)) else { continue };
        if name == "crates/liza-core/src/lib.rs" {
            text.extend(b"\nmod mutant;\n");
        }
        write_changed(&copy.join(name), &text);
    }
}

fn write_changed(to: &Path, text: &[u8]) {
    if fs::read(to).ok().as_deref() != Some(text) {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, text).unwrap();
    }
}

/// Writes the sources with their switches, and again without the mutants that the compiler refuses, until it refuses none.
fn leave_out_unbuildable(copy: &Path, sources: &[Source], count: usize) -> BTreeSet<usize> {
    let module = copy.join("crates/liza-core/src/mutant.rs");
    write_changed(&module, switch_module(count).as_bytes());
    let known = copy.join("target/refused");
    let mut hasher = DefaultHasher::new();
    sources.iter().for_each(|source| (&source.text, &source.mutants.len()).hash(&mut hasher));
    let hash = hasher.finish().to_string();
    let mut refused = known_refused(&known, &hash);
    loop {
        for source in sources {
            let kept: Vec<(usize, &Mutant)> = source
                .mutants
                .iter()
                .filter(|(number, _)| !refused.contains(number))
                .map(|(number, mutant)| (*number, mutant))
                .collect();
            write_changed(&copy.join(&source.name), rewritten(&source.text, &kept).as_bytes());
        }
        let messages = cargo(copy, &["check", "-p", "liza-core", "--lib"]);
        let errors = messages.iter().filter(|message| message["message"]["level"] == "error");
        let (before, mut unknown) = (refused.len(), Vec::new());
        for error in errors {
            match mutant_of(copy, error) {
                Some(number) => drop(refused.insert(number)),
                None => unknown.push(error["message"]["rendered"].to_string()),
            }
        }
        eprintln!("{} of {count} mutants do not compile", refused.len());
        if refused.len() == before {
            assert!(unknown.iter().all(|error| error.contains("aborting")), "{}", unknown.join("\n"));
            let numbers: Vec<String> = refused.iter().map(usize::to_string).collect();
            fs::write(&known, format!("{hash}\n{}", numbers.join("\n"))).unwrap();
            return refused;
        }
    }
}

/// What the compiler refused of the same sources before: cargo then builds nothing twice.
fn known_refused(known: &Path, hash: &str) -> BTreeSet<usize> {
    let text = fs::read_to_string(known).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next() != Some(hash) {
        BTreeSet::new()
    } else {
        lines.filter_map(|line| line.parse().ok()).collect()
    }
}

fn mutant_of(copy: &Path, error: &Value) -> Option<usize> {
    let spans = error["message"]["spans"].as_array()?;
    let is_primary = |span: &&Value| span["is_primary"] == true;
    spans.iter().filter(is_primary).chain(spans).find_map(|span| {
        let text = fs::read_to_string(copy.join(span["file_name"].as_str()?)).ok()?;
        let byte = |name: &str| usize::try_from(span[name].as_u64()?).ok();
        mutant_at(&text, byte("byte_start")?..byte("byte_end")?)
    })
}

/// Runs cargo without the linter, on one core, and returns its messages.
fn cargo(copy: &Path, words: &[&str]) -> Vec<Value> {
    let mut command = Command::new("cargo");
    command.args(words).args(["--message-format=json", "-j1"]).current_dir(copy);
    command.env("CARGO_TARGET_DIR", copy.join("target")).env_remove("RUSTC_WORKSPACE_WRAPPER");
    let output = command.stderr(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn built_tests(copy: &Path) -> Vec<Test> {
    let packages = TESTS.iter().flat_map(|name| ["-p", *name]);
    let words: Vec<&str> = ["test", "--no-run", "--lib", "--tests"].into_iter().chain(packages).collect();
    let messages = cargo(copy, &words);
    let errors = messages.iter().filter(|message| message["message"]["level"] == "error");
    let errors: Vec<_> = errors.map(|error| error["message"]["rendered"].to_string()).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    let mut tests = Vec::new();
    for message in messages.iter().filter(|message| message["profile"]["test"] == true) {
        let Some(binary) = message["executable"].as_str().map(PathBuf::from) else { continue };
        let folder = Path::new(message["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned();
        let list = Command::new(&binary).args(["--list", "--format", "terse"]).output().unwrap();
        for name in
            String::from_utf8(list.stdout).unwrap().lines().filter_map(|line| line.strip_suffix(": test"))
        {
            let (binary, folder, name) = (binary.clone(), folder.clone(), name.to_owned());
            tests.push(Test { binary, folder, name, time: Duration::ZERO, reaches: BTreeSet::new() });
        }
    }
    assert!(!tests.is_empty(), "no tests were built");
    tests
}

/// The tests that pass without a mutant, the shortest first, each with the mutants that it reaches.
fn reached(tests: Vec<Test>, copy: &Path) -> Vec<Test> {
    let (all, file) = (tests.len(), copy.join("target/reached"));
    let (mut kept, mut known) = (Vec::new(), Known::read(copy));
    for (number, mut test) in tests.into_iter().enumerate() {
        if let Some(test) = known.take(&test) {
            kept.push(test);
            continue;
        }
        eprint!("\r{number} of {all} tests without a mutant ");
        let _ = fs::remove_file(&file);
        let start = Instant::now();
        let passes = passes(&test, (REACHED, file.to_str().unwrap()), LONGEST);
        test.time = if passes { start.elapsed() } else { Duration::MAX };
        let reached = fs::read_to_string(&file).unwrap_or_default();
        test.reaches = reached.lines().filter_map(|line| line.parse().ok()).collect();
        kept.push(test);
    }
    kept.sort_by_key(|test| test.time);
    fs::write(copy.join(KNOWN), serde_json::to_string(&kept).unwrap()).unwrap();
    for test in kept.iter().filter(|test| test.time == Duration::MAX) {
        println!("not asked, since it fails without a mutant or takes too long: {}", test.name);
    }
    kept.retain(|test| test.time < Duration::MAX);
    kept
}

/// What an earlier run found of the same programs.
struct Known(Vec<Test>, SystemTime);

impl Known {
    fn read(copy: &Path) -> Self {
        let text = fs::read_to_string(copy.join(KNOWN)).unwrap_or_default();
        let time = fs::metadata(copy.join(KNOWN)).and_then(|known| known.modified());
        Self(serde_json::from_str(&text).unwrap_or_default(), time.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    fn take(&mut self, test: &Test) -> Option<Test> {
        let is_old = fs::metadata(&test.binary).unwrap().modified().unwrap() < self.1;
        let is_same = |known: &Test| known.binary == test.binary && known.name == test.name;
        let at = self.0.iter().position(is_same).filter(|_| is_old)?;
        Some(self.0.swap_remove(at))
    }
}

fn fate(mutant: usize, tests: &[Test]) -> (Fate, String) {
    let mut asked = 0;
    for test in tests.iter().filter(|test| test.reaches.contains(&mutant)) {
        asked += 1;
        let seconds = 5 + 10 * test.time.as_secs();
        if !passes(test, (CHOSEN, &mutant.to_string()), seconds) {
            return (Fate::Killed, test.name.clone());
        }
    }
    let reach = if asked == 1 { "1 test reaches it".to_owned() } else { format!("{asked} tests reach it") };
    (Fate::Survived, reach)
}

/// Runs one test. One that needs more seconds of the processor, or too much memory, does not pass.
fn passes(test: &Test, variable: (&str, &str), seconds: u64) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 8000000 && ulimit -t $0 && exec \"$@\"", &seconds.to_string()]);
    command.arg(&test.binary).args(["--exact", "--test-threads", "1", &test.name]).current_dir(&test.folder);
    command.env("INSTA_UPDATE", "no").env("INSTA_WORKSPACE_ROOT", test.folder.ancestors().nth(2).unwrap());
    command.env("CARGO_MANIFEST_DIR", &test.folder).env(variable.0, variable.1);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    output.status().unwrap().success()
}
