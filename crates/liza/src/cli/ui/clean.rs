//! Text of others, without terminal sequences.

use liza_core::text::is_unprintable;

/// Removes terminal sequences, control characters and characters that reorder text; line breaks and tabs stay.
pub(crate) fn clean(text: &str) -> String {
    if !text.contains(|c: char| is_unprintable(c) && c != '\n') {
        return text.to_owned();
    }
    let plain = anstream::adapter::strip_str(text).to_string().replace("\r\n", "\n").replace('\r', "\n");
    plain.chars().filter(|c| !is_unprintable(*c) || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: CM-05
    #[test]
    fn terminal_sequences_and_control_characters_are_removed() {
        let cases = [
            ("plain – 🎉 text\n\nwith lines", "plain – 🎉 text\n\nwith lines"),
            ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("bell\u{7} back\u{8} del\u{7f} c1\u{9b}31m", "bell back del c131m"),
            ("dos\r\nmac\rtab\t.", "dos\nmac\ntab\t."),
            ("user\u{202e}nimda\u{2066} \u{200f}x", "usernimda x"),
        ];
        for (given, kept) in cases {
            assert_eq!(clean(given), kept, "{given:?}");
        }
    }
}
