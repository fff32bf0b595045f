//! The whole trial: every cell with its pairs, its prediction and its deviation from it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use crate::arms::{Arm, Rates, Script, Setting};
use crate::dice::Dice;
use crate::mutants::{Material, material};
use crate::outcome::Outcome;
use crate::prediction::{Expected, predict, team_sessions};
use crate::statistics::{binomial, discordant, holm, mean_test};
use crate::{solo, team};

/// The level at which deviations are judged, over all cells together.
pub const LEVEL: f64 = 0.05;

/// The pairs from which the mean number of sessions is judged too: the test needs a large number.
const MANY: usize = 300;

/// The counted results of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Pairs that count: for a script, those in which it occurred.
    pub n: usize,
    pub merged: usize,
    pub escaped: usize,
    pub harmed: usize,
    pub false_blocks: usize,
    pub asked: usize,
    pub unended: usize,
    pub sessions: usize,
    #[serde(skip)]
    squares: f64,
    pub found_by_tests: usize,
    pub found_by_review: usize,
    /// Runs with a fault of the protocol.
    pub faults: usize,
    /// The first fault, with its seed.
    pub first_fault: Option<String>,
    /// For each pair, whether it escaped.
    #[serde(skip)]
    escapes: Vec<bool>,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome, script: Option<Script>, seed: u64) {
        self.escapes.push(outcome.escaped(script));
        if let Some(fault) = outcome.faults.first() {
            self.faults += 1;
            self.first_fault.get_or_insert_with(|| format!("seed {seed}: {fault}"));
        }
        if script.is_some_and(|script| !outcome.occurred(script)) {
            return;
        }
        let count = |holds: bool| usize::from(holds);
        self.n += 1;
        self.merged += count(outcome.merged);
        self.escaped += count(outcome.escaped(script));
        self.harmed += count(outcome.harmed);
        self.false_blocks += count(outcome.false_block);
        self.asked += count(outcome.asked);
        self.unended += count(outcome.unended);
        self.sessions += outcome.sessions as usize;
        self.squares += f64::from(outcome.sessions).powi(2);
        self.found_by_tests += count(outcome.found_by_tests);
        self.found_by_review += count(outcome.found_by_review);
    }

    /// Escaped defects per 1,000 merged tasks.
    pub fn escaped_per_1000(&self) -> f64 {
        1000.0 * self.escaped as f64 / self.merged.max(1) as f64
    }
}

impl Expected {
    pub fn escaped_per_1000(&self) -> f64 {
        if self.merged > 0.0 { 1000.0 * self.escaped / self.merged } else { 0.0 }
    }
}

/// One measure of a cell against its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deviation {
    pub measure: &'static str,
    pub measured: f64,
    pub expected: f64,
    pub p: f64,
    /// True if it is rejected by Holm's method over all measures of all cells.
    pub is_fault: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    pub setting: Setting,
    pub measured: Counts,
    pub expected: Expected,
    pub deviations: Vec<Deviation>,
}

/// The comparison of two arms on the same pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    pub rates: Rates,
    pub one: Arm,
    pub other: Arm,
    /// Pairs in which the defect escaped from the one arm and not from the other, and the reverse.
    pub only_one: usize,
    pub only_other: usize,
    pub p: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    pub seed: u64,
    pub pairs: usize,
    pub cells: Vec<Cell>,
    pub scripts: Vec<Cell>,
    pub paired: Vec<Paired>,
    /// The sessions of the single agent with the team's budget, by catch rate and the other rates.
    pub budgets: Vec<(Rates, u32)>,
}

impl Trial {
    /// All cells, with scripts and without.
    pub fn all(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(&self.scripts)
    }

    /// The deviations that Holm's method rejects.
    pub fn faults(&self) -> Vec<(&Cell, &Deviation)> {
        let of = |cell| move |deviation| (cell, deviation);
        let judged = self.all().flat_map(|cell: &Cell| cell.deviations.iter().map(of(cell)));
        judged.filter(|(_, deviation): &(&Cell, &Deviation)| deviation.is_fault).collect()
    }

    /// Runs under the real rules, and those among them with a fault of the protocol.
    pub fn protocol_faults(&self) -> (usize, usize) {
        let teams = self.all().filter(|cell| cell.setting.arm.is_team());
        teams.fold((0, 0), |(runs, faults), cell| (runs + self.pairs, faults + cell.measured.faults))
    }

    pub fn cell(&self, arm: Arm, rates: Rates) -> Option<&Cell> {
        let rates = if arm.uses_rates() { rates } else { Rates::MIDDLE };
        self.cells.iter().find(|cell| cell.setting.arm == arm && cell.setting.rates == rates)
    }
}

/// Runs one pair in one cell.
pub fn run_pair(setting: &Setting, all: &[Material], seed: u64, budget: u32) -> Outcome {
    let coder = crate::work::Coder::new(Dice { seed }, all, setting.rates, setting.script);
    match coder {
        None => Outcome::default(),
        Some(coder) if setting.arm.is_team() => team::run(coder, setting),
        Some(coder) => solo::run(coder, setting, budget),
    }
}

/// The size of a trial.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The pairs in each cell.
    pub pairs: usize,
    pub seed: u64,
    /// The rates of the cells without a script; the middle ones are among them.
    pub rates: Vec<Rates>,
}

/// Runs all cells on all cores. `progress` gets the cells done, and all.
pub fn run(plan: &Plan, progress: &(dyn Fn(usize, usize) + Sync)) -> Trial {
    let Plan { pairs, seed, rates } = plan;
    let (pairs, seed, all) = (*pairs, *seed, material());
    let (grid, scripts) = (Setting::grid(rates), Setting::scripts());
    let settings: Vec<Setting> = grid.iter().chain(&scripts).copied().collect();
    let mut cells = run_cells(&settings, &all, (pairs, seed), progress);
    judge(&mut cells);
    let budgets = rates.iter().map(|rates| (*rates, team_sessions(*rates, &all))).collect();
    let scripts = cells.split_off(grid.len());
    let mut trial = Trial { seed, pairs, cells, scripts, paired: Vec::new(), budgets };
    trial.paired = rates.iter().flat_map(|rates| compare(&trial, *rates)).collect();
    trial
}

fn run_cells(
    settings: &[Setting],
    all: &[Material],
    (pairs, seed): (usize, u64),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Cell> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(Vec::with_capacity(settings.len()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || {
        while let Some(setting) = settings.get(next.fetch_add(1, Ordering::Relaxed)) {
            let at = settings.iter().position(|other| std::ptr::eq(other, setting)).unwrap_or_default();
            let cell = run_cell(setting, all, (pairs, seed));
            let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            results.push((at, cell));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, settings.len());
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(worker))));
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, cell)| cell).collect()
}

fn run_cell(setting: &Setting, all: &[Material], (pairs, seed): (usize, u64)) -> Cell {
    let budget = if setting.arm == Arm::SoloBudget { team_sessions(setting.rates, all) } else { 0 };
    let mut measured = Counts::default();
    for pair in 0..pairs as u64 {
        let own = seed.wrapping_mul(1_000_003).wrapping_add(pair);
        measured.add(&run_pair(setting, all, own, budget), setting.script, own);
    }
    let expected = predict(setting, all);
    let deviations = deviations(setting, &measured, &expected);
    Cell { setting: *setting, measured, expected, deviations }
}

fn deviations(setting: &Setting, measured: &Counts, expected: &Expected) -> Vec<Deviation> {
    let n = measured.n;
    let part = |measure, hits: usize, expected: f64| Deviation {
        measure,
        measured: hits as f64 / n.max(1) as f64,
        expected,
        p: binomial(hits, n, expected),
        is_fault: false,
    };
    let mut all = vec![part("escaped", measured.escaped, expected.escaped)];
    if setting.script.is_none() {
        all.extend([
            part("merged", measured.merged, expected.merged),
            part("harmed", measured.harmed, expected.harmed),
            part("false blocks", measured.false_blocks, expected.false_block),
            part("unended", measured.unended, expected.unended),
        ]);
        if n >= MANY {
            let sum = measured.sessions as f64;
            let p = mean_test(sum, measured.squares, n, expected.sessions);
            let (measured, expected) = (sum / n as f64, expected.sessions);
            all.push(Deviation { measure: "sessions", measured, expected, p, is_fault: false });
        }
    }
    all
}

/// Judges the deviations of all cells together.
fn judge(cells: &mut [Cell]) {
    let values: Vec<f64> = cells.iter().flat_map(|cell| cell.deviations.iter().map(|one| one.p)).collect();
    let rejected = holm(&values, LEVEL);
    let all = cells.iter_mut().flat_map(|cell| &mut cell.deviations);
    for (deviation, is_fault) in all.zip(rejected) {
        deviation.is_fault = is_fault;
    }
}

/// The team with gate and validation against a single agent, at equal budget and without.
fn compare(trial: &Trial, rates: Rates) -> Vec<Paired> {
    let of = |other: Arm| {
        let (one, other_cell) = (trial.cell(Arm::Gate, rates)?, trial.cell(other, rates)?);
        let pairs = one.measured.escapes.iter().zip(&other_cell.measured.escapes);
        let (mut only_one, mut only_other) = (0, 0);
        for (one, other) in pairs {
            only_one += usize::from(*one && !other);
            only_other += usize::from(*other && !one);
        }
        Some(Paired {
            rates,
            one: Arm::Gate,
            other,
            only_one,
            only_other,
            p: discordant(only_one, only_other),
        })
    };
    [Arm::SoloTests, Arm::SoloBudget].into_iter().filter_map(of).collect()
}
