//! A person's checkout of the integration branch: what a merge may change in it, and what a crash leaves.

use std::fs;

use crate::fixture::*;
use crate::support::{Run, TestProject};

/// A project whose person has the integration branch checked out.
fn on_integration() -> TestProject {
    let project = team();
    project.git(&["checkout", "-q", "integration"]);
    project
}

/// Covers: AT-03
#[test]
fn a_file_that_git_ignores_is_not_replaced() {
    for (mine, theirs) in
        [(".env", ".env"), ("cache/deep/x", "cache"), ("cache", "cache/x"), ("cache", "cache/a/b")]
    {
        let project = TestProject::bare();
        project.write(".gitignore", ".env\ncache\n");
        project.git(&["add", "."]);
        project.git(&["commit", "-qm", "ignore"]);
        project.liza(&["init", "Retry everything"]).ok();
        let project = join(project);
        project.git(&["checkout", "-q", "integration"]);
        claimed(&project, "one", "coder-1");
        let folder = project.tree("one");
        fs::create_dir_all(folder.join(theirs).parent().unwrap()).unwrap();
        fs::write(folder.join(theirs), "theirs\n").unwrap();
        project.git_at(&folder, &["add", "-f", theirs]);
        project.git_at(&folder, &["commit", "-qm", "theirs"]);
        let head = project.git_at(&folder, &["rev-parse", "HEAD"]);
        submit(&project, "one", "coder-1", &head).ok();
        judge(&project, "one", &["APPROVED"]);
        project.write(mine, "SECRET=mine\n");
        let before = tip(&project, "integration");
        let error = merge(&project, "one").refused(3, "checkout_refused");
        assert!(error["message"].as_str().unwrap().contains(mine), "{error}");
        assert_eq!(project.read(mine), "SECRET=mine\n");
        assert_eq!((tip(&project, "integration"), project.status("one")), (before, "APPROVED"));
        let top = mine.split('/').next().unwrap();
        fs::rename(project.root.join(top), project.home().join("aside")).unwrap();
        merge(&project, "one").ok();
        assert_eq!(project.read(theirs), "theirs\n");
        check_consistent(&project);
    }
}

/// Runs the merge with a git that does `instead` of updating the checkout, and dies with its liza.
fn merge_killed(project: &TestProject, task: &str, instead: &str) -> Run {
    let dies = format!(
        "case \"$*\" in *'read-tree -m -u -n'*) ;; *'read-tree -m -u'*) {instead}\nkill -9 $PPID; exit 1;; esac"
    );
    let path = git_wrapper(project, &dies);
    let mut program = project.program();
    project.run(program.args(["wt-merge", task, "--json"]).env("PATH", &path))
}

/// A project with many files, all changed, some removed and some added by the approved task `one`.
fn with_many_files() -> TestProject {
    let project = TestProject::bare();
    for number in 0..60 {
        project.write(&format!("files/{number}.txt"), &format!("old {number}\n"));
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "files"]);
    project.liza(&["init", "Retry everything"]).ok();
    let project = join(project);
    project.git(&["checkout", "-q", "integration"]);
    claimed(&project, "one", "coder-1");
    let folder = project.tree("one");
    for number in 0..50 {
        fs::write(folder.join(format!("files/{number}.txt")), format!("new {number}\n")).unwrap();
    }
    for number in 50..60 {
        fs::remove_file(folder.join(format!("files/{number}.txt"))).unwrap();
    }
    let head = commit(&project, &folder, "files/added\nwith a line break.txt", "added\n");
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    project
}

/// Covers: AT-07, AT-14
#[test]
fn a_checkout_in_the_middle_of_an_update_is_healed_path_by_path() {
    let project = with_many_files();
    let halfway = "touch .git/index.lock; for n in $(seq 0 24) ; do echo \"new $n\" >files/$n.txt; done; \
                   rm files/25.txt files/50.txt; printf 'ne' >files/26.txt; echo mine >files/27.txt; \
                   echo mine >files/51.txt; echo mine >untouched.txt";
    assert_eq!(merge_killed(&project, "one", halfway).code, -1);
    let result = project.liza(&["recover", "--json"]).result();
    let left = result["left"].to_string();
    for kept in ["files/27.txt", "files/51.txt"] {
        assert!(left.contains(kept), "{kept}: {left}");
    }
    assert_eq!(project.status("one"), "MERGED");
    let status = project.git(&["status", "--porcelain"]);
    assert_eq!(status, "M files/27.txt\n?? files/51.txt\n?? untouched.txt");
    assert_eq!(project.read("files/27.txt"), "mine\n");
    assert_eq!(project.read("files/25.txt"), "new 25\n");
    assert_eq!(project.read("files/26.txt"), "new 26\n", "git had begun to write it");
    assert_eq!(project.read("files/40.txt"), "new 40\n");
    assert_eq!(project.read("files/added\nwith a line break.txt"), "added\n");
    assert!(!project.root.join("files/52.txt").exists() && !project.root.join(".git/index.lock").exists());
    check_consistent(&project);
}

/// Covers: AT-07
#[test]
fn a_kill_at_any_moment_of_the_move_leaves_a_checkout_that_recovers() {
    for dies in [
        "*update-ref*'liza: merge one'*) kill -9 $PPID; exit 1",
        "*'read-tree -m -u -n'*) ;; *'read-tree -m -u'*) kill -9 $PPID; exit 1",
    ] {
        let project = with_many_files();
        let path = git_wrapper(&project, &format!("case \"$*\" in {dies};; esac"));
        let mut program = project.program();
        assert_eq!(project.run(program.args(["wt-merge", "one"]).env("PATH", &path)).code, -1);
        recover(&project);
        if project.status("one") == "APPROVED" {
            merge(&project, "one").ok();
        }
        assert_eq!(project.git(&["status", "--porcelain"]), "");
        assert_eq!(project.read("files/7.txt"), "new 7\n");
        check_consistent(&project);
    }
}

/// Covers: AT-07
#[test]
fn a_staged_revert_is_not_undone() {
    let project = on_integration();
    approved(&project, "one");
    merge(&project, "one").ok();
    project.git(&["revert", "--no-commit", "-m", "1", "HEAD"]);
    let before = project.git(&["status", "--porcelain"]);
    assert_eq!(before, "D  one.txt");
    assert_eq!(recover(&project), Vec::<String>::new());
    assert_eq!(project.git(&["status", "--porcelain"]), before);
}

/// Covers: AT-07
#[test]
fn a_rebase_of_the_branch_holds_merges_and_a_bisect_is_not_disturbed() {
    let project = on_integration();
    approved(&project, "one");
    merge(&project, "one").ok();
    approved(&project, "two");
    let mut rebase = project.command("git");
    rebase.args(["rebase", "--force-rebase", "--exec", "false", "HEAD~1"]);
    assert_ne!(project.run(&mut rebase).code, 0, "it stops at the failing command");
    let (before, head) = (tip(&project, "integration"), tip(&project, "HEAD"));
    let error = merge(&project, "two").refused(3, "checkout_refused");
    assert!(error["message"].as_str().unwrap().contains("rebase"), "{error}");
    assert_eq!((tip(&project, "integration"), tip(&project, "HEAD")), (before, head));
    assert_eq!(recover(&project), Vec::<String>::new());
    project.git(&["rebase", "--abort"]);
    merge(&project, "two").ok();

    approved(&project, "three");
    project.git(&["bisect", "start", "HEAD", "HEAD~2"]);
    let (status, head) = (project.git(&["status", "--porcelain"]), tip(&project, "HEAD"));
    merge(&project, "three").ok();
    assert_eq!((project.git(&["status", "--porcelain"]), tip(&project, "HEAD")), (status, head));
    project.git(&["bisect", "reset"]);
    assert_eq!(project.read("three.txt"), "done\n");
    check_consistent(&project);
}
