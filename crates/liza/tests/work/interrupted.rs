//! `finish` and `sync` killed at every git command: the next command completes them or takes them back, and no change of
//! the person is lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use liza_testkit::evidence::tried;

use crate::fixture::*;
use crate::support::{Run, TestProject};

/// What repairs: after each kill, each of them on its own.
const REPAIRS: [&[&str]; 4] =
    [&["finish", "--merge", "--unfinished"], &["sync"], &["recover"], &["run", "--cli", "claude", "--plain"]];

/// When the liza of a git command is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    Before,
    After,
}

/// A project before the command that is killed, and a copy of it.
struct Scene {
    project: TestProject,
    /// The folder of the checkout that the command updates.
    checkout: PathBuf,
    /// The branch that it moves.
    branch: &'static str,
    /// What `git status` prints about the person's own changes.
    changes: &'static str,
    words: &'static [&'static str],
}

impl Scene {
    fn new(
        project: TestProject,
        checkout: PathBuf,
        branch: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        let changes = " M mine.txt\nA  staged.txt\n?? notes.txt";
        for (file, text) in [("mine.txt", "not committed\n"), ("notes.txt", "untracked\n")] {
            fs::write(checkout.join(file), text).unwrap();
        }
        fs::write(checkout.join("staged.txt"), "staged\n").unwrap();
        project.git_at(&checkout, &["add", "staged.txt"]);
        let scene = Self { project, checkout, branch, changes, words };
        assert_eq!(scene.status(), scene.changes);
        scene.copy(&scene.project.root, &scene.backup());
        scene
    }

    fn backup(&self) -> PathBuf {
        self.project.home().join("backup")
    }

    fn copy(&self, from: &std::path::Path, to: &std::path::Path) {
        if to.exists() {
            fs::remove_dir_all(to).unwrap();
        }
        let mut copy = self.project.command("cp");
        assert!(copy.current_dir("/").arg("-a").args([from, to]).status().unwrap().success());
    }

    fn reset(&self) {
        self.copy(&self.backup(), &self.project.root);
    }

    /// Runs the command with a git that kills it around one of its commands; false if it has not as many.
    fn killed_at(&self, number: usize, kill: Kill) -> bool {
        let count = self.project.home().join("count");
        let _ = fs::remove_file(&count);
        let carried_out = match kill {
            Kill::Before => "",
            Kill::After => "PATH=${PATH#*:} git \"$@\"; ",
        };
        // A git among agents' files cannot write there; it changes nothing here either.
        let dies = format!(
            "if printf x >>'{count}'; then [ $(wc -c <'{count}') = {number} ] && {{ {carried_out}kill -9 $PPID; exit 1; }}; fi",
            count = count.display()
        );
        let path = git_wrapper(&self.project, &dies);
        let mut program = self.project.program();
        self.project.run(program.args(self.words).env("PATH", &path)).code == -1
    }

    fn status(&self) -> String {
        let status = self.project.git_at(&self.checkout, &["status", "--porcelain"]);
        // The first character of the whole is trimmed.
        if status.starts_with("M ") { format!(" {status}") } else { status }
    }

    fn recorded(&self) -> (bool, Option<String>) {
        let state = self.project.snapshot();
        let goal = state.board.goal.ready().unwrap();
        (goal.taken.is_some(), goal.integration_head.as_ref().map(|head| head.as_str().to_owned()))
    }

    /// All that the kill can have changed. Hashes of new commits depend on the time.
    fn fingerprint(&self) -> String {
        let tree = |branch: &str| tip(&self.project, &format!("{branch}^{{tree}}"));
        let (taken, head) = self.recorded();
        let is_recorded = head.is_some_and(|head| head == tip(&self.project, "integration"));
        let mut files: Vec<PathBuf> = Vec::new();
        for folder in [self.git_dir(), self.project.root.join(".liza")] {
            let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            files.extend(entries.filter(|path| path.is_file()));
        }
        files.sort();
        let (main, integration, status) = (tree("main"), tree("integration"), self.status());
        format!("{main} {integration} {taken} {is_recorded} {files:?}\n{status}")
    }

    fn git_dir(&self) -> PathBuf {
        PathBuf::from(self.project.git_at(&self.checkout, &["rev-parse", "--absolute-git-dir"]))
    }

    /// The branch, the index, the files and the blackboard agree; the person's changes are as they were.
    #[track_caller]
    fn check(&self, after: &str) {
        let said =
            || format!("{after}\n{}", self.project.git(&["log", "--oneline", "--graph", "--all", "-20"]));
        assert_eq!(self.status(), self.changes, "{}", said());
        for (file, text) in
            [("mine.txt", "not committed\n"), ("notes.txt", "untracked\n"), ("staged.txt", "staged\n")]
        {
            assert_eq!(fs::read_to_string(self.checkout.join(file)).unwrap(), text, "{file} {}", said());
        }
        let (taken, head) = self.recorded();
        assert_eq!(head.unwrap(), tip(&self.project, "integration"), "{}", said());
        if self.words[0] == "finish" {
            let mut contains = self.project.command("git");
            let work = self.project.record("one").merge_commit.unwrap();
            contains.args(["merge-base", "--is-ancestor", work.as_str(), "main"]);
            let has_it = self.project.run(&mut contains).code == 0;
            assert_eq!(has_it, taken, "recorded if and only if main has it: {}", said());
        }
        assert!(!self.git_dir().join("liza-update").exists(), "{}", said());
        let verified = self.project.liza(&["verify"]);
        assert_eq!(verified.code, 0, "each commit has its receipt: {verified:#?} {}", said());
        assert!(!self.project.root.join(".liza/move-intent.json").exists(), "{}", said());
    }

    /// Kills the command before and after every git command: files are written in between. Each state that a kill leaves is
    /// repaired by each of the commands.
    fn killed_at_every_step(&self) {
        let (mut seen, mut kills) = (BTreeSet::new(), 0);
        for kill in [Kill::After, Kill::Before] {
            let mut number = 1;
            loop {
                self.reset();
                if !self.killed_at(number, kill) {
                    break;
                }
                if seen.insert(self.fingerprint()) {
                    self.repaired_by_each(number, kill);
                }
                number += 1;
            }
            assert!(number > 10, "only {number} commands");
            kills += number - 1;
        }
        // Nothing has happened, it is noted, the branch has moved.
        assert!(seen.len() >= 3, "it was killed at different steps: {seen:#?}");
        self.reset();
        self.project.run(self.project.program().args(self.words)).ok();
        self.check("not killed");
        tried("taking over work is killed around a command of git, then repaired by each command", kills);
    }

    fn repaired_by_each(&self, number: usize, kill: Kill) {
        let dead = self.project.home().join("dead");
        self.copy(&self.project.root, &dead);
        for words in REPAIRS {
            self.copy(&dead, &self.project.root);
            let repair: Run = self.project.liza(words);
            self.check(&format!("killed {kill:?} command {number}, then {repair:#?}"));
            self.project.run(self.project.program().args(self.words)).ok();
            let branch = tip(&self.project, self.branch);
            assert_eq!(tip(&self.project, &format!("{branch}^{{tree}}")), {
                self.check(&format!("killed {kill:?} command {number}, {words:?}, then again"));
                self.project.git(&["merge-tree", "--write-tree", "main", "integration"])
            });
        }
    }
}

/// A project with files, of which `one` is merged, and a reached goal.
fn with_result() -> TestProject {
    let project = TestProject::bare();
    for file in ["mine.txt", "changed.txt", "removed.txt"] {
        project.write(file, "old\n");
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "files"]);
    project.liza(&["init", "Retry everything"]).ok();
    let project = join(project);
    claimed(&project, "one", "coder-1");
    let folder = project.tree("one");
    fs::remove_file(folder.join("removed.txt")).unwrap();
    fs::write(folder.join("changed.txt"), "new\n").unwrap();
    let head = commit(&project, &folder, "added/deep.txt", "new\n");
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").ok();
    for agent in ["coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"] {
        project.liza(&["deregister", agent]).ok();
    }
    project
}

fn work_by_hand(project: &TestProject) {
    project.write("by-hand.txt", "by hand\n");
    project.git(&["add", "by-hand.txt"]);
    project.git(&["commit", "-qm", "by hand"]);
}

/// Covers: AX-35
#[test]
fn finish_by_a_fast_forward() {
    let project = with_result();
    project.liza(&["goal", "complete"]).ok();
    let root = project.root.clone();
    Scene::new(project, root, "main", &["finish", "--merge"]).killed_at_every_step();
}

/// Covers: AX-35
#[test]
fn finish_by_a_merge() {
    let project = with_result();
    work_by_hand(&project);
    project.liza(&["goal", "complete"]).ok();
    let root = project.root.clone();
    Scene::new(project, root, "main", &["finish", "--merge"]).killed_at_every_step();
}

/// Covers: AX-35
#[test]
fn sync_by_a_merge() {
    let project = with_result();
    work_by_hand(&project);
    project.git(&["checkout", "-q", "integration"]);
    let root = project.root.clone();
    Scene::new(project, root, "integration", &["sync"]).killed_at_every_step();
}

/// Covers: AX-35
#[test]
fn sync_while_no_checkout_has_the_branch() {
    let project = with_result();
    work_by_hand(&project);
    let root = project.root.clone();
    Scene::new(project, root, "integration", &["sync"]).killed_at_every_step();
}

/// Covers: AX-35
#[test]
fn sync_with_a_remote() {
    let project = TestProject::bare();
    project.write("mine.txt", "old\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "files"]);
    crate::remote::add_bare(&project);
    project.liza(&["init", "Retry everything", "--remote", "origin"]).ok();
    work_by_hand(&project);
    // Not on the remote's branch and not on the blackboard: nothing has happened. On both: it is done.
    for dies in ["Before", "After"] {
        let kill = match dies {
            "Before" => "kill -9 $PPID; exit 1",
            _ => "PATH=${PATH#*:} git \"$@\"; kill -9 $PPID; exit 1",
        };
        let path = git_wrapper(&project, &format!("case \"$*\" in *' push '*) {kill};; esac"));
        let mut program = project.program();
        assert_eq!(project.run(program.args(["sync"]).env("PATH", &path)).code, -1);
        let said = project.liza(&["recover"]).ok().to_owned();
        assert!(said.contains("integration: a sync was interrupted"), "{dies}: {said}");
        let recorded = project.snapshot().board.goal.ready().unwrap().integration_head.clone();
        assert_eq!(recorded.unwrap().as_str(), crate::remote::remote_head(&project), "{dies}: {said}");
        assert_eq!(tip(&project, "integration"), crate::remote::remote_head(&project), "{dies}: {said}");
    }
    assert_eq!(tip(&project, "integration^2"), tip(&project, "main"));
    check_consistent(&project);
}

/// Runs a command with a git that does `instead` of updating the checkout, and dies with its liza.
fn killed_instead(project: &TestProject, words: &[&str], instead: &str) {
    let dies = format!(
        "case \"$*\" in *'read-tree -m -u -n'*) ;; *'read-tree -m -u'*) {instead}\nkill -9 $PPID; exit 1;; esac"
    );
    let path = git_wrapper(project, &dies);
    let mut program = project.program();
    assert_eq!(project.run(program.args(words).env("PATH", &path)).code, -1);
}

/// Covers: AX-35
#[test]
fn a_finish_in_the_middle_of_its_files_with_the_lock_of_a_dead_git() {
    let project = with_result();
    project.liza(&["goal", "complete"]).ok();
    project.write("mine.txt", "not committed\n");
    killed_instead(&project, &["finish", "--merge"], "touch .git/index.lock; echo new >changed.txt");
    let run = project.liza(&["finish", "--merge"]);
    let root = project.root.display();
    assert!(run.stderr.contains(&format!("repaired {root}: behind main – updated")), "{run:?}");
    assert!(run.ok().contains("already contains the result"), "{run:?}");
    assert_eq!(project.git(&["status", "--porcelain"]), "M mine.txt");
    assert_eq!(
        (project.read("changed.txt"), project.read("added/deep.txt")),
        ("new\n".into(), "new\n".into())
    );
    assert!(!project.root.join("removed.txt").exists());
    check_consistent(&project);
}

/// Covers: AX-35
#[test]
fn the_lock_that_a_dead_git_left_on_the_branch_is_removed() {
    let project = with_result();
    project.liza(&["goal", "complete"]).ok();
    let dies = "case \"$*\" in *update-ref*'liza: merge finish'*) touch .git/refs/heads/main.lock; \
                kill -9 $PPID; exit 1;; esac";
    let path = git_wrapper(&project, dies);
    let mut program = project.program();
    assert_eq!(project.run(program.args(["finish", "--merge"]).env("PATH", &path)).code, -1);
    let run = project.liza(&["finish", "--merge"]);
    assert!(run.ok().starts_with("merged the result of goal-1 into main: "), "{run:?}");
    assert!(run.stderr.contains("main: a finish was interrupted – nothing has moved"), "{run:?}");
}

/// Covers: AX-35
#[test]
fn a_finish_whose_checkout_is_another_worktree() {
    let project = with_result();
    let elsewhere = project.home().join("elsewhere");
    project.git(&["checkout", "-q", "-b", "topic"]);
    project.git(&["worktree", "add", "-q", elsewhere.to_str().unwrap(), "main"]);
    project.liza(&["goal", "complete"]).ok();
    fs::write(elsewhere.join("mine.txt"), "not committed\n").unwrap();
    killed_instead(&project, &["finish", "--merge"], "echo new >changed.txt");
    assert_eq!(recover(&project), [format!("checkout {}", elsewhere.display()), "branch main".to_owned()]);
    assert_eq!(project.git_at(&elsewhere, &["status", "--porcelain"]), "M mine.txt");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    check_consistent(&project);
}

/// Covers: AX-35
#[test]
fn a_person_who_has_gone_on_from_an_interrupted_finish_is_not_disturbed() {
    let switched = |project: &TestProject| {
        project.git(&["switch", "-q", "-c", "topic"]);
    };
    let committed = |project: &TestProject| {
        project.git(&["commit", "-qm", "by hand"]);
    };
    let steps: [&dyn Fn(&TestProject); 2] = [&switched, &committed];
    for go_on in steps {
        let project = with_result();
        project.liza(&["goal", "complete"]).ok();
        killed_instead(&project, &["finish", "--merge"], "");
        go_on(&project);
        let (status, head) = (project.git(&["status", "--porcelain"]), tip(&project, "HEAD"));
        let run = project.liza(&["recover"]);
        assert!(
            run.ok().contains("an update to main was interrupted, and you have gone on from there"),
            "{run:?}"
        );
        assert_eq!((project.git(&["status", "--porcelain"]), tip(&project, "HEAD")), (status, head));
        let goal = project.snapshot().board.goal.ready().unwrap().clone();
        assert!(goal.taken.is_some(), "main has it");
        check_consistent(&project);
    }
}

/// Covers: AX-37
#[test]
fn an_update_of_a_checkout_that_fails_in_the_middle_is_taken_back() {
    let project = with_result();
    project.liza(&["goal", "complete"]).ok();
    project.write("mine.txt", "not committed\n");
    let before = tip(&project, "main");
    let fails = "case \"$*\" in *'read-tree -m -u -n'*) ;; *'read-tree -m -u'*) echo new >changed.txt; \
                 rm removed.txt; mkdir added; echo new >added/deep.txt; \
                 echo 'fatal: no space left' >&2; exit 128;; esac";
    let path = git_wrapper(&project, fails);
    let mut program = project.program();
    let run = project.run(program.args(["finish", "--merge", "--json"]).env("PATH", &path));
    let error = run.refused(3, "not_merged");
    assert!(error["message"].as_str().unwrap().contains("no space left"), "{error}");
    assert_eq!(
        (tip(&project, "main"), project.git(&["status", "--porcelain"])),
        (before, "M mine.txt".to_owned())
    );
    assert_eq!((project.read("changed.txt"), project.read("removed.txt")), ("old\n".into(), "old\n".into()));
    check_consistent(&project);
    project.liza(&["finish", "--merge"]).ok();
    assert_eq!(project.git(&["status", "--porcelain"]), "M mine.txt");
}
