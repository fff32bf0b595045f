//! A project with a blackboard: where it is, who calls, what the time is, which stop files stand.
//!
//! Gathers the facts that rules ask for; decides nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use liza_core::agent::Actor;
use liza_core::command::Halt;
use liza_core::effect::HaltFile;
use liza_core::ids::{Generation, Revision};
use liza_core::time::Timestamp;
use liza_core::{Command, Request, State};
use liza_store::{IncrementalReader, Outcome, Store, StoreError};

use crate::effects::raise_ahead;
use crate::git::{Git, GitError, Repo};

/// What git should not see of a project.
pub const EXCLUDED: [&str; 2] = ["/.liza/", "/.worktrees/"];

/// A project with a blackboard.
#[derive(Debug, Clone)]
pub struct Project {
    store: Store,
    /// Found when it is first needed; git is asked once.
    repo: Arc<OnceLock<Repo>>,
    /// The last look at the blackboard, which makes the next one cheap; shared by all who work in this process.
    reader: Arc<Mutex<IncrementalReader>>,
}

impl Project {
    /// The project that `from` lies in: the nearest folder upwards with a `.liza`. A task's worktree lies below its
    /// project, so this works from there too.
    pub fn find(from: &Path) -> Option<PathBuf> {
        from.ancestors().find(|folder| folder.join(".liza/state.yaml").exists()).map(Path::to_owned)
    }

    /// Opens the project at its root.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let store = Store::open(root)?;
        let reader = Arc::new(Mutex::new(store.incremental_reader()));
        Ok(Self { store, repo: Arc::default(), reader })
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        self.store.root()
    }

    /// Its `.liza` folder.
    pub fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// Its blackboard.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The whole blackboard as it stands. Costs what has changed since the last look of this process.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn look(&self) -> Result<Arc<State>, StoreError> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).read()
    }

    /// Its repository.
    pub fn repo(&self) -> Result<&Repo, GitError> {
        if let Some(repo) = self.repo.get() {
            return Ok(repo);
        }
        let repo = Repo::open(&Git::new(), self.root())?;
        Ok(self.repo.get_or_init(|| repo))
    }

    /// Which stop files stand.
    pub fn halt(&self) -> Halt {
        let stands = |file: HaltFile| self.folder().join(file.name()).exists();
        Halt {
            pause: stands(HaltFile::Pause),
            checkpoint: stands(HaltFile::Checkpoint),
            abort: stands(HaltFile::Abort),
        }
    }

    /// Submits a command in the caller's name; its effects are still to be run.
    pub fn submit(
        &self,
        actor: Actor,
        if_revision: Option<Revision>,
        command: Command,
    ) -> Result<Outcome, StoreError> {
        self.submit_under(self.halt(), actor, if_revision, command)
    }

    /// The same as if these stop files stood: what has begun may be finished under PAUSE.
    pub fn submit_under(
        &self,
        halt: Halt,
        actor: Actor,
        if_revision: Option<Revision>,
        command: Command,
    ) -> Result<Outcome, StoreError> {
        self.submit_request(&Request { actor, now: now(), halt, if_revision, command })
    }

    /// Submits this very request. A stop file stands before the blackboard says so: who is killed in between has stopped
    /// everybody, and nobody takes a file that was never there for one that a person has removed.
    pub fn submit_request(&self, request: &Request) -> Result<Outcome, StoreError> {
        self.store.submit_after(request, &|effects| raise_ahead(self.folder(), effects, request.now))
    }
}

/// The present, to the second.
pub fn now() -> Timestamp {
    Timestamp::from_unix(jiff::Timestamp::now().as_second())
}

/// The variables by which a supervisor tells a session who it is.
pub const AGENT_ID: &str = "LIZA_AGENT_ID";
/// The session's registration.
pub const AGENT_GENERATION: &str = "LIZA_AGENT_GENERATION";

/// What the two variables say about the caller; an error in words where they make no sense.
pub fn actor_from(id: Option<&str>, generation: Option<&str>) -> Result<Actor, String> {
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
    fn the_environment_says_who_calls() {
        let coder = "coder-1".parse().unwrap();
        assert_eq!(actor_from(None, None), Ok(Actor::Human));
        assert_eq!(actor_from(Some(" "), Some("")), Ok(Actor::Human));
        assert_eq!(actor_from(Some("coder-1"), None), Ok(Actor::Operator(coder)));
        assert_eq!(actor_from(Some("coder-1"), Some("7")), Ok(Actor::Agent(coder, Generation(7))));
        assert!(actor_from(Some("bob"), None).unwrap_err().contains("expected coder-N"));
        assert!(actor_from(None, Some("7")).is_err());
        assert!(actor_from(Some("coder-1"), Some("x")).is_err());
    }
}
