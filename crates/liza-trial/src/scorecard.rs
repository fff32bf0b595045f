//! The scorecard: what was measured, on which machine and commit, with the seed and the command of every number, and what was
//! not tested. Published as it comes out.

use std::fmt::Write as _;

use serde_json::Value;

use crate::arms::{Arm, Rates};
use crate::drill;
use crate::statistics::rule_of_three;
use crate::table::tables;
use crate::trial::{LEVEL, Paired, Trial};

/// The circumstances of a run.
#[derive(Debug, Clone)]
pub struct Circumstances {
    pub machine: String,
    pub commit: String,
    /// The file of the exploration of the protocol, if it was run on this commit's tree.
    pub exploration: Option<Value>,
}

const NOT_TESTED: &str = "\
- The plan is 3,000 pairs in each cell; the first part of this page says how many were run. With fewer, a small fault of the machine can go unnoticed.
- `liza drill` was run with scripts as reviewers only. No model was drilled.
- No model was run. Agents are dice; their rates are invented and equal in all arms. Nothing here says how good models are.
- In these runs git is a model in memory (numbered commits, one branch, one worktree) and nothing is a process. The tests of the program use the real git; they are no part of these numbers.
- One task at a time: no planner, no second coder, no circuit breaker, no second machine, no database.
- The human never answers: what waits for them counts as not merged.
- Tokens are not measured, only sessions. A review costs about as much as a small task.
- Defects are single mutants of small functions, made by one table. The reviewer that runs mutants uses the same table, so its row is the best case.
- A single agent is assumed to review its own work as well as a reviewer with its program would. If it does worse, its row is too good.";

/// The three numbers for the README, each with its prediction: a difference that is chance must not look like a result.
pub fn headline(trial: &Trial) -> String {
    let escaped = |arm| {
        let cell = trial.cell(arm, Rates::MIDDLE);
        cell.map_or_else(String::new, |cell| {
            let (measured, expected) = (cell.measured.escaped_per_1000(), cell.expected.escaped_per_1000());
            format!("{measured:.0} (predicted {expected:.0})")
        })
    };
    let is_budget = |pair: &&Paired| pair.other == Arm::SoloBudget && pair.rates == Rates::MIDDLE;
    let p = trial.paired.iter().find(is_budget).map_or(1.0, |pair| pair.p);
    let differs = if p < LEVEL { "which differs" } else { "which is no significant difference" };
    let (runs, broken) = trial.protocol_faults();
    let bound =
        if broken == 0 { format!(" (at most {:.4} %)", 100.0 * rule_of_three(runs)) } else { String::new() };
    format!(
        "**Measured, not claimed:** with dice for agents that catch half of the defects, of 1,000 merged tasks {} have a defect with review, gate and validation, {} with one agent and its own tests, \
         {} with one agent that spends the sessions of the whole team on reviewing itself, {differs} from the team (p = {p:.2}); {broken} faults of the protocol in {runs} runs{bound}. \
         [The scorecard](docs/scorecard.md) has every number with its seed and command, and what was not tested.",
        escaped(Arm::Gate),
        escaped(Arm::SoloTests),
        escaped(Arm::SoloBudget)
    )
}

/// The page.
pub fn scorecard(trial: &Trial, run: &Circumstances) -> String {
    let command = format!("liza trial --pairs {} --seed {}", trial.pairs, trial.seed);
    let mut text = format!(
        "# Scorecard\n\nMade by `just scorecard`. Machine: {}. Commit: {}.\n\n\
         ## Does supervision pay?\n\n\
         Agents are dice with known rates, so the result of each arm is arithmetic; the real rules of Liza run beside it. A difference between the two is a fault of the machine. \
         {} pairs in each cell; the same seed has the same task, fault and dice in each arm. 4 repositories with 10 tasks each; 30 % of first submissions have a defect, 80 % of reworks correct one, 10 % of \
         needless reworks make one. Every number of this part: `{command}`.\n\n![Escaped defects by catch rate](pictures/trial.svg)\n\n{}\n",
        run.machine,
        run.commit,
        trial.pairs,
        tables(trial)
    );
    let _ = writeln!(text, "## The protocol, explored\n\n{}", exploration(run.exploration.as_ref()));
    let _ = writeln!(text, "## The estimate of drills\n\n{}", drill_lines());
    let _ = writeln!(text, "## What was not tested\n\n{NOT_TESTED}");
    text
}

/// The simulation of the estimator, which needs no reviewer.
fn drill_lines() -> String {
    let mut text = String::from(
        "The catch rate of a reviewer is estimated from planted defects. With simulated reviewers of known rates, the part of 200 repetitions whose 95 % interval has the truth \
         (seed 7; `cargo nextest run -p liza-trial drill`). Half of the drills have a defect. The target of ± 5 points is missed in the middle of the scale; there it needs 385 planted defects, so 770 drills:\n\n| True rate | Drills | Covered | Half width, in the mean |\n|---|---|---|---|\n",
    );
    for rate in [0.1, 0.31, 0.5, 0.9] {
        let found = drill::simulate(rate, drill::DRILLS, drill::REPETITIONS, 7);
        let _ = writeln!(
            text,
            "| {rate} | {} | {} of {} | {:.1} points |",
            drill::DRILLS,
            found.covered,
            drill::REPETITIONS,
            100.0 * found.half_width
        );
    }
    text
}

fn exploration(file: Option<&Value>) -> String {
    let Some(file) = file else {
        return "Not part of this run: `target/evidence/exploration.json` was not there.\n".to_owned();
    };
    let rows = |key: &str, cells: &[&str]| {
        let lines = file[key].as_array().into_iter().flatten().map(|row| {
            let cells: Vec<String> = cells.iter().map(|cell| plain(&row[cell])).collect();
            format!("| {} |\n", cells.join(" | "))
        });
        lines.collect::<String>()
    };
    format!(
        "States that are reachable from a new board. A bound says how far; nothing here is a proof beyond it.\n\n\
         | Team | States | Transitions | Depth | Closed | Bound |\n|---|---|---|---|---|---|\n{}\n\
         | Property | A state that reaches it | A mutation that breaks it |\n|---|---|---|\n{}",
        rows("teams", &["name", "states", "transitions", "depth", "closed", "bound"]),
        rows("properties", &["name", "witness", "mutation"])
    )
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::chart;
    use crate::mutants::material;
    use crate::trial::{Plan, run};

    /// Covers: TR-04
    #[test]
    fn the_page_names_its_machine_its_commands_and_its_gaps() {
        let trial = run(&Plan { pairs: 1, seed: 7, rates: vec![Rates::MIDDLE] }, &|_, _| {});
        let circumstances = |exploration| Circumstances {
            machine: "a machine".to_owned(),
            commit: "abc".to_owned(),
            exploration,
        };
        let page = scorecard(&trial, &circumstances(None));
        for part in [
            "a machine",
            "abc",
            "liza trial --pairs 1 --seed 7",
            "pictures/trial.svg",
            "No model was run",
            "was not there",
        ] {
            assert!(page.contains(part), "{part}");
        }
        let file = serde_json::json!({
            "teams": [{"name": "1 × 1 × 1", "states": 5, "transitions": 9, "depth": 3, "closed": true, "bound": "none"}],
            "properties": [{"name": "no double merge", "witness": "seed 1", "mutation": "skips a check"}],
        });
        let page = scorecard(&trial, &circumstances(Some(file)));
        assert!(page.contains("| 1 × 1 × 1 | 5 | 9 | 3 | true | none |"), "{page}");
        assert!(page.contains("| no double merge | seed 1 | skips a check |"));
        assert_eq!(headline(&trial).matches("1,000").count(), 1);
        let svg = chart(&trial, &material());
        assert_eq!(svg.matches("<polyline").count(), 7);
        assert!(svg.ends_with("</svg>\n"));
    }
}
