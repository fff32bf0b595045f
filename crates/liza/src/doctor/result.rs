//! The result of one check of the doctor, and its form.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good,
    /// Works, but a person should know about it.
    Warning,
    Broken,
}

impl Health {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Health::Good => "ok",
            Health::Warning => "warn",
            Health::Broken => "fail",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub health: Health,
    pub found: String,
    pub fix: Option<String>,
}

pub(super) fn good(name: &str, found: impl Into<String>) -> Check {
    Check { name: name.to_owned(), health: Health::Good, found: found.into(), fix: None }
}

pub(super) fn warning(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name: name.to_owned(), health: Health::Warning, found: found.into(), fix: Some(fix.into()) }
}

pub(super) fn broken(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name: name.to_owned(), health: Health::Broken, found: found.into(), fix: Some(fix.into()) }
}
