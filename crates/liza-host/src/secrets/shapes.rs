//! The shapes of secrets, without regular expressions: a prefix and enough of the right characters after it.
//! Works on one line at a time; the caller carries over whether a private key continues.

use memchr::memmem;

use super::{MASK, names_secret};

/// A kind of key with a known prefix.
struct Shape {
    prefix: &'static str,
    /// The minimum number of characters after the prefix.
    min: usize,
    /// One of them must be a digit, since the prefix alone could start a word.
    digit: bool,
    body: fn(u8) -> bool,
}

const fn shape(prefix: &'static str, min: usize, digit: bool, body: fn(u8) -> bool) -> Shape {
    Shape { prefix, min, digit, body }
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// The more specific prefix comes first.
const SHAPES: [Shape; 24] = [
    shape("sk-ant-", 16, false, url_safe),
    shape("sk-", 20, true, url_safe),
    shape("sk_live_", 16, false, alphanumeric),
    shape("sk_test_", 16, false, alphanumeric),
    shape("rk_live_", 16, false, alphanumeric),
    shape("ghp_", 30, false, alphanumeric),
    shape("gho_", 30, false, alphanumeric),
    shape("ghu_", 30, false, alphanumeric),
    shape("ghs_", 30, false, alphanumeric),
    shape("ghr_", 30, false, alphanumeric),
    shape("github_pat_", 30, false, url_safe),
    shape("glpat-", 20, false, url_safe),
    shape("AKIA", 16, false, upper),
    shape("ASIA", 16, false, upper),
    shape("AIza", 30, false, url_safe),
    shape("ya29.", 20, false, url_safe),
    shape("xoxa-", 10, true, url_safe),
    shape("xoxb-", 10, true, url_safe),
    shape("xoxp-", 10, true, url_safe),
    shape("xoxr-", 10, true, url_safe),
    shape("xoxs-", 10, true, url_safe),
    shape("xapp-", 10, true, url_safe),
    shape("hf_", 30, false, alphanumeric),
    shape("npm_", 30, false, alphanumeric),
];

pub(super) fn find(text: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    memmem::find(text.get(from..)?, needle).map(|at| from + at)
}

/// Writes the line to `out` with its secrets masked.
pub(super) fn mask_line(line: &[u8], in_key: &mut bool, out: &mut Vec<u8>) {
    let start = if *in_key { inside_key(line, in_key, out) } else { 0 };
    let mut at = start;
    let mut copied = start;
    while let Some(candidate) = next_candidate(line, at) {
        at = candidate;
        let Some(found) = secret_at(line, at, in_key) else {
            at += 1;
            continue;
        };
        out.extend_from_slice(line.get(copied..found.start).unwrap_or_default());
        out.extend_from_slice(MASK.as_bytes());
        copied = found.end;
        at = found.end.max(at + 1);
    }
    out.extend_from_slice(line.get(copied..).unwrap_or_default());
}

/// The next place where a secret could start. Passes over nearly all of a text, so that the rest costs nothing.
fn next_candidate(line: &[u8], from: usize) -> Option<usize> {
    let tail = line.get(from..)?;
    tail.windows(2)
        .position(|pair| matches!(pair, [first, second] if may_begin(*first, *second)))
        .map(|at| from + at)
}

/// True if a secret could start with these two bytes, whatever their case; sometimes also true for others.
fn may_begin(first: u8, second: u8) -> bool {
    SECONDS[first as usize] >> (second & 31) & 1 == 1
}

/// The first bytes of secrets, and those that may follow each. After `=` anything may follow.
const STARTS: [(u8, &[u8]); 13] = [
    (b'-', b"-"),
    (b':', b"/"),
    (b's', b"k"),
    (b'r', b"k"),
    (b'g', b"hil"),
    (b'a', b"ksiu"),
    (b'y', b"a"),
    (b'x', b"oa-"),
    (b'h', b"f"),
    (b'n', b"p"),
    (b'e', b"y"),
    (b'p', b"r"),
    (b'b', b"e"),
];

/// [`STARTS`] as a table: per first byte a bit for the low five bits of each second one (equal in both cases).
const SECONDS: [u32; 256] = {
    let mut table = [0; 256];
    table[b'=' as usize] = u32::MAX;
    let mut entry = 0;
    while entry < STARTS.len() {
        let (first, seconds) = STARTS[entry];
        let mut bits = 0;
        let mut n = 0;
        while n < seconds.len() {
            bits |= 1 << (seconds[n] & 31);
            n += 1;
        }
        table[first as usize] = bits;
        table[first.to_ascii_uppercase() as usize] = bits;
        entry += 1;
    }
    table
};

struct Span {
    start: usize,
    end: usize,
}

fn secret_at(line: &[u8], at: usize, in_key: &mut bool) -> Option<Span> {
    match line.get(at)? {
        b'-' => private_key(line, at, in_key),
        b':' => url_password(line, at),
        b'=' => assignment(line, at),
        byte if byte.is_ascii_alphabetic() && begins_word(line, at) => {
            by_prefix(line, at).or_else(|| web_token(line, at)).or_else(|| header(line, at))
        }
        _ => None,
    }
}

/// True if a word may start here; the letter of an escape such as `\n` in JSON is no part of a word.
fn begins_word(line: &[u8], at: usize) -> bool {
    let back = |n: usize| at.checked_sub(n).and_then(|place| line.get(place)).copied();
    match back(1) {
        None => true,
        Some(byte) if !(byte.is_ascii_alphanumeric() || byte == b'_') => true,
        Some(b'n' | b't' | b'r') => back(2) == Some(b'\\'),
        Some(_) => false,
    }
}

fn run(line: &[u8], from: usize, body: impl Fn(u8) -> bool) -> usize {
    let tail = line.get(from..).unwrap_or_default();
    from + tail.iter().position(|byte| !body(*byte)).unwrap_or(tail.len())
}

fn by_prefix(line: &[u8], at: usize) -> Option<Span> {
    let tail = line.get(at..)?;
    let shape = SHAPES.iter().find(|shape| tail.starts_with(shape.prefix.as_bytes()))?;
    let start = at + shape.prefix.len();
    let end = run(line, start, shape.body);
    let body = line.get(start..end)?;
    let fits = body.len() >= shape.min && (!shape.digit || body.iter().any(u8::is_ascii_digit));
    fits.then_some(Span { start, end })
}

/// A JSON web token: three parts in base64, the first of which is a JSON object.
fn web_token(line: &[u8], at: usize) -> Option<Span> {
    const PART_MIN: usize = 10;
    if !line.get(at..)?.starts_with(b"eyJ") {
        return None;
    }
    let first = run(line, at, url_safe);
    let second = run(line, first + 1, url_safe);
    let end = run(line, second + 1, url_safe);
    let dots = line.get(first) == Some(&b'.') && line.get(second) == Some(&b'.');
    let long = first - at >= PART_MIN && second.saturating_sub(first) > PART_MIN && end > second + PART_MIN;
    (dots && long).then_some(Span { start: at, end })
}

fn is_value(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !b"\"'`,;\\<>()".contains(&byte)
}

fn starts_with_word(tail: &[u8], word: &str) -> bool {
    tail.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
}

/// Also as the end of a longer name, such as `Proxy-Authorization`.
const HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "private-token"];

/// `Authorization: Bearer …`, `Bearer …` by itself, `x-api-key: …`.
fn header(line: &[u8], at: usize) -> Option<Span> {
    /// A bare word after "Bearer" counts as a key only if it is as long as one.
    const BARE_MIN: usize = 20;
    let tail = line.get(at..)?;
    let gap = |byte: u8| byte == b' ' || byte == b'\t';
    for name in HEADERS {
        if starts_with_word(tail, name) {
            let mut start = run(line, at + name.len(), |byte| b"\"'\\".contains(&byte) || gap(byte));
            if !matches!(line.get(start), Some(b':' | b'=')) {
                return None;
            }
            start = run(line, start + 1, |byte| b"\"'\\".contains(&byte) || gap(byte));
            for scheme in ["bearer ", "basic ", "token "] {
                if line.get(start..).is_some_and(|rest| starts_with_word(rest, scheme)) {
                    start = run(line, start + scheme.len(), gap);
                    break;
                }
            }
            let end = run(line, start, is_value);
            return (end >= start + 8).then_some(Span { start, end });
        }
    }
    if !starts_with_word(tail, "bearer ") {
        return None;
    }
    let start = run(line, at + "bearer ".len(), gap);
    let end = run(line, start, is_value);
    let body = line.get(start..end)?;
    (body.len() >= BARE_MIN && body.iter().any(u8::is_ascii_digit)).then_some(Span { start, end })
}

/// The password in `scheme://user:password@host`, or a user name that is long enough to be a token.
fn url_password(line: &[u8], at: usize) -> Option<Span> {
    const USER_MAX: usize = 20;
    if !line.get(at..)?.starts_with(b"://") || at == 0 {
        return None;
    }
    let user = at + 3;
    let end = run(line, user, |byte| is_value(byte) && byte != b'/' && byte != b'@');
    if line.get(end) != Some(&b'@') {
        return None;
    }
    let colon = line.get(user..end)?.iter().position(|byte| *byte == b':');
    match colon {
        Some(colon) if user + colon + 1 < end => Some(Span { start: user + colon + 1, end }),
        None if end - user >= USER_MAX => Some(Span { start: user, end }),
        Some(_) | None => None,
    }
}

/// `SOME_TOKEN=value`, as `env` and `.env` files write it: an upper-case name without spaces around the sign.
fn assignment(line: &[u8], at: usize) -> Option<Span> {
    const VALUE_MIN: usize = 8;
    let before = line.get(..at)?;
    let name_at =
        before.iter().rposition(|byte| !(upper(*byte) || *byte == b'_')).map_or(0, |place| place + 1);
    let name = std::str::from_utf8(before.get(name_at..)?).ok()?;
    if !begins_word(line, name_at) || !names_secret(name) {
        return None;
    }
    let quote = |byte: u8| byte == b'"' || byte == b'\'' || byte == b'\\';
    let start = run(line, at + 1, quote);
    let end = run(line, start, is_value);
    let value = line.get(start..end)?;
    // Something that starts like this refers to a value, and a number is a limit.
    let reference = matches!(value.first(), Some(b'$' | b'{' | b'[' | b'%' | b'='));
    let number = value.iter().all(u8::is_ascii_digit);
    (value.len() >= VALUE_MIN && !reference && !number).then_some(Span { start, end })
}

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const PRIVATE: &[u8] = b"PRIVATE KEY";
const KEY_MAX: usize = 32 * 1024;

/// The body of a private key that starts on this line.
fn private_key(line: &[u8], at: usize, in_key: &mut bool) -> Option<Span> {
    let tail = line.get(at..)?;
    if !tail.starts_with(BEGIN) {
        return None;
    }
    let title = at + BEGIN.len();
    let title_end = find(line, b"-----", title).filter(|end| end - title < 60)?;
    find(line.get(..title_end)?, PRIVATE, title)?;
    let start = title_end + b"-----".len();
    // No key is longer; and a line with many BEGIN marks must not be searched to its end for each of them.
    let window = line.get(..line.len().min(start + KEY_MAX))?;
    if let Some(end) = find(window, END, start) {
        return Some(Span { start, end });
    }
    let end = run(line, start, |byte| !byte.is_ascii_whitespace() && byte != b'"');
    *in_key = line.get(end..).unwrap_or_default().iter().all(u8::is_ascii_whitespace);
    (end > start).then_some(Span { start, end })
}

/// Masks the last word of a line inside a private key. Returns where ordinary text starts again.
fn inside_key(line: &[u8], in_key: &mut bool, out: &mut Vec<u8>) -> usize {
    if let Some(end) = find(line, END, 0) {
        *in_key = false;
        // Text before the END mark is still part of the key, except the margin of a diff or a listing.
        let margin = run(line, 0, |byte| !byte.is_ascii_alphabetic() && byte != b'-');
        let margin = margin.min(end);
        out.extend_from_slice(line.get(..margin).unwrap_or_default());
        if end > margin && line.get(margin..end).is_some_and(|text| text != b"-" && text != b"+") {
            out.extend_from_slice(MASK.as_bytes());
            return end;
        }
        return margin;
    }
    let content = line.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    let word = line.get(..content).unwrap_or_default();
    let start = word.iter().rposition(u8::is_ascii_whitespace).map_or(0, |gap| gap + 1);
    let margin = word.get(..start).unwrap_or_default();
    let start = start + usize::from(start == 0 && matches!(word.first(), Some(b'+' | b'-' | b'|' | b'>')));
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let body = word.get(start..).unwrap_or_default();
    let key_header = find(word, b"Proc-Type:", 0).or_else(|| find(word, b"DEK-Info:", 0)).is_some();
    if !key_header && (margin.iter().any(u8::is_ascii_alphabetic) || !body.iter().all(base64)) {
        *in_key = false;
        return 0;
    }
    if key_header || body.is_empty() {
        return 0;
    }
    out.extend_from_slice(line.get(..start).unwrap_or_default());
    out.extend_from_slice(MASK.as_bytes());
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kind_of_secret_is_passed_over() {
        let prefixes = SHAPES.iter().map(|shape| shape.prefix);
        let others = HEADERS.into_iter().chain(["eyJ", "Bearer ", "-----BEGIN ", "://", "=x"]);
        for start in prefixes.chain(others) {
            for text in [start.to_owned(), start.to_ascii_uppercase()] {
                let line = format!("and {text} and");
                assert!(next_candidate(line.as_bytes(), 4) == Some(4), "{text}");
            }
        }
        assert_eq!(next_candidate(b"nothing to see here", 0), None);
    }
}
