//! An agent that runs literally what its prompt says gets through: every example command is one that can be run.

use std::path::Path;

use liza_agents::prompts::Job;
use liza_core::rules::triggers::{Trigger, TriggerKind};

use crate::cast::{Player, ended};
use crate::support::{Run, TestProject};

const PROGRAM: &str = env!("CARGO_BIN_EXE_liza");

/// The commands of a prompt in their order, each with its here-document.
fn commands(prompt: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = prompt.lines();
    while let Some(line) = lines.next() {
        if ![PROGRAM, "git ", "cd "].iter().any(|start| line.starts_with(start)) {
            continue;
        }
        let mut command = line.to_owned();
        if let Some((_, marker)) = line.split_once("<<'") {
            let marker = marker.trim_end_matches('\'');
            for line in lines.by_ref() {
                command.push('\n');
                command.push_str(line);
                if line == marker {
                    break;
                }
            }
        }
        found.push(command);
    }
    found
}

/// Runs a command as it is written, in the session of this agent.
#[track_caller]
fn run(project: &TestProject, player: &Player<'_>, folder: &Path, command: &str) -> Run {
    let mut shell = project.command("sh");
    shell.args(["-c", command]).current_dir(folder).env("LIZA_AGENT_ID", &player.id);
    let run = project.run(shell.env("LIZA_AGENT_GENERATION", player.generation.to_string()));
    assert!(!run.stderr.contains("Usage:"), "{command}\n{}", run.stderr);
    run
}

/// Runs the commands that contain one of these words; each must succeed.
#[track_caller]
fn succeed(project: &TestProject, player: &Player<'_>, folder: &Path, prompt: &str, wanted: &[&str]) {
    for word in wanted {
        let all = commands(prompt);
        let command = all.iter().find(|command| command.contains(word));
        let command = command.unwrap_or_else(|| panic!("no command with {word}: {all:#?}"));
        run(project, player, folder, &filled(command)).ok();
    }
}

/// The command with the brackets of a verdict filled in.
fn filled(command: &str) -> String {
    [
        ("[count]", "1"),
        ("file:line — Issue description", "a.rs:1 — wrong"),
        ("[impact]", "it fails"),
        ("[fix]", "fix it"),
        ("[1-2 sentence assessment]", "Not yet."),
        ("[issues now fixed]", "none"),
        ("[issues not addressed]", "none"),
        ("[issues partially addressed]", "none"),
        ("[command and its result]", "sh tests/work.sh: exit 0"),
        ("[criterion]", "It is done"),
    ]
    .iter()
    .fold(command.to_owned(), |text, (bracket, words)| text.replace(bracket, words))
}

/// Every mention of the program with a command is at the start of a line, so that `commands` finds it.
#[track_caller]
fn check_form(prompt: &str) {
    for line in prompt.lines() {
        let mention = line.rfind(&format!("{PROGRAM} ")).unwrap_or(0);
        assert!(mention == 0 || line.starts_with("LIZA: "), "a command inside a line: {line}");
    }
    for command in commands(prompt) {
        let first = command.lines().next().unwrap();
        let words: Vec<&str> = first.split(' ').skip(1).collect();
        let is_placeholder = |word: &&&str| {
            let letters = word.chars().filter(|c| c.is_ascii_alphabetic()).count();
            letters > 2 && word.chars().all(|c| !c.is_ascii_lowercase()) && !word.starts_with("<<")
        };
        let placeholder = words
            .iter()
            .find(|word| is_placeholder(word) && !["HEAD", "APPROVED", "REJECTED"].contains(word));
        assert_eq!(placeholder, None, "{first}");
        assert!(!first.contains('|') && !first.contains("KEY=VALUE") && !first.contains("1-5"), "{first}");
    }
}

fn claimed(project: &TestProject) -> (Player<'_>, String) {
    project.add_task("core");
    let coder = Player::new(project, "coder-1");
    coder.claim("core");
    let prompt = coder.code_prompt("core");
    check_form(&prompt);
    (coder, prompt)
}

fn commit_work(project: &TestProject, tree: &Path) {
    std::fs::write(tree.join("work.sh"), "true\n").unwrap();
    project.git_at(tree, &["add", "."]);
    project.git_at(tree, &["commit", "-qm", "work"]);
}

/// Covers: AG-10, AG-18
#[test]
fn a_literal_coder_gets_through() {
    let project = TestProject::new();
    let (coder, prompt) = claimed(&project);
    let tree = project.tree("core");
    let first = [" status", " show ", "cd ", " pre-check ", " discover ", " anomaly "];
    succeed(&project, &coder, &tree, &prompt, &first);
    // The words of the start-up check are those of the command.
    let shown = run(&project, &coder, &tree, &format!("{PROGRAM} show core")).stdout;
    assert!(shown.lines().next().unwrap().contains("CLAIMED"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("Coder ") && line.contains("coder-1")), "{shown}");
    commit_work(&project, &tree);
    succeed(&project, &coder, &tree, &prompt, &["status --porcelain", " submit-for-review "]);
    assert_eq!(project.status("core"), "READY_FOR_REVIEW");
}

/// Covers: AC-01, AG-18
#[test]
fn a_literal_coder_with_a_question_or_a_full_context_gets_through() {
    let project = TestProject::new();
    let (coder, prompt) = claimed(&project);
    succeed(&project, &coder, &project.tree("core"), &prompt, &[" handoff "]);
    let project = TestProject::new();
    let (coder, prompt) = claimed(&project);
    succeed(&project, &coder, &project.tree("core"), &prompt, &[" mark-blocked "]);
    assert_eq!(project.status("core"), "BLOCKED");
}

fn reviewing(project: &TestProject) -> (Player<'_>, String) {
    let (coder, prompt) = claimed(project);
    commit_work(project, &project.tree("core"));
    succeed(project, &coder, &project.tree("core"), &prompt, &[" submit-for-review "]);
    let reviewer = Player::new(project, "code-reviewer-1");
    project.liza_as(&reviewer.id, &["claim-review", "core", &reviewer.id]).ok();
    let job = Job::Review {
        task: "core".parse().unwrap(),
        worktree: project.tree("core"),
        instructions: Vec::new(),
    };
    let prompt = reviewer.prompt(&job);
    check_form(&prompt);
    (reviewer, prompt)
}

/// Covers: AG-19, AC-16
#[test]
fn a_literal_reviewer_gets_through() {
    let project = TestProject::new();
    let (reviewer, prompt) = reviewing(&project);
    let tree = project.tree("core");
    let words = [" show ", "rev-parse", " log ", " diff ", " anomaly workaround ", " discover "];
    succeed(&project, &reviewer, &tree, &prompt, &words);
    let shown = run(&project, &reviewer, &tree, &format!("{PROGRAM} show core")).stdout;
    assert!(shown.lines().next().unwrap().contains("READY_FOR_REVIEW"), "{shown}");
    let own = |line: &str| line.starts_with("Code reviewer ") && line.contains("code-reviewer-1");
    assert!(shown.lines().any(own), "{shown}");
    // The template itself is no evidence.
    let approval = commands(&prompt).into_iter().find(|command| command.contains(" APPROVED ")).unwrap();
    assert_ne!(run(&project, &reviewer, &tree, &approval).code, 0);
    succeed(&project, &reviewer, &tree, &prompt, &[" APPROVED "]);
    assert_eq!(project.status("core"), "APPROVED");
    for word in [" REJECTED ", " system_ambiguity ", " handoff "] {
        let project = TestProject::new();
        let (reviewer, prompt) = reviewing(&project);
        succeed(&project, &reviewer, &project.tree("core"), &prompt, &[word]);
    }
}

/// Covers: RV-11
#[test]
fn a_literal_coder_fixes_a_failed_merge() {
    let project = TestProject::new();
    let coders = [("one", Player::new(&project, "coder-1")), ("two", Player::new(&project, "coder-2"))];
    let reviewer = Player::new(&project, "code-reviewer-1");
    let book = "coder:\n- do:\n  - write: {path: a.test.txt, text: \"{task}\\n\"}\n  - commit: \"{task}\"\n  - submit\n";
    for (task, coder) in &coders {
        project.add_task(task);
        coder.claim(task);
    }
    for (task, coder) in &coders {
        ended(&coder.code(task, book), 42);
        ended(&reviewer.review(task, ""), 42);
        let _ = reviewer.merge(task);
    }
    assert_eq!(project.status("two"), "INTEGRATION_FAILED");
    let coder = &coders[1].1;
    coder.claim("two");
    let prompt = coder.code_prompt("two");
    check_form(&prompt);
    let tree = project.tree("two");
    let merge = commands(&prompt).into_iter().find(|command| command.starts_with("git merge")).unwrap();
    assert_ne!(run(&project, coder, &tree, &merge).code, 0, "it conflicts, as before");
    std::fs::write(tree.join("a.test.txt"), "one\ntwo\n").unwrap();
    project.git_at(&tree, &["commit", "-qam", "both"]);
    succeed(&project, coder, &tree, &prompt, &["status --porcelain", " submit-for-review "]);
    assert_eq!(project.status("two"), "READY_FOR_REVIEW");
}

/// A blocked task, an urgent discovery, and a planner with a prompt for this trigger.
fn planning(project: &TestProject, kind: TriggerKind) -> (Player<'_>, String) {
    project.add_task("core");
    let coder = Player::new(project, "coder-1");
    coder.claim("core");
    let block = ["mark-blocked", "core", "--reason", "unclear", "--question", "Which?"];
    project.liza_in(&coder.id, coder.generation, &block).ok();
    project.liza(&["discover", "--desc", "x", "--severity", "high", "--urgency", "immediate"]).ok();
    project.add_task("other");
    if kind == TriggerKind::NewDraft {
        project.liza(&["add", "Idea"]).ok();
    }
    let planner = Player::new(project, "planner-1");
    let subject = match kind {
        TriggerKind::InitialPlanning | TriggerKind::HumanDecision | TriggerKind::SprintCompleted => {
            "sprint-1"
        }
        TriggerKind::QuestionAnswered
        | TriggerKind::HypothesisExhausted
        | TriggerKind::BlockedTasks
        | TriggerKind::IntegrationFailed => "core",
        TriggerKind::ImmediateDiscovery => "disc-1",
        TriggerKind::DeadDependency => "other",
        TriggerKind::NewDraft => "idea",
    };
    let (subject, detail, key) = (subject.to_owned(), String::new(), String::new());
    let prompt = planner.prompt(&Job::Plan { triggers: vec![Trigger { kind, subject, detail, key }] });
    check_form(&prompt);
    (planner, prompt)
}

/// What a planner may do about each trigger; the commands of each list succeed one after the other.
fn decisions(kind: TriggerKind) -> Vec<&'static [&'static str]> {
    let supersede: &[&str] = &["--id core-v2 ", " supersede-task "];
    match kind {
        TriggerKind::InitialPlanning => {
            vec![&[" status", " add-task ", " finalize ", " align ", " spec_gap "]]
        }
        TriggerKind::HumanDecision | TriggerKind::QuestionAnswered => vec![&[" align ", " handoff "]],
        TriggerKind::HypothesisExhausted | TriggerKind::IntegrationFailed => vec![supersede],
        TriggerKind::BlockedTasks => vec![&[" unblock-task "], supersede, &[" abandon-task "]],
        TriggerKind::ImmediateDiscovery => vec![&["--id fix-disc-1 ", " convert-discovery "]],
        TriggerKind::NewDraft => vec![&[" edit-task ", " finalize "]],
        TriggerKind::DeadDependency => vec![&[" edit-task "], &[" abandon-task "]],
        TriggerKind::SprintCompleted => vec![],
    }
}

/// Covers: AG-11, AG-20, AC-07
#[test]
fn a_literal_planner_gets_through_for_every_trigger() {
    for kind in TriggerKind::ALL.iter().copied() {
        for decision in decisions(kind) {
            let project = TestProject::new();
            let (planner, prompt) = planning(&project, kind);
            succeed(&project, &planner, &project.root, &prompt, decision);
        }
        // Whatever the rules say about it, no command is a mistake in its form.
        let project = TestProject::new();
        let (planner, prompt) = planning(&project, kind);
        for command in commands(&prompt) {
            run(&project, &planner, &project.root, &command);
        }
    }
}

/// Covers: AG-17, AC-02
#[test]
fn a_stop_file_that_appears_during_the_work_is_in_the_output_of_every_command() {
    let project = TestProject::new();
    let (coder, _) = claimed(&project);
    let tree = project.tree("core");
    let show = format!("{PROGRAM} show core");
    assert!(!run(&project, &coder, &tree, &show).stderr.contains("is present"));
    for (file, words) in [
        ("PAUSE", "commit and hand off"),
        ("CHECKPOINT", "commit and hand off"),
        ("ABORT", "end your turn now"),
    ] {
        project.write(&format!(".liza/{file}"), "");
        let said = run(&project, &coder, &tree, &show).stderr;
        assert!(said.contains(&format!(".liza/{file} is present")) && said.contains(words), "{said}");
    }
    let human = project.liza(&["show", "core"]);
    assert!(!human.stderr.contains("end your turn"), "{human:#?}");
}

/// Covers: AG-20
#[test]
fn a_planner_has_a_copy_of_the_integration_branch_while_it_works() {
    let project = TestProject::new();
    let playbook = "planner:\n- do:\n  - check: test -f .worktrees/.integration-test-*/specs/vision.md\n  - align: looked\n";
    project.write("../playbook.yaml", playbook);
    let mut planner = project.program();
    planner.args(["agent", "planner", "--cli", "rehearsal", "--once"]);
    let run = project.run(planner.env("LIZA_PLAYBOOK", project.home().join("playbook.yaml")));
    run.ok();
    assert!(project.state().contains("looked"), "the copy was there: {run:#?}");
    let prompts = std::fs::read_dir(project.root.join(".liza/agent-prompts")).unwrap();
    let prompt = std::fs::read_to_string(prompts.flatten().next().unwrap().path()).unwrap();
    let copy = prompt.lines().find_map(|line| line.strip_prefix("INTEGRATION COPY: ")).unwrap();
    assert!(!Path::new(copy).exists(), "{copy} is deleted afterwards");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
}
