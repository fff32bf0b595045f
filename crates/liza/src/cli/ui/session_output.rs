//! The output of a session, rendered line by line for people. Knows no colours.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use liza_agents::providers::event::{ClientEvent, ToolAnswer, ToolEnd};
use liza_agents::providers::stream::EventStream;
use liza_core::text::count;
use liza_host::durable::{self, Open};
use liza_team::observe::activity::describe;
use liza_team::session::denied::{is_write, refused_path};

use crate::cli::ui::clean::clean;

/// The kind of a line of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenderedKind {
    /// The words of the agent.
    Text,
    Tool,
    Answer,
    /// A refusal of Liza as the answer of a tool.
    Refusal,
    /// Something about the session.
    Note,
    Fault,
    /// Advice for a person about a refused path.
    Hint,
}

/// One entry of the output; its text may have several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RenderedLine {
    pub(crate) kind: RenderedKind,
    /// Its text, without control characters.
    pub(crate) text: String,
}

/// A file with a session's output, read as far as it goes.
pub(crate) struct SessionOutput {
    file: File,
    stream: EventStream,
    /// True if the session is confined, as its first line says.
    is_confined: bool,
}

/// The start of the helper's note about a refused service.
const REFUSED: &str = "[liza: refused: ";

/// The beginnings of the first line of a confined session's output.
const CONFINED: [&str; 5] = [
    "[liza: confinement isolated",
    "[liza: confinement restricted",
    "[liza: confinement unenforced",
    // Before there were rooms.
    "[liza: confinement enforced",
    "[liza: confinement partly",
];

impl SessionOutput {
    /// Reads from the beginning.
    pub(crate) fn open(path: &Path, stream: EventStream) -> io::Result<Self> {
        Ok(Self { file: durable::open(Open::Read, path)?, stream, is_confined: false })
    }

    /// Leaves out all but that many bytes at the end.
    pub(crate) fn skip_to_last(&mut self, bytes: u64) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        self.file.seek(SeekFrom::Start(length.saturating_sub(bytes))).map(|_| ())
    }

    pub(crate) fn read_new(&mut self) -> io::Result<Vec<RenderedLine>> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        let mut lines = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.stream.push(line, &mut |event| lines.extend(render(event)));
            let text = String::from_utf8_lossy(line);
            self.is_confined |= CONFINED.iter().any(|start| text.starts_with(start));
            let path = refused_path(&text).filter(|_| self.is_confined);
            lines.extend(path.map(|path| hint(path, is_write(&text, path))));
            lines.extend(refused_service(&text));
        }
        Ok(lines)
    }

    /// The rest, once nothing more will be printed.
    pub(crate) fn finish(&mut self) -> Vec<RenderedLine> {
        let mut lines = Vec::new();
        self.stream.finish(&mut |event| lines.extend(render(event)));
        lines
    }
}

/// The helper's note about a service of this machine that the session does not reach.
fn refused_service(line: &str) -> Option<RenderedLine> {
    let text = line.trim_end().strip_prefix(REFUSED)?.trim_end_matches(']');
    Some(RenderedLine { kind: RenderedKind::Hint, text: format!("  {}", clean(text)) })
}

fn hint(path: &str, is_write: bool) -> RenderedLine {
    let (what, settings) = match (path.is_empty(), is_write) {
        (true, _) => ("outside the workspace".to_owned(), "sandbox_writable or config.sandbox_readable"),
        (false, true) => (format!("outside the workspace: {path}"), "sandbox_writable"),
        (false, false) => (format!("outside the workspace: {path}"), "sandbox_readable"),
    };
    let text = format!("  {}; to open it: config.{settings}", clean(&what));
    RenderedLine { kind: RenderedKind::Hint, text }
}

/// The end of the tool and the number of lines that are left out, then the lines that were kept.
fn render_answer(answer: &ToolAnswer) -> Option<RenderedLine> {
    let end = match answer.end {
        ToolEnd::Unknown if answer.lines.is_empty() => return None,
        ToolEnd::Unknown => "answer".to_owned(),
        ToolEnd::Succeeded => "ok".to_owned(),
        ToolEnd::Failed => "failed".to_owned(),
        ToolEnd::Exit(code) => format!("exit {code}"),
    };
    let (kind, by) = match answer.refused {
        true => (RenderedKind::Refusal, ", refused by Liza"),
        false => (RenderedKind::Answer, ""),
    };
    let more = match answer.folded {
        0 => String::new(),
        folded => format!(", {} more", count(folded, "line")),
    };
    let lines = answer.lines.iter().map(|line| format!("\n    {}", clean(line).trim_end()));
    Some(RenderedLine { kind, text: format!("  ↳ {end}{by}{more}{}", lines.collect::<String>()) })
}

fn render(event: &ClientEvent) -> Option<RenderedLine> {
    if let ClientEvent::Answered(answer) = event {
        return render_answer(answer);
    }
    let text = describe(event)?;
    let text: Vec<String> = text.lines().map(clean).collect();
    let kind = match event {
        ClientEvent::Tool(..) => RenderedKind::Tool,
        ClientEvent::Note(_) | ClientEvent::Warning(_) | ClientEvent::BudgetReached => RenderedKind::Note,
        ClientEvent::Fault(_) => RenderedKind::Fault,
        ClientEvent::Text(_)
        | ClientEvent::Started(_)
        | ClientEvent::Answered(_)
        | ClientEvent::Compacted
        | ClientEvent::Used(_)
        | ClientEvent::Ended => RenderedKind::Text,
    };
    Some(RenderedLine { kind, text: text.join("\n") })
}
