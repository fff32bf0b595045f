//! `liza verify`: honest histories verify in a clone without a blackboard, and each kind of tampering gets its class.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use liza_git::RECEIPTS;
use liza_ids::{Digest, Sha};
use liza_receipts::{LIMITS, Maker, Merge, Predicate, Purpose, Review, ReviewVerdict, Statement};
use serde_json::Value;

use crate::fixture::*;
use crate::support::{Run, TestProject};

/// A copy of a project without its blackboard, in which a test can change everything.
pub(crate) struct Clone<'p> {
    project: &'p TestProject,
    root: PathBuf,
}

impl<'p> Clone<'p> {
    pub(crate) fn of(project: &'p TestProject) -> Self {
        let root = project.home().join("clone");
        let _ = fs::remove_dir_all(&root);
        let mut copy = project.command("cp");
        assert!(copy.current_dir("/").arg("-a").args([&project.root, &root]).status().unwrap().success());
        fs::remove_dir_all(root.join(".liza")).unwrap();
        fs::remove_dir_all(root.join(".git/liza")).unwrap();
        Self { project, root }
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.project.git_at(&self.root, arguments)
    }

    pub(crate) fn verify(&self, more: &[&str]) -> Run {
        verify_in(self.project, &self.root, more)
    }

    /// The class of the newest commit, and the reason.
    #[track_caller]
    fn class(&self) -> (String, String) {
        newest(&self.verify(&[]))
    }

    /// Replaces the newest commit by one with this message, tree and these parents.
    fn amend(&self, edit: impl FnOnce(String) -> String, tree: Option<&str>, parents: Option<&[&str]>) {
        let message = edit(self.git(&["log", "-1", "--format=%B", "integration"]));
        let known = self.git(&["log", "-1", "--format=%P", "integration"]);
        let parents = parents.map_or_else(|| known.split(' ').collect::<Vec<_>>(), <[&str]>::to_vec);
        let tree = tree.map_or_else(|| self.git(&["rev-parse", "integration^{tree}"]), str::to_owned);
        let mut words = vec!["commit-tree", &tree];
        words.extend(parents.iter().flat_map(|parent| ["-p", parent]));
        words.extend(["-m", &message]);
        self.git(&["update-ref", "refs/heads/integration", &self.git(&words)]);
    }

    fn named(&self, revision: &str) -> Digest {
        let trailer = "--format=%(trailers:key=Liza-Statement,valueonly)";
        self.git(&["log", "-1", trailer, revision]).trim().parse().unwrap()
    }

    pub(crate) fn merge_statement(&self, revision: &str) -> (Statement, Merge) {
        let digest = self.named(revision);
        let text = self.repo().read_receipts(std::slice::from_ref(&digest)).unwrap().remove(&digest).unwrap();
        let statement = Statement::decode(&text).unwrap();
        let Predicate::Merge(merge) = statement.predicate.clone() else { panic!("{statement:?}") };
        (statement, merge)
    }

    pub(crate) fn repo(&self) -> liza_git::Repo {
        repository_at(self.project, &self.root)
    }

    /// Adds a statement, and lets the newest commit name it.
    pub(crate) fn forge(&self, statement: &Statement) {
        self.name_text(&statement.encode().unwrap());
    }

    fn name_text(&self, text: &[u8]) {
        let digest = self.repo().add_receipts(&[text.to_vec()]).unwrap().remove(0);
        self.amend(
            |message| message.replace(self.named("integration").as_str(), digest.as_str()),
            None,
            None,
        );
    }

    pub(crate) fn edit_receipt(&self, digest: &Digest, text: Option<&str>) {
        edit_receipt(self.project, &self.root, digest, text);
    }
}

fn verify_in(project: &TestProject, root: &Path, more: &[&str]) -> Run {
    let mut program = project.program();
    project.run(program.args(["verify", "--json"]).args(more).current_dir(root))
}

#[track_caller]
pub(crate) fn newest(run: &Run) -> (String, String) {
    let result = run.json()["result"].clone();
    let (newest, is_ok) = (&result["commits"][0], run.code == 0);
    let class = newest["class"].as_str().unwrap_or_else(|| panic!("{run:#?}"));
    let bad = ["MISSING", "UNKNOWN", "FOREIGN", "CONTRADICTED"].contains(&class);
    assert!(run.code == 0 || run.code == 4, "{run:#?}");
    assert!(!(is_ok && bad), "it is never OK: {run:#?}");
    (class.to_owned(), newest["why"].as_str().unwrap_or_default().to_owned())
}

fn classes(result: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let commits = result["commits"].as_array().unwrap();
    commits.iter().map(|one| (text(&one["class"]), text(&one["task"]))).collect()
}

fn on_main(project: &TestProject, file: &str) {
    project.write(file, "x\n");
    project.git(&["add", file]);
    project.git(&["commit", "-qm", "on main"]);
}

/// Covers: JU-05
#[test]
fn every_kind_of_commit_has_its_class_in_a_clone_without_a_blackboard() {
    let project = team();
    let one = approved(&project, "one");
    merge(&project, "one").ok();
    on_main(&project, "main.txt");
    project.liza(&["sync"]).ok();
    advance(&project, "by-hand.txt", "x\n");
    let two = approved(&project, "two");
    project.git(&["update-ref", "refs/heads/integration", &two]);
    project.liza(&["accept-integration"]).ok();
    merge(&project, "two").ok();
    let clone = Clone::of(&project);
    let run = clone.verify(&[]);
    let result = run.result();
    let expected = [
        ("CONSISTENT", "two"),
        ("ACCEPTED", ""),
        ("ACCEPTED", ""),
        ("SYNC", ""),
        ("CONSISTENT", "one"),
        ("BEFORE RECEIPTS", ""),
    ];
    let expected = expected.map(|(class, task)| (class.to_owned(), task.to_owned()));
    assert_eq!(classes(&result), expected, "{result}");
    assert_eq!((&result["signed"], result["note"].as_str()), (&false.into(), Some(LIMITS)));
    assert_eq!(project.git(&["merge-base", &one, "integration"]), one);
    // As text it says how far it goes, and never more than CONSISTENT.
    let mut program = project.program();
    let text = project.run(program.args(["audit"]).current_dir(&clone.root));
    assert!(text.ok().ends_with(&format!("{LIMITS}\n")), "{text:#?}");
    for word in ["SIGNED", "VERIFIED", "TRUSTED"] {
        assert!(!text.ok().contains(word), "{text:#?}");
    }
    let range = clone.verify(&["integration~2..integration"]).result();
    assert_eq!(classes(&range).len(), 2, "{range}");
    assert_eq!(classes(&clone.verify(&["integration~3"]).result()).len(), 3);
    // Main has no receipt, but Liza's branch says how much of it is older than the first one.
    let main = clone.verify(&["main"]).json()["result"].clone();
    let expected = ["FOREIGN", "BEFORE RECEIPTS"].map(|class| (class.to_owned(), String::new()));
    assert_eq!(classes(&main), expected, "{main}");
    clone.verify(&["nowhere"]).refused(1, "bad_range");
    // No receipt names a validation.
    let min = clone.verify(&["--min", "restricted"]);
    assert_eq!((min.code, newest(&min).0.as_str()), (4, "MISSING"));
    // In the project it also compares the blackboard.
    assert_eq!(project.liza(&["verify", "--json"]).result()["contradictions"], serde_json::json!([]));
}

/// Covers: JU-05
#[test]
fn a_plain_clone_says_what_to_fetch_and_a_shallow_one_what_it_cannot_know() {
    let project = team();
    for task in ["one", "two"] {
        approved(&project, task);
        merge(&project, task).ok();
    }
    let clone = project.home().join("plain");
    let from = format!("file://{}", project.root.display());
    project.git(&["clone", "-q", "-b", "integration", &from, clone.to_str().unwrap()]);
    let error = verify_in(&project, &clone, &[]).refused(1, "no_receipts");
    let line = format!("git fetch origin {RECEIPTS}:{RECEIPTS}");
    assert!(error["hint"].as_str().unwrap().contains(&line), "{error}");
    let result = verify_in(&project, &clone, &["--fetch"]).result();
    assert_eq!(result["classes"]["CONSISTENT"], 2, "{result}");
    let shallow = project.home().join("shallow");
    project.git(&["clone", "-q", "--depth", "1", "-b", "integration", &from, shallow.to_str().unwrap()]);
    let run = verify_in(&project, &shallow, &["--fetch"]);
    assert_eq!((run.code, newest(&run).0.as_str()), (4, "UNKNOWN"), "{run:#?}");
}

/// Covers: JU-04, JU-05
#[test]
fn each_kind_of_tampering_gets_its_class() {
    let project = team();
    for task in ["one", "two"] {
        approved(&project, task);
        merge(&project, task).ok();
    }
    let review = |clone: &Clone<'_>, revision: &str| clone.merge_statement(revision).1.evidence[0].clone();
    let merge_of = |clone: &Clone<'_>, edit: &dyn Fn(&mut Merge)| {
        let (statement, mut merge) = clone.merge_statement("integration");
        edit(&mut merge);
        Statement { predicate: Predicate::Merge(merge), ..statement }
    };
    let line = |message: String, key: &str, value: &str| {
        let lines = message.lines().map(|line| match line.split_once(": ") {
            Some((known, _)) if known == key => format!("{key}: {value}"),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let sha = |clone: &Clone<'_>, name: &str| clone.git(&["rev-parse", name]).parse::<Sha>().unwrap();
    let evil = |clone: &Clone<'_>| {
        fs::write(clone.root.join("evil.txt"), "x\n").unwrap();
        clone.git(&["read-tree", "integration"]);
        clone.git(&["add", "-f", "evil.txt"]);
        clone.git(&["write-tree"])
    };
    type Tampering<'t> = (&'t str, &'t str, Box<dyn Fn(&Clone<'_>) + 't>);
    let cases: Vec<Tampering<'_>> = vec![
        ("CONSISTENT", "", Box::new(|_| {})),
        (
            "CONTRADICTED",
            "was edited",
            Box::new(|clone| clone.edit_receipt(&clone.named("integration"), Some("{}"))),
        ),
        ("MISSING", "no receipt", Box::new(|clone| clone.edit_receipt(&clone.named("integration"), None))),
        (
            "CONTRADICTED",
            "was edited",
            Box::new(|clone| clone.edit_receipt(&review(clone, "integration"), Some("x"))),
        ),
        ("MISSING", "no receipt", Box::new(|clone| clone.edit_receipt(&review(clone, "integration"), None))),
        (
            "FOREIGN",
            "",
            Box::new(|clone| clone.amend(|_| "by hand".to_owned(), None, Some(&["integration"]))),
        ),
        (
            "FOREIGN",
            "names no statement",
            Box::new(|clone| {
                clone.amend(
                    |message| line(message, "Liza-Statement", "").replace("Liza-Statement: ", ""),
                    None,
                    None,
                )
            }),
        ),
        (
            "MISSING",
            "no receipt",
            Box::new(|clone| {
                clone.amend(|message| line(message, "Liza-Statement", &"0".repeat(64)), None, None)
            }),
        ),
        (
            "CONTRADICTED",
            "no digest",
            Box::new(|clone| clone.amend(|message| line(message, "Liza-Statement", "yes"), None, None)),
        ),
        (
            "CONTRADICTED",
            "another task",
            Box::new(|clone| {
                let other = clone.named("integration^1");
                clone.amend(|message| line(message, "Liza-Statement", other.as_str()), None, None);
            }),
        ),
        (
            "CONTRADICTED",
            "another task",
            Box::new(|clone| clone.amend(|message| line(message, "Liza-Task", "one"), None, None)),
        ),
        (
            "CONTRADICTED",
            "another commit",
            Box::new(|clone| {
                let other = sha(clone, "integration^1");
                clone.amend(|message| line(message, "Liza-Commit", other.as_str()), None, None);
            }),
        ),
        (
            "CONTRADICTED",
            "another commit",
            Box::new(|clone| {
                let (head, one) = (sha(clone, "integration^1"), sha(clone, "integration^1^2"));
                clone.amend(|message| message, None, Some(&[head.as_str(), one.as_str()]));
            }),
        ),
        (
            "CONTRADICTED",
            "not those of its statement",
            Box::new(|clone| clone.amend(|message| message, Some(&evil(clone)), None)),
        ),
        (
            "CONTRADICTED",
            "another head",
            Box::new(|clone| {
                let (head, two) = (sha(clone, "integration^1^1"), sha(clone, "integration^2"));
                clone.amend(|message| message, None, Some(&[head.as_str(), two.as_str()]));
            }),
        ),
        (
            "CONTRADICTED",
            "another head",
            Box::new(|clone| {
                let two = sha(clone, "integration^2");
                clone.amend(|message| message, None, Some(&["integration", two.as_str()]));
            }),
        ),
        (
            "CONTRADICTED",
            "another commit",
            Box::new(|clone| clone.amend(|message| message, None, Some(&["integration^1"]))),
        ),
        (
            "CONTRADICTED",
            "another project",
            Box::new(|clone| {
                let project = "f".repeat(32);
                clone.forge(&Statement { project, ..merge_of(clone, &|_| {}) });
            }),
        ),
        (
            "CONTRADICTED",
            "to other files",
            Box::new(|clone| {
                let tree = evil(clone);
                clone.forge(&merge_of(clone, &|merge| merge.tree = tree.parse().unwrap()));
                clone.amend(|message| message, Some(&tree), None);
            }),
        ),
        (
            "UNKNOWN",
            "not reproduced",
            Box::new(|clone| {
                let tree = evil(clone);
                clone.forge(&merge_of(clone, &|merge| {
                    merge.tree = tree.parse().unwrap();
                    merge.made_by.git = "9.9".to_owned();
                }));
                clone.amend(|message| message, Some(&tree), None);
            }),
        ),
        (
            "CONTRADICTED",
            "different reviewers",
            Box::new(|clone| {
                clone.amend(|message| line(message, "Approved-by", "code-reviewer-2"), None, None)
            }),
        ),
        (
            "CONTRADICTED",
            "something else",
            Box::new(|clone| {
                let other = review(clone, "integration^1");
                clone.forge(&merge_of(clone, &|merge| merge.evidence = vec![other.clone()]));
            }),
        ),
        (
            "MISSING",
            "review by code-reviewer-1",
            Box::new(|clone| clone.forge(&merge_of(clone, &|merge| merge.evidence.clear()))),
        ),
        (
            "CONTRADICTED",
            "something else",
            Box::new(|clone| {
                let digest = review(clone, "integration");
                let text = clone.repo().read_receipts(std::slice::from_ref(&digest)).unwrap().remove(&digest);
                let statement = Statement::decode(&text.unwrap()).unwrap();
                let Predicate::Review(review) = statement.predicate.clone() else { panic!("{statement:?}") };
                let predicate = Predicate::Review(Review { verdict: ReviewVerdict::Rejected, ..review });
                let rejected = Statement { predicate, ..statement }.encode().unwrap();
                let rejected = clone.repo().add_receipts(&[rejected]).unwrap();
                clone.forge(&merge_of(clone, &|merge| merge.evidence = rejected.clone()));
            }),
        ),
        (
            "CONTRADICTED",
            "is for sync",
            Box::new(|clone| clone.forge(&Statement { purpose: Purpose::Sync, ..merge_of(clone, &|_| {}) })),
        ),
        (
            "CONTRADICTED",
            "no merge",
            Box::new(|clone| {
                let other = review(clone, "integration");
                clone.amend(|message| line(message, "Liza-Statement", other.as_str()), None, None);
            }),
        ),
        (
            "CONTRADICTED",
            "another spelling",
            Box::new(|clone| {
                let text = merge_of(clone, &|_| {}).encode().unwrap();
                clone.name_text(&[text.as_slice(), b"\n"].concat());
            }),
        ),
        (
            "OVERRIDDEN",
            "without validation",
            Box::new(|clone| clone.forge(&merge_of(clone, &|merge| merge.without_validation = true))),
        ),
    ];
    let mut wrong = Vec::new();
    for (number, (class, why, tamper)) in cases.iter().enumerate() {
        let clone = Clone::of(&project);
        tamper(&clone);
        let found = clone.class();
        if found.0 != *class || !found.1.contains(why) {
            wrong.push(format!("case {number}: {found:?}, expected {class} {why}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(cases.len() > 20);
}

/// Covers: JU-05
#[test]
fn all_merges_of_random_runs_verify() {
    random_runs(1..=2);
}

/// Parts, because a test must end within minutes.
macro_rules! more_random_runs {
    ($($name:ident = $seeds:expr;)+) => {$(
        /// Covers: JU-05
        #[test]
        fn $name() {
            random_runs($seeds);
        }
    )+};
}

more_random_runs! {
    more_random_runs_1 = 3..=27;
    more_random_runs_2 = 28..=52;
    more_random_runs_3 = 53..=77;
    more_random_runs_4 = 78..=102;
    more_random_runs_5 = 103..=127;
    more_random_runs_6 = 128..=152;
    more_random_runs_7 = 153..=177;
    more_random_runs_8 = 178..=200;
}

fn random_runs(seeds: std::ops::RangeInclusive<u64>) {
    for seed in seeds {
        let project = team();
        let has_commands = seed % 2 == 0;
        if has_commands {
            project.liza(&["config", "validation", "[\"test -d specs\"]"]).ok();
        }
        let mut by_human = 0;
        let mut random: u64 = seed * 7919;
        let mut waiting: Vec<String> = Vec::new();
        for step in 0..8 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let task = format!("t{step}");
            match (random >> 33) % 6 {
                0 | 1 => {
                    approved(&project, &task);
                    merge(&project, &task).ok();
                }
                2 => {
                    approved(&project, &task);
                    waiting.push(task);
                }
                3 => {
                    on_main(&project, &format!("main-{step}.txt"));
                    project.liza(&["sync"]).ok();
                }
                4 => drop(advance(&project, &format!("hand-{step}.txt"), "x\n")),
                _ => {
                    submitted(&project, &task);
                    project.liza(&["submit-verdict", &task, "APPROVED"]).ok();
                    by_human += 1;
                    let commit = project.record(&task).review_commit.unwrap();
                    move_branch_only(&project, &task, commit.as_str());
                    // Killed before the record; its statement names no approval, so it is made again.
                    project.git(&["update-ref", "refs/heads/integration", "integration^1"]);
                    merge(&project, &task).ok();
                }
            }
        }
        for task in waiting {
            merge(&project, &task).ok();
        }
        let clone = Clone::of(&project);
        let merges = project.tasks_in(liza_core::model::Status::Merged).len();
        let consistent = |result: &Value| result["classes"]["CONSISTENT"].as_u64().unwrap_or(0);
        let result = clone.verify(&[]).result();
        assert_eq!(consistent(&result), merges as u64, "seed {seed}: {result}");
        // What a code reviewer approved has also passed its commands. The human's approval needs no validation.
        let validated = if has_commands { merges - by_human } else { 0 };
        let result = clone.verify(&["--min", "off"]).json()["result"].clone();
        assert_eq!(consistent(&result), validated as u64, "seed {seed}: {result}");
    }
}

/// A line of merges, each with the statements of its review and of itself, made by one process of git.
fn add_merges(project: &TestProject, number: usize) {
    let (repo, head) = (repository(project), tip(project, "integration"));
    let name = repo.project_name().unwrap();
    let mut git = project.command("git");
    git.args(["fast-import", "--quiet", "--force", "--date-format=now", "--cat-blob-fd=1"]);
    let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut ask = |question: String| {
        input.write_all(question.as_bytes()).unwrap();
        input.flush().unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        answer.split([' ', '\t', '\n']).find(|word| word.len() == 40).unwrap().parse::<Sha>().unwrap()
    };
    let made_by =
        Maker { git: repo.git().version().unwrap().to_string(), liza: "0.1.0".into(), machine: "one".into() };
    let (mut head, mut texts) = (head.parse::<Sha>().unwrap(), Vec::new());
    for n in 0..number {
        let (task, agent) = (format!("m{n}"), "code-reviewer-1".parse().unwrap());
        // Git knows its new commits by their marks only.
        let from = if n == 0 { head.to_string() } else { ":2".to_owned() };
        let who = "committer A <a@b> now\ndata";
        let text = format!("change {n}\n");
        let commit = ask(format!(
            "commit refs/work\nmark :1\n{who} 1\nx\nfrom {from}\nM 100644 inline d{}/f{}\ndata {}\n{text}\nget-mark :1\n",
            n % 10,
            n % 100,
            text.len()
        ));
        let tree = ask("ls :1 \"\"\n".to_owned());
        let state = |purpose, predicate| {
            let (project, task) = (name.clone(), Some(task.parse().unwrap()));
            Statement { project, task, purpose, predicate }.encode().unwrap()
        };
        let review = state(
            Purpose::Review,
            Predicate::Review(Review {
                agent,
                program: None,
                model: None,
                commit: commit.clone(),
                head: head.clone(),
                change: Digest::of(b""),
                verdict: ReviewVerdict::Approved,
                made_by: made_by.clone(),
            }),
        );
        let merge = state(
            Purpose::Merge,
            Predicate::Merge(Merge {
                tree,
                head: head.clone(),
                commit: commit.clone(),
                approved_by: Some(agent),
                without_validation: false,
                evidence: vec![Digest::of(&review)],
                made_by: made_by.clone(),
            }),
        );
        let message = format!(
            "Merge {task}\n\nLiza-Task: {task}\nLiza-Commit: {commit}\nApproved-by: {agent}\nLiza-Statement: {}\n",
            Digest::of(&merge)
        );
        head = ask(format!(
            "commit refs/heads/integration\nmark :2\n{who} {}\n{message}\nfrom {from}\nmerge :1\nM 040000 {} \"\"\nget-mark :2\n",
            message.len(),
            merge_tree(&merge)
        ));
        texts.extend([review, merge]);
    }
    drop((input, output));
    assert!(child.wait().unwrap().success());
    repo.add_receipts(&texts).unwrap();
}

/// The tree that a merge statement names.
fn merge_tree(text: &[u8]) -> Sha {
    let Predicate::Merge(merge) = Statement::decode(text).unwrap().predicate else { panic!("no merge") };
    merge.tree
}

/// Covers: JU-05
#[test]
fn thousands_of_merges_verify_in_seconds() {
    let (number, limit) = if std::env::var_os("LIZA_FULL").is_some() { (10_000, 60) } else { (300, 20) };
    let project = team();
    add_merges(&project, number);
    let clone = Clone::of(&project);
    let begin = Instant::now();
    let result = clone.verify(&[]).result();
    let took = begin.elapsed();
    eprintln!("{number} merges in {took:?}");
    assert_eq!(result["classes"]["CONSISTENT"], number);
    // Ten seconds for the optimized program; this one is not, and other tests run beside it.
    assert!(took < Duration::from_secs(limit), "{number} merges took {took:?}");
}
