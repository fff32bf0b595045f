//! Ports and paths of this machine that sessions were refused, in one file each, for the screens: the log of a session names
//! them, and nobody reads every log.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use liza_core::model::{AgentId, Config, TaskId};
use liza_host::durable::{self, Open};
use liza_host::private;
use liza_host::worktrees::worktrees_folder;
use liza_sandbox::confine::has_logins;
use liza_sandbox::sys::confinement::REFUSED_PORT;
use liza_status::alarms::{Refused, RefusedPlace};

use crate::project::Project;
use crate::session::denied::refused_path;
use crate::session::plan::{holdout_folder, home};

const FOLDER: &str = "refused";

/// The beginning of the first line of a confined session's log.
const CONFINED: &[u8] = b"[liza: confinement ";

/// The most of one session; a program that looks everywhere is refused thousands of paths.
const PORTS_MAX: usize = 20;
const PATHS_MAX: usize = 3;

const PATH_MAX: usize = 200;

/// What a session needs there is installed by the person, and nothing there is for one project.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var",
    "/snap",
];

/// Keeps the ports and paths that the log of a session names, or that of a judged run, which has no agent.
pub(crate) fn record(project: &Project, agent: Option<AgentId>, task: Option<&TaskId>, log: &Path) {
    let config = project.state().ok().and_then(|state| state.board.config.ready().cloned());
    let closed = closed(project, &config.unwrap_or_default());
    for place in places_in(log, &closed).unwrap_or_default() {
        let refused = Refused { place, agent, task: task.cloned() };
        let (folder, name) = (project.folder().join(FOLDER), refused.place.to_string().replace('/', "+"));
        let write = || {
            private::create_folder(&folder)?;
            durable::replace_private_file(&folder.join(name), &serde_json::to_vec(&refused)?)
        };
        // Without it, the log still names the place.
        let _: io::Result<()> = write();
    }
}

/// Folders of which nobody is asked to open a part: Liza's own and the system's.
fn closed(project: &Project, config: &Config) -> Vec<PathBuf> {
    let own = [project.root().to_owned(), worktrees_folder(project.root())];
    own.into_iter().chain(holdout_folder(config)).chain(SYSTEM.iter().map(PathBuf::from)).collect()
}

fn places_in(log: &Path, closed: &[PathBuf]) -> io::Result<Vec<RefusedPlace>> {
    let (mut ports, mut paths) = (Vec::new(), Vec::new());
    let mut is_confined = false;
    for line in BufReader::new(durable::open(Open::Read, log)?).split(b'\n') {
        let line = line?;
        is_confined |= line.starts_with(CONFINED);
        let port = port_in(&line).filter(|port| ports.len() < PORTS_MAX && !ports.contains(port));
        ports.extend(port);
        let path = path_in(&line, closed).filter(|_| is_confined && paths.len() < PATHS_MAX);
        paths.extend(path.filter(|path| !paths.contains(path)));
    }
    let ports = ports.into_iter().map(RefusedPlace::Port);
    Ok(ports.chain(paths.into_iter().map(RefusedPlace::Path)).collect())
}

fn port_in(line: &[u8]) -> Option<u16> {
    str::from_utf8(line).ok()?.strip_prefix(REFUSED_PORT)?.split(' ').next()?.parse().ok()
}

/// The path that a line says was refused, if the person can be asked to open it. A session can write such a line about
/// anything, so no path of a login is kept.
fn path_in(line: &[u8], closed: &[PathBuf]) -> Option<String> {
    let text = refused_path(str::from_utf8(line).ok()?)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@ ".contains(c);
    let path = Path::new(text);
    let is_here =
        path.exists() || path.parent().is_some_and(|folder| folder.parent().is_some() && folder.exists());
    let is_open = path.components().all(|part| part.as_os_str() != "..")
        && !closed.iter().any(|folder| path.starts_with(folder) || folder.starts_with(path))
        && !has_logins(path, home().as_deref());
    (text.len() <= PATH_MAX && text.chars().all(is_plain) && is_here && is_open).then(|| text.to_owned())
}

pub(crate) fn refused_places(folder: &Path) -> Vec<Refused> {
    let entries = fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
    let read = |path: PathBuf| serde_json::from_slice(&durable::read_file(&path).ok()?).ok();
    let mut found: Vec<Refused> = entries.filter_map(|entry| read(entry.path())).collect();
    found.sort_by(|one, other| one.place.cmp(&other.place));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(found: &[RefusedPlace]) -> usize {
        found.iter().filter(|place| matches!(place, RefusedPlace::Port(_))).count()
    }

    /// Covers: RO-04
    #[test]
    fn each_port_that_a_log_names_is_kept_once() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let many: String = (1..40).map(|port| format!("{REFUSED_PORT}{port} of this machine]\n")).collect();
        fs::write(
            &log,
            format!(
                "{REFUSED_PORT}5432 of this machine]\nports\n{REFUSED_PORT}x]\n x {REFUSED_PORT}9 of]\n{REFUSED_PORT}5432 of]\n{many}"
            ),
        )
        .unwrap();
        let found = places_in(&log, &[]).unwrap();
        assert_eq!((ports(&found), &found[0]), (PORTS_MAX, &RefusedPlace::Port(5432)));
    }

    /// Covers: IS-03
    #[test]
    fn a_refused_path_is_kept_if_the_person_could_open_it() {
        let data = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let at = |name: &str| data.path().join(name).display().to_string();
        fs::write(at("model.bin"), "").unwrap();
        let (log, own) = (data.path().join("log"), data.path().join("own"));
        let write = |first: &str| {
            let lines = [
                format!("cat: {}: Permission denied", at("model.bin")),
                format!("cat: {}: No such file or directory", at("model.bin")),
                format!("touch: cannot touch '{}': Read-only file system", at("new")),
                format!("cat: {}: No such file or directory", at("never")),
                format!("cat: {}: Permission denied", at("own/x")),
                format!("cat: {}: Permission denied", at("a[b")),
                "cat: /etc/shadow: Permission denied".to_owned(),
                "cat: /: Permission denied".to_owned(),
            ];
            fs::write(&log, format!("{first}\n{}\n", lines.join("\n"))).unwrap();
        };
        write("[liza: confinement isolated; shared with you: nothing]");
        let closed: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).chain([own]).collect();
        let kept = [at("model.bin"), at("new")].map(RefusedPlace::Path);
        assert_eq!(places_in(&log, &closed).unwrap(), kept);
        write("no confinement");
        assert_eq!(places_in(&log, &closed).unwrap(), []);
    }
}
