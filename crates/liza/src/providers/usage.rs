//! The usage of a session: the only place where the events of agent programs are read.
//!
//! Most programs write one JSON object per line; which of them carry tokens, cost and context differs, so each format
//! has its own reader here. Output is not trusted: invalid lines are skipped, sums saturate, nothing can fail. Ordinary
//! output is never searched.

use liza_core::model::{HANDOFF_AT, Usage};
use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};

/// Longer lines are no events; they are skipped without being stored.
const LINE_MAX: usize = 1 << 20;
/// More tokens than any session uses.
const TOKENS_MAX: u64 = 1_000_000_000_000;
/// More money than any session costs.
const COST_MAX: f64 = 1_000_000.0;

/// The format of the events that a program writes to its output, named as in `config.providers`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum EventFormat {
    /// No events are read.
    #[default]
    None,
    /// The events of the rehearsal agent.
    Rehearsal,
}

impl EventFormat {
    fn reader(self) -> Option<Box<dyn EventReader>> {
        match self {
            EventFormat::None => None,
            EventFormat::Rehearsal => Some(Box::new(RehearsalEvents)),
        }
    }
}

/// What a session has used so far, as its program reports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionUsage {
    /// Tokens and cost.
    pub(crate) usage: Usage,
    /// How full its context is, as last reported.
    pub(crate) context_percent: Option<u32>,
    /// The number of events counted; the later of two readings has more.
    pub(crate) events: u64,
}

impl SessionUsage {
    /// Whether the session should hand over because its context is almost full.
    pub(crate) fn should_hand_over(&self) -> bool {
        self.context_percent.is_some_and(|percent| percent >= HANDOFF_AT)
    }

    fn add(&mut self, event: &UsageEvent) {
        self.usage.add(&event.usage);
        self.context_percent = event.context_percent.or(self.context_percent);
        self.events = self.events.saturating_add(1);
    }
}

/// What was used since the previous event.
#[derive(Debug, Clone, PartialEq)]
struct UsageEvent {
    usage: Usage,
    context_percent: Option<u32>,
}

/// Reads the events of one format; may keep state from line to line.
trait EventReader: Send {
    /// The usage in a line; `None` if the line is about something else or invalid.
    fn read(&mut self, line: &str) -> Option<UsageEvent>;
}

/// Adds up the usage of a session while its output is read.
pub(crate) struct UsageMeter {
    reader: Option<Box<dyn EventReader>>,
    /// The incomplete last line.
    line: Vec<u8>,
    /// Whether the rest of the line is skipped.
    too_long: bool,
    total: SessionUsage,
}

impl UsageMeter {
    /// A meter for output in this format.
    pub(crate) fn new(format: EventFormat) -> Self {
        Self { reader: format.reader(), line: Vec::new(), too_long: false, total: SessionUsage::default() }
    }

    /// The usage so far.
    pub(crate) fn total(&self) -> &SessionUsage {
        &self.total
    }

    /// Reads the next output.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
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

    /// Reads the last line, which may have no line break.
    pub(crate) fn finish(&mut self) {
        self.end_line();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let whole = !std::mem::take(&mut self.too_long);
        // An event starts at the beginning of a line; output of tools is indented or inside a text.
        if whole
            && line.starts_with(b"{")
            && let Ok(line) = str::from_utf8(&line)
            && let Some(event) = self.reader.as_mut().and_then(|reader| reader.read(line))
        {
            self.total.add(&event);
        }
    }
}

/// `{"type": "usage", "input": 1200, "output": 300, "cached": 0, "cost_usd": 0.01, "context_percent": 34}`: the usage
/// since the last such line, and how full the context is now.
struct RehearsalEvents;

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

impl EventReader for RehearsalEvents {
    fn read(&mut self, line: &str) -> Option<UsageEvent> {
        let line: UsageLine = serde_json::from_str(line).ok()?;
        let UsageLine { input, output, cached, cost_usd, .. } = line;
        let usage = Usage { input, output, cached, cost_usd };
        let context_percent = match line.context_percent {
            Some(share) => Some(whole_percent(share)?),
            None => None,
        };
        (line.kind == "usage" && is_plausible(&usage)).then_some(UsageEvent { usage, context_percent })
    }
}

fn is_plausible(usage: &Usage) -> bool {
    let tokens = [usage.input, usage.output, usage.cached];
    tokens.iter().all(|tokens| *tokens <= TOKENS_MAX) && (0.0..=COST_MAX).contains(&usage.cost_usd)
}

/// A percentage rounded down: 89.9 is not yet 90.
fn whole_percent(share: f64) -> Option<u32> {
    let whole = (0..=100_u32).rev().find(|whole| f64::from(*whole) <= share);
    whole.filter(|_| share <= 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &[u8]) -> SessionUsage {
        let mut meter = UsageMeter::new(EventFormat::Rehearsal);
        meter.push(output);
        meter.finish();
        meter.total().clone()
    }

    const GOOD: &str =
        r#"{"type":"usage","input":100,"output":20,"cached":50,"cost_usd":0.25,"context_percent":34.9}"#;

    fn once() -> SessionUsage {
        let usage = Usage { input: 100, output: 20, cached: 50, cost_usd: 0.25 };
        SessionUsage { usage, context_percent: Some(34), events: 1 }
    }

    /// Covers: AG-14
    #[test]
    fn events_add_up_and_the_last_context_counts() {
        assert_eq!(read(format!("Mode: Liza [Coder]\n{GOOD}\n").as_bytes()), once());
        let more = r#"{"type":"usage","output":1,"context_percent":91}"#;
        let silent = r#"{"type":"usage","output":1}"#;
        let all = read(format!("{GOOD}\nwords\n{more}\n{silent}").as_bytes());
        assert_eq!((all.usage.input, all.usage.output, all.events), (100, 22, 3), "the last line has no end");
        assert_eq!(
            (all.context_percent, all.should_hand_over(), once().should_hand_over()),
            (Some(91), true, false)
        );
    }

    /// Covers: AG-14
    #[test]
    fn output_in_pieces_of_any_size_reads_the_same() {
        let text = format!("x\n{GOOD}\ny");
        for size in 1..text.len() {
            let mut meter = UsageMeter::new(EventFormat::Rehearsal);
            text.as_bytes().chunks(size).for_each(|chunk| meter.push(chunk));
            meter.finish();
            assert_eq!(*meter.total(), once(), "{size}");
        }
    }

    /// Covers: AG-14
    #[test]
    fn invalid_lines_count_for_nothing() {
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
            assert_eq!(seen, SessionUsage::default(), "{}", line.chars().take(80).collect::<String>());
            assert_eq!(read(format!("{line}\n{GOOD}\n").as_bytes()), once(), "and does not stop the rest");
        }
        assert_eq!(read(b"{\"type\":\"usage\",\"input\":1,\"x\":\"\xff\"}\n"), SessionUsage::default());
    }

    /// Covers: AG-14
    #[test]
    fn an_endless_line_is_not_stored() {
        let mut meter = UsageMeter::new(EventFormat::Rehearsal);
        for _ in 0..40 {
            meter.push(&[b'{'; 64 << 10]);
        }
        assert!(meter.line.capacity() <= 2 * LINE_MAX, "{}", meter.line.capacity());
        meter.push(format!("\n{GOOD}\n").as_bytes());
        assert_eq!(*meter.total(), once());
    }

    /// Covers: AG-14
    #[test]
    fn sums_saturate_and_other_formats_are_not_read() {
        let mut total = SessionUsage { usage: Usage { input: u64::MAX - 1, ..Usage::default() }, ..once() };
        total.add(&UsageEvent { usage: once().usage, context_percent: None });
        assert_eq!((total.usage.input, total.context_percent), (u64::MAX, Some(34)));
        let mut meter = UsageMeter::new(EventFormat::None);
        meter.push(GOOD.as_bytes());
        meter.finish();
        assert_eq!(*meter.total(), SessionUsage::default());
    }
}
