//! Rooms on a real kernel: what a program finds in one, and that nothing of it is left.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use liza_sandbox::confine::{Placed, Plan, StageInput, StageOrder};
use liza_sandbox::sys::confinement::Grants;

use crate::support::process::wait_for;

/// Marks the processes of one test.
pub(crate) const MARK: &str = "LIZA_ROOM_TEST";

/// The keeper of a program in a room, as `config.setup` and integration tests have one.
pub(crate) struct Keeper {
    pub process: Child,
    socket: UnixStream,
}

impl Keeper {
    /// Sends its order to a new keeper and does not wait.
    pub(crate) fn order(
        command: Command,
        place: &Path,
        script: &str,
        output: Stdio,
        services: &[u16],
    ) -> Self {
        Self::order_with(command, place, place, (&[], services, StageInput::Nothing), script, output)
    }

    /// The same with an input, in a folder where something may be placed.
    pub(crate) fn order_with(
        mut command: Command,
        place: &Path,
        directory: &Path,
        (placed, services, input): (&[Placed], &[u16], StageInput),
        script: &str,
        output: Stdio,
    ) -> Self {
        let (mut socket, theirs) = UnixStream::pair().unwrap();
        command.current_dir(place).env_clear().env("PATH", "/usr/bin:/bin").env(MARK, place);
        let process = command.stdin(OwnedFd::from(theirs)).stdout(output).spawn().unwrap();
        let plan = Plan { placed: placed.to_owned(), ..plan(place, services) };
        let order =
            StageOrder { plan, directory: Some(directory.to_owned()), input, ..order_of(place, script) };
        // A keeper that was killed does not read it.
        let _ = writeln!(socket, "{}", serde_json::to_string(&order).unwrap());
        Self { process, socket }
    }

    pub(crate) fn of_liza(place: &Path, script: &str, output: Stdio) -> Self {
        Self::order(keeper_of_liza(), place, script, output, &[])
    }

    /// Waits until the program runs.
    pub(crate) fn started(&mut self) {
        assert_eq!(self.answer(), "\n", "no room here");
    }

    /// An empty line if the program runs, the reason if it does not, and nothing if the keeper has ended.
    pub(crate) fn answer(&self) -> String {
        let mut answer = String::new();
        let read = BufReader::new(&self.socket).read_line(&mut answer);
        assert!(read.is_ok() || answer.is_empty(), "{read:?}");
        answer
    }

    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The plan of a session that writes to this place.
fn plan(place: &Path, services: &[u16]) -> Plan {
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let grants = Grants {
        read: paths(&["/usr", "/bin", "/lib", "/lib64", "/proc"]).into_iter().chain(settings()).collect(),
        write: vec![place.to_owned(), "/dev/shm".into()],
        devices: paths(&["/dev/null", "/dev/zero", "/dev/ptmx"]),
        services: services.to_vec(),
        ..Grants::default()
    };
    Plan { grants, ..Plan::default() }
}

/// The order for a script that runs in a room or not at all.
pub(crate) fn order_of(place: &Path, script: &str) -> StageOrder {
    StageOrder {
        plan: plan(place, &[]),
        minimum: Some(liza_ids::SandboxMin::Isolated),
        program: Some("/bin/sh".into()),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        directory: Some(place.to_owned()),
        ..StageOrder::default()
    }
}

/// The settings of this machine entry by entry, as a plan grants them, without the passwords.
fn settings() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/etc").unwrap().map(Result::unwrap);
    let files =
        entries.filter(|entry| !entry.file_type().unwrap().is_symlink() && entry.file_name() != "shadow");
    files.map(|entry| entry.path())
}

pub(crate) fn keeper_of_liza() -> Command {
    let mut liza = Command::new(env!("CARGO_BIN_EXE_liza"));
    liza.args(["confine", "--keep"]);
    liza
}

/// The processes of a test that still run.
pub(crate) fn left(place: &Path) -> usize {
    let mark = format!("{MARK}={}", place.display());
    let is_marked = |process: &fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(is_marked).count()
}

/// Not below `/tmp`, which would then not be the room's own.
pub(crate) fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

/// Runs a script in a room where something is placed, and returns its output with the errors.
pub(crate) fn said_with(place: &Path, directory: &Path, placed: &[Placed], script: &str) -> String {
    let output = place.join("output");
    let file = File::create(&output).unwrap();
    let script = format!("exec 2>&1; {script}");
    let more = (placed, &[][..], StageInput::Nothing);
    let mut keeper = Keeper::order_with(keeper_of_liza(), place, directory, more, &script, file.into());
    keeper.started();
    keeper.process.wait().unwrap();
    fs::read_to_string(output).unwrap()
}

/// Runs a script in a room and returns its output.
fn said(place: &Path, script: &str) -> String {
    let output = place.join("output");
    let mut keeper = Keeper::of_liza(place, script, File::create(&output).unwrap().into());
    keeper.started();
    keeper.process.wait().unwrap();
    fs::read_to_string(output).unwrap()
}

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn all_processes_of_a_room_end_at_once() {
    let count = if std::env::var_os("LIZA_FULL").is_some() { 2000 } else { 300 };
    let folder = place();
    let script =
        format!("i=0; while [ $i -lt {count} ]; do setsid sleep 1000 & i=$((i + 1)); done; : > up; wait");
    let mut keeper = Keeper::of_liza(folder.path(), &script, Stdio::null());
    keeper.started();
    wait_for("all run", || (folder.path().join("up").exists() && left(folder.path()) > count).then_some(()));
    let killed = Instant::now();
    keeper.kill();
    wait_for("nothing is left", || (left(folder.path()) == 0).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
}

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn what_is_not_granted_among_the_settings_of_the_machine_is_covered() {
    let size = |file: &str| fs::metadata(file).unwrap().len();
    assert!(size("/etc/passwd") > 0 && size("/etc/shadow") > 0);
    // Landlock refuses to read, and does not see who asks for a size.
    let script = "for file in passwd shadow; do test -s /etc/$file && echo $file; done; cat /etc/shadow; mount | grep -c ' /etc'";
    let said = said(place().path(), script);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "passwd", "{said}");
    // The folder, the name servers, and one or two covers: not one for each file.
    let mounts: usize = lines.last().unwrap().parse().unwrap();
    assert!(lines.len() == 2 && mounts < 10, "{said}");
}

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn temporary_files_shared_memory_and_processes_are_the_rooms_own() {
    let (folder, yours) = (place(), format!("liza-yours-{}", std::process::id()));
    let [shared, temporary] = ["/dev/shm", "/tmp"].map(|at| Path::new(at).join(&yours));
    fs::write(&shared, "yours").unwrap();
    fs::write(&temporary, "yours").unwrap();
    let memory = Command::new("ipcmk").args(["-M", "64"]).output().unwrap();
    let script = format!(
        r#"cat /tmp/{yours} /dev/shm/{yours} 2> /dev/null && echo READ
echo x > /tmp/room-{yours} && echo x > /dev/shm/room-{yours} && echo OWN
echo "memory $(wc -l < /proc/sysvipc/shm)"
ipcmk -S 1 > /dev/null && echo SEMAPHORES
unshare -Ur true 2> /dev/null && echo NAMESPACE
for file in environ mem maps fd/0 root/etc; do cat /proc/1/$file > /dev/null 2>&1 && echo "TRACED $file"; done
kill -9 1 2> /dev/null; ls /proc | grep -c '^[0-9]' | sed 's/^/processes /'
chmod 700 /etc 2> /dev/null && echo MODE
ls / > /dev/null 2>&1 && echo LISTED
(ulimit -c 0; kill -TERM $$)"#
    );
    let said = said(folder.path(), &script);
    let number = String::from_utf8(memory.stdout).unwrap();
    Command::new("ipcrm").args(["-m", number.trim().rsplit(' ').next().unwrap()]).status().unwrap();
    let _ = (fs::remove_file(&shared), fs::remove_file(&temporary));
    let made = ["/tmp", "/dev/shm"].map(|at| Path::new(at).join(format!("room-{yours}")).exists());
    assert_eq!(made, [false; 2], "{said}");
    let lines: Vec<&str> = said.lines().collect();
    // Process 1, the shell, and those of the pipe.
    assert_eq!(lines[..3], ["OWN", "memory 1", "SEMAPHORES"], "{said}");
    assert!(lines[3].starts_with("processes ") && lines[3].len() == "processes n".len(), "{said}");
    assert_eq!(lines.len(), 4, "{said}");
}

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn a_prompt_on_standard_input_is_a_copy_and_leads_to_no_file_outside() {
    let (folder, outside) = (place(), place());
    let prompt = outside.path().join("prompt");
    fs::write(&prompt, "word ".repeat(1 << 20)).unwrap();
    let facts = || fs::metadata(&prompt).map(|meta| (meta.mode(), meta.mtime())).unwrap();
    let before = facts();
    // While it holds the lock, it waits.
    let script = r#"{ wc -c; wc -c < /dev/stdin
perl -e 'chmod 0777, *STDIN; utime 1, 1, *STDIN; flock STDIN, 2; open F, ">", "tried"; close F; select undef, undef, undef, 0.02 until -e "go"'
} > said 2>&1"#;
    let more = (&[][..], &[][..], StageInput::File(prompt.clone()));
    let mut keeper =
        Keeper::order_with(keeper_of_liza(), folder.path(), folder.path(), more, script, Stdio::null());
    keeper.started();
    wait_for("it has tried", || folder.path().join("tried").exists().then_some(()));
    File::open(&prompt).unwrap().try_lock().unwrap();
    assert_eq!(facts(), before);
    fs::write(folder.path().join("go"), "").unwrap();
    keeper.process.wait().unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("said")).unwrap(), "5242880\n5242880\n");
}

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn a_room_takes_only_a_part_of_the_persons_watches_on_files() {
    let folder = place();
    let script = r#"perl -e '$call = `uname -m` =~ /x86_64/ ? 294 : 26; $taken++ while syscall($call, 0) >= 0; print "$taken\n"'
cat /proc/sys/user/max_inotify_watches"#;
    let said = said(folder.path(), script);
    let taken: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
    let yours = |name: &str| -> u64 {
        let limit = fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(name)).unwrap();
        limit.trim().parse().unwrap()
    };
    assert!(taken[0] > 0 && taken[0] <= yours("max_user_instances") / 4, "{said}");
    assert!(taken[1] <= yours("max_user_watches") / 4, "{said}");
}

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn needs_tmux_a_program_in_a_room_has_terminals_of_its_own() {
    let folder = place();
    // The server's socket is in the room's own `/tmp`, not beside that of the person's server.
    let script = r#"export LANG=C.UTF-8 SHELL=/bin/sh TERM=xterm HOME="$PWD"
tmux -f /dev/null new-session -d -x 60 -y 10
tmux send-keys 'tty; test -t 0 && echo $((6 * 7)) of them' Enter
for look in $(seq 1000); do tmux capture-pane -p | grep '^42 of them' && break; sleep 0.02; done
tmux capture-pane -p | grep -o '^/dev/pts/[0-9]*'
tmux kill-server"#;
    assert_eq!(said_with(folder.path(), folder.path(), &[], script), "42 of them\n/dev/pts/0\n");
}

/// Fills the queue of a listener: of all that then wait, some are refused. Says when they were.
const MANY_WAIT: &str = r#"
use IO::Socket::UNIX; use Socket;
my $full = IO::Socket::UNIX->new(Local => "full", Listen => 1) or die;
for (1 .. 400) {
  next if fork;
  socket my $waits, AF_UNIX, SOCK_STREAM, 0 or die;
  connect $waits, pack_sockaddr_un("full") or exit;
  sleep 1000;
}
for (1 .. 40) { wait }
open my $said, ">", "refused"; close $said;
sleep 1000;
"#;

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn connects_that_wait_take_only_so_many_threads_outside_of_the_room() {
    let folder = place();
    fs::write(folder.path().join("many.pl"), MANY_WAIT).unwrap();
    let mut keeper = Keeper::of_liza(folder.path(), "exec perl many.pl", Stdio::null());
    keeper.started();
    wait_for("some are refused", || folder.path().join("refused").exists().then_some(()));
    let threads = fs::read_dir(format!("/proc/{}/task", keeper.process.id())).unwrap().count();
    assert!((300..350).contains(&threads), "{threads}");
    keeper.kill();
    wait_for("nothing is left", || (left(folder.path()) == 0).then_some(()));
}

/// Covers: RO-07
#[test]
#[cfg(target_os = "linux")]
fn needs_unshare_a_mount_that_is_made_later_does_not_appear_in_a_room() {
    let folder = place();
    fs::create_dir(folder.path().join("later")).unwrap();
    // The person's mounts are shared, as systemd makes them.
    let outside = format!(
        r#""{liza}" confine --keep & while [ ! -e up ]; do sleep 0.01; done
mount -t tmpfs later "$PWD/later" && : > later/file && : > go; wait"#,
        liza = env!("CARGO_BIN_EXE_liza")
    );
    let mut command = Command::new("unshare");
    command.args([
        "-Urm",
        "--propagation",
        "shared",
        "sh",
        "-c",
        &format!("exec 3<&0; {}", outside.replace(" & ", " <&3 & ")),
    ]);
    let inside = ": > up; while [ ! -e go ]; do sleep 0.01; done; if [ -e later/file ]; then echo seen; else echo hidden; fi > result";
    let mut keeper = Keeper::order(command, folder.path(), inside, Stdio::null(), &[]);
    keeper.started();
    keeper.process.wait().unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("result")).unwrap(), "hidden\n");
}

/// A server outside that says its name; its port.
fn yours() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (serves, port) = (listener.try_clone().unwrap(), listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for mut client in serves.incoming().map_while(Result::ok) {
            let _ = client.write_all(b"yours\n");
        }
    });
    (listener, port)
}

/// Answers for services of the person: at the ports of the arguments, on every address of this machine.
const ANSWERS: &str = r#"
use IO::Socket::IP; use IO::Select;
my @all = map { my $port = $_; map {
  IO::Socket::IP->new(Listen => 9, LocalHost => $_, LocalPort => $port, ReuseAddr => 1, V6Only => 1) // die "$_ $port $@"
} "127.0.0.1", "::1", "127.0.0.2" } @ARGV;
open my $up, ">", "up"; close $up;
my $ready = IO::Select->new(@all);
while (1) { for my $one ($ready->can_read) { my $client = $one->accept; print $client "hostile\n"; close $client } }
"#;

/// Says the first line of who answers at each port.
const ASKS: &str = r#"
ask() { for port in "$@"; do echo "$port $(bash -c "exec 3<> /dev/tcp/$host/$port && head -n 1 <&3" 2> /dev/null)"; done; }
"#;

/// Covers: RO-04
#[test]
#[cfg(target_os = "linux")]
fn no_session_answers_for_a_service_of_the_person_or_of_another_session() {
    let folder = place();
    let (listener, listed) = yours();
    // A service that restarts: its port is free at the moment.
    let restarts = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    fs::write(folder.path().join("answers.pl"), ANSWERS).unwrap();
    // The hostile session has the model's port and that of the service, in its own network.
    let script = format!(
        "{ASKS} perl answers.pl {listed} {restarts} & while [ ! -e up ]; do sleep 0.01; done
for host in 127.0.0.1 ::1; do ask {listed} {restarts}; done > inside; : > asked; while [ ! -e go ]; do sleep 0.01; done"
    );
    let mut hostile = Keeper::order(keeper_of_liza(), folder.path(), &script, Stdio::null(), &[listed]);
    hostile.started();
    wait_for("it listens", || folder.path().join("asked").exists().then_some(()));
    let inside = fs::read_to_string(folder.path().join("inside")).unwrap();
    // Even there, the person's service answers at a listed port; it does not listen at the other address.
    let expected = format!("{listed} yours\n{restarts} hostile\n{listed} \n{restarts} hostile\n");
    assert_eq!(inside, expected);
    for address in ["127.0.0.1", "::1", "127.0.0.2"] {
        let reached = TcpStream::connect((address, restarts)).map_err(|error| error.kind());
        assert_eq!(reached.err(), Some(ErrorKind::ConnectionRefused), "{address}");
    }
    let other = place();
    let script = format!("{ASKS} host=127.0.0.1; ask {listed} {restarts} > said");
    let mut asks = Keeper::order(keeper_of_liza(), other.path(), &script, Stdio::null(), &[listed]);
    asks.started();
    asks.process.wait().unwrap();
    let said = fs::read_to_string(other.path().join("said")).unwrap();
    assert_eq!(said, format!("{listed} yours\n{restarts} \n"));
    // It restarts: the port is its own.
    TcpListener::bind((Ipv4Addr::LOCALHOST, restarts)).unwrap();
    drop(listener);
    hostile.kill();
}
