//! A working team: tasks in every stage, brought there by the commands themselves.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use liza_core::model::{AgentId, Seconds, TaskId};
use liza_git::{Git, MergeKind, MergeMessage, PendingMerge, RECEIPTS, Repo};
use liza_ids::Digest;
use liza_receipts::{Maker, Merge, Predicate, Purpose, Statement};
use liza_team::project::now;

use crate::support::{Run, TestProject};

/// A project with two coders and two code reviewers.
pub(crate) fn team() -> TestProject {
    join(TestProject::new())
}

/// Registers the team in a project.
pub(crate) fn join(project: TestProject) -> TestProject {
    for agent in ["coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"] {
        project.register(agent);
    }
    project
}

/// The names of a task's history events.
#[track_caller]
pub(crate) fn history(project: &TestProject, task: &str) -> Vec<String> {
    project.record(task).history.unwrap_or_default().into_iter().map(|event| event.event).collect()
}

pub(crate) fn claim(project: &TestProject, task: &str, coder: &str) -> Run {
    project.liza(&["claim-task", task, coder, "--json"])
}

/// Writes and commits a file in a folder; returns the commit.
#[track_caller]
pub(crate) fn commit(project: &TestProject, folder: &Path, file: &str, text: &str) -> String {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    project.git_at(folder, &["add", "-A"]);
    project.git_at(folder, &["commit", "-qm", &format!("change {file}")]);
    project.git_at(folder, &["rev-parse", "HEAD"])
}

/// A new task that the coder has claimed.
#[track_caller]
pub(crate) fn claimed(project: &TestProject, task: &str, coder: &str) {
    project.add_task(task);
    claim(project, task, coder).ok();
}

pub(crate) fn submit(project: &TestProject, task: &str, coder: &str, commit: &str) -> Run {
    project.liza_as(coder, &["submit-for-review", task, commit, "--json"])
}

/// A new task by coder-1, with its own file committed and submitted; returns the commit.
#[track_caller]
pub(crate) fn submitted(project: &TestProject, task: &str) -> String {
    submitted_with(project, task, &format!("{task}.txt"), "done\n")
}

/// The same with that file.
#[track_caller]
pub(crate) fn submitted_with(project: &TestProject, task: &str, file: &str, text: &str) -> String {
    claimed(project, task, "coder-1");
    let head = commit(project, &project.tree(task), file, text);
    submit(project, task, "coder-1", &head).ok();
    head
}

pub(crate) fn verdict(project: &TestProject, task: &str, words: &[&str]) -> Run {
    let words = [&["submit-verdict", task][..], words, &["--json"]].concat();
    project.liza_as("code-reviewer-1", &words)
}

/// A submitted task that code-reviewer-1 has claimed for review.
#[track_caller]
pub(crate) fn under_review(project: &TestProject, task: &str) -> String {
    let head = submitted(project, task);
    project.liza(&["claim-review", task, "code-reviewer-1"]).ok();
    head
}

/// Submits a verdict on a submitted task.
#[track_caller]
pub(crate) fn judge(project: &TestProject, task: &str, words: &[&str]) {
    project.liza(&["claim-review", task, "code-reviewer-1"]).ok();
    verdict(project, task, words).ok();
    // Work of high impact needs a second approval.
    if project.status(task) == "READY_FOR_REVIEW" {
        project.liza(&["claim-review", task, "code-reviewer-2"]).ok();
        let words = [&["submit-verdict", task][..], words].concat();
        project.liza_as("code-reviewer-2", &words).ok();
    }
}

/// An approved task with its own file; returns the commit.
#[track_caller]
pub(crate) fn approved(project: &TestProject, task: &str) -> String {
    let head = submitted(project, task);
    judge(project, task, &["APPROVED"]);
    head
}

/// An approved task with that file.
#[track_caller]
pub(crate) fn approved_with(project: &TestProject, task: &str, file: &str, text: &str) -> String {
    let head = submitted_with(project, task, file, text);
    judge(project, task, &["APPROVED"]);
    head
}

/// A rejected task.
#[track_caller]
pub(crate) fn rejected(project: &TestProject, task: &str) -> String {
    let head = submitted(project, task);
    judge(project, task, &["REJECTED", "a.rs:1 is wrong"]);
    head
}

/// A task whose merge conflicted; returns its commit.
#[track_caller]
pub(crate) fn conflicted(project: &TestProject, task: &str) -> String {
    let head = approved_with(project, task, "shared.txt", &format!("of {task}\n"));
    advance(project, "shared.txt", "of another agent\n");
    project.liza(&["wt-merge", task, "--json"]).refused(3, "conflict");
    head
}

/// Merges as the code reviewer who approved last.
#[track_caller]
pub(crate) fn merge_as_team(project: &TestProject, task: &str) -> Run {
    let by = project.record(task).approved_by.unwrap().to_string();
    project.liza_as(&by, &["wt-merge", task, "--json"])
}

pub(crate) fn merge(project: &TestProject, task: &str) -> Run {
    project.liza(&["wt-merge", task, "--json"])
}

/// The project's repository, with the variables of its commands.
pub(crate) fn repository(project: &TestProject) -> Repo {
    repository_at(project, &project.root)
}

/// A copy of it.
pub(crate) fn repository_at(project: &TestProject, root: &Path) -> Repo {
    let variables = project.command("git");
    let variables =
        variables.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    Repo::open(&Git::with_environment(variables), root).unwrap()
}

/// Changes or removes a file of the chain of receipts.
pub(crate) fn edit_receipt(project: &TestProject, root: &Path, digest: &Digest, text: Option<&str>) {
    let (index, repo) = (project.home().join("index"), repository_at(project, root));
    let path = format!("{}/{digest}.json", digest.parts().0);
    let indexed = |arguments: &[&str], input: String| {
        let command = repo.command("editing").env("GIT_INDEX_FILE", &index);
        command.args(arguments).stdin(input).read_text().unwrap()
    };
    indexed(&["read-tree", RECEIPTS], String::new());
    let line = match text {
        Some(text) => {
            let file = project.home().join("text");
            fs::write(&file, text).unwrap();
            let object = project.git_at(root, &["hash-object", "-w", file.to_str().unwrap()]);
            format!("100644 {object}\t{path}\n")
        }
        None => format!("0 {}\t{path}\n", "0".repeat(40)),
    };
    indexed(&["update-index", "--index-info"], line);
    let tree = indexed(&["write-tree"], String::new());
    let chain = project.git_at(root, &["commit-tree", &tree, "-p", RECEIPTS, "-m", "edited"]);
    project.git_at(root, &["update-ref", RECEIPTS, &chain]);
    fs::remove_file(index).unwrap();
}

/// A merge of a task's commit onto a head with its statement, as Liza makes it before the branch moves.
#[track_caller]
pub(crate) fn stated_merge(project: &TestProject, head: &str, task: &str, commit: &str) -> PendingMerge {
    let (repo, task) = (repository(project), task.parse::<TaskId>().unwrap());
    let draft = repo.draft_merge(&head.parse().unwrap(), &commit.parse().unwrap()).unwrap();
    let merge = Predicate::Merge(Merge {
        tree: draft.tree.clone(),
        head: draft.trial.old.clone(),
        commit: draft.commit.clone(),
        approved_by: None,
        without_validation: false,
        evidence: Vec::new(),
        made_by: Maker { git: "2.47".into(), liza: "0.1.0".into(), machine: "other".into() },
    });
    let (project, purpose) = (repo.project_name().unwrap(), Purpose::Merge);
    let statement = Statement { project, task: Some(task.clone()), purpose, predicate: merge };
    let statement = &repo.add_receipts(&[statement.encode().unwrap()]).unwrap()[0];
    let (kind, title) = (MergeKind::Task(&task), Some("Do it"));
    repo.commit_draft(&draft, &MergeMessage { kind, title, approved_by: None, statement }).unwrap()
}

/// Moves the branch as a merge that is then killed: stated, and not recorded. Returns its new commit.
#[track_caller]
pub(crate) fn move_branch_only(project: &TestProject, task: &str, commit: &str) -> String {
    let merge = stated_merge(project, &tip(project, "integration"), task, commit);
    let (repo, branch) = (repository(project), "integration".parse().unwrap());
    repo.move_branch(&branch, &merge, &task.parse().unwrap()).unwrap();
    merge.new.as_str().to_owned()
}

/// Commits a file on the integration branch, which the human accepts.
#[track_caller]
pub(crate) fn advance(project: &TestProject, file: &str, text: &str) -> String {
    let folder = project.home().join("elsewhere");
    let path = folder.to_str().unwrap();
    project.git(&["worktree", "add", "-q", "-f", "--detach", path, "integration"]);
    let head = commit(project, &folder, file, text);
    project.git(&["update-ref", "refs/heads/integration", &head]);
    project.git(&["worktree", "remove", "--force", path]);
    if project.root.join(".liza").exists() {
        project.liza(&["accept-integration"]).ok();
    }
    head
}

pub(crate) fn tip(project: &TestProject, revision: &str) -> String {
    project.git(&["rev-parse", revision])
}

/// The branches that match a pattern such as `rescue/*`.
pub(crate) fn branches(project: &TestProject, pattern: &str) -> Vec<String> {
    let pattern = format!("refs/heads/{pattern}");
    let text = project.git(&["for-each-ref", "--format=%(refname:short)", &pattern]);
    text.lines().map(str::to_owned).collect()
}

/// The content of a file in a revision.
#[track_caller]
pub(crate) fn show(project: &TestProject, revision: &str, file: &str) -> String {
    project.git(&["show", &format!("{revision}:{file}")])
}

/// Expires the leases of an agent and of its task, in the file: no command shortens a lease.
#[track_caller]
pub(crate) fn expire(project: &TestProject, agent: &str) {
    let agent: AgentId = agent.parse().unwrap();
    let state = project.snapshot();
    let held = state.board.agents.ready().unwrap()[&agent].current_task.clone();
    let past = now() - Seconds(1000);
    let (mut lines, mut block) = (Vec::new(), String::new());
    for line in project.state().lines() {
        if let Some(name) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) {
            block = name.trim_start_matches("- id: ").trim_end_matches(':').to_owned();
        }
        let mine = block == agent.to_string() || held.as_ref().is_some_and(|task| block == task.as_str());
        let key = line.trim_start().split(':').next().unwrap_or_default();
        let column = line.len() - line.trim_start().len();
        lines.push(match key {
            "lease_expires" | "review_lease_expires" if mine => {
                format!("{}{key}: {past}", " ".repeat(column))
            }
            _ => line.to_owned(),
        });
    }
    project.write(".liza/state.yaml", &format!("{}\n", lines.join("\n")));
    let entry = project.snapshot().board.agents.ready().unwrap()[&agent].lease_expires;
    assert_eq!(entry, Some(past), "{}", project.state());
}

/// A program that replaces git: runs `before` with the arguments in `$*`, then the real git.
pub(crate) fn git_wrapper(project: &TestProject, before: &str) -> OsString {
    let folder = project.home().join("bin");
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.exists());
    script(&folder.join("git"), &format!("{before}\nexec '{}' \"$@\"", real.unwrap().display()));
    std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap()
}

pub(crate) fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What recover repaired, as `kind subject`.
#[track_caller]
pub(crate) fn recover(project: &TestProject) -> Vec<String> {
    let result = project.liza(&["recover", "--json"]).result();
    assert_eq!(result["left"], serde_json::json!([]), "{result}");
    let repaired = result["repaired"].as_array().unwrap();
    let line = |one: &serde_json::Value| {
        format!("{} {}", one["kind"].as_str().unwrap(), one["subject"].as_str().unwrap())
    };
    repaired.iter().map(line).collect()
}

/// Checks that the blackboard is valid and agrees with git, and that recover finds nothing.
#[track_caller]
pub(crate) fn check_consistent(project: &TestProject) {
    assert_eq!(recover(project), Vec::<String>::new());
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
}
