//! The pages in a real browser: they load, they follow the blackboard, every action works and is the human's.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::actions::submitted;
use crate::boards::rich_project;
use crate::browser::{Browser, target};
use crate::fixture::Web;
use crate::support::TestProject;
use crate::support::process::wait_for;

/// Covers: UI-02
#[test]
fn needs_chromium_the_board_follows_every_change_within_a_second() {
    let project = TestProject::new();
    project.add_task("first");
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    browser.wait_for_text("first");
    browser.wait_for("document.querySelector('#connection.live')");
    assert!(
        !browser.eval("location.href").to_string().contains("token"),
        "the token is not in the address bar"
    );
    assert_eq!(browser.eval("document.cookie"), "", "no script sees the cookie");

    let mut times: Vec<Duration> = (0..5)
        .map(|number| {
            let id = format!("next-{number}");
            project.add_task(&id);
            let began = Instant::now();
            browser.wait_for(&format!("document.getElementById('task-{id}')"));
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    // The median: other tests run on the same cores.
    assert!(times[2] < Duration::from_secs(1), "{times:?}");
    project.liza(&["pause"]).ok();
    browser.wait_for("document.querySelector('.state')?.textContent === 'paused'");
    project.liza(&["abandon-task", "first", "--reason", "not needed"]).ok();
    browser.wait_for("!document.getElementById('task-first')");
    browser.check_quiet(web.port());
}

/// The result of one review of a drill.
const DRILLED: &str = r#"[{"time": "2026-01-17T14:00:00Z", "task": "retry-users", "taken_out": "tests/retry.sh", "rejected": true, "program": "claude", "model": null,
    "defect": {"path": "src/retry.sh", "line": 1, "before": "<", "after": "<="}}]"#;

/// Covers: UI-02, TR-03
#[test]
fn needs_chromium_every_page_shows_its_part() {
    let project = rich_project();
    project.write(".liza/drills.json", DRILLED);
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    let base = browser.eval("location.href").as_str().unwrap().to_owned();
    let pages = [
        ("", "Are partial results returned?"),
        ("tasks", "Retry sending mail"),
        ("task/retry-users", "There is no test for a timeout"),
        ("agents", "code reviewer"),
        ("agent/coder-1", "The test for a timeout fails"),
        ("alerts", "The user client logs whole answers"),
        ("log?agent=coder-2", "submits retry-orders for review"),
        ("charts", "median from the first claim to the merge"),
        ("charts", "caught 1 of 1: 100 % (21 to 100 %), false alarms none seen"),
        ("session/coder-1-20260117T140000Z-1-retry-users", "I read the client"),
        ("task/retry-users/diff", "Changes of retry-users"),
    ];
    for (page, text) in pages {
        browser.open(&format!("{base}{page}"));
        browser.wait_for_text(text);
        browser.wait_for("document.querySelector('#connection.live')");
    }
    // The log is filtered.
    browser.open(&format!("{base}log?agent=coder-2"));
    assert_eq!(
        browser.eval("[...document.querySelectorAll('.log .who')].every(e => e.textContent === 'coder-2')"),
        true
    );
    let link = "document.querySelector('.log .said a.task-id').getAttribute('href')";
    assert!(browser.eval(link).as_str().unwrap().ends_with("/task/retry-orders"));
    assert!(!browser.text().contains("ready_for_review"), "{}", browser.text());
    // A prompt is text.
    browser.open(&format!("{base}agent/coder-1"));
    browser.eval("document.querySelector('.prompt').open = true");
    browser.wait_for_text("Retry <b>everything</b>.");
    browser.check_quiet(web.port());
}

/// Covers: UI-02
#[test]
fn needs_chromium_the_output_of_a_session_follows_what_is_printed() {
    let project = rich_project();
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    let base = browser.eval("location.href").as_str().unwrap().to_owned();
    browser.open(&format!("{base}agent/coder-1"));
    browser.wait_for("document.querySelector('#connection.live')");
    let path = ".liza/agent-outputs/coder-1-20260117T140000Z-1-retry-users.log";
    let more: String = (0..100).map(|number| format!("step {number}\n")).collect();
    project.write(path, &format!("{}{more}", project.read(path)));
    browser.wait_for_text("step 99");
    browser.wait_for(
        "(e => e.scrollTop + e.clientHeight >= e.scrollHeight - 8)(document.querySelector('.output'))",
    );
    browser.check_quiet(web.port());
}

/// Fills in a form on the page and sends it.
fn send(browser: &mut Browser, action: &str, text: &str) {
    let form = format!("document.querySelector('form:has([value={action}])')");
    browser.wait_for(&form);
    let open =
        "for (let e = FORM.closest('details'); e; e = e.parentElement.closest('details')) e.open = true";
    browser.eval(&open.replace("FORM", &form));
    if !text.is_empty() {
        browser.eval(&format!("{form}.querySelector('textarea').focus()"));
        browser.enter_text(text);
    }
    browser.eval(&format!("{form}.querySelector('button').click()"));
    browser.wait_for("document.querySelector('#result .outcome')");
}

/// Covers: UI-02
#[test]
fn needs_chromium_each_action_works_and_is_the_humans() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    submitted(&project, "t2");
    project.add_task("t3");
    project.liza_as("coder-1", &["claim-task", "t3", "coder-1"]).ok();
    project.add_task("t4");
    project.add_task("t5");
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    browser.wait_for_text("t1");
    let base = browser.eval("location.href").as_str().unwrap().to_owned();
    let close = "document.querySelector('#result .close').click()";
    let stop = |name: &str| project.root.join(".liza").join(name).exists();

    send(&mut browser, "pause", "");
    wait_for("PAUSE", || stop("PAUSE").then_some(()));
    browser.eval(close);
    send(&mut browser, "resume", "");
    wait_for("no PAUSE", || (!stop("PAUSE")).then_some(()));
    browser.eval(close);
    send(&mut browser, "note-all", "mind the gap");
    browser.eval(close);
    send(&mut browser, "add", "Build a bridge");
    browser.eval(close);
    send(&mut browser, "checkpoint", "");
    wait_for("CHECKPOINT", || stop("CHECKPOINT").then_some(()));
    browser.eval(close);
    send(&mut browser, "resume", "");
    wait_for("no CHECKPOINT", || (!stop("CHECKPOINT")).then_some(()));

    for (task, action, text, status) in [
        ("t1", "reject", "no test for a timeout", "REJECTED"),
        ("t2", "approve", "cat: two lines", "APPROVED"),
        ("t3", "release", "stuck", "UNCLAIMED"),
        ("t4", "replan", "too large", "BLOCKED"),
        ("t5", "note", "use the helper", "UNCLAIMED"),
        ("t4", "answer", "split it", "UNCLAIMED"),
    ] {
        browser.open(&format!("{base}task/{task}"));
        send(&mut browser, action, text);
        let outcome = browser.eval("document.querySelector('#result').innerText").to_string();
        assert!(outcome.contains("Done"), "{action}: {outcome}");
        wait_for(&format!("{task} is {status}"), || {
            (project.status(task) == status || (status == "APPROVED" && project.status(task) == "MERGED"))
                .then_some(())
        });
    }
    browser.open(&base);
    send(&mut browser, "abort", "");
    wait_for("ABORT", || stop("ABORT").then_some(()));
    let state = project.state();
    for text in ["mind the gap", "Build a bridge", "no test for a timeout", "use the helper"] {
        assert!(state.contains(text), "{text}: {state}");
    }
    let log = project.log();
    let humans = log.split("- timestamp").filter(|entry| entry.contains("agent: human")).count();
    assert!(humans >= 12, "{log}");
    browser.check_quiet(web.port());
}

/// Covers: UI-02
#[test]
fn needs_chromium_agents_are_started_and_stopped_on_their_page() {
    let project = TestProject::new();
    project.set_config("roles", "{coder: rehearsal}");
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    let base = browser.eval("location.href").as_str().unwrap().to_owned();
    browser.open(&format!("{base}agents"));
    browser.wait_for_text("No agent is registered");
    browser.eval("document.querySelector('.start-agent details').open = true");
    browser.picture(&target().join("web-pictures/start-agent.png"));
    browser.eval("document.querySelector('form:has([value=start-agent]) select').value = 'coder'");
    send(&mut browser, "start-agent", "");
    browser.wait_for("document.querySelector('#result .outcome.done')");
    assert!(browser.text().contains("liza agent coder --detach"), "{}", browser.text());
    browser.wait_for("document.getElementById('member-coder-1')");
    browser.eval("document.querySelector('#result .close').click()");

    browser.eval("document.querySelector('#member-coder-1 details').open = true");
    browser.picture(&target().join("web-pictures/stop-agent.png"));
    send(&mut browser, "stop-agent", "");
    browser.wait_for("document.querySelector('#result .outcome.done')");
    browser.wait_for("!document.getElementById('member-coder-1')");
    let outcome = browser.eval("document.querySelector('#result').innerText").to_string();
    assert!(outcome.contains("liza deregister coder-1"), "{outcome}");
    let own = |action: &str| format!("agent: coder-1\n  action: {action}");
    wait_for("the agent joined and left", || {
        let log = project.log();
        (log.contains(&own("registered")) && log.contains("action: deregistered")).then_some(())
    });
    browser.check_quiet(web.port());
}

/// Covers: UI-02
#[test]
fn needs_chromium_a_question_is_answered_where_it_is_asked_by_keyboard() {
    let project = rich_project();
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    browser.wait_for("document.querySelector('.needs textarea')");
    // Tab leads to the box, and what happens elsewhere does not disturb what is typed.
    let inside = "document.activeElement?.matches('.needs form.answer textarea')";
    for _ in 0..60 {
        if browser.eval(inside) == true {
            break;
        }
        browser.press("Tab");
    }
    assert_eq!(browser.eval(inside), true, "{}", browser.text());
    browser.enter_text("Yes, with a flag");
    let asked = "Are partial results returned?";
    project.write(".liza/state.yaml", &project.state().replace(asked, "Are partial results ever returned?"));
    project.liza(&["pause"]).ok();
    browser.wait_for("document.querySelector('.state')?.textContent === 'paused'");
    assert_eq!(browser.eval("document.activeElement.value"), "Yes, with a flag");
    browser.press("Tab");
    browser.press("Enter");
    wait_for("the answer", || project.state().contains("Yes, with a flag").then_some(()));
    browser.wait_for("document.querySelector('#result .outcome.done')");
    browser.press("Escape");
    browser.wait_for("!document.querySelector('#result .outcome')");
    browser.check_quiet(web.port());
}

/// A server that an attacker runs on this machine.
struct EvilSite {
    port: u16,
}

impl EvilSite {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let page = "<title>evil</title><body>evil";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all(format!("{head}{page}").as_bytes());
            }
        });
        Self { port }
    }
}

/// Covers: UI-02
#[test]
fn needs_chromium_another_site_cannot_act() {
    let project = TestProject::new();
    let mut web = Web::start(&project);
    let evil = EvilSite::start();
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    browser.wait_for_text("Retry everything");
    let origin = format!("http://127.0.0.1:{}", web.port());
    let act =
        browser.eval("document.querySelector('form').getAttribute('action')").as_str().unwrap().to_owned();
    let board = browser.eval("location.href").as_str().unwrap().to_owned();
    // A page of another port of this machine, in the same browser, that even knows the secret path: the same site, but
    // another origin. It sends a form and asks for the page.
    browser.open(&format!("http://127.0.0.1:{}/", evil.port));
    browser.wait_for_text("evil");
    let attack = format!(
        "fetch('{origin}{act}', {{method: 'POST', body: new URLSearchParams({{action: 'abort'}}), credentials: 'include', mode: 'no-cors'}})\
         .then(() => 'sent', () => 'blocked')"
    );
    // It is sent, whatever the page may see of the answer.
    let seen = browser.eval(&attack);
    assert!(seen == "sent" || seen == "blocked", "{seen}");
    let read = format!("fetch('{board}', {{credentials: 'include'}}).then(() => 'read', () => 'blocked')");
    assert_eq!(browser.eval(&read), "blocked");
    browser.eval(&format!(
        "document.body.innerHTML = '<form method=post action={origin}{act}><input name=action value=abort>'; setTimeout(() => document.forms[0].submit())"
    ));
    browser.wait_for_text("The request comes from another site.");
    assert!(!project.root.join(".liza/ABORT").exists());
    // A name that points to this machine.
    browser.open(&format!("http://evil.example:{}/", web.port()));
    browser.wait_for_text("This server answers to 127.0.0.1 only.");
    // A script in the page itself does not run, and nothing can be loaded from elsewhere.
    browser.open(&board);
    browser.eval("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')");
    let inline = "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s); window.owned ?? 'no'";
    assert_eq!(browser.eval(inline), "no");
    assert_eq!(browser.eval("fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'blocked')"), "blocked");
    let violations = browser.errors.iter().filter(|error| error.contains("Content Security Policy")).count();
    assert!(violations >= 2, "{:?}", browser.errors);
}

/// Covers: UI-02
#[test]
fn needs_chromium_the_page_reports_the_end_of_the_server() {
    let project = TestProject::new();
    let mut web = Web::start(&project);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    browser.wait_for("document.querySelector('#connection.live')");
    assert_eq!(web.end(), 0);
    browser.wait_for("document.querySelector('#connection.lost')");
}

/// What a person has set for their own pager.
const PAGER: [(&str, &str); 3] =
    [("LESS", "-R"), ("PAGER", "touch ../paged; less"), ("GIT_PAGER", "touch ../paged; less")];

/// Covers: AX-18
#[test]
fn needs_script_the_changes_of_a_task_are_on_their_page_whatever_terminal_the_server_has() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let mut web = Web::start_at_terminal(&project, &PAGER);
    let page = web.visitor().page("task/t1/diff");
    assert!(page.contains("+first line") && page.contains("+second line"), "{page}");
    assert!(!project.home().join("paged").exists(), "no pager starts for a page");
}

/// Covers: JU-07
#[test]
fn the_page_of_a_task_has_the_facts_about_its_work() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let mut web = Web::start(&project);
    let page = web.visitor().page("task/t1");
    let facts = project.record("t1").facts.unwrap().lines();
    assert!(page.contains("Facts") && page.contains(&facts[0]), "{page}");
}

/// Covers: JU-02, JU-03
#[test]
fn the_page_of_a_task_says_what_validates_it_and_with_which_result() {
    let project = TestProject::new();
    project.register("coder-1");
    project.register("code-reviewer-1");
    submitted(&project, "t1");
    let claim = |command: &str| {
        project.liza(&["edit-task", "t1", "--validate", command]).ok();
        let _ = project.liza(&["claim-review", "t1", "code-reviewer-1"]);
        Web::start(&project).visitor().page("task/t1")
    };
    let page = claim("test -d specs");
    let commit = project.record("t1").review_commit.unwrap().short().to_owned();
    for row in [("Validated by", "test -d specs"), ("Validation", &format!("passed on {commit}"))] {
        assert!(page.contains(&format!("<dt>{}</dt><dd>{}</dd>", row.0, row.1)), "{row:?}: {page}");
    }
    project.liza(&["release-claim", "t1", "--role", "reviewer", "--force"]).ok();
    let page = claim("echo it is red; exit 7");
    assert!(page.contains(&format!("exit 7 failed with exit status 7, on {commit}\nit is red")), "{page}");
}

/// Covers: AX-18
#[test]
fn needs_chromium_the_changes_of_a_task_are_seen_in_a_browser() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let mut web = Web::start_at_terminal(&project, &PAGER);
    let mut browser = Browser::start(&project);
    browser.open(&web.new_address());
    let base = browser.eval("location.href").as_str().unwrap().to_owned();
    browser.open(&format!("{base}task/t1/diff"));
    browser.wait_for_text("+second line");
    assert!(browser.text().contains("+first line"), "the patch is visible");
    browser.check_quiet(web.port());
}
