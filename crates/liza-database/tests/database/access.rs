//! The ways to a database: passwords, TLS, a pooler. Each with a real server, by a process with its own environment.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use liza_store::{Address, Store, ValueSyntax};

use crate::board::{TestBoard, claim, entry, human, now, register};
use crate::contract::worker;
use crate::faults::HangingCommits;
use crate::server::Server;
use crate::support::{add_task, note, task, wait_until};

const PASSWORD: &str = "a-long-secret-word";

/// What a process says that joins the blackboard from another folder, with these variables.
fn join(board: &TestBoard, address: &str, variables: &[(&str, &str)]) -> String {
    let _ = fs::remove_dir_all(board.root.join("other"));
    let mut process = worker(board, &format!("join {address} {}", board.name));
    for name in ["LIZA_STORE_URL", "PGPASSFILE", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        process.env_remove(name);
    }
    let output = process.env("HOME", &board.root).envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains(PASSWORD), "{said}");
    said
}

/// Replaces who may connect how.
fn set_access(server: &Server, rules: &str) {
    fs::write(server.folder().join("data/pg_hba.conf"), rules).unwrap();
    server.sql("SELECT pg_reload_conf()");
}

/// Covers: MM-01
#[test]
fn needs_postgres_a_password_comes_from_the_variable_or_a_private_file() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "password");
    server.sql(&format!("ALTER USER liza PASSWORD '{PASSWORD}'"));
    set_access(&server, "local all all scram-sha-256\n");
    wait_until("passwords are asked for", || server.connect().is_err());
    let address = server.address();
    let without = join(&board, &address, &[]);
    assert!(without.contains("NotAllowed"), "{without}");
    let with = |password: &str| address.replace("user=liza", &format!("user=liza&password={password}"));
    let said = join(&board, &address, &[("LIZA_STORE_URL", &with(PASSWORD))]);
    assert!(said.contains("JOINED"), "{said}");
    let said = join(&board, &address, &[("LIZA_STORE_URL", &with("wrong"))]);
    assert!(said.contains("NotAllowed") && said.contains("password"), "{said}");

    let file = board.root.join("passwords");
    let variables = [("PGPASSFILE", file.to_str().unwrap())];
    fs::write(&file, format!("localhost:*:liza:liza:{PASSWORD}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let said = join(&board, &address, &variables);
    assert!(said.contains("JOINED"), "{said}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let said = join(&board, &address, &variables);
    let why = format!("{} is not used, since others can read it: chmod 600", file.display());
    assert!(said.contains("NotAllowed") && said.contains(&why), "others can read the file: {said}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, format!("localhost:*:other:liza:{PASSWORD}\n")).unwrap();
    let said = join(&board, &address, &variables);
    assert!(said.contains("NotAllowed") && said.contains("has no line for this address"), "{said}");
    fs::remove_file(&file).unwrap();
    let said = join(&board, &address, &variables);
    assert!(said.contains("NotAllowed") && said.contains("passwords does not exist"), "{said}");
}

/// An authority of this test, and a server with a certificate of it at an address that counts as another machine.
struct TlsServer {
    server: Server,
    host: String,
    authority: PathBuf,
}

impl TlsServer {
    fn new() -> Self {
        let server = Server::own("");
        let id = std::process::id();
        let host = format!("127.{}.{}.{}", 64 + id % 64, (id >> 6) % 250 + 1, (id >> 14) % 250 + 1);
        let folder = server.folder().join("tls");
        fs::create_dir(&folder).unwrap();
        let openssl = |words: &str| {
            let mut command = Command::new("openssl");
            let output = command.args(words.split(' ')).current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        };
        openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test");
        openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=database");
        fs::write(folder.join("names"), format!("subjectAltName=IP:{host}")).unwrap();
        openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
        );
        fs::set_permissions(folder.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
        Server::give(&folder);
        let this = Self { server, host, authority: folder.join("ca.pem") };
        this.restart(true);
        this
    }

    /// Asks for the password in this way on its TCP address.
    fn ask(&self, method: &str) {
        let encryption = if method == "md5" { "md5" } else { "scram-sha-256" };
        self.server
            .sql(&format!("SET password_encryption = '{encryption}'; ALTER USER liza PASSWORD '{PASSWORD}'"));
        let rules = format!("local all all trust\nhost all all 127.0.0.0/8 {method}\n");
        fs::write(self.server.folder().join("data/pg_hba.conf"), rules).unwrap();
        self.restart(true);
    }

    fn restart(&self, tls: bool) {
        let place = self.authority.parent().unwrap().display();
        let listen = format!("-c listen_addresses={}", self.host);
        let with =
            format!(" -c ssl=on -c ssl_cert_file={place}/server.pem -c ssl_key_file={place}/server.key");
        self.server.stop("fast");
        self.server.start(&format!("{listen}{}", if tls { &with } else { "" }));
    }
}

/// Covers: MM-01
#[test]
fn needs_postgres_needs_openssl_another_machine_is_reached_only_with_a_certificate_that_is_trusted() {
    let tls = TlsServer::new();
    let board = TestBoard::at(&tls.server.address(), "tls");
    let address = format!("postgres://liza@{}:5432/liza", tls.host);
    tls.ask("scram-sha-256");
    let unknown = join(&board, &address, &[]);
    assert!(unknown.contains("UntrustedCertificate") && unknown.contains("certificate"), "{unknown}");
    let trust = ("SSL_CERT_FILE", tls.authority.to_str().unwrap());
    let with_password = address.replace('@', &format!(":{PASSWORD}@"));
    let known = join(&board, &address, &[trust, ("LIZA_STORE_URL", &with_password)]);
    assert!(known.contains("JOINED"), "{known}");
    tls.restart(false);
    let open = join(&board, &address, &[trust]);
    assert!(open.contains("NoTls") && open.contains("offers no TLS"), "{open}");
    assert!(open.contains("turn TLS on") && open.contains("use its Unix socket: postgres:///"), "{open}");
    // The person of this machine may decide otherwise.
    let plain = format!("{address}?sslmode=disable");
    let chosen = format!("{with_password}?sslmode=disable");
    let said = join(&board, &plain, &[("LIZA_STORE_URL", &chosen)]);
    assert!(said.contains("JOINED"), "{said}");
}

/// Covers: RO-05
#[test]
fn needs_postgres_needs_openssl_a_server_that_asks_for_less_than_scram_is_refused_with_the_remedy() {
    let tls = TlsServer::new();
    let board = TestBoard::at(&tls.server.address(), "unproven");
    let address = format!("postgres://liza@{}:5432/liza", tls.host);
    let with_password = address.replace('@', &format!(":{PASSWORD}@"));
    let (plain, chosen) = (format!("{address}?sslmode=disable"), format!("{with_password}?sslmode=disable"));
    let trust = ("SSL_CERT_FILE", tls.authority.to_str().unwrap());
    for method in ["trust", "password", "md5"] {
        tls.ask(method);
        for (address, url) in [(&address, &with_password), (&plain, &chosen)] {
            let said = join(&board, address, &[trust, ("LIZA_STORE_URL", url)]);
            assert!(said.contains("Unproven"), "{method} {address}: {said}");
            assert!(said.contains("let it use SCRAM: password_encryption = 'scram-sha-256'"), "{said}");
        }
    }
}

/// A pooler that gives each transaction the next free connection.
struct Pooler {
    child: Child,
    folder: PathBuf,
}

impl Pooler {
    fn new(server: &Server) -> Self {
        let folder = server.folder().join("pooler");
        fs::create_dir(&folder).unwrap();
        let (socket, own) = (server.folder().display(), folder.display());
        let settings = format!(
            "[databases]\nliza = host={socket} user=liza\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n\
             unix_socket_dir = {own}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n\
             max_client_conn = 100\nlogfile = {own}/log\npidfile = {own}/pid\n"
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        Server::give(&folder);
        let mut command = Server::program_for("pgbouncer");
        let child = command.arg("-q").arg(&file).stdin(Stdio::null()).spawn().unwrap();
        // The socket's file is there a moment before the pooler listens on it.
        wait_until("the pooler listens", || UnixStream::connect(folder.join(".s.PGSQL.6432")).is_ok());
        Self { child, folder }
    }

    fn address(&self) -> String {
        format!("postgres:///liza?host={}&port=6432&user=liza", self.folder.display())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn through(folder: &Path, pooler: &Pooler, board: &TestBoard) -> Store {
    let address: Address = pooler.address().parse().unwrap();
    fs::create_dir_all(folder.join("specs")).unwrap();
    fs::write(folder.join("specs/x.md"), "# x\n").unwrap();
    Store::join_database(folder, &address, Some(&board.name)).unwrap()
}

/// Covers: MM-04
#[test]
fn needs_postgres_needs_pgbouncer_a_pooler_between_transactions_changes_nothing() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "pooler");
    let pooler = Pooler::new(&server);
    let folder = board.root.join("through");
    let store = through(&folder, &pooler, &board).with_retry_limit(Duration::from_secs(60));
    let generation = register(&store, "coder-1");
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let store = Store::open(&folder).unwrap().with_retry_limit(Duration::from_secs(60));
            scope.spawn(move || {
                for n in 0..5 {
                    human(&store, add_task(&format!("task-{thread}-{n}"))).unwrap();
                }
            });
        }
    });
    claim(&store, &task("task-0-0"), "coder-1", generation).unwrap();
    let session = store.begin_edit().unwrap();
    session.set(".tasks[1].priority", "1", ValueSyntax::BySchema, &entry("set"), now()).unwrap();
    let watch = store.watch().unwrap();
    while watch.wait(Duration::from_millis(1500)) {}
    human(&board.store(), note("directly")).unwrap();
    assert!(watch.wait(Duration::from_secs(20)), "polling finds it");
    let state = store.snapshot().unwrap();
    assert_eq!(state.board.tasks.len(), 30);
    assert_eq!(state, board.store().snapshot().unwrap());
    assert_eq!(store.log_reader().read_new().unwrap(), board.store().log_reader().read_new().unwrap());
}

/// Covers: MM-04, MM-05
#[test]
fn needs_postgres_needs_pgbouncer_a_commit_whose_pooler_loses_the_server_is_found() {
    let server = Server::own("");
    let board = TestBoard::at(&server.address(), "pooler-error");
    let pooler = Pooler::new(&server);
    let store = through(&board.root.join("through"), &pooler, &board);
    drop(store.snapshot().unwrap());
    let hanging = HangingCommits::new(&server);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| human(&store, note("once")));
        hanging.end();
        assert_eq!(writing.join().unwrap().unwrap().revision, 2);
    });
    assert_eq!(store.snapshot().unwrap().journal.human_notes.len(), 1);
}
