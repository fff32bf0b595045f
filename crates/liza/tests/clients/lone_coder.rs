//! One coder with a real program, a scripted model, and faults: what is shown, who is blamed, and what is left behind.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use liza_core::model::{Status, TaskRecord};
use serde_json::{Value, json};

use crate::fixture::{Client, Scripted, liza_of};
use crate::model_server::{Conversation, Move};
use crate::support::process::{Running, wait_for};

/// A key that must not be stored anywhere.
const KEY: &str = "very-secret-value-0123456789abcdef";

/// A project with one task and one coder.
struct Lone {
    scripted: Scripted,
    client: Client,
    mark: String,
}

impl Lone {
    fn new(
        client: Client,
        config: &[(&str, &str)],
        brain: impl Fn(&Conversation) -> Move + Send + Sync + 'static,
    ) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let scripted = Scripted::new(brain);
        // The mark by which processes of this test are found.
        scripted.project.liza(&["config", "pass_env", "[LIZA_TEST_MARK]"]).ok();
        for (key, value) in config {
            scripted.project.liza(&["lock", "write", &format!("config.{key}"), value]).ok();
        }
        scripted.project.add_task("t1");
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { scripted, client, mark }
    }

    fn start(&self) -> Running {
        let mut liza = self.scripted.liza(&[self.client]);
        liza.args(["agent", "coder", "--cli", self.client.name()]);
        liza.env("LIZA_TEST_MARK", &self.mark).env("PROJECT_API_KEY", KEY);
        Running::start(&self.scripted.project, liza)
    }

    fn task(&self) -> TaskRecord {
        self.scripted.project.record("t1")
    }

    fn status_page(&self) -> String {
        self.scripted.project.liza(&["status"]).ok().to_owned()
    }

    /// Waits until `status` shows this.
    #[track_caller]
    fn until_shown(&self, coder: &Running, text: &str) -> String {
        let shown = || {
            let page = self.status_page();
            page.contains(text).then_some(page)
        };
        let found = crate::support::process::wait_up_to(std::time::Duration::from_secs(120), shown);
        found.unwrap_or_else(|| panic!("no {text:?} in\n{}\n{}", self.status_page(), coder.output()))
    }

    /// The task is as before, and no session was counted against it.
    #[track_caller]
    fn not_blamed(&self) {
        let task = self.task();
        assert_eq!((task.crashes, task.idle_exits), (None, None), "{task:?}");
        assert_ne!(task.status, Some(Status::Blocked));
        wait_for("the session is not charged", || {
            let sessions = self.scripted.project.snapshot().board.sprint().unwrap().sessions.clone();
            (sessions.tasks.values().sum::<u32>() == 0).then_some(())
        });
    }

    /// What its sessions printed.
    fn outputs(&self) -> String {
        let folder = self.scripted.project.root.join(".liza/agent-outputs");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.map(|file| fs::read_to_string(file.path()).unwrap_or_default()).collect()
    }

    /// The processes that this test has started and that still run.
    fn processes(&self) -> Vec<(u32, String)> {
        let variable = format!("LIZA_TEST_MARK={}", self.mark);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let found = entries.filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let is_ours = environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes());
            let line = fs::read(entry.path().join("cmdline")).ok().filter(|line| !line.is_empty())?;
            is_ours.then(|| (id, String::from_utf8_lossy(&line).replace('\0', " ")))
        });
        found.collect()
    }

    #[track_caller]
    fn nothing_runs(&self) {
        wait_for("nothing runs on", || self.processes().is_empty().then_some(()));
    }
}

/// Commits and submits.
const WORK: &str = r#"
echo "a line" >> t1.txt; git add -A; git commit -qm "add t1";
LIZA pre-check t1 --intent "write the file" --validation "cat t1.txt" && LIZA submit-for-review t1 HEAD
"#;

fn run(conversation: &Conversation, script: &str) -> Move {
    Move::Run(script.replace("LIZA ", &format!("{} ", liza_of(conversation))))
}

/// Does the work in one step.
fn work(conversation: &Conversation) -> Move {
    match conversation.tool_results {
        0 => run(conversation, WORK),
        _ => Move::Say("Done.".to_owned()),
    }
}

/// The same failure for ever, until it is over.
fn fails_until(
    over: Arc<Mutex<bool>>,
    fault: Move,
) -> impl Fn(&Conversation) -> Move + Send + Sync + 'static {
    move |conversation| if *over.lock().unwrap() { work(conversation) } else { fault.clone() }
}

fn error(client: Client, status: u16, kind: &str, message: &str, headers: &[(&'static str, &str)]) -> Move {
    let body = match client {
        Client::Claude => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Client::Codex
        | Client::Goose
        | Client::Gemini
        | Client::Opencode
        | Client::Copilot
        | Client::Qwen
        | Client::Vibe => {
            json!({"error": {"type": kind, "code": kind, "message": message, "resets_at": resets(headers)}})
        }
    };
    Move::Fail(status, headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(), body)
}

fn resets(headers: &[(&'static str, &str)]) -> Value {
    let found = headers.iter().find(|(name, _)| *name == "retry-after");
    let seconds = found.and_then(|(_, value)| value.parse::<i64>().ok());
    seconds.map_or(Value::Null, |seconds| Value::from(liza_team::project::now().unix() + seconds))
}

/// The provider refuses the key: the client stops at once, and says what to do.
fn unauthorized(client: Client) {
    let fault = error(client, 401, "invalid_api_key", "Incorrect API key provided", &[]);
    let over = Arc::new(Mutex::new(false));
    let lone = Lone::new(client, &[], fails_until(Arc::clone(&over), fault));
    let mut coder = lone.start();
    assert_eq!(coder.wait(), 1, "{}", coder.output());
    let page = lone.status_page();
    assert!(page.contains("CLIENT HELD") && page.contains("no valid login"), "{page}\n{}", coder.output());
    let login = match client {
        Client::Claude => "Run claude /login",
        // Its provider here has a key of its own.
        Client::Codex => "Set SCRIPTED_API_KEY",
        Client::Goose => "Run goose configure",
        Client::Gemini => "Run gemini",
        Client::Opencode => "Run opencode auth login",
        Client::Copilot => "Run copilot login",
        Client::Qwen => "Run qwen",
        Client::Vibe => "Run vibe --setup",
    };
    assert!(page.replace("\n     ", " ").contains(login), "{page}");
    lone.not_blamed();
    lone.nothing_runs();
    *over.lock().unwrap() = true;
    let mut coder = lone.start();
    wait_for("it continues after the login", || {
        (lone.task().status == Some(Status::ReadyForReview)).then_some(())
    });
    coder.stop();
}

/// A limit of the account: the client waits until its end.
fn limited(client: Client, headers: &[(&'static str, &str)], message: &str, expected: &[&str]) {
    let kind = if client == Client::Claude { "rate_limit_error" } else { "usage_limit_reached" };
    let fault = error(client, 429, kind, message, headers);
    let over = Arc::new(Mutex::new(false));
    let lone = Lone::new(client, &[], fails_until(Arc::clone(&over), fault));
    let mut coder = lone.start();
    let page = lone.until_shown(&coder, "CLIENT HELD");
    assert!(page.contains("usage limit reached"), "{page}");
    assert!(
        expected.iter().any(|time| page.contains(time)),
        "{page}\n{}\n{}",
        coder.output(),
        lone.outputs()
    );
    lone.not_blamed();
    *over.lock().unwrap() = true;
    lone.scripted.project.liza(&["resume"]).ok();
    wait_for("it continues", || (lone.task().status == Some(Status::ReadyForReview)).then_some(()));
    coder.stop();
    lone.nothing_runs();
}

/// A model that never answers is an alarm, and the session ends at its limit.
fn silent(client: Client) {
    let over = Arc::new(Mutex::new(false));
    let config = [("quiet_limit", "10"), ("session_limit", "25")];
    let lone = Lone::new(client, &config, fails_until(Arc::clone(&over), Move::Hang));
    let mut coder = lone.start();
    let page = lone.until_shown(&coder, "QUIET SESSION");
    assert!(page.contains("liza tail coder-1"), "{page}");
    *over.lock().unwrap() = true;
    coder.wait_for_output("it ran too long");
    wait_for("the next session works", || (lone.task().status == Some(Status::ReadyForReview)).then_some(()));
    coder.stop();
    lone.nothing_runs();
}

/// A conversation that does not fit ends the session with what happened; it does not loop.
fn overflow(client: Client) {
    let message = match client {
        Client::Claude => "prompt is too long: 210000 tokens > 200000 maximum",
        Client::Codex
        | Client::Goose
        | Client::Gemini
        | Client::Opencode
        | Client::Copilot
        | Client::Qwen
        | Client::Vibe => "Your input exceeds the context window of this model.",
    };
    let kind = if client == Client::Claude { "invalid_request_error" } else { "context_length_exceeded" };
    let fault = error(client, 400, kind, message, &[]);
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let lone = Lone::new(client, &[("max_crashes", "1"), ("max_idle_exits", "1")], move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        fault.clone()
    });
    let mut coder = lone.start();
    wait_for("the task is blocked", || (lone.task().status == Some(Status::Blocked)).then_some(()));
    let ended = lone.task().events().rev().find(|event| event.event == "session_ended").cloned().unwrap();
    assert_eq!(
        ended.text("fault").as_deref(),
        Some("context_full"),
        "{ended:?}\n{}\n{}",
        coder.output(),
        lone.outputs()
    );
    assert!(asked.load(Ordering::Relaxed) < 100, "{} requests", asked.load(Ordering::Relaxed));
    coder.stop();
    lone.nothing_runs();
}

/// The client is killed while its tool runs: the tool ends too, and the next session does the work.
fn killed(client: Client) {
    let sessions = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&sessions);
    let lone = Lone::new(client, &[], move |conversation| {
        let mut sessions = seen.lock().unwrap();
        if conversation.tool_results == 0 {
            *sessions += 1;
        }
        if *sessions == 1 {
            Move::Run("touch started; exec tail -f /dev/null".to_owned())
        } else {
            work(conversation)
        }
    });
    let mut coder = lone.start();
    let tree = lone.scripted.project.tree("t1");
    wait_for("the tool runs", || tree.join("started").exists().then_some(()));
    let program = client.name();
    let is_client = |line: &str| {
        let name = line.split(' ').next().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().starts_with(program)
    };
    let victims: Vec<u32> =
        lone.processes().into_iter().filter(|(_, line)| is_client(line)).map(|(id, _)| id).collect();
    assert!(!victims.is_empty(), "{:?}", lone.processes());
    for id in victims {
        crate::support::process::send_signal("KILL", &id.to_string());
    }
    wait_for("the next session works", || (lone.task().status == Some(Status::ReadyForReview)).then_some(()));
    assert!(!lone.processes().iter().any(|(_, line)| line.contains("tail -f")), "{:?}", lone.processes());
    let crash = lone.task().events().find(|event| event.event == "session_ended").cloned().unwrap();
    assert!(crash.text("end").is_some_and(|end| end.contains("signal 9")), "{crash:?}\n{}", coder.output());
    coder.stop();
    lone.nothing_runs();
}

/// A process that the session left behind ends with it.
fn left_behind(client: Client) {
    let lone = Lone::new(client, &[], |conversation| match conversation.tool_results {
        0 => Move::Run("setsid tail -f /dev/null > /dev/null 2>&1 < /dev/null & echo started".to_owned()),
        1 => run(conversation, WORK),
        _ => Move::Say("Done.".to_owned()),
    });
    let mut coder = lone.start();
    wait_for("it is submitted", || (lone.task().status == Some(Status::ReadyForReview)).then_some(()));
    wait_for("what it left behind has ended", || {
        (!lone.processes().iter().any(|(_, line)| line.contains("tail -f"))).then_some(())
    });
    coder.stop();
    lone.nothing_runs();
}

/// A client that ends well and does nothing blocks its task at the limit, with its last words.
fn idle(client: Client) {
    let lone =
        Lone::new(client, &[("max_idle_exits", "2")], |_| Move::Say("I have nothing to do.".to_owned()));
    let mut coder = lone.start();
    wait_for("the task is blocked", || (lone.task().status == Some(Status::Blocked)).then_some(()));
    let page = lone.status_page();
    assert!(page.contains("BLOCKED") && page.contains("I have nothing to do."), "{page}\n{}", coder.output());
    let sessions = lone.task().events().filter(|event| event.event == "session_ended").count();
    assert_eq!(sessions, 2);
    coder.stop();
    lone.nothing_runs();
}

/// A session that committed without submitting finds in its next prompt what is missing.
fn not_submitted(client: Client) {
    let prompts: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&prompts);
    let lone = Lone::new(client, &[], move |conversation| {
        // A program that can resumes its conversation, which then has both prompts.
        let mut prompts = seen.lock().unwrap();
        let is_nudge = conversation.text.contains("NOT SUBMITTED: a");
        if prompts.len() == usize::from(is_nudge) {
            prompts.push(conversation.text.clone());
        }
        let commit = "echo x > t1.txt; git add -A; git commit -qm half";
        let submit =
            "LIZA pre-check t1 --intent x --validation 'cat t1.txt' && LIZA submit-for-review t1 HEAD";
        let is_resumed = conversation.text.matches("ROLE: Coder").count() > 1;
        match (is_nudge, conversation.tool_results - usize::from(is_resumed)) {
            (false, 0) => Move::Run(commit.to_owned()),
            (true, 0) => run(conversation, submit),
            _ => Move::Say("Done.".to_owned()),
        }
    });
    let mut coder = lone.start();
    wait_for("it is submitted", || (lone.task().status == Some(Status::ReadyForReview)).then_some(()));
    let prompts = prompts.lock().unwrap().clone();
    assert_eq!(prompts.len(), 2);
    assert!(
        !prompts[0].contains("NOT SUBMITTED: a") && prompts[1].contains("NOT SUBMITTED: a"),
        "{}",
        prompts[1]
    );
    coder.stop();
}

/// After a rejection the conversation continues: the model sees what it did before.
fn resumes(client: Client) {
    let lone = Lone::new(client, &[("resume_conversation", "true")], |conversation| {
        let prompts = conversation.text.matches("ROLE: Coder").count();
        match (prompts, conversation.tool_results) {
            (1, 0) => run(conversation, WORK),
            (2, 1) => run(conversation, &WORK.replace("a line", "a line more")),
            _ => Move::Say("Done.".to_owned()),
        }
    });
    let mut coder = lone.start();
    let submitted = || {
        wait_for("it is submitted", || (lone.task().status == Some(Status::ReadyForReview)).then_some(()));
        lone.task().review_commit.unwrap()
    };
    let first = submitted();
    wait_for("its session is recorded", || {
        lone.task().events().find(|event| event.event == "session_ended")?.text("conversation")
    });
    let project = &lone.scripted.project;
    project
        .liza(&["submit-verdict", "t1", "REJECTED", "[blocker] t1.txt:1 has one line instead of two"])
        .ok();
    wait_for("it is fixed", || (lone.task().review_commit.as_ref() != Some(&first)).then_some(()));
    assert_ne!(submitted(), first);
    assert_eq!(project.git(&["show", "task/t1:t1.txt"]), "a line\na line more", "{}", coder.output());
    coder.stop();
    lone.nothing_runs();
}

/// A key that a session prints is stored nowhere.
fn prints_a_key(client: Client) {
    let lone = Lone::new(client, &[], |conversation| match conversation.tool_results {
        0 => Move::Run(format!("echo {KEY}; echo PROJECT_API_KEY={KEY} >&2")),
        1 => run(conversation, WORK),
        _ => Move::Say(format!("I used {KEY}.")),
    });
    let mut coder = lone.start();
    wait_for("it is submitted", || (lone.task().status == Some(Status::ReadyForReview)).then_some(()));
    coder.stop();
    let found = files_with(&lone.scripted.project.root.join(".liza"), KEY);
    assert_eq!(found, Vec::<String>::new());
    assert!(!coder.output().contains(KEY));
    let tail = lone.scripted.project.liza(&["tail", "coder-1"]);
    assert!(!tail.stdout.contains(KEY), "{}", tail.stdout);
}

/// The files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text)) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// One test of each fault for each client.
macro_rules! faults {
    ($($client:ident { $($(#[$meta:meta])* $name:ident => $run:expr;)+ })+) => {
        $($($(#[$meta])* #[test] fn $name() { ($run)(Client::$client) })+)+
    };
}

const HOURS: [&str; 2] = ["tried again in 1h", "tried again in 2h"];
const SOON: [&str; 2] = ["tried again in 30s", "tried again in 2"];

faults! {
    Codex {
        /// Covers: SE-03, SE-11
        needs_codex_a_wrong_key_stops_it_and_no_task_is_blamed => unauthorized;
        /// Covers: SE-04, SE-11
        needs_codex_a_limit_with_its_end_is_waited_for => |client| limited(client, &[("retry-after", "7200")], "You've hit your usage limit. Try again in 2 hours.", &HOURS);
        /// Covers: SE-04, SE-11
        needs_codex_a_limit_without_its_end_is_tried_again => |client| limited(client, &[], "The usage limit has been reached", &SOON);
        /// Covers: SE-07, SE-11
        needs_codex_a_silent_model_is_an_alarm => silent;
        /// Covers: SE-01, SE-11
        needs_codex_a_full_context_ends_the_session => overflow;
        /// Covers: SE-11
        needs_codex_a_kill_during_a_tool_leaves_nothing => killed;
        /// Covers: SE-11
        needs_codex_what_it_leaves_behind_ends_with_it => left_behind;
        /// Covers: SE-11
        needs_codex_nothing_done_blocks_the_task_at_the_limit => idle;
        /// Covers: SE-11, SE-13
        needs_codex_a_commit_without_submission_is_in_the_next_prompt => not_submitted;
        /// Covers: SE-01, SE-11
        needs_codex_a_printed_key_is_stored_nowhere => prints_a_key;
        /// Covers: SE-10, SE-11
        needs_codex_a_conversation_is_resumed_after_a_rejection => resumes;
    }
    Goose {
        /// Covers: SE-03, SE-11
        needs_goose_a_wrong_key_stops_it_and_no_task_is_blamed => unauthorized;
        /// Covers: SE-04, SE-11
        needs_goose_a_limit_without_its_end_is_tried_again => |client| limited(client, &[], "Rate limit reached", &SOON);
        /// Covers: SE-01, SE-11
        needs_goose_a_full_context_ends_the_session => overflow;
        /// Covers: SE-11
        needs_goose_a_kill_during_a_tool_leaves_nothing => killed;
        /// Covers: SE-01, SE-11
        needs_goose_a_printed_key_is_stored_nowhere => prints_a_key;
    }
    Claude {
        /// Covers: SE-03, SE-11
        needs_claude_a_wrong_key_stops_it_and_no_task_is_blamed => unauthorized;
        /// Covers: SE-04, SE-11
        needs_claude_a_limit_without_its_end_is_tried_again => |client| limited(client, &[("retry-after", "7200")], "This request would exceed your rate limit", &SOON);
        /// Covers: SE-01, SE-11
        needs_claude_a_full_context_ends_the_session => overflow;
        /// Covers: SE-11
        needs_claude_a_kill_during_a_tool_leaves_nothing => killed;
        /// Covers: SE-11
        needs_claude_what_it_leaves_behind_ends_with_it => left_behind;
        /// Covers: SE-01, SE-11
        needs_claude_a_printed_key_is_stored_nowhere => prints_a_key;
        /// Covers: SE-10, SE-11
        needs_claude_a_conversation_is_resumed_after_a_rejection => resumes;
    }
    Copilot {
        /// Covers: AX-34, SE-03
        needs_copilot_a_wrong_key_stops_it_and_no_task_is_blamed => unauthorized;
    }
    Qwen {
        /// Covers: AX-34, SE-03
        needs_qwen_a_wrong_key_stops_it_and_no_task_is_blamed => unauthorized;
    }
    Vibe {
        /// Covers: AX-30, SE-03
        needs_vibe_a_wrong_key_stops_it_and_no_task_is_blamed => unauthorized;
        /// Covers: AX-30, SE-11
        needs_vibe_a_kill_during_a_tool_leaves_nothing => killed;
    }
}
