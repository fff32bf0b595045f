//! `liza attach` and `liza web` beside each other: both show what the other does, and two people who act at once get the
//! refusals that two commands would.

use std::fs;
use std::thread;

use crate::actions::submitted;
use crate::fixture::Web;
use crate::support::TestProject;
use crate::support::process::wait_for;
use crate::support::tmux::Tmux;

/// A team in the background whose only agent is a planner that does nothing, and a coder that a person plays.
fn with_team() -> TestProject {
    let project = TestProject::new();
    let script = project.home().join("sleeper.sh");
    fs::write(&script, "#!/bin/sh\ncat > /dev/null\nexec sleep 600\n").unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("providers", &format!("{{sleeper: {{program: {}}}}}", script.display()));
    project.register("coder-1");
    project.liza(&["run", "--detach", "--cli", "sleeper", "--coders", "0", "--reviewers", "0"]).ok();
    project
}

/// Covers: UI-02, UI-06
#[test]
fn needs_tmux_the_terminal_and_the_pages_show_what_the_other_does() {
    let project = with_team();
    submitted(&project, "t1");
    let line = format!("'{}' attach; echo \"ended with $?\"; cat", env!("CARGO_BIN_EXE_liza"));
    let tmux = Tmux::start(&project, (160, 40), &line);
    tmux.wait_for("1 open");
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    let page_shows = |text: &str| {
        wait_for(&format!("{text:?} on the page"), || visitor.page("").contains(text).then_some(()));
    };

    tmux.press(&["p"]);
    tmux.wait_for("PAUSED");
    page_shows("class=\"state warn\">paused");
    assert_eq!(visitor.act(&[("action", "resume")]).status, 200);
    tmux.wait_until_gone("PAUSED");
    let note = visitor.act(&[("action", "note-all"), ("text", "mind the gap")]);
    assert_eq!(note.status, 200, "{note:?}");
    tmux.wait_for("mind the gap");

    // The person at the terminal has the dialog open when the other one decides.
    let seen = project.record("t1").revision.unwrap().to_string();
    tmux.press(&["Tab", "x"]);
    tmux.wait_for("Reject t1");
    tmux.enter_text("too slow");
    let rejected = visitor.act(&[("action", "reject"), ("task", "t1"), ("seen", &seen), ("text", "no test")]);
    assert_eq!(rejected.status, 200, "{rejected:?}");
    tmux.press(&["Enter"]);
    tmux.wait_for("has changed since revision");
    assert_eq!(project.record("t1").review_cycles_total, Some(1));

    // Each ends without the other.
    assert_eq!(web.end(), 0);
    project.add_task("later");
    tmux.wait_for("later");
    tmux.press(&["q"]);
    let screen = tmux.wait_for("ended with 0");
    assert!(screen.contains("the team goes on; end it: liza stop"), "{screen}");
    assert_eq!(project.liza(&["stop", "--json"]).result()["stopped"], true);
}

/// Covers: UI-02
#[test]
fn a_page_and_a_command_at_once_are_one_decision_and_one_refusal() {
    let project = TestProject::new();
    project.register("coder-1");
    let tasks = ["t1", "t2", "t3", "t4"];
    tasks.iter().for_each(|task| submitted(&project, task));
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    for task in tasks {
        let seen = project.record(task).revision.unwrap().to_string();
        let form = [("action", "reject"), ("task", task), ("seen", seen.as_str()), ("text", "no test")];
        let words = ["submit-verdict", "--if-revision", &seen, task, "REJECTED", "no test"];
        let (command, page) = thread::scope(|scope| {
            let page = scope.spawn(|| visitor.act(&form));
            (project.liza(&words), page.join().unwrap())
        });
        let refusal = format!("{task} has changed since revision {seen}");
        match (page.status, command.code) {
            (200, 4) => assert!(command.stderr.contains(&refusal), "{command:#?}"),
            (409, 0) => assert!(page.body.contains(&refusal), "{page:?}"),
            _ => panic!("{page:?} {command:#?}"),
        }
        assert_eq!(project.record(task).review_cycles_total, Some(1));
        // Who is late gets the same words from both.
        let late = (visitor.act(&form), project.liza(&words));
        assert!(late.0.status == 409 && late.0.body.contains(&refusal), "{:?}", late.0);
        assert!(late.1.code == 4 && late.1.stderr.contains(&refusal), "{:#?}", late.1);
    }
}
