//! The trial as the gate runs it: 30 pairs in each cell, and the teeth of its judgement.

use std::sync::LazyLock;

use liza_trial::arms::{Ablation, Arm, Rates, Script, Setting};
use liza_trial::mutants::material;
use liza_trial::prediction::predict;
use liza_trial::table::tables;
use liza_trial::trial::{Plan, Trial, run, run_pair};

/// All rates under `LIZA_FULL=1`, else the middle ones and both ends of the catch rate.
fn plan() -> Plan {
    if std::env::var_os("LIZA_FULL").is_some() {
        return Plan { pairs: 300, seed: 7, rates: Rates::grid() };
    }
    let rates = [0.1, 0.5, 0.9].map(|catch| Rates { catch, ..Rates::MIDDLE });
    Plan { pairs: 30, seed: 7, rates: rates.to_vec() }
}

static TRIAL: LazyLock<Trial> = LazyLock::new(|| run(&plan(), &|_, _| {}));

/// Covers: TR-01
#[test]
fn the_machine_does_what_is_predicted_in_all_cells_together() {
    let faults: Vec<String> =
        TRIAL.faults().iter().map(|(cell, deviation)| format!("{:?}: {deviation:?}", cell.setting)).collect();
    assert_eq!(faults, Vec::<String>::new());
    let (runs, faults) = TRIAL.protocol_faults();
    assert!(runs > 1000 && faults == 0, "{faults} of {runs}");
    // Nothing is counted that did not occur, and every script occurs.
    for cell in &TRIAL.scripts {
        assert_eq!(cell.measured.n, TRIAL.pairs, "{:?}", cell.setting);
    }
    for part in Ablation::ALL {
        let cell = TRIAL.scripts.iter().find(|cell| cell.setting.ablation == Some(*part)).unwrap();
        assert!(cell.measured.escaped * 10 > TRIAL.pairs * 8, "{part:?} was not needed");
    }
    let text = tables(&TRIAL);
    for arm in Arm::ALL {
        assert!(text.contains(arm.words()), "{arm:?}");
    }
    for what in ["Harm", "False blocks", "Only from the agent", "Faults of the protocol: 0 of"] {
        assert!(text.contains(what), "{what}");
    }
}

/// Covers: TR-02
#[test]
fn the_prediction_of_simple_cells_is_arithmetic() {
    let all = material();
    let perfect = Rates { catch: 1.0, false_alarm: 0.0, blindness: 0.0 };
    let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
    let of = |arm, rates| predict(&Setting::dice(arm, rates), &all);
    assert!(near(of(Arm::Solo, perfect).escaped, 0.3));
    assert!(near(of(Arm::NoReview, perfect).escaped, 0.3));
    let review = of(Arm::Review, perfect);
    // Each of 30 % of the tasks is reworked 1 / 0.8 times, with two sessions each.
    assert!(near(review.escaped, 0.0) && near(review.merged, 1.0) && near(review.sessions, 2.0 + 0.3 * 2.5));
    let blind = of(Arm::Review, Rates { blindness: 1.0, ..perfect });
    assert!(near(blind.escaped, 0.3) && near(blind.sessions, 2.0));
    let half = Rates { catch: 0.5, false_alarm: 0.0, blindness: 0.0 };
    // Half escapes at once; of the rest, a fifth is as it was.
    assert!(near(of(Arm::Review, half).escaped, 0.3 * 0.5 / (1.0 - 0.5 * 0.2)));
    let same = of(Arm::SecondSame, Rates { blindness: 0.5, ..half });
    let other = of(Arm::SecondOther, Rates { blindness: 0.5, ..half });
    assert!(other.escaped < same.escaped);
}

/// Covers: TR-01, TR-02
#[test]
fn the_same_seed_is_the_same_run_and_a_script_that_does_not_occur_does_not_count() {
    let all = material();
    let setting = Setting { script: Some(Script::LateVerdict), ..Setting::dice(Arm::Gate, Rates::MIDDLE) };
    for seed in 0..5 {
        let outcome = run_pair(&setting, &all, seed, 0);
        assert_eq!(outcome, run_pair(&setting, &all, seed, 0));
        assert!(outcome.occurred(Script::LateVerdict) && !outcome.escaped(setting.script));
        let solo = Setting { arm: Arm::Solo, ..setting };
        assert!(!run_pair(&Setting { script: None, ..solo }, &all, seed, 0).occurred(Script::LateVerdict));
    }
}

/// An honest team whose dice make nothing wrong does none of it; with a script, exactly these oracles never say "escaped", since the machine has
/// no part that could be taken out for it. Their own test lets them say so.
///
/// Covers: TR-01, TR-02
#[test]
fn an_honest_team_does_none_of_it_and_what_gets_through_somewhere_is_seen() {
    let all = material();
    let honest = (0..200).map(|seed| run_pair(&Setting::dice(Arm::Gate, Rates::MIDDLE), &all, seed, 0));
    let honest: Vec<_> =
        honest.filter(|outcome| outcome.merged && outcome.sessions == 2 && !outcome.defective).collect();
    assert!(honest.len() > 50, "{}", honest.len());
    for script in Script::ALL {
        assert!(!honest.iter().any(|outcome| outcome.occurred(*script)), "{script:?}");
    }
    let escapes = |script: &&Script| {
        TRIAL.scripts.iter().any(|cell| cell.setting.script == Some(**script) && cell.measured.escaped > 0)
    };
    let never: Vec<&Script> = Script::ALL.iter().filter(|script| !escapes(script)).collect();
    assert_eq!(never, [&Script::ForgesEvidence, &Script::ApprovesItself]);
}

/// Whatever the number of cores and the order of the cells.
///
/// Covers: TR-01, TR-04
#[test]
fn a_second_trial_has_the_same_numbers() {
    let once = || {
        let trial = run(&Plan { pairs: 5, seed: 7, rates: vec![Rates::MIDDLE] }, &|_, _| {});
        (serde_json::to_string(&trial).unwrap(), tables(&trial))
    };
    assert_eq!(once(), once());
    let other = run(&Plan { pairs: 5, seed: 8, rates: vec![Rates::MIDDLE] }, &|_, _| {});
    assert_ne!(once().1, tables(&other), "the seed decides");
}

/// Covers: TR-04
#[test]
fn the_readme_has_three_numbers_of_the_scorecard_and_a_link_to_it() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (readme, card) = (read("README.md"), read("docs/scorecard.md"));
    let (_, part) = readme.split_once("<!-- three numbers").unwrap();
    let (part, _) = part.split_once("<!-- end of the three numbers").unwrap();
    assert!(part.contains("(docs/scorecard.md)"));
    for arm in [Arm::Gate, Arm::SoloTests, Arm::SoloBudget] {
        let row = card.lines().find(|line| line.starts_with(&format!("| {} |", arm.words()))).unwrap();
        let escaped = row.split("| ").nth(2).unwrap().split(' ').next().unwrap();
        assert!(part.contains(&format!(" {escaped} ")), "{}: {escaped}", arm.words());
    }
    for gap in
        ["Machine: ", "Commit: ", "--seed 7", "What was not tested", "No model was run", "pictures/trial.svg"]
    {
        assert!(card.contains(gap), "{gap}");
    }
    assert!(read("docs/pictures/trial.svg").starts_with("<svg"));
}
