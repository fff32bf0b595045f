//! Places that sessions were refused: ports, sockets and paths of this machine, and hosts. The log of a session names them, and
//! nobody reads every log: so they are kept, in one file each, for the screens, and the session is told.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use liza_core::model::{AgentId, Config, TaskId};
use liza_host::durable::{self, Open};
use liza_host::model_proxy::ModelHost;
use liza_host::private;
use liza_host::worktrees::worktrees_folder;
use liza_sandbox::confine::{has_logins, rules_everything};
use liza_sandbox::sys::confinement::REFUSED;
use liza_status::alarms::{Refused, RefusedPlace};

use crate::project::Project;
use crate::session::denied::{is_write, refused_path};
use crate::session::plan::{holdout_folder, home};

const FOLDER: &str = "refused";

/// The beginning of the first line of a confined session's log.
const CONFINED: &[u8] = b"[liza: confinement ";

/// The most of each kind of one session; a program that looks everywhere is refused thousands of paths.
const PORTS_MAX: usize = 20;
const OTHERS_MAX: usize = 3;

const PATH_MAX: usize = 200;

/// What a session needs there is installed by the person, and nothing there is for one project.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var",
    "/snap",
];

/// Keeps the places that the log of a session names, or that of a judged run, which has no agent.
pub(crate) fn record(project: &Project, agent: Option<AgentId>, task: Option<&TaskId>, log: &Path) {
    let config = project.state().ok().and_then(|state| state.board.config.ready().cloned());
    let closed = closed(project, &config.unwrap_or_default());
    for place in LogReader::default().read_new(log, &closed).unwrap_or_default() {
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
pub(crate) fn closed(project: &Project, config: &Config) -> Vec<PathBuf> {
    let own = [project.root().to_owned(), worktrees_folder(project.root())];
    own.into_iter().chain(holdout_folder(config)).chain(SYSTEM.iter().map(PathBuf::from)).collect()
}

/// Gives a note about each place that a log names since the last call.
pub(crate) fn refusal_notes(
    log: Option<PathBuf>,
    closed: Vec<PathBuf>,
) -> impl Fn() -> Vec<String> + Send + Sync {
    let reader = Mutex::new(LogReader::default());
    move || {
        let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
        let found = log.as_ref().and_then(|log| reader.read_new(log, &closed).ok());
        found.unwrap_or_default().iter().map(note).collect()
    }
}

/// Names each host that a proxy refuses in the log of its session.
pub(crate) fn host_notes(log: Option<PathBuf>) -> impl Fn(&ModelHost) + Send + Sync {
    let noted = Mutex::new(BTreeSet::new());
    move |host| {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() < PORTS_MAX && noted.insert(host.clone()) {
            let log = log.as_ref().and_then(|log| durable::open(Open::Append, log).ok());
            let note = note(&RefusedPlace::Host(host.to_string()));
            // Without a log, its program has been told.
            let _ = log.map(|mut log| writeln!(log, "{note}"));
        }
    }
}

/// The place with the command of the person that opens it.
fn note(place: &RefusedPlace) -> String {
    let what = match place {
        RefusedPlace::Port(port) => {
            format!("port {port} of this machine is a service outside of the session")
        }
        RefusedPlace::Socket(path) => format!("socket {path} is a service outside of the session"),
        RefusedPlace::Read(path) | RefusedPlace::Write(path) => format!("{path} is outside of the workspace"),
        RefusedPlace::Host(host) => format!("host {host} is not one of the model"),
    };
    format!("{REFUSED}{what}; to open it: liza config {} '[{place}]']", place.setting())
}

/// Reads what a log says about refused places, each once.
#[derive(Debug, Default)]
struct LogReader {
    /// The length of what was read.
    at: u64,
    is_confined: bool,
    found: Vec<RefusedPlace>,
}

impl LogReader {
    /// The places in the whole lines since the last call.
    fn read_new(&mut self, log: &Path, closed: &[PathBuf]) -> io::Result<Vec<RefusedPlace>> {
        let mut file = durable::open(Open::Read, log)?;
        file.seek(SeekFrom::Start(self.at))?;
        let (mut lines, mut line, known) = (BufReader::new(file), Vec::new(), self.found.len());
        while lines.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            self.at += line.len() as u64;
            self.is_confined |= line.starts_with(CONFINED);
            self.add(&line, closed);
            line.clear();
        }
        Ok(self.found.split_at(known).1.to_vec())
    }

    fn add(&mut self, line: &[u8], closed: &[PathBuf]) {
        let Ok(text) = str::from_utf8(line) else { return };
        let path = || path_in(text, closed).filter(|_| self.is_confined);
        let Some(place) = noted_in(text).or_else(path) else { return };
        let is_same_kind = |known: &&RefusedPlace| discriminant(*known) == discriminant(&place);
        let most = if matches!(place, RefusedPlace::Port(_)) { PORTS_MAX } else { OTHERS_MAX };
        if !self.found.contains(&place) && self.found.iter().filter(is_same_kind).count() < most {
            self.found.push(place);
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-+@".contains(c)
}

/// The place of a note of Liza's, or of what a session wrote in its words.
fn noted_in(line: &str) -> Option<RefusedPlace> {
    let mut words = line.strip_prefix(REFUSED)?.split_whitespace();
    let (kind, name) = (words.next()?, words.next()?);
    match kind {
        "port" => name.parse().ok().map(RefusedPlace::Port),
        "socket" => {
            let path = Path::new(name);
            // It becomes a part of a command.
            let is_open = name.chars().all(is_plain)
                && path.exists()
                && !rules_everything(path)
                && !has_logins(path, home().as_deref());
            is_open.then(|| RefusedPlace::Socket(name.to_owned()))
        }
        "host" => name.parse().ok().map(|host: ModelHost| RefusedPlace::Host(host.to_string())),
        _ => None,
    }
}

/// The path that a line says was refused, if the person can be asked to open it. A session can write such a line about
/// anything, so no path of a login is kept.
fn path_in(line: &str, closed: &[PathBuf]) -> Option<RefusedPlace> {
    let text = refused_path(line)?;
    let path = Path::new(text);
    let is_here =
        path.exists() || path.parent().is_some_and(|folder| folder.parent().is_some() && folder.exists());
    let is_open = path.components().all(|part| part.as_os_str() != "..")
        && !closed.iter().any(|folder| path.starts_with(folder) || folder.starts_with(path))
        && !has_logins(path, home().as_deref());
    let is_asked =
        text.len() <= PATH_MAX && text.chars().all(|c| is_plain(c) || c == ' ') && is_here && is_open;
    let kind = if is_write(line, text) || !path.exists() { RefusedPlace::Write } else { RefusedPlace::Read };
    is_asked.then(|| kind(text.to_owned()))
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

    fn places_in(log: &Path, closed: &[PathBuf]) -> Vec<RefusedPlace> {
        LogReader::default().read_new(log, closed).unwrap()
    }

    /// Covers: RO-04, IS-06, IS-12
    #[test]
    fn each_noted_place_is_kept_once_and_only_so_many() {
        let place = tempfile::tempdir().unwrap();
        let (log, socket) = (place.path().join("log"), place.path().join("socket"));
        let list = place.path().join("a,socket");
        for socket in [&socket, &list] {
            fs::write(socket, "").unwrap();
        }
        let (socket, ssh) = (socket.display(), home().unwrap().join(".ssh"));
        let many: String = (1..40).map(|port| format!("{REFUSED}port {port} of this machine]\n")).collect();
        let text = format!(
            "{REFUSED}port 5432 of this machine]\nports\n{REFUSED}port x]\n x {REFUSED}port 9 of]\n{REFUSED}port 5432 of]\n\
             {REFUSED}socket {socket} is]\n{REFUSED}socket /run/docker.sock is]\n{REFUSED}socket {} is]\n\
             {REFUSED}host mirror.example:8443 is]\n{REFUSED}host a$b is]\n{REFUSED}socket {} is]\n{many}",
            ssh.display(),
            list.display()
        );
        fs::write(&log, text).unwrap();
        let found = places_in(&log, &[]);
        let first = [
            RefusedPlace::Port(5432),
            RefusedPlace::Socket(socket.to_string()),
            RefusedPlace::Host("mirror.example:8443".to_owned()),
        ];
        assert_eq!((found.len(), &found[..3]), (PORTS_MAX + 2, &first[..]));
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
        let kept = [RefusedPlace::Read(at("model.bin")), RefusedPlace::Write(at("new"))];
        assert_eq!(places_in(&log, &closed), kept);
        write("no confinement");
        assert_eq!(places_in(&log, &closed), []);
    }

    /// Covers: RO-04, IS-03
    #[test]
    fn a_session_is_told_of_each_refused_place_once() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        fs::write(place.path().join("file"), "").unwrap();
        let file = place.path().join("file").display().to_string();
        let untold = refusal_notes(Some(log.clone()), Vec::new());
        assert_eq!(untold(), [""; 0]);
        let (one, two) = (note(&RefusedPlace::Port(1)), note(&RefusedPlace::Port(2)));
        let path = format!("bash: {file}: Read-only file system");
        let begin = str::from_utf8(CONFINED).unwrap();
        fs::write(&log, format!("{begin}restricted]\n{one}\n{path}\n{}", &two[..20])).unwrap();
        assert_eq!(untold(), [one.clone(), note(&RefusedPlace::Write(file.clone()))]);
        fs::write(&log, format!("{begin}restricted]\n{one}\n{path}\n{two}\n{path}\nsaid {one}\n")).unwrap();
        assert_eq!((untold(), untold()), (vec![two], vec![]));
        assert!(note(&RefusedPlace::Write(file.clone())).ends_with(&format!("sandbox_writable '[{file}]']")));
    }
}
