//! One task from claim to merge, in unusual repositories.

use std::fs;
use std::path::Path;

use crate::fixture::*;
use crate::support::TestProject;

/// Takes a task from claim to merge; returns the merge commit.
#[track_caller]
fn claim_to_merge(project: &TestProject, task: &str) -> String {
    approved(project, task);
    let merged = merge(project, task).result()["merge_commit"].as_str().unwrap().to_owned();
    assert_eq!(show(project, "integration", &format!("{task}.txt")), "done");
    assert!(!project.tree(task).exists());
    check_consistent(project);
    merged
}

/// The same with a real merge commit.
#[track_caller]
fn claim_to_merge_commit(project: &TestProject, task: &str) -> String {
    approved(project, task);
    advance(project, &format!("beside-{task}"), "x\n");
    let merged = merge(project, task).result()["merge_commit"].as_str().unwrap().to_owned();
    assert_eq!(show(project, "integration", &format!("{task}.txt")), "done");
    check_consistent(project);
    merged
}

fn begin(project: TestProject) -> TestProject {
    project.liza(&["init", "Retry everything"]).ok();
    join(project)
}

/// The same home, another root.
fn moved_to(mut project: TestProject, root: &Path) -> TestProject {
    project.root = root.to_owned();
    project
}

/// Covers: RV-04, CM-06
#[test]
fn a_path_with_spaces_and_non_ascii_letters_and_from_a_subfolder() {
    let project = begin(TestProject::at("mein Projekt – ünïcödé 漢字"));
    project.add_task("one");
    let below = project.root.join("specs");
    let from = |folder: &Path, agent: Option<&str>, words: &[&str]| {
        let mut program = project.program();
        program.args(words).current_dir(folder);
        project.run(program.envs(agent.map(|agent| ("LIZA_AGENT_ID", agent)))).ok().to_owned()
    };
    from(&below, None, &["claim-task", "one", "coder-1"]);
    let head = commit(&project, &project.tree("one"), "ä ö.txt", "done\n");
    let inside = project.tree("one").join("specs");
    from(&inside, Some("coder-1"), &["submit-for-review", "one", &head]);
    from(&below, None, &["claim-review", "one", "code-reviewer-1"]);
    from(&inside, Some("code-reviewer-1"), &["submit-verdict", "one", "APPROVED"]);
    from(&inside, None, &["wt-merge", "one"]);
    assert_eq!(show(&project, "integration", "ä ö.txt"), "done");
    from(&below, None, &["recover"]);
    check_consistent(&project);
}

/// Covers: RV-04, AT-11
#[test]
fn submodules() {
    let library = TestProject::at("library");
    let project = TestProject::bare();
    let url = library.root.to_str().unwrap();
    project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib"]);
    project.git(&["commit", "-qm", "with a library"]);
    let project = begin(project);
    project.add_task("one");
    claim(&project, "one", "coder-1").ok();
    let folder = project.tree("one");
    project
        .git_at(&folder, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
    assert!(folder.join("lib/specs/vision.md").exists());
    let head = commit(&project, &folder, "one.txt", "done\n");
    fs::write(folder.join("lib/left"), "unsaved\n").unwrap();
    submit(&project, "one", "coder-1", &head).refused(1, "dirty_worktree");
    fs::remove_file(folder.join("lib/left")).unwrap();
    let inner = commit(&project, &folder.join("lib"), "new", "only here\n");
    let pointing = commit(&project, &folder, "two.txt", "x\n");
    let error = submit(&project, "one", "coder-1", &pointing).refused(1, "unpublished_submodule");
    assert!(error["message"].as_str().unwrap().contains(&inner), "{error}");
    project.git_at(&folder.join("lib"), &["reset", "-q", "--hard", "HEAD^"]);
    project.git_at(&folder, &["reset", "-q", "--hard", &head]);
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").ok();
    assert!(!folder.exists());
    check_consistent(&project);
}

/// Covers: RV-04
#[test]
fn a_shallow_clone() {
    let origin = TestProject::at("origin");
    for number in 0..3 {
        commit(&origin, &origin.root.clone(), "n", &number.to_string());
    }
    let home = TestProject::bare();
    let root = home.root.parent().unwrap().join("shallow");
    let url = format!("file://{}", origin.root.display());
    home.git(&["clone", "-q", "--depth", "1", &url, root.to_str().unwrap()]);
    let project = begin(moved_to(home, &root));
    assert_eq!(project.git(&["rev-parse", "--is-shallow-repository"]), "true");
    claim_to_merge(&project, "one");
    claim_to_merge_commit(&project, "two");
}

/// Covers: RV-04
#[test]
fn a_linked_worktree_as_the_projects_root() {
    let home = TestProject::bare();
    let root = home.root.parent().unwrap().join("linked");
    home.git(&["worktree", "add", "-q", "-b", "elsewhere", root.to_str().unwrap()]);
    let project = begin(moved_to(home, &root));
    assert!(project.root.join(".git").is_file());
    claim_to_merge(&project, "one");
    claim_to_merge_commit(&project, "two");
}

/// Covers: CM-05
#[test]
fn an_empty_repository_is_refused_with_a_hint() {
    let home = TestProject::bare();
    let root = home.root.parent().unwrap().join("empty");
    home.git(&["init", "-q", root.to_str().unwrap()]);
    let project = moved_to(home, &root);
    let error = project.liza(&["init", "Retry", "--json"]).refused(1, "no_repository");
    assert!(error["hint"].as_str().unwrap().contains("git commit --allow-empty"), "{error}");
    assert!(!project.root.join(".liza").exists());
    let run = project.liza(&["doctor"]);
    assert!(run.stdout.contains("has no commit yet"), "{run:?}");
}

/// Covers: RV-04
#[test]
fn a_detached_head() {
    let project = TestProject::bare();
    project.git(&["checkout", "-q", "--detach"]);
    let project = begin(project);
    claim_to_merge(&project, "one");
    claim_to_merge_commit(&project, "two");
    assert_eq!(project.git(&["branch", "--show-current"]), "");
}

/// Covers: RV-04
#[test]
fn clean_and_smudge_filters() {
    let project = TestProject::bare();
    project.git(&["config", "--global", "filter.rot.clean", "tr a-z b-za"]);
    project.git(&["config", "--global", "filter.rot.smudge", "tr b-za a-z"]);
    project.git(&["config", "--global", "filter.rot.required", "true"]);
    project.write(".gitattributes", "*.txt filter=rot\n");
    project.write("text.txt", "hello\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "filtered"]);
    let project = begin(project);
    approved(&project, "one");
    assert_eq!(fs::read_to_string(project.tree("one").join("text.txt")).unwrap(), "hello\n");
    merge(&project, "one").ok();
    assert_eq!(show(&project, "integration", "one.txt"), "epof", "in the form that the filter stores");
    check_consistent(&project);
}

/// Covers: RV-04
#[test]
fn hooks_of_the_project_do_not_interfere() {
    let project = TestProject::bare();
    let hooks = project.home().join("hooks");
    for (name, text) in [
        ("post-checkout", "echo checked out; exit 1"),
        ("pre-commit", "exit 0"),
        ("commit-msg", "echo \"Hook-Seen: yes\" >> \"$1\""),
    ] {
        script(&hooks.join(name), text);
    }
    project.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    let project = begin(project);
    let mut add = project.command("git");
    add.args(["worktree", "add", "-q", "--detach", "../probe"]);
    assert_ne!(project.run(&mut add).code, 0, "the hook makes git fail");
    project.git(&["worktree", "remove", "--force", "../probe"]);
    project.add_task("one");
    claim(&project, "one", "coder-1").ok();
    let head = commit(&project, &project.tree("one"), "one.txt", "done\n");
    let message = project.git_at(&project.tree("one"), &["log", "-1", "--format=%B", &head]);
    assert!(message.contains("Hook-Seen"), "hooks do run");
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").ok();
    check_consistent(&project);
}

/// Covers: RV-04
#[test]
fn merge_commits_are_signed_if_commits_are() {
    let project = TestProject::bare();
    let gpg = project.home().join("fake-gpg");
    script(
        &gpg,
        "cat >/dev/null\necho '[GNUPG:] SIG_CREATED D 1 8 00 1 AAAA' >&2\n\
         echo '-----BEGIN PGP SIGNATURE-----'\necho\necho ZmFrZQ==\necho '-----END PGP SIGNATURE-----'",
    );
    project.git(&["config", "--global", "gpg.program", gpg.to_str().unwrap()]);
    project.git(&["config", "user.signingkey", "AAAA"]);
    project.git(&["config", "commit.gpgsign", "true"]);
    let project = begin(project);
    let merged = claim_to_merge_commit(&project, "one");
    let raw = project.git(&["cat-file", "commit", &merged]);
    assert!(raw.contains("gpgsig -----BEGIN PGP SIGNATURE-----"), "{raw}");

    script(&gpg, "cat >/dev/null; echo no key >&2; exit 2");
    project.git(&["config", "commit.gpgsign", "false"]);
    approved(&project, "two");
    advance(&project, "beside", "x\n");
    project.git(&["config", "commit.gpgsign", "true"]);
    let before = tip(&project, "integration");
    merge(&project, "two").refused(3, "git");
    assert_eq!((tip(&project, "integration"), project.status("two")), (before, "APPROVED"));
}

/// Covers: AX-36
#[test]
fn a_git_folder_that_is_elsewhere() {
    let project = TestProject::bare();
    let (git, beside) = (project.home().join("git-folder"), project.home().join("beside"));
    project.git(&["init", "-q", "--separate-git-dir", git.to_str().unwrap()]);
    let project = begin(project);
    claim_to_merge(&project, "one");
    project.git(&["checkout", "-q", "integration"]);
    claim_to_merge(&project, "two");
    project.git(&["worktree", "add", "-q", "--detach", beside.to_str().unwrap()]);
    claim_to_merge(&project, "three");
    assert!(project.root.join("two.txt").exists() && project.root.join("three.txt").exists());
    project.git(&["checkout", "-q", "main"]);
    project.liza(&["goal", "complete"]).ok();
    project.liza(&["finish", "--merge"]).ok();
    assert!(project.root.join("three.txt").exists());
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// Covers: AX-36
#[test]
fn a_repository_in_the_format_reftable_is_refused_with_the_reason() {
    let home = TestProject::bare();
    let root = home.home().join("reftable");
    home.git(&["init", "-q", "--ref-format=reftable", root.to_str().unwrap()]);
    let project = moved_to(home, &root);
    commit(&project, &root, "file", "text\n");
    let error = project.liza(&["init", "Retry", "--json"]).refused(1, "no_repository");
    assert!(error["message"].as_str().unwrap().contains("reftable"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("git refs migrate"), "{error}");
    assert!(!root.join(".liza").exists());
}
