//! What the git layer costs beside the bare git commands that it needs. Run by hand:
//! `cargo nextest run -p liza --run-ignored only --no-capture cost`.

use std::time::{Duration, Instant};

use liza::git::{Mode, Moved};
use liza_core::ids::Sha;

use crate::support::{TestRepo, integration, task, write};

const ROUNDS: usize = 15;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn timed(times: &mut Vec<Duration>, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    times.push(start.elapsed());
}

/// Times one round of bare commands and one of ours in turn, so that the machine's mood meets both.
#[test]
#[ignore = "measures; says nothing about right or wrong"]
fn claim_and_merge_beside_bare_git() {
    let test = TestRepo::new();
    for file in 0..5000 {
        write(
            &test.root.join(format!("src/{}/{file}.txt", file % 100)),
            &format!("file {file}\n").repeat(40),
        );
    }
    test.git(&["add", "."]);
    test.git(&["commit", "-qm", "many"]);
    test.git(&["branch", "-f", "integration"]);
    // As after a clone: thousands of loose objects would be all that is measured.
    test.git(&["repack", "-adq"]);
    let (mut bare_claim, mut our_claim) = (Vec::new(), Vec::new());
    let (mut bare_merge, mut our_merge) = (Vec::new(), Vec::new());
    let (mut bare_remove, mut our_remove) = (Vec::new(), Vec::new());
    let mut facts = Vec::new();
    for round in 0..ROUNDS {
        let bare = |arguments: &[&str]| {
            let call = test.program().call("bare", &test.root).args(arguments);
            call.text().unwrap()
        };
        let name = format!("bare-{round}");
        let (path, branch) = (format!(".worktrees/{name}"), format!("task/{name}"));
        let base = test.base();
        timed(&mut bare_claim, || {
            drop(bare(&["worktree", "add", "--quiet", "-b", &branch, &path, base.as_str()]))
        });
        let commit = test.commit(&test.root.join(&path), &format!("bare{round}"), "x");
        let head = test.advance(&format!("other{round}"), "y");
        timed(&mut bare_merge, || {
            bare(&["rev-parse", "--verify", "refs/heads/integration"]);
            let tree = bare(&["merge-tree", "--write-tree", head.as_str(), commit.as_str()]);
            let new =
                bare(&["commit-tree", &tree, "-p", head.as_str(), "-p", commit.as_str(), "-m", "merge"]);
            bare(&["update-ref", "refs/heads/integration", &new, head.as_str()]);
        });
        timed(&mut bare_remove, || {
            bare(&["worktree", "remove", &path]);
            bare(&["branch", "-D", &branch]);
        });
        let name = task(&format!("ours-{round}"));
        let base = test.base();
        timed(&mut our_claim, || {
            let repo = test.open(&test.root);
            assert!(repo.ensure(&name, &base, Mode::Keep, &integration()).unwrap().made);
        });
        let commit: Sha = test.commit(&test.repo.worktree_path(&name), &format!("ours{round}"), "x");
        test.advance(&format!("another{round}"), "y");
        timed(&mut facts, || assert!(test.repo.facts(&name, &base).unwrap().changes.is_empty()));
        timed(&mut our_merge, || {
            let merge = test.ready(name.as_str(), &commit);
            assert_eq!(test.repo.move_branch(&integration(), &merge, &name).unwrap(), Moved::Done);
        });
        timed(&mut our_remove, || {
            assert_eq!(test.repo.remove(&name, Some(&base), &integration()).unwrap().rescued, None);
        });
    }
    let line = |what: &str, bare: Vec<Duration>, ours: Vec<Duration>| {
        let (bare, ours) = (median(bare), median(ours));
        println!(
            "{what}: bare {bare:.1?}, ours {ours:.1?}, ratio {:.2}",
            ours.as_secs_f64() / bare.as_secs_f64()
        );
    };
    println!("facts: {:.1?}", median(facts));
    let together =
        |one: &[Duration], two: &[Duration]| one.iter().zip(two).map(|(one, two)| *one + *two).collect();
    line("merge+remove", together(&bare_merge, &bare_remove), together(&our_merge, &our_remove));
    line("claim", bare_claim, our_claim);
    line("merge", bare_merge, our_merge);
    line("remove", bare_remove, our_remove);
}
