//! The kept prompts and outputs of sessions, found by the names of their files. Only reads.

use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::{AgentId, TaskId, Timestamp};
use liza_host::durable;

pub(crate) const PROMPTS: &str = "agent-prompts";
pub(crate) const OUTPUTS: &str = "agent-outputs";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSession {
    pub name: String,
    pub agent: AgentId,
    /// The task, or `plan`.
    pub about: String,
    pub started: Timestamp,
    /// Counts the sessions of one second.
    number: u32,
}

impl KeptSession {
    /// Names of agents and of tasks contain `-`; times and numbers do not.
    fn parse(name: &str) -> Option<Self> {
        let mut ends = name.match_indices('-');
        let (agent, rest) =
            ends.find_map(|(at, _)| Some((name[..at].parse::<AgentId>().ok()?, &name[at + 1..])))?;
        let mut parts = rest.splitn(3, '-');
        let started = time(parts.next()?)?;
        let number = parts.next()?.parse().ok()?;
        Some(Self { name: name.to_owned(), agent, about: parts.next()?.to_owned(), started, number })
    }

    pub(crate) fn of_output(file: &str) -> Option<Self> {
        Self::parse(file.strip_suffix(".log")?)
    }

    pub fn prompt(&self, folder: &Path) -> PathBuf {
        folder.join(PROMPTS).join(format!("{}.md", self.name))
    }

    pub fn output(&self, folder: &Path) -> PathBuf {
        folder.join(OUTPUTS).join(format!("{}.log", self.name))
    }
}

/// `20260117T140000Z` as a time.
fn time(text: &str) -> Option<Timestamp> {
    let part = |from: usize, to: usize| text.get(from..to);
    let (day, hour) = (format!("{}-{}-{}", part(0, 4)?, part(4, 6)?, part(6, 8)?), part(9, 11)?);
    format!("{day}T{hour}:{}:{}Z", part(11, 13)?, part(13, 15)?).parse().ok()
}

/// All sessions whose prompts are kept in the blackboard's folder, the newest first.
pub fn kept_sessions(folder: &Path) -> Vec<KeptSession> {
    let files = fs::read_dir(folder.join(PROMPTS)).into_iter().flatten().flatten().map(|entry| entry.path());
    let parsed = files.filter_map(|path| KeptSession::parse(path.file_stem()?.to_str()?));
    let mut sessions: Vec<KeptSession> = parsed.collect();
    sessions.sort_by(|a, b| (b.started, b.number, &b.name).cmp(&(a.started, a.number, &a.name)));
    sessions
}

pub fn newest_prompt(folder: &Path, agent: Option<AgentId>, task: Option<&TaskId>) -> Option<String> {
    let wanted = |session: &KeptSession| {
        agent.is_none_or(|agent| agent == session.agent)
            && task.is_none_or(|task| task.as_str() == session.about)
    };
    let path = kept_sessions(folder).into_iter().find(wanted)?.prompt(folder);
    Some(durable::read_text(&path).unwrap_or_else(|error| format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-01, UI-02
    #[test]
    fn the_prompt_of_a_task_is_not_that_of_a_task_whose_name_ends_alike() {
        let folder = tempfile::tempdir().unwrap();
        let prompts = folder.path().join(PROMPTS);
        fs::create_dir(&prompts).unwrap();
        fs::write(prompts.join("notes-core.md"), "not a prompt").unwrap();
        for (agent, time, task) in [
            ("coder-1", "20260117T140000Z-1", "retry-core"),
            ("coder-1", "20260117T140000Z-10", "retry-core"),
            ("coder-1", "20260117T140000Z-9", "retry-core"),
            ("code-reviewer-12", "20260118T090000Z-1", "2-core"),
        ] {
            let file = prompts.join(format!("{agent}-{time}-{task}.md"));
            fs::write(file, format!("{agent} {task} {time}")).unwrap();
        }
        let found = |agent: Option<&str>, task: Option<&str>| {
            let task: Option<TaskId> = task.map(|task| task.parse().unwrap());
            newest_prompt(folder.path(), agent.map(|agent| agent.parse().unwrap()), task.as_ref())
        };
        assert_eq!(found(None, Some("core")), None);
        let newest = "coder-1 retry-core 20260117T140000Z-10";
        assert_eq!(found(None, Some("retry-core")).as_deref(), Some(newest));
        let reviewer = "code-reviewer-12 2-core 20260118T090000Z-1";
        assert_eq!(found(None, Some("2-core")).as_deref(), Some(reviewer));
        assert_eq!(found(Some("code-reviewer-12"), None).as_deref(), Some(reviewer));
        assert_eq!(found(Some("code-reviewer-1"), None), None);
        assert_eq!(kept_sessions(folder.path())[0].started.to_string(), "2026-01-18T09:00:00Z");
    }
}
