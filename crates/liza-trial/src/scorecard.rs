//! The scorecard: what was measured, on which machine and commit, with the seed and the command of every number, and what was
//! not tested. Published as it comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
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
    /// The figures of `just explore` and `just simulate` on this commit.
    pub exploration: Value,
    pub simulation: Value,
    /// How often the tests of the real program tried each fault: the sums of what `just faults` collected.
    pub faults: BTreeMap<String, usize>,
}

/// The figures of a run as a file has them. Refuses those of another commit.
pub fn figures(name: &str, text: &str, commit: &str) -> Result<Value, String> {
    let figures: Value = serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))?;
    match figures["commit"].as_str() {
        Some(of) if of == commit => Ok(figures),
        of => {
            Err(format!("{name} is of commit {}, not of {commit}; run `just scorecard`", of.unwrap_or("?")))
        }
    }
}

/// The sums of the lines that `just faults` collected; the first line names the commit. Refuses those of another commit.
pub fn faults(name: &str, text: &str, commit: &str) -> Result<BTreeMap<String, usize>, String> {
    let (head, lines) = text.split_once('\n').unwrap_or_default();
    figures(name, head, commit)?;
    let mut sums = BTreeMap::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| format!("{name}: {error}"))?;
        let n = line["n"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        *sums.entry(plain(&line["fault"])).or_default() += n;
    }
    Ok(sums)
}

const FOUND: &str = "\
- A review whose session ended without a verdict kept its holder if the second write was lost, and nobody else could take it. Found by the simulation; fixed in commit 963e3555: both are one write.
- Boards with equal fingerprints had different outcomes: a task that is blocked after a planning session began is another question for the planner. Found by the comparison of pairs; a fault of the fingerprint.
- `liza retry-validation` on an approved task forgot the result that its approval rested on. Found by the simulation, seed 47, once people did what nobody asked for; a result that passed is not forgotten now.
- 19 ways through a level of confinement, found by a hostile audit with 1,925 attempts: docs/safety.md names them and what remains.
";

/// What `just faults` calls the pairs of the trial, and the teams of the simulation, that it repeats with real processes.
pub const REAL_PAIRS: &str =
    "a pair of the trial is run with real processes and git: it ends as it does in memory";
pub const REAL_TEAMS: &str =
    "a team of the simulation is run with real processes and git: the same happens, and it ends the same";

/// Something that was not tested, or not as much as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub what: &'static str,
    /// What was done of the plan; absent where nothing was planned.
    pub done: Option<(usize, usize)>,
    pub why: &'static str,
}

impl Gap {
    const fn of(what: &'static str, why: &'static str) -> Self {
        Self { what, done: None, why }
    }

    fn words(&self) -> String {
        let done = self.done.map(|(done, planned)| format!(", {done} of {planned}")).unwrap_or_default();
        format!("- **{}{done}.** {}", self.what, self.why)
    }
}

/// The gaps that no run of this program closes.
const GAPS: [Gap; 14] = [
    Gap::of(
        "No model was run",
        "Agents are dice; their rates are invented and equal in all arms. Nothing here says how good models are.",
    ),
    Gap::of("No model was drilled", "`liza drill` was run with scripts as reviewers only."),
    Gap::of(
        "`liza trial --cli` with a real model",
        "It lets a real program work on fresh tasks and has never been run so; a script has played it.",
    ),
    Gap::of(
        "Git and processes in trial, exploration and simulation",
        "Git is a model in memory there (numbered commits, one branch) and nothing is a process; faults of the real program have a part of their own.",
    ),
    Gap::of(
        "More than one task at a time in the trial",
        "It has no planner, no second coder and no circuit breaker.",
    ),
    Gap::of(
        "Hostile sessions by somebody else",
        "The attempts that are counted above were written by the makers of Liza; one audit by somebody else is not in their number. Those that are allowed, at each level, are named in docs/safety.md.",
    ),
    Gap::of(
        "Changes of the source",
        "Mutants of `protocol`, `rules` and `supervise` have [a page of their own](mutants.md), by `just mutants`; no number of it is here.",
    ),
    Gap::of("A person who answers in the trial", "What waits for them counts as not merged."),
    Gap::of(
        "Cost in seconds and tokens",
        "Only sessions per task are counted (table of arms). A review costs about as much as a small task.",
    ),
    Gap::of(
        "Defects of several lines",
        "Defects are single mutants of small functions, made by one table. The reviewer that runs mutants uses the same table, so its row is the best case.",
    ),
    Gap::of(
        "Single agents that judge their own work worse",
        "One is assumed to review its own work as well as a reviewer with its program would. If it does worse, its row is too good.",
    ),
    Gap::of(
        "The planner's supervisor dies in the exploration",
        "It never does; rescoping, questions, notes and budgets in tokens are not explored either. Random sequences of commands try those.",
    ),
    Gap::of(
        "More than one edit by hand in a run of the exploration",
        "A person edits one field of a task, once.",
    ),
    Gap::of(
        "Kernels, processors and programs that are not here",
        "One machine, named above; what needs another one is marked as not run in docs/safety.md.",
    ),
];

/// The pairs in each cell, and the runs with real processes, that the plan has.
const PLANNED_PAIRS: usize = 3_000;
const PLANNED_RUNS: usize = 300;

/// What was not tested: the gaps that every run has, and what this one has done less of than planned.
pub fn not_tested(pairs: usize, run: &Circumstances) -> Vec<Gap> {
    let runs = |name: &str| run.faults.get(name).copied().unwrap_or(0);
    let open = |team: &&Value| team["closed"] != true;
    let teams = || run.exploration["teams"].as_array().into_iter().flatten();
    let (all, left) = (teams().count(), teams().filter(open).count());
    let parts = [
        (
            "Pairs in each cell of the trial",
            pairs,
            PLANNED_PAIRS,
            "With fewer, a small fault of the machine can go unnoticed.",
        ),
        (
            "Pairs with real processes",
            runs(REAL_PAIRS),
            PLANNED_RUNS,
            "They are shell tasks, with catch rate 50 % and false alarms 20 %.",
        ),
        (
            "Teams of the simulation with real processes",
            runs(REAL_TEAMS),
            PLANNED_RUNS,
            "They have one coder and one code reviewer, and sessions that end in each way; no supervisor dies in them.",
        ),
        (
            "Teams that were explored to their end",
            all - left,
            all,
            "The others were visited up to the bound.",
        ),
    ];
    let short = parts.into_iter().filter(|(_, done, planned, _)| done < planned);
    let short = short.map(|(what, done, planned, why)| Gap { what, done: Some((done, planned)), why });
    short.chain(GAPS).collect()
}

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
    let [bound, seeds] = [&run.exploration["teams"][0]["bound"], &run.simulation["seeds"]].map(plain);
    let arguments = format!("{bound} {seeds} {}", trial.pairs);
    let command = format!("liza trial --pairs {} --seed {}", trial.pairs, trial.seed);
    let mut text = format!(
        "# Scorecard\n\nMade by `just scorecard {}`. Machine: {}. Commit: {}. The figures as JSON: [scorecard.json](scorecard.json).\n\n\
         ## Does supervision pay?\n\n\
         Agents are dice with known rates, so the result of each arm is arithmetic; the real rules of Liza run beside it. A difference between the two is a fault of the machine. \
         {} pairs in each cell; the same seed has the same task, fault and dice in each arm. 4 repositories with 10 tasks each; 30 % of first submissions have a defect, 80 % of reworks correct one, 10 % of \
         needless reworks make one. Every number of this part, with a program built with `--features trial`: `{command}`.\n\n![Escaped defects by catch rate](pictures/trial.svg)\n\n{}\n",
        arguments,
        run.machine,
        run.commit,
        trial.pairs,
        tables(trial)
    );
    let _ = writeln!(text, "## The protocol, explored\n\n{}", exploration(&run.exploration));
    let _ = writeln!(text, "## Whole teams by seed\n\n{}", simulation(&run.simulation));
    let _ = writeln!(text, "## Faults of the real program\n\n{}", real_faults(&run.faults));
    let _ = writeln!(text, "## Error codes\n\n{}", codes(run));
    let _ = writeln!(text, "## Found and fixed\n\n{FOUND}");
    let _ = writeln!(text, "## The estimate of drills\n\n{}", drill_lines());
    let gaps: Vec<String> = not_tested(trial.pairs, run).iter().map(Gap::words).collect();
    let _ = writeln!(text, "## What was not tested\n\n{}", gaps.join("\n"));
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

fn exploration(file: &Value) -> String {
    let mut text = "Boards that are reachable from a new one. A bound says how far; nothing here is a proof beyond it. Every number: `just explore BOUND`.\n\n\
         | Team (tasks × coders × reviewers) | Boards | Steps | Depth | Bound |\n|---|---|---|---|---|\n"
        .to_owned();
    for team in file["teams"].as_array().into_iter().flatten() {
        let bound = if team["closed"] == true { "closed".to_owned() } else { plain(&team["bound"]) };
        let cells = ["name", "states", "transitions", "depth"].map(|cell| plain(&team[cell]));
        let _ = writeln!(text, "| {} | {bound} |", cells.join(" | "));
    }
    text.push_str("\n| Promise | Where it first says something, on the machine with the fault | The fault, and the shortest way to it | Breaks |\n|---|---|---|---|\n");
    for promise in file["properties"].as_array().into_iter().flatten() {
        let witness = Some(plain(&promise["witness"])).filter(|way| !way.is_empty());
        let breaks =
            if promise["breaks"].as_array().is_some_and(|all| all.len() == 1) { "it alone" } else { "more" };
        let _ = writeln!(
            text,
            "| {} | {} | {}: {} | {breaks} |",
            plain(&promise["name"]),
            witness.unwrap_or_else(|| "the first board".to_owned()),
            plain(&promise["mutation"]),
            plain(&promise["broken_by"])
        );
    }
    text
}

/// The faults of the simulation: how many, and the upper bound of the rate at which one breaks a promise.
fn simulation(file: &Value) -> String {
    let [seeds, moves, merged, abandoned] =
        ["seeds", "moves", "merged", "abandoned"].map(|name| plain(&file[name]));
    let mut text = format!(
        "{seeds} seeds from {}, {moves} moves: {merged} tasks merged, {abandoned} abandoned, and every goal ended. All promises are asked after each move; the machine is the shipped rules, its git a model. \
         Every number: `just simulate {seeds} {}`.\n\n| Fault | n | Promises broken | At most (95 %) |\n|---|---|---|---|\n",
        plain(&file["first"]),
        plain(&file["first"])
    );
    for (fault, count) in file["faults"].as_object().into_iter().flatten() {
        let n = usize::try_from(count.as_u64().unwrap_or(0)).unwrap_or(0);
        let _ = writeln!(text, "| {fault} | {n} | 0 | {:.4} % |", 100.0 * rule_of_three(n));
    }
    text
}

/// The tests of the program with real processes, files, git and databases: one that finds something fails, and then there is no page.
fn real_faults(faults: &BTreeMap<String, usize>) -> String {
    let mut text = "Real processes, files, git, namespaces and databases, in the tests of the program: `just faults`, which fails if one of these goes wrong once. \
         The bound is for faults of the same kind at random moments; kills at a system call are at every one that changes or starts something.\n\n\
         | What is done | n | Went wrong | At most (95 %) |\n|---|---|---|---|\n"
        .to_owned();
    for (fault, n) in faults {
        let _ = writeln!(text, "| {fault} | {n} | 0 | {:.2} % |", 100.0 * rule_of_three(*n));
    }
    text
}

/// The error codes of the rules that were reached, by exploration or simulation.
fn codes(run: &Circumstances) -> String {
    let names = |value: &Value| -> BTreeSet<String> {
        value.as_object().into_iter().flatten().map(|(code, _)| code.clone()).collect()
    };
    let teams = run.exploration["teams"].as_array().into_iter().flatten();
    let mut met: BTreeSet<String> = teams.flat_map(|team| names(&team["refusals"])).collect();
    met.extend(names(&run.simulation["refusals"]));
    let all: Vec<String> = run.simulation["codes"].as_array().into_iter().flatten().map(plain).collect();
    let missing: Vec<String> =
        all.iter().filter(|code| !met.contains(*code)).map(|code| format!("`{code}`")).collect();
    format!(
        "Of {} error codes of the rules, exploration and simulation met {}. Not met, most of them because no agent of a simulation sends such a command: {}.\n",
        all.len(),
        all.len() - missing.len(),
        missing.join(", ")
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
        let promise = serde_json::json!({"name": "merged once", "witness": "merge", "mutation": "Twice", "breaks": ["merged once"], "broken_by": "merge, merge"});
        let team = serde_json::json!({"name": "1 × 1 × 1", "states": 5, "transitions": 9, "depth": 3, "closed": true, "bound": 7, "refusals": {"fenced": 1}});
        let circumstances = Circumstances {
            machine: "a machine".to_owned(),
            commit: "abc".to_owned(),
            exploration: serde_json::json!({"teams": [team], "properties": [promise]}),
            faults: BTreeMap::from([("a kill".to_owned(), 60)]),
            simulation: serde_json::json!({
                "first": 0, "seeds": 8, "moves": 9, "merged": 2, "abandoned": 0, "faults": {"a death": 300}, "refusals": {}, "codes": ["fenced", "halted"],
            }),
        };
        let page = scorecard(&trial, &circumstances);
        for part in [
            "just scorecard 7 8 1",
            "a machine",
            "abc",
            "liza trial --pairs 1 --seed 7",
            "pictures/trial.svg",
            "No model was run",
            "| 1 × 1 × 1 | 5 | 9 | 3 | closed |",
            "| merged once | merge | Twice: merge, merge | it alone |",
            "| a death | 300 | 0 | 1.0000 % |",
            "just simulate 8 0",
            "| a kill | 60 | 0 | 5.00 % |",
            "Of 2 error codes of the rules, exploration and simulation met 1",
            "`halted`",
            "963e3555",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(headline(&trial).matches("1,000").count(), 1);
        let svg = chart(&trial, &material());
        assert_eq!(svg.matches("<polyline").count(), 7);
        assert!(svg.ends_with("</svg>\n"));
    }

    /// Covers: TR-04
    #[test]
    fn what_was_not_tested_follows_from_what_was_run() {
        let run = |pairs: usize, closed: bool| Circumstances {
            machine: String::new(),
            commit: String::new(),
            exploration: serde_json::json!({"teams": [{"closed": closed}]}),
            simulation: Value::Null,
            faults: BTreeMap::from([(REAL_PAIRS.to_owned(), pairs), (REAL_TEAMS.to_owned(), 300)]),
        };
        let gaps = not_tested(2_999, &run(30, false));
        let short: Vec<_> = gaps.iter().filter_map(|gap| gap.done).collect();
        assert_eq!(short, [(2_999, 3_000), (30, 300), (0, 1)]);
        let words = "- **Pairs with real processes, 30 of 300.** They are shell tasks, with catch rate 50 % and false alarms 20 %.";
        assert_eq!(gaps[1].words(), words);
        assert_eq!(not_tested(3_000, &run(300, true)), GAPS);
    }

    /// Covers: TR-04
    #[test]
    fn figures_of_another_commit_are_refused() {
        assert!(figures("x", r#"{"commit": "abc"}"#, "abc").is_ok());
        for text in [r#"{"commit": "abd"}"#, "{}", ""] {
            assert!(figures("x", text, "abc").is_err(), "{text}");
        }
        let lines = "{\"commit\": \"abc\"}\n{\"fault\": \"a\", \"n\": 2}\n{\"fault\": \"a\", \"n\": 3}\n";
        assert_eq!(faults("x", lines, "abc").unwrap(), BTreeMap::from([("a".to_owned(), 5)]));
        assert!(faults("x", lines, "abd").is_err());
    }
}
