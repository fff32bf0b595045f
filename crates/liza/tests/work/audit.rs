//! `liza verify` in a project: blackboard, log, archive, receipts and git are compared with each other. Each planted contradiction
//! is found with its kind and place, and nothing is found where there is none.

use std::collections::BTreeSet;
use std::fs;

use liza_core::audit::ContradictionKind;
use liza_git::RECEIPTS;
use serde_json::json;
use strum::IntoEnumIterator as _;

use crate::fixture::*;
use crate::support::TestProject;

/// A project with two merged tasks, an approved one and a claimed one, which is put back after each change.
struct Audited {
    project: TestProject,
    /// The approved commits of one, two and three.
    commits: [String; 3],
}

const OWN: [&str; 2] = [".liza", ".git"];

impl Audited {
    fn new() -> Self {
        let project = team();
        let merged = ["one", "two"].map(|task| {
            let commit = approved(&project, task);
            merge(&project, task).ok();
            commit
        });
        let [one, two] = merged;
        let three = approved(&project, "three");
        claimed(&project, "four", "coder-2");
        let audited = Self { project, commits: [one, two, three] };
        audited.copy(true);
        audited
    }

    fn copy(&self, save: bool) {
        let saved = self.project.home().join("saved");
        fs::create_dir_all(&saved).unwrap();
        let (from, to) = if save { (&self.project.root, &saved) } else { (&saved, &self.project.root) };
        for name in OWN {
            let _ = fs::remove_dir_all(to.join(name));
            let mut copy = self.project.command("cp");
            let copied = copy.current_dir("/").arg("-a").args([from.join(name), to.join(name)]).status();
            assert!(copied.unwrap().success());
        }
    }

    fn edit(&self, file: &str, edit: impl FnOnce(&str) -> String) {
        let old = self.project.read(file);
        let new = edit(&old);
        assert_ne!(old, new, "nothing was planted");
        self.project.write(file, &new);
    }

    fn board(&self, edit: impl FnOnce(&str) -> String) {
        self.edit(".liza/state.yaml", edit);
    }

    /// Changes the lines of one task.
    fn task(&self, task: &str, edit: impl Fn(&str) -> String) {
        self.board(|text| {
            let start = text.find(&format!("  - id: {task}\n")).unwrap();
            let length = text[start + 1..].find("\n  - id: ").or(text[start..].find("\nagents:")).unwrap();
            let end = start + length;
            format!("{}{}{}", &text[..start], edit(&text[start..end]), &text[end..])
        });
    }

    /// Changes the lines that contain all the words.
    fn lines(text: &str, words: &[&str], edit: impl Fn(&str) -> Option<String>) -> String {
        let line = |line: &str| match words.iter().all(|word| line.contains(word)) {
            true => edit(line),
            false => Some(line.to_owned()),
        };
        text.split_inclusive('\n').filter_map(line).collect()
    }

    fn log(&self, edit: impl Fn(&[&str]) -> Vec<String>) {
        self.edit(".liza/log.yaml", |text| edit(&text.split("\n\n").collect::<Vec<_>>()).join("\n\n"));
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.project.git(arguments)
    }

    /// Removes or replaces the review's receipt of a commit.
    fn receipt(&self, commit: &str, text: Option<&str>) {
        let names =
            self.git(&["ls-tree", "-r", "--name-only", RECEIPTS, &format!("about/{}/", &commit[..2])]);
        let about = names.lines().find(|name| name.contains(commit)).unwrap();
        let digest = about.rsplit('/').next().unwrap();
        let path = format!("{}/{digest}.json", &digest[..2]);
        self.git(&["read-tree", RECEIPTS]);
        self.git(&["rm", "-q", "--cached", &path]);
        if let Some(text) = text {
            self.project.write("text", text);
            let blob = self.git(&["hash-object", "-w", "text"]);
            self.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
        }
        let chain = self.git(&["commit-tree", &self.git(&["write-tree"]), "-p", RECEIPTS, "-m", "edited"]);
        self.git(&["update-ref", RECEIPTS, &chain]);
    }

    /// The kinds, places and tasks of what is found.
    fn found(&self) -> BTreeSet<(String, String, String)> {
        let run = self.project.liza(&["verify", "--json"]);
        let result = run.json()["result"].clone();
        let found = result["contradictions"].as_array().unwrap_or_else(|| panic!("{run:#?}"));
        assert!(run.code == 4 || found.is_empty(), "a contradiction is never OK: {run:#?}");
        let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        found.iter().map(|one| (text(one, "kind"), text(one, "place"), text(one, "task"))).collect()
    }
}

type Planted<'p> = (ContradictionKind, &'p str, &'p str, Box<dyn Fn(&Audited) + 'p>);

fn has(entry: &str, task: &str, action: &str) -> bool {
    entry.contains(&format!("task: {task}\n")) && entry.contains(&format!("action: {action}\n"))
}

fn without_event(audited: &Audited, task: &str, event: &str) {
    audited.task(task, |text| Audited::lines(text, &[&format!("event: {event},")], |_| None));
}

fn board_and_branch<'p>() -> Vec<Planted<'p>> {
    use ContradictionKind as Kind;
    vec![
        (
            Kind::InvalidBoard,
            "blackboard",
            "",
            Box::new(|audited| {
                audited.board(|text| text.replacen("    current_task: null", "    current_task: four", 1));
            }),
        ),
        (
            Kind::GoalHasOpenTask,
            "blackboard",
            "four",
            Box::new(|audited| {
                audited.board(|text| text.replacen("  status: IN_PROGRESS", "  status: COMPLETED", 1));
            }),
        ),
        (
            Kind::MergeLost,
            "branch",
            "two",
            Box::new(|audited| {
                audited.git(&["update-ref", "refs/heads/integration", "integration^1"]);
            }),
        ),
        (
            Kind::HeadOffBranch,
            "branch",
            "",
            Box::new(|audited| {
                audited.git(&["update-ref", "refs/heads/integration", "integration^1"]);
            }),
        ),
        (
            Kind::MergeLost,
            "branch",
            "two",
            Box::new(|audited| {
                audited.task("two", |text| {
                    Audited::lines(text, &["    merge_commit:"], |_| {
                        Some(format!("    merge_commit: \"{}\"\n", "1".repeat(40)))
                    })
                });
            }),
        ),
        (
            Kind::BaseOffBranch,
            "branch",
            "four",
            Box::new(|audited| {
                let base = &audited.commits[2];
                audited.task("four", |text| {
                    Audited::lines(text, &["base_commit:"], |_| {
                        Some(format!("    base_commit: \"{base}\"\n"))
                    })
                });
            }),
        ),
        (
            Kind::MergeNotRecorded,
            "branch",
            "two",
            Box::new(|audited| {
                audited.task("two", |text| text.replacen("status: MERGED", "status: BLOCKED", 1));
            }),
        ),
        // The blackboard is an older copy, and its task has other work since.
        (
            Kind::MergeNotRecorded,
            "branch",
            "three",
            Box::new(|audited| {
                move_branch_only(&audited.project, "three", &audited.commits[2]);
                audited
                    .task("three", |text| text.replacen("status: APPROVED", "status: READY_FOR_REVIEW", 1));
            }),
        ),
        (
            Kind::MergeOfOtherTask,
            "branch",
            "two",
            Box::new(|audited| {
                let other = audited.git(&["rev-parse", "integration^1"]);
                audited.task("two", |text| {
                    Audited::lines(text, &["    merge_commit:"], |_| {
                        Some(format!("    merge_commit: \"{other}\"\n"))
                    })
                });
            }),
        ),
        (
            Kind::OtherCommitApproved,
            "branch",
            "two",
            Box::new(|audited| {
                let [one, two, _] = &audited.commits;
                audited.task("two", |text| {
                    Audited::lines(text, &["event: approved,"], |line| Some(line.replace(two.as_str(), one)))
                });
            }),
        ),
        (
            Kind::OtherApprover,
            "branch",
            "two",
            Box::new(|audited| {
                audited.task("two", |text| {
                    Audited::lines(text, &["event: approved,"], |line| {
                        Some(line.replace("reviewer-1", "reviewer-2"))
                    })
                });
            }),
        ),
    ]
}

fn approvals_and_log<'p>() -> Vec<Planted<'p>> {
    use ContradictionKind as Kind;
    vec![
        (
            Kind::OwnApproval,
            "blackboard",
            "two",
            Box::new(|audited| {
                audited.task("two", |text| {
                    Audited::lines(text, &["event: approved,"], |line| {
                        Some(line.replace("code-reviewer-1", "coder-1"))
                    })
                });
            }),
        ),
        (
            Kind::NoApproval,
            "blackboard",
            "two",
            Box::new(|audited| without_event(audited, "two", "approved")),
        ),
        (
            Kind::NoApproval,
            "blackboard",
            "three",
            Box::new(|audited| without_event(audited, "three", "approved")),
        ),
        (
            Kind::ApprovedAfterMerge,
            "blackboard",
            "two",
            Box::new(|audited| {
                audited.task("two", |text| {
                    Audited::lines(text, &["event: approved,"], |line| {
                        Some(line.replace("time: 20", "time: 21"))
                    })
                });
            }),
        ),
        (
            Kind::NotLogged,
            "log",
            "two",
            Box::new(|audited| {
                audited.log(|entries| {
                    entries
                        .iter()
                        .filter(|entry| !has(entry, "two", "merged"))
                        .map(ToString::to_string)
                        .collect()
                });
            }),
        ),
        // An entry that was changed is missing under its old words.
        (
            Kind::NotLogged,
            "log",
            "two",
            Box::new(|audited| {
                audited.log(|entries| {
                    let edit = |entry: &&str| match has(entry, "two", "approved") {
                        true => entry.replace("agent: code-reviewer-1", "agent: human"),
                        false => (*entry).to_owned(),
                    };
                    entries.iter().map(edit).collect()
                });
            }),
        ),
        (
            Kind::NotInHistory,
            "log",
            "two",
            Box::new(|audited| {
                audited.log(|entries| {
                    let edit = |entry: &&str| match has(entry, "two", "approved") {
                        true => entry.replace("action: approved", "action: rejected"),
                        false => (*entry).to_owned(),
                    };
                    entries.iter().map(edit).collect()
                });
            }),
        ),
        (
            Kind::LogAhead,
            "log",
            "",
            Box::new(|audited| {
                audited.board(|text| {
                    Audited::lines(text, &["revision: "], |line| {
                        Some(if line.starts_with("revision") {
                            "revision: 21\n".to_owned()
                        } else {
                            line.to_owned()
                        })
                    })
                });
            }),
        ),
        (
            Kind::LogCut,
            "log",
            "",
            Box::new(|audited| {
                audited.log(|entries| entries.iter().skip(8).map(ToString::to_string).collect());
            }),
        ),
    ]
}

fn archive_references_and_receipts<'p>() -> Vec<Planted<'p>> {
    use ContradictionKind as Kind;
    let archive = |audited: &Audited, entry: &str| {
        audited.board(|text| text.replacen("\nagents:", &format!("\narchived:\n  {entry}\nagents:"), 1));
    };
    vec![
        (Kind::ArchiveMissing, "archive", "old", Box::new(move |audited| archive(audited, "old: ABANDONED"))),
        (
            Kind::ArchiveDiffers,
            "archive",
            "old",
            Box::new(move |audited| {
                archive(audited, "old: MERGED");
                audited.project.write(".liza/archive/old.yaml", "id: old\nstatus: ABANDONED\n");
            }),
        ),
        (
            Kind::ArchivedAndOpen,
            "archive",
            "four",
            Box::new(move |audited| archive(audited, "four: ABANDONED")),
        ),
        (
            Kind::ReferenceElsewhere,
            "reference",
            "two",
            Box::new(|audited| {
                audited.git(&["update-ref", "refs/liza/merged/two", "integration^1"]);
            }),
        ),
        (
            Kind::ReceiptEdited,
            "receipts",
            "",
            Box::new(|audited| audited.receipt(&audited.commits[2], Some("{}"))),
        ),
        (
            Kind::ReceiptMissing,
            "receipts",
            "three",
            Box::new(|audited| audited.receipt(&audited.commits[2], None)),
        ),
        (
            Kind::ApprovalNotRecorded,
            "receipts",
            "two",
            Box::new(|audited| {
                without_event(audited, "two", "approved");
            }),
        ),
    ]
}

/// Covers: PV-04
#[test]
fn each_planted_contradiction_is_found_with_its_kind_and_place() {
    let audited = Audited::new();
    assert_eq!(audited.found(), BTreeSet::new(), "a sane project has none");
    let mut seen = BTreeSet::new();
    let planted = [board_and_branch(), approvals_and_log(), archive_references_and_receipts()];
    for (kind, place, task, plant) in planted.into_iter().flatten() {
        plant(&audited);
        let (found, wanted) = (audited.found(), (kind.to_string(), place.to_owned(), task.to_owned()));
        assert!(found.contains(&wanted), "{wanted:?} is not in {found:?}");
        seen.insert(kind);
        audited.copy(false);
    }
    assert_eq!(seen, ContradictionKind::iter().collect(), "each kind is planted");
    assert_eq!(audited.found(), BTreeSet::new());
}

/// Covers: PV-04
#[test]
fn what_the_human_accepted_and_what_a_crash_left_is_no_contradiction() {
    let project = team();
    approved(&project, "one");
    merge(&project, "one").ok();
    // A merge that is stated and not recorded: recover records it.
    let two = approved(&project, "two");
    move_branch_only(&project, "two", &two);
    let none = |project: &TestProject| {
        let result = project.liza(&["verify", "--json"]).json()["result"].clone();
        assert_eq!(result["contradictions"], json!([]), "{result}");
    };
    none(&project);
    project.liza(&["recover"]).ok();
    // Rejected, blocked and conflicting work, and what the human accepted.
    rejected(&project, "three");
    conflicted(&project, "four");
    none(&project);
    let run = project.liza(&["verify", "integration~1", "--json"]).json();
    assert_eq!(run["result"]["contradictions"], json!([]), "a part of the branch is not compared: {run}");
}
