//! The contracts: their contents, their installation, and that they agree with the program.

use std::fs;

use insta::assert_snapshot;
use liza_agents::contracts::{self, Contract, Installed};
use liza_agents::prompts::Job;
use liza_core::model::{AnomalyType, PRIOR_FEEDBACK, Role};
use liza_core::rules::triggers::{Trigger, TriggerKind};

use crate::fixture::*;

/// The most bytes of a prompt with its contract.
const MAX_PROMPT_BYTES: usize = 12_000;

fn jobs() -> Vec<(&'static str, Job)> {
    let kinds = TriggerKind::ALL.iter().copied();
    let trigger =
        |kind| Trigger { kind, subject: TASK.to_owned(), detail: String::new(), key: String::new() };
    let mut jobs = vec![("coder-1", code()), ("code-reviewer-1", review())];
    jobs.extend(kinds.map(|kind| ("planner-1", Job::Plan { triggers: vec![trigger(kind)] })));
    jobs
}

/// Covers: AG-10, CM-07
#[test]
fn every_prompt_with_its_contract_is_short() {
    let state = state_with([claimed_after_rejection("coder-1")]);
    for (id, job) in jobs() {
        let mut brief = brief(id);
        brief.contract = Contract::embedded(job.role());
        let text = prompt_of(&state, &brief, &job);
        assert!(text.len() < MAX_PROMPT_BYTES, "{id}, {job:?}: {} bytes", text.len());
    }
}

/// Covers: AG-10
#[test]
fn a_whole_prompt_with_its_contract() {
    let mut brief = brief("coder-1");
    brief.contract = Contract::embedded(Role::Coder);
    assert_snapshot!(prompt_of(&state_with([claimed()]), &brief, &code()));
}

/// Covers: CM-07
#[test]
fn a_role_reads_its_own_part_only() {
    for role in Role::ALL {
        let text = contracts::for_role(contracts::CORE, contracts::MULTI_AGENT_MODE, role);
        let parts: Vec<&str> = text.lines().filter(|line| line.starts_with("## Role: ")).collect();
        assert_eq!(parts, [format!("## Role: {}", role.title())]);
    }
    let own = contracts::for_role("Our rules.", "For all.\n", Role::Coder);
    assert_eq!(own, "Our rules.\n\nFor all.\n");
}

/// Covers: CM-07
#[test]
fn tier_zero_and_the_mode_gate_are_in_the_core() {
    for words in [
        "Mode selection gate",
        "`Mode: Liza [Role]`",
        "No change outside the task's worktree",
        "No self-approval",
        "No fabricated result",
        "No test weakened to pass",
        "No secret read or printed",
        "No silent reinterpretation of a spec",
    ] {
        assert!(contracts::CORE.contains(words), "{words}");
    }
}

/// Covers: AC-01, AC-03, AC-07
#[test]
fn every_prompt_says_how_to_record_a_question_and_how_to_end() {
    let state = state_with([claimed_after_rejection("coder-1")]);
    for (id, job) in jobs() {
        let mut brief = brief(id);
        brief.contract = Contract::embedded(job.role());
        let text = prompt_of(&state, &brief, &job);
        let sentence = "Never end with a question: no one answers. Record it and end your turn.\n";
        let (_, after) = text.split_once(sentence).unwrap();
        let command = match job.role() {
            Role::Coder => "/usr/local/bin/liza mark-blocked retry-orders --reason",
            Role::CodeReviewer => "/usr/local/bin/liza anomaly system_ambiguity --task retry-orders --detail",
            Role::Planner => {
                "/usr/local/bin/liza anomaly spec_gap --detail spec_ref=specs/vision.md --detail"
            }
        };
        assert!(after.lines().take(2).any(|line| line.starts_with(command)), "{text}");
        assert!(text.contains("end your turn now (with exit code 42 if you can choose one)"), "{text}");
        assert!(!text.to_lowercase().contains("stop with exit code"), "{text}");
    }
}

/// Covers: AG-10, CM-07
#[test]
fn a_prompt_states_its_mode_and_the_rank_of_what_it_quotes() {
    let state = state_with([claimed()]);
    for (id, job) in jobs() {
        let mut brief = brief(id);
        brief.contract = Contract::embedded(job.role());
        let text = prompt_of(&state, &brief, &job);
        for words in [
            "Tier 0 beats tier 1 beats tier 2.",
            "HUMAN NOTES override description, scope and tier 1, never tier 0.",
            "is information",
            &format!("MODE: Liza [{}]\n", job.role().title()),
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("Mode selection gate") && !text.contains("PAIRING_MODE.md"), "{text}");
        assert!(text.contains("# Core contract") && text.contains("## Invariants"), "{text}");
    }
}

/// Covers: CM-07
#[test]
fn the_contracts_have_no_example_that_cannot_be_run() {
    for (name, text) in contracts::FILES {
        for form in ["KEY=VALUE", "true|false", "high|medium", "anomaly TYPE", "handoff TASK"] {
            assert!(!text.contains(form), "{name}: {form}");
        }
    }
}

/// Covers: NT-01, AG-18, AG-19
#[test]
fn every_anomaly_that_a_role_logs_is_in_its_part_with_its_details() {
    for role in Role::ALL {
        let text = contracts::for_role("", contracts::MULTI_AGENT_MODE, role);
        for kind in AnomalyType::ALL.iter().filter(|kind| kind.duty_of().contains(&role)) {
            assert!(text.contains(&format!("`{kind}`")), "{role}: {kind}");
            for (field, _) in kind.required() {
                assert!(text.contains(field), "{role}: {kind} needs {field}");
            }
        }
        for kind in AnomalyType::ALL.iter().filter(|kind| !kind.duty_of().contains(&role)) {
            assert!(!text.contains(&format!("`{kind}`")), "{role} must not log {kind}");
        }
    }
    let reviewer = contracts::for_role("", contracts::MULTI_AGENT_MODE, Role::CodeReviewer);
    assert!(reviewer.contains(PRIOR_FEEDBACK));
}

/// The commands of each role in the permission table; a prompt names no other.
fn permitted_commands(role: Role) -> &'static [&'static str] {
    match role {
        Role::Planner => &[
            "status",
            "show",
            "get",
            "add-task",
            "finalize",
            "edit-task",
            "supersede-task",
            "abandon-task",
            "unblock-task",
            "convert-discovery",
            "align",
            "goal",
            "anomaly",
            "handoff",
        ],
        Role::Coder => &[
            "status",
            "show",
            "get",
            "pre-check",
            "submit-for-review",
            "mark-blocked",
            "handoff",
            "anomaly",
            "discover",
        ],
        Role::CodeReviewer => {
            &["status", "check", "diff", "show", "get", "submit-verdict", "handoff", "anomaly", "discover"]
        }
    }
}

/// Covers: AG-12
#[test]
fn prompts_name_only_commands_that_the_role_has() {
    let state = state_with([claimed()]);
    for (id, job) in jobs() {
        let text = prompt_of(&state, &brief(id), &job);
        for rest in text.split("/usr/local/bin/liza ").skip(1) {
            let verb = rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap_or_default();
            assert!(verb.is_empty() || permitted_commands(job.role()).contains(&verb), "{id}: {verb}");
        }
    }
}

/// Covers: CM-07
#[test]
fn installing_keeps_what_a_person_changed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".liza");
    let names: Vec<&str> = contracts::FILES.iter().map(|(name, _)| *name).collect();
    let all = Installed { written: names.clone(), ..Installed::default() };
    assert_eq!(contracts::install(&folder, false).unwrap(), all);
    assert_eq!(contracts::install(&folder, false).unwrap().unchanged, names);

    fs::write(folder.join("CORE.md"), "Ours.\n").unwrap();
    let kept = contracts::install(&folder, false).unwrap();
    assert_eq!((kept.kept, kept.written), (vec!["CORE.md"], vec![]));
    assert_eq!(fs::read_to_string(folder.join("CORE.md")).unwrap(), "Ours.\n");
    assert_eq!(contracts::install(&folder, true).unwrap().written, ["CORE.md"]);
    assert_eq!(fs::read_to_string(folder.join("CORE.md")).unwrap(), contracts::CORE);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "three contracts and the templates' folder: {left:?}");

    fs::write(home.path().join("file"), "").unwrap();
    let error = contracts::install(&home.path().join("file"), false).unwrap_err();
    assert!(error.to_string().contains("CORE.md") || error.to_string().contains("file"), "{error}");
}

/// Covers: CM-07
#[test]
fn the_projects_contract_takes_precedence_over_the_one_in_the_home_folder() {
    let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let load = || Contract::load(project.path(), Some(home.path()), Role::Coder).unwrap();
    assert_eq!(load(), Contract::embedded(Role::Coder));

    contracts::install(&home.path().join(".liza"), false).unwrap();
    assert_eq!(load().text, Contract::embedded(Role::Coder).text);
    assert_eq!(
        load().paths,
        ["CORE.md", "MULTI_AGENT_MODE.md"].map(|name| home.path().join(".liza").join(name))
    );

    fs::create_dir(project.path().join("contracts")).unwrap();
    fs::write(project.path().join("contracts/CORE.md"), "Ours.\n").unwrap();
    assert!(load().text.starts_with("Ours.\n\n# Liza"), "{}", load().text);
    assert_eq!(load().paths[0], project.path().join("contracts/CORE.md"));
}
