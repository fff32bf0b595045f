//! Things that a hostile session would like to have: secrets, services, programs that wait to be run outside.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;

use crate::fixture::Bench;
use crate::support::process::wait_for;

/// A program that notes where it runs: in a session it does nothing.
const EVIL: &str = r#"#!/bin/sh
[ -n "$LIZA_CHANNEL" ] || echo "$*" >> "$HOME/ran-outside-$1"
[ "$1" = attributes ] || exit 1
cat
"#;

/// Services whose sockets lie outside of every session. The helper judges the place of a socket, not what answers there, so
/// the test itself answers.
pub(crate) const SERVICES: [&str; 4] = ["tmux", "systemd", "docker", "ssh-agent"];

/// A project with things that a session would like to have.
pub(crate) fn bait(config: &str, scripts: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(config, scripts);
    let home = bench.home().to_owned();
    for (file, text) in [
        (".ssh/id_ed25519", "key"),
        ("yours", "text"),
        ("hidden/run", "exit 0"),
        ("src/other/.liza/clients/login", "key"),
        (".claude/settings.json", "{}"),
        (".claude/.credentials.json", "{}"),
        (".npm/_cacache/yours", ""),
        (".cache/pip/yours", ""),
        (".cache/go-build/yours", ""),
        ("go/pkg/mod/yours", ""),
        (".cargo/registry/src/host/package-1.0.0/build.rs", "fn main() {}"),
        (".cargo/.package-cache", ""),
        (".bash_history", "secret"),
        (".bashrc", ""),
        (".netrc", "secret"),
        (".aws/credentials", "secret"),
        (".config/autostart/yours.desktop", ""),
        (".local/bin/tool", ""),
        ("evil", EVIL),
    ] {
        fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
        fs::write(home.join(file), text).unwrap();
    }
    fs::set_permissions(home.join("evil"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(bench.project.root.join("target")).unwrap();
    bench.project.git_at(&home, &["init", "-q", "secret"]);
    fs::write(home.join("secret/key"), "the secret\n").unwrap();
    bench.project.git_at(&home.join("secret"), &["add", "key"]);
    bench.project.add_task("t1");
    bench.project.add_task("t2");
    bench
}

/// Opens the sockets of services in `~/run`. Each answers in the words that `git credential-cache` understands.
pub(crate) fn open_services(bench: &Bench) {
    let folder = bench.home().join("run");
    fs::create_dir(&folder).unwrap();
    for name in SERVICES {
        let listener = UnixListener::bind(folder.join(name)).unwrap();
        thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let _ = client.read_to_end(&mut Vec::new());
                let _ = client.write_all(b"username=u\npassword=secret\n");
            }
        });
    }
}

/// A file that sessions may read: the number or name of something that is not theirs.
fn known(bench: &Bench, name: &str) -> PathBuf {
    let folder = bench.project.root.join("known");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// A terminal of the person's, what other programs of the person's share by numbers, and a server; files in `known` say which.
pub(crate) struct OpenThings {
    _terminal: rustix::fd::OwnedFd,
    memory: String,
    queue: String,
}

impl OpenThings {
    pub(crate) fn make(bench: &Bench) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).and_then(|()| unlockpt(&terminal)).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        fs::write(known(bench, "terminal"), name.to_bytes()).unwrap();
        let make = |option: &str, amount: &[&str], file: &str| {
            let run = bench.project.run(bench.project.command("ipcmk").arg(option).args(amount));
            let number = run.stdout.rsplit(' ').next().unwrap().trim().to_owned();
            fs::write(known(bench, file), &number).unwrap();
            number
        };
        Self { _terminal: terminal, memory: make("-M", &["64"], "memory"), queue: make("-Q", &[], "queue") }
    }
}

impl Drop for OpenThings {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ipcrm").args(["-m", &self.memory, "-q", &self.queue]).status();
    }
}

#[cfg(target_os = "linux")]
fn abstract_socket(name: &str) -> Option<UnixListener> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::SocketAddr;
    Some(UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap())
}

/// Other systems have no such names.
#[cfg(not(target_os = "linux"))]
fn abstract_socket(_: &str) -> Option<UnixListener> {
    None
}

/// A server of the person's, a socket with an abstract name, and a port whose server restarts while the session runs: it answers nothing itself.
pub(crate) struct Servers {
    restarting: u16,
    _server: TcpListener,
    _named: Option<UnixListener>,
}

impl Servers {
    pub(crate) fn start(bench: &Bench) -> Self {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = |server: &TcpListener| server.local_addr().unwrap().port();
        let restarting = port(&TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        fs::write(known(bench, "server"), port(&server).to_string()).unwrap();
        fs::write(known(bench, "restarting"), restarting.to_string()).unwrap();
        let name = format!("liza-yours-{restarting}-{}", std::process::id());
        fs::write(known(bench, "named"), &name).unwrap();
        Self { restarting, _server: server, _named: abstract_socket(&name) }
    }

    /// Asks the restarting one as the person's programs do, until the session does not answer any more.
    pub(crate) fn ask(&self, bench: &Bench) {
        wait_for("the session listens", || bench.tree("t1").join("listens").exists().then_some(()));
        if TcpStream::connect((Ipv4Addr::LOCALHOST, self.restarting)).is_ok() {
            fs::write(bench.home().join("answered"), "").unwrap();
        }
        fs::write(known(bench, "asked"), "").unwrap();
    }
}

/// A service of the person's: git's cache of passwords. Ends when the folder of its socket is removed, or by `exit`.
pub(crate) struct PasswordService(PathBuf);

impl PasswordService {
    pub(crate) fn start(bench: &Bench) -> Self {
        let socket = bench.home().join("service/socket");
        let service = Self(socket.clone());
        let word = "protocol=https\nhost=yours\nusername=u\npassword=secret\n\n";
        service.call(bench, "store", word);
        wait_for("the service answers", || socket.exists().then_some(()));
        assert!(service.call(bench, "get", "protocol=https\nhost=yours\n\n").contains("secret"));
        service
    }

    pub(crate) fn call(&self, bench: &Bench, verb: &str, input: &str) -> String {
        let option = format!("--socket={}", self.0.display());
        let mut git = bench.project.command("git");
        git.args(["credential-cache", &option, verb]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = git.stderr(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }
}
