//! Observations besides the blackboard: files, branches, sessions.
//!
//! Only data: the observer is outside, the consequences are decided in `alarms` and in the view.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

use crate::command_line::{CommandLine, StartCommands, liza};
use liza_core::evidence::ReviewerRates;
use liza_core::model::{AgentId, Board, DirectEdit, Network, Sha, StopFileTimes, TaskId, Timestamp};
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::invariants::Violation;
use liza_core::rules::presence::Presence;
use liza_core::supervise::WorkKind;

#[derive(Debug, Clone, Default)]
pub struct Observations {
    pub stop_files: StopFileTimes,
    /// The last task, sprint or note event in the log; heartbeats and registrations do not count.
    pub last_progress: Option<Timestamp>,
    pub violations: Vec<Violation>,
    /// The reason that the file cannot be read at all.
    pub unreadable: Option<String>,
    pub kept_versions: Vec<KeptVersion>,
    pub foreign_commits: Option<ForeignCommits>,
    /// Programs, or ways to sign, in the project's git configuration that the human has not accepted.
    pub changed_programs: Vec<String>,
    pub sessions: BTreeMap<AgentId, SessionActivity>,
    /// An edit of the file that the next write records.
    pub pending_edit: Option<DirectEdit>,
    /// The confinement of each agent's last session.
    pub confinement: BTreeMap<AgentId, Confinement>,
    /// The reason that the last new checkout could not be set up.
    pub setup_failure: Option<String>,
    pub review_setups: BTreeMap<TaskId, FailedReviewSetup>,
    /// Jobs that supervisors here have failed at again and again, before a session or at a merge.
    pub failing_jobs: Vec<FailingJob>,
    pub refused_places: Vec<Refused>,
    /// The folder of Liza's or of worktrees, if its disk is full.
    pub full_disk: Option<PathBuf>,
    pub remote_problem: Option<RemoteProblem>,
    /// The place of changed shared settings on the integration branch that the human has not accepted.
    pub team_file_change: Option<TeamFileChange>,
    /// Agents whose supervisor is proven to have ended without deregistering them.
    pub dead: BTreeSet<AgentId>,
    /// The distance of the result from the main branch; observed only once the goal is reached.
    pub main_branch: Option<MainBranch>,
    /// Observed only while the goal is open.
    pub vision_gap: Option<VisionGap>,
    pub missing_logins: Vec<MissingLogin>,
    /// The merge that is running here.
    pub merge: Option<RunningMerge>,
    pub start: StartCommands,
    /// What drills say of the reviewers of this project.
    pub drilled: Vec<ReviewerRates>,
}

impl Observations {
    pub fn presence<'a>(&'a self, board: &'a Board, now: Timestamp) -> Presence<'a> {
        Presence { board, dead: &self.dead, now }
    }

    /// Tasks whose merge is on the integration branch and not on the blackboard.
    pub fn found_merges(&self) -> &FoundMerges {
        static NONE: FoundMerges = FoundMerges::NONE;
        self.foreign_commits.as_ref().map_or(&NONE, |found| &found.merges)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningMerge {
    pub task: TaskId,
    /// `None` if the human merges.
    pub by: Option<AgentId>,
    pub since: Timestamp,
    /// True once its integration test has begun.
    pub is_testing: bool,
    /// True if another agent has left the team since it began.
    pub team_leaves: bool,
}

/// A place of this machine that a session was refused, or a judged run, which has no agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub place: RefusedPlace,
    pub agent: Option<AgentId>,
    pub task: Option<TaskId>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RefusedPlace {
    /// A service outside of the session is there.
    Port(u16),
    /// The same by a path.
    Socket(String),
    /// A path that it wanted to read.
    Read(String),
    /// A path that it wanted to make or to change.
    Write(String),
    /// A host, with its port if that is not the usual one.
    Host(String),
}

impl RefusedPlace {
    /// The setting that lists the places which sessions may use so.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Port(_) => "network_ports",
            Self::Socket(_) => "sandbox_sockets",
            Self::Read(_) => "sandbox_readable",
            Self::Write(_) => "sandbox_writable",
            Self::Host(_) => "model_hosts",
        }
    }
}

impl fmt::Display for RefusedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "{port}"),
            Self::Socket(place) | Self::Read(place) | Self::Write(place) | Self::Host(place) => {
                f.write_str(place)
            }
        }
    }
}

/// A job that supervisors try again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingJob {
    pub kind: WorkKind,
    pub agent: AgentId,
    pub task: Option<TaskId>,
    /// The failures in a row.
    pub count: u32,
    pub message: String,
    pub remedy: Option<Remedy>,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// In words, without a full stop.
    pub advice: String,
    /// The command to begin with.
    #[serde(serialize_with = "CommandLine::keep", deserialize_with = "CommandLine::read")]
    pub command: CommandLine,
}

impl FailingJob {
    /// From so many failures in a row on, a person has to know.
    pub const LIMIT: u32 = 3;
}

/// The failures to set up the checkout of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedReviewSetup {
    pub commit: Sha,
    pub count: u32,
    /// The error of the last failure.
    pub message: String,
}

impl FailedReviewSetup {
    /// From this many failures on, the program asks whose fault it is.
    pub const LIMIT: u32 = 3;
}

/// A version of the blackboard's file that is kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptVersion {
    /// Its file, from the root of the project.
    pub file: String,
    /// True if it is a person's text from before the program rewrote it without comments; else it is an edit
    /// that was based on an older revision.
    pub is_before_rewrite: bool,
}

/// An agent program for which no login is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLogin {
    pub client: String,
    /// The command that logs in.
    pub command: String,
    /// The other ways.
    pub more: Option<String>,
}

/// The place of changed settings of the team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamFileChange {
    /// In the checkout, where they can be accepted.
    CheckedOut,
    OnBranch(String),
}

/// The reason that the vision document is of no use to the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisionGap {
    Missing,
    /// It is the template, not filled in.
    Template,
}

impl VisionGap {
    /// The error in the document at this path, and its consequence.
    pub fn problem(self, file: &str) -> String {
        match self {
            VisionGap::Missing => format!("{file} does not exist: the planner plans from the goal alone"),
            VisionGap::Template => {
                format!("{file} is still the template: fill it in, or the planner plans from the goal alone")
            }
        }
    }

    /// The command with which the human writes it.
    pub fn command(self, file: &str) -> CommandLine {
        match self {
            VisionGap::Missing => liza!("init", "--template"),
            VisionGap::Template => CommandLine::shell(format!("${{EDITOR:-vi}} {file}")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// In words, without the network.
    pub level: String,
    /// The same in the words that programs know.
    pub older: String,
    /// Zero is the strongest level.
    pub weakness: u8,
    pub network: Network,
    /// What it shares with the person by the settings of now, in words.
    pub shared: Option<String>,
}

impl Confinement {
    fn network_words(&self) -> &'static str {
        if self.network == Network::ModelOnly { ", network model-only" } else { "" }
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.level, self.network_words())
    }
}

impl Serialize for Confinement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}{}", self.older, self.network_words()))
    }
}

/// The distance of the integration branch from the main branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MainBranch {
    pub name: String,
    /// Commits that only the integration branch has.
    pub ahead: u64,
    /// Commits that only the main branch has.
    pub behind: u64,
}

/// The reason that work cannot be exchanged through the git remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemoteProblem {
    pub since: Timestamp,
    /// The last try.
    pub last: Timestamp,
    pub message: String,
    /// The command with which the human finds out more, or answers it.
    pub command: CommandLine,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionActivity {
    /// Its last action or words, on one line.
    pub last_action: Option<String>,
    pub last_output: Timestamp,
}

/// Commits on the integration branch that neither the program nor the human put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignCommits {
    pub head: Sha,
    /// The head that the program set, or the human accepted.
    pub expected: Sha,
    /// The commits, one line each, newest first; none if the branch was moved back.
    pub commits: Vec<String>,
    /// The task, if they are exactly its approved merge: the blackboard refused it, and it stayed.
    pub merge_of: Option<TaskId>,
    /// Open tasks whose merges are among them.
    pub merges: FoundMerges,
}
