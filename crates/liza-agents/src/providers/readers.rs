//! The reader of each program's output, and the detection of the program.

use super::claude::ClaudeEvents;
use super::codex::CodexEvents;
use super::copilot::CopilotEvents;
use super::event::{EventFormat, EventReader};
use super::gemini::GeminiEvents;
use super::goose::GooseEvents;
use super::opencode::OpencodeEvents;
use super::rehearsal::RehearsalEvents;
use super::vibe::VibeEvents;

/// The number of lines from which a format is detected.
const DETECT_LINES: usize = 100;

impl EventFormat {
    /// The reader of the events; none for plain text.
    pub fn reader(self) -> Option<Box<dyn EventReader>> {
        match self {
            EventFormat::None => None,
            EventFormat::Rehearsal => Some(Box::new(RehearsalEvents)),
            EventFormat::Claude => Some(Box::<ClaudeEvents>::default()),
            EventFormat::Codex => Some(Box::<CodexEvents>::default()),
            EventFormat::Gemini => Some(Box::<GeminiEvents>::default()),
            EventFormat::Goose => Some(Box::<GooseEvents>::default()),
            EventFormat::Opencode => Some(Box::<OpencodeEvents>::default()),
            EventFormat::Vibe => Some(Box::<VibeEvents>::default()),
            EventFormat::Copilot => Some(Box::<CopilotEvents>::default()),
            EventFormat::Qwen => Some(Box::new(ClaudeEvents::qwen())),
        }
    }

    /// True if all output of the program should be events.
    pub(crate) fn expects_events(self) -> bool {
        !matches!(self, EventFormat::None | EventFormat::Rehearsal)
    }
}

/// The format in which most lines of an output are events; the likely one if there are none.
pub fn detect_format(output: &str, likely: EventFormat) -> EventFormat {
    let formats = [
        EventFormat::Claude,
        EventFormat::Codex,
        EventFormat::Gemini,
        EventFormat::Goose,
        EventFormat::Opencode,
        EventFormat::Vibe,
        EventFormat::Copilot,
        EventFormat::Rehearsal,
    ];
    let events = |format: EventFormat| {
        let Some(mut reader) = format.reader() else { return 0 };
        output.lines().take(DETECT_LINES).filter(|line| reader.read(line).is_some()).count()
    };
    let mut best = (events(likely), likely);
    for format in formats {
        let found = events(format);
        if found > best.0 {
            best = (found, format);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SE-07
    #[test]
    fn the_format_of_an_output_is_detected() {
        let claude = "Hello\n{\"type\":\"system\",\"subtype\":\"init\"}\n{\"type\":\"result\"}\n";
        assert_eq!(detect_format(claude, EventFormat::None), EventFormat::Claude);
        assert_eq!(detect_format("{\"type\":\"turn.started\"}\n", EventFormat::Claude), EventFormat::Codex);
        assert_eq!(detect_format(r#"{"type":"usage","input":1}"#, EventFormat::None), EventFormat::Rehearsal);
        assert_eq!(detect_format("Hello\n", EventFormat::None), EventFormat::None);
    }
}
