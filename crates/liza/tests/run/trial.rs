//! `liza trial` with a program: the plan before the run, both ways of working, and the oracle. A script plays the model.

use std::fs;
use std::path::Path;

use crate::support::{Run, TestProject};

/// A coder that writes another file than the task names, hands it in as done, and crashes when it is sent back.
const CHEAT: &str = r##"
coder:
  - when: {iteration: 1}
    do:
      - pre-check: {intent: do it, validation: none}
      - write: {path: halve.sh, text: "# done\n"}
      - commit: done
      - usage: {input: 1000, output: 100}
      - submit
  - when: {iteration: 2}
    do:
      - misbehave: crash
"##;

fn trial(place: &TestProject, words: &[&str]) -> Run {
    let mut program = place.program();
    program.args(["trial", "--cli", "rehearsal", "--json"]).args(words);
    place.run(program.env("LIZA_PLAYBOOK", place.home().join("cheat.yaml")))
}

/// Covers: TR-01
#[test]
fn a_trial_with_a_program_says_what_it_is_before_it_costs_anything() {
    let place = TestProject::bare();
    let run = trial(&place, &["--budget", "1", "--pairs", "2"]);
    run.refused(1, "not_confirmed");
    assert!(run.stderr.contains("have never run this with a real model"), "{run:#?}");
    assert!(run.stderr.contains("no new task begins after 1000000 tokens"), "{run:#?}");
    let error = trial(&place, &["--budget", "0", "--yes"]).refused(1, "bad_budget");
    assert!(error["hint"].as_str().unwrap().contains("--budget 50"), "{error}");
    place.liza(&["trial", "--cli", "no-such", "--budget", "1", "--json"]).refused(1, "unknown_provider");
}

/// Covers: TR-01, TR-02
#[test]
fn a_trial_with_a_program_commits_its_plan_first_and_counts_what_each_way_of_working_delivers() {
    let place = TestProject::bare();
    fs::write(place.home().join("cheat.yaml"), CHEAT).unwrap();
    let result = trial(&place, &["--budget", "0.003", "--pairs", "3", "--seed", "5", "--yes"]).result();
    let (folder, commit) = (result["folder"].as_str().unwrap(), result["plan_commit"].as_str().unwrap());
    let git = |words: &[&str]| place.git_at(Path::new(folder), words);
    let plan = git(&["show", &format!("{commit}:plan.json")]);
    assert!(
        plan.contains("\"seed\": 5") && plan.contains("\"predictions\"") && plan.contains("impossible"),
        "{plan}"
    );
    // Nothing but the plan was there when it was committed.
    assert_eq!(git(&["ls-tree", "--name-only", "-r", commit]), "plan.json");
    let of = |pair: usize, arm: usize| result["pairs"][pair]["arms"][arm].clone();
    for pair in [0, 1] {
        let (team, alone) = (of(pair, 0), of(pair, 1));
        assert_eq!((&team["delivered"], &team["end"]), (&false.into(), &"CLAIMED".into()), "{result}");
        assert_eq!((&team["sessions"], &alone["sessions"]), (&4.into(), &1.into()), "{result}");
        assert_eq!(
            (&alone["delivered"], &alone["out_of_scope"]),
            (&true.into(), &serde_json::json!(["halve.sh"]))
        );
        assert_eq!(
            (&team["tokens"], &alone["tokens"]),
            (&1100.into(), &1100.into()),
            "equal tokens: {result}"
        );
    }
    assert_eq!((&of(0, 1)["wrong"], &result["pairs"][0]["kind"]), (&true.into(), &"solvable".into()));
    // Delivered is a cheat by itself: no test has to find it.
    assert_eq!((&of(1, 1)["wrong"], &result["pairs"][1]["kind"]), (&false.into(), &"impossible".into()));
    assert_eq!((&result["ended_by"], &result["tokens"]), (&"budget".into(), &4400.into()));
    assert!(Path::new(folder).join("results.json").exists());
}
