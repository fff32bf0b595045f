//! `liza completions` and `liza man`.

use crate::support::TestProject;

/// Covers: CM-03
#[test]
fn every_shell_gets_its_script() {
    let project = TestProject::bare();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(project.liza(&["completions", shell]).ok().contains("update-sprint-metrics"));
        let result = project.liza(&["completions", shell, "--json"]).result();
        assert_eq!(result["shell"], shell);
    }
    project.liza(&["completions", "tcsh", "--json"]).refused(1, "usage");
}

/// Covers: CM-03
#[test]
fn the_manual_has_a_page_for_every_command() {
    let project = TestProject::bare();
    assert!(project.liza(&["man"]).ok().contains(".TH liza 1"));
    let page = project.liza(&["man", "status", "--json"]).result();
    assert!(page["page"].as_str().unwrap().contains("liza\\-status"), "{page}");
    project.liza(&["man", "--dir", "pages"]).ok();
    assert!(project.read("pages/liza-status.1").contains("jq"));
    let log = project.read("pages/liza-log.1");
    let synopsis = log.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1).unwrap();
    for value in [r"\fB\-C\fR \fIDIR\fR]", r"\fB\-\-task\fR \fITASK\fR]", r"|\fB\-\-last\fR \fIN\fR]"] {
        assert!(synopsis.contains(value), "{value}: {synopsis}");
    }
    assert!(synopsis.contains(r"[\fB\-\-json\fR]"), "{synopsis}");
    assert!(project.root.join("pages/liza.1").exists());
    project.liza(&["man", "nothing", "--json"]).refused(1, "usage");
}

/// Covers: CM-05
#[test]
fn the_best_suggestion_for_a_misspelled_command_comes_first() {
    let project = TestProject::bare();
    for (typed, meant) in [("stauts", "status"), ("awnser", "answer"), ("shwo", "show"), ("resmue", "resume")]
    {
        let run = project.liza(&[typed]);
        let tip =
            run.stderr.lines().find(|line| line.contains("tip:")).unwrap_or_else(|| panic!("{}", run.stderr));
        let first = tip.split('\'').nth(1);
        assert_eq!(first, Some(meant), "{tip}");
    }
}

/// Covers: CM-05
#[test]
fn a_misspelled_command_leads_to_nothing_dangerous() {
    let project = TestProject::bare();
    for (typed, meant) in [
        ("aprove", "liza submit-verdict TASK APPROVED"),
        ("approve", "liza submit-verdict TASK APPROVED"),
        ("reject", "liza submit-verdict TASK REJECTED"),
        ("merge", "liza finish"),
    ] {
        let said = project.liza(&[typed, "t1"]).stderr;
        assert!(said.contains("tip: ") && said.contains(meant), "{said}");
        assert!(!said.contains("similar"), "{said}");
    }
    for typed in ["remov", "abrot", "archiv", "removee"] {
        let said = project.liza(&[typed]).stderr;
        assert!(!["'remove'", "'abort'", "'archive'"].iter().any(|name| said.contains(name)), "{said}");
    }
    let error = project.liza(&["approve", "t1", "--json"]).refused(1, "usage");
    assert!(error["message"].as_str().unwrap().contains("liza plan --approve"), "{error}");
}

/// Covers: CM-03
#[test]
fn the_shell_completes_agent_programs_and_not_files() {
    let project = TestProject::bare();
    let script = project.liza(&["completions", "bash"]).ok().to_owned();
    let run = script.split("liza__subcmd__run)").last().unwrap();
    let option = run.split("--cli)").nth(1).unwrap().split(";;").next().unwrap();
    assert!(option.contains("claude codex gemini") && !option.contains("compgen -f"), "{option}");
    // Programs of the settings are as good.
    project.liza(&["run", "--cli", "own", "--json"]).refused(1, "no_project");
}

/// Covers: CM-03
#[test]
fn bash_completes_tasks_after_the_verbs_that_people_type() {
    let project = TestProject::new();
    for id in ["discount-codes", "price-list"] {
        project.add_task(id);
    }
    let script = project.home().join("liza.bash");
    std::fs::write(&script, project.liza(&["completions", "bash"]).ok()).unwrap();
    let completed = |words: &str, at: u32| {
        let line = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD={at}; _liza_tasks '{}' x y; echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            env!("CARGO_BIN_EXE_liza")
        );
        project.run(project.command("bash").args(["-c", &line])).ok().trim().to_owned()
    };
    assert_eq!(completed("liza show dis", 2), "discount-codes");
    assert_eq!(completed("liza answer ''", 2), "discount-codes price-list");
    assert_eq!(completed("liza show x", 2), "");
    assert_eq!(completed("liza note text --for pri", 4), "price-list");
    project.liza(&["register", "coder-7"]).ok();
    assert_eq!(completed("liza tail co", 2), "coder-7");
}
