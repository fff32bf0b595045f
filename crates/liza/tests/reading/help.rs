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
