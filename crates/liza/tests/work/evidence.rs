//! What counts as evidence: a statement that says the same as the blackboard, about this work; never the blackboard alone.

use std::fs;

use liza_git::RECEIPTS;
use liza_ids::{Digest, Sha};
use liza_receipts::{CommandRun, Maker, Origin, Predicate, Statement, Validation};
use serde_json::Value;

use crate::fixture::*;
use crate::remote::shared;
use crate::support::TestProject;

/// A team whose work must pass this command.
fn validated_by(command: &str) -> TestProject {
    validated_in(team(), command)
}

fn validated_in(project: TestProject, command: &str) -> TestProject {
    project.liza(&["config", "validation", &serde_json::to_string(&[command]).unwrap()]).ok();
    project
}

fn receipt(project: &TestProject, task: &str) -> Digest {
    project.record(task).validated.unwrap().receipt.unwrap().parse().unwrap()
}

fn validation(project: &TestProject, receipt: &Digest) -> (Statement, Validation) {
    let texts = repository(project).read_receipts(std::slice::from_ref(receipt)).unwrap();
    let statement = Statement::decode(&texts[receipt]).unwrap();
    let Predicate::Validation(validation) = statement.predicate.clone() else { panic!("{statement:?}") };
    (statement, validation)
}

/// Adds a validation that differs, as somebody who can write the receipts does.
fn forge(project: &TestProject, statement: &Statement, validation: Validation) -> Digest {
    let commit = validation.commit.clone();
    let forged = Statement { predicate: Predicate::Validation(validation), ..statement.clone() };
    repository(project).add_receipt_about(&forged.encode().unwrap(), &commit).unwrap()
}

/// Writes a part of the file over.
fn edit(project: &TestProject, from: &str, to: &str) {
    let text = project.state();
    assert!(text.contains(from), "{from}: {text}");
    project.write(".liza/state.yaml", &text.replace(from, to));
}

/// The blackboard alone says that the commands passed: nobody has stated it.
///
/// Covers: JU-03, JU-04
#[test]
fn a_green_result_without_its_statement_leaves_no_command_out_of_the_merge() {
    let project = validated_by("test ! -f broken");
    submitted_with(&project, "one", "broken", "x\n");
    project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(1, "validation_failed");
    project.liza(&["claim-task", "one", "coder-1"]).ok();
    project.liza(&["retry-validation", "one"]).ok();
    let head = project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]);
    submit(&project, "one", "coder-1", &head).ok();
    project.liza(&["submit-verdict", "one", "APPROVED"]).ok();
    // Of other work there is an honest result, with the same protected files.
    submitted_with(&project, "two", "fine", "x\n");
    project.liza(&["claim-review", "two", "code-reviewer-1"]).ok();
    let honest = project.record("two").validated.unwrap();
    let tree = tip(&project, &format!("{head}^{{tree}}"));
    for receipt in [None, honest.receipt.clone()] {
        let claimed = serde_json::json!({
            "commit": head, "result": "green", "commands": honest.commands, "gate": honest.gate, "tree": tree,
            "time": honest.time, "receipt": receipt,
        });
        let known = project.record("one").validated.map(|_| ());
        let line = format!("    validated: {claimed}\n");
        let text = project.state();
        let kept: String =
            text.split_inclusive('\n').filter(|kept| !kept.starts_with("    validated: {")).collect();
        let at = kept.find("- id: one\n").unwrap() + "- id: one\n".len();
        project.write(".liza/state.yaml", &format!("{}{line}{}", &kept[..at], &kept[at..]));
        assert!(known.is_some() || receipt.is_none());
        assert_eq!(project.record("one").validated.unwrap().receipt, receipt);
        merge(&project, "one").refused(3, "integration_test");
        edit(&project, "status: INTEGRATION_FAILED", "status: APPROVED");
    }
}

/// Covers: JU-04
#[test]
fn a_receipt_of_another_tree_does_not_count() {
    let project = validated_by("test -f one.txt");
    submitted(&project, "one");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let own = receipt(&project, "one");
    let (statement, stated) = validation(&project, &own);
    let other = tip(&project, "integration^{tree}");
    let forged = forge(&project, &statement, Validation { tree: other.parse().unwrap(), ..stated.clone() });
    edit(&project, own.as_str(), forged.as_str());
    verdict(&project, "one", &["APPROVED"]).refused(1, "no_receipt");
    // Nor if the blackboard names the same tree: it is not that of the work.
    edit(&project, &format!("tree: {}", stated.tree), &format!("tree: {other}"));
    assert_eq!(project.record("one").validated.unwrap().tree.unwrap().as_str(), other);
    verdict(&project, "one", &["APPROVED"]).refused(1, "no_receipt");
    edit(&project, &format!("tree: {other}"), &format!("tree: {}", stated.tree));
    edit(&project, forged.as_str(), own.as_str());
    verdict(&project, "one", &["APPROVED"]).ok();
}

/// Covers: JU-04
#[test]
fn a_receipt_of_another_task_commit_project_or_of_other_commands_is_a_replay() {
    let project = validated_by("test -f one.txt");
    submitted(&project, "one");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let own = receipt(&project, "one");
    let (statement, stated) = validation(&project, &own);
    let other = tip(&project, "integration").parse().unwrap();
    let failed = CommandRun { exit: Some(1), ..stated.commands[0].clone() };
    let easier = CommandRun::new("true", Origin::Project, Some(0), 0, Digest::of(b""));
    let replays = [
        forge(
            &project,
            &Statement { task: Some("two".parse().unwrap()), ..statement.clone() },
            stated.clone(),
        ),
        forge(&project, &Statement { project: "f".repeat(32), ..statement.clone() }, stated.clone()),
        forge(&project, &statement, Validation { commit: other, ..stated.clone() }),
        forge(&project, &statement, Validation { commands: vec![failed], ..stated.clone() }),
        forge(&project, &statement, Validation { commands: vec![easier], ..stated.clone() }),
        forge(&project, &statement, Validation { commands: Vec::new(), ..stated.clone() }),
        forge(&project, &statement, Validation { protected: "0".repeat(64), ..stated }),
    ];
    let mut named = own.clone();
    for (number, replay) in replays.into_iter().enumerate() {
        edit(&project, named.as_str(), replay.as_str());
        let run = verdict(&project, "one", &["APPROVED"]);
        assert_eq!(run.refused(1, "no_receipt")["code"], "no_receipt", "{number}");
        named = replay;
    }
    edit(&project, named.as_str(), own.as_str());
    verdict(&project, "one", &["APPROVED"]).ok();
}

/// The hint of `no_receipt` is true: the next claim runs the commands.
///
/// Covers: JU-04
#[test]
fn the_commands_run_again_if_their_receipt_is_lost_edited_or_of_another_repository() {
    type Spoil = (&'static str, fn(&TestProject, &Digest));
    let spoils: [Spoil; 3] = [
        ("lost", |project, _| drop(project.git(&["update-ref", "-d", RECEIPTS]))),
        ("edited", |project, own| {
            let (_, stated) = validation(project, own);
            let text = format!("{{\"easier\":\"{}\"}}", stated.commit);
            edit_receipt(project, &project.root, own, Some(&text));
        }),
        ("of another repository", |project, own| {
            let (statement, stated) = validation(project, own);
            let foreign = forge(project, &Statement { project: "f".repeat(32), ..statement }, stated);
            edit(project, own.as_str(), foreign.as_str());
        }),
    ];
    let project = validated_by("test -f one.txt");
    submitted(&project, "one");
    let review = || project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]);
    let runs = || fs::read_dir(project.root.join(".liza/integration-tests")).unwrap().count();
    review().ok();
    for (how, spoil) in spoils {
        spoil(&project, &receipt(&project, "one"));
        verdict(&project, "one", &["APPROVED"]).refused(1, "no_receipt");
        project.liza(&["release-claim", "one", "--role", "reviewer", "--force"]).ok();
        let before = runs();
        review().ok();
        assert_eq!(runs(), before + 1, "{how}: the command ran again");
        validation(&project, &receipt(&project, "one"));
        project.liza(&["release-claim", "one", "--role", "reviewer", "--force"]).ok();
        review().ok();
        assert_eq!(runs(), before + 1, "{how}: what is stated does not run again");
        check_consistent(&project);
    }
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").ok();
    let newest = project.liza(&["verify", "--min", "off", "--json"]).result()["commits"][0].clone();
    assert_eq!(newest["class"], Value::from("CONSISTENT"), "{newest}");
}

/// Another machine has stated that the same commands passed on the same commit, and its claim was lost.
///
/// Covers: JU-03, JU-04
#[test]
fn two_results_of_one_commit_wait_for_the_human() {
    let project = validated_by("test ! -f broken");
    submitted_with(&project, "two", "fine", "x\n");
    project.liza(&["claim-review", "two", "code-reviewer-1"]).ok();
    let (statement, stated) = validation(&project, &receipt(&project, "two"));
    verdict(&project, "two", &["APPROVED"]).ok();
    let commit: Sha = submitted_with(&project, "one", "broken", "x\n").parse().unwrap();
    let tree = tip(&project, &format!("{commit}^{{tree}}")).parse().unwrap();
    let statement = Statement { task: Some("one".parse().unwrap()), ..statement };
    let passed = forge(&project, &statement, Validation { commit, tree, ..stated });
    let review = || project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]);
    let error = review().refused(1, "validation_held");
    let words = format!("passed on the same commit before (receipt {}", &passed.as_str()[..12]);
    assert!(error["message"].as_str().unwrap().contains(&words), "{error}");
    assert_eq!((project.status("one"), project.record("one").reviewing_by), ("READY_FOR_REVIEW", None));
    assert!(project.liza(&["status"]).ok().contains("VALIDATION HELD"));
    project.liza(&["retry-validation", "one"]).ok();
    review().refused(1, "validation_held");
    // Without the other statement it is the work's fault.
    edit_receipt(&project, &project.root, &passed, None);
    project.liza(&["retry-validation", "one"]).ok();
    review().refused(1, "validation_failed");
    check_consistent(&project);
}

/// A statement of a machine that the project's command failed on this commit of a task.
fn failed_on(project: &TestProject, machine: &str, (task, commit): (&str, &str), of: &Digest) -> Digest {
    let (statement, stated) = validation(project, of);
    let commit: Sha = commit.parse().unwrap();
    let tree = tip(project, &format!("{commit}^{{tree}}")).parse().unwrap();
    let commands = vec![CommandRun { exit: Some(1), ..stated.commands[0].clone() }];
    let made_by = Maker { machine: machine.to_owned(), ..stated.made_by.clone() };
    let statement = Statement { task: Some(task.parse().unwrap()), ..statement };
    forge(project, &statement, Validation { commit, tree, commands, made_by, ..stated })
}

/// The machine whose result comes last does not decide alone: another one has stated that the command fails.
///
/// Covers: JU-03, JU-04
#[test]
fn work_that_passes_here_and_failed_on_another_machine_waits_for_the_human() {
    let project = validated_in(shared(), "test -d specs");
    let review = |task: &str| project.liza(&["claim-review", task, "code-reviewer-1", "--json"]);
    submitted(&project, "zero");
    review("zero").ok();
    let zero = receipt(&project, "zero");
    let own = validation(&project, &zero).1.made_by.machine;
    verdict(&project, "zero", &["APPROVED"]).ok();
    let one = submitted(&project, "one");
    let failed = failed_on(&project, "other", ("one", &one), &zero);
    let error = review("one").refused(1, "validation_held");
    let words = format!(
        "`test -d specs` passed here, and failed on another machine (receipt {}",
        &failed.as_str()[..12]
    );
    assert!(error["message"].as_str().unwrap().contains(&words), "{error}");
    assert_eq!((project.status("one"), project.record("one").reviewing_by), ("READY_FOR_REVIEW", None));
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("VALIDATION HELD") && status.contains("liza retry-validation one"), "{status}");
    // The human has seen it: what passes now counts, also at the merge.
    project.liza(&["retry-validation", "one"]).ok();
    review("one").ok();
    verdict(&project, "one", &["APPROVED"]).ok();
    let runs = || fs::read_dir(project.root.join(".liza/integration-tests")).unwrap().count();
    let before = runs();
    merge(&project, "one").ok();
    assert_eq!(runs(), before, "the same files have passed");
    // An earlier failure on this machine, or of another commit, is none of another machine's results.
    let two = submitted(&project, "two");
    failed_on(&project, &own, ("two", &two), &zero);
    failed_on(&project, "other", ("two", &one), &zero);
    review("two").ok();
    // One that is stated after the review has begun: its merge runs the command.
    failed_on(&project, "other", ("two", &two), &zero);
    verdict(&project, "two", &["APPROVED"]).ok();
    let before = runs();
    merge(&project, "two").ok();
    assert_eq!(runs(), before + 1, "machines that disagree are no evidence");
    check_consistent(&project);
}

/// A machine without the program says nothing about the work, so it contradicts no other machine.
///
/// Covers: JU-03, JU-04
#[test]
fn a_run_that_blames_its_machine_makes_no_statement() {
    let project = validated_by("no-such-program-here --version");
    submitted(&project, "one");
    project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(1, "validation_held");
    assert_eq!(project.record("one").validated.unwrap().receipt, None);
    assert_eq!(repository(&project).receipts_tip(), None);
}

/// A receipt reaches the remote with the result, so another machine need not run the commands again.
///
/// Covers: JU-04
#[test]
fn a_validation_is_sent_before_its_result_is_recorded() {
    let project = validated_in(shared(), "test -f one.txt");
    submitted(&project, "one");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let receipt = receipt(&project, "one");
    let path = format!("{RECEIPTS}:{}/{receipt}.json", receipt.parts().0);
    assert!(crate::remote::on_remote(&project, &["show", &path]).contains("test -f one.txt"));
}

/// Covers: JU-04
#[test]
fn a_statement_names_the_settings_by_which_the_copy_was_set_up() {
    let project = validated_by("test -f made");
    submitted(&project, "one");
    project.liza(&["config", "setup", "touch made"]).ok();
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let (_, stated) = validation(&project, &receipt(&project, "one"));
    let settings = serde_json::json!({"setup": "touch made", "copy": []}).to_string();
    assert_eq!(stated.setup, Some(Digest::of(settings.as_bytes())));
}

/// A merge statement has room for 64 others: the approval is never the one that is left out.
///
/// Covers: JU-05
#[test]
fn many_runs_of_the_commands_push_no_approval_out_of_the_statement_of_the_merge() {
    let project = validated_by("test -f one.txt");
    submitted(&project, "one");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    verdict(&project, "one", &["APPROVED"]).ok();
    let own = receipt(&project, "one");
    let (statement, stated) = validation(&project, &own);
    let repo = repository(&project);
    let about = repo.receipts_about(&stated.commit).unwrap();
    let review = about.into_iter().find(|digest| *digest != own).unwrap();
    let again = |seconds: u64| {
        let commands = vec![CommandRun { seconds, ..stated.commands[0].clone() }];
        let validation = Validation { commands, ..stated.clone() };
        Statement { predicate: Predicate::Validation(validation), ..statement.clone() }.encode().unwrap()
    };
    // Those that come before the approval in the order of their names.
    let earlier = (1_000..).map(again).filter(|text| Digest::of(text) < review).take(64);
    earlier.for_each(|text| drop(repo.add_receipt_about(&text, &stated.commit).unwrap()));
    merge(&project, "one").ok();
    let newest = project.liza(&["verify", "--min", "off", "--json"]).result()["commits"][0].clone();
    assert_eq!(newest["class"], Value::from("CONSISTENT"), "{newest}");
}

/// Covers: JU-04
#[test]
fn more_commands_than_a_statement_holds_are_refused_and_nothing_is_lost() {
    let project = team();
    let many = |number: usize| {
        let lines: Vec<String> = (0..number).map(|n| format!("true {n} {}", "x".repeat(300))).collect();
        project.liza(&["config", "validation", &serde_json::to_string(&lines).unwrap()]).ok();
    };
    many(20);
    submitted(&project, "one");
    let own: Vec<String> = (0..11).map(|n| format!("--validate=true {n}")).collect();
    let words: Vec<&str> = ["edit-task", "one"].into_iter().chain(own.iter().map(String::as_str)).collect();
    project.liza(&words).ok();
    let error =
        project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(1, "too_many_commands");
    assert!(error["message"].as_str().unwrap().contains("at most 30"), "{error}");
    assert_eq!((project.status("one"), project.record("one").reviewing_by), ("READY_FOR_REVIEW", None));
    // With more for every task, none could be reviewed.
    let lines = serde_json::to_string(&(0..31).map(|n| format!("true {n}")).collect::<Vec<_>>()).unwrap();
    let error = project.liza(&["config", "validation", &lines, "--json"]).refused(1, "too_many_commands");
    assert!(error["message"].as_str().unwrap().starts_with("31 commands are more than the 30"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("one script"), "{error}");
    many(11);
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let text = repository(&project).read_receipts(&[receipt(&project, "one")]).unwrap();
    assert_eq!(validation(&project, &receipt(&project, "one")).1.commands.len(), 22, "{}", text.len());
    verdict(&project, "one", &["APPROVED"]).ok();
    merge(&project, "one").ok();
    assert!(fs::read_dir(project.root.join(".liza/integration-tests")).unwrap().count() >= 22);
}
