//! The name of this machine in a project. Several machines may work on one project; each has its own clone.
//! Local facts, such as held locks and the files of a worktree, say nothing about agents of another machine.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::Path;

use liza_core::model::{AgentId, AgentRecord, Board, Refusal, TaskId};
use liza_host::durable;
use liza_host::private;

use super::Project;

/// Distinguishes two clones on hosts of the same name, below `.liza`.
const FILE: &str = "machine";

/// The host's name, and a word that only this clone has.
pub fn machine_name(liza: &Path) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    match own_word(liza) {
        Some(word) => format!("{host}-{word}"),
        None => host,
    }
}

/// The random word alone, for what can be published.
pub fn machine_word(liza: &Path) -> String {
    own_word(liza).unwrap_or_else(|| "unknown".to_owned())
}

fn own_word(liza: &Path) -> Option<String> {
    let path = liza.join(FILE);
    read_word(&path).or_else(|| {
        let _ = make_word(&path);
        read_word(&path)
    })
}

fn read_word(path: &Path) -> Option<String> {
    let word = durable::read_text(path).ok()?.trim().to_owned();
    (!word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric())).then_some(word)
}

/// Makes the file with its content in one step: a process that saw it empty would take itself for another
/// machine. If another process is faster, its word counts.
fn make_word(path: &Path) -> io::Result<()> {
    let random = RandomState::new().hash_one(std::process::id());
    let new = path.with_extension(format!("{random:016x}"));
    private::create_new(&new)?.write_all(format!("{:08x}\n", random & 0xffff_ffff).as_bytes())?;
    let placed = match fs::hard_link(&new, path) {
        // Left empty by an older version that was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && read_word(path).is_none() => {
            fs::rename(&new, path)
        }
        // Without hard links, as on some network drives: not in one step, but seldom done.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !path.exists() => {
            fs::rename(&new, path)
        }
        placed => placed,
    };
    let _ = fs::remove_file(&new);
    placed
}

/// True if an agent's supervisor runs, or ran, on this machine. Entries of older versions don't say.
pub fn runs_here(liza: &Path, entry: &AgentRecord) -> bool {
    entry.machine.as_ref().is_none_or(|machine| *machine == machine_name(liza))
}

/// True if the agent with that name runs here; an unregistered one may run anywhere.
pub(crate) fn is_agent_here(liza: &Path, board: &Board, agent: AgentId) -> bool {
    let entry = board.agents.ready().and_then(|agents| agents.get(&agent));
    entry.is_some_and(|entry| runs_here(liza, entry))
}

/// Refuses to prepare work here for an agent of another machine.
pub(crate) fn refuse_other_machine(project: &Project, board: &Board, agent: AgentId) -> Result<(), Refusal> {
    let entry = board.agents.ready().and_then(|agents| agents.get(&agent));
    let elsewhere =
        |entry: &&AgentRecord| project.store().is_in_database() && !runs_here(project.folder(), entry);
    match entry.filter(elsewhere).and_then(|entry| entry.machine.clone()) {
        Some(machine) => Err(Refusal::OtherMachine { agent, machine }),
        None => Ok(()),
    }
}

/// True if the worktree of a task belongs on this machine; always without a remote.
pub fn works_here(liza: &Path, board: &Board, task: &TaskId) -> bool {
    if board.config.ready().is_none_or(|config| config.remote.is_none()) {
        return true;
    }
    let coder = board.body(task).ok().and_then(|body| body.record().assigned_to);
    coder.is_some_and(|coder| is_agent_here(liza, board, coder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: MM-11
    #[test]
    fn two_clones_on_one_host_are_two_machines() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = machine_name(one.path());
        assert_eq!(machine_name(one.path()), name, "it stays");
        assert_ne!(machine_name(other.path()), name);
        let entry = |machine: Option<&str>| {
            let entry = serde_json::json!({"role": "coder", "status": "IDLE", "machine": machine});
            serde_json::from_value::<AgentRecord>(entry).unwrap()
        };
        assert!(runs_here(one.path(), &entry(Some(&name))) && runs_here(one.path(), &entry(None)));
        assert!(!runs_here(other.path(), &entry(Some(&name))));
    }

    /// Covers: MM-11, AG-07
    #[test]
    fn processes_that_start_at_the_same_time_are_one_machine() {
        for left in [None, Some("")] {
            for _ in 0..20 {
                let folder = tempfile::tempdir().unwrap();
                if let Some(text) = left {
                    fs::write(folder.path().join(FILE), text).unwrap();
                }
                let begin = std::sync::Barrier::new(8);
                let names: Vec<String> = std::thread::scope(|scope| {
                    let name = || {
                        begin.wait();
                        machine_name(folder.path())
                    };
                    let running: Vec<_> = (0..8).map(|_| scope.spawn(name)).collect();
                    running.into_iter().map(|thread| thread.join().unwrap()).collect()
                });
                let word = read_word(&folder.path().join(FILE)).unwrap();
                assert!(left.is_some() || names.iter().all(|name| name.ends_with(&word)), "{names:?} {word}");
                let is_word = |name: &String| name.rsplit('-').next().is_some_and(|word| word.len() == 8);
                assert!(names.iter().all(is_word), "{names:?}");
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
            }
        }
    }
}
