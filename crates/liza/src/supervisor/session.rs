//! A session as its supervisor sees it: an order to a helper process, words to it, reports from it.
//!
//! Dropping a session closes the helper's pipe, which ends everything in it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::Sender;

use liza_core::model::{Revision, TaskId, Timestamp};

use crate::project::now;
use crate::sys::family::kill_session_of;

use super::event::{Event, Seat};
use super::order::{Order, Report, Word};
use super::trouble::Trouble;

/// The hidden command by which the program is its own helper.
pub(super) const HELPER: &str = "session";

/// A session that runs.
#[derive(Debug)]
pub(super) struct Session {
    control: ChildStdin,
    /// On which task or review.
    pub(super) task: Option<TaskId>,
    /// What the planner was woken for, and whatever else stood then.
    pub(super) triggers: Vec<String>,
    /// The blackboard's revision when it began.
    pub(super) began_at: Revision,
    /// When it began.
    pub(super) began: Timestamp,
    /// What the project's own checkout looked like, where the session has no business to change it.
    pub(super) checkout: Option<String>,
}

impl Session {
    /// Starts a helper and gives it the order. Its reports are for the caller to follow, once the session is known.
    pub(super) fn start(
        program: &Path,
        order: &Order,
        task: Option<TaskId>,
        began_at: Revision,
    ) -> Result<(Self, Follower), Trouble> {
        let began = now();
        let mut helper =
            Command::new(program).arg(HELPER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(mut control), Some(reports)) = (helper.stdin.take(), helper.stdout.take()) else {
            return Err(Trouble::Failed("the session helper has no pipes".to_owned()));
        };
        let order = serde_json::to_string(order).map_err(std::io::Error::other)?;
        if let Err(error) = writeln!(control, "{order}") {
            drop(control);
            let _ = helper.wait();
            return Err(error.into());
        }
        let session = Self { control, task, triggers: Vec::new(), began_at, began, checkout: None };
        Ok((session, Follower { helper, reports }))
    }

    /// Tells the helper something; where it is gone, its end is reported anyway.
    pub(super) fn tell(&mut self, word: Word) {
        if let Ok(line) = serde_json::to_string(&word) {
            let _ = writeln!(self.control, "{line}");
        }
    }
}

/// The other end of a helper's reports.
#[derive(Debug)]
pub(super) struct Follower {
    helper: Child,
    reports: ChildStdout,
}

impl Follower {
    /// Makes the helper's reports events until it is gone, the last one only then. One that was killed is swept up
    /// after.
    pub(super) fn follow(self, seat: Seat, events: &Sender<Event>) {
        let Self { mut helper, reports } = self;
        let mut last = Report::Ended { code: None, signal: Some(9), dropped: 0 };
        for line in BufReader::new(reports).lines() {
            let Ok(line) = line else { break };
            let Ok(report) = serde_json::from_str::<Report>(&line) else { continue };
            match report {
                Report::Ended { .. } | Report::Failed { .. } => last = report,
                Report::Started { .. } | Report::Used(_) | Report::Flooded { .. } => {
                    let _ = events.send(Event::Session(seat, report));
                }
            }
        }
        let _ = helper.wait();
        kill_session_of(helper.id());
        let _ = events.send(Event::Session(seat, last));
    }
}
