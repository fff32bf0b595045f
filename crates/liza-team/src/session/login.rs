//! The parts of a session's copy of a login that become the person's own: refreshed tokens and their times,
//! of the same account. A session could write anything there. Addresses, switches and every other field stay
//! as the person has them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_host::private;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

/// The suffix of the login from before the first replacement.
const KEPT: &str = ".before-liza";

/// Parts of the names of fields that identify an account, as [`plain`] gives them.
const ACCOUNT_FIELDS: [&str; 6] = ["account", "organi", "email", "userid", "username", "tenant"];

/// The names of fields with tokens that programs refresh. An API key is never refreshed.
const TOKENS: [&str; 6] = ["access", "accesstoken", "idtoken", "refresh", "refreshtoken", "token"];

/// The names of fields with the times of such tokens.
const TIMES: [&str; 9] = [
    "expires",
    "expiresat",
    "expiresin",
    "expiry",
    "expirydate",
    "issuedat",
    "lastrefresh",
    "refreshtokenexpiresat",
    "refreshtokenexpiresin",
];

/// The content in the place of a login after a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// A login of the same account.
    Login {
        /// The person's with the new tokens, if any of them has changed.
        login: Option<Vec<u8>>,
        /// The names of differing fields that are left as they were.
        kept: Vec<String>,
    },
    OtherAccount,
    OtherForm,
}

pub fn refreshed(old: &[u8], new: &[u8]) -> Refreshed {
    let (Ok(old @ Value::Object(_)), Ok(new @ Value::Object(_))) =
        (serde_json::from_slice::<Value>(old), serde_json::from_slice::<Value>(new))
    else {
        return Refreshed::OtherForm;
    };
    if !has_same_account("", &old, &new) {
        return Refreshed::OtherAccount;
    }
    let (mut login, mut kept) = (old.clone(), Vec::new());
    take_tokens("", &mut login, &new, &mut kept);
    let login = (login != old).then(|| serde_json::to_vec_pretty(&login).ok()).flatten();
    Refreshed::Login { login, kept }
}

/// Replaces a login if it is still the `old` one; true if it was. The login from before the first replacement
/// is kept beside it. A link to it stays a link.
pub(crate) fn replace_unchanged(path: &Path, old: &[u8], new: &[u8]) -> io::Result<bool> {
    let path = fs::canonicalize(path)?;
    let folder = fs::File::open(path.parent().unwrap_or(&path))?;
    // One session at a time. Programs of the person don't know this lock: a gap remains between the look and
    // the rename. A file system without locks does without.
    let _ = flock(&folder, FlockOperation::LockExclusive);
    let mode = fs::metadata(&path)?.permissions();
    match private::create_new(&beside(&path, KEPT)) {
        Ok(mut file) => io::Write::write_all(&mut file, old)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let temporary = beside(&path, &format!(".liza-{}", std::process::id()));
    // A process that was killed may have left it.
    let _ = fs::remove_file(&temporary);
    let mut file = private::create_new(&temporary)?;
    io::Write::write_all(&mut file, new)
        .and_then(|()| file.set_permissions(mode))
        .and_then(|()| file.sync_all())?;
    if fs::read(&path)? != old {
        fs::remove_file(&temporary)?;
        return Ok(false);
    }
    fs::rename(&temporary, &path)?;
    Ok(true)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Takes tokens and times from another login; the names of other differences go to `kept`.
fn take_tokens(name: &str, old: &mut Value, new: &Value, kept: &mut Vec<String>) {
    if let (Value::Object(old), Value::Object(new)) = (&mut *old, new) {
        for (key, value) in old.iter_mut() {
            take_tokens(key, value, new.get(key).unwrap_or(&Value::Null), kept);
        }
        kept.extend(new.keys().filter(|key| !old.contains_key(*key)).cloned());
    } else if is_refreshed(name, old, new) {
        *old = new.clone();
    } else if !is_same(old, new) {
        kept.push(name.to_owned());
    }
}

/// True for a token in the place of a token, or a time in the place of a time.
fn is_refreshed(field: &str, old: &Value, new: &Value) -> bool {
    let field = plain(field);
    let is_time_field = TIMES.contains(&field.as_str());
    if let (Some(old), Some(new)) = (old.as_str(), new.as_str()) {
        let are_tokens = TOKENS.contains(&field.as_str()) && is_token(old) && is_token(new);
        return are_tokens || (is_time_field && is_time(old) && is_time(new));
    }
    is_time_field && old.is_number() && new.is_number()
}

/// True if two values mean the same: a list of scopes may have another order, as a list or as words.
fn is_same(old: &Value, new: &Value) -> bool {
    let sorted = |value: &Value| -> Option<Vec<String>> {
        let words = value.as_str().map(|text| text.split(' ').map(str::to_owned).collect());
        let entries = || value.as_array().map(|list| list.iter().map(Value::to_string).collect());
        let mut sorted: Vec<String> = words.or_else(entries)?;
        sorted.sort();
        Some(sorted)
    };
    let is_one_kind = old.is_string() == new.is_string();
    old == new || (is_one_kind && sorted(old).is_some_and(|old| sorted(new) == Some(old)))
}

/// True if a text can be a token: nothing that a shell would take for more than a word, and no address.
fn is_token(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._~+/=-:|@#".contains(letter);
    !text.is_empty() && text.chars().all(is_plain) && !text.contains("://")
}

fn is_time(text: &str) -> bool {
    text.len() <= 40 && text.chars().all(|letter| letter.is_ascii_digit() || "-:.+TZ".contains(letter))
}

/// True if every field that names an account is unchanged, and every token with an owner has the same one.
fn has_same_account(name: &str, old: &Value, new: &Value) -> bool {
    if let (Value::Object(old), Value::Object(new)) = (old, new) {
        let is_same = |(key, value): (&String, &Value)| {
            has_same_account(key, value, new.get(key).unwrap_or(&Value::Null))
        };
        return old.iter().all(is_same);
    }
    if old.is_null() || old == new {
        return true;
    }
    let owner = old.as_str().and_then(owner);
    let is_of_other = owner.is_some() && new.as_str().and_then(self::owner) != owner;
    !is_of_other && !names_account(name) && !old.as_str().is_some_and(is_address)
}

/// The owner that a token names, if it is a JSON web token. The server that receives it checks that.
fn owner(token: &str) -> Option<Value> {
    let claims = unpacked(token.split('.').nth(1)?)?;
    serde_json::from_slice::<Value>(&claims).ok()?.get("sub").cloned()
}

/// Decodes base64 in the alphabet for addresses, without padding.
pub fn unpacked(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(digit), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn names_account(field: &str) -> bool {
    let name = plain(field);
    let is_organisation = ["org", "orgid", "orguuid", "orgname", "sub", "user"].contains(&name.as_str());
    is_organisation || ACCOUNT_FIELDS.iter().any(|part| name.contains(part))
}

/// The name of a field without `_` and `-`, in lower case.
fn plain(field: &str) -> String {
    let letters = field.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

fn is_address(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The written and the kept parts.
    fn judged(old: &str, new: &str) -> String {
        match refreshed(old.as_bytes(), new.as_bytes()) {
            Refreshed::Login { login, kept } => {
                let value = |login: Vec<u8>| serde_json::from_slice::<Value>(&login).unwrap().to_string();
                format!("{} kept: {}", login.map_or("unchanged".to_owned(), value), kept.join(", "))
            }
            Refreshed::OtherAccount => "other account".to_owned(),
            Refreshed::OtherForm => "other form".to_owned(),
        }
    }

    /// Covers: IS-15
    #[test]
    fn what_a_program_refreshes_is_taken() {
        let logins = [
            // claude, codex, gemini, opencode.
            r#"{"claudeAiOauth":{"accessToken":"sk-ant-oat01-A","expiresAt":1,"refreshToken":"sk-ant-ort01-A","scopes":["user:inference","user:profile"],"subscriptionType":"max"}}"#,
            r#"{"OPENAI_API_KEY":null,"last_refresh":"2026-01-01T00:00:00.1Z","tokens":{"access_token":"A","account_id":"ada","id_token":"A","refresh_token":"rt_A"}}"#,
            r#"{"access_token":"ya29.A","expiry_date":1,"id_token":"A","refresh_token":"1//0A","scope":"https://www.example.com/auth/a openid","token_type":"Bearer"}"#,
            r#"{"anthropic":{"access":"A","expires":1,"refresh":"A","type":"oauth"},"other":{"key":"sk-1","type":"api"}}"#,
        ];
        for old in logins {
            let new = old.replace("A\"", "B\"").replace(":1", ":2").replace("2026-01", "2026-02");
            assert_ne!(old, new);
            assert_eq!(judged(old, &new), format!("{new} kept: "));
            assert_eq!(judged(old, old), "unchanged kept: ");
        }
        let [claude, _, gemini, _] = logins;
        let turned =
            claude.replace(r#""user:inference","user:profile""#, r#""user:profile","user:inference""#);
        assert_eq!(judged(claude, &turned), "unchanged kept: ");
        let turned =
            gemini.replace("https://www.example.com/auth/a openid", "openid https://www.example.com/auth/a");
        assert_eq!(judged(gemini, &turned), "unchanged kept: ");
    }

    /// Covers: IS-15
    #[test]
    fn nothing_but_tokens_and_times_is_taken() {
        let old = r#"{"apiKey":null,"base_url":"https://api.example.com/v1","enabled":true,"host":"a.example","oauth":{"expires":1},"retries":3,"token":"a"}"#;
        for (part, changed, field) in [
            (
                r#""base_url":"https://api.example.com/v1""#,
                r#""base_url":"https://evil.example/v1""#,
                "base_url",
            ),
            (r#""host":"a.example""#, r#""host":"evil.example""#, "host"),
            (r#""apiKey":null"#, r#""apiKey":"sk-mallory""#, "apiKey"),
            (r#""apiKey":null"#, r#""apiKey":{"command":"id"}"#, "apiKey"),
            (r#""enabled":true"#, r#""enabled":false"#, "enabled"),
            (r#""retries":3"#, r#""retries":4"#, "retries"),
            (r#""oauth":{"expires":1}"#, r#""oauth":null"#, "oauth"),
            (r#""oauth":{"expires":1}"#, r#""oauth":{"expires":"$(id)"}"#, "expires"),
            (r#""oauth":{"expires":1}"#, r#""oauth":{"expires":1,"url":"https://evil.example"}"#, "url"),
            (r#""token":"a""#, r#""token":null"#, "token"),
            (r#""token":"a""#, r#""token":"$(id)""#, "token"),
            (r#""token":"a""#, r#""token":"https://evil.example""#, "token"),
            (r#""token":"a""#, r#""token":["id"]"#, "token"),
            (r#""token":"a""#, r#""helper":"id","token":"a""#, "helper"),
        ] {
            let new = old.replace(part, changed);
            assert_ne!(old, new);
            assert_eq!(judged(old, &new), format!("unchanged kept: {field}"), "{changed}");
            // A refreshed token is taken all the same: the old one may be worth nothing now.
            let (refreshed, new) = (old.replace(r#""a""#, r#""b""#), new.replace(r#""a""#, r#""b""#));
            let expected = if field == "token" { "unchanged" } else { &refreshed };
            assert_eq!(judged(old, &new), format!("{expected} kept: {field}"), "{changed}");
        }
        for other in ["", "[]", "token: b", "\"b\""] {
            assert_eq!(judged(old, other), "other form", "{other}");
        }
    }

    /// Covers: IS-15
    #[test]
    fn a_login_of_another_account_is_recognized() {
        for field in
            ["account_id", "accountUuid", "organizationUuid", "org_id", "email", "emailAddress", "user_id"]
        {
            let login = |value: &str| format!(r#"{{"tokens":{{"access":"a","{field}":{value}}}}}"#);
            assert_eq!(judged(&login(r#""ada""#), &login(r#""mallory""#)), "other account", "{field}");
            assert_eq!(judged(&login(r#""ada""#), &login("null")), "other account", "{field}");
            assert_eq!(
                judged(&login(r#""ada""#), r#"{"tokens":{"access":"b"}}"#),
                "other account",
                "{field}"
            );
            let named = format!("unchanged kept: {field}");
            assert_eq!(judged(&login("null"), &login(r#""ada""#)), named, "{field}");
        }
        let active = |name: &str| format!(r#"{{"active": "{name}", "old": []}}"#);
        assert_eq!(judged(&active("ada@example.com"), &active("mallory@example.com")), "other account");
    }

    /// Covers: IS-15
    #[test]
    fn a_token_that_names_another_person_is_recognized() {
        // {"sub":"ada","exp":1}, {"sub":"ada","exp":2} and {"sub":"mallory"}.
        let [first, second, other] =
            ["eyJzdWIiOiJhZGEiLCJleHAiOjF9", "eyJzdWIiOiJhZGEiLCJleHAiOjJ9", "eyJzdWIiOiJtYWxsb3J5In0"]
                .map(|claims| format!(r#"{{"access_token":"eyJhbGciOiJub25lIn0.{claims}.c2ln"}}"#));
        assert_eq!(judged(&first, &second), format!("{second} kept: "));
        assert_eq!(judged(&first, &other), "other account");
        assert_eq!(judged(&first, r#"{"access_token":"of-mallory"}"#), "other account");
    }

    /// Covers: IS-15
    #[test]
    fn the_first_login_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        for (old, new) in [("first", "second"), ("second", "third")] {
            fs::write(&path, old).unwrap();
            assert!(replace_unchanged(&path, old.as_bytes(), new.as_bytes()).unwrap());
            assert!(!replace_unchanged(&path, old.as_bytes(), b"late").unwrap());
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!([read("auth.json"), read("auth.json.before-liza")], ["third", "first"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
