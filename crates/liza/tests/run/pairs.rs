//! Pairs of the trial with real processes: supervisors, sessions, git and commands. Each has the task, the fault and the dice of one seed, and
//! must end as the same pair does in memory.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use liza_core::model::{AgentId, EventName, HistoryEvent, Role, Status};
use liza_testkit::evidence::{real_runs, tried};
use liza_trial::arms::{Arm, Rates, Setting};
use liza_trial::corpus::Language;
use liza_trial::dice::{Dice, Die};
use liza_trial::mutants::{Material, material, mutants};
use liza_trial::scorecard::REAL_PAIRS;
use liza_trial::trial::run_pair;
use liza_trial::work::{Coder, Content, Flaw};
use serde_json::{Value, json};

use crate::support::TestProject;
use crate::support::process::{Running, wait_up_to};

/// More false alarms than in the middle of the grid, so that few pairs have every kind of rework.
const RATES: Rates = Rates { catch: 0.5, false_alarm: 0.2, blindness: 0.25 };
/// The most submissions of a pair.
const SUBMISSIONS: usize = 10;

/// The figures by which a pair is compared.
#[derive(Debug, PartialEq, Eq)]
struct End {
    merged: bool,
    /// The hidden tests fail on what is merged.
    defective: bool,
    sessions: u32,
    found_by_tests: bool,
}

/// One pair: its dice as the scenes of a playbook.
struct Pair {
    task: String,
    material: Material,
    submissions: Vec<String>,
    /// For each review, whether the dice reject.
    rejections: Vec<bool>,
    in_memory: End,
}

impl Pair {
    fn new(seed: u64, all: &[Material]) -> Self {
        let dice = Dice { seed };
        let mut coder = Coder::new(dice, all, RATES, None).unwrap();
        let (mut submissions, mut rejections) = (Vec::new(), Vec::new());
        let mut content = coder.first(None);
        while submissions.len() < SUBMISSIONS {
            submissions.push(text(coder.material, &content, submissions.len()));
            if !content.is_red() {
                let throw = u32::try_from(rejections.len()).unwrap() + 1;
                rejections.push(content.is_rejected(RATES, false, dice.roll(Die::Review(0), throw)));
                if rejections.last() == Some(&false) {
                    break;
                }
            }
            content = coder.rework(content);
        }
        let outcome = run_pair(&Setting::dice(Arm::Gate, RATES), all, seed, 0);
        assert_eq!(outcome.faults, Vec::<String>::new(), "seed {seed}");
        let in_memory = End {
            merged: outcome.merged,
            defective: outcome.merged && outcome.defective,
            sessions: outcome.sessions,
            found_by_tests: outcome.found_by_tests,
        };
        let material = coder.material.clone();
        Self { task: format!("pair-{seed}"), material, submissions, rejections, in_memory }
    }

    fn file(&self) -> String {
        format!("{}.sh", self.task)
    }

    /// A script that fails with one of these tests. A mutant may never end.
    fn script(&self, tests: &[String]) -> String {
        let tests: Vec<String> = tests.iter().map(|test| format!("( {test} ) || exit 1\n")).collect();
        format!("ulimit -t 2\n. ./{}\n{}", self.file(), tests.concat())
    }

    fn coder_scenes(&self) -> Vec<Value> {
        let scene = |(at, text): (usize, &String)| {
            let plan = json!({"intent": "do it", "validation": "its tests", "files": [self.file()]});
            json!({"when": {"task": self.task, "session": at + 1}, "do": [
                {"pre-check": plan}, {"write": {"path": self.file(), "text": text}}, {"commit": "the function"}, "submit",
            ]})
        };
        self.submissions.iter().enumerate().map(scene).collect()
    }

    fn reviewer_scenes(&self) -> Vec<Value> {
        let scene = |(at, rejects): (usize, &bool)| {
            let blocker = json!({"at": format!("{}:1", self.file()), "issue": "it is wrong"});
            let step = match rejects {
                true => json!({"reject": {"blockers": [blocker], "overall": "It is wrong."}}),
                false => json!("approve"),
            };
            json!({"when": {"task": self.task, "session": at + 1}, "do": [step]})
        };
        self.rejections.iter().enumerate().map(scene).collect()
    }

    /// Its end with real processes.
    fn end(&self, project: &TestProject) -> End {
        let record = project.record(&self.task);
        let events = || record.history.iter().flatten();
        let by_person_or_agent = |event: &&HistoryEvent| {
            event
                .agent
                .as_ref()
                .is_some_and(|agent| agent.parse::<AgentId>().is_ok_and(|id| id.role() == Role::CodeReviewer))
        };
        let rejected = events().filter(|event| event.is(EventName::Rejected));
        let merged = record.status == Some(Status::Merged);
        End {
            merged,
            defective: merged && !self.passes_hidden(project),
            sessions: u32::try_from(events().filter(|event| event.is(EventName::SessionEnded)).count())
                .unwrap(),
            found_by_tests: rejected.filter(|event| !by_person_or_agent(event)).count() > 0,
        }
    }

    fn passes_hidden(&self, project: &TestProject) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let code = project.git(&["show", &format!("integration:{}", self.file())]);
        fs::write(folder.path().join(self.file()), format!("{code}\n")).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.script(&self.material.task.hidden)]).current_dir(folder.path());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }
}

/// A submission as a file; no two of a pair are the same commit.
fn text(material: &Material, content: &Content, number: usize) -> String {
    let patch = match content.defect.map(|defect| defect.flaw) {
        None => material.task.patch.clone(),
        Some(Flaw::Mutant(mutant)) => mutants(&material.task.patch)[mutant].clone(),
        Some(flaw) => panic!("without a script there is no {flaw:?}"),
    };
    format!("# Submission {}.\n{patch}", number + 1)
}

/// A project with one task for each pair, a coder and a code reviewer at work.
fn run(pairs: &[Pair]) -> TestProject {
    let project = TestProject::bare();
    for pair in pairs {
        project.write(&format!("tests/{}.sh", pair.task), &pair.script(&pair.material.task.visible));
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "the tests"]);
    project.liza(&["init", "Write functions"]).ok();
    for pair in pairs {
        let (scope, validate) = (format!("only {}", pair.file()), format!("sh tests/{}.sh", pair.task));
        let words = [
            "add-task",
            "--id",
            &pair.task,
            "--desc",
            &pair.material.task.about,
            "--spec",
            "specs/vision.md",
        ];
        let more = ["--done", "its tests pass", "--scope", &scope, "--validate", &validate];
        project.liza(&[&words[..], &more].concat()).ok();
    }
    let scenes = |of: fn(&Pair) -> Vec<Value>| pairs.iter().flat_map(of).collect::<Vec<_>>();
    let playbook = json!({"coder": scenes(Pair::coder_scenes), "reviewer": scenes(Pair::reviewer_scenes)});
    let path = project.home().join("playbook.yaml");
    fs::write(&path, playbook.to_string()).unwrap();
    let start = |role: &str| {
        let mut program = project.program();
        program.args(["agent", role, "--cli", "rehearsal"]).env("LIZA_PLAYBOOK", &path);
        Running::start(&project, program)
    };
    let mut agents = [start("coder"), start("code-reviewer")];
    // The log is cheaper to read than the blackboard. A task that waits for a person has ended too.
    let is_done = || {
        let log = project.log();
        let ended = ["action: merged", "action: blocked"].map(|action| log.matches(action).count());
        (ended.iter().sum::<usize>() == pairs.len()).then_some(())
    };
    let done = wait_up_to(Duration::from_secs(60 + 20 * pairs.len() as u64), is_done);
    agents.iter_mut().for_each(Running::stop);
    assert!(done.is_some(), "{}\n{}", agents[0].output(), agents[1].output());
    project
}

/// Three that are approved at once, after a red test and after a needless rejection; as many as `LIZA_RUNS` says, 300 in `just full`.
///
/// Covers: TR-01
#[test]
fn a_pair_with_real_processes_ends_as_it_does_in_memory() {
    let all: Vec<Material> =
        material().into_iter().filter(|material| material.task.language == Language::Shell).collect();
    let runs = real_runs();
    let every = (1..=300).map(|seed| Pair::new(seed, &all));
    let mut kinds: Vec<(usize, bool)> = Vec::new();
    let mut is_first = |pair: &Pair| {
        let kind = (pair.rejections.len().min(2), pair.in_memory.found_by_tests);
        let is_new = kind != (2, true) && !kinds.contains(&kind);
        kinds.push(kind);
        is_new
    };
    let pairs: Vec<Pair> = match runs {
        Some(runs) => every.take(runs).collect(),
        None => every.filter(|pair| is_first(pair)).collect(),
    };
    assert!(runs.is_some() || pairs.len() == 3, "{}", pairs.len());
    let project = run(&pairs);
    for pair in &pairs {
        assert_eq!(pair.end(&project), pair.in_memory, "{}: {:?}", pair.task, pair.rejections);
    }
    tried(REAL_PAIRS, pairs.len());
}
