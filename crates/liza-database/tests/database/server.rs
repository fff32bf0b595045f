//! PostgreSQL for tests: one server that all tests share, or one of its own for a test that breaks it.
//!
//! Installs nothing: `./check` does. Talks over Unix sockets in a temporary folder only. The shared server ends by itself
//! some seconds after the last test that uses it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// Settings that make a server quick; what they lose is only lost with the machine.
const QUICK: &str = "-c fsync=off -c full_page_writes=off -c shared_buffers=32MB -c max_connections=200";

/// A server.
pub(crate) struct Server {
    folder: PathBuf,
    /// Whether it is this test's own.
    own: bool,
}

/// The folder with PostgreSQL's programs.
fn programs() -> PathBuf {
    let configured = Command::new("pg_config").arg("--bindir").output().ok();
    let configured = configured.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders = installed.map(|entry| entry.path().join("bin")).chain(configured);
    folders.find(|folder| folder.join("initdb").exists()).expect("PostgreSQL is installed")
}

/// A program of PostgreSQL; as the account `postgres` if this is root, since it refuses root.
fn program(name: &str) -> Command {
    program_with(name, &[])
}

/// The same with further variables in its environment, which only the program itself gets.
fn program_with(name: &str, variables: &[(&str, String)]) -> Command {
    // A pooler is not among PostgreSQL's own programs.
    let path =
        Some(programs().join(name)).filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(name));
    let mut command = Command::new("env");
    if rustix::process::geteuid().is_root() {
        command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "env"]);
        // The account may not be able to read the folder of the tests.
        command.current_dir("/");
    }
    command.args(variables.iter().map(|(name, value)| format!("{name}={value}"))).arg(path);
    command
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("the program runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Server {
    /// The server that all tests share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<(Server, File)> = OnceLock::new();
        let (server, _) = SHARED.get_or_init(|| {
            let user = rustix::process::geteuid().as_raw();
            let folder = std::env::temp_dir().join(format!("liza-test-postgres-{user}"));
            // Held until this process ends.
            let users = open_lock(&folder.with_extension("users"));
            flock(&users, FlockOperation::LockShared).unwrap();
            let starting = open_lock(&folder.with_extension("lock"));
            flock(&starting, FlockOperation::LockExclusive).unwrap();
            let server = Server { folder, own: false };
            if !server.answers() {
                server.start_shared();
            }
            (server, users)
        });
        server
    }

    /// A server of this test's own, with further settings such as `-c commit_delay=5000`.
    pub(crate) fn own(settings: &str) -> Self {
        let server = Self::new_own();
        server.make();
        server.start(settings);
        server
    }

    fn new_own() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("liza-pg-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Server { folder: std::env::temp_dir().join(name), own: true }
    }

    /// A copy of another server that follows it and takes no writes until it is promoted.
    pub(crate) fn standby_of(primary: &Self) -> Self {
        let server = Self::new_own();
        server.make_folder();
        run(program("pg_basebackup")
            .args(["-U", "liza", "-X", "stream", "-R", "-c", "fast", "-h"])
            .arg(&primary.folder)
            .arg("-D")
            .arg(server.folder.join("data")));
        server.start("");
        server
    }

    /// Lets a copy take writes from now on.
    pub(crate) fn promote(&self) {
        run(program("pg_ctl").args(["-s", "-w", "-D"]).arg(self.folder.join("data")).arg("promote"));
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives a file to the account under which it runs.
    pub(crate) fn give(path: &Path) {
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg("-R").arg("postgres:").arg(path));
        }
    }

    /// A program of PostgreSQL or for it, under the same account.
    pub(crate) fn program_for(name: &str) -> Command {
        program(name)
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// The address of its database.
    pub(crate) fn address(&self) -> String {
        format!("postgres:///liza?host={}&user=liza", self.folder.display())
    }

    /// A connection for the test itself.
    pub(crate) fn connect(&self) -> Result<postgres::Client, postgres::Error> {
        postgres::Client::connect(&self.address(), postgres::NoTls)
    }

    /// Runs SQL of the test itself.
    pub(crate) fn sql(&self, sql: &str) -> Vec<String> {
        let mut client = self.connect().unwrap();
        let messages = client.simple_query(sql).unwrap();
        let row = |message: &postgres::SimpleQueryMessage| match message {
            postgres::SimpleQueryMessage::Row(row) => {
                let fields: Vec<&str> = (0..row.len()).map(|at| row.get(at).unwrap_or_default()).collect();
                Some(fields.join("|"))
            }
            postgres::SimpleQueryMessage::CommandComplete(_)
            | postgres::SimpleQueryMessage::RowDescription(_)
            | _ => None,
        };
        messages.iter().filter_map(row).collect()
    }

    /// Starts it (again) with these settings.
    pub(crate) fn start(&self, settings: &str) {
        self.start_with(settings, &[]);
    }

    /// The same with further variables in its environment.
    pub(crate) fn start_with(&self, settings: &str, variables: &[(&str, String)]) {
        let options = format!("{QUICK} {} {settings}", self.socket_options());
        let log = self.folder.join("log");
        run(program_with("pg_ctl", variables)
            .args(["-s", "-w", "-D"])
            .arg(self.folder.join("data"))
            .arg("-l")
            .arg(&log)
            .args(["-o", &options, "start"])
            .stdout(Stdio::null()));
        self.wait();
    }

    /// Stops it: `fast`, or `immediate` as a crash would.
    pub(crate) fn stop(&self, mode: &str) {
        let mut command = program("pg_ctl");
        run(command.args(["-s", "-w", "-m", mode, "-D"]).arg(self.folder.join("data")).arg("stop"));
    }

    fn socket_options(&self) -> String {
        format!("-c listen_addresses= -c unix_socket_directories={}", self.folder.display())
    }

    fn answers(&self) -> bool {
        self.folder.join(".s.PGSQL.5432").exists() && self.connect().is_ok()
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.answers() {
            assert!(Instant::now() < deadline, "PostgreSQL does not start: {}", self.log());
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Makes its folder and an empty database.
    fn make(&self) {
        self.make_folder();
        run(program("initdb")
            .args(["--no-sync", "--no-locale", "-E", "UTF8", "-A", "trust", "-U", "liza", "-D"])
            .arg(self.folder.join("data")));
        let create = self.folder.join("create.sql");
        fs::write(&create, "CREATE DATABASE liza;\n").unwrap();
        let mut single = program("postgres");
        single.args(["--single", "-F", "-j", "-D"]).arg(self.folder.join("data")).arg("postgres");
        let input = File::open(&create).unwrap();
        let output = single.stdin(input).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn make_folder(&self) {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).unwrap();
        Self::give(&self.folder);
    }

    /// Starts it with a watcher that ends it when no test uses it any more.
    fn start_shared(&self) {
        self.make();
        // Stops only under the lock that starting takes, if there is still no user.
        let watcher = "\"$@\" 9>&- & server=$!; idle=0; \
            while kill -0 $server; do sleep 1; \
            if flock -x -n \"$USERS\" true; then idle=$((idle + 1)); else idle=0; fi; \
            if [ $idle -ge 10 ] && flock 9; then \
            if flock -x -n \"$USERS\" true; then kill -INT $server; wait $server; rm -rf \"$FOLDER\"; exit; fi; \
            flock -u 9; idle=0; fi; done 9>\"$STARTING\"";
        let server = program("postgres");
        let options = format!("{QUICK} {}", self.socket_options());
        let mut command = Command::new("setsid");
        command.args(["--fork", "sh", "-c", watcher, "sh"]).arg(server.get_program()).args(server.get_args());
        command.arg("-D").arg(self.folder.join("data")).args(options.split(' '));
        command.env("USERS", self.folder.with_extension("users")).env("FOLDER", &self.folder);
        command.env("STARTING", self.folder.with_extension("lock"));
        let log = File::create(self.folder.join("log")).unwrap();
        let errors = log.try_clone().unwrap();
        assert!(
            command
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(log)
                .stderr(errors)
                .status()
                .unwrap()
                .success()
        );
        self.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.own {
            let mut command = program("pg_ctl");
            let data = self.folder.join("data");
            let _ = command.args(["-s", "-w", "-m", "immediate", "-D"]).arg(data).arg("stop").output();
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The variables that set a program's clock to another time, such as `+10m`. Waiting is not affected.
pub(crate) fn clock_at(offset: &str) -> Vec<(&'static str, String)> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    let library = files.find(|file| file.exists()).expect("libfaketime is installed");
    vec![
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", offset.to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
    ]
}

fn open_lock(path: &Path) -> File {
    File::options().create(true).truncate(false).write(true).open(path).unwrap()
}
