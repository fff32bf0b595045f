//! The screen from its start to its end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::TestProject;
use crate::support::process::{send_signal, wait_for};
use crate::support::tmux::Tmux;

/// The screen, and then a line that shows how it ended and that the terminal still echoes.
fn tui() -> String {
    format!("'{}' tui; echo \"ended with $?\"; cat", env!("CARGO_BIN_EXE_liza"))
}

#[track_caller]
fn is_restored(tmux: &Tmux<'_>) {
    assert_eq!(
        tmux.pane("#{alternate_on} #{cursor_flag}"),
        "0 1",
        "the cursor and the normal screen are back"
    );
    tmux.enter_text("echoed");
    let screen = tmux.wait_for("echoed");
    assert!(!screen.contains("TASKS") && !screen.contains("200~"), "{screen}");
}

/// Covers: UI-01, UI-03
#[test]
fn needs_tmux_a_person_watches_and_steers_a_team() {
    let project = TestProject::new();
    project.add_task("first");
    let tmux = Tmux::start(&project, (80, 24), &tui());
    let screen = tmux.wait_for("1 open");
    assert!(screen.contains("Retry everything") && screen.contains("0 of 1 merged"), "{screen}");

    // What other commands do is shown at once.
    project.add_task("second");
    tmux.wait_for("second");

    tmux.press(&["p"]);
    tmux.wait_for("PAUSED");
    assert!(project.root.join(".liza/PAUSE").exists());
    tmux.press(&["r"]);
    tmux.wait_until_gone("PAUSED");

    // A paste is text, not keys, and its line breaks run nothing.
    tmux.paste("Xy\np");
    tmux.press(&["N"]);
    tmux.wait_for("Note for all agents");
    tmux.paste("mind the gap\nand the doors");
    tmux.wait_for("→ liza note 'mind the gap and the doors'");
    tmux.press(&["Enter"]);
    wait_for("the note", || project.state().contains("mind the gap and the doors").then_some(()));
    tmux.wait_for("note added; it is read by");
    assert!(!project.root.join(".liza/PAUSE").exists() && !project.root.join(".liza/ABORT").exists());

    // A task, its history and its diff.
    tmux.press(&["Down", "Enter"]);
    let page = tmux.wait_for("HISTORY");
    assert!(page.contains("Done when") && page.contains("created"), "{page}");
    tmux.press(&["2"]);
    tmux.wait_for("has no commits yet");
    tmux.press(&["Escape"]);
    tmux.wait_for("2 open");

    // Another size leaves nothing of the old one, once all of it is drawn.
    let is_whole = |lines: std::ops::RangeInclusive<usize>| {
        let screen = tmux.screen();
        let once = ["TASKS", "? keys"].map(|text| screen.matches(text).count() == 1) == [true; 2];
        (once && lines.contains(&screen.lines().count())).then_some(())
    };
    tmux.resize(130, 40);
    wait_for("the wide screen", || is_whole(39..=40));
    tmux.resize(60, 12);
    wait_for("the small screen", || is_whole(1..=12));

    tmux.press(&["q"]);
    tmux.wait_for("ended with 0");
    is_restored(&tmux);
}

/// Covers: UI-01
#[test]
fn needs_tmux_a_signal_restores_the_terminal() {
    for signal in ["TERM", "INT", "HUP"] {
        let project = TestProject::new();
        let line = format!(
            "sh -c 'echo $$ > pid; exec {} tui'; echo \"ended with $?\"; cat",
            env!("CARGO_BIN_EXE_liza")
        );
        let tmux = Tmux::start(&project, (80, 24), &line);
        tmux.wait_for("TASKS");
        assert!(send_signal(signal, project.read("pid").trim()));
        tmux.wait_for("ended with");
        is_restored(&tmux);
    }
}

/// Covers: UI-01
#[cfg(target_os = "linux")]
#[test]
fn needs_tmux_the_screen_ends_with_its_terminal() {
    let project = TestProject::new();
    let line = format!("echo $$ > pid; exec '{}' tui", env!("CARGO_BIN_EXE_liza"));
    let tmux = Tmux::start(&project, (80, 24), &line);
    tmux.wait_for("TASKS");
    let pid = project.read("pid");
    tmux.run(&["kill-server"]);
    wait_for("the end of the screen", || {
        let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        (status.is_empty() || status.contains(") Z")).then_some(())
    });
}

/// Covers: UI-01
#[test]
fn needs_tmux_a_team_in_a_terminal_has_the_screen_and_ends_with_a_summary() {
    let project = TestProject::bare();
    project.liza(&["init", "Say hello, say goodbye, say good night"]).ok();
    let line = format!(
        "'{}' run --in-place --cli rehearsal; echo \"ended with $?\"; cat",
        env!("CARGO_BIN_EXE_liza")
    );
    let tmux = Tmux::start(&project, (100, 30), &line);
    tmux.wait_for("AGENTS");
    let screen = tmux.wait_for("ended with 0");
    assert!(screen.contains("goal COMPLETED · 3 tasks: 3 merged"), "{screen}");
    is_restored(&tmux);
}

/// Covers: AX-25, UI-06
#[test]
fn needs_tmux_a_team_that_is_detached_goes_on_without_its_terminal() {
    let project = TestProject::new();
    let line = format!(
        "'{}' run --in-place --cli rehearsal; echo \"ended with $?\"; cat",
        env!("CARGO_BIN_EXE_liza")
    );
    project.liza(&["pause"]).ok();
    let tmux = Tmux::start(&project, (80, 24), &line);
    tmux.wait_for("coder-1");
    tmux.press(&["q"]);
    tmux.wait_for("d detach   s stop the team");
    tmux.press(&["d"]);
    let screen = tmux.wait_for("ended with 0");
    assert!(screen.contains("the team goes on in the background as process"), "{screen}");
    is_restored(&tmux);
    tmux.run(&["kill-server"]);
    // It works, with its lines in the file, until it is stopped.
    project.add_task("first");
    project.liza(&["resume"]).ok();
    wait_for("its lines", || project.read(".liza/run.out").contains("first is MERGED").then_some(()));
    project.liza(&["stop"]).ok();
}

/// Covers: AX-25
#[test]
fn needs_tmux_a_task_is_edited_from_the_screen_whose_terminal_the_editor_gets() {
    let project = TestProject::new();
    project.add_task("first");
    let editor = project.home().join("editor");
    fs::write(
        &editor,
        "#!/bin/sh\necho in the editor\nread line\nsed -i 's/priority: 3/priority: 1/' \"$1\"\n",
    )
    .unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let tmux = Tmux::start(&project, (80, 24), &format!("EDITOR={} {}", editor.display(), tui()));
    tmux.wait_for("first");
    tmux.press(&["e"]);
    let screen = tmux.wait_for("in the editor");
    assert!(!screen.contains("TASKS"), "{screen}");
    assert_eq!(tmux.pane("#{alternate_on}"), "0", "the editor has the terminal");
    tmux.press(&["Enter"]);
    tmux.wait_for("TASKS");
    wait_for("the edit", || project.state().contains("priority: 1").then_some(()));
    // The keys are the screen's again.
    tmux.press(&["p"]);
    tmux.wait_for("PAUSED");
    tmux.press(&["q"]);
    tmux.wait_for("ended with 0");
    is_restored(&tmux);
}

/// Covers: UI-01, SE-09
#[test]
fn needs_tmux_what_a_team_says_before_its_screen_is_in_the_log_of_the_screen() {
    let project = TestProject::new();
    project.write("late.txt", "not on the integration branch\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "late"]);
    let program = project.home().join("agents/claude");
    fs::create_dir(program.parent().unwrap()).unwrap();
    fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!(
        "PATH='{}':$PATH '{}' run --cli claude; echo \"ended with $?\"; cat",
        program.parent().unwrap().display(),
        env!("CARGO_BIN_EXE_liza")
    );
    let tmux = Tmux::start(&project, (160, 50), &line);
    tmux.wait_for("AGENTS");
    let screen = tmux.wait_for("!! LOGIN");
    assert!(screen.contains("→ claude /login"), "{screen}");
    for said in ["main has 1 commit that the agents", "no login of claude was found", "First run in this"] {
        let screen = tmux.wait_for(said);
        assert!(screen.contains("AGENTS"), "{screen}");
    }
    tmux.press(&["C-c"]);
    tmux.wait_for("ended with");
    is_restored(&tmux);
}

/// Covers: UI-01
#[test]
fn outside_a_terminal_the_screen_is_refused_with_a_hint() {
    let project = TestProject::new();
    let error = project.liza(&["tui", "--json"]).refused(1, "no_terminal");
    assert!(error["hint"].as_str().unwrap().contains("liza status"), "{error}");
    project.register("coder-1");
    project
        .run(project.program().args(["tui", "--json"]).env("LIZA_AGENT_ID", "coder-1"))
        .refused(1, "not_permitted");
}

/// Covers: AG-16
#[test]
fn needs_tmux_ctrl_c_ends_the_demo() {
    let project = TestProject::bare();
    let line = format!("trap : INT; {} demo --dir demo; echo \"exit $?\"; cat", env!("CARGO_BIN_EXE_liza"));
    let terminal = Tmux::start(&project, (100, 40), &line);
    terminal.wait_for("makes the plan ready");
    terminal.press(&["C-c"]);
    let screen = terminal.wait_for("exit 130");
    assert!(!screen.contains("Try next"), "{screen}");
}

/// Covers: UI-01
#[test]
fn needs_tmux_what_is_removed_is_wrapped_at_words() {
    let project = TestProject::new();
    let line = format!("'{}' remove --dry-run; echo ended; cat", env!("CARGO_BIN_EXE_liza"));
    let tmux = Tmux::start(&project, (30, 40), &line);
    let screen = tmux.wait_for("ended");
    assert!(screen.contains("\n  Liza's lines in\n  .git/info/exclude\n"), "{screen}");
}

/// Covers: AX-18
#[test]
fn needs_tmux_the_diff_of_a_task_is_on_the_screen_and_no_pager_starts() {
    let project = TestProject::new();
    project.add_task("first");
    project.register("coder-1");
    project.liza(&["claim-task", "first", "coder-1"]).ok();
    let tree = project.tree("first");
    fs::write(tree.join("work.txt"), "first line\nsecond line\n").unwrap();
    project.git_at(&tree, &["add", "."]);
    project.git_at(&tree, &["commit", "-qm", "work"]);
    let pager = "PAGER='touch ../paged; less' GIT_PAGER='touch ../paged; less'";
    let tmux = Tmux::start(&project, (80, 24), &format!("LESS=-R {pager} {}", tui()));
    // The list is empty until the board is read.
    tmux.wait_for("first");
    tmux.press(&["Enter"]);
    tmux.wait_for("HISTORY");
    tmux.press(&["2"]);
    let page = tmux.wait_for("+second line");
    assert!(page.contains("+first line") && page.contains("first"), "{page}");
    assert!(!project.home().join("paged").exists(), "no pager starts below a screen");
    assert_eq!(tmux.pane("#{alternate_on}"), "1", "the screen is still shown");
    // Keys are the screen's.
    tmux.press(&["1"]);
    tmux.wait_for("HISTORY");
    tmux.press(&["Escape"]);
    tmux.wait_for("TASKS");
    tmux.press(&["q"]);
    tmux.wait_for("ended with 0");
    is_restored(&tmux);
}
