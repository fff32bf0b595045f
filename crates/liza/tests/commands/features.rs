//! The program without its features, which `./check --all` builds beside the whole one: it says what it lacks.

use crate::support::{Run, TestProject};

/// Runs the small program in a project.
fn small(project: &TestProject, arguments: &[&str]) -> Run {
    let program = std::env::var_os("LIZA_SMALL_PROGRAM").expect("LIZA_SMALL_PROGRAM names the program");
    project.run(project.command(program).args(arguments).arg("--json"))
}

/// Covers: HO-02
#[test]
fn needs_small_program_what_a_program_lacks_ends_with_5_and_the_line_that_installs_it() {
    let (project, other) = (TestProject::new(), TestProject::bare());
    let lacks = |project: &TestProject, arguments: &[&str]| {
        let error = small(project, arguments).refused(5, "missing_feature");
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("cargo install --path crates/liza"), "{arguments:?}: {error}");
    };
    let url = "https://127.0.0.1:9/x";
    lacks(&project, &["tui"]);
    lacks(&project, &["web"]);
    lacks(&project, &["trial"]);
    let error = small(&project, &["trial"]).refused(5, "missing_feature");
    assert!(error["hint"].as_str().unwrap().contains("--features trial"), "{error}");
    lacks(&project, &["config", "escalation_webhook", url]);
    lacks(&other, &["init", "--store", "postgresql://127.0.0.1:9/x", "goal"]);
    // What is configured with the whole program never fails in silence.
    project.liza(&["config", "escalation_webhook", url]).ok();
    lacks(&project, &["watch", "--once"]);
    lacks(&project, &["run", "--cli", "rehearsal", "--in-place"]);
}
