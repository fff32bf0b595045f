//! The steps of a task as one-line helpers, and the commands behind them.

use liza_core::model::{
    Actor, AgentId, Config, Sha, Status, TestFailure, Timestamp, Validation, ValidationResult, WorktreeMode,
};
use liza_core::protocol::{
    AbandonTask, AddTask, BeginReview, ClaimReview, ClaimRole, ClaimTask, Command, CountExit, EditTask,
    Heartbeat, HoldCause, HoldMerge, MarkBlocked, MergeFailure, NewTask, RecordHeadTest, RecordMerge,
    RecordMergeFailure, RecordValidation, Register, ReleaseClaim, Reply, ReserveTask, SubmitForReview,
    SubmitVerdict, SupersedeTask, TaskEdit, UnblockTask, UnproductiveExit, Verdict, WorktreeFacts,
};

use liza_core::rules::judging_settings::judging_settings;

use super::*;

impl World {
    pub fn register(&mut self, agent: AgentId) -> Done {
        self.must(
            Actor::Human,
            Command::from(Register {
                agent,
                terminal: "/dev/pts/1".into(),
                machine: None,
                proven_dead: None,
                generation: None,
            }),
        )
    }

    pub fn heartbeat(&mut self, id: AgentId) -> Done {
        let agents = vec![(id, Some(self.generation(id)))];
        self.must(self.supervisor(id), Command::from(Heartbeat { agents, length: None }))
    }

    pub fn add(&mut self, id: &str, new: NewTask) -> Done {
        self.must(Actor::Human, Command::from(AddTask { task: task(id), new }))
    }

    pub fn edit(&mut self, id: &str, edit: TaskEdit) -> Done {
        self.must(Actor::Human, Command::from(EditTask { task: task(id), edit }))
    }

    /// The first step of a claim; returns the mode of the worktree and its base.
    #[track_caller]
    pub fn reserve(&mut self, id: &str, coder: AgentId, head: Sha) -> (WorktreeMode, Sha) {
        let done = self.must(self.supervisor(coder), reserve(id, coder, head));
        match done.answer {
            Ok(Reply::ReserveTask(reserved)) => (reserved.mode, reserved.base_commit),
            other => panic!("expected a worktree, got {other:?}"),
        }
    }

    #[track_caller]
    pub fn claim(&mut self, id: &str, coder: AgentId) -> Done {
        self.reserve(id, coder, base());
        self.must(self.supervisor(coder), claim(id, coder))
    }

    #[track_caller]
    pub fn submit(&mut self, id: &str, coder: AgentId, commit: Sha) -> Done {
        self.must(self.agent(coder), submit(id, commit))
    }

    #[track_caller]
    pub fn claim_review(&mut self, id: &str, by: AgentId) -> Done {
        let command = claim_review(id, by);
        self.must(self.supervisor(by), command)
    }

    #[track_caller]
    pub fn verdict(&mut self, id: &str, by: AgentId, verdict: Verdict) -> Done {
        self.claim_review(id, by);
        let facts = WorktreeFacts::clean(self.record(id).review_commit.clone().unwrap());
        self.must(
            self.agent(by),
            Command::from(SubmitVerdict {
                task: task(id),
                verdict,
                facts: Some(facts),
                commit: None,
                moved: None,
            }),
        )
    }

    #[track_caller]
    pub fn reject(&mut self, id: &str) -> Done {
        self.verdict(id, reviewer(1), Verdict::Rejected(FEEDBACK.into()))
    }

    #[track_caller]
    pub fn approve(&mut self, id: &str) -> Done {
        self.verdict(id, reviewer(1), approved())
    }

    #[track_caller]
    pub fn merge(&mut self, id: &str) -> Done {
        let onto = self.goal().integration_head.clone();
        let command = merged_onto(id, self.record(id).review_commit.clone().unwrap(), onto);
        self.must(self.supervisor(reviewer(1)), command)
    }

    #[track_caller]
    pub fn fail_merge(&mut self, id: &str) -> Done {
        let command = conflict(id, self.record(id).review_commit.clone().unwrap());
        self.must(self.supervisor(reviewer(1)), command)
    }

    #[track_caller]
    pub fn block(&mut self, id: &str, coder: AgentId) -> Done {
        self.must(self.agent(coder), block(id))
    }

    #[track_caller]
    pub fn abandon(&mut self, id: &str) -> Done {
        self.must(Actor::Human, abandon(id))
    }

    /// Claims, submits and rejects again.
    #[track_caller]
    pub fn reject_again(&mut self, id: &str, by: AgentId) -> Done {
        self.claim(id, by);
        // A rejected commit cannot be submitted again.
        let digit = if self.record(id).review_commit == Some(sha('a')) { 'b' } else { 'a' };
        self.submit(id, by, sha(digit));
        self.reject(id)
    }

    /// A team whose task `t` has reached that status by commands only, with coder-1 if it has a coder.
    pub fn with_task(status: Status) -> Self {
        let mut world = Self::new();
        match status {
            Status::Draft => {
                world = Self::empty();
                for agent in [planner(), coder(1), coder(2), reviewer(1), reviewer(2)] {
                    world.register(agent);
                }
                world.add("t", draft());
            }
            Status::Unclaimed => {}
            Status::Claimed => {
                world.claim("t", coder(1));
            }
            Status::ReadyForReview => {
                world.claim("t", coder(1));
                world.submit("t", coder(1), sha('a'));
            }
            Status::Rejected => {
                world.reject_again("t", coder(1));
            }
            Status::Approved => {
                world = Self::with_task(Status::ReadyForReview);
                world.approve("t");
            }
            Status::IntegrationFailed => {
                world = Self::with_task(Status::Approved);
                world.fail_merge("t");
            }
            Status::Merged => {
                world = Self::with_task(Status::Approved);
                world.merge("t");
            }
            Status::Blocked => {
                world.claim("t", coder(1));
                world.block("t", coder(1));
            }
            Status::Abandoned => {
                world.abandon("t");
            }
            Status::Superseded => {
                world.add("new", draft());
                world.must(Actor::Human, supersede("t", &["new"]));
            }
        }
        assert_eq!(world.status("t"), status);
        world
    }
}

pub fn reserve(id: &str, coder: AgentId, head: Sha) -> Command {
    Command::from(ReserveTask { task: task(id), coder, head })
}

pub fn claim(id: &str, coder: AgentId) -> Command {
    Command::from(ClaimTask { task: task(id), coder })
}

pub fn submit(id: &str, commit: Sha) -> Command {
    Command::from(SubmitForReview {
        task: task(id),
        commit: commit.clone(),
        facts: Some(WorktreeFacts::clean(commit)),
        authors: vec![],
    })
}

pub fn claim_review(id: &str, reviewer: AgentId) -> Command {
    Command::from(ClaimReview {
        task: task(id),
        reviewer,
        setup_failure: None,
        integration: None,
        gate: None,
    })
}

/// The gate of all validations of tests.
pub const GATE: &str = "gate";

/// A claim of a review that validates first, if there are commands.
pub fn claim_validation(id: &str, reviewer: AgentId) -> Command {
    let gate = Some(GATE.to_owned());
    let (task, integration) = (task(id), Some(head()));
    Command::from(ClaimReview { task, reviewer, setup_failure: None, integration, gate })
}

/// The result of `cargo test` on the commit that tests submit.
pub fn validation(result: ValidationResult) -> Validation {
    let what = "failed with exit status 1".to_owned();
    let output = ".liza/integration-tests/t-validation-1.log".to_owned();
    let failure = TestFailure { what, output, last_lines: vec!["error: one test failed".into()] };
    let is_green = result == ValidationResult::Green;
    Validation {
        commit: sha('a'),
        result,
        commands: vec!["cargo test".into()],
        gate: GATE.into(),
        tree: None,
        time: Timestamp::from_unix(0),
        command: (!is_green).then(|| "cargo test".into()),
        failure: (!is_green).then_some(failure),
        flaky: Vec::new(),
        head: (result == ValidationResult::Held).then(head),
        settings: Vec::new(),
        receipt: None,
    }
}

pub fn record_validation(id: &str, reviewer: AgentId, validation: Validation) -> Command {
    Command::from(RecordValidation { task: task(id), reviewer, validation })
}

pub fn begin_review(id: &str, reviewer: AgentId) -> Command {
    Command::from(BeginReview { task: task(id), reviewer, gate: GATE.into() })
}

pub fn approved() -> Verdict {
    Verdict::Approved(Some("cargo test: 3 passed; retries_three_times shows the criterion".into()))
}

pub fn verdict(id: &str, verdict: Verdict) -> Command {
    Command::from(SubmitVerdict {
        task: task(id),
        verdict,
        facts: Some(WorktreeFacts::clean(sha('a'))),
        commit: None,
        moved: None,
    })
}

pub fn merged(id: &str, commit: Sha) -> Command {
    merged_onto(id, commit, None)
}

/// A merge onto that head.
pub fn merged_onto(id: &str, commit: Sha, old_head: Option<Sha>) -> Command {
    let (task, merge_commit) = (task(id), sha('f'));
    Command::from(RecordMerge { task, commit, merge_commit, drift_commits: 2, old_head })
}

pub fn conflict(id: &str, commit: Sha) -> Command {
    let failure = MergeFailure::Conflict { files: vec!["src/a.rs".into()] };
    Command::from(RecordMergeFailure { task: task(id), commit, failure })
}

/// The head of the integration branch on which [`head_test`] runs the test.
pub fn head() -> Sha {
    sha('e')
}

/// The integration test on the integration branch itself.
pub fn head_test(failure: Option<&str>) -> Command {
    let failure = failure.map(|line| TestFailure {
        what: "integration test failed with exit status 1".into(),
        output: ".liza/integration-tests/head-1.log".into(),
        last_lines: vec![line.into()],
    });
    Command::from(RecordHeadTest { head: head(), failure, settings: judging_settings(&Config::default()) })
}

pub fn hold(id: &str, commit: Sha) -> Command {
    Command::from(HoldMerge { task: task(id), commit, cause: HoldCause::HeadFails { head: head() } })
}

pub fn block(id: &str) -> Command {
    Command::from(MarkBlocked {
        task: task(id),
        reason: "the spec is silent".into(),
        questions: vec!["what about 429?".into()],
        attempted: vec!["read the spec".into()],
    })
}

pub fn unblock(id: &str) -> Command {
    Command::from(UnblockTask {
        task: task(id),
        reset_cycles: false,
        same_coder: false,
        keep_worktree: false,
        assessment: None,
    })
}

pub fn supersede(id: &str, by: &[&str]) -> Command {
    Command::from(SupersedeTask {
        task: task(id),
        by: by.iter().map(|id| task(id)).collect(),
        reason: "too broad".into(),
        root_cause: "two things in one".into(),
        summary: None,
    })
}

pub fn abandon(id: &str) -> Command {
    Command::from(AbandonTask { task: task(id), reason: "not worth it".into() })
}

pub fn idle_exit(id: &str, agent: AgentId) -> Command {
    Command::from(CountExit {
        task: task(id),
        agent,
        exit: UnproductiveExit::Idle,
        last_words: None,
        pause: liza_core::model::Seconds(0),
    })
}

pub fn release(id: &str, force: bool) -> Command {
    Command::from(ReleaseClaim { task: task(id), role: ClaimRole::Both, force, reason: None })
}

pub fn edit(id: &str, edit: TaskEdit) -> Command {
    Command::from(EditTask { task: task(id), edit })
}
