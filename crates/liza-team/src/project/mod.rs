//! A project with a blackboard: its place, the caller, the time, the stop files. Collects the facts that
//! rules ask for; decides nothing. Writes go through `engine`.

pub mod identity;
pub mod machine;
mod spoken;
pub mod team_file;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use liza_core::model::{Actor, Config, Generation, Sandbox, Sha, State, StopFile, StopFiles, Timestamp};
use liza_git::{Branch, Git, GitError, Repo};
use liza_host::durable;
use liza_host::local_time::{local_clock, wall_clock};
use liza_host::worktrees::{WORKTREES, project_around};
use liza_ids::BranchSteps;
use liza_sandbox::confine::{RoomRules, RoomSettings};
use liza_status::alarms::ForeignCommits;
use liza_store::{IncrementalReader, Store, StoreError, clock_difference, kept_in_git};

/// Patterns for git's list of ignored files.
pub const EXCLUDED: [&str; 2] = ["/.liza/", "/.worktrees/"];

/// The file in `.liza` of a copy in which nothing may be merged.
const NO_MERGES: &str = "no-merges";

/// The time that a long-running program waits for a database before it reports that and tries again. A person
/// must soon see why nothing happens.
const RETRY_LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub struct Project {
    store: Store,
    repo: Arc<OnceLock<Repo>>,
    /// The last read of the blackboard, which makes the next one cheap; shared by the whole process.
    reader: Arc<Mutex<IncrementalReader>>,
    /// The commits on the integration branch beyond the recorded head, when both were last compared.
    beyond: Arc<Mutex<Option<(Sha, Sha, BranchSteps)>>>,
    /// The last found commits on the branch that neither the program nor the human made.
    foreign: Arc<Mutex<Option<ForeignCommits>>>,
}

impl Project {
    /// The project of `from`: the nearest folder upwards with a blackboard. A task's worktree lies below its
    /// project, or its folder names the project, so this works from there too; a blackboard inside a project's
    /// `.worktrees` is never used, since an agent wrote it.
    pub fn find(from: &Path) -> Option<PathBuf> {
        // A blackboard whose file or folder was deleted can be restored: its last version is kept.
        let has_board = |folder: &&Path| {
            ["store.yaml", "state.yaml", "state.yaml.prev"]
                .iter()
                .any(|name| folder.join(".liza").join(name).symlink_metadata().is_ok())
                || kept_in_git(folder).is_some_and(|kept| kept.is_file())
        };
        let below = from.ancestors().filter(has_board).find(|folder| !is_below_worktrees(folder));
        below.map(Path::to_owned).or_else(|| project_around(from))
    }

    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let store = Store::open(root)?;
        let reader = Arc::new(Mutex::new(store.incremental_reader()));
        Ok(Self { store, repo: Arc::default(), reader, beyond: Arc::default(), foreign: Arc::default() })
    }

    pub fn root(&self) -> &Path {
        self.store.root()
    }

    pub fn folder(&self) -> &Path {
        self.store.folder()
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The whole blackboard. Costs only the changes since this process last read it.
    pub fn state(&self) -> Result<Arc<State>, StoreError> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).read()
    }

    /// Makes it a copy in which nothing can be merged.
    pub fn forbid_merges(&self) -> io::Result<()> {
        durable::replace_private_file(&self.folder().join(NO_MERGES), b"")
    }

    pub fn forbids_merges(&self) -> bool {
        self.folder().join(NO_MERGES).exists()
    }

    /// True if merges run an integration test; `None` if that cannot be found out.
    pub fn is_tested(&self, state: &State) -> Option<bool> {
        let integration = &state.board.config.ready()?.integration_branch;
        self.repo().ok()?.has_test(&Branch::for_integration(integration).ok()?).ok()
    }

    pub fn repo(&self) -> Result<&Repo, GitError> {
        if let Some(repo) = self.repo.get() {
            return Ok(repo);
        }
        let git = Git::new();
        let rules = self
            .state()
            .ok()
            .and_then(|state| Some(RoomRules::new(&room_settings(state.board.config().ok()?), git.home())));
        let repo = Repo::open(&git, self.root())?.with_room_rules(rules.unwrap_or_default());
        Ok(self.repo.get_or_init(|| repo))
    }

    /// The commits of the integration branch at `head` beyond the recorded head; none if git doesn't know
    /// both. Asks git only if one of the two has moved.
    pub fn branch_steps(&self, recorded: &Sha, head: &Sha) -> BranchSteps {
        if recorded == head {
            return BranchSteps::default();
        }
        let mut known = self.beyond.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((from, to, beyond)) = known.as_ref()
            && (from, to) == (recorded, head)
        {
            return beyond.clone();
        }
        // A failure of git is no answer: the next look asks again.
        let Ok(found) = self.repo().and_then(|repo| repo.branch_steps(recorded, head)) else {
            return BranchSteps::default();
        };
        *known = Some((recorded.clone(), head.clone(), found.clone()));
        found
    }

    pub(crate) fn known_foreign_commits(&self) -> Option<ForeignCommits> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the result of a look at the branch, for one that cannot see the branch at rest.
    pub(crate) fn keep_foreign_commits(&self, found: Option<ForeignCommits>) {
        *self.foreign.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Keeps trying for a while when a database cannot be reached, for a program that runs long.
    #[must_use]
    pub fn retrying_for_long(self) -> Self {
        let store = self.store.clone().with_retry_limit(RETRY_LIMIT);
        let reader = Arc::new(Mutex::new(store.incremental_reader()));
        Self { store, reader, ..self }
    }

    /// Makes stop files in the folder rows of the database, so that they stop the agents of every machine.
    pub(crate) fn share_stop_files(&self) -> Result<(), StoreError> {
        self.share_stop_files_in(&self.store)
    }

    /// The same, tried once: does not wait for a database that cannot be used.
    pub fn try_share_stop_files(&self) -> Result<(), StoreError> {
        self.share_stop_files_in(&self.store.clone().with_retry_limit(Duration::ZERO))
    }

    fn share_stop_files_in(&self, store: &Store) -> Result<(), StoreError> {
        if !self.store.is_in_database() {
            return Ok(());
        }
        let here = |file: &StopFile| self.folder().join(file.name()).exists();
        let found: Vec<StopFile> = StopFile::ALL.into_iter().filter(here).collect();
        if !found.is_empty() {
            store.change_stop_rows(&found, &[])?;
            for file in found {
                let path = self.folder().join(file.name());
                let removed = std::fs::remove_file(&path);
                removed.map_err(|source| StoreError::Io { action: "remove", path, source })?;
            }
        }
        Ok(())
    }

    /// In the folder, and in the database if there is one.
    pub fn stop_files(&self) -> StopFiles {
        let rows = self.store.stop_rows().ok().flatten().unwrap_or_default();
        let is_row = |file: StopFile| match file {
            StopFile::Pause => rows.pause.is_some(),
            StopFile::Checkpoint => rows.checkpoint.is_some(),
            StopFile::Abort => rows.abort.is_some(),
        };
        let present = |file: StopFile| is_row(file) || self.folder().join(file.name()).exists();
        StopFiles {
            pause: present(StopFile::Pause),
            checkpoint: present(StopFile::Checkpoint),
            abort: present(StopFile::Abort),
        }
    }
}

fn is_below_worktrees(folder: &Path) -> bool {
    let worktrees =
        folder.ancestors().filter(|folder| folder.file_name().is_some_and(|name| name == WORKTREES));
    let mut projects = worktrees.filter_map(Path::parent);
    projects.any(|project| project.join(".liza").exists()) || project_around(folder).is_some()
}

pub(crate) fn room_settings(config: &Config) -> RoomSettings {
    RoomSettings {
        // Version 0 is none.
        off: config.sandbox == Sandbox::Off || config.sandbox_max_abi == Some(0),
        readable: config.sandbox_readable.clone(),
        writable: config.sandbox_writable.clone(),
        sockets: config.sandbox_sockets.clone(),
        pass_env: config.pass_env.clone(),
        max_abi: config.sandbox_max_abi,
    }
}

/// The current time of the project, in whole seconds. A database's time is known after the first read.
pub fn now() -> Timestamp {
    Timestamp::from_unix(wall_clock().as_second().saturating_add(clock_difference()))
}

/// The next midnight in the human's zone.
pub fn day_ends() -> Timestamp {
    let here = local_clock();
    let midnight = here.tomorrow().and_then(|tomorrow| tomorrow.start_of_day());
    Timestamp::from_unix(midnight.unwrap_or(here).timestamp().as_second())
}

pub const AGENT_ID: &str = "LIZA_AGENT_ID";
pub const AGENT_GENERATION: &str = "LIZA_AGENT_GENERATION";

/// The caller according to the two variables.
pub(crate) fn actor_from(id: Option<&str>, generation: Option<&str>) -> Result<Actor, String> {
    let blank = |text: &&str| !text.trim().is_empty();
    let (id, generation) = (id.filter(blank), generation.filter(blank));
    let Some(id) = id else {
        return match generation {
            None => Ok(Actor::Human),
            Some(_) => Err(format!("{AGENT_GENERATION} is set, but {AGENT_ID} is not")),
        };
    };
    let id = id.parse().map_err(|error| format!("{AGENT_ID}: {error}"))?;
    match generation {
        None => Ok(Actor::Operator(id)),
        Some(text) => match text.trim().parse() {
            Ok(number) => Ok(Actor::Agent(id, Generation(number))),
            Err(_) => Err(format!("{AGENT_GENERATION}: {text:?} is not a number")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AG-01
    #[test]
    fn the_environment_decides_who_calls() {
        let coder = "coder-1".parse().unwrap();
        assert_eq!(actor_from(None, None), Ok(Actor::Human));
        assert_eq!(actor_from(Some(" "), Some("")), Ok(Actor::Human));
        assert_eq!(actor_from(Some("coder-1"), None), Ok(Actor::Operator(coder)));
        assert_eq!(actor_from(Some("coder-1"), Some("7")), Ok(Actor::Agent(coder, Generation(7))));
        assert!(actor_from(Some("bob"), None).unwrap_err().contains("expected coder-N"));
        assert!(actor_from(None, Some("7")).is_err());
        assert!(actor_from(Some("coder-1"), Some("x")).is_err());
    }

    /// Covers: IS-08, IS-05
    #[test]
    fn settings_of_sessions_count_for_git_too() {
        let config = Config {
            sandbox: Sandbox::Off,
            sandbox_readable: vec!["~/tools".to_owned(), "/data".to_owned()],
            sandbox_writable: vec!["~/cache".to_owned()],
            sandbox_max_abi: Some(4),
            ..Config::default()
        };
        let rules = RoomRules::new(&room_settings(&config), Some(Path::new("/home/me")));
        let readable = vec!["/home/me/tools".into(), "/data".into()];
        let writable = vec!["/home/me/cache".into()];
        assert_eq!(
            rules,
            RoomRules { off: true, readable, writable, pass_env: Vec::new(), max_abi: Some(4) }
        );
        let without = Config { sandbox_max_abi: Some(0), ..Config::default() };
        assert!(RoomRules::new(&room_settings(&without), None).off);
        assert_eq!(RoomRules::new(&room_settings(&Config::default()), None), RoomRules::default());
    }
}
