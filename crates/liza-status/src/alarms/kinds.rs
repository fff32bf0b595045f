//! The table of alarms: the words of each, the machines that see it, and its answer.

use std::fmt;

use serde::{Serialize, Serializer};

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
    /// Each of these is a command that depends on the state.
    Question,
    Verdict,
    Blocked,
    Planner,
    Budget,
    Setup,
    Port,
    Work,
    Remote,
    TeamFile,
    Gate,
    Client,
}

macro_rules! alarm_kinds {
    ($($kind:ident $words:literal $seen:ident $answer:expr $(, $file:ident)?;)*) => {
        /// The kinds of alarms; their words are part of the specification.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumIter)]
        pub enum AlarmKind {
            $($kind,)*
        }

        impl AlarmKind {
            pub fn words(self) -> &'static str {
                match self {
                    $(AlarmKind::$kind => $words,)*
                }
            }

            /// True if only one machine can see it.
            pub fn is_of_one_machine(self) -> bool {
                let seen_by = match self {
                    $(AlarmKind::$kind => SeenBy::$seen,)*
                };
                seen_by == SeenBy::One
            }

            pub(crate) fn answer(self) -> Answer {
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
    InvalidState "INVALID STATE" One Human(&["validate"]);
    LeaseExpired "LEASE EXPIRED" All Agents;
    ReviewLeaseExpired "REVIEW LEASE EXPIRED" All Agents;
    StaleDraft "STALE DRAFT" All Agents;
    OrphanedRejected "ORPHANED REJECTED" All Agents;
    Blocked "BLOCKED" All Blocked;
    IntegrationFailed "INTEGRATION FAILED" All Agents;
    Reassigned "REASSIGNED" All Agents;
    HypothesisExhaustion "HYPOTHESIS EXHAUSTION" All Agents;
    ReviewLoop "REVIEW LOOP" All Agents;
    ApproachingLimit "APPROACHING LIMIT" All Agents;
    ImmediateDiscovery "IMMEDIATE DISCOVERY" All Agents;
    ContextFull "CONTEXT FULL" All Agents;
    Stalled "STALLED" All Agents;
    CheckpointAbandoned "CHECKPOINT ABANDONED?" All Human(&["resume"]), Checkpoint;
    CheckpointStuck "CHECKPOINT STUCK" All Human(&["resume"]), Checkpoint;
    CheckpointStale "CHECKPOINT STALE" All Human(&["resume"]), Checkpoint;
    ForgottenPause "FORGOTTEN PAUSE" All Human(&["resume"]), Pause;
    StalePause "STALE PAUSE" All Human(&["resume"]), Pause;
    CircuitBreaker "CIRCUIT BREAKER" All Human(&["resolve", OPEN]);
    SprintDeadline "SPRINT DEADLINE" All Human(&["resume"]);
    RubberStamp "RUBBER STAMP" All Agents;
    StaleEdit "STALE EDIT" One About(&["edit", "--from"]);
    StrayChanges "STRAY CHANGES" All Agents;
    Question "QUESTION" All Question;
    PlannerStopped "PLANNER STOPPED" All Planner;
    SessionBudget "SESSION BUDGET" All Human(&["note", OPEN]);
    Budget "BUDGET" All Budget;
    ReviewDropped "REVIEW DROPPED" All Verdict;
    SecondReviewer "SECOND REVIEWER" All Verdict;
    NoApproval "NO APPROVAL" All Verdict;
    RoleMissing "ROLE MISSING" All About(&["agent"]);
    ForeignCommits "FOREIGN COMMITS" All Human(&["accept-integration"]);
    GitProgramsChanged "GIT PROGRAMS CHANGED" One Human(&["config", "--trust"]);
    DirectEdit "DIRECT EDIT" All About(&["dismiss"]);
    ClientHeld "CLIENT HELD" All Client;
    QuietSession "QUIET SESSION" One Agents;
    PlanProposed "PLAN PROPOSED" All Human(&["plan", "--approve"]);
    SetupFailed "SETUP FAILED" One Setup;
    PortRefused "PORT REFUSED" One Port;
    WorkFails "WORK FAILS" One Work;
    SettingsNotAccepted "SETTINGS NOT ACCEPTED" One Human(&["config", "--trust"]);
    TeamFileChanged "TEAM FILE CHANGED" One TeamFile;
    IntegrationTestBroken "INTEGRATION TEST BROKEN" All Human(&["resume"]);
    GateChanged "GATE CHANGED" All Gate;
    ValidationHeld "VALIDATION HELD" All About(&["retry-validation"]);
    RemoteProblem "REMOTE PROBLEM" One Remote;
    TakesBack "TAKES BACK" All About(&["diff"]);
}

impl fmt::Display for AlarmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl Serialize for AlarmKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
