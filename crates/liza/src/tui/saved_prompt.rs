//! Finds the prompt of a session among the saved ones, by the name of its file.

use std::fs;
use std::path::Path;

use liza_core::model::{AgentId, TaskId};

/// The newest prompt of an agent, or for a task, or both.
pub(super) fn newest(folder: &Path, agent: Option<AgentId>, task: Option<&TaskId>) -> Option<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let wanted = files.filter(|path| {
        let name = path.file_stem().map(|name| name.to_string_lossy()).unwrap_or_default();
        parts(&name).is_some_and(|(owner, about)| {
            agent.is_none_or(|agent| agent == owner) && task.is_none_or(|task| task.as_str() == about)
        })
    });
    let path = wanted.max_by_key(|path| fs::metadata(path).and_then(|meta| meta.modified()).ok())?;
    Some(fs::read_to_string(&path).unwrap_or_else(|error| format!("{}: {error}", path.display())))
}

/// The agent and the task of `AGENT-TIME-NUMBER-TASK`. Names of agents and of tasks contain `-`; times and numbers do not.
fn parts(name: &str) -> Option<(AgentId, &str)> {
    let mut ends = name.match_indices('-');
    let (agent, rest) =
        ends.find_map(|(at, _)| Some((name[..at].parse::<AgentId>().ok()?, &name[at + 1..])))?;
    Some((agent, rest.splitn(3, '-').nth(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-01
    #[test]
    fn the_prompt_of_a_task_is_not_that_of_a_task_whose_name_ends_alike() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes-core.md"), "not a prompt").unwrap();
        for (agent, task) in [("coder-1", "retry-core"), ("code-reviewer-12", "2-core")] {
            let file = folder.path().join(format!("{agent}-20260117T140000Z-1-{task}.md"));
            fs::write(file, format!("{agent} {task}")).unwrap();
        }
        let found = |agent: Option<&str>, task: Option<&str>| {
            let task: Option<TaskId> = task.map(|task| task.parse().unwrap());
            newest(folder.path(), agent.map(|agent| agent.parse().unwrap()), task.as_ref())
        };
        assert_eq!(found(None, Some("core")), None);
        assert_eq!(found(None, Some("retry-core")).as_deref(), Some("coder-1 retry-core"));
        assert_eq!(found(None, Some("2-core")).as_deref(), Some("code-reviewer-12 2-core"));
        assert_eq!(found(Some("code-reviewer-12"), None).as_deref(), Some("code-reviewer-12 2-core"));
        assert_eq!(found(Some("code-reviewer-1"), None), None);
    }
}
