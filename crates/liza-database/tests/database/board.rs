//! A blackboard in either store, and requests to it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use liza_core::model::{Actor, Generation, LogEntry, State, StopFile, StopFiles, TaskId, Timestamp};
use liza_core::protocol::{ClaimTask, Command, Register, ReserveTask};
use liza_store::{Address, Call, Host, Outcome, Store, StoreError};

use crate::server::Server;
use crate::support::{add_task, agent, first_entry, fresh_state};

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Database,
}

/// A blackboard.
pub(crate) struct TestBoard {
    pub(crate) root: PathBuf,
    /// The name of the project in the database.
    pub(crate) name: String,
}

impl TestBoard {
    /// A fresh blackboard; one in a database is in the shared server.
    pub(crate) fn new(kind: Kind, name: &str) -> Self {
        match kind {
            Kind::File => {
                let board = Self::folder(name);
                Store::create(&board.root, &fresh_state(), &first_entry()).unwrap();
                board
            }
            Kind::Database => Self::at(&Server::shared().address(), name),
        }
    }

    /// A fresh blackboard in the database at that address.
    pub(crate) fn at(address: &str, name: &str) -> Self {
        Self::with_state(address, name, &fresh_state())
    }

    /// The same with that state.
    pub(crate) fn with_state(address: &str, name: &str, state: &State) -> Self {
        let board = Self::folder(name);
        let address: Address = address.parse().unwrap();
        Store::create_in_database(&board.root, &address, &board.name, state, &first_entry()).unwrap();
        board
    }

    fn folder(name: &str) -> Self {
        liza_database::install();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let unique = format!("{name}-{pid}-{count}-{time}");
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&unique);
        std::fs::create_dir_all(root.join("specs")).unwrap();
        std::fs::write(root.join("specs/x.md"), "# x\n").unwrap();
        Self { root, name: unique }
    }

    /// The store, as another process would open it.
    pub(crate) fn store(&self) -> Store {
        Store::open(&self.root).unwrap()
    }

    /// The time by which this blackboard decides.
    pub(crate) fn now(&self) -> Timestamp {
        now()
    }

    /// Adds tasks that can be claimed.
    pub(crate) fn with_tasks(self, ids: &[&str]) -> Self {
        for id in ids {
            human(&self.store(), add_task(id)).unwrap();
        }
        self
    }

    /// SQL on the rows of this project: `PROJECT` means its number.
    pub(crate) fn sql(&self, sql: &str) -> Vec<String> {
        let project = format!("(SELECT id FROM liza.projects WHERE name = '{}')", self.name);
        Server::shared().sql(&sql.replace("PROJECT", &project))
    }
}

impl Drop for TestBoard {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// A command that was carried out.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) revision: u64,
    pub(crate) changed: bool,
}

/// The time of this machine.
pub(crate) fn now() -> Timestamp {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Timestamp::from_unix(i64::try_from(time).unwrap())
}

/// A host at the time of this machine.
pub(crate) struct RealHost;

impl Host for RealHost {
    fn now(&self) -> Timestamp {
        now()
    }

    fn stop_files(&self) -> StopFiles {
        StopFiles::default()
    }

    fn create_stop_files(&self, _: &[StopFile], _: Timestamp) -> std::io::Result<()> {
        Ok(())
    }

    fn masked(&self, text: &str) -> String {
        text.to_owned()
    }
}

pub(crate) fn call(actor: Actor, command: Command) -> Call<Command> {
    Call { actor, if_revision: None, command }
}

/// Submits a command; a refusal that is written counts as an error.
pub(crate) fn submit(store: &Store, actor: Actor, command: Command) -> Result<Done, StoreError> {
    let Outcome { answer, written } = store.submit(call(actor, command), &RealHost)?;
    answer?;
    Ok(Done { revision: written.revision.0, changed: written.changed })
}

/// Submits a command of the human.
pub(crate) fn human(store: &Store, command: Command) -> Result<Done, StoreError> {
    submit(store, Actor::Human, command)
}

/// Registers an agent, and returns its registration.
pub(crate) fn register(store: &Store, id: &str) -> Generation {
    let generation = store.new_generation();
    let (terminal, machine) = ("test".to_owned(), None);
    let command = Register { agent: agent(id), terminal, machine, proven_dead: None, generation };
    let call = Call { actor: Actor::Human, if_revision: None, command };
    store.submit(call, &RealHost).unwrap().answer.unwrap().generation
}

/// Claims a task, in the two steps that a claim has.
pub(crate) fn claim(
    store: &Store,
    id: &TaskId,
    coder: &str,
    generation: Generation,
) -> Result<Done, StoreError> {
    let actor = Actor::Supervisor(agent(coder), generation);
    let head = "a".repeat(40).parse().unwrap();
    submit(store, actor, Command::from(ReserveTask { task: id.clone(), coder: agent(coder), head }))?;
    std::fs::create_dir_all(store.root().join(".worktrees").join(id.as_str())).unwrap();
    submit(store, actor, Command::from(ClaimTask { task: id.clone(), coder: agent(coder) }))
}

pub(crate) fn entry(detail: &str) -> LogEntry {
    LogEntry { detail: detail.to_owned(), action: "edit".to_owned(), ..first_entry() }
}
