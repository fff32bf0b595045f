//! The conversations of a session, kept between the sessions of one task so that a program can resume its
//! own. Masked like everything that is stored, and removed with the task's worktree. The session's files are
//! not trusted: links and too large files are removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::model::{
    AgentId, Config, EventName, HistoryEvent, ModelEnd, Seconds, TaskId, TaskRecord, Timestamp, Usage,
};
use liza_host::private;
use liza_host::secrets::Masker;
use serde::{Deserialize, Serialize};

const FILE_MAX: u64 = 64 << 20;
/// The deepest folder that is kept; programs use three or four levels.
const DEPTH_MAX: usize = 8;

/// The places of the conversations during a session and between two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptConversations {
    /// The program's folder for them in the private folder.
    pub below: PathBuf,
    /// Between sessions.
    pub place: PathBuf,
    /// The session gets those of the last one.
    pub restore: bool,
}

pub(crate) fn conversations_of(liza: &Path, task: &TaskId) -> PathBuf {
    liza.join("conversations").join(task.as_str())
}

/// Up to this share of its context a conversation is resumed after a rejection: the rest has to do for the work.
const FULL_AT: u32 = 50;

/// The longest pause after which a conversation is resumed: providers keep it in their caches for about as long,
/// and later a new one is cheaper.
const SHORT_PAUSE: Seconds = Seconds::minutes(5);

/// The conversation that a coder's session resumes: its last one on the task with the same client, if nothing
/// has happened since but that the model left it without a result, or that the task was claimed again after a
/// rejection, soon, and with room in its context. A handoff wants a new conversation.
pub(crate) fn conversation_to_resume(
    config: &Config,
    record: &TaskRecord,
    agent: AgentId,
    client: &str,
    now: Timestamp,
) -> Option<String> {
    let own = |event: &&HistoryEvent| {
        event.is(EventName::SessionEnded) && event.agent.as_deref() == Some(agent.to_string().as_str())
    };
    let last = record.events().rev().find(own)?;
    let mut since = record.events().rev().take_while(|event| !std::ptr::eq(*event, last));
    let asked = last.model_end().is_some_and(|end| end != ModelEnd::ContextFull);
    let asked = asked && since.clone().all(|event| event.is(EventName::Resumed));
    let claimed = since.next().is_some_and(|event| event.is(EventName::ReclaimedAfterRejection));
    let number = |key: &str| last.text(key).and_then(|text| text.parse::<u32>().ok());
    let has_room = number("context_percent").is_some_and(|percent| percent < FULL_AT);
    let is_soon = now.since(last.time) <= SHORT_PAUSE;
    let claimed = claimed && config.resume_conversation && has_room && is_soon;
    let before = record.events().rev().skip_while(|event| !std::ptr::eq(*event, last)).skip(1);
    let in_session = before.take_while(|event| !event.is(EventName::SessionEnded));
    let handed_over = in_session.clone().any(|event| event.is(EventName::Handoff));
    let same = last.text("client").as_deref() == Some(client);
    last.text("conversation").filter(|_| same && !handed_over && (claimed || asked))
}

/// The usage of a conversation so far: some programs report that of an earlier session again.
pub(crate) fn conversation_usage(record: &TaskRecord, conversation: &str) -> Usage {
    let mut sum = Usage::default();
    for event in record.events().filter(|event| event.text("conversation").as_deref() == Some(conversation)) {
        let number = |key: &str| event.text(key).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let cost_usd = event.text("cost_usd").and_then(|text| text.parse().ok()).unwrap_or(0.0);
        let (output, cached) = (number("output"), number("cached"));
        let input = number("tokens").saturating_sub(output);
        sum.add(&Usage { input, output, cached, cost_usd, ..Usage::default() });
    }
    sum
}

impl KeptConversations {
    pub fn restore(&self, folder: &Path) -> io::Result<()> {
        if !self.restore || !self.place.is_dir() {
            return Ok(());
        }
        let to = folder.join(&self.below);
        to.parent().map_or(Ok(()), private::create_folder)?;
        fs::rename(&self.place, to)
    }

    /// Moves the conversations out of the folder, without the secrets in them. Links are not followed.
    pub fn keep(&self, folder: &Path, masker: &Masker) -> io::Result<()> {
        let _ = fs::remove_dir_all(&self.place);
        let mut from = folder.to_owned();
        for part in self.below.components() {
            from.push(part);
            if !fs::symlink_metadata(&from)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        self.place.parent().map_or(Ok(()), private::create_folder)?;
        fs::rename(from, &self.place)?;
        let masked = mask_folder(&self.place, masker, DEPTH_MAX);
        if masked.is_err() {
            // Rather none than one with a secret.
            let _ = fs::remove_dir_all(&self.place);
        }
        masked
    }
}

/// Masks all files below a folder that no session can reach any more.
fn mask_folder(folder: &Path, masker: &Masker, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_dir() && depth > 0 {
            mask_folder(&path, masker, depth - 1)?;
        } else if meta.is_dir() {
            fs::remove_dir_all(&path)?;
        } else if meta.is_file() && meta.len() <= FILE_MAX {
            mask_file(&path, masker)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn mask_file(path: &Path, masker: &Masker) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let Ok(text) = String::from_utf8(bytes) else { return fs::remove_file(path) };
    let masked = masker.mask(&text);
    if masked == text {
        return Ok(());
    }
    // A new file: another name of the old one may be somewhere else.
    fs::remove_file(path)?;
    fs::write(path, masked.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "token-of-the-person-1234";

    fn kept(home: &Path, restore: bool) -> KeptConversations {
        KeptConversations { below: "said".into(), place: home.join("kept"), restore }
    }

    fn record(events: &[&str]) -> TaskRecord {
        let history = serde_json::from_str(&format!("[{}]", events.join(","))).unwrap();
        TaskRecord { history, ..TaskRecord::default() }
    }

    fn event(name: &str, more: &str) -> String {
        format!(r#"{{"time": "2026-01-17T14:00:00Z", "event": "{name}", "agent": "coder-1"{more}}}"#)
    }

    /// Covers: AX-33
    #[test]
    fn a_conversation_is_resumed_soon_with_room_and_never_after_a_handoff() {
        let talked = |percent: &str| {
            event("session_ended", &format!(r#", "client": "claude", "conversation": "0199-a"{percent}"#))
        };
        let half = |percent: u32| talked(&format!(r#", "context_percent": {percent}"#));
        let (reclaimed, handoff) = (event("reclaimed_after_rejection", ""), event("handoff", ""));
        let config = Config { resume_conversation: true, ..Config::default() };
        let resumes = |minutes: u64, events: &[&str]| {
            let now = "2026-01-17T14:00:00Z".parse::<Timestamp>().unwrap() + Seconds::minutes(minutes);
            let coder = "coder-1".parse().unwrap();
            conversation_to_resume(&config, &record(events), coder, "claude", now).is_some()
        };
        assert!(resumes(5, &[&half(49), &reclaimed]));
        assert!(!resumes(6, &[&half(49), &reclaimed]), "late");
        assert!(!resumes(5, &[&half(50), &reclaimed]), "half of it is used");
        assert!(!resumes(5, &[&talked(""), &reclaimed]), "nothing is known of its context");
        assert!(!resumes(5, &[&handoff, &half(10), &reclaimed]), "it was handed over");
        assert!(resumes(5, &[&handoff, &half(10), &half(20), &reclaimed]), "in another conversation");
    }

    /// Covers: SE-10, AX-30
    #[test]
    fn a_conversation_is_resumed_for_a_nudge_and_after_a_rejection_only_if_it_is_wanted() {
        let talked = r#", "client": "claude", "conversation": "0199-a", "context_percent": 30"#;
        let (ended, resumed) = (event("session_ended", talked), event("resumed", ""));
        let reclaimed = event("reclaimed_after_rejection", "");
        let left = |how: &str| event("session_ended", &format!(r#"{talked}, "by_model": "{how}""#));
        let now = "2026-01-17T14:01:00Z".parse().unwrap();
        let resumes = |wanted: bool, agent: &str, client: &str, events: &[&str]| {
            let config = Config { resume_conversation: wanted, ..Config::default() };
            conversation_to_resume(&config, &record(events), agent.parse().unwrap(), client, now).is_some()
        };
        assert!(!resumes(true, "coder-1", "claude", &[&ended]), "it was not rejected");
        assert!(resumes(true, "coder-1", "claude", &[&ended, &reclaimed]));
        assert!(!resumes(true, "coder-1", "codex", &[&ended, &reclaimed]), "another client");
        assert!(!resumes(true, "coder-2", "claude", &[&ended, &reclaimed]), "another coder");
        assert!(!resumes(false, "coder-1", "claude", &[&ended, &reclaimed]), "off by default");
        let left_talk = left("no_tool_call");
        assert!(resumes(false, "coder-1", "claude", &[&left_talk, &resumed]), "one nudge");
        assert!(!resumes(false, "coder-1", "claude", &[&left_talk, &reclaimed]), "something happened since");
        assert!(
            !resumes(false, "coder-1", "claude", &[&left("context_full"), &resumed]),
            "nothing fits into it"
        );
    }

    /// Covers: AX-32
    #[test]
    fn the_usage_of_a_conversation_is_that_of_its_sessions() {
        let used = r#", "conversation": "0199-a", "tokens": 15, "output": 5, "cached": 900, "cost_usd": 0.5"#;
        let (one, other) = (event("session_ended", used), event("session_ended", r#", "tokens": 7"#));
        let sum = conversation_usage(&record(&[&one, &other, &one]), "0199-a");
        assert_eq!((sum.input, sum.output, sum.cached, sum.cost_usd), (20, 10, 1800, 1.0));
    }

    /// Covers: SE-10
    #[test]
    fn what_is_kept_has_no_secrets_and_nothing_but_texts() {
        let home = tempfile::tempdir().unwrap();
        let said = home.path().join("private/said");
        fs::create_dir_all(said.join("a/b")).unwrap();
        fs::write(said.join("a/b/1.jsonl"), format!("{{\"text\":\"it is {SECRET}\"}}\n")).unwrap();
        fs::write(said.join("plain.jsonl"), "{}\n").unwrap();
        fs::write(said.join("bytes"), [0xff, 0xfe]).unwrap();
        fs::write(home.path().join("mine"), SECRET).unwrap();
        std::os::unix::fs::symlink(home.path().join("mine"), said.join("link")).unwrap();
        fs::hard_link(home.path().join("mine"), said.join("hard")).unwrap();
        let masker = Masker::new([("MY_TOKEN", SECRET)]);
        kept(home.path(), true).keep(&home.path().join("private"), &masker).unwrap();
        let place = home.path().join("kept");
        assert_eq!(fs::read_to_string(place.join("a/b/1.jsonl")).unwrap(), "{\"text\":\"it is [masked]\"}\n");
        assert_eq!(fs::read_to_string(place.join("hard")).unwrap(), "[masked]");
        assert_eq!(fs::read_to_string(home.path().join("mine")).unwrap(), SECRET);
        assert!(place.join("plain.jsonl").exists());
        assert!(!place.join("bytes").exists() && place.join("link").symlink_metadata().is_err());
    }
}
