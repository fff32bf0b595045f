//! A running session as its supervisor sees it: commands to a helper process, reports from it. Dropping it
//! closes the helper's pipe, which kills every process of the session.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use liza_agents::providers::stream::ClientOutcome;
use liza_core::model::{Price, Repair, Revision, Sha, TaskId};
use liza_core::rules::triggers::Trigger;
use liza_git::ScratchCheckout;
use liza_host::model_proxy::ModelProxy;
use liza_sandbox::sys::family::kill_session_of;

use crate::channel::{LastRefusal, OpenChannel};
use crate::project::identity::helper_arguments;
use crate::session::check_door::CheckDoor;

use super::error::SupervisorError;
use super::file_modes::FileModes;
use super::helper_protocol::{HelperCommand, HelperReport, SessionOrder};

const START: &str = "start the session helper";

#[derive(Debug)]
pub(super) struct Session {
    control: ChildStdin,
    /// A planner has none.
    pub task: Option<TaskId>,
    /// The planner's triggers, those that waited included.
    pub triggers: Vec<Trigger>,
    pub client: String,
    /// The human's next step if the client is not logged in.
    pub login: Option<Repair>,
    /// The price of its tokens, if the client doesn't report the cost.
    pub price: Option<Price>,
    pub began_at: Revision,
    /// The commit of a coder's worktree when it began.
    pub head: Option<Sha>,
    /// A session in a terminal has none.
    pub output: Option<PathBuf>,
    /// The state of the project's own checkout, if the session must not change it.
    pub checkout: Option<String>,
    /// The modes of Liza's files when it began.
    pub modes: FileModes,
    pub last_refusal: LastRefusal,
}

/// A helper that starts while its order is still being made. Dropping it ends it.
#[derive(Debug)]
pub(super) struct WaitingHelper {
    helper: Option<Child>,
}

impl WaitingHelper {
    pub(super) fn start(program: &Path, order: &SessionOrder) -> Result<Self, SupervisorError> {
        let mut command = Command::new(program);
        command.args(helper_arguments(&order.project, order.agent, order.generation));
        let helper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Ok(Self { helper: Some(helper.map_err(SupervisorError::io(START))?) })
    }

    /// Sends it the order. Read its reports with [`HelperProcess::read_reports`].
    pub(super) fn send(
        mut self,
        order: &SessionOrder,
        task: Option<TaskId>,
        began_at: Revision,
    ) -> Result<(Session, HelperProcess), SupervisorError> {
        let failed = SupervisorError::io(START);
        let Some(helper) = &mut self.helper else { return Err(failed(io::ErrorKind::BrokenPipe.into())) };
        let (Some(mut control), Some(reports)) = (helper.stdin.take(), helper.stdout.take()) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let sent = serde_json::to_string(order).map_err(io::Error::other);
        let sent = sent.and_then(|line| writeln!(control, "{line}"));
        let helper = match (sent, self.helper.take()) {
            (Ok(()), Some(helper)) => helper,
            (Ok(()), None) => return Err(failed(io::ErrorKind::BrokenPipe.into())),
            (Err(error), helper) => {
                drop(control);
                self.helper = helper;
                return Err(failed(error));
            }
        };
        let session = Session {
            control,
            task,
            triggers: Vec::new(),
            client: order.client.clone(),
            login: None,
            price: None,
            began_at,
            head: None,
            output: order.output.clone(),
            checkout: None,
            modes: FileModes::default(),
            last_refusal: LastRefusal::default(),
        };
        Ok((session, HelperProcess { helper, reports, copy: None, channel: None, door: None, proxy: None }))
    }
}

impl Drop for WaitingHelper {
    fn drop(&mut self) {
        if let Some(mut helper) = self.helper.take() {
            // Closes its input first: without an order, it exits at the end of that.
            let _ = helper.wait();
        }
    }
}

impl Session {
    /// Sends the helper a command. If it is gone, its end is reported anyway.
    pub(super) fn send(&mut self, command: HelperCommand) {
        if let Ok(line) = serde_json::to_string(&command) {
            let _ = writeln!(self.control, "{line}");
        }
    }
}

#[derive(Debug)]
pub(super) struct HelperProcess {
    helper: Child,
    reports: ChildStdout,
    /// A checkout that exists as long as the session.
    pub copy: Option<ScratchCheckout>,
    /// The channel for its commands, as long as it lives.
    pub channel: Option<OpenChannel>,
    /// The door for its checks.
    pub door: Option<CheckDoor>,
    /// The proxy to its model, as long as it lives; `None` if its network is open.
    pub proxy: Option<ModelProxy>,
}

impl HelperProcess {
    pub(super) fn id(&self) -> u32 {
        self.helper.id()
    }

    /// Forwards every report; the last one only after the helper has exited. If the helper was killed, kills
    /// the rest of its session.
    pub(super) fn read_reports(self, report: impl Fn(HelperReport)) {
        let Self { mut helper, reports, copy, channel, door, proxy } = self;
        let mut last = HelperReport::Ended {
            code: None,
            signal: Some(9),
            dropped: 0,
            outcome: ClientOutcome::default(),
            login_changed: false,
        };
        for line in BufReader::new(reports).lines() {
            let Ok(line) = line else { break };
            let Ok(received) = serde_json::from_str::<HelperReport>(&line) else { continue };
            if let (HelperReport::Started { pid, .. }, Some(channel)) = (&received, &channel) {
                channel.client_is(*pid);
            }
            match received {
                HelperReport::Ended { .. } | HelperReport::Failed { .. } => last = received,
                HelperReport::Started { .. }
                | HelperReport::Used(_)
                | HelperReport::Guarded(_)
                | HelperReport::Faulted(_)
                | HelperReport::OutputTruncated { .. }
                | HelperReport::RefusedLogin(_) => report(received),
            }
        }
        let _ = helper.wait();
        kill_session_of(helper.id());
        // Before the last report: the supervisor may exit after it.
        drop((copy, channel, door, proxy));
        report(last);
    }
}
