//! Gathers the facts about a submission: what its merge would do to the integration branch, file by file.

use liza_agents::providers::{SettingFiles, is_instruction};
use liza_core::model::{FactKind, Sha, State, Status, TaskId, WorkFacts};
use liza_core::rules::work_facts::{FileDelta, KnownFiles, has_language, work_facts};
use liza_git::{ChangedFile, FileContents, MergeChange, Repo};

use crate::engine::{Engine, EngineError};

use super::fetch_commits::integration_head;

/// The facts about a commit of a task; `None` if there is no integration branch.
pub(super) fn facts_of(
    engine: &Engine<'_>,
    task: &TaskId,
    commit: &Sha,
) -> Result<Option<WorkFacts>, EngineError> {
    let state = engine.project().store().snapshot()?;
    let Some(head) = integration_head(engine.project(), &state.board)? else { return Ok(None) };
    facts_at(engine.repo()?, &state, &head, (task, commit)).map(Some)
}

/// The same on that head, with a blackboard that need not be stored.
pub fn facts_at(
    repo: &Repo,
    state: &State,
    head: &Sha,
    (task, commit): (&TaskId, &Sha),
) -> Result<WorkFacts, EngineError> {
    let (from, to) = compared(repo, head, commit)?;
    let config = state.board.config()?;
    let files = deltas(repo, &SettingFiles::of(config), &repo.changed_files(&from, &to)?)?;
    let patterns = config.gate_patterns();
    let known = KnownFiles {
        protected: repo.protected(&to, &patterns)?.differing(&repo.protected(&from, &patterns)?),
        planned: state.board.body(task)?.record().past().planned_files,
        high_impact: config.high_impact.clone(),
    };
    let mut facts = work_facts(&files, &known);
    // The only part that reads history: a long one must not keep work from its review.
    for undone in repo.undone_lines(&from, &to).unwrap_or_default() {
        facts.note(FactKind::Undone, &format!("{} ({})", undone.path, undone.step.short()));
    }
    for other in other_tasks(state, task, &repo.added_commits(head, commit)?) {
        facts.note(FactKind::OtherTasks, other.as_str());
    }
    Ok(facts)
}

/// The head and the merged files; of work that does not merge, what its own commits change.
fn compared(repo: &Repo, head: &Sha, commit: &Sha) -> Result<(Sha, Sha), EngineError> {
    Ok(match repo.merge_change(head, commit)? {
        MergeChange::Clean { tree } => (head.clone(), tree),
        MergeChange::Undefined { .. } => {
            (repo.merge_base(head, commit)?.unwrap_or_else(|| head.clone()), commit.clone())
        }
    })
}

fn deltas(
    repo: &Repo,
    settings: &SettingFiles,
    files: &[ChangedFile],
) -> Result<Vec<FileDelta>, EngineError> {
    let is_read = |file: &&ChangedFile| file.path.to_str().is_some_and(has_language);
    let read: Vec<&ChangedFile> = files.iter().filter(is_read).collect();
    let mut contents = repo.contents(&read)?.into_iter();
    let text = |content: Option<Vec<u8>>| content.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let delta = |file: &ChangedFile| {
        let FileContents { old, new, is_too_large } =
            if is_read(&file) { contents.next().unwrap_or_default() } else { FileContents::default() };
        FileDelta {
            path: file.path.to_string_lossy().into_owned(),
            added: file.added,
            removed: file.removed,
            old: text(old),
            new: text(new),
            is_uncounted: is_too_large,
            instructs: settings.contains(&file.path) || is_instruction(&file.path),
        }
    };
    Ok(files.iter().map(delta).collect())
}

/// The other open tasks whose submitted commits are among these.
fn other_tasks<'s>(state: &'s State, task: &TaskId, commits: &[Sha]) -> Vec<&'s TaskId> {
    let is_other =
        |id: &TaskId, status: Option<Status>| id != task && !status.is_some_and(Status::is_terminal);
    let has = |commit: &Sha| commits.contains(commit);
    let tasks = state.bodies().map(|(id, body)| (id, body.record()));
    let tasks = tasks.filter(|(id, record)| is_other(id, record.status));
    tasks.filter(|(_, record)| record.review_commit.as_ref().is_some_and(has)).map(|(id, _)| id).collect()
}
