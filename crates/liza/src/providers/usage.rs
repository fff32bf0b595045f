//! What a session used: the one place where the event streams of agent programs are read.
//!
//! Most programs write one JSON object per line; which of them carries tokens, cost and context differs, so every
//! kind of stream has a reader of its own here. Output is not to be trusted: a line that makes no sense is passed
//! over, sums saturate, nothing can fail. No words are looked for in ordinary output.

use liza_core::model::{HANDOFF_AT, Usage};
use serde::{Deserialize, Serialize};

/// A longer line is no event that anybody writes; it is passed over without being kept.
const LINE_MAX: usize = 1 << 20;
/// More tokens than any session uses.
const TOKENS_MAX: u64 = 1_000_000_000_000;
/// More money than any session costs.
const COST_MAX: f64 = 1_000_000.0;

/// What kind of events a program writes to its output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// None that are read.
    #[default]
    None,
    /// Those of the rehearsal agent.
    Rehearsal,
}

impl Stream {
    /// The kinds by name, as `config.providers` writes them.
    pub const NAMES: [(&'static str, Stream); 2] = [("none", Stream::None), ("rehearsal", Stream::Rehearsal)];

    fn reader(self) -> Option<Box<dyn Reader>> {
        match self {
            Stream::None => None,
            Stream::Rehearsal => Some(Box::new(Rehearsal)),
        }
    }
}

/// What a session has used so far, as its program says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Tokens and money.
    pub usage: Usage,
    /// How full its context was when it was last measured.
    pub context_percent: Option<u32>,
    /// How many events said so; the later of two measurements has more.
    pub events: u64,
}

impl Measured {
    /// Whether the session should hand over.
    pub fn is_used_up(&self) -> bool {
        self.context_percent.is_some_and(|percent| percent >= HANDOFF_AT)
    }

    /// Counts one event.
    fn count(&mut self, used: &Used) {
        self.usage.add(&used.usage);
        self.context_percent = used.context_percent.or(self.context_percent);
        self.events = self.events.saturating_add(1);
    }
}

/// What one event says was used since the one before.
#[derive(Debug, Clone, PartialEq)]
struct Used {
    usage: Usage,
    context_percent: Option<u32>,
}

/// Reads the events of one kind of program; keeps what it has to remember from line to line.
trait Reader: Send {
    /// What the line says was used; nothing where it is about something else, or makes no sense.
    fn read(&mut self, line: &str) -> Option<Used>;
}

/// Adds up what a session uses while its output goes by.
pub struct Meter {
    reader: Option<Box<dyn Reader>>,
    /// The line that is not yet whole.
    line: Vec<u8>,
    /// Whether the rest of the line is passed over.
    too_long: bool,
    measured: Measured,
}

impl Meter {
    /// For a session whose output is of that kind.
    pub fn new(stream: Stream) -> Self {
        Self { reader: stream.reader(), line: Vec::new(), too_long: false, measured: Measured::default() }
    }

    /// What was used so far.
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Takes some more output.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.reader.is_none() {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX - self.line.len().min(LINE_MAX);
            self.too_long |= piece.len() > room;
            if !self.too_long {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    /// The output is over; its last line need not be ended.
    pub fn finish(&mut self) {
        self.end_line();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let whole = !std::mem::take(&mut self.too_long);
        // An event begins its line: what a tool has printed is indented or inside a text.
        if whole
            && line.starts_with(b"{")
            && let Ok(line) = str::from_utf8(&line)
            && let Some(used) = self.reader.as_mut().and_then(|reader| reader.read(line))
        {
            self.measured.count(&used);
        }
    }
}

/// `{"type": "usage", "input": 1200, "output": 300, "cached": 0, "cost_usd": 0.01, "context_percent": 34}`: what was
/// used since the last such line, and how full the context is now.
struct Rehearsal;

#[derive(Deserialize)]
struct UsageLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    cost_usd: f64,
    #[serde(default)]
    context_percent: Option<f64>,
}

impl Reader for Rehearsal {
    fn read(&mut self, line: &str) -> Option<Used> {
        let line: UsageLine = serde_json::from_str(line).ok()?;
        let UsageLine { input, output, cached, cost_usd, .. } = line;
        let usage = Usage { input, output, cached, cost_usd };
        let context_percent = match line.context_percent {
            Some(share) => Some(percent(share)?),
            None => None,
        };
        (line.kind == "usage" && makes_sense(&usage)).then_some(Used { usage, context_percent })
    }
}

fn makes_sense(usage: &Usage) -> bool {
    let tokens = [usage.input, usage.output, usage.cached];
    tokens.iter().all(|tokens| *tokens <= TOKENS_MAX) && (0.0..=COST_MAX).contains(&usage.cost_usd)
}

/// A share in whole percent, rounded down: 89.9 is not yet 90.
fn percent(share: f64) -> Option<u32> {
    let whole = (0..=100_u32).rev().find(|whole| f64::from(*whole) <= share);
    whole.filter(|_| share <= 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &[u8]) -> Measured {
        let mut meter = Meter::new(Stream::Rehearsal);
        meter.push(output);
        meter.finish();
        meter.measured().clone()
    }

    const GOOD: &str =
        r#"{"type":"usage","input":100,"output":20,"cached":50,"cost_usd":0.25,"context_percent":34.9}"#;

    fn once() -> Measured {
        let usage = Usage { input: 100, output: 20, cached: 50, cost_usd: 0.25 };
        Measured { usage, context_percent: Some(34), events: 1 }
    }

    /// Covers: AG-14
    #[test]
    fn events_add_up_and_the_context_is_the_last_measured() {
        assert_eq!(read(format!("Mode: Liza [Coder]\n{GOOD}\n").as_bytes()), once());
        let more = r#"{"type":"usage","output":1,"context_percent":91}"#;
        let silent = r#"{"type":"usage","output":1}"#;
        let all = read(format!("{GOOD}\nwords\n{more}\n{silent}").as_bytes());
        assert_eq!((all.usage.input, all.usage.output, all.events), (100, 22, 3), "the last line has no end");
        assert_eq!((all.context_percent, all.is_used_up(), once().is_used_up()), (Some(91), true, false));
    }

    /// Covers: AG-14
    #[test]
    fn output_in_any_pieces_reads_the_same() {
        let text = format!("x\n{GOOD}\ny");
        for size in 1..text.len() {
            let mut meter = Meter::new(Stream::Rehearsal);
            text.as_bytes().chunks(size).for_each(|chunk| meter.push(chunk));
            meter.finish();
            assert_eq!(*meter.measured(), once(), "{size}");
        }
    }

    /// Covers: AG-14
    #[test]
    fn what_makes_no_sense_counts_for_nothing() {
        let deep = format!(r#"{{"type":"usage","x":{}"#, "[".repeat(100_000));
        let lines = [
            r#"{"type":"usage","input":-1}"#,
            r#"{"type":"usage","input":1.5}"#,
            r#"{"type":"usage","input":99999999999999999999999}"#,
            r#"{"type":"usage","input":1000000000001}"#,
            r#"{"type":"usage","output":"7"}"#,
            r#"{"type":"usage","input":1,"cost_usd":-0.01}"#,
            r#"{"type":"usage","input":1,"cost_usd":1e999}"#,
            r#"{"type":"usage","input":1,"cost_usd":1e300}"#,
            r#"{"type":"usage","input":1,"cost_usd":NaN}"#,
            r#"{"type":"usage","input":1,"context_percent":101}"#,
            r#"{"type":"usage","input":1,"context_percent":-3}"#,
            r#"{"type":"usage","input":1,"input":2}"#,
            r#"{"type":"usage","input":1"#,
            r#"{"type":"says","input":1}"#,
            r#"{"input":1}"#,
            r#"  {"type":"usage","input":1}"#,
            r#"he says {"type":"usage","input":1}"#,
            r#"[{"type":"usage","input":1}]"#,
            "{}",
            "{",
            "\u{0}\u{1b}[31m",
            &deep,
        ];
        for line in lines {
            let seen = read(format!("{line}\n").as_bytes());
            assert_eq!(seen, Measured::default(), "{}", line.chars().take(80).collect::<String>());
            assert_eq!(read(format!("{line}\n{GOOD}\n").as_bytes()), once(), "and does not stop the rest");
        }
        assert_eq!(read(b"{\"type\":\"usage\",\"input\":1,\"x\":\"\xff\"}\n"), Measured::default());
    }

    /// Covers: AG-14
    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let mut meter = Meter::new(Stream::Rehearsal);
        for _ in 0..40 {
            meter.push(&[b'{'; 64 << 10]);
        }
        assert!(meter.line.capacity() <= 2 * LINE_MAX, "{}", meter.line.capacity());
        meter.push(format!("\n{GOOD}\n").as_bytes());
        assert_eq!(*meter.measured(), once());
    }

    /// Covers: AG-14
    #[test]
    fn sums_saturate_and_other_streams_are_not_read() {
        let mut measured = Measured { usage: Usage { input: u64::MAX - 1, ..Usage::default() }, ..once() };
        measured.count(&Used { usage: once().usage, context_percent: None });
        assert_eq!((measured.usage.input, measured.context_percent), (u64::MAX, Some(34)));
        let mut meter = Meter::new(Stream::None);
        meter.push(GOOD.as_bytes());
        meter.finish();
        assert_eq!(*meter.measured(), Measured::default());
    }
}
