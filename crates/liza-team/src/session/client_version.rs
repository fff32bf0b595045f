//! The version of an agent program, which runs with an empty home folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use liza_host::durable;
use liza_sandbox::sys::process::wait_until;

/// The longest time for a program to report its version; some need seconds to start.
const VERSION_LIMIT: Duration = Duration::from_secs(15);

pub fn client_version(program: &Path) -> Option<String> {
    let folder = tempfile_folder()?;
    let mut command = Command::new(program);
    command.arg("--version").current_dir(&folder).env("HOME", &folder);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env(name, &folder);
    }
    let output = durable::create(&folder.join("version")).ok()?;
    command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
    let said = command.spawn().ok().and_then(|mut child| {
        let ended = wait_until(&mut child, Instant::now() + VERSION_LIMIT).ok().flatten();
        let _ = child.kill();
        let _ = child.wait();
        ended.filter(std::process::ExitStatus::success)?;
        durable::read_text(&folder.join("version")).ok()
    });
    let _ = fs::remove_dir_all(&folder);
    version_in(&said?)
}

/// A new folder for the files that a program makes when it starts.
fn tempfile_folder() -> Option<PathBuf> {
    let base = std::env::temp_dir();
    let path = |number: u32| base.join(format!("liza-version-{}-{number}", std::process::id()));
    (0..1000).map(path).find(|path| fs::create_dir(path).is_ok())
}

/// The first word with a version: `2.1.325` in "2.1.325 (Claude Code)" and `0.166.0` in "codex-cli 0.166.0".
fn version_in(said: &str) -> Option<String> {
    let words = said.split_whitespace().map(|word| word.trim_start_matches('v'));
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let version = words.into_iter().find(is_version)?;
    // Some say it in a sentence.
    let version = version.trim_end_matches(|last: char| !last.is_alphanumeric());
    Some(version.chars().take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: SE-09
    #[test]
    fn versions_are_found_in_what_programs_say() {
        let cases = [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            (" 1.34.0\n", Some("1.34.0")),
            ("goose v1.2.3", Some("1.2.3")),
            ("GitHub Copilot CLI 1.0.102.\n", Some("1.0.102")),
            ("no version here", None),
        ];
        for (said, expected) in cases {
            assert_eq!(version_in(said).as_deref(), expected, "{said:?}");
        }
    }
}
