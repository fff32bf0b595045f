//! The commits of a task on their way to the remote: one sender at a time, and what the remote has decides.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use liza_core::model::{AgentId, Generation};
use liza_team::lifecycle::take_new_commits;
use liza_team::project::Project;

use crate::support::TestProject;
use crate::support::process::wait_up_to;

/// A project with a coder and a bare repository.
struct Shared {
    home: tempfile::TempDir,
    project: TestProject,
    generation: Generation,
}

impl Shared {
    fn new() -> Self {
        let (home, project) = (tempfile::tempdir().unwrap(), TestProject::bare());
        let bare = home.path().join("remote.git");
        project.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
        project.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
        project.liza(&["init", "Retry everything", "--remote", "origin"]).ok();
        project.register("coder-1");
        let coder: AgentId = "coder-1".parse().unwrap();
        let generation = project.snapshot().board.agents.ready().unwrap()[&coder].generation.unwrap();
        Self { home, project, generation }
    }

    fn bare(&self) -> PathBuf {
        self.home.path().join("remote.git")
    }

    /// The reference to the work on a task.
    fn name(&self, task: &str) -> String {
        format!("refs/liza/task/{task}/{}", self.generation)
    }

    fn on_remote(&self, task: &str) -> String {
        self.project.git_at(&self.bare(), &["for-each-ref", "--format=%(objectname)", &self.name(task)])
    }

    fn claim(&self, task: &str) -> PathBuf {
        self.project.add_task(task);
        self.project.liza(&["claim-task", task, "coder-1"]).ok();
        self.project.tree(task)
    }

    fn commit(&self, tree: &Path, text: &str) -> String {
        fs::write(tree.join("work.txt"), text).unwrap();
        self.project.git_at(tree, &["add", "-A"]);
        self.project.git_at(tree, &["commit", "-qm", text.trim()]);
        self.project.git_at(tree, &["rev-parse", "HEAD"])
    }

    fn hook(&self, text: &str) {
        let hook = self.bare().join("hooks/update");
        fs::write(&hook, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn heartbeat(&self, task: &str) {
        let project = Project::open(&self.project.root).unwrap();
        take_new_commits(&project, &[(task.parse().unwrap(), self.generation)]);
    }

    #[track_caller]
    fn submit(&self, task: &str, commit: &str) {
        self.project.liza_as("coder-1", &["submit-for-review", task, commit]).ok();
        assert_eq!(self.on_remote(task), commit, "what is submitted is what the remote has");
        assert!(!self.project.root.join(".liza/remote-problem.json").exists());
    }
}

/// Covers: AX-15
#[test]
fn what_a_session_has_pushed_itself_can_be_submitted() {
    let shared = Shared::new();
    let tree = shared.claim("one");
    let commit = shared.commit(&tree, "the work\n");
    let (bare, to) = (shared.bare(), format!("HEAD:{}", shared.name("one")));
    shared.project.git_at(&tree, &["push", "-q", bare.to_str().unwrap(), &to]);
    shared.submit("one", &commit);
}

/// The other push of the same commit arrives between the moment when ours is accepted and the one when it is carried out.
///
/// Covers: AX-15
#[test]
fn a_push_that_another_one_of_the_same_commit_overtakes_is_a_success() {
    let shared = Shared::new();
    let tree = shared.claim("one");
    let first = shared.commit(&tree, "half\n");
    shared.hook("git update-ref $1 $3");
    // The reference is created, then moved.
    shared.heartbeat("one");
    assert_eq!(shared.on_remote("one"), first);
    assert!(!shared.project.root.join(".liza/remote-problem.json").exists());
    let second = shared.commit(&tree, "all\n");
    shared.submit("one", &second);
}

/// Another push moves the reference first, to other work of the same coder.
///
/// Covers: AX-15
#[test]
fn a_push_that_older_work_overtakes_is_made_again() {
    let shared = Shared::new();
    let tree = shared.claim("one");
    let first = shared.commit(&tree, "half\n");
    shared.heartbeat("one");
    let second = shared.commit(&tree, "all\n");
    let third = shared.commit(&tree, "more\n");
    let name = shared.name("one");
    shared
        .project
        .git_at(&tree, &["push", "-q", shared.bare().to_str().unwrap(), &format!("{second}:refs/x/y")]);
    shared.hook(&format!("test -f met && exit 0; touch met; git update-ref {name} {second} {first}"));
    shared.submit("one", &third);
    assert!(shared.bare().join("met").exists());
}

/// Covers: AX-15
#[test]
fn a_push_that_the_remote_refuses_says_why() {
    let shared = Shared::new();
    let tree = shared.claim("one");
    let commit = shared.commit(&tree, "the work\n");
    shared.hook("echo no work today >&2; exit 1");
    let run = shared.project.liza_as("coder-1", &["submit-for-review", "one", &commit, "--json"]);
    let error = run.refused(3, "remote_refused");
    assert!(error["message"].as_str().unwrap().contains("no work today"), "{error}");
    assert_eq!(shared.on_remote("one"), "");
}

/// Covers: AX-15
#[test]
fn heartbeats_and_submissions_of_a_task_do_not_race() {
    let shared = Shared::new();
    // Each update is slow, so that others come while it is made.
    shared.hook("sleep 0.05");
    for round in 0..4 {
        let task = format!("task-{round}");
        let tree = shared.claim(&task);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        shared.heartbeat(&task);
                    }
                });
            }
            let commits: Vec<String> =
                (0..3).map(|part| shared.commit(&tree, &format!("{task}, part {part}\n"))).collect();
            let run =
                shared.project.liza_as("coder-1", &["submit-for-review", &task, commits.last().unwrap()]);
            is_over.store(true, Ordering::SeqCst);
            run.ok();
        });
        // A heartbeat that began before the submission has ended, too.
        let submitted = shared.project.record(&task).review_commit.unwrap();
        assert_eq!(shared.on_remote(&task), submitted.as_str(), "round {round}");
        assert!(!shared.project.root.join(".liza/remote-problem.json").exists(), "round {round}");
    }
}

/// The remote makes the heartbeat's update wait: until another one has moved the reference, at most two seconds.
///
/// Covers: AX-15
#[test]
fn a_submission_waits_for_the_heartbeat_that_is_sending_older_work() {
    let shared = Shared::new();
    let tree = shared.claim("one");
    let first = shared.commit(&tree, "half\n");
    shared.hook(&format!(
        "test $3 = {first} || exit 0; touch waits; n=0\n\
         while [ $n -lt 40 ] && ! git rev-parse -q --verify $1; do sleep 0.05; n=$((n + 1)); done"
    ));
    thread::scope(|scope| {
        let heartbeat = scope.spawn(|| shared.heartbeat("one"));
        let waits =
            wait_up_to(Duration::from_secs(30), || shared.bare().join("waits").exists().then_some(()));
        assert!(waits.is_some(), "the heartbeat sends");
        let second = shared.commit(&tree, "all\n");
        shared.submit("one", &second);
        heartbeat.join().unwrap();
        assert_eq!(shared.on_remote("one"), second, "older work has not taken its place");
    });
}
