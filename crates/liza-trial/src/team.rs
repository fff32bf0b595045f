//! A team under the real rules: `next_step` decides what an agent does, `apply` what that changes. Git is a model: numbered
//! commits with a content, one worktree, one branch. Sessions are dice, or follow a script.

use liza_core::model::{
    Actor, AgentId, Config, GateSettings, Impact, Refusal, Role, Sha, Status, TaskId, WorktreeMode,
};
use liza_core::protocol::{
    AcceptIntegration, AddTask, AdoptIntegration, ClaimTask, NewTask, RecordSession, Reply, ReserveTask,
    SubmitForReview, UseClient, Verdict, WorktreeFacts,
};
use liza_core::supervise::{EndedSession, SessionEnd, Step, Work, after_session, has_result};

use crate::arms::{Ablation, Arm, Script, Setting};
use crate::board::{TrialBoard, sha};
use crate::facts::{facts_of, kinds};
use crate::outcome::{CodingSession, Outcome, Seen, Speaker, Submission};
use crate::work::{Coder, Content};

/// The rounds after which a task counts as one that never ends.
const ROUNDS: usize = 700;
/// The rounds without a move after which the team waits for the human.
const QUIET: usize = 12;
/// The limit of everything in the arms without limits.
const NO_LIMIT: u32 = 1000;

pub(crate) const TEST: &str = "test";

/// Lets a team work on one task until it is merged or waits for the human.
pub(crate) fn run(coder: Coder<'_>, setting: &Setting) -> Outcome {
    let Some(mut team) = Team::new(coder, setting) else {
        return Outcome { faults: vec!["the team cannot be set up".to_owned()], ..Outcome::default() };
    };
    team.work();
    team.judge()
}

/// The commits, the worktree and the branch. The number of a commit is its hash.
pub(crate) struct Git {
    commits: Vec<Content>,
    /// The head when the worktree was made, or last brought up to it.
    base: usize,
    pub(crate) worktree: usize,
    pub(crate) head: usize,
    /// True if the work does not fit to the head.
    pub(crate) clashes: bool,
}

impl Git {
    pub(crate) fn commit(&mut self, content: Content) -> usize {
        self.commits.push(content);
        self.commits.len() - 1
    }

    pub(crate) fn content(&self, commit: &Sha) -> Content {
        let number = usize::from_str_radix(commit.as_str(), 16).unwrap_or(0);
        self.commits.get(number).copied().unwrap_or_default()
    }
}

pub(crate) struct Team<'m> {
    pub(crate) board: TrialBoard,
    pub(crate) coder: Coder<'m>,
    pub(crate) setting: Setting,
    pub(crate) task: TaskId,
    pub(crate) git: Git,
    pub(crate) gate: GateSettings,
    pub(crate) reviews: [u32; 2],
    pub(crate) coder_sessions: u32,
    pub(crate) has_submitted: bool,
    /// True if the last rejection asks for more tests.
    pub(crate) asks_for_tests: bool,
    pub(crate) outcome: Outcome,
    pub(crate) seen: Seen,
}

fn config(arm: Arm, gate: &GateSettings) -> Config {
    let limits = Config { gate: gate.clone(), ..Config::default() };
    let limits = match arm.has_limits() {
        true => limits,
        false => Config {
            max_coder_iterations: NO_LIMIT,
            max_review_cycles: NO_LIMIT,
            max_sessions: NO_LIMIT,
            ..limits
        },
    };
    let validation = if arm.has_gate() { vec![TEST.to_owned()] } else { Vec::new() };
    Config { validation, ..limits }
}

impl<'m> Team<'m> {
    fn new(coder: Coder<'m>, setting: &Setting) -> Option<Self> {
        let arm = setting.arm;
        let gate = match arm.has_gate() {
            true => GateSettings::default(),
            false => GateSettings { runs: Vec::new(), watched: Vec::new() },
        };
        let mut board = TrialBoard::new(config(arm, &gate));
        let text = |text: &str| Some(text.to_owned());
        let new = NewTask {
            description: coder.material.task.about.clone(),
            spec_ref: text("specs/vision.md"),
            done_when: text("the function is there"),
            scope: text("one function"),
            impact: (arm.reviewers() == 2).then_some(Impact::High),
            ..NewTask::default()
        };
        let task: TaskId = coder.material.task.name.parse().ok()?;
        board.send(Actor::Human, AddTask { task: task.clone(), new }).ok()?;
        board.send(Actor::Human, AdoptIntegration { head: sha(0) }).ok()?;
        board.join(coder_id());
        (0..arm.reviewers()).for_each(|slot| board.join(reviewer(slot)));
        let git = Git { commits: vec![Content::default()], base: 0, worktree: 0, head: 0, clashes: false };
        Some(Self {
            board,
            coder,
            setting: *setting,
            task,
            git,
            gate,
            reviews: [0; 2],
            coder_sessions: 0,
            has_submitted: false,
            asks_for_tests: false,
            outcome: Outcome::default(),
            seen: Seen::default(),
        })
    }

    pub(crate) fn status(&self) -> Option<Status> {
        self.board.state.board.status(&self.task)
    }

    pub(crate) fn is_script(&self, script: Script) -> bool {
        self.setting.script == Some(script)
    }

    pub(crate) fn is_without(&self, part: Ablation) -> bool {
        self.setting.ablation == Some(part)
    }

    /// Lets all agents take their steps until nothing moves any more.
    fn work(&mut self) {
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            if matches!(self.status(), Some(Status::Merged | Status::Blocked)) {
                return;
            }
            if quiet == QUIET {
                self.outcome.asked = true;
                return;
            }
            self.board.wait();
            let team = self.board.team.clone();
            let moved = team.into_iter().filter(|agent| self.step(*agent)).count();
            quiet = if moved == 0 { quiet + 1 } else { 0 };
        }
        self.outcome.unended = true;
    }

    /// One step of an agent; true if it did something.
    fn step(&mut self, agent: AgentId) -> bool {
        let Step::Work(all) = self.board.next_step(agent, self.client(agent)) else { return false };
        all.into_iter().any(|work| {
            let done = match work {
                Work::Code(_) => self.code(),
                Work::Review(_) => self.review(agent),
                Work::Merge(_) => self.merge(agent),
                Work::Plan(_) => return false,
            };
            done.is_ok()
        })
    }

    fn client(&self, agent: AgentId) -> &'static str {
        let is_other = agent.role() == Role::CodeReviewer && self.setting.arm.is_other_program(slot(agent));
        if is_other { "other" } else { "same" }
    }

    /// Runs a session: what it does, and what its supervisor records afterwards.
    pub(crate) fn session(&mut self, agent: AgentId, act: impl FnOnce(&mut Self) -> SessionEnd) {
        self.outcome.sessions += 1;
        let (began_at, started) = (self.board.state.board.revision, self.board.now);
        let client = self.client(agent).to_owned();
        let _ = self.board.send(self.board.supervisor(agent), UseClient { agent, client: client.clone() });
        let end = act(self);
        let task = Some(self.task.clone());
        let ended = EndedSession::new(agent, task.clone(), began_at);
        let failed = !has_result(&self.board.state, &ended);
        if agent == coder_id() {
            let is_over_time = matches!(end, SessionEnd::OverTime);
            self.seen.sessions.push(CodingSession { is_over_time, has_result: !failed });
        }
        let record = RecordSession { failed, ..RecordSession::new(agent, task, &client, started) };
        let _ = self.board.send(self.board.supervisor(agent), record);
        for command in after_session(&self.board.state, &ended, end).record {
            let _ = self.board.send(self.board.supervisor(agent), command);
        }
    }

    fn code(&mut self) -> Result<(), Refusal> {
        let (coder, task, before) = (coder_id(), self.task.clone(), self.status());
        let head = sha(self.git.head);
        let reserved =
            self.board.send(self.board.supervisor(coder), ReserveTask { task: task.clone(), coder, head })?;
        if let Reply::ReserveTask(reserved) = reserved
            && reserved.mode == WorktreeMode::Fresh
        {
            (self.git.worktree, self.git.base) = (self.git.head, self.git.head);
        }
        self.board.send(self.board.supervisor(coder), ClaimTask { task, coder })?;
        self.coder_sessions += 1;
        self.session(coder, |team| team.write(before));
        Ok(())
    }

    /// A coder's session.
    fn write(&mut self, before: Option<Status>) -> SessionEnd {
        let is_first = self.coder_sessions == 1;
        if self.is_script(Script::Loops) || (is_first && self.is_script(Script::Hangs)) {
            return if self.is_script(Script::Hangs) { SessionEnd::OverTime } else { SessionEnd::Code(0) };
        }
        if is_first && self.is_script(Script::StaleBase) {
            self.move_branch();
        }
        let last = self.submitted();
        let content = match before {
            _ if !self.has_submitted => self.coder.first(self.setting.script),
            Some(Status::IntegrationFailed) => {
                (self.git.clashes, self.git.base) = (false, self.git.head);
                last
            }
            _ if self.asks_for_tests => self.coder.add_tests(last),
            _ => self.coder.rework(last),
        };
        self.asks_for_tests = false;
        if !self.has_submitted && self.is_script(Script::ForgetsCommit) {
            self.submit_without_commit();
        }
        self.git.worktree = self.git.commit(content);
        self.submit(content);
        if !self.has_submitted {
            self.after_submission();
        }
        let head = sha(self.git.worktree);
        let reviewed = self.board.record(&self.task).and_then(|record| record.review_commit.as_ref());
        self.seen.has_later_commits |= reviewed.is_some_and(|commit| *commit != head);
        self.has_submitted = true;
        SessionEnd::Code(0)
    }

    /// The content of the last submission.
    pub(crate) fn submitted(&self) -> Content {
        let commit = self.board.record(&self.task).and_then(|record| record.review_commit.as_ref());
        commit.map(|commit| self.git.content(commit)).unwrap_or_default()
    }

    fn submit(&mut self, content: Content) {
        let commit = sha(self.git.worktree);
        let work = facts_of(self.coder.material, &content, &self.gate);
        self.send_submission(WorktreeFacts { work: Some(work), ..WorktreeFacts::clean(commit) });
    }

    fn submit_without_commit(&mut self) {
        let dirty = vec!["src/lib".to_owned()];
        self.send_submission(WorktreeFacts { dirty, ..WorktreeFacts::clean(sha(self.git.worktree)) });
    }

    fn send_submission(&mut self, facts: WorktreeFacts) {
        let (commit, is_dirty) = (sha(self.git.worktree), !facts.dirty.is_empty());
        let (task, authors) = (self.task.clone(), Vec::new());
        let command = SubmitForReview { task, commit: commit.clone(), facts: Some(facts), authors };
        let answer = self.board.send(self.board.session(coder_id()), command);
        let content = self.git.content(&commit);
        self.seen.submissions.push(Submission {
            content,
            facts: kinds(self.coder.material, &content),
            is_dirty,
            is_stale: self.git.base != self.git.head,
            is_accepted: answer.is_ok(),
        });
    }

    /// What a misbehaving coder does after its first submission.
    fn after_submission(&mut self) {
        if self.is_script(Script::CommitsAfterSubmission) {
            let late = self.coder.late_commit();
            self.git.worktree = self.git.commit(late);
        }
        if self.is_script(Script::ApprovesItself) {
            let speaker = Speaker { is_coder: true, ..Speaker::default() };
            self.give(self.board.session(coder_id()), speaker, approval());
        }
    }

    /// A person brings other work to the branch; this task does not fit to it.
    fn move_branch(&mut self) {
        self.git.head = self.git.commit(Content::default());
        self.git.clashes = true;
        let accepted =
            AcceptIntegration { head: sha(self.git.head), detail: "sync".to_owned(), merged: Vec::new() };
        let _ = self.board.send(Actor::Human, accepted);
    }
}

/// The verdict of a reviewer that has found nothing.
pub(crate) fn approval() -> Verdict {
    Verdict::Approved(Some("the tests pass".to_owned()))
}

pub(crate) fn coder_id() -> AgentId {
    AgentId::new(Role::Coder, 1)
}

fn reviewer(slot: u8) -> AgentId {
    AgentId::new(Role::CodeReviewer, u32::from(slot) + 1)
}

pub(crate) fn slot(reviewer: AgentId) -> u8 {
    u8::from(reviewer.number() > 1)
}
