//! The seat of the pages in the browser: commands as the human, sessions and the log.

use std::net::SocketAddr;
use std::sync::Arc;

use liza_agents::providers::stream::EventStream;
use liza_core::model::Timestamp;
use liza_host::durable;
use liza_host::local_time::LocalTime;
use liza_sandbox::sys::tcp_peer::is_outside;
use liza_store::LogRecord;
use liza_team::observe::activity::format_of_output;
use liza_team::observe::live_view::Reading;
use liza_team::project::Project;
use liza_team::project::identity::session_helpers;
use liza_team::session::files::{KeptSession, kept_sessions};
use liza_web::{CommandResult, LogLine, LogTone, OutputKind, OutputLine, SavedSession, Seat, TeamReading};

use crate::cli::ui::clean::clean;
use crate::cli::ui::log_text::{Tone, sentence_by};
use crate::cli::ui::session_output::{RenderedKind, RenderedLine, SessionOutput};

use super::context::Context;
use super::own_commands::OwnCommands;

/// The width for which commands print.
const COLUMNS: u16 = 100;

/// The most bytes of a session's output that are shown.
const OUTPUT_BYTES: u64 = 1 << 20;

/// The most entries of a session's output that are shown.
const OUTPUT_LINES: usize = 2_000;

pub(super) struct WebSeat {
    commands: OwnCommands,
    project: Project,
    times: LocalTime,
}

impl WebSeat {
    pub(super) fn new(context: &Context, project: &Project) -> Arc<Self> {
        let commands = OwnCommands::new(context, project);
        Arc::new(Self { commands, project: project.clone(), times: context.screen.local_time() })
    }

    fn kept(&self, session: &SavedSession) -> Option<KeptSession> {
        kept_sessions(self.project.folder()).into_iter().find(|kept| kept.name == session.name)
    }

    fn rendered(&self, session: &SavedSession) -> Option<Vec<RenderedLine>> {
        let path = self.kept(session)?.output(self.project.folder());
        let state = self.project.state().ok()?;
        let format = format_of_output(&state, session.agent, &path);
        let mut output = SessionOutput::open(&path, EventStream::new(format)).ok()?;
        output.skip_to_last(OUTPUT_BYTES).ok()?;
        let mut lines = output.read_new().ok()?;
        lines.extend(output.finish());
        Some(lines)
    }
}

impl Seat for WebSeat {
    fn execute(&self, words: &[String]) -> CommandResult {
        let result = self.commands.execute(words, COLUMNS);
        CommandResult { succeeded: result.succeeded, text: clean(&result.text) }
    }

    fn admits(&self, peer: SocketAddr, server: SocketAddr) -> bool {
        is_outside(peer, server, &session_helpers())
    }

    fn sessions(&self) -> Vec<SavedSession> {
        let saved = |kept: KeptSession| {
            let KeptSession { name, agent, about, started, .. } = kept;
            SavedSession { name, agent, about, started }
        };
        kept_sessions(self.project.folder()).into_iter().map(saved).collect()
    }

    fn prompt(&self, session: &SavedSession) -> Option<String> {
        durable::read_text(&self.kept(session)?.prompt(self.project.folder())).ok().map(|text| clean(&text))
    }

    fn output(&self, session: &SavedSession) -> Vec<OutputLine> {
        let mut lines = self.rendered(session).unwrap_or_default();
        lines.drain(..lines.len().saturating_sub(OUTPUT_LINES));
        lines.into_iter().map(output_line).collect()
    }

    fn log(&self) -> Vec<LogLine> {
        let entries = self.project.store().log_reader().read_new().unwrap_or_default();
        entries.into_iter().map(log_line).collect()
    }

    fn full_time(&self, time: Timestamp) -> String {
        self.times.full(time)
    }

    fn time_of_day(&self, time: Timestamp) -> String {
        self.times.of_day(time)
    }
}

/// A reading, for the pages.
pub(super) fn team_reading(reading: Reading) -> TeamReading {
    TeamReading { team: reading.team, log: reading.log.into_iter().map(log_line).collect() }
}

fn output_line(line: RenderedLine) -> OutputLine {
    let kind = match line.kind {
        RenderedKind::Text => OutputKind::Text,
        RenderedKind::Tool => OutputKind::Tool,
        RenderedKind::Answer => OutputKind::Answer,
        RenderedKind::Refusal => OutputKind::Refusal,
        RenderedKind::Note | RenderedKind::Hint => OutputKind::Note,
        RenderedKind::Fault => OutputKind::Fault,
    };
    OutputLine { kind, text: line.text }
}

fn log_line(entry: LogRecord) -> LogLine {
    let LogRecord { timestamp, agent, action, task, detail, .. } = entry;
    let said = sentence_by(&agent, &action, task.as_deref(), &detail);
    let tone = match said.tone {
        Tone::Plain => LogTone::Plain,
        Tone::Strong => LogTone::Strong,
        Tone::Good => LogTone::Good,
        Tone::Attention => LogTone::Attention,
        Tone::Bad => LogTone::Bad,
    };
    let sentence = [said.before, said.after];
    LogLine { time: timestamp, who: agent, action, task, detail, sentence, remark: said.detail, tone }
}
