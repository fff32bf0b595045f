//! Which login of a session's copy becomes the person's own: a refreshed one of the same form and the same account.
//!
//! A session could write anything there, so what is written back are tokens and times in the place of others.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_store::private;
use serde_json::Value;

/// What the login before the first one that was written back is called, behind its own name.
const KEPT: &str = ".before-liza";

/// Parts of the names of fields that name whose login it is, without `_` and `-`.
const ACCOUNT_FIELDS: [&str; 6] = ["account", "organi", "email", "userid", "username", "tenant"];

/// Whether a login may be written back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refreshed {
    /// It may, in this form.
    Login(Vec<u8>),
    /// It is of another account.
    OtherAccount,
    /// It has another form.
    OtherForm,
}

/// Judges what a session has left in the place of a login.
pub(super) fn refreshed(old: &[u8], new: &[u8]) -> Refreshed {
    let (Ok(old @ Value::Object(_)), Ok(new @ Value::Object(_))) =
        (serde_json::from_slice::<Value>(old), serde_json::from_slice::<Value>(new))
    else {
        return Refreshed::OtherForm;
    };
    if !has_same_form(&old, &new) {
        return Refreshed::OtherForm;
    }
    if !has_same_account("", &old, &new) {
        return Refreshed::OtherAccount;
    }
    serde_json::to_vec_pretty(&new).map_or(Refreshed::OtherForm, Refreshed::Login)
}

/// Replaces a login. The one from before the first replacement is kept beside it.
///
/// # Errors
///
/// When one of them cannot be written.
pub(super) fn replace(path: &Path, old: &[u8], new: &[u8]) -> io::Result<()> {
    match private::create_new(&beside(path, KEPT)) {
        Ok(mut file) => io::Write::write_all(&mut file, old)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let temporary = beside(path, &format!(".liza-{}", std::process::id()));
    private::create_new(&temporary).and_then(|mut file| io::Write::write_all(&mut file, new))?;
    fs::rename(&temporary, path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Whether a text can be a token, an ID or a time: nothing that a shell would take for more than a word.
fn is_token(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._~+/=-:|@#".contains(letter))
}

fn has_same_form(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.len() == new.len()
                && old.iter().all(|(key, value)| new.get(key).is_some_and(|new| has_same_form(value, new)))
        }
        (Value::Array(old), Value::Array(new)) => old == new,
        (Value::Null, Value::String(new)) => is_token(new),
        (_, Value::Null) => true,
        (Value::Bool(_), Value::Bool(_)) | (Value::Number(_), Value::Number(_)) => true,
        (Value::String(old), Value::String(new)) => old == new || is_token(new),
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
        ) => false,
    }
}

/// Whether every field that names an account has its value still. One that had none may get one.
fn has_same_account(name: &str, old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            old.iter().all(|(key, value)| new.get(key).is_some_and(|new| has_same_account(key, value, new)))
        }
        (Value::Null, _) => true,
        (Value::String(text), _) if is_address(text) => old == new,
        (
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
        ) => old == new || !names_account(name),
    }
}

fn names_account(field: &str) -> bool {
    let name: String =
        field.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let is_organisation = ["org", "orgid", "orguuid", "orgname", "sub", "user"].contains(&name.as_str());
    is_organisation || ACCOUNT_FIELDS.iter().any(|part| name.contains(part))
}

/// Whether a text is an e-mail address, whatever its field is called.
fn is_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(old: &str, new: &str) -> &'static str {
        match refreshed(old.as_bytes(), new.as_bytes()) {
            Refreshed::Login(_) => "written",
            Refreshed::OtherAccount => "other account",
            Refreshed::OtherForm => "other form",
        }
    }

    /// Covers: IS-15
    #[test]
    fn an_empty_field_becomes_a_token_or_stays_empty() {
        let old = r#"{"token": "a", "helper": null}"#;
        for (helper, expected) in [
            ("null", "written"),
            (r#""b-1""#, "written"),
            (r#""$(id)""#, "other form"),
            (r#"{"command": "id"}"#, "other form"),
            (r#"["id"]"#, "other form"),
            ("1", "other form"),
            ("true", "other form"),
        ] {
            assert_eq!(
                judged(old, &format!(r#"{{"token": "b", "helper": {helper}}}"#)),
                expected,
                "{helper}"
            );
        }
    }

    /// Covers: IS-15
    #[test]
    fn a_login_of_another_account_is_recognized() {
        for field in
            ["account_id", "accountUuid", "organizationUuid", "org_id", "email", "emailAddress", "user_id"]
        {
            let login = |value: &str| format!(r#"{{"tokens": {{"access": "a", "{field}": {value}}}}}"#);
            assert_eq!(judged(&login(r#""ada""#), &login(r#""mallory""#)), "other account", "{field}");
            assert_eq!(judged(&login(r#""ada""#), &login("null")), "other account", "{field}");
            assert_eq!(judged(&login("null"), &login(r#""ada""#)), "written", "{field}");
        }
        let active = |name: &str| format!(r#"{{"active": "{name}", "old": []}}"#);
        assert_eq!(judged(&active("ada@example.com"), &active("mallory@example.com")), "other account");
        let token =
            |text: &str| format!(r#"{{"account_id": "ada", "subscription": "{text}", "refresh": "{text}"}}"#);
        assert_eq!(judged(&token("a"), &token("b")), "written");
    }

    /// Covers: IS-15
    #[test]
    fn the_first_login_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        for (old, new) in [("first", "second"), ("second", "third")] {
            fs::write(&path, old).unwrap();
            replace(&path, old.as_bytes(), new.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!([read("auth.json"), read("auth.json.before-liza")], ["third", "first"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
