//! Who gets in: tokens, cookies, hosts, origins, processes; and what a request cannot do.

use std::fs;

use crate::fixture::{Request, Web, answer};
use crate::support::TestProject;

/// Covers: UI-02
#[test]
fn an_address_works_once_and_nothing_else_works_without_its_cookie() {
    let project = TestProject::new();
    let mut web = Web::start(&project);
    let port = web.port();
    let visitor = web.visitor();
    assert!(visitor.page("").contains("Retry everything"));

    let address = web.new_address();
    let path = format!("/{}", address.rsplit_once('/').unwrap().1);
    assert_eq!(Request::get(&path).send(port).status, 303);
    assert_eq!(Request::get(&path).send(port).status, 401, "a second time");
    for wrong in ["/", "/?token=", "/?token=0", &format!("{path}0"), "/?token=%00", "/?x=1"] {
        let answer = Request::get(wrong).send(port);
        assert_eq!(answer.status, 401, "{wrong}: {answer:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }

    for page in ["", "tasks", "agents", "alerts", "log", "charts", "live/board", "style.css", "act"] {
        let path = format!("{}{page}", visitor.prefix);
        assert_eq!(Request::get(&path).send(port).status, 401, "{page}: no cookie");
        let foreign = Request::get(&path).with("Cookie", &format!("{}0", visitor.cookie)).send(port);
        assert_eq!(foreign.status, 401, "{page}: another cookie");
    }
    let cookie = format!("a=1; {}; b=2", visitor.cookie);
    assert_eq!(Request::get(&visitor.prefix).with("Cookie", &cookie).send(port).status, 200);
    assert_eq!(web.end(), 0);
}

/// Covers: UI-02
#[test]
fn another_host_another_origin_and_another_site_are_refused() {
    let project = TestProject::new();
    let mut web = Web::start(&project);
    let (port, visitor) = (web.port(), web.visitor());
    // A name that an attacker lets point to this machine.
    for host in ["evil.example", &format!("evil.example:{port}"), &format!("localhost:{port}"), "127.0.0.1"] {
        assert_eq!(visitor.get("").host(host).send(port).status, 403, "{host}");
    }
    let pause = [("action", "pause")];
    for origin in ["http://evil.example", "null", &format!("https://127.0.0.1:{port}"), "http://127.0.0.1:1"]
    {
        let text = visitor.form(&pause).text(port);
        let own = format!("Origin: http://127.0.0.1:{port}\r\n");
        let request = text.replace(&own, &format!("Origin: {origin}\r\n"));
        assert_ne!(request, text);
        assert_eq!(raw(port, &request).status, 403, "{origin}");
        let without = text.replace(&own, "");
        assert_eq!(raw(port, &without).status, 403, "without an origin");
        let cross = visitor.form(&pause).with("Sec-Fetch-Site", "same-site").send(port);
        assert_eq!(cross.status, 403, "another port of this machine");
        assert_eq!(visitor.get("").with("Origin", origin).send(port).status, 403, "{origin}");
    }
    assert!(!project.root.join(".liza/PAUSE").exists());
    // No method but that of the form does it.
    assert_eq!(visitor.get("act?action=pause").send(port).status, 405);
    assert_eq!(visitor.act(&pause).status, 200);
    assert!(project.root.join(".liza/PAUSE").exists());
}

fn raw(port: u16, text: &str) -> crate::fixture::Answer {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    answer(&String::from_utf8_lossy(&bytes))
}

/// Covers: UI-02
#[test]
fn every_answer_is_strict_and_no_part_of_a_request_is_a_path() {
    let project = TestProject::new();
    project.add_task("first");
    fs::create_dir_all(project.root.join(".liza/agent-prompts")).unwrap();
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    for page in ["", "task/first", "log", "nonsense"] {
        let answer = visitor.get(page).send(web.port());
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(!answer.body.contains(" style=") && !answer.body.contains("<script>"), "{page}");
        assert!(!answer.body.contains("onclick"), "{page}");
    }
    for path in [
        "task/..%2F..%2Fstate.yaml",
        "task/../../state.yaml",
        "task/first%2F..",
        "session/..%2F..%2Fstate.yaml",
        "session/..%2Fstate",
        "session/%2Fetc%2Fpasswd",
        "agent/..%2Fstate",
        "live/task/..%2F..%2Fstate.yaml",
        "task/none",
        "task/none/diff",
        "live/task/none",
        "live/%2Fetc",
    ] {
        let answer = visitor.get(path).send(web.port());
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert!(!answer.body.contains("revision"), "{path}");
    }
}

/// Covers: AX-19
#[test]
fn the_answers_of_tools_are_on_the_pages_and_a_refusal_has_its_own_class() {
    let project = TestProject::new();
    let name = "coder-1-20260117T140000Z-1-one";
    let command = |command: &str, said: &str, code: u32| {
        let item = serde_json::json!({"id": command, "type": "command_execution", "command": command,
            "aggregated_output": said, "exit_code": code});
        ["item.started", "item.completed"]
            .map(|kind| format!("{}\n", serde_json::json!({"type": kind, "item": item})))
            .concat()
    };
    let said = "liza: <b>t1</b> is not yours\n  hint: liza show t1";
    let printed = command("ls", "one", 0) + &command("liza submit-verdict t1 APPROVED", said, 1);
    project.write(&format!(".liza/agent-prompts/{name}.md"), "x");
    project.write(&format!(".liza/agent-outputs/{name}.log"), &printed);
    let mut web = Web::start(&project);
    let page = web.visitor().page(&format!("session/{name}"));
    assert!(page.contains("<p class=\"answer\">  ↳ exit 0\n    one</p>"), "{page}");
    let refusal =
        "<p class=\"refusal\">  ↳ exit 1, refused by Liza\n    liza: &lt;b&gt;t1&lt;/b&gt; is not yours\n";
    assert!(page.contains(refusal), "{page}");
}

/// Covers: UI-02
#[test]
fn what_agents_write_is_text() {
    let project = TestProject::new();
    let script = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\"'";
    let words = ["add-task", "--id", "evil", "--desc", script, "--spec", "specs/vision.md"];
    project.liza(&[&words[..], &["--done", script, "--scope", script]].concat()).ok();
    project.liza(&["note", script, "--for", "evil"]).ok();
    project.liza(&["mark-blocked", "evil", "--reason", script]).ok();
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    for page in ["", "tasks", "task/evil", "alerts", "log", "charts", &format!("log?text={}", "%3Cscript%3E")]
    {
        let body = visitor.page(page);
        assert!(!body.contains("<script>") && !body.contains("<img"), "{page}: {body}");
    }
    assert!(visitor.page("task/evil").contains("&lt;script&gt;"));
}

/// Covers: UI-02
#[test]
#[cfg(target_os = "linux")]
fn a_process_of_a_session_is_refused_even_with_the_cookie() {
    let project = TestProject::new();
    let mut web = Web::start(&project);
    let (port, visitor) = (web.port(), web.visitor());
    let request = visitor.get("").text(port);
    project.write("../request", &request);
    // A helper of a session is known by its arguments; the peer is a process below it.
    let ask = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat request >&3; cat <&3'\n");
    let run = |script: &str| {
        project.write(&format!("../{script}"), &ask);
        let mut bash = project.command("bash");
        bash.current_dir(project.home()).args([script, "--of"]);
        project.run(bash.arg(&project.root).args(["coder-1", "1"])).stdout
    };
    assert!(run("other").starts_with("HTTP/1.1 200"), "outside");
    assert_eq!(run("session"), "", "inside a session");
}

/// Covers: UI-02
#[test]
#[cfg(target_os = "linux")]
fn no_secret_is_in_a_file_an_argument_or_the_environment() {
    let project = TestProject::new();
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    let address = web.first_address().to_owned();
    let token = address.split_once("token=").unwrap().1;
    let cookie = visitor.cookie.trim_start_matches("liza=");
    assert!(visitor.page("").contains("Retry everything"));
    let folder = format!("/proc/{}", web.id());
    for secret in [token, cookie] {
        for file in ["cmdline", "environ"] {
            let text = fs::read(format!("{folder}/{file}")).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(secret), "{file}");
        }
        let found = project.run(project.command("grep").args(["-rlF", secret]).arg(project.home()));
        assert_eq!(found.stdout, "", "in a file");
    }
    // A file is refused before there is a secret.
    let mut program = project.program();
    let out = fs::File::create(project.home().join("out")).unwrap();
    program.args(["web", "--json"]).stdout(out);
    assert_eq!(program.status().unwrap().code(), Some(1));
    assert!(project.read("../out").contains("not_private"));
}

/// Covers: UI-02
#[test]
fn agents_do_not_get_a_server() {
    let project = TestProject::new();
    let refused = project.liza_as("coder-1", &["web", "--json"]);
    refused.refused(refused.code, "not_permitted");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = project.liza(&["web", "--port", &port]);
    assert!(run.code != 0 && run.stderr.contains("cannot listen on 127.0.0.1"), "{run:?}");
}
