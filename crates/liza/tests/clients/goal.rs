//! A whole goal of three tasks: a plan with a dependency, tests first, a rejection, its fix, approvals, merges, COMPLETED.

use std::time::Duration;

use liza_core::model::{EventName, GoalStatus, Status};

use crate::fixture::{Client, Scripted, liza_of, role};
use crate::model_server::{Conversation, Move};
use crate::support::process::{Running, wait_up_to};

const PLAN: &str = r#"
if [ -z "$(LIZA get '.tasks[].id')" ]; then
  LIZA add-task --id one --desc "Write one.txt" --done "one.txt has two lines" --scope one.txt --spec specs/vision.md --draft
  LIZA add-task --id two --desc "Write two.txt" --done "two.txt has a line" --scope two.txt --spec specs/vision.md --depends one --draft
  LIZA add-task --id three --desc "Write three.txt" --done "three.txt has a line" --scope three.txt --spec specs/vision.md --draft
  LIZA finalize one two three
else
  LIZA goal complete
fi
"#;

const TEST: &str = r#"
T=$(basename "$PWD"); echo "grep -q line $T.txt" > "$T.test"; git add -A; git commit -qm "test: $T"
"#;

const CODE: &str = r#"
T=$(basename "$PWD"); echo "a line" >> "$T.txt"; git add -A; git commit -qm "add $T" &&
LIZA pre-check "$T" --intent "write the file" --validation "sh $T.test" &&
LIZA submit-for-review "$T" HEAD
"#;

const REVIEW: &str = r#"
T=${PWD##*/.review-}
if [ "$T" = one ] && [ "$(wc -l < one.txt)" -lt 2 ]; then
  LIZA submit-verdict one REJECTED "[blocker] one.txt:1 has one line instead of two"
else
  sh "$T.test" && LIZA submit-verdict "$T" APPROVED "sh $T.test: exit 0"
fi
"#;

/// The level that every session has, or it does not start.
const LEVEL: &str = if cfg!(target_os = "linux") { "isolated" } else { "unenforced" };

/// Plans, codes and reviews, whichever program asks.
pub(crate) fn work(conversation: &Conversation) -> Move {
    let steps: &[&str] = match role(conversation) {
        "Planner" => &[PLAN],
        "Coder" => &[TEST, CODE],
        "Code Reviewer" => &[REVIEW],
        other => panic!("a prompt for {other:?}"),
    };
    match steps.get(conversation.tool_results) {
        Some(step) => Move::Run(step.replace("LIZA ", &format!("{} ", liza_of(conversation)))),
        None => Move::Say("Done.".to_owned()),
    }
}

fn reach_goal(clients: &[Client], arguments: &[&str]) {
    reach_goal_with(work, clients, arguments);
}

/// Runs a team until its goal is reached, with one task rejected once on the way.
pub(crate) fn reach_goal_with(
    brain: impl Fn(&Conversation) -> Move + Send + Sync + 'static,
    clients: &[Client],
    arguments: &[&str],
) {
    reach_goal_in(&Scripted::new(brain), clients, arguments);
}

/// The same in a project that is prepared already.
pub(crate) fn reach_goal_in(scripted: &Scripted, clients: &[Client], arguments: &[&str]) {
    scripted.project.set_config("sandbox", "require");
    scripted.project.set_config("sandbox_min", LEVEL);
    let mut liza = scripted.liza(clients);
    liza.args(["run", "--plain", "--coders", "1"]).args(arguments);
    let before = names_in(scripted.project.home());
    let mut team = Running::start(&scripted.project, liza);
    let project = &scripted.project;
    // opencode needs 80 s on a quiet machine, and three times that on a busy one.
    let exit = wait_up_to(Duration::from_secs(540), || team.exit_code());
    let goal = project.snapshot().board.goal.ready().map(|goal| goal.status);
    let seen = || format!("{}\n{}\n{:?}", team.output(), outputs(scripted), scripted.model.requests());
    assert_eq!((exit, goal), (Some(0), Some(GoalStatus::Completed)), "{}", seen());
    for (task, lines) in [("one", 2), ("two", 1), ("three", 1)] {
        let record = project.record(task);
        assert_eq!(record.status, Some(Status::Merged));
        let text = project.git(&["show", &format!("integration:{task}.txt")]);
        assert_eq!(text.lines().count(), lines, "{task}: {text}");
    }
    let rejections = project.record("one");
    let rejections = rejections.events().filter(|event| event.is(EventName::Rejected)).count();
    assert_eq!(rejections, 1, "{}", seen());
    check_confinement(scripted, &before);
    let log = project.git(&["log", "--format=%an %s", "integration"]);
    assert!(log.contains("coder-1 for Test test: one"), "{log}");
    println!("{arguments:?}: {}", scripted.model.traffic());
}

/// The sessions had their level, and wrote nothing into the home folder.
fn check_confinement(scripted: &Scripted, before: &[String]) {
    let levels = levels(&outputs(scripted));
    assert!(levels.len() >= 10 && levels.iter().all(|level| level.starts_with(LEVEL)), "{levels:?}");
    let mut after = names_in(scripted.project.home());
    // The output of the team itself.
    after.retain(|name| !name.starts_with("output-"));
    assert_eq!(after, before);
}

/// The first line of each session.
fn levels(outputs: &str) -> Vec<String> {
    let levels = outputs.lines().filter_map(|line| line.strip_prefix("[liza: confinement "));
    levels.map(str::to_owned).collect()
}

fn names_in(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.display().to_string()).collect();
    names.sort();
    names
}

/// What the sessions printed.
fn outputs(scripted: &Scripted) -> String {
    let folder = scripted.project.root.join(".liza/agent-outputs");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let text = |file: std::fs::DirEntry| {
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        let start: String = text.chars().take(3_000).collect();
        format!("== {}\n{start}\n", file.file_name().display())
    };
    files.map(text).collect()
}

/// Covers: IS-03, SE-11, RO-07
#[test]
fn needs_goose_a_goal_is_reached() {
    reach_goal(&[Client::Goose], &["--cli", "goose"]);
}

/// Covers: IS-03, SE-11, RO-07
#[test]
fn needs_codex_a_goal_is_reached() {
    reach_goal(&[Client::Codex], &["--cli", "codex"]);
}

/// Covers: IS-03, SE-11, RO-07
#[test]
fn needs_claude_a_goal_is_reached() {
    reach_goal(&[Client::Claude], &["--cli", "claude"]);
}

/// Covers: IS-03, SE-11
#[test]
fn needs_gemini_a_goal_is_reached() {
    reach_goal(&[Client::Gemini], &["--cli", "gemini"]);
}

/// Covers: IS-03, SE-11
#[test]
fn needs_opencode_a_goal_is_reached() {
    reach_goal(&[Client::Opencode], &["--cli", "opencode"]);
}

/// Covers: AX-34, SE-11
#[test]
fn needs_copilot_a_goal_is_reached() {
    reach_goal(&[Client::Copilot], &["--cli", "copilot"]);
}

/// Covers: AX-34, SE-11
#[test]
fn needs_qwen_a_goal_is_reached() {
    reach_goal(&[Client::Qwen], &["--cli", "qwen"]);
}

/// Covers: IS-03, SE-11
#[test]
fn needs_vibe_a_goal_is_reached() {
    reach_goal(&[Client::Vibe], &["--cli", "vibe"]);
}

/// Covers: IS-03, SE-11
#[test]
fn needs_claude_needs_codex_needs_goose_a_goal_is_reached_by_a_mixed_team() {
    reach_goal(
        &[Client::Claude, Client::Codex, Client::Goose],
        &["--planner-cli", "claude", "--coder-cli", "codex", "--reviewer-cli", "goose"],
    );
}

/// Reaches the goal with a network that leads to the model only. Without proxy, the programs would not find it.
fn reach_goal_by_proxy(client: Client) {
    let scripted = Scripted::new(work);
    let only = "{network: model-only}";
    let host = scripted.model.url().replace("http://", "");
    let roles = format!("{{planner: {only}, coder: {only}, code_reviewer: {only}}}");
    scripted.project.set_config("roles", &roles);
    scripted.project.set_config("model_hosts", &format!("[\"{host}\"]"));
    reach_goal_in(&scripted, &[client], &["--cli", client.name()]);
    let levels = levels(&outputs(&scripted));
    assert!(levels.iter().all(|level| level.contains(", network model-only; shared")), "{levels:?}");
}

/// Covers: IS-06, RO-07
#[test]
fn needs_goose_a_goal_is_reached_by_proxy() {
    reach_goal_by_proxy(Client::Goose);
}

/// Covers: IS-06, RO-07
#[test]
fn needs_codex_a_goal_is_reached_by_proxy() {
    reach_goal_by_proxy(Client::Codex);
}

/// Covers: IS-06, RO-07
#[test]
fn needs_claude_a_goal_is_reached_by_proxy() {
    reach_goal_by_proxy(Client::Claude);
}
