//! Invalid files: a clear error with its position, nothing lost, no panic.

use std::os::unix::fs::PermissionsExt;
use std::process::Command as Process;

use liza_core::model::Refusal;
use liza_store::{Store, StoreError};

use crate::support::*;

const SMALL: &str = "\
version: 1
revision: 3
goal: { id: goal-1, description: d, status: IN_PROGRESS }
tasks:
  - id: one
    description: \"a\\tb\"
    status: DRAFT
    priority: 2
    created: 2025-01-17T14:00:00Z
    history:
      - { time: 2025-01-17T14:00:00Z, event: created }
agents: {}
config: {}
";

/// The error of a write to a file with this text. Checks that nothing changed.
fn refused(name: &str, text: &[u8]) -> StoreError {
    let project = Project::empty(name);
    std::fs::write(project.file("state.yaml"), text).unwrap();
    let error = project.submit(note("x")).expect_err(name);
    assert_eq!(std::fs::read(project.file("state.yaml")).unwrap(), text, "{name} was changed");
    assert!(project.log().is_empty(), "{name} was logged");
    assert!(!project.names().iter().any(|file| file.contains("tmp")), "{name} left {:?}", project.names());
    error
}

fn position_of(error: &StoreError) -> (u32, u32) {
    match error {
        StoreError::Broken(fault) => {
            fault.position.map_or((0, 0), |position| (position.line, position.column))
        }
        other => panic!("{other:?}"),
    }
}

/// Covers: BB-07
#[test]
fn a_truncated_file_is_refused_unless_it_has_all_sections() {
    let project = Project::empty("cut");
    for cut in 0..SMALL.len() {
        let text = &SMALL[..cut];
        project.write(text);
        let _ = std::fs::remove_file(project.file("state.yaml.lock"));
        match project.submit(note("x")) {
            Ok(_) => {
                // Long enough: all sections are there.
                assert!(text.contains("config:"), "accepted at {cut}:\n{text}");
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Broken(_)), "{cut}: {error:?}");
                assert_eq!(project.text(), text, "changed at {cut}");
            }
        }
    }
}

/// Covers: BB-05
#[test]
fn a_missing_section_is_reported() {
    for section in ["version", "goal", "tasks", "agents", "config"] {
        let text: String = SMALL.replace(&format!("{section}:"), &format!("x_{section}:"));
        let error = refused(section, text.as_bytes());
        assert!(error.to_string().contains(&format!("the section {section:?} is missing")), "{error}");
    }
}

/// Covers: BB-07
#[test]
fn a_syntax_error_has_file_line_and_column() {
    let cases: [(&str, String, (u32, u32)); 6] = [
        ("bracket", SMALL.replace("agents: {}", "agents: {"), (12, 9)),
        ("tab", SMALL.replace("    status: DRAFT", "\tstatus: DRAFT"), (7, 1)),
        ("indent", SMALL.replace("    status: DRAFT", "   status: DRAFT"), (7, 4)),
        ("twice", SMALL.replace("    priority: 2", "    status: DRAFT"), (8, 5)),
        ("second", format!("{SMALL}---\na: 1\n"), (14, 1)),
        ("list", "- a\n".to_owned(), (1, 1)),
    ];
    for (name, text, position) in cases {
        let error = refused(name, text.as_bytes());
        assert_eq!(position_of(&error).0, position.0, "{name}: {error}");
        assert!(error.to_string().contains("state.yaml:"), "{error}");
    }
    let error = refused("bytes", &[SMALL.as_bytes(), b"x: \xff\n"].concat());
    assert_eq!(position_of(&error), (14, 4), "{error}");
    assert!(error.to_string().contains("UTF-8"));
}

/// Covers: BB-07, IV-16
#[test]
fn an_invalid_value_is_a_fault_of_its_task_only() {
    let text = SMALL.replace("status: DRAFT", "status: DOING").replace("priority: 2", "priority: high");
    let project = Project::with_text("wrong", &text);
    let found: Vec<String> =
        project.store().validate(now()).unwrap().iter().map(ToString::to_string).collect();
    let reported = |part: &str| found.iter().any(|line| line.starts_with("one: ") && line.contains(part));
    assert!(reported("DOING") && reported("UNCLAIMED") && reported("line 7, column 13"), "{found:#?}");
    assert!(reported("whole number") && reported("line 8, column 15"), "{found:#?}");
    project.run(register("coder-1"));
    project.run(heartbeat("coder-1"));
    let edit = liza_core::protocol::TaskEdit { priority: Some(1), ..Default::default() };
    let refusal =
        project.submit(liza_core::Command::from(liza_core::protocol::EditTask { task: task("one"), edit }));
    assert!(matches!(refusal, Err(StoreError::Refused(_))), "{refusal:?}");
    assert!(project.text().contains("status: DOING\n    priority: high\n"));
    // A lazy view has the same faults.
    let found_again: Vec<String> =
        project.store().validate(now()).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), found_again.len());
}

/// Covers: BB-07, IV-13
#[test]
fn a_duplicate_task_id_is_reported_and_the_first_task_is_used() {
    let second = "  - id: one\n    description: other\n    status: DRAFT\nagents: {}";
    let project = Project::with_text("twice", &SMALL.replace("agents: {}", second));
    let state = project.store().snapshot().unwrap();
    assert_eq!(state.board.tasks.len(), 1);
    assert!(
        state.journal.faults.iter().any(|fault| fault.message.contains("twice")),
        "{:?}",
        state.journal.faults
    );
    project.run(liza_core::Command::from(liza_core::protocol::AbandonTask {
        task: task("one"),
        reason: "x".to_owned(),
    }));
    assert!(project.text().contains("description: other\n    status: DRAFT\n"), "{}", project.text());
}

/// Covers: BB-08
#[test]
fn a_file_of_a_newer_version_is_not_written() {
    let error = refused("newer", SMALL.replace("version: 1", "version: 3").as_bytes());
    assert!(matches!(error, StoreError::NewerVersion { found: 3, known: 2, .. }), "{error:?}");
    let error = refused("word", SMALL.replace("version: 1", "version: one").as_bytes());
    assert!(error.to_string().contains("version"), "{error}");
}

/// Covers: BB-07
#[test]
fn a_file_with_an_alias_bomb_is_refused() {
    let mut text = SMALL.to_owned() + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for n in 1..10 {
        text += &format!("a{n}: &a{n} [{}]\n", [format!("*a{}", n - 1).as_str(); 10].join(", "));
    }
    let error = refused("bomb", text.as_bytes());
    assert!(error.to_string().contains("aliases"), "{error}");
}

/// Covers: BB-07
#[test]
fn a_file_of_fifty_megabytes_can_be_written() {
    let filler = format!("# {}\n", "x".repeat(1000)).repeat(50_000);
    let project = Project::with_text("large", &format!("{SMALL}{filler}"));
    project.run(note("x"));
    project.run(note("y"));
    assert!(std::fs::metadata(project.file("state.yaml")).unwrap().len() > 50_000_000);
    assert_eq!(project.store().snapshot().unwrap().journal.human_notes.len(), 2);
}

/// Covers: BB-07
#[test]
fn missing_files_and_folders_with_their_names_are_reported() {
    let project = Project::empty("folders");
    assert!(matches!(Store::open(&project.root), Err(StoreError::Missing { .. })));
    std::fs::create_dir(project.file("state.yaml")).unwrap();
    let error = project.submit(note("x")).unwrap_err();
    assert!(matches!(&error, StoreError::Io { action: "read", .. }), "{error:?}");
    std::fs::remove_dir(project.file("state.yaml")).unwrap();

    project.write(SMALL);
    std::fs::remove_file(project.file("state.yaml.lock")).unwrap();
    std::fs::create_dir(project.file("state.yaml.lock")).unwrap();
    let error = project.submit(note("x")).unwrap_err();
    assert!(matches!(&error, StoreError::Io { action: "open the lock file", .. }), "{error:?}");
    assert_eq!(project.text(), SMALL);
    std::fs::remove_dir(project.file("state.yaml.lock")).unwrap();

    std::fs::create_dir(project.file("log.yaml")).unwrap();
    let error = project.submit(note("x")).unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }), "{error:?}");
    assert_eq!(project.text(), SMALL);
    assert!(!project.names().iter().any(|name| name.contains("tmp")), "{:?}", project.names());
}

/// Runs a test again in a process of another user if this one is root. Returns whether the caller should run it itself.
fn as_other_user(test: &str) -> bool {
    const MARK: &str = "LIZA_TEST_AS_OTHER_USER";
    if std::env::var_os(MARK).is_some() || !rustix::process::getuid().is_root() {
        return true;
    }
    // Other users may have no access to the target folder.
    let folder = std::env::temp_dir().join(format!("liza-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = Process::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args([test, "--exact", "--nocapture"])
        .env(MARK, &folder)
        .current_dir(&folder)
        .status();
    let run = run.expect("setpriv is part of util-linux");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(run.success(), "{test} failed as another user");
    false
}

fn other_users_project(name: &str) -> Project {
    match std::env::var_os("LIZA_TEST_AS_OTHER_USER") {
        Some(folder) => Project::below(std::path::Path::new(&folder), name),
        None => Project::empty(name),
    }
}

/// Covers: BB-07, BB-10
#[test]
fn a_missing_permission_is_reported_and_changes_nothing() {
    if !as_other_user("invalid_input::a_missing_permission_is_reported_and_changes_nothing") {
        return;
    }
    let project = other_users_project("permission");
    project.write(SMALL);
    let mode = |path: std::path::PathBuf, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(project.file("state.yaml"), 0o000);
    assert!(matches!(project.submit(note("x")), Err(StoreError::Io { action: "read", .. })));
    assert!(matches!(project.store().snapshot(), Err(StoreError::Io { action: "read", .. })));
    mode(project.file("state.yaml"), 0o644);
    mode(project.file("state.yaml.lock"), 0o444);
    assert!(matches!(project.submit(note("x")), Err(StoreError::Io { action: "open the lock file", .. })));
    mode(project.file("state.yaml.lock"), 0o644);
    mode(project.root.join(".liza"), 0o555);
    let error = project.submit(note("x")).unwrap_err();
    assert!(matches!(&error, StoreError::Io { action: "create", .. }), "{error:?}");
    assert_eq!(project.text(), SMALL);
    assert!(project.store().snapshot().is_ok(), "reading needs no write permission");
    mode(project.root.join(".liza"), 0o755);
}

/// Covers: BB-07, BB-09
#[test]
fn needs_mount_a_full_disk_is_reported_and_changes_nothing() {
    let project = Project::empty("full");
    let mounted = Process::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(project.root.join(".liza"))
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    assert!(
        mounted,
        "a small file system can be mounted; ./check leaves this test out without the right to mount"
    );
    let outcome = std::panic::catch_unwind(|| {
        project.write(SMALL);
        project.run(note("fits"));
        let before = project.text();
        let filler = vec![b'x'; 1 << 20];
        let _ = std::fs::write(project.file("filler"), filler);
        let error = project.submit(note(&"large ".repeat(2000))).unwrap_err();
        assert!(matches!(&error, StoreError::Io { .. }), "{error:?}");
        assert_eq!(project.text(), before);
        std::fs::remove_file(project.file("filler")).unwrap();
        project.run(note("fits again"));
        assert!(!project.names().iter().any(|name| name.contains("tmp-")), "{:?}", project.names());
        assert_eq!(project.log().matches("- timestamp").count(), 2, "{}", project.log());
    });
    let _ = Process::new("umount").arg(project.root.join(".liza")).status();
    outcome.unwrap();
}

/// Covers: BB-10
#[test]
fn a_refused_command_writes_nothing() {
    let project = Project::new("refuse");
    let before = (project.text(), project.log());
    let refusal = project.submit(heartbeat("coder-9"));
    assert!(matches!(refusal, Err(StoreError::Refused(r)) if matches!(*r, Refusal::NotRegistered { .. })));
    assert_eq!((project.text(), project.log()), before);
}
