//! Runs every command block of the guide and compares its output.

use std::path::Path;

use crate::support::{TestProject, console};

/// Covers: CM-05
#[test]
fn the_guide_one_task_by_hand_is_correct() {
    let page = console::page("guide/one-task-by-hand.md");
    // The installed agent programs differ between machines.
    let (shown, mut seen) = console::run(&TestProject::at("shop"), &page, "agent programs");
    // So does what their kernels can confine.
    seen.retain(|line| !line.contains("    confinement    ") && !line.contains("    shared    "));
    assert!(shown.iter().filter(|line| line.starts_with("$ ")).count() > 20);
    assert_eq!(seen, shown);
}

/// Covers: MM-01
#[test]
fn needs_pyyaml_the_examples_for_containers_can_be_read_and_start_agents() {
    let script = "import json, sys, yaml; print(json.dumps([yaml.safe_load(open(f)) for f in sys.argv[1:]]))";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let files = ["compose.yaml", "kubernetes-workers.yaml"].map(|name| folder.join(name));
    let mut python = std::process::Command::new("python3");
    let output = python.args(["-c", script]).args(&files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let services = read[0]["services"].as_object().unwrap();
    let workers = services.values().filter(|service| !service["command"].is_null());
    let workload = &read[1];
    assert_eq!((&workload["apiVersion"], &workload["kind"]), (&"apps/v1".into(), &"Deployment".into()));
    let template = &workload["spec"]["template"];
    assert_eq!(workload["spec"]["selector"]["matchLabels"], template["metadata"]["labels"]);
    let container = &template["spec"]["containers"][0];
    let project = TestProject::bare();
    let mut started = 0;
    for worker in workers.chain([container]) {
        let words = worker["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let words: Vec<&str> = words.collect();
        assert_eq!(words[0], "liza");
        project.liza(&[&words[1..], &["--help"]].concat()).ok();
        started += 1;
    }
    assert_eq!(started, 3);
}
