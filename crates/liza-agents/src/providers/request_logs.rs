//! The logs that Goose keeps of its last requests: the only place with the usage of a running session.
//!
//! A session can write there, so nothing is trusted: links are not followed, only a bounded part is read, and
//! figures are checked like all others.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use liza_sandbox::sys::untrusted::UntrustedFolder;
use serde_json::{Value, json};

use super::json_line::parse;

/// The type of the line that is made of a log.
pub(super) const REQUEST: &str = "liza_request";

/// The part at the end of a log that is read: its last line has the figures.
const TAIL: u64 = 16 << 10;

/// The most logs that are looked at; it keeps ten.
const LOGS_MAX: usize = 32;

/// The most logs that are remembered.
const SEEN_MAX: usize = 100_000;

/// Reads the logs of one session as they appear.
#[derive(Debug)]
pub struct RequestLogs {
    folder: PathBuf,
    /// The logs that were read: their files are renamed, so they are known by their number and time.
    seen: HashSet<(u64, i64, i64)>,
}

impl RequestLogs {
    /// A reader. `variable` gives the variables of the session.
    pub fn new(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let home = || Some(PathBuf::from(variable("HOME")?).join(".local/state"));
        let state = variable("XDG_STATE_HOME").map(PathBuf::from).or_else(home)?;
        Some(Self { folder: state.join("goose/logs"), seen: HashSet::new() })
    }

    /// A line for each new request that has ended.
    pub fn read(&mut self) -> Vec<String> {
        let Ok(folder) = UntrustedFolder::open(&self.folder) else { return Vec::new() };
        let names = folder.entries().unwrap_or_default().into_iter().map(|(name, _)| name);
        let logs = names.filter(|name| name.to_string_lossy().starts_with("llm_request."));
        logs.take(LOGS_MAX).filter_map(|name| self.read_log(&folder, Path::new(&name))).collect()
    }

    fn read_log(&mut self, folder: &UntrustedFolder, name: &Path) -> Option<String> {
        let mut file = folder.file(name).ok()?;
        let meta = file.metadata().ok()?;
        let log = (meta.ino(), meta.mtime(), meta.mtime_nsec());
        if self.seen.contains(&log) || self.seen.len() >= SEEN_MAX {
            return None;
        }
        file.seek(SeekFrom::Start(meta.len().saturating_sub(TAIL))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail).ok()?;
        let line = figures(&String::from_utf8_lossy(&tail))?;
        self.seen.insert(log);
        Some(line)
    }
}

/// The figures in the last line of a log; `None` while its request runs.
fn figures(log: &str) -> Option<String> {
    let last = parse(log.lines().next_back()?)?;
    let usage = last.get("usage").filter(|usage| usage.is_object())?;
    let figure = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let names = ["input_tokens", "output_tokens", "cache_read_input_tokens"];
    let [input, output, cached] = names.map(figure);
    Some(json!({"type": REQUEST, "input": input, "output": output, "cached": cached}).to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn log(input: u64) -> String {
        format!(
            "{{\"input\":{{}}}}\n{{\"data\":{{}},\"usage\":null}}\n{{\"data\":null,\"usage\":{{\"input_tokens\":{input},\"output_tokens\":2,\"cache_read_input_tokens\":null}}}}\n"
        )
    }

    /// Covers: AX-29
    #[test]
    fn each_request_counts_once_when_it_has_ended_although_its_log_is_renamed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("goose/logs");
        fs::create_dir_all(&folder).unwrap();
        let variable = |name: &str| (name == "XDG_STATE_HOME").then(|| home.path().into());
        let mut logs = RequestLogs::new(&variable).unwrap();
        let file = |number: u32| folder.join(format!("llm_request.{number}.jsonl"));
        fs::write(file(0), "{\"input\":{}}\n").unwrap();
        assert!(logs.read().is_empty(), "it runs");
        fs::write(file(0), log(1_000)).unwrap();
        assert_eq!(logs.read(), [r#"{"type":"liza_request","input":1000,"output":2,"cached":0}"#]);
        fs::rename(file(0), file(1)).unwrap();
        fs::write(file(0), log(1_100)).unwrap();
        assert_eq!(logs.read().len(), 1);
        assert!(logs.read().is_empty());
        fs::write(home.path().join("other"), log(1)).unwrap();
        std::os::unix::fs::symlink(home.path().join("other"), file(2)).unwrap();
        assert!(logs.read().is_empty(), "a link is not followed");
    }
}
