//! Settings that came from elsewhere: a machine uses what its own person has accepted.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use serde_json::Value;

use crate::machine::two_machines;
use crate::server::Server;
use crate::support::TestProject;

/// The value of a setting on this machine.
fn used(machine: &TestProject, key: &str) -> Value {
    machine.liza(&["config", key, "--json"]).result()["settings"][key]["value"].clone()
}

fn needs_you(machine: &TestProject) -> String {
    machine.liza(&["status", "--json"]).result()["needs_you"].to_string()
}

/// Makes the worktree of the task again, and says whether `config.setup` ran in it.
fn ran(machine: &TestProject) -> bool {
    machine.liza(&["wt-create", "--fresh", "one"]).ok();
    machine.tree("one").join("planted").exists()
}

/// Covers: RO-05
#[test]
fn needs_postgres_what_another_machine_or_an_sql_writer_sets_runs_nothing_until_it_is_accepted() {
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let (bare, address) = (home.path().join("remote.git"), server.address());
    let [one, two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
    two.liza(&["config", "sandbox", "auto"]).ok();
    one.liza(&["config", "--trust"]).ok();
    two.add_task("one");
    two.register("coder-1");
    two.liza(&["claim-task", "one", "coder-1"]).ok();

    one.liza(&["config", "setup", "touch planted"]).ok();
    let planted = "UPDATE liza.sections SET text = replace(text, 'sandbox: auto', 'sandbox: off') WHERE name = 'config'";
    server.sql(&format!("{planted}; UPDATE liza.projects SET revision = revision + 1"));
    assert_eq!(two.liza(&["get", ".config.sandbox"]).ok().trim(), "off", "the blackboard has it");

    assert_eq!((used(&two, "sandbox"), used(&two, "setup")), ("auto".into(), Value::Null));
    assert!(!ran(&two), "it does not run here");
    let needs = needs_you(&two);
    assert!(needs.contains("SETTINGS NOT ACCEPTED") && needs.contains("liza config --trust"), "{needs}");
    assert!(needs.contains("not accepted: sandbox, setup."), "{needs}");
    let doctor = two.liza(&["doctor"]).stdout;
    assert!(doctor.contains("you have not accepted them: sandbox, setup"), "{doctor}");
    // Where its own person set it, it applies.
    assert_eq!(used(&one, "setup"), "touch planted");
    let needs = needs_you(&one);
    assert!(needs.contains("not accepted: sandbox."), "what is written by SQL is not accepted: {needs}");

    // Setting something else accepts nothing but that.
    two.liza(&["config", "copy", "[]"]).ok();
    assert_eq!(used(&two, "setup"), Value::Null);
    let said = two.liza_at_terminal("config --trust", "n\n");
    assert!(said.contains("setup: none → touch planted") && said.contains("sandbox: "), "{said}");
    assert!(!ran(&two), "nothing was accepted");
    two.liza(&["config", "--trust"]).ok();
    assert!(ran(&two));
    assert_eq!(used(&two, "sandbox"), "off");
    assert!(!needs_you(&two).contains("SETTINGS NOT ACCEPTED"));
    // Nor does a setting that is taken away from elsewhere.
    one.liza(&["config", "setup", "--unset"]).ok();
    assert_eq!(used(&two, "setup"), "touch planted");
}

/// Leads connections from a port of this machine to a socket.
fn port_to(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = UnixStream::connect(&socket).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut from, &mut to));
            thread::spawn(move || io::copy(&mut &server, &mut &client));
        }
    });
    port
}

/// Covers: RO-05
#[test]
fn needs_postgres_doctor_tries_from_inside_a_stage_whether_a_session_gets_in_without_a_password() {
    let server = Server::own("");
    let port = port_to(server.socket());
    // The person uses the socket of that port.
    symlink(server.socket(), server.folder().join(format!(".s.PGSQL.{port}"))).unwrap();
    let machine = TestProject::bare();
    machine.liza(&["init", "Say hello", "--store", &format!("{}&port={port}", server.address())]).ok();
    let doctor = machine.liza(&["doctor"]).stdout;
    assert!(doctor.contains("no session gets in without a password"), "{doctor}");
    machine.liza(&["config", "network_ports", &format!("[{port}]")]).ok();
    let doctor = machine.liza(&["doctor"]);
    let line = doctor.stdout.lines().find(|line| line.contains("a session gets in without a password"));
    assert!(line.is_some_and(|line| line.starts_with("fail  database")), "{doctor:?}");
    assert_eq!(doctor.code, 1, "{doctor:?}");
}
