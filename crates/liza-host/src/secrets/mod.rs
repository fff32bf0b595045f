//! Masks secrets in everything that is stored: prompts, outputs, test logs. Knows the shapes of common keys
//! and the values of secret environment variables. Best effort: a secret of unknown shape is not masked.

mod shapes;

use std::borrow::Cow;
use std::ffi::OsString;

pub const MASK: &str = "[masked]";

/// Shorter values are words, not secrets: masking them would make text unreadable.
const VALUE_MIN: usize = 8;

/// The longest part of an incomplete line that is held back to be masked as a whole.
const LINE_MAX: usize = 1024 * 1024;

#[derive(Debug, Clone, Default)]
pub struct Masker {
    values: Vec<String>,
}

impl Masker {
    /// Also masks the values of the environment variables whose names mark them as secret.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(environment: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values = Vec::new();
        for (name, value) in environment {
            if names_secret(name.as_ref()) {
                values.extend(value.as_ref().lines().flat_map(spellings));
            }
        }
        // The longest first, so that a value that contains another one is masked as a whole.
        values.sort_by(|a: &String, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// Masks the secret variables of this process.
    pub fn of_process() -> Self {
        Self::of_process_and([])
    }

    /// The same with more variables.
    pub fn of_process_and(more: impl IntoIterator<Item = (String, String)>) -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self::new(std::env::vars_os().filter_map(text).chain(more))
    }

    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut stream = MaskStream::new(self.clone());
        let mut masked = stream.push(text.as_bytes());
        masked.extend(stream.finish());
        if masked == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }
}

/// True if one of the name's words is `KEY`, `TOKEN` and so on.
fn names_secret(name: &str) -> bool {
    const WORDS: [&str; 8] =
        ["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];
    name.to_ascii_uppercase().split(['_', '-']).any(|word| WORDS.contains(&word))
}

/// The value itself, and its form in a JSON string.
fn spellings(value: &str) -> Vec<String> {
    let value = value.trim();
    if value.len() < VALUE_MIN {
        return Vec::new();
    }
    let quoted = serde_json::Value::from(value).to_string();
    let inner = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(value).to_owned();
    if inner == value { vec![inner] } else { vec![value.to_owned(), inner] }
}

/// Masks a stream of bytes. Complete lines go out; the rest is held back until it is complete.
#[derive(Debug, Default)]
pub struct MaskStream {
    masker: Masker,
    held: Vec<u8>,
    /// The last line is inside a private key.
    in_key: bool,
}

impl MaskStream {
    pub fn new(masker: Masker) -> Self {
        Self { masker, ..Self::default() }
    }

    /// Takes the next bytes; returns those that are ready to be stored.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let ready = match memchr::memrchr(b'\n', &self.held) {
            Some(end) => end + 1,
            // A flood without line breaks: everything up to the last gap between words goes out.
            None if self.held.len() > LINE_MAX => {
                let gap = self.held.iter().rposition(|byte| byte.is_ascii_whitespace() || *byte == b'"');
                gap.map_or(self.held.len(), |gap| gap + 1)
            }
            None => 0,
        };
        let rest = self.held.split_off(ready);
        let ready = std::mem::replace(&mut self.held, rest);
        self.mask_lines(&ready)
    }

    /// Returns what was held back; the stream can be used again.
    pub fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.held);
        let masked = self.mask_lines(&rest);
        self.in_key = false;
        masked
    }

    fn mask_lines(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = self.masker.mask_values(line);
            shapes::mask_line(&line, &mut self.in_key, &mut out);
        }
        out
    }
}

impl Masker {
    fn mask_values<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        let mut line = Cow::Borrowed(line);
        for value in &self.values {
            if let Some(masked) = replace(&line, value.as_bytes()) {
                line = Cow::Owned(masked);
            }
        }
        line
    }
}

/// Masks every occurrence of `value` in the line; `None` if there is none.
fn replace(line: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut done = 0;
    while let Some(at) = shapes::find(line, value, done) {
        let out = out.get_or_insert_default();
        out.extend_from_slice(line.get(done..at).unwrap_or_default());
        out.extend_from_slice(MASK.as_bytes());
        done = at + value.len();
    }
    out.map(|mut out| {
        out.extend_from_slice(line.get(done..).unwrap_or_default());
        out
    })
}

#[cfg(test)]
mod tests;
