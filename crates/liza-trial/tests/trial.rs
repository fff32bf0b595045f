//! The trial as the gate runs it: 30 pairs in each cell, and the teeth of its judgement.

use liza_trial::trial::{Trial, run};

fn small() -> Trial {
    run(30, 7, &|_, _| {})
}

fn print(trial: &Trial) {
    for cell in trial.all() {
        println!(
            "{:?} {:?}\n  {:?}\n  {:?}",
            cell.setting.arm,
            (cell.setting.rates, cell.setting.script, cell.setting.ablation),
            cell.measured,
            cell.expected
        );
    }
}

/// Covers: TR-01, TR-02
#[test]
fn the_machine_does_what_is_predicted_in_all_cells_together() {
    let trial = small();
    print(&trial);
    let faults: Vec<String> =
        trial.faults().iter().map(|(cell, deviation)| format!("{:?}: {deviation:?}", cell.setting)).collect();
    assert_eq!(faults, Vec::<String>::new());
    let (runs, faults) = trial.protocol_faults();
    assert!(runs > 1000 && faults == 0, "{faults} of {runs}");
}
