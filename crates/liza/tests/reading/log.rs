//! `liza log`: reading and following it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::TestProject;

fn talkative() -> TestProject {
    let project = TestProject::new();
    project.add_task("one");
    project.add_task("two");
    project.liza(&["note", "mind the gap", "--for", "one"]).ok();
    project.register("coder-1");
    project
}

/// Covers: BB-12
#[test]
fn every_write_is_one_line() {
    let project = talkative();
    let text = project.liza(&["log"]).ok().to_owned();
    assert_eq!(text.lines().count(), 5, "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.contains("joins the team"), "{text}");
    let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().skip(2).collect();
    assert_eq!(words, ["human", "adds", "one:", "Do", "it"]);
    assert_eq!(project.liza(&["log", "-n", "2"]).ok().lines().count(), 2);
    // In a pipe a program reads it, so nothing is wrapped.
    project.liza(&["note", &"mind the gap ".repeat(20)]).ok();
    let piped = project.run(project.program().args(["log", "-n", "1"]).env_remove("COLUMNS"));
    assert_eq!(piped.ok().lines().count(), 1, "{piped:?}");
}

/// Covers: CM-03
#[test]
fn entries_can_be_filtered() {
    let project = talkative();
    let entries = |arguments: &[&str]| {
        let result = project.liza(&[&["log", "--json"], arguments].concat()).result();
        let actions =
            result.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap().to_owned());
        actions.collect::<Vec<_>>()
    };
    assert_eq!(entries(&["--task", "one"]), ["created", "note"]);
    assert_eq!(entries(&["--agent", "system"]), Vec::<String>::new());
    assert!(entries(&["--agent", "human"]).len() >= 4);
    let all = project.liza(&["log", "--json"]).result();
    assert_eq!(all[0]["revision"], 1);
}

/// Covers: CM-05
#[test]
fn an_invalid_agent_id_is_refused() {
    let project = TestProject::new();
    project.liza(&["log", "--agent", "bob", "--json"]).refused(1, "bad_id");
    assert_eq!(project.liza(&["log", "--task", "../x"]).code, 1);
}

fn ended(child: &mut Child) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Covers: CM-05
#[test]
fn following_prints_new_entries_and_ends_with_its_reader() {
    let project = TestProject::new();
    let mut child =
        project.program().args(["log", "-f"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("states the goal"));
    project.liza(&["note", "something new"]).ok();
    assert!(lines.next().unwrap().unwrap().contains("something new"));
    drop(lines);
    let over = ended(&mut child);
    if !over {
        child.kill().unwrap();
    }
    assert!(over, "it ends when its reader has closed the output");
    assert!(child.wait().unwrap().success());
}
