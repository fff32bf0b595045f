//! The story of the demo, played to its end by a supervisor that is a loop in a test.

use std::collections::BTreeSet;

use liza_core::model::Status;
use liza_core::rules::triggers::planner_triggers;
use liza_team::run::playbook;

use crate::cast::{Player, ended};
use crate::support::TestProject;

/// More rounds than the story has.
const ROUNDS: usize = 20;

struct Team<'p> {
    project: &'p TestProject,
    planner: Player<'p>,
    coders: Vec<Player<'p>>,
    reviewer: Player<'p>,
    seen: BTreeSet<String>,
}

impl Team<'_> {
    fn in_status(&self, status: Status) -> Vec<String> {
        self.project.tasks_in(status)
    }

    fn plan(&mut self, playbook: &str) {
        self.planner.complete_sprint();
        let triggers = planner_triggers(&self.project.snapshot(), liza_team::project::now());
        let fresh = triggers.iter().filter(|trigger| self.seen.insert(trigger.key.clone())).count();
        if fresh > 0 {
            ended(&self.planner.plan(playbook), 42);
        }
    }

    fn code(&self, playbook: &str) {
        for status in [Status::Rejected, Status::IntegrationFailed, Status::Unclaimed] {
            for task in self.in_status(status) {
                // The first coder that may claim it does; a busy one or another task's coder is refused.
                let _ = self.coders.iter().find(|coder| {
                    self.project.liza_as(&coder.id, &["claim-task", &task, &coder.id]).code == 0
                });
            }
        }
        for task in self.in_status(Status::Claimed) {
            let owner = self.project.record(&task).assigned_to;
            let owner = owner.unwrap().to_string();
            let coder = self.coders.iter().find(|coder| coder.id == owner).unwrap();
            ended(&coder.code(&task, playbook), 42);
        }
    }

    fn review(&self, playbook: &str) {
        for task in self.in_status(Status::ReadyForReview) {
            // Work that fails its validation comes back without a session.
            if self.project.liza(&["claim-review", &task, &self.reviewer.id]).code != 0 {
                assert_eq!(self.project.status(&task), "REJECTED");
                continue;
            }
            ended(&self.reviewer.review(&task, playbook), 42);
        }
        for task in self.in_status(Status::Approved) {
            assert!([0, 3].contains(&self.reviewer.merge(&task).code));
        }
    }
}

fn create_sample(project: &TestProject) {
    let sample = playbook::demo().unwrap().0.project.unwrap();
    for file in &sample.files {
        project.write(&file.path.to_string_lossy(), &file.text);
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "the sample project"]);
    project.liza(&["init", &sample.goal]).ok();
}

/// Covers: AG-15, AG-16, PV-04
#[test]
fn the_whole_story_is_played() {
    let project = TestProject::bare();
    create_sample(&project);
    let playbook = liza_rehearsal::DEMO_PLAYBOOK;
    let coders = (1..=3).map(|n| Player::new(&project, &format!("coder-{n}"))).collect();
    let planner = Player::new(&project, "planner-1");
    let reviewer = Player::new(&project, "code-reviewer-1");
    let mut team = Team { project: &project, planner, coders, reviewer, seen: BTreeSet::new() };
    let done = || project.liza(&["goal", "show"]).ok().contains("COMPLETED");
    let rounds = (0..ROUNDS).take_while(|_| {
        team.plan(playbook);
        team.code(playbook);
        team.review(playbook);
        !done()
    });
    assert!(rounds.count() < ROUNDS, "{}", project.state());
    assert_eq!(team.in_status(Status::Merged).len(), 5);
    assert_eq!(team.in_status(Status::Superseded), ["farewell"]);
    let log = project.log();
    for action in
        ["rejected", "blocked", "integration_failed", "claimed_for_integration_fix", "rescoped", "handoff"]
    {
        assert!(log.contains(&format!("action: {action}")), "{action}: {log}");
    }
    project.git(&["checkout", "-q", "integration"]);
    for test in ["greet", "shout", "whisper", "farewell", "late"] {
        project.run(project.command("sh").arg(format!("tests/{test}.sh"))).ok();
    }
    let list = project.read("commands.txt");
    assert!(list.contains("shout:") && list.contains("whisper:"), "{list}");
    project.liza(&["validate"]).ok();
    assert_eq!(project.liza(&["verify", "--json"]).result()["contradictions"], serde_json::json!([]));
}
