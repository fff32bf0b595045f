//! The table of alarms and decisions: the words of each, its level, the machines that see it, and its answer.

use serde::Serialize;

use super::AlarmLevel;
use crate::command_line::OPEN;
use liza_core::model::StopFile;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenBy {
    /// It follows from the blackboard, so every machine sees the same.
    All,
    /// It is about files, sessions or the connection of one machine.
    One,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Agents,
    /// By the human with this command.
    Human(&'static [&'static str]),
    /// By the human with this command, about its subject.
    About(&'static [&'static str]),
    /// By the human with a command that depends on the state: each alarm has its own, if it needs one.
    Own,
}

macro_rules! alarm_kinds {
    ($($kind:ident $words:literal $level:ident $seen:ident $answer:expr $(, $file:ident)?;)*) => {
        /// The kinds of alarms, and of decisions that are no alarms. Their words are part of the specification.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, strum::Display, strum::EnumIter)]
        pub enum AlarmKind {
            $(#[serde(rename = $words)] #[strum(to_string = $words)] $kind,)*
        }

        impl AlarmKind {
            /// Some alarms of a few kinds have another one.
            pub(super) fn level(self) -> AlarmLevel {
                match self {
                    $(AlarmKind::$kind => AlarmLevel::$level,)*
                }
            }

            /// True if only one machine can see it.
            pub fn is_of_one_machine(self) -> bool {
                let seen_by = match self {
                    $(AlarmKind::$kind => SeenBy::$seen,)*
                };
                seen_by == SeenBy::One
            }

            pub(super) fn answer(self) -> Answer {
                use Answer::*;
                match self {
                    $(AlarmKind::$kind => $answer,)*
                }
            }

            pub fn stop_file(self) -> Option<StopFile> {
                match self {
                    $(AlarmKind::$kind => None$(.or(Some(StopFile::$file)))?,)*
                }
            }
        }
    };
}

alarm_kinds! {
    InvalidState "INVALID STATE" Critical One Human(&["validate"]);
    LeaseExpired "LEASE EXPIRED" Warning All Agents;
    ReviewLeaseExpired "REVIEW LEASE EXPIRED" Warning All Agents;
    StaleDraft "STALE DRAFT" Warning All Agents;
    OrphanedRejected "ORPHANED REJECTED" Critical All Agents;
    Blocked "BLOCKED" Warning All Own;
    IntegrationFailed "INTEGRATION FAILED" Critical All Agents;
    Reassigned "REASSIGNED" Warning All Agents;
    HypothesisExhaustion "HYPOTHESIS EXHAUSTION" Critical All Agents;
    ReviewLoop "REVIEW LOOP" Critical All Agents;
    ApproachingLimit "APPROACHING LIMIT" Warning All Agents;
    ImmediateDiscovery "IMMEDIATE DISCOVERY" Critical All Agents;
    ContextFull "CONTEXT FULL" Warning All Agents;
    Stalled "STALLED" Warning All Agents;
    CheckpointAbandoned "CHECKPOINT ABANDONED?" Critical All Agents, Checkpoint;
    CheckpointStuck "CHECKPOINT STUCK" Critical All Agents, Checkpoint;
    CheckpointStale "CHECKPOINT STALE" Warning All Agents, Checkpoint;
    ForgottenPause "FORGOTTEN PAUSE" Critical All Agents, Pause;
    StalePause "STALE PAUSE" Warning All Agents, Pause;
    CircuitBreaker "CIRCUIT BREAKER" Critical All Human(&["resolve", OPEN]);
    SprintDeadline "SPRINT DEADLINE" Warning All Human(&["resume"]);
    RubberStamp "RUBBER STAMP" Warning All Agents;
    StaleEdit "STALE EDIT" Warning One About(&["edit", "--from"]);
    StrayChanges "STRAY CHANGES" Critical All Agents;
    Question "QUESTION" Warning All Own;
    PlannerStopped "PLANNER STOPPED" Critical All Own;
    SessionBudget "SESSION BUDGET" Critical All Human(&["note", OPEN]);
    Budget "BUDGET" Warning All Own;
    ReviewDropped "REVIEW DROPPED" Critical All Own;
    SecondReviewer "SECOND REVIEWER" Critical All Own;
    NoApproval "NO APPROVAL" Critical All Own;
    RoleMissing "ROLE MISSING" Critical All Own;
    ForeignCommits "FOREIGN COMMITS" Critical All Human(&["accept-integration"]);
    GitProgramsChanged "GIT PROGRAMS CHANGED" Critical One Human(&["config", "--trust"]);
    DirectEdit "DIRECT EDIT" Critical All About(&["dismiss"]);
    ClientHeld "CLIENT HELD" Warning All Own;
    QuietSession "QUIET SESSION" Warning One Agents;
    PlanProposed "PLAN PROPOSED" Warning All Human(&["plan", "--approve"]);
    SetupFailed "SETUP FAILED" Critical One Own;
    PortRefused "PORT REFUSED" Warning One Own;
    PathRefused "PATH REFUSED" Warning One Own;
    HostRefused "HOST REFUSED" Warning One Own;
    DiskFull "DISK FULL" Critical One Own;
    WorkFails "WORK FAILS" Critical One Own;
    SettingsNotAccepted "SETTINGS NOT ACCEPTED" Warning One Human(&["config", "--trust"]);
    TeamFileChanged "TEAM FILE CHANGED" Warning One Own;
    IntegrationTestBroken "INTEGRATION TEST BROKEN" Critical All Human(&["resume"]);
    GateChanged "GATE CHANGED" Critical All Own;
    ValidationHeld "VALIDATION HELD" Critical All About(&["retry-validation"]);
    RemoteProblem "REMOTE PROBLEM" Critical One Own;
    TakesBack "TAKES BACK" Warning All About(&["diff"]);
    // No alarms: only NEEDS YOU has these.
    Abort "ABORT" Critical All Human(&["goal", "new", OPEN]), Abort;
    Checkpoint "CHECKPOINT" Critical All Human(&["resume"]), Checkpoint;
    Pause "PAUSE" Critical All Human(&["resume"]), Pause;
    BrokenRecord "BROKEN RECORD" Critical All About(&["edit"]);
    Discovery "DISCOVERY" Warning All Own;
    Anomaly "ANOMALY" Warning All Own;
    Vision "VISION" Warning One Own;
    Goal "GOAL" Warning All Human(&["goal", "new", OPEN]);
    Login "LOGIN" Critical One Own;
    Draft "DRAFT" Warning All Own;
    DeadDependency "DEAD DEPENDENCY" Warning All Own;
}
