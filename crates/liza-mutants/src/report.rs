//! What the tests noticed of a sample of mutants: figures, and a page with every survivor and its reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use liza_core::evidence::wilson;
use serde::{Deserialize, Serialize};

/// The survivors that change nothing that a rule promises: place, function, old, new and the reason, separated by tabs.
const REASONS: &str = include_str!("../equivalent.tsv");

/// The part of all mutants that tests should notice.
pub const AIM: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Killed,
    Survived,
    /// It survived, because no behaviour differs; the reason says why.
    Equivalent,
}

/// A mutant with its fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub file: String,
    pub line: usize,
    pub function: String,
    pub kind: String,
    pub old: String,
    pub new: String,
    pub fate: Fate,
    /// The test that noticed it, or how many tests reach it and do not.
    pub by: String,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub commit: String,
    pub seed: u64,
    /// The mutants that compile, and those that do not.
    pub mutants: usize,
    pub unbuildable: usize,
    pub tests: usize,
    pub counted: usize,
    pub killed: usize,
    pub equivalent: usize,
    pub rate: f64,
    pub interval_95: (f64, f64),
    pub results: Vec<Tried>,
}

impl Report {
    /// Adds a mutant; a survivor whose reason is known is equivalent.
    pub fn add(&mut self, mut tried: Tried) {
        tried.old = one_line(&tried.old);
        tried.new = one_line(&tried.new);
        if tried.fate != Fate::Killed {
            tried.reason = reasons().find(|reason| reason.is_of(&tried)).map(|reason| reason.text.to_owned());
            tried.fate = if tried.reason.is_some() { Fate::Equivalent } else { Fate::Survived };
        }
        self.results.push(tried);
        let count = |fate| self.results.iter().filter(|tried| tried.fate == fate).count();
        (self.counted, self.killed) = (self.results.len(), count(Fate::Killed));
        self.equivalent = count(Fate::Equivalent);
        self.rate = self.killed as f64 / self.counted as f64;
        self.interval_95 = wilson(self.killed, self.counted);
    }
}

/// A line of the file of reasons.
#[derive(Debug, Clone, Copy)]
pub struct Reason<'a> {
    pub file: &'a str,
    pub function: &'a str,
    pub old: &'a str,
    pub new: &'a str,
    pub text: &'a str,
}

impl Reason<'_> {
    pub fn is_of(&self, tried: &Tried) -> bool {
        (self.file, self.function, self.old, self.new)
            == (tried.file.as_str(), tried.function.as_str(), tried.old.as_str(), tried.new.as_str())
    }
}

pub fn reasons() -> impl Iterator<Item = Reason<'static>> {
    REASONS.lines().filter_map(|line| {
        let mut parts = line.split('\t');
        let mut next = || parts.next();
        let (file, function, old, new, text) = (next()?, next()?, next()?, next()?, next()?);
        Some(Reason { file, function, old, new, text })
    })
}

/// The text with single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn rate(hits: usize, n: usize) -> String {
    let (low, high) = wilson(hits, n);
    let part = hits as f64 / n.max(1) as f64;
    format!("**{hits} of {n}: {}** (95 % interval {} to {})", percent(part), percent(low), percent(high))
}

/// `docs/mutants.md`.
pub fn page(report: &Report) -> String {
    let Report { commit, seed, mutants, unbuildable, tests, counted, killed, equivalent, .. } = report;
    let mut page = format!(
        "# Mutants of the rules\n\n\
        Made by `just mutants {counted} {seed}`, commit {commit}. The figures and every mutant as JSON: [mutants.json](mutants.json).\n\n\
        A mutant is one small change in `protocol`, `rules` or `supervise` of `liza-core`: a comparison, a condition, a constant, a step that is left out. \
        A test that fails notices it. Of {mutants} mutants that compile ({unbuildable} more do not), a random sample of {counted} was tried with {tests} tests.\n\n\
        - Noticed: {}; the aim is {:.0} %.\n\
        - Without the {equivalent} that change no behaviour, each with its reason below: {}.\n\n\
        | Change | Tried | Noticed | Equivalent |\n|---|---|---|---|\n",
        rate(*killed, *counted),
        100.0 * AIM,
        rate(*killed, counted - equivalent)
    );
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for tried in &report.results {
        let row = kinds.entry(&tried.kind).or_default();
        row[0] += 1;
        row[1] += usize::from(tried.fate == Fate::Killed);
        row[2] += usize::from(tried.fate == Fate::Equivalent);
    }
    for (kind, [tried, killed, equivalent]) in kinds {
        let _ = writeln!(page, "| {kind} | {tried} | {killed} | {equivalent} |");
    }
    let _ = write!(page, "\n## Survivors\n\n{}", table(report, Fate::Survived));
    let _ = write!(page, "\n## Equivalent\n\n{}", table(report, Fate::Equivalent));
    page + LEFT_OUT
}

const LEFT_OUT: &str = "\n## How, and what is left out\n\n\
One build has all mutants, each behind a switch that an environment variable turns on; it is made from a copy of the sources, so no release has a switch. \
A first run without a mutant records which test reaches which switch; then each mutant of the sample runs the tests that reach it, the shortest first, until one fails. \
A test that needs more than ten times as long as without the mutant, and five seconds more, fails. \
Only tests of `liza-core`, `liza-status` and `liza-explore` that need at most three seconds are asked; those of the program and its other crates may notice more.\n\n\
The first run of the sample with seed 1 noticed 246 of 300 (82.0 %). Tests were then written for its survivors, so the number of that sample says how many of these are noticed now, \
and little about other mutants. A run with another seed is the fair estimate; none has been made since.\n\n\
No switch fits into a `const fn`, a constant, a pattern or the arguments of a macro: these are not tried.\n";

fn table(report: &Report, fate: Fate) -> String {
    let of_fate = |tried: &&Tried| tried.fate == fate;
    if !report.results.iter().any(|tried| of_fate(&tried)) {
        return "None.\n".to_owned();
    }
    let mut table = "| Place | Before | After | Why |\n|---|---|---|---|\n".to_owned();
    let code = |text: &str| match text {
        "" => "(left out)".to_owned(),
        text => format!("`{}`", text.replace('|', "\\|")),
    };
    for tried in report.results.iter().filter(of_fate) {
        let why = tried.reason.clone().unwrap_or_else(|| format!("no test notices it; {}", tried.by));
        let (file, line, function) = (&tried.file, tried.line, &tried.function);
        let (old, new) = (code(&tried.old), code(&tried.new));
        let _ = writeln!(table, "| `{file}:{line}` `{function}` | {old} | {new} | {why} |");
    }
    table
}
