//! Merged work stays on the branch, and what a dead git locked is free again.

use crate::fixture::*;
use crate::support::TestProject;

/// Three merged tasks; gives the newest merge.
fn three_merged(project: &TestProject) -> String {
    for task in ["one", "two", "three"] {
        approved(project, task);
        if task == "two" {
            advance(project, "other", "x");
        }
        merge(project, task).ok();
    }
    tip(project, "integration")
}

/// Covers: AT-08
#[test]
fn a_missing_branch_is_remade_at_the_newest_merge() {
    for words in [&["doctor", "--fix", "--json"][..], &["recover", "--json"]] {
        let project = team();
        let newest = three_merged(&project);
        project.git(&["branch", "-qD", "integration"]);
        project.git(&["reflog", "expire", "--expire=now", "--all"]);
        project.git(&["gc", "-q", "--prune=now"]);
        let text = project.liza(words).ok().to_owned();
        assert!(text.contains("integration"), "{text}");
        assert_eq!(tip(&project, "integration"), newest);
        for task in ["one", "two", "three"] {
            assert_eq!(show(&project, "integration", &format!("{task}.txt")), "done");
        }
        check_consistent(&project);
    }
}

/// Covers: AT-08
#[test]
fn merges_of_an_earlier_version_are_pinned_by_recover() {
    let project = team();
    three_merged(&project);
    for task in ["one", "two", "three"] {
        project.git(&["update-ref", "-d", &format!("refs/liza/merged/{task}")]);
    }
    recover(&project);
    let refs = project.git(&["for-each-ref", "--format=%(refname)", "refs/liza/merged"]);
    assert_eq!(refs, "refs/liza/merged/one\nrefs/liza/merged/three\nrefs/liza/merged/two");
}

/// Covers: AT-08
#[test]
fn merged_work_that_left_the_branch_is_an_alarm() {
    let project = team();
    three_merged(&project);
    assert!(!project.liza(&["watch", "--once"]).stderr.contains("not on the branch"));
    let newest = tip(&project, "integration");
    project.git(&["update-ref", "refs/heads/integration", "main"]);
    let run = project.liza(&["doctor", "--fix", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let check = run.json()["result"]["checks"].to_string();
    for task in ["one", "two", "three"] {
        assert!(check.contains(&format!("{task} is MERGED")), "{check}");
    }
    let watch = project.liza(&["watch", "--once"]);
    assert!(watch.stderr.contains("not on the branch"), "{watch:?}");
    assert_eq!(tip(&project, "integration"), tip(&project, "main"), "a person decides");
    assert_eq!(tip(&project, "refs/liza/merged/three"), newest, "and nothing is lost");
}

/// Covers: AT-09
#[test]
fn stale_locks_of_task_rescue_and_own_refs_are_cleared() {
    let project = team();
    project.add_task("one");
    let locks = [
        ".git/refs/heads/task/one.lock",
        ".git/refs/heads/task/gone.lock",
        ".git/refs/heads/rescue/one-1.lock",
        ".git/refs/liza/merged/one.lock",
    ];
    for lock in locks {
        project.write(lock, "");
    }
    let repaired = recover(&project);
    for lock in locks {
        assert!(repaired.contains(&format!("git_lock {lock}")), "{lock}: {repaired:?}");
        assert!(!project.root.join(lock).exists());
    }
    claim(&project, "one", "coder-1").ok();
    check_consistent(&project);
}
