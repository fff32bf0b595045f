//! Sessions with `network: model-only`: the model's hosts through Liza's proxy, and nothing else.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::thread;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};
use crate::support::process::wait_for;

/// A server on this machine that answers each connection with its first line; its port.
fn server() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let _ = BufReader::new(&client).read_line(&mut line);
            let _ = (&client).write_all(format!("server {port} got {line}").as_bytes());
        }
    });
    port
}

/// A port of this machine that no program uses.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Tries what a session needs to reach its model, and what it must not reach.
const TRIES: &str = r#"
cat > net.sh <<'END_OF_SCRIPT'
direct() { exec 3<> "/dev/$1/127.0.0.1/$2" && printf 'hello\n' >&3 && { [ "$1" = udp ] || head -n 1 <&3; }; }
proxied() {
  exec 3<> "/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}" && printf 'CONNECT %s HTTP/1.1\r\n\r\nhello\n' "$1" >&3 && cat <&3
}
"$@"
END_OF_SCRIPT
try() {
  name=$1; shift
  answer=$(bash net.sh "$@" 2> /dev/null | tr -d '\r' | tr '\n' ' ')
  echo "$name: ${answer:-nothing}"
}
try model proxied "localhost:MODEL"
try other proxied "localhost:OTHER"
try example proxied "example.com:443"
try directly direct tcp MODEL
try open direct tcp PORT
if bash net.sh direct udp MODEL 2> /dev/null; then echo 'udp: open'; else echo 'udp: refused'; fi
timeout 2 git daemon --listen=127.0.0.1 --port=FREE --base-path=. 2> /dev/null
if [ $? = 124 ]; then echo 'listening: possible'; else echo 'listening: refused'; fi
echo "variables: ${https_proxy:+set} ${NO_PROXY-unset}"
rm net.sh
"#;

/// Covers: IS-06, RO-04, RO-07
#[test]
#[cfg(target_os = "linux")]
fn a_session_reaches_its_model_through_the_proxy_and_nothing_else() {
    // Without Landlock, the helper and the filter are enough.
    for (level, limit) in [("isolated", ""), ("restricted", "100"), ("unenforced", "0")] {
        let config = if limit.is_empty() { String::new() } else { format!("\nsandbox_max_abi: {limit}") };
        let level_config = format!("sandbox: auto{config}");
        let is_in_room = level == "isolated";
        let [model, other, port] = [server(), server(), server()];
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, model)).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let free = free_port();
        let fill = |text: &str| {
            let text = text.replace("MODEL", &model.to_string()).replace("OTHER", &other.to_string());
            text.replace("PORT", &port.to_string()).replace("FREE", &free.to_string())
        };
        let config = "\nroles: {coder: {network: model-only}}\nmodel_hosts: [\"localhost:MODEL\"]\nnetwork_ports: [PORT]";
        let script = fill(TRIES) + CODER;
        let bench = Bench::new(&format!("{level_config}{}", fill(config)), &[("c", &script)]);
        bench.project.add_task("t1");
        let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
        assert_eq!(coder.wait(), 0, "{}\n{}", coder.output(), bench.outputs());
        let log = bench.outputs();
        let said = |name: &str| {
            let line = log.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{name} is missing:\n{log}")).to_owned()
        };
        assert_eq!(said("model"), format!("HTTP/1.1 200 Connection established  server {model} got hello "));
        assert!(said("other").starts_with("HTTP/1.1 403 "), "{log}");
        assert!(said("example").starts_with("HTTP/1.1 403 "), "{log}");
        assert_eq!(said("directly"), "nothing", "{log}");
        assert_eq!(said("open"), format!("server {port} got hello "), "{log}");
        // In a room, this machine is the room.
        assert_eq!(said("udp"), if is_in_room { "open" } else { "refused" }, "{log}");
        assert!(datagrams.recv(&mut [0]).is_err(), "a datagram left the session");
        // Only Landlock refuses this.
        assert_eq!(said("listening"), if level == "restricted" { "refused" } else { "possible" }, "{log}");
        assert_eq!(said("variables"), "set ", "{log}");
        let named = "[liza: refused: host example.com";
        assert!(log.lines().any(|line| line.starts_with(named)), "{log}");
        let status = bench.project.liza(&["status"]).stdout;
        assert!(status.contains("HOST REFUSED") && status.contains("model_hosts '[localhost:"), "{status}");
        let first = log.lines().next().unwrap();
        assert!(first.starts_with(&format!("[liza: confinement {level}")), "{first}");
        assert_eq!(first.contains("/dev/shm"), !is_in_room, "{first}");
        assert!(first.contains(", network model-only; shared with you: git's settings"), "{first}");
        assert!(bench.prompts()[0].contains("NETWORK: only your model"), "{}", bench.prompts()[0]);
    }
}

/// Covers: IS-06
#[test]
#[cfg(target_os = "linux")]
fn an_open_network_is_the_default() {
    let model = server();
    let tries = TRIES.replace("MODEL", &model.to_string()).replace("PORT", &model.to_string());
    let script = tries.replace("FREE", &free_port().to_string()) + CODER;
    let bench = Bench::new(&format!("sandbox: auto\nnetwork_ports: [{model}]"), &[("c", &script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}\n{}", coder.output(), bench.outputs());
    let log = bench.outputs();
    assert!(log.contains(&format!("directly: server {model} got hello")), "{log}");
    assert!(log.contains("udp: open") && log.contains("variables:  unset"), "{log}");
    assert!(log.contains("listening: possible"), "{log}");
    let first = log.lines().next().unwrap();
    assert!(first.starts_with("[liza: confinement isolated; shared with you: the network, git's settings, "));
    assert!(first.ends_with(&format!(", port {model}]")), "{log}");
}

/// Covers: RO-04
#[test]
#[cfg(target_os = "linux")]
fn of_this_machine_a_session_reaches_its_own_services_and_those_that_the_person_named() {
    let [yours, listed, model, settings, own] = [server(), server(), server(), server(), free_port()];
    let tries = format!(
        r#"
reach() {{ if bash -c "exec 3<> /dev/tcp/$2/$3" 2> /dev/null; then echo "$1: reached"; else echo "$1: refused"; fi; }}
reach yours 127.0.0.1 {yours}
reach mapped ::ffff:127.0.0.1 {yours}
reach wildcard 0.0.0.0 {yours}
reach listed 127.0.0.1 {listed}
reach model 127.0.0.1 {model}
reach settings 127.0.0.1 {settings}
git daemon --listen=127.0.0.1 --port={own} --base-path=. 2> /dev/null &
for i in $(seq 100); do reach try 127.0.0.1 {own} | grep -q reached && break; sleep 0.1; done
reach own 127.0.0.1 {own}
kill %1
"#
    );
    let script = tries + CODER;
    let bench = Bench::new(&format!("sandbox: auto\nnetwork_ports: [{listed}]"), &[("claude", &script)]);
    bench.project.add_task("t1");
    let folder = bench.project.home().join(".claude");
    fs::create_dir(&folder).unwrap();
    fs::write(
        folder.join("settings.json"),
        format!(r#"{{"env": {{"A": "http://localhost:{settings}/v1"}}}}"#),
    )
    .unwrap();
    let mut command = bench.project.program();
    command.args(["agent", "coder", "--cli", "claude", "--once"]);
    command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{model}"));
    let run = bench.project.run(&mut command);
    assert_eq!(run.code, 0, "{run:?}\n{}", bench.outputs());
    let log = bench.outputs();
    for name in ["yours", "mapped", "wildcard"] {
        assert!(log.contains(&format!("{name}: refused")), "{name}\n{log}");
    }
    for name in ["listed", "model", "settings", "own"] {
        assert!(log.contains(&format!("{name}: reached")), "{name}\n{log}");
    }
    let said = format!(
        "[liza: refused: port {yours} of this machine is a service outside of the session; to open it: \
                        liza config network_ports '[{yours}]']"
    );
    assert!(log.contains(&said), "{log}");
    let tail = bench.project.liza(&["tail", "coder-1", "--no-follow"]).stdout;
    assert!(tail.contains(&format!("port {yours} of this machine")), "{tail}");
    let needs = || bench.project.liza(&["status", "--json"]).result()["needs_you"].clone();
    let refused = |needs: &serde_json::Value| {
        let all = needs.as_array().unwrap().iter();
        all.filter(|need| need["kind"] == "PORT REFUSED").cloned().collect::<Vec<_>>()
    };
    let entries = refused(&needs());
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert!(
        entries[0]["text"].as_str().unwrap().starts_with(&format!("coder-1 was refused port {yours}")),
        "{entries:?}"
    );
    let both = format!("[{listed}, {yours}]");
    assert_eq!(entries[0]["command"], format!("liza config network_ports '{both}'"), "{entries:?}");
    bench.project.liza(&["config", "network_ports", &both]).ok();
    assert_eq!(refused(&needs()), [serde_json::Value::Null; 0]);
}

/// Covers: RO-04
#[test]
#[cfg(target_os = "linux")]
fn a_refused_port_is_named_in_the_session_in_its_checks_and_in_what_judges_its_work() {
    let [own, tested, judged] = [server(), server(), server()];
    let reach = |port: u16| format!("bash -c 'exec 3<> /dev/tcp/127.0.0.1/{port}'");
    let tries = format!(
        r#"
{own} 2> /dev/null
"$LIZA" status 2>&1 > /dev/null | sed 's/^/TOLD /'
"$LIZA" status 2>&1 > /dev/null | sed 's/^/AGAIN /'
"$LIZA" check -- {tested} 2>&1 | sed 's/^/CHECKED /'
"#,
        own = reach(own),
        tested = reach(tested),
    );
    let bench = Bench::new("sandbox: auto", &[("c", &format!("{tries}{CODER}"))]);
    bench.project.liza(&["config", "validation", &format!("[\"{}\"]", reach(judged))]).ok();
    bench.project.add_task("t1");
    bench.agent(&["coder", "--cli", "c", "--once"]).wait();
    let log = bench.outputs();
    let named = |port: u16| format!("[liza: refused: port {port} of this machine is a service outside");
    assert!(log.contains(&format!("TOLD {}", named(own))), "{log}");
    assert!(log.contains(&format!("CHECKED {}", named(tested))), "{log}");
    assert!(!log.contains("AGAIN [liza"), "{log}");
    bench.project.liza(&["register", "code-reviewer-1"]).ok();
    let refused = bench.project.liza(&["claim-review", "t1", "code-reviewer-1", "--json"]);
    refused.refused(1, "validation_held");
    let status = bench.project.liza(&["status", "--json"]).result();
    let texts = status["needs_you"].to_string();
    for (who, port) in [("coder-1", own), ("coder-1", tested), ("a test or validation command", judged)] {
        assert!(texts.contains(&format!("{who} was refused port {port} of")), "{texts}");
    }
    let logs = bench.kept("integration-tests");
    let is_named = |log: &PathBuf| fs::read_to_string(log).unwrap().contains(&named(judged));
    assert!(!logs.is_empty() && logs.iter().all(is_named), "{logs:?}");
}

/// Covers: IS-05, IS-06
#[test]
#[cfg(target_os = "linux")]
fn what_a_role_can_reach_is_shown_everywhere() {
    let config = "sandbox: auto\nroles: {coder: {network: model-only}}\nmodel_hosts: [models.example]";
    let script = format!("while [ ! -e go ]; do sleep 0.05; done; rm go\n{CODER}");
    let bench = Bench::new(config, &[("c", &script)]);
    bench.project.add_task("t1");
    let explained = bench.project.liza(&["agent", "coder", "t1", "--cli", "c", "--explain"]).stdout;
    assert!(explained.contains("network    model-only: models.example"), "{explained}");
    let explained = bench.project.liza(&["agent", "planner", "--cli", "c", "--explain"]).stdout;
    assert!(explained.contains("network    open"), "{explained}");
    let doctor = bench.project.liza(&["doctor"]).stdout;
    assert!(doctor.contains("planner open, coder model-only, code-reviewer open"), "{doctor}");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    wait_for("status says it", || {
        let status = bench.project.liza(&["status"]).stdout;
        status.contains("confinement isolated, network model-only").then_some(())
    });
    fs::write(bench.tree("t1").join("go"), "").unwrap();
    assert_eq!(coder.wait(), 0, "{}", coder.output());

    let wrong = Bench::new(
        "sandbox: auto\nroles: {coder: {network: model-only}}\nmodel_hosts: [\"a b\"]",
        &[("c", CODER)],
    );
    wrong.project.add_task("t1");
    let refused = wrong.project.liza(&["agent", "coder", "--cli", "c", "--explain"]);
    assert!(refused.stderr.contains("config.model_hosts: \"a b\" is not HOST or HOST:PORT"), "{refused:?}");
}

/// The processes that a process has started and not waited for.
#[cfg(target_os = "linux")]
fn children(process: u32) -> String {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok()).collect()
}

/// Covers: IS-06, AG-05
#[test]
#[cfg(target_os = "linux")]
fn a_helper_whose_session_cannot_be_planned_ends() {
    let config = "sandbox: auto\nroles: {coder: {network: model-only}}\nmodel_hosts: [\"a b\"]";
    let bench = Bench::new(config, &[("c", CODER)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    coder.wait_for_output("config.model_hosts: \"a b\" is not HOST or HOST:PORT");
    wait_for("no helper is left, not even as a zombie", || children(coder.id()).is_empty().then_some(()));
    bench.project.set_config("model_hosts", "[models.example]");
    bench.until_status("t1", Status::ReadyForReview);
    coder.stop();
}

/// Covers: IS-05, IS-06
#[test]
fn a_closed_network_without_confinement_is_said_to_be_open() {
    let bench = Bench::new("sandbox: off\nroles: {coder: {network: model-only}}", &[("c", CODER)]);
    bench.project.add_task("t1");
    let explained = bench.project.liza(&["agent", "coder", "t1", "--cli", "c", "--explain"]).stdout;
    let open = "network    open: model-only has no effect while config.sandbox is off";
    assert!(explained.contains(open), "{explained}");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", coder.output());
    let note = "network: model-only has no effect while config.sandbox is off";
    assert!(coder.output().contains(note), "{}", coder.output());
}
