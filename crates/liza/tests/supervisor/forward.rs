//! `liza forward`: the person's browser reaches a server in a session's room.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::fixture::{Bench, CODER};
use crate::interactive::Terminal;
use crate::support::process::{Running, wait_for};

/// A server in the session that answers with what it was asked.
const SERVER: &str = r#"
cat > serve.pl <<'END'
use IO::Socket::IP;
my $all = IO::Socket::IP->new(Listen => 9, LocalHost => $ARGV[0], LocalPort => $ARGV[1], ReuseAddr => 1) // die $@;
open my $up, ">", "up"; close $up;
while (my $client = $all->accept) { my $line = <$client>; print $client "room got $line"; close $client }
END
perl serve.pl HOST PORT &
while [ ! -e go ]; do sleep 0.05; done
rm -f serve.pl up go
"#;

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn ask(port: u16, question: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let _ = writeln!(stream, "{question}");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// A session of a coder on t1 that serves at a port of its own machine.
fn serving(config: &str, host: &str, port: u16) -> (Bench, Running) {
    let script = SERVER.replace("HOST", host).replace("PORT", &port.to_string()) + CODER;
    let bench = Bench::new(config, &[("c", &script)]);
    bench.project.add_task("t1");
    let coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    wait_for("it serves", || bench.tree("t1").join("up").exists().then_some(()));
    // Its supervisor notes the session a moment later. A port that is taken ends the command once it is known.
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = taken.local_addr().unwrap().port().to_string();
    wait_for("its session is known", || {
        let said = bench.project.liza(&["forward", "t1", &port.to_string(), "--at", &at]).stderr;
        (!said.contains("no session")).then_some(())
    });
    (bench, coder)
}

/// Covers: RO-04
#[test]
#[cfg(target_os = "linux")]
fn a_port_here_leads_to_a_server_in_a_room_until_the_session_ends() {
    let (port, at) = (free_port(), free_port());
    let (bench, mut coder) = serving("sandbox: auto", "::1", port);
    let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    assert!(refused.is_err(), "without it, the server is not reachable");
    let line = |arguments: &[&str]| Running::liza(&bench.project, arguments);
    let mut same = line(&["forward", "t1", &port.to_string()]);
    same.wait_for_output("leads to port");
    assert_eq!(ask(port, "hello"), "room got hello\n", "{}", same.output());
    let mut other = line(&["forward", "t", &port.to_string(), "--at", &at.to_string()]);
    other.wait_for_output("Ctrl-C ends it");
    let large = "x".repeat(300_000);
    assert_eq!(ask(at, &large), format!("room got {large}\n"), "{}", other.output());
    // The port is taken now, whoever has it.
    let taken = bench.project.liza(&["forward", "t1", &port.to_string()]);
    assert!(taken.code == 1 && taken.stderr.contains("it is taken"), "{taken:?}");
    assert!(taken.stderr.contains(&format!("liza forward t1 {port} --at PORT")), "{taken:?}");
    // Killed, it leaves nothing that serves.
    other.kill();
    wait_for("the port is free", || TcpListener::bind((Ipv4Addr::LOCALHOST, at)).ok());
    // A port at which nothing listens.
    let mut nothing = line(&["forward", "t1", &at.to_string()]);
    nothing.wait_for_output("leads to port");
    assert_eq!(ask(at, "hello"), "");
    nothing.wait_for_output(&format!("nothing listens at port {at} of coder-1's session on t1"));
    fs::write(bench.tree("t1").join("go"), "").unwrap();
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    for forwarding in [&mut same, &mut nothing] {
        assert_eq!(forwarding.wait(), 0, "{}", forwarding.output());
        let said = forwarding.output();
        assert!(said.contains("coder-1's session on t1 has ended"), "{said}");
    }
    let ended = bench.project.liza(&["forward", "t1", &port.to_string()]);
    assert!(ended.code == 1 && ended.stderr.contains("t1 has no session"), "{ended:?}");
    let unknown = bench.project.liza(&["forward", "t9", "80"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("t9"), "{unknown:?}");
}

/// Covers: RO-08
#[test]
#[cfg(target_os = "linux")]
fn without_a_room_the_server_is_reachable_directly_and_forward_says_so() {
    let port = free_port();
    let (bench, mut coder) = serving("sandbox: auto\nsandbox_max_abi: 100", "127.0.0.1", port);
    let said = bench.project.liza(&["forward", "t1", &port.to_string()]).stderr;
    assert!(said.contains("no network of its own"), "{said}");
    assert!(said.contains(&format!("http://127.0.0.1:{port}")), "{said}");
    assert_eq!(ask(port, "hello"), "room got hello\n");
    fs::write(bench.tree("t1").join("go"), "").unwrap();
    assert_eq!(coder.wait(), 0, "{}", coder.output());
}

/// Covers: RO-04, RO-03
#[test]
#[cfg(target_os = "linux")]
fn needs_script_a_port_here_leads_to_a_server_in_the_persons_own_shell() {
    let (port, at) = (free_port(), free_port());
    let bench = Bench::new("sandbox: auto", &[("c", "exit 1")]);
    bench.project.add_task("t1");
    let (there, here) = (port.to_string(), at.to_string());
    let forward = ["forward", "t1", &there, "--at", &here, "--shell"];
    bench.agent(&["coder", "--cli", "c", "--once"]).wait();
    let none = bench.project.liza(&forward);
    assert!(none.code == 1 && none.stderr.contains("no shell of yours is open on t1"), "{none:?}");
    let mut terminal = Terminal::open(&bench, "shell t1");
    terminal.shows("a shell for t1");
    let server = SERVER.split("while [").next().unwrap();
    terminal.types(&server.replace("HOST", "127.0.0.1").replace("PORT", &port.to_string()));
    wait_for("it serves", || bench.tree("t1").join("up").exists().then_some(()));
    let mut forwarding = Running::liza(&bench.project, &forward);
    forwarding.wait_for_output(&format!("leads to port {port} of your shell on t1"));
    assert_eq!(ask(at, "hello"), "room got hello\n", "{}", forwarding.output());
    terminal.types("exit 3\n");
    assert_eq!(terminal.wait(), 3, "{}", terminal.screen());
    assert_eq!(forwarding.wait(), 0, "{}", forwarding.output());
    assert!(forwarding.output().contains("your shell on t1 has ended"), "{}", forwarding.output());
    assert!(bench.project.liza(&forward).stderr.contains("no shell of yours"));
}

/// The record of a session outlives a supervisor that was killed; another process may have its number by then.
///
/// Covers: RO-04
#[test]
#[cfg(target_os = "linux")]
fn a_port_is_not_led_to_another_process_that_has_the_number_of_a_recorded_one() {
    let (port, at) = (free_port(), free_port());
    let (bench, mut coder) = serving("sandbox: auto", "127.0.0.1", port);
    let record = bench.project.root.join(".liza/agent-locks/coder-1.confinement");
    let recorded: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    for identity in [serde_json::json!("another boot 1"), serde_json::Value::Null] {
        let mut other = recorded.clone();
        other["identity"] = identity;
        fs::write(&record, other.to_string()).unwrap();
        let arguments = ["forward", "t1", &port.to_string(), "--at", &at.to_string()];
        let mut forwarding = Running::liza(&bench.project, &arguments);
        wait_for("it says something", || forwarding.output().contains("t1").then_some(()));
        // Not for another reason.
        assert!(
            forwarding.output().contains("no session on this machine now (No such process"),
            "{}",
            forwarding.output()
        );
        assert_ne!(forwarding.wait(), 0);
    }
    fs::write(&record, recorded.to_string()).unwrap();
    let forwarding =
        Running::liza(&bench.project, &["forward", "t1", &port.to_string(), "--at", &at.to_string()]);
    forwarding.wait_for_output("leads to port");
    assert_eq!(ask(at, "hello"), "room got hello\n");
    fs::write(bench.tree("t1").join("go"), "").unwrap();
    coder.wait();
}
