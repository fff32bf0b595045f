//! The lines of an agent program's own log, which it prints beside its events.

/// True if a line begins with a date and a time, as those of a log do.
pub fn is_log_line(line: &str) -> bool {
    let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let begin: String = line.trim_start().trim_start_matches('[').chars().take(11).map(digit).collect();
    matches!(begin.as_str(), "0000-00-00T" | "0000-00-00 ")
}
