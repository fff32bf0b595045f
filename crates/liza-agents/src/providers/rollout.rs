//! The log that Codex keeps of a session: the only place with the use of the context.
//!
//! A session can write there, so nothing is trusted: links are not followed, and only a bounded part is read.

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::event::EventFormat;

/// The most bytes that are read at a time.
const READ_MAX: u64 = 1 << 20;
/// The number of folders of a level that are searched, the newest first.
const NEWEST: usize = 2;
/// The depth of the files: year, month, day.
const DEPTH: usize = 3;

/// Reads the log of one session as it grows.
#[derive(Debug)]
pub struct RolloutReader {
    folder: PathBuf,
    file: Option<PathBuf>,
    offset: u64,
}

impl RolloutReader {
    /// A reader, if this program keeps such logs. `variable` gives the variables of the session.
    pub fn new(format: EventFormat, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        if format != EventFormat::Codex {
            return None;
        }
        let home = || Some(PathBuf::from(variable("HOME")?).join(".codex"));
        let codex = variable("CODEX_HOME").map(PathBuf::from).or_else(home)?;
        Some(Self { folder: codex.join("sessions"), file: None, offset: 0 })
    }

    /// The last line about the context that is new in the log of this conversation.
    pub fn read(&mut self, conversation: &str) -> Option<String> {
        if self.file.is_none() {
            self.file = find(&self.folder, conversation, DEPTH);
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let flags = i32::try_from(flags).unwrap_or_default();
        let mut file =
            fs::OpenOptions::new().read(true).custom_flags(flags).open(self.file.as_ref()?).ok()?;
        let length = file.metadata().ok().filter(fs::Metadata::is_file)?.len();
        let start = self.offset.max(length.saturating_sub(READ_MAX));
        file.seek(SeekFrom::Start(start)).ok()?;
        let mut bytes = Vec::new();
        file.take(READ_MAX).read_to_end(&mut bytes).ok()?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n')? + 1;
        self.offset = start + complete as u64;
        let text = String::from_utf8_lossy(bytes.get(..complete).unwrap_or_default()).into_owned();
        text.lines().rev().find(|line| line.contains("\"token_count\"")).map(str::to_owned)
    }
}

fn find(folder: &Path, conversation: &str, depth: usize) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    let newest = names.iter().rev();
    if depth > 0 {
        return newest.take(NEWEST).find_map(|name| find(&folder.join(name), conversation, depth - 1));
    }
    let is_log = |name: &&OsString| {
        let name = name.to_string_lossy();
        name.starts_with("rollout-") && name.ends_with(&format!("{conversation}.jsonl"))
    };
    newest.into_iter().find(is_log).map(|name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Covers: SE-05, SE-14
    #[test]
    fn the_context_is_read_from_the_log_of_the_conversation() {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join(".codex/sessions/2026/11/16");
        fs::create_dir_all(&day).unwrap();
        let variable = |name: &str| (name == "HOME").then(|| home.path().into());
        assert!(RolloutReader::new(EventFormat::Claude, &variable).is_none());
        let mut reader = RolloutReader::new(EventFormat::Codex, &variable).unwrap();
        assert_eq!(reader.read("0199-a"), None);
        fs::write(day.join("rollout-2026-11-16T01-00-00-0199-b.jsonl"), "{\"token_count\": 1}\n").unwrap();
        assert_eq!(reader.read("0199-a"), None, "the log of another conversation");
        let path = day.join("rollout-2026-11-16T02-00-00-0199-a.jsonl");
        let mut log = fs::File::create(path).unwrap();
        log.write_all(b"{\"type\":\"other\"}\n{\"type\":\"token_count\",\"n\":1}\n{\"type\":\"tok").unwrap();
        assert_eq!(reader.read("0199-a").as_deref(), Some("{\"type\":\"token_count\",\"n\":1}"));
        log.write_all(b"en_count\",\"n\":2}\n").unwrap();
        assert_eq!(reader.read("0199-a").as_deref(), Some("{\"type\":\"token_count\",\"n\":2}"));
        assert_eq!(reader.read("0199-a"), None, "nothing new");
    }

    /// Covers: SE-05
    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let day = home.path().join(".codex/sessions/2026/11/16");
        fs::create_dir_all(&day).unwrap();
        fs::write(home.path().join("other"), "{\"type\":\"token_count\"}\n").unwrap();
        std::os::unix::fs::symlink(home.path().join("other"), day.join("rollout-x-0199-a.jsonl")).unwrap();
        let variable = |name: &str| (name == "HOME").then(|| home.path().into());
        assert_eq!(RolloutReader::new(EventFormat::Codex, &variable).unwrap().read("0199-a"), None);
    }
}
