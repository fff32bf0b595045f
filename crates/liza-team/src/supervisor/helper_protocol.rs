//! What a supervisor and its session helper send each other: one order, then commands and reports, one JSON line each.
//!
//! Both ends are the same program, so this is not a public format.

use std::io::{self, Write as _};
use std::path::PathBuf;

use liza_agents::providers::event::EventFormat;
use liza_agents::providers::guard::{Allowance, GuardStop};
use liza_agents::providers::stream::ClientOutcome;
use liza_agents::providers::usage::SessionUsage;
use liza_core::model::{AgentId, ClientFault, Generation, Network, SandboxMin};
use liza_sandbox::confine::{Level, Plan};
use serde::{Deserialize, Serialize};

use crate::session::client_folder::ClientFolder;
use crate::session::login_copies::RefusedLogin;

/// The session that the helper runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SessionOrder {
    /// The root of the project.
    pub project: PathBuf,
    pub agent: AgentId,
    pub generation: Generation,
    /// The name of its client.
    pub client: String,
    pub program: PathBuf,
    /// Its arguments; never the prompt.
    pub arguments: Vec<String>,
    pub directory: PathBuf,
    /// Variables in addition to those that it gets of the supervisor's own.
    pub environment: Vec<(String, String)>,
    /// What it reads on standard input; none in an interactive session, which has the terminal.
    pub input: Option<PathBuf>,
    /// Where its output is kept; none in an interactive session, which has the terminal.
    pub output: Option<PathBuf>,
    /// Its own folder for temporary files, created before it starts and removed afterwards.
    pub scratch: PathBuf,
    /// A lock that is held until no process of the session is left, so that two sessions of one agent never overlap.
    pub lock: PathBuf,
    /// The format of the events in its output.
    pub events: EventFormat,
    /// The amount that it may use before a budget is used up.
    pub allowance: Allowance,
    /// The file in which the program leaves its last event.
    pub result_file: Option<PathBuf>,
    /// How it is confined; none if the settings switch that off.
    pub confinement: Option<SessionConfinement>,
}

/// How a session is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionConfinement {
    /// The liza program, which is also the stage that confines itself.
    pub liza: PathBuf,
    /// The command line of another runner in front of it; empty if there is none.
    pub wrapper: Vec<String>,
    pub plan: Plan,
    /// The private folder of its agent program.
    pub client: ClientFolder,
    /// The folder with its caches, which remains.
    pub caches: PathBuf,
    /// Variables of the supervisor that its agent program needs for its login.
    pub login_variables: Vec<String>,
    /// The lowest level at which it starts.
    pub minimum: Option<SandboxMin>,
}

impl SessionConfinement {
    /// What the session can reach in the network.
    pub(super) fn network(&self) -> Network {
        self.plan.network()
    }

    /// The file in which the session finds its plan, for what it confines itself.
    pub(super) fn plan_file(&self) -> PathBuf {
        self.client.path.join("plan.json")
    }
}

/// What a supervisor sends to its helper while the session runs. A closed pipe means: kill all processes now.
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
        /// How well it is confined.
        level: Level,
        /// What it can reach in the network.
        network: Network,
    },
    /// What it has used so far.
    Used(SessionUsage),
    /// It must end for this reason.
    Guarded(GuardStop),
    /// Its program reports an error, from which it may still recover.
    Faulted(ClientFault),
    /// Its output exceeds the limit; the rest is only counted.
    OutputTruncated {
        /// How many bytes are kept.
        kept: u64,
    },
    /// It left something in its copy of a login that was not written back.
    RefusedLogin(RefusedLogin),
    /// It has ended, and no process of it is left.
    Ended {
        /// Its exit code, if it ended by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// How many bytes of its output were not kept.
        dropped: u64,
        /// How the program itself says that it ended.
        outcome: ClientOutcome,
        /// True if the person, or another session, has changed the login since it began.
        login_changed: bool,
    },
    /// It could not be started.
    Failed { message: String },
}

/// Sends a report to the supervisor, if it is still alive.
pub(super) fn send_report(report: &HelperReport) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
