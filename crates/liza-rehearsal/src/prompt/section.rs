//! A section of a prompt and its documented fields. A line that begins with `>` is foreign and never a field.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("the prompt has no section {0}")]
    NoSection(&'static str),
    #[error("section {section} of the prompt has no {field}")]
    NoField { section: &'static str, field: &'static str },
    #[error("the prompt has an invalid {field}: {value:?}")]
    BadField { field: &'static str, value: String },
}

/// A section of a prompt, up to its instructions.
pub(super) struct Section<'t> {
    name: &'static str,
    pub(super) lines: Vec<&'t str>,
}

impl<'t> Section<'t> {
    pub(super) fn find(text: &'t str, name: &'static str) -> Result<Self, PromptError> {
        let heading = format!("=== {name} ===");
        let mut lines = text.lines().skip_while(|line| *line != heading);
        lines.next().ok_or(PromptError::NoSection(name))?;
        let lines = lines.take_while(|line| !line.starts_with("===") && *line != "INSTRUCTIONS:").collect();
        Ok(Self { name, lines })
    }

    fn position(&self, field: &str) -> Option<usize> {
        let named = |line: &&str| line.strip_prefix(field).is_some_and(|rest| rest.starts_with(':'));
        self.lines.iter().position(named)
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.position(field).is_some()
    }

    pub(super) fn has_line(&self, start: &str) -> bool {
        self.lines.iter().any(|line| line.starts_with(start))
    }

    /// Returns a field: the rest of its line without a remark in brackets, or the quoted lines below it.
    pub(super) fn get(&self, field: &str) -> Option<String> {
        let at = self.position(field)?;
        let value = self.lines.get(at)?.get(field.len() + 1..)?.trim();
        if !value.is_empty() {
            return Some(match field {
                "LIZA" | "STATE FILE" | "HEAD TO MERGE IN" => without_remark(value).to_owned(),
                _ => value.to_owned(),
            });
        }
        Some(self.quoted_after(field).collect::<Vec<_>>().join("\n"))
    }

    pub(super) fn require(&self, field: &'static str) -> Result<String, PromptError> {
        self.get(field)
            .filter(|value| !value.is_empty())
            .ok_or(PromptError::NoField { section: self.name, field })
    }

    pub(super) fn id(&self, field: &'static str) -> Result<String, PromptError> {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        self.valid(field, |value| value.chars().all(valid))
    }

    pub(super) fn commit(&self, field: &'static str) -> Result<String, PromptError> {
        self.valid(field, is_commit)
    }

    pub(super) fn optional_commit(&self, field: &'static str) -> Option<String> {
        self.get(field).filter(|value| is_commit(value))
    }

    fn valid(&self, field: &'static str, check: impl Fn(&str) -> bool) -> Result<String, PromptError> {
        let value = self.require(field)?;
        if check(&value) { Ok(value) } else { Err(PromptError::BadField { field, value }) }
    }

    /// The 2 of `2 of 10`.
    pub(super) fn number(&self, field: &'static str) -> Result<u32, PromptError> {
        let value = self.require(field)?;
        let first = value.split(' ').next().unwrap_or_default().parse();
        first.map_err(|_| PromptError::BadField { field, value })
    }

    pub(super) fn quoted_after(&self, field: &str) -> impl Iterator<Item = &'t str> {
        let from = self.position(field).map_or(self.lines.len(), |at| at + 1);
        let below = self.lines.get(from..).unwrap_or_default().iter().copied();
        below
            .skip_while(|line| line.starts_with("ALSO WAITING:"))
            .take_while(|line| line.starts_with('>'))
            .map(|line| line.trim_start_matches('>').trim_start())
    }
}

fn is_commit(text: &str) -> bool {
    text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes the remark in brackets that ends a field for people.
fn without_remark(value: &str) -> &str {
    value.rsplit_once(" (").map_or(value, |(value, _)| value)
}
