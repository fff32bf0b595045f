//! Small defects: a text with one change, made by a table that fits most languages.

/// The replacements, each tried at every place. Numbers are increased by one besides.
const TABLE: [(&str, &str); 26] = [
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" == ", " != "),
    (" != ", " == "),
    (" === ", " !== "),
    (" !== ", " === "),
    (" && ", " || "),
    (" || ", " && "),
    (" and ", " or "),
    (" or ", " and "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " + "),
    (" / ", " * "),
    (" % ", " / "),
    (" -lt ", " -le "),
    (" -le ", " -lt "),
    (" -gt ", " -ge "),
    (" -ge ", " -gt "),
    (" -eq ", " -ne "),
    ("true", "false"),
    ("false", "true"),
    ("max(", "min("),
    ("##", "#"),
];

/// The text with one change each, in a fixed order.
pub fn mutations(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (from, to) in TABLE {
        for (at, _) in text.match_indices(from) {
            all.push(format!("{}{to}{}", &text[..at], &text[at + from.len()..]));
        }
    }
    all.extend(larger_numbers(text));
    all
}

/// The text with one of its numbers one larger.
fn larger_numbers(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        if c.is_ascii_digit() && !is_word(before) {
            let length = text[start..].find(|c: char| !is_word(c)).unwrap_or(text.len() - start);
            if let Ok(number) = text[start..start + length].parse::<u64>() {
                found.push(format!("{}{}{}", &text[..start], number + 1, &text[start + length..]));
            }
            while rest.next_if(|(at, _)| *at < start + length).is_some() {}
        }
        before = c;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-01, TR-03
    #[test]
    fn a_mutation_is_the_text_with_one_change() {
        assert_eq!(mutations("a < b + 10"), ["a <= b + 10", "a < b - 10", "a < b + 11"]);
        assert_eq!(mutations("x1 = i64"), Vec::<String>::new());
    }
}
