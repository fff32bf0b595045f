//! The trial in words: tables in Markdown, for a terminal and for the scorecard.

use std::fmt::Write as _;

use liza_core::evidence::wilson;

use crate::arms::{Ablation, Arm, Rates, Script};
use crate::statistics::rule_of_three;
use crate::trial::{Cell, Counts, LEVEL, Trial};

/// All tables.
pub fn tables(trial: &Trial) -> String {
    let parts = [
        arms(trial),
        catch_rates(trial),
        other_rates(trial),
        scripts(trial),
        ablations(trial),
        paired(trial),
        judgement(trial),
    ];
    parts.join("\n")
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn share(hits: usize, n: usize) -> String {
    percent(hits as f64 / n.max(1) as f64)
}

/// Escaped defects per 1,000 merged tasks: measured, with its interval, and predicted.
fn escaped(cell: &Cell) -> String {
    let (low, high) = wilson(cell.measured.escaped, cell.measured.merged);
    let (measured, expected) = (cell.measured.escaped_per_1000(), cell.expected.escaped_per_1000());
    format!("{measured:.0} ({:.0} to {:.0}); {expected:.0}", 1000.0 * low, 1000.0 * high)
}

fn arms(trial: &Trial) -> String {
    let mut text = String::from(
        "### Arms\n\nCatch rate 50 %, false alarms 5 %, shared blindness 25 %. Escaped: per 1,000 merged tasks, measured with its 95 % interval; predicted. Waits for you: the part that ends with a question to the person, who never answers here.\n\n\
         | Arm | Escaped | Found by tests | Found by review | Harm | False blocks | Waits for you | Never ends | Sessions per task (predicted) |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for cell in Arm::ALL.iter().filter_map(|arm| trial.cell(*arm, Rates::MIDDLE)) {
        let counts = &cell.measured;
        let of = |hits| share(hits, counts.n);
        let sessions = counts.sessions as f64 / counts.n.max(1) as f64;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {sessions:.2} ({:.2}) |",
            cell.setting.arm.words(),
            escaped(cell),
            of(counts.found_by_tests),
            of(counts.found_by_review),
            of(counts.harmed),
            of(counts.false_blocks),
            of(counts.asked),
            of(counts.unended),
            cell.expected.sessions
        );
    }
    text
}

/// A table with one column for each of these rates.
fn by_rates(trial: &Trial, title: &str, rates: &[Rates], name: impl Fn(Rates) -> String) -> String {
    let known: Vec<Rates> =
        rates.iter().copied().filter(|rates| trial.cell(Arm::Gate, *rates).is_some()).collect();
    let heads: Vec<String> = known.iter().map(|rates| name(*rates)).collect();
    let mut text =
        format!("### {title}\n\n| Arm | {} |\n|---{}|\n", heads.join(" | "), "|---".repeat(heads.len()));
    for arm in Arm::ALL.iter().filter(|arm| arm.uses_rates()) {
        let cells = known.iter().filter_map(|rates| trial.cell(*arm, *rates)).map(escaped);
        let _ = writeln!(text, "| {} | {} |", arm.words(), cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

fn catch_rates(trial: &Trial) -> String {
    let grid = Rates::grid();
    let is_catch = |rates: &&Rates| Rates { catch: 0.5, ..**rates } == Rates::MIDDLE;
    let rates: Vec<Rates> = grid.iter().filter(is_catch).copied().collect();
    by_rates(trial, "Escaped, by catch rate", &rates, |rates| format!("catches {}", percent(rates.catch)))
}

fn other_rates(trial: &Trial) -> String {
    let grid = Rates::grid();
    let is_other = |rates: &&Rates| rates.catch == 0.5;
    let rates: Vec<Rates> = grid.iter().filter(is_other).copied().collect();
    let name =
        |rates: Rates| format!("alarms {}, blind {}", percent(rates.false_alarm), percent(rates.blindness));
    by_rates(trial, "Escaped, by false alarms and shared blindness, catch rate 50 %", &rates, name)
}

fn scripts(trial: &Trial) -> String {
    const ARMS: [Arm; 5] = [Arm::Solo, Arm::SoloTests, Arm::Limits, Arm::Gate, Arm::SecondOther];
    let heads = ARMS.map(Arm::words).join(" | ");
    let mut text = format!(
        "### Misbehaviours\n\nEscaped of those that occurred, with the prediction; – where it cannot occur. Where most wait for you, they did not escape because \
         the person of the trial never answers: one reviewer alone may not approve deleted tests and other work of high impact, two may. So the arm with two reviewers has more escapes there, and \
         fewer questions.\n\n| Misbehaviour | {heads} |\n|---{}|\n",
        "|---".repeat(ARMS.len())
    );
    for script in Script::ALL {
        let cells =
            ARMS.map(|arm| find_script(trial, arm, *script, None).map_or("–".to_owned(), got_through));
        let _ = writeln!(text, "| {} | {} |", script.words(), cells.join(" | "));
    }
    text
}

fn find_script(trial: &Trial, arm: Arm, script: Script, ablation: Option<Ablation>) -> Option<&Cell> {
    trial.scripts.iter().find(|cell| {
        (cell.setting.arm, cell.setting.script, cell.setting.ablation) == (arm, Some(script), ablation)
    })
}

fn got_through(cell: &Cell) -> String {
    let Counts { escaped, n, asked, .. } = &cell.measured;
    let waits = if *asked > 0 { format!("; {asked} wait for you") } else { String::new() };
    format!("{escaped} of {n} ({}){waits}", percent(cell.expected.escaped))
}

fn ablations(trial: &Trial) -> String {
    let mut text = String::from(
        "### Parts taken out\n\nThe misbehaviour that a part stops, with that part and without it; escaped, with the prediction.\n\n\
         | Taken out | Misbehaviour | With it | Without it |\n|---|---|---|---|\n",
    );
    for part in Ablation::ALL {
        let script = part.script();
        let cell =
            |ablation| find_script(trial, Arm::Gate, script, ablation).map_or_else(String::new, got_through);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            part.words(),
            script.words(),
            cell(None),
            cell(Some(*part))
        );
    }
    text
}

fn paired(trial: &Trial) -> String {
    let mut text = format!(
        "### The same pairs\n\n{} against one agent: pairs in which the defect escaped from only one of the two.\n\n\
         | Catch rate | Alarms | Blind | Against | Only from the team | Only from the agent | p |\n|---|---|---|---|---|---|---|\n",
        Arm::Gate.words()
    );
    for pair in &trial.paired {
        let Rates { catch, false_alarm, blindness } = pair.rates;
        let rates = [catch, false_alarm, blindness].map(percent).join(" | ");
        let other = match trial.budgets.iter().find(|(rates, _)| *rates == pair.rates) {
            Some((_, sessions)) if pair.other == Arm::SoloBudget => {
                format!("{} ({sessions})", pair.other.words())
            }
            Some(_) | None => pair.other.words().to_owned(),
        };
        let p = if pair.p < 0.001 { "< 0.001".to_owned() } else { format!("{:.3}", pair.p) };
        let _ = writeln!(text, "| {rates} | {other} | {} | {} | {p} |", pair.only_one, pair.only_other);
    }
    text
}

/// The deviations from the prediction, judged together, and the faults of the protocol.
fn judgement(trial: &Trial) -> String {
    let judged: usize = trial.all().map(|cell| cell.deviations.len()).sum();
    let faults = trial.faults();
    let mut text = format!(
        "### Measured − predicted\n\n{} of {judged} measures in {} cells differ from the prediction (Holm, {}).\n",
        faults.len(),
        trial.all().count(),
        percent(LEVEL)
    );
    for (cell, deviation) in &faults {
        let _ = writeln!(
            text,
            "- {}, {:?}: {} is {:.4}, predicted {:.4} (p = {:.1e})",
            cell.setting.arm.words(),
            (cell.setting.rates, cell.setting.script),
            deviation.measure,
            deviation.measured,
            deviation.expected,
            deviation.p
        );
    }
    let (runs, broken) = trial.protocol_faults();
    let bound = match broken {
        0 => format!(", at most {:.4} %", 100.0 * rule_of_three(runs)),
        _ => String::new(),
    };
    let _ = writeln!(text, "\nFaults of the protocol: {broken} of {runs} runs{bound}.");
    for fault in trial.all().filter_map(|cell| cell.measured.first_fault.as_ref()) {
        let _ = writeln!(text, "- {fault}");
    }
    text
}
