//! Turns at a login that is about to be refreshed: its refresh token may work only once, so one session
//! starts alone until the file has changed. A turn is a lock on the login file itself. A refreshed login is
//! another file in its place, which is not locked.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use liza_core::model::{Seconds, Timestamp};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::session::login::unpacked;

const LOGIN_MAX: u64 = 1 << 20;

/// The age of a login at which codex refreshes it, whatever its token says.
const CODEX_REFRESHES_AFTER: Seconds = Seconds(8 * 24 * 60 * 60);

/// The right to start a session that may refresh a login; it ends when dropped.
#[derive(Debug)]
pub struct TakenTurn {
    _login: File,
}

/// The answer to a session that wants to start with a login.
#[derive(Debug)]
pub enum LoginTurn {
    /// It may: the login lasts, or its end cannot be read.
    Free,
    /// It may: no other session refreshes the login meanwhile.
    Alone(TakenTurn),
    /// Another session is about to refresh the login, which is due at this time.
    Busy(Timestamp),
}

/// Takes a turn at the login of a program, if it has to be refreshed within the time that a session takes.
pub fn login_turn(program: &str, login: &Path, ends: Timestamp) -> LoginTurn {
    let Ok(file) = File::open(login) else { return LoginTurn::Free };
    let mut content = Vec::new();
    let read = file.try_clone().and_then(|file| file.take(LOGIN_MAX).read_to_end(&mut content));
    let Some(due) = read.ok().and_then(|_| refresh_due(program, &content)).filter(|due| *due <= ends) else {
        return LoginTurn::Free;
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => LoginTurn::Alone(TakenTurn { _login: file }),
        Err(rustix::io::Errno::WOULDBLOCK) => LoginTurn::Busy(due),
        // The file system has no locks.
        Err(_) => LoginTurn::Free,
    }
}

/// True for programs of which it can be read when they refresh their login.
pub fn can_read_expiry(program: &str) -> bool {
    matches!(program, "claude" | "codex")
}

/// The latest time at which a program refreshes its login, if it can and the login says so.
fn refresh_due(program: &str, login: &[u8]) -> Option<Timestamp> {
    let login: Value = serde_json::from_slice(login).ok()?;
    let text = |place: &str| login.pointer(place).and_then(Value::as_str).filter(|text| !text.is_empty());
    match program {
        "claude" => {
            text("/claudeAiOauth/refreshToken")?;
            let milliseconds = login.pointer("/claudeAiOauth/expiresAt")?.as_i64()?;
            Some(Timestamp::from_unix(milliseconds / 1000))
        }
        "codex" => {
            text("/tokens/refresh_token")?;
            let expires = text("/tokens/access_token").and_then(token_expiry);
            let refreshed = text("/last_refresh").and_then(|time| time.parse::<jiff::Timestamp>().ok());
            let aged = refreshed.map(|time| Timestamp::from_unix(time.as_second()) + CODEX_REFRESHES_AFTER);
            expires.into_iter().chain(aged).min()
        }
        _ => None,
    }
}

/// The expiry of a JSON web token. The server that receives it checks that.
fn token_expiry(token: &str) -> Option<Timestamp> {
    let claims: Value = serde_json::from_slice(&unpacked(token.split('.').nth(1)?)?).ok()?;
    claims.get("exp")?.as_i64().map(Timestamp::from_unix)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEiLCJleHAiOjQxMDI0NDQ4MDB9.c2ln";

    fn due(program: &str, login: &str) -> Option<i64> {
        refresh_due(program, login.as_bytes()).map(Timestamp::unix)
    }

    /// Covers: AX-26
    #[test]
    fn the_end_of_a_login_is_read_where_a_program_writes_it() {
        let claude = r#"{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1749924000123}}"#;
        assert_eq!(due("claude", claude), Some(1_749_924_000));
        assert_eq!(due("claude", &claude.replace("\"r\"", "\"\"")), None, "it cannot be refreshed");
        let codex = |last: &str| {
            format!(
                r#"{{"tokens":{{"access_token":"{TOKEN}","refresh_token":"r"}},"last_refresh":"{last}"}}"#
            )
        };
        assert_eq!(due("codex", &codex("")), Some(4_102_444_800));
        assert_eq!(due("codex", &codex("2026-11-01T00:00:00.5Z")), Some(1_794_182_400));
        assert_eq!(due("codex", r#"{"OPENAI_API_KEY":"k","tokens":null}"#), None);
        assert_eq!(due("gemini", r#"{"expiry_date":1,"refresh_token":"r"}"#), None, "works more than once");
        for other in
            ["", "[]", "{\"claudeAiOauth\":7}", r#"{"tokens":{"access_token":"a.b.c","refresh_token":"r"}}"#]
        {
            assert_eq!((due("claude", other), due("codex", other)), (None, None), "{other}");
        }
    }

    /// Covers: AX-26
    #[test]
    fn one_session_takes_the_turn_until_the_file_has_changed() {
        let home = tempfile::tempdir().unwrap();
        let login = home.path().join(".credentials.json");
        let write = |seconds: i64| {
            let new = home.path().join("new");
            let text = format!(r#"{{"claudeAiOauth":{{"refreshToken":"r","expiresAt":{seconds}000}}}}"#);
            fs::write(&new, text).unwrap();
            fs::rename(&new, &login).unwrap();
        };
        let turn = |ends: i64| login_turn("claude", &login, Timestamp::from_unix(ends));
        assert!(matches!(turn(5_000), LoginTurn::Free), "there is no login");
        write(5_000);
        assert!(matches!(turn(4_999), LoginTurn::Free), "it lasts");
        let first = turn(5_000);
        assert!(matches!(first, LoginTurn::Alone(_)));
        assert!(matches!(turn(5_000), LoginTurn::Busy(due) if due.unix() == 5_000));
        write(6_000);
        assert!(matches!(turn(6_000), LoginTurn::Alone(_)), "another file");
        assert!(matches!(turn(5_000), LoginTurn::Free));
        write(5_000);
        drop(first);
        assert!(matches!(turn(5_000), LoginTurn::Alone(_)));
    }
}
