//! The lines that an agent program prints beside its words: its log, its banner, the frames of a stack trace.

/// The beginnings of lines that greet, or that follow an error without its reason.
const ASIDES: [&str; 11] = [
    "starting session |",
    "resuming session |",
    "reading prompt from stdin",
    "loaded cached credentials",
    "yolo mode is enabled",
    "traceback (most recent call last)",
    "note: run with `rust_backtrace",
    "stack backtrace:",
    "goroutine ",
    "node.js v",
    "bun v",
];

/// True if a line says nothing about the reason of an end: it belongs to a log, a banner or a stack trace, continues a line
/// before it, or is a command that the agent ran: such a command answers to the agent, and not to a person.
pub fn is_aside(line: &str) -> bool {
    let text = line.trim().to_lowercase();
    let is_continued = line.starts_with([' ', '\t']) && !text.starts_with("error");
    let has_words = text.chars().any(char::is_alphabetic);
    is_log_line(line)
        || is_continued
        || line.starts_with("$ ")
        || !has_words
        || ASIDES.iter().any(|begin| text.starts_with(begin))
}

/// True if a line begins with a date and a time, as those of a log do.
fn is_log_line(line: &str) -> bool {
    let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let begin: String = line.trim_start().trim_start_matches('[').chars().take(11).map(digit).collect();
    matches!(begin.as_str(), "0000-00-00T" | "0000-00-00 ")
}
