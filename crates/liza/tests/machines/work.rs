//! Work that one machine has made and another one needs, step by step through commands.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::machine::{state, two_machines};
use crate::server::Server;
use crate::support::TestProject;
use crate::support::process::{Running, end, is_running, own_sleep, wait_for};

/// A database, a remote, and two machines with a team.
struct Team {
    _server: Server,
    home: tempfile::TempDir,
    one: TestProject,
    two: TestProject,
}

impl Team {
    fn new() -> Self {
        let server = Server::own("");
        let home = tempfile::tempdir().unwrap();
        let (bare, address) = (home.path().join("remote.git"), server.address());
        let [one, two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
        for agent in ["coder-1", "coder-2", "code-reviewer-1"] {
            one.register(agent);
        }
        Self { _server: server, home, one, two }
    }

    fn bare(&self) -> std::path::PathBuf {
        self.home.path().join("remote.git")
    }

    fn on_remote(&self, arguments: &[&str]) -> String {
        self.one.git_at(&self.bare(), arguments)
    }

    /// A task that a coder of the first machine has claimed, with a commit.
    fn worked_on(&self, task: &str) -> String {
        self.one.add_task(task);
        self.work_on(task)
    }

    fn work_on(&self, task: &str) -> String {
        self.one.liza(&["claim-task", task, "coder-1"]).ok();
        let tree = self.one.tree(task);
        fs::write(tree.join(format!("{task}.txt")), format!("the work on {task}\n")).unwrap();
        self.one.git_at(&tree, &["add", "-A"]);
        self.one.git_at(&tree, &["commit", "-qm", task]);
        self.one.git_at(&tree, &["rev-parse", "HEAD"])
    }

    fn submitted(&self, task: &str) -> String {
        self.one.add_task(task);
        self.submit(task)
    }

    /// The same with a task that is there.
    fn submit(&self, task: &str) -> String {
        let head = self.work_on(task);
        self.one.liza_as("coder-1", &["submit-for-review", task, &head]).ok();
        head
    }

    fn approved(&self, task: &str) -> String {
        let head = self.submitted(task);
        self.one.liza(&["claim-review", task, "code-reviewer-1"]).ok();
        self.one.liza_as("code-reviewer-1", &["submit-verdict", task, "APPROVED"]).ok();
        head
    }
}

fn has(machine: &TestProject, commit: &str) -> bool {
    let mut git = machine.command("git");
    git.args(["cat-file", "-e", commit]).current_dir(&machine.root).status().unwrap().success()
}

/// A machine dies while it validates a review; another one takes the review, and the merge of the first rests on its statement.
///
/// Covers: JU-03, JU-04
#[test]
fn needs_postgres_a_validation_killed_on_one_machine_goes_on_on_another() {
    let team = Team::new();
    let (one, two) = (&team.one, &team.two);
    let sleep = own_sleep(7);
    one.liza(&["config", "validation", &format!("[\"{sleep}; true\"]")]).ok();
    two.liza(&["config", "--trust"]).ok();
    team.submitted("t");
    let mut killed = Running::liza(one, &["claim-review", "t", "code-reviewer-1", "--json"]);
    wait_for("the command", || is_running(&sleep).then_some(()));
    killed.kill();
    wait_for("its end", || (!is_running(&sleep)).then_some(()));
    two.register("code-reviewer-2");
    // Unless its lease has ended already.
    let _ = two.liza(&["release-claim", "t", "--role", "reviewer", "--force"]);
    let mut claiming = Running::liza(two, &["claim-review", "t", "code-reviewer-2", "--json"]);
    wait_for("the command there", || is_running(&sleep).then_some(()));
    end(&sleep);
    assert_eq!(claiming.wait(), 0, "{}", claiming.output());
    two.liza_as("code-reviewer-2", &["submit-verdict", "t", "APPROVED", "ran it"]).ok();
    let runs = || fs::read_dir(one.root.join(".liza/integration-tests")).unwrap().count();
    let before = runs();
    one.liza(&["wt-merge", "t"]).ok();
    assert_eq!(runs(), before, "the same files have passed on the other machine");
    let verified = one.liza(&["verify", "--min", "off", "--json"]).result();
    assert_eq!(verified["classes"]["CONSISTENT"], 1, "{verified}");
}

/// Starts `liza` with a git that kills it once a command with this word has ended.
fn killed_after(machine: &TestProject, word: &str, arguments: &[&str]) -> Running {
    killed_after_as(machine, machine.program(), word, arguments)
}

fn killed_after_as(machine: &TestProject, mut program: Command, word: &str, arguments: &[&str]) -> Running {
    let path = std::env::var_os("PATH").unwrap();
    let real =
        std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.exists()).unwrap();
    let (folder, real) = (machine.home().join("killing"), real.display());
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *' {word} '*) '{real}' \"$@\"; kill -9 $PPID; exit 1;; esac\nexec '{real}' \"$@\"\n"
    );
    fs::write(folder.join("git"), text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.join("git"), mode).unwrap();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap();
    program.args(arguments).env("PATH", path);
    Running::start(machine, program)
}

impl Team {
    /// Every task is validated by this command, which passes when its sleep is ended; one task is merged, so that the project has
    /// a name.
    fn validated_by(command: &str) -> Self {
        let team = Self::new();
        team.approved("first");
        team.one.liza(&["wt-merge", "first"]).ok();
        team.one.liza(&["config", "validation", &serde_json::to_string(&[command]).unwrap()]).ok();
        team.two.liza(&["config", "--trust"]).ok();
        team.two.register("code-reviewer-2");
        team.two.git(&["branch", "integration"]);
        team
    }

    /// The other machine takes the review, unless its lease has ended already.
    fn release(&self, task: &str) {
        let _ = self.two.liza(&["release-claim", task, "--role", "reviewer", "--force"]);
    }

    /// The remote and the machine that merged last have each task once, with its receipts.
    fn check_merged(&self, on: &TestProject, tasks: usize) {
        let head = self.on_remote(&["rev-parse", "refs/heads/integration"]);
        let state = state(&self.one);
        assert_eq!(state.board.goal.ready().unwrap().integration_head.as_ref().unwrap().as_str(), head);
        assert_eq!(on.git(&["rev-parse", "integration"]), head);
        let verified = on.liza(&["verify", "--json"]).result();
        assert_eq!(verified["classes"]["CONSISTENT"], tasks, "{verified}");
        assert_eq!(verified["contradictions"], serde_json::json!([]), "{verified}");
    }
}

/// Killed between the statement and the record: the statement alone begins no review.
///
/// Covers: JU-03, JU-04
#[test]
fn needs_postgres_a_validation_that_is_stated_and_not_recorded_runs_again_on_another_machine() {
    let team = Team::validated_by("test -f t.txt");
    team.submitted("t");
    let mut killed = killed_after(&team.one, "fast-import", &["claim-review", "t", "code-reviewer-1"]);
    assert_eq!(killed.wait(), -1, "{}", killed.output());
    assert_eq!(team.one.record("t").validated, None);
    team.release("t");
    team.two.liza(&["claim-review", "t", "code-reviewer-2"]).ok();
    assert_eq!(fs::read_dir(team.two.root.join(".liza/integration-tests")).unwrap().count(), 1, "it ran");
    team.two.liza_as("code-reviewer-2", &["submit-verdict", "t", "APPROVED", "ran it"]).ok();
    team.one.liza(&["wt-merge", "t"]).ok();
    team.check_merged(&team.one, 2);
}

/// Killed between the statement and the record, on a machine on which the command fails: the other machine, on which it
/// passes, does not decide alone.
///
/// Covers: JU-03, JU-04
#[test]
fn needs_postgres_machines_that_disagree_about_a_commit_ask_the_human() {
    let team = Team::validated_by("test -d specs");
    let (one, two) = (&team.one, &team.two);
    one.add_task("t");
    let command = format!("case $PWD in {}/*) exit 1;; esac", one.root.display());
    one.liza(&["edit-task", "t", "--validate", &command]).ok();
    team.submit("t");
    let mut killed = killed_after(one, "push", &["claim-review", "t", "code-reviewer-1"]);
    assert_eq!(killed.wait(), -1, "{}", killed.output());
    assert_eq!(one.record("t").validated, None);
    team.release("t");
    let error = two.liza(&["claim-review", "t", "code-reviewer-2", "--json"]).refused(1, "validation_held");
    assert!(error["message"].as_str().unwrap().contains("and failed on another machine"), "{error}");
    assert_eq!((one.status("t"), one.record("t").reviewing_by), ("READY_FOR_REVIEW", None));
    assert!(one.liza(&["status"]).ok().contains("VALIDATION HELD"));
    two.liza(&["retry-validation", "t"]).ok();
    two.liza(&["claim-review", "t", "code-reviewer-2"]).ok();
    two.liza_as("code-reviewer-2", &["submit-verdict", "t", "APPROVED", "ran it"]).ok();
    two.liza(&["wt-merge", "t"]).ok();
    team.check_merged(two, 2);
}

/// Under a pause the result is recorded and no session begins; then the machine is gone.
///
/// Covers: JU-03, JU-04
#[test]
fn needs_postgres_a_validation_that_is_recorded_is_enough_for_another_machine() {
    let sleep = own_sleep(9);
    let team = Team::validated_by(&format!("test ! -f t.txt || {sleep}; true"));
    let (one, two) = (&team.one, &team.two);
    team.submitted("t");
    let mut claiming = Running::liza(one, &["claim-review", "t", "code-reviewer-1"]);
    wait_for("the command", || is_running(&sleep).then_some(()));
    one.liza(&["pause"]).ok();
    end(&sleep);
    assert_ne!(claiming.wait(), 0);
    assert_eq!(one.record("t").validated.unwrap().result.to_string(), "green");
    two.liza(&["resume"]).ok();
    two.liza(&["claim-review", "t", "code-reviewer-2"]).ok();
    two.liza_as("code-reviewer-2", &["submit-verdict", "t", "APPROVED", "read it"]).ok();
    two.liza(&["wt-merge", "t"]).ok();
    assert!(!two.root.join(".liza/integration-tests").exists(), "nothing ran there");
    team.check_merged(two, 2);
}

/// Each approval is of another machine; the first one dies after its own.
///
/// Covers: JU-04, JU-09
#[test]
fn needs_postgres_the_second_approval_rests_on_the_validation_of_another_machine() {
    let team = Team::validated_by("test -d specs");
    let (one, two) = (&team.one, &team.two);
    one.add_task("t");
    one.liza(&["edit-task", "t", "--impact", "high"]).ok();
    team.submit("t");
    one.liza(&["claim-review", "t", "code-reviewer-1"]).ok();
    one.liza_as("code-reviewer-1", &["submit-verdict", "t", "APPROVED", "ran it"]).ok();
    assert_eq!(one.status("t"), "READY_FOR_REVIEW");
    two.liza(&["claim-review", "t", "code-reviewer-2"]).ok();
    assert!(!two.root.join(".liza/integration-tests").exists(), "it uses the first one's receipt");
    two.liza_as("code-reviewer-2", &["submit-verdict", "t", "APPROVED", "ran it too"]).ok();
    two.liza(&["wt-merge", "t"]).ok();
    team.check_merged(two, 2);
}

/// Killed between the statement of the approval and its record.
///
/// Covers: JU-04, MM-07
#[test]
fn needs_postgres_an_approval_that_is_stated_and_not_recorded_is_none() {
    let team = Team::validated_by("test -f t.txt");
    team.submitted("t");
    team.one.liza(&["claim-review", "t", "code-reviewer-1"]).ok();
    let words = ["submit-verdict", "t", "APPROVED", "ran it"];
    let mut program = team.one.program();
    program.env("LIZA_AGENT_ID", "code-reviewer-1");
    let mut killed = killed_after_as(&team.one, program, "push", &words);
    assert_eq!(killed.wait(), -1, "{}", killed.output());
    assert_eq!(team.one.status("t"), "READY_FOR_REVIEW");
    team.two.liza(&["wt-merge", "t", "--json"]).refused(1, "wrong_status");
    team.release("t");
    team.two.liza(&["claim-review", "t", "code-reviewer-2"]).ok();
    team.two.liza_as("code-reviewer-2", &["submit-verdict", "t", "REJECTED", "no"]).ok();
    assert_eq!(team.one.status("t"), "REJECTED");
    team.check_merged(&team.one, 1);
}

/// Killed while the commands run on the merged files, and again when the merge is published and not recorded.
///
/// Covers: JU-03, JU-05, MM-07
#[test]
fn needs_postgres_a_merge_with_commands_that_is_killed_on_one_machine_ends_on_another() {
    let sleep = own_sleep(8);
    let team = Team::validated_by(&format!("test ! -f one.txt || test ! -f two.txt || {sleep}; true"));
    let (one, two) = (&team.one, &team.two);
    for task in ["one", "two"] {
        team.approved(task);
    }
    // Their merge is published by a machine that dies before it records it.
    let mut killed = killed_after(one, "push", &["wt-merge", "one"]);
    assert_eq!(killed.wait(), -1, "{}", killed.output());
    assert_eq!(one.status("one"), "APPROVED");
    let mut killed = Running::liza(one, &["wt-merge", "two"]);
    wait_for("the command on the merged files", || is_running(&sleep).then_some(()));
    assert_eq!(one.status("one"), "MERGED", "the next merge has found it");
    killed.kill();
    wait_for("its end", || (!is_running(&sleep)).then_some(()));
    assert_eq!(one.status("two"), "APPROVED");
    let mut merging = Running::liza(two, &["wt-merge", "two"]);
    wait_for("the command there", || is_running(&sleep).then_some(()));
    end(&sleep);
    assert_eq!(merging.wait(), 0, "{}", merging.output());
    assert_eq!(one.status("two"), "MERGED");
    team.check_merged(two, 3);
}

/// Covers: MM-07
#[test]
fn needs_postgres_diff_shows_what_another_machine_has_made() {
    let team = Team::new();
    let two = &team.two;
    let head = team.submitted("one");
    assert!(!has(two, &head));
    assert!(two.liza(&["diff", "one"]).ok().contains("the work on one"));
    assert!(has(two, &head), "it was fetched");
    team.one.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    team.one.liza_as("code-reviewer-1", &["submit-verdict", "one", "APPROVED"]).ok();
    team.one.liza(&["wt-merge", "one"]).ok();
    let merged = team.on_remote(&["rev-parse", "refs/heads/integration"]);
    assert!(!has(two, &merged));
    // Its own branch is behind, and stays where it is.
    two.git(&["branch", "integration"]);
    let before = two.git(&["rev-parse", "integration"]);
    assert!(two.liza(&["diff", "one"]).ok().contains("the work on one"));
    assert!(has(two, &merged));
    assert!(two.liza(&["diff"]).ok().contains("the work on one"));
    assert_eq!(two.git(&["rev-parse", "integration"]), before);
}

/// Covers: MM-07
#[test]
fn needs_postgres_a_worktree_is_made_from_what_another_machine_has_handed_off() {
    let team = Team::new();
    let head = team.worked_on("one");
    assert_eq!(team.on_remote(&["for-each-ref", "refs/liza/task"]), "");
    let words = ["handoff", "one", "--summary", "half done", "--next-action", "the rest"];
    team.one.liza_as("coder-1", &words).ok();
    assert!(team.on_remote(&["for-each-ref", "refs/liza/task"]).contains(&head), "a handoff sends the work");
    assert!(team.two.liza(&["diff", "one"]).ok().contains("the work on one"));
    team.two.liza(&["wt-create", "one"]).ok();
    assert_eq!(team.two.git_at(&team.two.tree("one"), &["rev-parse", "HEAD"]), head);
}

/// Covers: MM-07
#[test]
fn needs_postgres_a_machine_that_is_behind_does_not_have_the_result() {
    let team = Team::new();
    let (one, two) = (&team.one, &team.two);
    two.git(&["branch", "integration"]);
    team.approved("one");
    one.liza(&["wt-merge", "one"]).ok();
    one.liza(&["goal", "complete"]).ok();
    for machine in [one, two] {
        let page = machine.liza(&["status"]).ok().to_owned();
        assert!(page.contains("The goal is reached") && !page.contains("you have its result"), "{page}");
    }
    two.liza(&["finish", "--merge"]).ok();
    assert_eq!(fs::read_to_string(two.root.join("one.txt")).unwrap(), "the work on one\n");
    assert!(two.liza(&["status"]).ok().contains("you have its result"));
}

/// Makes every push to the branch wait until two of them have come.
fn meet(bare: &Path) {
    let hook = bare.join("hooks/pre-receive");
    let text = "#!/bin/sh\nwhile read old new ref; do test $ref = refs/heads/integration && meets=yes; done\n\
        test -z \"$meets\" && exit 0\ntouch here-$$; n=0\n\
        while [ $(ls here-* | wc -l) -lt 2 ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done\n";
    fs::write(&hook, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&hook, mode).unwrap();
}

/// Covers: MM-07, MM-11
#[test]
fn needs_postgres_two_machines_merge_at_the_same_moment() {
    let team = Team::new();
    let (one, two) = (team.approved("one"), team.approved("two"));
    team.two.git(&["branch", "integration"]);
    meet(&team.bare());
    let mut first = Running::liza(&team.one, &["wt-merge", "one"]);
    let mut second = Running::liza(&team.two, &["wt-merge", "two"]);
    let ended = (first.wait(), second.wait());
    assert_eq!(ended, (0, 0), "{}\n{}", first.output(), second.output());
    let met = fs::read_dir(team.bare()).unwrap().flatten();
    let met = met.filter(|entry| entry.file_name().to_string_lossy().starts_with("here-")).count();
    assert!(met >= 3, "both pushed at once, and the slower one again: {met}");
    let head = team.on_remote(&["rev-parse", "refs/heads/integration"]);
    let state = crate::machine::state(&team.one);
    assert_eq!(state.board.goal.ready().unwrap().integration_head.as_ref().unwrap().as_str(), head);
    for commit in [one, two] {
        team.on_remote(&["merge-base", "--is-ancestor", &commit, &head]);
    }
    for task in ["one", "two"] {
        assert_eq!(team.one.status(task), "MERGED");
    }
}

/// Covers: AX-17
#[test]
fn needs_postgres_a_task_is_claimed_on_the_machine_of_its_coder() {
    let team = Team::new();
    team.one.add_task("hello");
    let machine = state(&team.one).board.agents.ready().unwrap()[0].machine.clone().unwrap();
    let error = team.two.liza(&["claim-task", "hello", "coder-1", "--json"]).refused(1, "other_machine");
    assert!(error["message"].as_str().unwrap().contains(&machine), "{error}");
    assert!(!team.two.tree("hello").exists());
    team.one.liza(&["claim-task", "hello", "coder-1"]).ok();
}
