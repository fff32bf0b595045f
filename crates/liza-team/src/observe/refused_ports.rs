//! Ports of this machine that sessions were refused, in one file each, for the screens: the log of a session names them,
//! and nobody reads every log.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use liza_core::model::{AgentId, TaskId};
use liza_host::durable::{self, Open};
use liza_host::private;
use liza_status::alarms::RefusedPort;

const FOLDER: &str = "refused-ports";

/// The beginning of the helper's note in the log.
const NOTE: &str = "[liza: refused: port ";

/// The most ports of one session.
const PORTS_MAX: usize = 20;

/// Keeps the ports that a session's log names.
pub(crate) fn record(folder: &Path, agent: AgentId, task: Option<&TaskId>, log: &Path) {
    for port in ports_in(log).unwrap_or_default() {
        let refused = RefusedPort { port, agent, task: task.cloned() };
        let write = || {
            private::create_folder(&folder.join(FOLDER))?;
            durable::replace_private_file(&file(folder, port), &serde_json::to_vec(&refused)?)
        };
        // Without it, the log still names the port.
        let _: io::Result<()> = write();
    }
}

fn ports_in(log: &Path) -> io::Result<Vec<u16>> {
    let mut ports = Vec::new();
    for line in BufReader::new(durable::open(Open::Read, log)?).split(b'\n') {
        let port = port_in(&line?);
        ports.extend(port.filter(|port| ports.len() < PORTS_MAX && !ports.contains(port)));
    }
    Ok(ports)
}

fn port_in(line: &[u8]) -> Option<u16> {
    let rest = str::from_utf8(line.strip_prefix(NOTE.as_bytes())?).ok()?;
    rest.split(' ').next()?.parse().ok()
}

pub(crate) fn refused_ports(folder: &Path) -> Vec<RefusedPort> {
    let entries = fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
    let read = |path: PathBuf| serde_json::from_slice(&durable::read_file(&path).ok()?).ok();
    let mut found: Vec<RefusedPort> = entries.filter_map(|entry| read(entry.path())).collect();
    found.sort_by_key(|refused| refused.port);
    found
}

fn file(folder: &Path, port: u16) -> PathBuf {
    folder.join(FOLDER).join(port.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-04
    #[test]
    fn each_port_that_a_log_names_is_kept_once() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let many: String = (1..40).map(|port| format!("{NOTE}{port} of this machine]\n")).collect();
        fs::write(
            &log,
            format!("{NOTE}5432 of this machine]\nports\n{NOTE}x]\n x {NOTE}9 of]\n{NOTE}5432 of]\n{many}"),
        )
        .unwrap();
        let task = "t1".parse().unwrap();
        record(place.path(), "coder-1".parse().unwrap(), Some(&task), &log);
        let found = refused_ports(place.path());
        assert_eq!(found.len(), PORTS_MAX);
        assert_eq!(
            found.last().unwrap(),
            &RefusedPort { port: 5432, agent: "coder-1".parse().unwrap(), task: Some(task) }
        );
    }
}
