//! The messages between a supervisor and its session helper: one order, then commands and reports, one JSON
//! line each. Both ends are the same program, so this is not a public format.

use std::io::{self, Write as _};
use std::path::PathBuf;

use liza_agents::providers::Dialect;
use liza_agents::providers::guard::{Allowance, GuardStop};
use liza_agents::providers::stream::ClientOutcome;
use liza_agents::providers::usage::SessionUsage;
use liza_core::model::{AgentId, ClientFault, Generation, Network, SandboxMin};
use liza_sandbox::confine::{Level, Plan, StageInput};
use serde::{Deserialize, Serialize};

use crate::session::client_folder::ClientFolder;
use crate::session::login_copies::RefusedLogin;
use crate::session::shared::shared_in_words;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SessionOrder {
    pub project: PathBuf,
    pub agent: AgentId,
    pub generation: Generation,
    pub client: String,
    pub program: PathBuf,
    /// Never the prompt.
    pub arguments: Vec<String>,
    pub directory: PathBuf,
    /// In addition to the variables that it gets from the supervisor.
    pub environment: Vec<(String, String)>,
    pub input: StageInput,
    /// The file with its output; `None` in an interactive session, which has the terminal.
    pub output: Option<PathBuf>,
    /// Created before it starts and removed afterwards.
    pub scratch: PathBuf,
    /// Held until no process of the session is left, so that two sessions of one agent never overlap.
    pub lock: PathBuf,
    pub dialect: Dialect,
    pub allowance: Allowance,
    /// The file in which the program leaves its last event.
    pub result_file: Option<PathBuf>,
    /// `None` if the settings switch that off.
    pub confinement: Option<SessionConfinement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionConfinement {
    /// The liza program, which is also the stage that confines itself.
    pub liza: PathBuf,
    /// The command line of another runner in front of it; empty if there is none.
    pub wrapper: Vec<String>,
    pub plan: Plan,
    pub client: ClientFolder,
    /// It remains after the session.
    pub caches: PathBuf,
    /// Variables of the supervisor that its agent program needs for its login.
    pub login_variables: Vec<String>,
    pub minimum: Option<SandboxMin>,
    /// The things that it shares with the person even in a room.
    pub shared: Vec<String>,
}

impl SessionConfinement {
    pub(super) fn network(&self) -> Network {
        self.plan.network()
    }

    /// The first line of the session's output.
    pub(super) fn first_line(&self, level: &Level) -> String {
        let level_in_words = level.describe(self.network());
        let shared = shared_in_words(&self.shared, level);
        format!("[liza: confinement {level_in_words}; shared with you: {shared}]")
    }

    /// The file with the plan, for a session that confines its checks.
    pub(super) fn plan_file(&self) -> PathBuf {
        self.client.path.join("plan.json")
    }
}

/// Commands to a helper while the session runs. A closed pipe means: kill all processes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HelperCommand {
    /// Ask every process to end.
    Terminate,
    Kill,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum HelperReport {
    Started {
        pid: u32,
        level: Level,
        network: Network,
    },
    Used(SessionUsage),
    Guarded(GuardStop),
    /// Its program reports an error, from which it may still recover.
    Faulted(ClientFault),
    /// Its output exceeds the limit; the rest is only counted.
    OutputTruncated {
        kept: u64,
    },
    /// A part of its copy of a login was not written back.
    RefusedLogin(RefusedLogin),
    /// It has ended, and no process of it is left.
    Ended {
        /// If it ended by itself.
        code: Option<i32>,
        signal: Option<i32>,
        /// The bytes of its output that were not kept.
        dropped: u64,
        /// The end that the program itself reported.
        outcome: ClientOutcome,
        /// The person, or another session, has changed the login since it began.
        login_changed: bool,
    },
    Failed {
        message: String,
    },
}

/// Sends a report to the supervisor, if it is still alive.
pub(super) fn send_report(report: &HelperReport) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
