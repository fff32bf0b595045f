//! Git that meets what agents wrote runs in a room: whatever it is made to run reads no password and changes nothing of yours.

use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use liza_git::WorktreeMode;

use crate::support::{TestRepo, integration, read, script, task, write};

/// A project with a filter of the person that does what hostile code would do, and the worktree of a task.
fn with_hostile_filter() -> (TestRepo, std::path::PathBuf) {
    let test = TestRepo::new();
    let home = test.home.path().canonicalize().unwrap();
    write(&home.join(".ssh/id"), "the key\n");
    write(&test.root.join(".liza/state.yaml"), "the blackboard\n");
    let filter = home.join("bin/filter");
    let root = test.root.display();
    let home = home.display();
    script(
        &filter,
        &format!(
            "cat; cat '{home}/.ssh/id' '{root}/.liza/state.yaml' 2>/dev/null\n\
             for file in '{home}/planted' '{root}/planted' '{root}/.git/hooks/planted' '{root}/.git/planted' \\\n\
             '{root}/.git/objects/planted' '{root}/.worktrees/task-1/planted'; do echo x 2>/dev/null >\"$file\"; done\n\
             echo x 2>/dev/null >>'{root}/.git/config'\n\
             echo x 2>/dev/null >\"$TMPDIR/allowed\" && printf '%s' '+'"
        ),
    );
    test.git(&["config", "--global", "filter.mine.clean", filter.to_str().unwrap()]);
    test.git(&["config", "--global", "filter.mine.required", "true"]);
    let tree = test.worktree("task-1");
    write(&tree.join(".gitattributes"), "*.secret filter=mine\n");
    write(&tree.join("new.secret"), "agent\n");
    (test, tree)
}

/// Covers: IS-08, IS-04
#[test]
fn a_filter_that_runs_among_agents_files_finds_no_password_and_changes_nothing() {
    let (test, tree) = with_hostile_filter();
    let config = read(&test.root.join(".git/config"));
    let saved = test.repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    // It has run, and could write to the folder for temporary files.
    assert_eq!(test.show(saved.branch.as_str(), "new.secret"), "agent\n+");
    assert_eq!(read(&test.root.join(".git/config")), config);
    let home = test.home.path();
    for place in [
        home.join("planted"),
        test.root.join("planted"),
        test.root.join(".git/hooks/planted"),
        test.root.join(".git/planted"),
        test.root.join(".git/objects/planted"),
        tree.join("planted"),
    ] {
        assert!(!place.exists(), "{}", place.display());
    }
}

/// Covers: IS-08
#[test]
fn what_git_saves_in_a_room_is_whole_in_the_project() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    write(&tree.join("deep/er/new"), "new\n");
    write(&tree.join("kept.tmp"), "ignored\n");
    write(&tree.join("a"), "changed\n");
    let saved = test.repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    test.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(test.show(saved.branch.as_str(), "deep/er/new"), "new");
    let ignored = test.git(&["for-each-ref", "--format=%(refname)", "refs/liza/ignored"]);
    assert_eq!(test.show(&ignored, "kept.tmp"), "ignored");
    let left = std::fs::read_dir(test.root.join(".git")).unwrap().flatten();
    let left: Vec<_> =
        left.filter(|entry| entry.file_name().to_string_lossy().starts_with("liza-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Covers: AT-11
#[test]
fn a_huge_file_with_nothing_in_it_is_named_and_does_not_hold_up_the_rest() {
    let test = TestRepo::new();
    let tree = test.worktree("task-1");
    std::fs::File::create(tree.join("huge")).unwrap().set_len(3 << 40).unwrap();
    write(&tree.join("new"), "new\n");
    let saved = test.repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    assert_eq!(test.show(saved.branch.as_str(), "new"), "new");
    let message = test.git(&["log", "-1", "--format=%B", saved.branch.as_str()]);
    assert!(message.contains("less than a MiB of data):\n  huge\n"), "{message}");
}

/// Covers: IS-08
#[test]
fn settings_outside_of_the_home_folder_still_count() {
    let test = TestRepo::new();
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    let (more, ignore) = (elsewhere.path().join("more"), elsewhere.path().join("ignore"));
    write(&ignore, "*.mine\n");
    write(&more, &format!("[core]\n\texcludesFile = {}\n", ignore.display()));
    test.git(&["config", "--global", "include.path", more.to_str().unwrap()]);
    let tree = test.worktree("task-1");
    write(&tree.join("x.mine"), "x\n");
    write(&tree.join("y"), "y\n");
    let saved = test.repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    let files = test.git(&["ls-tree", "-r", "--name-only", saved.branch.as_str()]);
    assert!(files.contains('y') && !files.contains("x.mine"), "{files}");
}

/// Covers: IS-08, IS-12
#[test]
fn a_service_of_the_person_does_not_answer_git_in_a_room() {
    let (test, tree) = with_hostile_filter();
    let socket = test.home.path().join("socket");
    let service = UnixListener::bind(&socket).unwrap();
    // A part of git that every git has, and that connects to a socket.
    let ask = format!("git credential-cache --socket '{}' get", socket.display());
    let input = "printf 'protocol=https\\nhost=example.com\\n\\n'";
    let filter = test.home.path().join("bin/filter");
    script(&filter, &format!("cat; {input} | {ask} 2>/dev/null; true"));
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let count = move |connection| {
        // The script goes on when the connection closes.
        counter.fetch_add(1, Ordering::SeqCst);
        drop(connection);
    };
    std::thread::spawn(move || service.incoming().for_each(count));
    Command::new(&filter).stdin(Stdio::null()).status().unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the script connects where it may");
    write(&tree.join("new.secret"), "agent\n");
    let saved = test.repo.rescue(&task("task-1"), None, &integration()).unwrap().unwrap();
    assert_eq!(test.show(saved.branch.as_str(), "new.secret"), "agent");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// A filter of the person that is led to run what an agent committed; `text` is that file.
fn with_led_filter(test: &TestRepo, root: &std::path::Path, text: &str) {
    let filter = test.home.path().canonicalize().unwrap().join("bin/filter");
    script(&filter, "sh ./led.sh 2>/dev/null; cat");
    test.git(&["config", "--global", "filter.mine.smudge", filter.to_str().unwrap()]);
    test.git(&["config", "--global", "filter.mine.clean", "cat"]);
    test.git(&["config", "--global", "filter.mine.required", "true"]);
    write(&root.join(".gitattributes"), "z.led filter=mine\n");
    write(&root.join("led.sh"), text);
    write(&root.join("z.led"), "led\n");
    test.git_at(root, &["add", "."]);
    test.git_at(root, &["commit", "-qm", "led"]);
    test.git_at(root, &["branch", "-f", "integration"]);
}

/// Covers: IS-08
#[test]
fn a_filter_leaves_no_process_behind_and_nothing_in_the_checkout() {
    let test = TestRepo::new();
    // What it prints is the content of the file, so that is how the test learns the number of the process, which leaves its
    // group, its session and its environment.
    let hide = "echo x >planted; echo x >.git/planted; echo x >\"$GIT_DIR/planted\"; ls -d \"$GIT_DIR/planted\"\n\
                echo x >>led.sh; echo x >\"$TMPDIR/fine\" && echo fine\n\
                env -i setsid sh -c 'echo $$ >\"$0\"; exec sleep 600' \"$TMPDIR/pid\" >/dev/null &\n\
                while ! test -s \"$TMPDIR/pid\"; do :; done; cat \"$TMPDIR/pid\"";
    with_led_filter(&test, &test.root, hide);
    let tree = test.worktree("task-1");
    let printed = read(&tree.join("z.led"));
    let lines: Vec<&str> = printed.lines().collect();
    let ["fine", pid, "led"] = lines[..] else { panic!("{printed}") };
    let process = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(process.is_empty() || process.contains(") Z "), "{process}");
    assert!(!tree.join("planted").exists() && !tree.join(".git/planted").exists());
    assert_eq!(read(&tree.join("led.sh")), hide);
}

/// Covers: IS-08, IS-04
#[test]
fn in_a_partial_clone_a_filter_is_confined_too() {
    let test = TestRepo::new();
    let home = test.home.path().canonicalize().unwrap();
    write(&home.join(".ssh/id"), "the key\n");
    let steal = format!("cat '{0}/.ssh/id'; echo x >'{0}/planted'; echo ran", home.display());
    with_led_filter(&test, &test.root, &steal);
    test.git(&["config", "uploadpack.allowFilter", "true"]);
    test.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let clone = home.join("partial");
    let url = format!("file://{}", test.root.display());
    let partial = ["clone", "-q", "--filter=blob:none", "--no-checkout", "--branch=integration", &url];
    test.git(&[&partial[..], &[clone.to_str().unwrap()]].concat());
    let repo = test.open(&clone);
    let base = repo.tip(&integration()).unwrap().unwrap();
    let tree =
        repo.prepare_worktree(&task("task-1"), &base, WorktreeMode::Keep, &integration()).unwrap().path;
    assert_eq!(read(&tree.join("z.led")), "ran\nled\n");
    assert!(!home.join("planted").exists());
    let left = std::fs::read_dir(clone.join(".worktrees")).unwrap().count();
    assert_eq!(left, 1, "the folder into which it was fetched is gone");
}
