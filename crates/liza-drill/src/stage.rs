//! Copies of a project: one in which defects are tried, and one for each drill, with no commit that is younger than its change.

use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::{LogEntry, Sha, State};
use liza_git::{Git, Repo};
use liza_sandbox::sys::remove_tree::remove_tree;
use liza_store::{LogRecord, Store};
use liza_team::engine::integration_branch;
use liza_team::lifecycle::facts_at;
use liza_team::project::{EXCLUDED, Project};
use liza_team::run::demo::temporary_folder;
use liza_team::run::{close_in, copy_identity, copy_named};

use crate::changes::Change;
use crate::error::DrillError;
use crate::frozen::frozen;

/// A copy, which is deleted when it is dropped.
pub struct Stage {
    folder: PathBuf,
    pub project: Project,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = remove_tree(&self.folder);
    }
}

/// The parts of the project that a copy has.
struct Content<'c> {
    from: &'c Path,
    /// Commits with the branches that they are on in the copy.
    branches: Vec<(String, String)>,
    main: String,
}

impl Stage {
    /// The copy in which defects are made and tried: all of the integration branch.
    pub fn workshop(project: &Project, state: &State) -> Result<Self, DrillError> {
        let (integration, main) = (integration_branch(&state.board)?.to_string(), main_branch(state));
        let content = Content {
            from: project.root(),
            branches: vec![(format!("refs/heads/{integration}"), integration.clone())],
            main: if main == integration { main } else { integration },
        };
        let (folder, repo) = make(project, &content)?;
        let mut state = state.clone();
        close_in(&mut state);
        Self::open(folder, &repo, &state, &[])
    }

    /// The project as it was when the change was submitted, with `shown` in its place; `from` has that commit.
    pub fn of_drill(
        project: &Project,
        (state, log): (&State, &[LogRecord]),
        from: &Repo,
        (change, shown): (&Change, &Sha),
    ) -> Result<Self, DrillError> {
        let (integration, main) = (integration_branch(&state.board)?, main_branch(state));
        let mut branches = vec![
            (change.head.to_string(), integration.to_string()),
            (shown.to_string(), change.task.branch()),
        ];
        if main != integration.to_string() {
            branches.push((change.base.to_string(), main.clone()));
        }
        let (folder, repo) = make(project, &Content { from: from.root(), branches, main })?;
        let then = frozen(state, change, shown, None);
        let facts = facts_at(&repo, &then, &change.head, (&change.task, shown))?;
        let then = frozen(state, change, shown, Some(&facts));
        let log = earlier_log(log, change, shown);
        Self::open(folder, &repo, &then, &log)
    }

    fn open(folder: PathBuf, repo: &Repo, state: &State, log: &[LogRecord]) -> Result<Self, DrillError> {
        let root = repo.root();
        let first = log.first().map(LogRecord::to_entry).unwrap_or_else(|| LogEntry {
            timestamp: liza_team::project::now(),
            agent: "human".to_owned(),
            action: "goal_created".to_owned(),
            task: None,
            detail: String::new(),
        });
        let store = Store::create(root, state, &first)?;
        store.add_to_log(&log[log.len().min(1)..])?;
        let project = Project::open(root)?;
        project.forbid_merges().map_err(DrillError::io("write in", root))?;
        Ok(Self { folder, project })
    }
}

fn main_branch(state: &State) -> String {
    let named = state.board.config.ready().and_then(|config| config.main_branch.clone());
    named.unwrap_or_else(|| "main".to_owned())
}

/// Makes the repository of a copy in a new folder that has the project's name.
fn make(project: &Project, content: &Content<'_>) -> Result<(PathBuf, Repo), DrillError> {
    let folder = temporary_folder("liza-copy").map_err(liza_team::run::CopyError::from)?;
    let name = project.root().file_name().unwrap_or_default();
    let root = folder.join(name);
    fs::create_dir(&root).map_err(DrillError::io("make", &root))?;
    let git = Git::new();
    let call = |arguments: &[&str]| git.command("copying the project", &root).args(arguments).check();
    call(&["init", "-q", "--template=", "-b", &content.main])?;
    let refs: Vec<String> =
        content.branches.iter().map(|(commit, branch)| format!("+{commit}:refs/heads/{branch}")).collect();
    let from = content.from.display().to_string();
    let options = ["-c", "protocol.version=2", "fetch", "-q", "--no-tags", "--update-head-ok", &from];
    let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
    call(&[&options[..], &refs].concat())?;
    call(&["-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard"])?;
    copy_identity(&git, project.root(), &root)?;
    let repo = Repo::open(&git, &root)?;
    repo.exclude(&EXCLUDED)?;
    copy_named(project, &repo)?;
    Ok((folder, repo))
}

/// The log up to the submission, with the shown commit in the place of the real one.
fn earlier_log(log: &[LogRecord], change: &Change, shown: &Sha) -> Vec<LogRecord> {
    let earlier = log.iter().filter(|record| record.timestamp <= change.submitted);
    let hide = |record: &LogRecord| {
        let whole = record.detail.replace(change.commit.as_str(), shown.as_str());
        LogRecord { detail: whole.replace(change.commit.short(), shown.short()), ..record.clone() }
    };
    earlier.map(hide).collect()
}
