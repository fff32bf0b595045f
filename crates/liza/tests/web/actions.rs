//! Actions without a browser: what they run, what waits for what, and what happens when two people act at once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use liza_core::model::{AgentId, Seconds};

use crate::boards::rich_project;
use crate::fixture::Web;
use crate::support::TestProject;
use crate::support::process::wait_for;

/// Covers: UI-02
#[test]
fn two_people_get_the_refusals_that_two_commands_would() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let mut web = Web::start(&project);
    let (one, other) = (web.visitor(), web.visitor());
    let seen = project.record("t1").revision.unwrap().to_string();
    let verdict =
        [("action", "reject"), ("task", "t1"), ("seen", seen.as_str()), ("text", "no test for a timeout")];
    let first = one.act(&verdict);
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(project.status("t1"), "REJECTED");
    let second = other.act(&verdict);
    assert_eq!(second.status, 409, "{second:?}");
    assert!(second.body.contains("READY_FOR_REVIEW") || second.body.contains("revision"), "{second:?}");
    assert_eq!(project.record("t1").review_cycles_total, Some(1));
    assert!(project.log().contains("agent: human"), "{}", project.log());
}

/// Covers: UI-02
#[test]
fn the_board_has_every_open_task() {
    let project = rich_project();
    let mut web = Web::start(&project);
    let board = web.visitor().page("");
    let status = project.liza(&["status", "--json"]).result();
    let ended = ["MERGED", "ABANDONED", "SUPERSEDED"];
    let tasks = status["tasks"].as_array().unwrap();
    let open: Vec<&str> = tasks
        .iter()
        .filter(|task| !ended.contains(&task["status"].as_str().unwrap()))
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    assert!(open.len() > 4, "{open:?}");
    let missing: Vec<&&str> =
        open.iter().filter(|task| !board.contains(&format!("id=\"task-{task}\""))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Covers: UI-02
#[test]
fn a_verdict_is_about_what_the_person_has_seen() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let seen = project.record("t1").revision.unwrap().to_string();
    project.register("code-reviewer-1");
    project.liza_as("code-reviewer-1", &["claim-review", "t1", "code-reviewer-1"]).ok();
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    let stale = visitor.act(&[("action", "approve"), ("task", "t1"), ("seen", &seen)]);
    assert_eq!(stale.status, 409, "{stale:?}");
    assert_eq!(project.status("t1"), "READY_FOR_REVIEW");
    let seen = project.record("t1").revision.unwrap().to_string();
    let fresh = visitor.act(&[("action", "reject"), ("task", "t1"), ("seen", &seen), ("text", "no test")]);
    assert_eq!(fresh.status, 200, "{fresh:?}");
    assert_eq!(project.status("t1"), "REJECTED");
}

/// Covers: UI-02
#[test]
fn a_form_names_an_action_and_never_a_command() {
    let project = TestProject::new();
    project.add_task("t1");
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    for fields in [
        &[("action", "remove")][..],
        &[("action", "suggested"), ("text", "x")],
        &[("need", "liza remove")],
        &[("need", "")],
        &[("action", "answer"), ("task", "none"), ("text", "x")],
        &[("action", "answer"), ("task", "../x"), ("text", "x")],
        &[("action", "answer"), ("task", "t1"), ("text", "  ")],
        &[("action", "approve"), ("task", "t1")],
        &[("task", "t1")],
    ] {
        let answer = visitor.act(fields);
        assert_eq!(answer.status, 409, "{fields:?}: {answer:?}");
    }
    // What a person types is never an option.
    for text in ["--json", "-C /", "- a list"] {
        let noted = visitor.act(&[("action", "note-all"), ("text", text)]);
        assert_eq!(noted.status, 200, "{noted:?}");
    }
    let notes = project.snapshot().journal.human_notes;
    let notes: Vec<&str> = notes.iter().map(|note| note.message.trim()).collect();
    assert_eq!(notes, ["--json", "-C /", "- a list"]);
    // Without a script the answer is a whole page.
    let answer = visitor.act(&[("action", "pause")]);
    assert!(
        answer.body.contains("<!DOCTYPE html>") && answer.body.contains("Back to the board"),
        "{answer:?}"
    );
    assert!(project.root.join(".liza/PAUSE").exists());
}

/// Covers: UI-02
#[test]
fn an_old_page_does_not_stop_a_newer_agent_of_the_same_name() {
    let project = TestProject::new();
    let old = project.register("coder-1").to_string();
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    let shows = |page: &str, generation: &str| {
        visitor.page(page).contains(&format!("name=\"generation\" value=\"{generation}\""))
    };
    for page in ["agents", "agent/coder-1"] {
        assert!(shows(page, &old), "{page}: {}", visitor.page(page));
    }
    project.liza(&["deregister", "coder-1"]).ok();
    let new = project.register("coder-1").to_string();
    wait_for("the server has seen it", || shows("agents", &new).then_some(()));
    let stop = |generation: &str| {
        visitor.act(&[("action", "stop-agent"), ("agent", "coder-1"), ("generation", generation)])
    };
    let stale = stop(&old);
    assert_eq!(stale.status, 409, "{stale:?}");
    assert!(stale.body.contains("coder-1 has registered again"), "{stale:?}");
    assert!(
        project.snapshot().board.agents.ready().unwrap().contains_key(&"coder-1".parse::<AgentId>().unwrap())
    );
    let fresh = stop(&new);
    assert_eq!(fresh.status, 200, "{fresh:?}");
    assert!(project.snapshot().board.agents.ready().unwrap().is_empty());
}

/// A git that hangs in commands with a certain word.
struct HangingGit {
    /// It hangs until this file is removed.
    hold: PathBuf,
    tools: PathBuf,
}

impl HangingGit {
    fn at(home: &Path, word: &str) -> Self {
        let (hold, tools) = (home.join("hold"), home.join("tools"));
        let text = format!(
            "#!/bin/sh\nPATH={real:?}\ncase \"$*\" in *{word}*)\n  echo x >> {hold:?}.reached\n  \
             while [ -e {hold:?} ]; do sleep 0.05; done;;\nesac\nexec git \"$@\"\n",
            real = std::env::var("PATH").unwrap(),
        );
        fs::create_dir(&tools).unwrap();
        fs::write(tools.join("git"), text).unwrap();
        fs::set_permissions(tools.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&hold, "").unwrap();
        Self { hold, tools }
    }

    /// A server whose commands use it.
    fn web(&self, project: &TestProject) -> Web {
        let mut program = project.program();
        program.env("PATH", format!("{}:{}", self.tools.display(), std::env::var("PATH").unwrap()));
        Web::start_program(program)
    }

    /// Waits until so many commands hang.
    fn wait_for(&self, commands: usize) {
        wait_for("git hangs", || {
            let reached = fs::read_to_string(self.hold.with_extension("reached")).ok()?;
            (reached.lines().count() >= commands).then_some(())
        });
    }
}

/// Covers: UI-02
#[test]
fn what_stops_the_team_or_an_agent_does_not_wait_behind_a_slow_start() {
    let project = TestProject::new();
    project.set_config("roles", "{coder: rehearsal}");
    project.register("code-reviewer-1");
    // An agent asks for it before it registers.
    let git = HangingGit::at(project.home(), "GIT_COMMITTER_IDENT");
    let mut web = git.web(&project);
    let visitor = web.visitor();
    let starter = visitor.clone();
    let start = thread::spawn(move || starter.act(&[("action", "start-agent"), ("text", "coder")]));
    git.wait_for(1);
    for action in [
        &[("action", "pause")][..],
        &[("action", "resume")],
        &[("action", "stop-agent"), ("agent", "code-reviewer-1")],
        &[("action", "checkpoint")],
        &[("action", "abort")],
    ] {
        let answer = visitor.act(action);
        assert_eq!(answer.status, 200, "{action:?}: {answer:?}");
        assert!(!start.is_finished(), "{action:?} waited for the start");
    }
    assert!(project.root.join(".liza/ABORT").exists());
    fs::remove_file(git.hold).unwrap();
    start.join().unwrap();
}

/// Covers: UI-02
#[test]
fn pages_that_hang_leave_room_for_actions() {
    let project = TestProject::new();
    project.register("coder-1");
    submitted(&project, "t1");
    let git = HangingGit::at(project.home(), "diff");
    let mut web = git.web(&project);
    let visitor = web.visitor();
    let open = |_| {
        let (request, port) = (visitor.get("task/t1/diff"), visitor.port);
        thread::spawn(move || request.send(port))
    };
    let pages: Vec<_> = (0..16).map(open).collect();
    git.wait_for(4);
    let paused = visitor.act(&[("action", "pause")]);
    assert_eq!(paused.status, 200, "{paused:?}");
    assert!(pages.iter().all(|page| !page.is_finished()), "pause waited for a page");
    assert!(project.root.join(".liza/PAUSE").exists());
    fs::remove_file(git.hold).unwrap();
    for page in pages {
        assert_eq!(page.join().unwrap().status, 200);
    }
}

/// A task whose work waits for a review; coder-1 is registered.
pub(crate) fn submitted(project: &TestProject, task: &str) {
    project.add_task(task);
    project.liza_as("coder-1", &["claim-task", task, "coder-1"]).ok();
    let tree = project.tree(task);
    std::fs::write(tree.join("work.txt"), "first line\nsecond line\n").unwrap();
    project.git_at(&tree, &["add", "."]);
    project.git_at(&tree, &["commit", "-qm", "work"]);
    let commit = project.git_at(&tree, &["rev-parse", "HEAD"]);
    project
        .liza_as("coder-1", &["pre-check", task, "--intent", "do it", "--validation", "cat work.txt"])
        .ok();
    project.liza_as("coder-1", &["submit-for-review", task, &commit]).ok();
}

/// Covers: UI-02, UI-03
#[test]
fn a_held_program_can_be_tried_now_from_a_page() {
    let project = TestProject::new();
    project.add_task("t1");
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    let nobody = "No agent is registered";
    assert!(visitor.page("").contains(nobody) && visitor.page("agents").contains(nobody));
    project.register("coder-1");
    let (since, until) = (liza_team::project::now(), liza_team::project::now() + Seconds(900));
    let hold = format!(
        "\nsprint:\n  clients: {{codex: {{hold: {{kind: quota, message: full, since: {since}, until: {until}}}}}}}\n"
    );
    project.write(".liza/state.yaml", &project.state().replacen("\nsprint:\n", &hold, 1));
    let held = wait_for("the hold is shown", || Some(visitor.page("")).filter(|page| page.contains("HELD")));
    assert!(held.contains(">Try now</button>") && held.contains(">Pause</button>"), "{held}");
    assert!(!held.contains(nobody), "{held}");
    assert!(!visitor.page("agents").contains(nobody));
    let tried = visitor.act(&[("action", "resume")]);
    assert_eq!(tried.status, 200, "{tried:?}");
    assert!(project.snapshot().board.sprint.ready().unwrap().clients.is_empty());
    wait_for("it is no longer held", || (!visitor.page("").contains("Try now")).then_some(()));
}

/// The values of an attribute in a page.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let begin = format!(" {attribute}=\"");
    page.split(&begin).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Covers: AX-25
#[test]
fn no_two_fields_have_one_id_and_each_label_has_its_own_field() {
    let project = rich_project();
    let mut web = Web::start(&project);
    let visitor = web.visitor();
    let mut most = 0;
    for address in
        ["", "tasks", "task/retry-users", "task/retry-orders", "task/retry-docs", "agent/coder-1", "log"]
    {
        let page = visitor.page(address);
        let ids = values(&page, "id");
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{address}: {ids:?}");
        let mut labels = values(&page, "for");
        assert!(labels.iter().all(|label| ids.contains(label)), "{address}: {labels:?}");
        labels.sort_unstable();
        let labelled = labels.len();
        labels.dedup();
        assert_eq!(labels.len(), labelled, "{address}: {labels:?}");
        // Two fields of one form have one name; what differs is behind the key of the form.
        let forms = page.split("<form").map(|form| form.matches(" name=\"text\"").count());
        most = most.max(forms.max().unwrap_or(0));
    }
    assert!(most > 1, "there is a form with two fields");
}
