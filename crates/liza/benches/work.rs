//! What a claim, a submission, the claim of a review and a merge cost beside the git commands by which a person would do
//! the same, in a repository of 5,000 files. No command validates the tasks.
//!
//! `cargo bench -p liza` prints one table. Both figures of a row come from the same run, in turn, so the ratios hold
//! on any machine. Never part of the tests: a busy machine is not a defect.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops at the first thing that is wrong"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use liza_core::model::Actor;
use liza_core::protocol::{AddTask, NewTask};
use liza_team::engine::Engine;
use liza_team::project::Project;
use support::TestProject;

const FILES: usize = 5_000;
const ROUNDS: usize = 15;

fn main() {
    println!("median in ms over {ROUNDS} rounds, {FILES} files; × is ours to bare git");
    println!("{:>6} {:>8} {:>10} {:>10} {:>6}", "tasks", "", "bare git", "liza", "×");
    let [few, many] = [30, 1_000].map(measure);
    println!("\nsubmit with 1,000 tasks / with 30 {:>6.2} (wanted: at most 1.2)", many / few);
}

/// Returns the median of a submission, in ms.
fn measure(tasks: usize) -> f64 {
    let project = repository();
    fill(&project, tasks - ROUNDS);
    let [mut claims, mut submits, mut reviews, mut merges] = [(); 4].map(|()| Rows::default());
    for round in 0..ROUNDS {
        let name = format!("bare-{round}");
        claims.bare.push(timed(|| bare_claim(&project, &name)));
        let commit = commit(&project, &name);
        submits.bare.push(timed(|| bare_submit(&project, &name)));
        reviews.bare.push(timed(|| bare_review(&project, &name, &commit)));
        advance(&project, &name);
        merges.bare.push(timed(|| bare_merge(&project, &name, &commit)));

        let name = format!("ours-{round}");
        project.add_task(&name);
        claims.ours.push(timed(|| _ = project.liza(&["claim-task", &name, "coder-1"]).ok()));
        let commit = self::commit(&project, &name);
        advance(&project, &name);
        // Neither the bare merge nor the advance is a merge of Liza.
        project.liza(&["accept-integration"]).ok();
        let submit = ["submit-for-review", &name, &commit];
        submits.ours.push(timed(|| _ = project.liza_as("coder-1", &submit).ok()));
        let review = ["claim-review", &name, "code-reviewer-1"];
        reviews.ours.push(timed(|| _ = project.liza(&review).ok()));
        project.liza_as("code-reviewer-1", &["submit-verdict", &name, "APPROVED"]).ok();
        // Its supervisor does so when the reviewer's session ends.
        std::fs::remove_dir_all(project.root.join(format!(".worktrees/.review-{name}"))).unwrap();
        merges.ours.push(timed(|| _ = project.liza(&["wt-merge", &name]).ok()));
    }
    claims.print(tasks, "claim");
    let submit = submits.print(tasks, "submit");
    reviews.print(tasks, "review");
    merges.print(tasks, "merge");
    submit
}

/// Tasks that lie about, written by the store itself to be quick.
fn fill(project: &TestProject, count: usize) {
    let opened = Project::open(&project.root).unwrap();
    for number in 0..count {
        let text = || Some("Some words about it".to_owned());
        let spec_ref = Some("specs/vision.md".to_owned());
        let new = NewTask {
            description: "Do it".to_owned(),
            spec_ref,
            done_when: text(),
            scope: text(),
            ..NewTask::default()
        };
        let command = AddTask { task: format!("other-{number}").parse().unwrap(), new };
        Engine::new(&opened, Actor::Human).execute(command).unwrap();
    }
}

/// A project of many files with a coder and a code reviewer, packed as after a clone.
fn repository() -> TestProject {
    let project = TestProject::bare();
    for file in 0..FILES {
        project.write(&format!("src/{}/{file}.txt", file % 100), &format!("file {file}\n").repeat(40));
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "many"]);
    project.git(&["repack", "-adq"]);
    project.liza(&["init", "Measure"]).ok();
    for agent in ["coder-1", "code-reviewer-1"] {
        project.register(agent);
        project.liza(&["heartbeat", agent, "--for", "36000"]).ok();
    }
    project
}

/// A repository of its own that borrows the project's objects, by hand.
fn bare_claim(project: &TestProject, name: &str) {
    let head = project.git(&["rev-parse", "--verify", "refs/heads/integration"]);
    let (branch, path) = (format!("task/{name}"), format!(".worktrees/{name}"));
    project.git(&["branch", &branch, &head]);
    project.git(&["init", "--quiet", &path]);
    project.write(&format!("{path}/.git/objects/info/alternates"), "../../../../.git/objects\n");
    project.git_at(&project.root.join(&path), &["checkout", "--quiet", "-b", &branch, &head]);
}

/// The commit is fetched, as a submission does: that is no part of the merge.
fn bare_submit(project: &TestProject, name: &str) {
    let path = project.root.join(".worktrees").join(name);
    let branch = format!("task/{name}");
    project.git(&["fetch", "--quiet", "--no-tags", path.to_str().unwrap(), &format!("{branch}:{branch}")]);
}

/// A checkout of exactly the commit, without a branch.
fn bare_review(project: &TestProject, name: &str, commit: &str) {
    let path = format!(".worktrees/.review-{name}");
    project.git(&["init", "--quiet", &path]);
    project.write(&format!("{path}/.git/objects/info/alternates"), "../../../../.git/objects\n");
    project.git_at(&project.root.join(&path), &["checkout", "--quiet", "--detach", commit]);
}

/// The commit is merged; then what the task leaves is looked at and removed. What was committed since the submission is
/// fetched first: here, nothing.
fn bare_merge(project: &TestProject, name: &str, commit: &str) {
    let path = project.root.join(".worktrees").join(name);
    let head = project.git(&["rev-parse", "--verify", "refs/heads/integration"]);
    let tree = project.git(&["merge-tree", "--write-tree", &head, commit]);
    let merged = project.git(&["commit-tree", &tree, "-p", &head, "-p", commit, "-m", "merge"]);
    project.git(&["update-ref", "refs/heads/integration", &merged, &head]);
    assert_eq!(project.git_at(&path, &["status", "--porcelain", "--ignored"]), "");
    project.git(&["fetch", "--quiet", "--no-tags", path.to_str().unwrap(), "refs/heads/*:refs/taken/*"]);
    std::fs::remove_dir_all(&path).unwrap();
    project.git(&["branch", "-qD", &format!("task/{name}")]);
}

fn commit(project: &TestProject, name: &str) -> String {
    let folder = project.root.join(".worktrees").join(name);
    project.write(&format!(".worktrees/{name}/work-{name}"), "done\n");
    project.git_at(&folder, &["add", "-A"]);
    project.git_at(&folder, &["commit", "-qm", name]);
    project.git_at(&folder, &["rev-parse", "HEAD"])
}

/// Somebody else's commit on the branch, so that a merge commit is needed.
fn advance(project: &TestProject, name: &str) {
    let head = project.git(&["rev-parse", "integration"]);
    let new = project.git(&["commit-tree", "integration^{tree}", "-p", &head, "-m", name]);
    project.git(&["update-ref", "refs/heads/integration", &new, &head]);
}

/// Begins with nothing left to write to the disk, so that nobody pays for what another has written.
fn timed(work: impl FnOnce()) -> Duration {
    rustix::fs::sync();
    let start = Instant::now();
    work();
    start.elapsed()
}

#[derive(Default)]
struct Rows {
    bare: Vec<Duration>,
    ours: Vec<Duration>,
}

impl Rows {
    /// Returns our median, in ms.
    fn print(mut self, tasks: usize, what: &str) -> f64 {
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times.get(times.len() / 2).expect("rounds").as_secs_f64() * 1000.0
        };
        let (bare, ours) = (median(&mut self.bare), median(&mut self.ours));
        println!("{tasks:>6} {what:>8} {bare:>10.1} {ours:>10.1} {:>6.2}", ours / bare);
        ours
    }
}
