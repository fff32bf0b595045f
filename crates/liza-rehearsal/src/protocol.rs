//! The part of Liza's public interface that an agent knows: roles, triggers, exit codes, files, variables.

pub const PLAYBOOK_VARIABLE: &str = "LIZA_PLAYBOOK";

pub(crate) const GENERATION_VARIABLE: &str = "LIZA_AGENT_GENERATION";

/// The exit code of a session that is done or was asked to stop, and of a command that asks it to stop.
pub(crate) const EXIT_STOP: u8 = 42;

pub(crate) const EXIT_LOCKED: i32 = 2;

/// The files in `.liza` that stop every agent, the strongest first.
pub(crate) const STOP_FILES: [&str; 3] = ["ABORT", "CHECKPOINT", "PAUSE"];

/// The reason of a task that a person has blocked without giving one.
pub(crate) const HUMAN_OVERRIDE: &str = "human override";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Splits the goal into tasks and decides about tasks that are stuck.
    Planner,
    Coder,
    /// Approves or rejects a coder's commit.
    CodeReviewer,
}

impl Role {
    /// All roles, in the order of their numbers.
    pub(crate) const ALL: [Self; 3] = [Self::Planner, Self::Coder, Self::CodeReviewer];

    /// Returns the role's name in prompts.
    pub fn title(self) -> &'static str {
        match self {
            Self::Planner => "Planner",
            Self::Coder => "Coder",
            Self::CodeReviewer => "Code Reviewer",
        }
    }

    /// Returns the role's key in playbooks.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Coder => "coder",
            Self::CodeReviewer => "reviewer",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TriggerKind {
    /// There is a goal and no task.
    InitialPlanning,
    /// The human has decided that the plan has to change.
    HumanDecision,
    /// The human has answered a question.
    QuestionAnswered,
    /// Two coders failed at a task.
    HypothesisExhausted,
    BlockedTasks,
    /// A merge failed twice, or once and no coder repairs it.
    IntegrationFailed,
    /// An agent found something that cannot wait.
    ImmediateDiscovery,
    /// The human has added a task in one line.
    NewDraft,
    /// A task depends on one that was abandoned.
    DeadDependency,
    SprintCompleted,
}
