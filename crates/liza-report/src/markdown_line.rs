//! One line of Markdown from untrusted text, which nothing in it can leave. Knows no task and no terminal.

use std::borrow::Cow;

use liza_core::text::one_line;
use liza_host::secrets::Masker;

/// Makes one line of Markdown of an agent's text, with at most `max` characters before escaping: masked,
/// without invisible characters, and shown literally, never as a heading, a link, a picture or HTML.
pub fn markdown_line(text: &str, max: usize, masker: &Masker) -> String {
    // Masked before it is cut: half a secret is no longer recognized.
    escape_markdown(&one_line(&without_invisible(&masker.mask(text)), max))
}

/// Removes characters that cannot be seen but reorder or join the text around them.
fn without_invisible(text: &str) -> Cow<'_, str> {
    let invisible = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    if text.contains(invisible) { Cow::Owned(text.replace(invisible, "")) } else { Cow::Borrowed(text) }
}

/// Escapes a line for Markdown, with as few backslashes as possible, because people also read the source.
fn escape_markdown(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let is_word = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
    let mut escaped = String::with_capacity(line.len() + 8);
    for (at, c) in chars.iter().enumerate() {
        let is_markup = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' => true,
            // Many viewers turn a bare address into a link.
            '@' => true,
            ':' => chars.get(at + 1) == Some(&'/'),
            // Inside a word they are not markup. Unescaped, names such as error_pattern and retry.md#limits can be searched for.
            '_' | '#' => !(is_word(at.checked_sub(1)) && is_word(Some(at + 1))),
            '+' | '-' | '=' => at == 0,
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(*c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SP-03, SP-04
    #[test]
    fn only_what_markdown_interprets_is_escaped() {
        let cases = [
            ("- item - two", "\\- item - two"),
            ("see #12 in a.md#b: $x$", "see \\#12 in a.md#b: \\$x\\$"),
            ("12:30, me@example.com", "12:30, me\\@example.com"),
            ("done! ftp://x", "done! ftp\\://x"),
            (" \n ", ""),
        ];
        for (given, shown) in cases {
            assert_eq!(markdown_line(given, 80, &Masker::default()), shown, "{given:?}");
        }
    }
}
