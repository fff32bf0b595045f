//! The code reviewer: it reads the real change, and its rejections have the required format.

use crate::cast::{Player, ended};
use crate::support::TestProject;

const WORK: &str = "
coder:
  - do:
      - append: {path: src/work.rs, text: \"// attempt {iteration}\\n\"}
      - append: {path: tests/work.rs, text: \"// attempt {iteration}\\n\"}
      - commit: work
      - submit
";

fn submitted<'p>(project: &'p TestProject, playbook: &str) -> (Player<'p>, Player<'p>) {
    project.add_task("core");
    let coder = Player::new(project, "coder-1");
    coder.claim("core");
    ended(&coder.code("core", playbook), 42);
    (coder, Player::new(project, "code-reviewer-1"))
}

/// Covers: AG-15, RV-02
#[test]
fn without_a_playbook_it_reads_the_change_and_approves_what_has_tests() {
    let project = TestProject::new();
    let (_, reviewer) = submitted(&project, WORK);
    let run = reviewer.review("core", "");
    let said = ended(&run, 42);
    assert!(said.contains("lines of diff in src/work.rs, tests/work.rs"), "{said}");
    assert_eq!(project.status("core"), "APPROVED");
}

/// Covers: AG-15, AG-19
#[test]
fn without_a_playbook_it_rejects_a_change_without_tests() {
    let project = TestProject::new();
    let book = "coder:\n- do:\n  - write: {path: a.rs, text: x}\n  - commit: x\n  - submit\n";
    let (_, reviewer) = submitted(&project, book);
    ended(&reviewer.review("core", ""), 42);
    let reason = project.record("core").rejection_reason.unwrap();
    assert!(reason.starts_with("Blockers: 1\n- [blocker] a.rs:1 — no test covers DONE WHEN"), "{reason}");
}

/// Covers: AG-15, RV-03
#[test]
fn a_second_rejection_has_the_prior_feedback_status() {
    let project = TestProject::new();
    let (coder, reviewer) = submitted(&project, WORK);
    let playbook = r#"
reviewer:
  - do:
      - read-diff: {within: ["src/*", "tests/*"], tests: true}
      - reject:
          blockers: [{at: "src/work.rs:1", issue: wrong, why: it matters, suggestion: fix it}]
          concerns: [{at: "src/work.rs:2", issue: odd}]
          overall: Not yet.
          prior: {resolved: [one], still-present: [two, three]}
"#;
    ended(&reviewer.review("core", playbook), 42);
    let first = project.record("core").rejection_reason.unwrap();
    let whole = "Blockers: 1\n- [blocker] src/work.rs:1 — wrong\n  Why it matters: it matters\n  Suggestion: fix \
                 it\n\nConcerns: 1\n- [concern] src/work.rs:2 — odd\n\nOverall: Not yet.";
    assert_eq!(first.trim_end(), whole);
    coder.claim("core");
    ended(&coder.code("core", WORK), 42);
    ended(&reviewer.review("core", playbook), 42);
    let second = project.record("core").rejection_reason.unwrap();
    let prior = "\n\nPrior Feedback Status:\n- RESOLVED: one\n- STILL PRESENT: two; three\n- PARTIAL: none";
    assert_eq!(second.trim_end(), format!("{whole}{prior}"));
}

/// Covers: AG-15
#[test]
fn it_does_not_approve_an_unexpected_change() {
    let project = TestProject::new();
    let (_, reviewer) = submitted(&project, WORK);
    let beyond = "reviewer:\n- do:\n  - read-diff: {within: [\"src/*\"]}\n  - approve\n";
    let run = reviewer.review("core", beyond);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(
        run.stderr.contains("has files outside [\"src/*\"]") && run.stderr.contains("tests/work.rs"),
        "{run:#?}"
    );
    // Work that moved after it was submitted gets no verdict.
    let folder = project.tree("core");
    let prompt = reviewer.prompt(&liza_agents::prompts::Job::Review {
        task: "core".parse().unwrap(),
        worktree: folder.clone(),
        instructions: Vec::new(),
    });
    project.git_at(&folder, &["commit", "-q", "--allow-empty", "-m", "late"]);
    let run = project.run(reviewer.session(&prompt, "").current_dir(&folder));
    assert!(ended(&run, 42).contains("no verdict"), "{run:#?}");
    assert_eq!(project.status("core"), "READY_FOR_REVIEW");
}

/// Covers: AG-15, NT-02
#[test]
fn it_hands_off() {
    let project = TestProject::new();
    let (_, reviewer) = submitted(&project, WORK);
    let playbook = "reviewer:\n- do:\n  - handoff: {summary: half read, next-action: read on}\n";
    ended(&reviewer.review("core", playbook), 42);
    assert!(project.state().contains("role: code_reviewer"));
    assert_eq!(project.status("core"), "READY_FOR_REVIEW");
}
