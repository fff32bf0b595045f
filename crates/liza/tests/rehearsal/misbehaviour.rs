//! Every misbehaviour, seen from outside: by signal, process, file or refusal.

use std::io::{BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;

use rustix::process::{Pid, Signal, getsid, kill_process, test_kill_process};

use crate::cast::{Player, ended};
use crate::support::TestProject;

fn claimed(project: &TestProject) -> Player<'_> {
    project.add_task("core");
    let coder = Player::new(project, "coder-1");
    coder.claim("core");
    coder
}

fn playbook(misbehaviour: &str) -> String {
    format!("coder:\n- do:\n  - misbehave: {misbehaviour}\n  exit: 0\n")
}

fn start(project: &TestProject, coder: &Player<'_>, misbehaviour: &str) -> Child {
    let mut session = coder.session(&coder.code_prompt("core"), &playbook(misbehaviour));
    session.current_dir(project.tree("core")).spawn().unwrap()
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

/// Reads lines until one has that text.
fn until(reader: &mut impl std::io::BufRead, text: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "ended without printing {text:?}");
        if line.contains(text) {
            return line;
        }
    }
}

/// Covers: AG-15
#[test]
fn it_crashes_by_a_signal_and_leaves_no_core_file() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let status = start(&project, &coder, "crash").wait().unwrap();
    assert_eq!(status.signal(), Some(6));
    assert_eq!(project.git_at(&project.tree("core"), &["status", "--porcelain"]), "");
}

/// Covers: AG-15
#[test]
fn it_hangs_until_sigterm() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let mut child = start(&project, &coder, "hang");
    until(&mut BufReader::new(child.stderr.take().unwrap()), "hanging");
    assert!(child.try_wait().unwrap().is_none());
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

/// Covers: AG-15
#[test]
fn it_ignores_sigterm() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let mut child = start(&project, &coder, "ignore-sigterm");
    let line = until(&mut BufReader::new(child.stderr.take().unwrap()), "hanging");
    assert_eq!(line.trim(), format!("hanging {}", child.id()), "the same process that was started");
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    // Where the system shows which signals are ignored, check it there.
    if let Ok(facts) = std::fs::read_to_string(format!("/proc/{}/status", child.id())) {
        let ignored = facts.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        assert_ne!(ignored & (1 << 14), 0, "{facts}");
    }
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

/// Covers: AG-15
#[test]
fn it_leaves_children_in_sessions_of_their_own() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let mut child = start(&project, &coder, "{leave-children: 2}");
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut left = Vec::new();
    for _ in 0..2 {
        let line = until(&mut said, "leaves child");
        left.push(pid(line.split(' ').nth(2).unwrap().parse().unwrap()));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for child in left {
        assert!(test_kill_process(child).is_ok(), "it outlives the session");
        assert_eq!(getsid(Some(child)).unwrap(), child);
        kill_process(child, Signal::KILL).unwrap();
    }
    // They held the session's output open; only now does it end.
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
}

/// Covers: AG-15
#[test]
fn it_writes_outside_its_worktree() {
    let project = TestProject::new();
    let coder = claimed(&project);
    ended(&coder.code("core", &playbook("{write-outside: {path: NOTES.txt, text: hello}}")), 0);
    assert_eq!(project.read("NOTES.txt"), "hello");
    assert_eq!(project.git_at(&project.tree("core"), &["status", "--porcelain"]), "");
}

/// Covers: AG-15
#[test]
fn it_floods_its_output() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let run = coder.code("core", &playbook("{flood: 2048}"));
    assert!(ended(&run, 0).len() >= 2048 * 1024);
}

/// Covers: AG-15, AG-08
#[test]
fn it_ends_without_doing_anything() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let before = project.state();
    ended(&coder.code("core", "coder:\n- exit: 0\n"), 0);
    ended(&coder.code("core", "coder:\n- exit: 17\n"), 17);
    assert_eq!(project.state(), before);
}

/// Covers: AG-15, AG-12
#[test]
fn it_runs_a_command_that_its_role_may_not_run() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let run = coder.code("core", &playbook("{out-of-role: [submit-verdict, \"{task}\", APPROVED]}"));
    let said = ended(&run, 0);
    assert!(said.contains("$ liza submit-verdict core APPROVED") && said.contains("exit 1"), "{said}");
    assert_eq!(project.status("core"), "CLAIMED");
}

/// Covers: AG-15, CL-10
#[test]
fn it_uses_an_old_generation() {
    let project = TestProject::new();
    let coder = claimed(&project);
    let block = "[mark-blocked, \"{task}\", --reason, x, --question, y]";
    let run = coder.code("core", &playbook(&format!("{{old-generation: {block}}}")));
    let said = ended(&run, 0);
    assert!(said.contains("$ liza mark-blocked core") && said.contains("exit 42"), "{said}");
    assert_eq!(project.record("core").status.unwrap().to_string(), "CLAIMED");
}
