//! Masking secrets in everything that is stored: prompts, outputs, test logs.
//!
//! Knows the shapes of common keys and the values of this process's secret variables. It is a net, not a wall: what it
//! has never heard of passes through.

mod shapes;

use std::borrow::Cow;

/// What stands in a secret's place.
pub const MASK: &str = "[masked]";

/// Values shorter than this are words, not secrets: masking them would make a text unreadable.
const VALUE_MIN: usize = 8;

/// As much of one line as is held back for masking it whole.
const LINE_MAX: usize = 1024 * 1024;

/// Masks by shape and by value.
#[derive(Debug, Clone, Default)]
pub struct Masker {
    values: Vec<String>,
}

impl Masker {
    /// A masker that also knows the values of those variables whose names say that they are secret.
    pub fn new<N: AsRef<str>, V: AsRef<str>>(environment: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values = Vec::new();
        for (name, value) in environment {
            if names_secret(name.as_ref()) {
                values.extend(value.as_ref().lines().flat_map(spellings));
            }
        }
        // The longest first, so that a value that contains another one is masked whole.
        values.sort_by(|a: &String, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// The text with every secret masked; untouched where there is none.
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

/// Masks by shape only.
pub fn mask(text: &str) -> Cow<'_, str> {
    Masker::default().mask(text)
}

/// Whether a variable of that name holds a secret: one of its words says so.
pub fn names_secret(name: &str) -> bool {
    const WORDS: [&str; 8] =
        ["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];
    name.to_ascii_uppercase().split(['_', '-']).any(|word| WORDS.contains(&word))
}

/// A value as it is, and as it stands inside a JSON string.
fn spellings(value: &str) -> Vec<String> {
    let value = value.trim();
    if value.len() < VALUE_MIN {
        return Vec::new();
    }
    let quoted = serde_json::Value::from(value).to_string();
    let inner = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(value).to_owned();
    if inner == value { vec![inner] } else { vec![value.to_owned(), inner] }
}

/// Masks a stream of bytes as it comes. Whole lines go out; the rest is held back until it is complete.
#[derive(Debug, Default)]
pub struct MaskStream {
    masker: Masker,
    held: Vec<u8>,
    /// Whether the last line was inside a private key.
    in_key: bool,
}

impl MaskStream {
    /// A stream that nothing has gone through yet.
    pub fn new(masker: Masker) -> Self {
        Self { masker, ..Self::default() }
    }

    /// Takes the next bytes, gives what is ready to be stored.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let ready = match self.held.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            // Somebody floods without a line end: let go up to the last gap between words.
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

    /// Gives what was held back; the stream can be used anew.
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

/// Every occurrence replaced by the mask; nothing where there is none.
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
