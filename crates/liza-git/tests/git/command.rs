//! Running git: environment, limits, errors.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use liza_git::{Git, GitError, GitVersion, Repo};

use crate::support::{TestRepo, script, variables};

/// Covers: CM-06
#[test]
fn inherited_variables_cannot_mislead_git() {
    let (test, other) = (TestRepo::new(), TestRepo::new());
    let mut misleading = variables(test.home.path());
    for (name, value) in [
        ("GIT_DIR", ".git"),
        ("GIT_INDEX_FILE", "x"),
        ("GIT_WORK_TREE", "."),
        ("GIT_CEILING_DIRECTORIES", "/"),
    ] {
        misleading.push((name.into(), other.root.join(value).into_os_string()));
    }
    let misleading: Vec<(OsString, OsString)> = misleading;
    let repo = Repo::open(&Git::with_environment(misleading), &test.root).unwrap();
    assert_eq!(repo.root(), test.root);
    assert_eq!(repo.head().unwrap().commit, test.sha("HEAD"));
}

/// A screen may be shown on the terminal of the process.
///
/// Covers: AX-18
#[test]
fn no_git_command_asks_anything_on_the_terminal() {
    let test = TestRepo::new();
    let program = test.home.path().join("git");
    script(&program, "exec env");
    let seen = test.program().with_program(program).command("looking", &test.root).read_text().unwrap();
    for line in ["GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "SSH_ASKPASS=true", "SSH_ASKPASS_REQUIRE=force"] {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
}

#[test]
fn a_failure_names_the_action_and_the_message_of_git() {
    let test = TestRepo::new();
    let error = test
        .program()
        .command("trying something", &test.root)
        .args(["rev-parse", "--verify", "nothing"])
        .read();
    let Err(error @ GitError::Failed { status: Some(128), .. }) = error else { panic!("{error:?}") };
    let text = error.to_string();
    assert_eq!(
        text,
        "trying something failed: fatal: Needed a single revision (git rev-parse --verify nothing, exit 128)"
    );
}

#[test]
fn a_git_that_hangs_is_killed_with_its_children() {
    let test = TestRepo::new();
    let pids = test.home.path().join("pids");
    let alias = format!("!sh -c 'echo $$ >{}; sleep 600 & wait'", pids.display());
    test.git(&["config", "alias.hang", &alias]);
    let read = || std::fs::read_to_string(&pids).unwrap_or_default();
    // A busy machine may need longer before there is a child to kill.
    for limit in [200, 1_000, 5_000, 25_000].map(Duration::from_millis) {
        let error =
            test.program().command("hanging", &test.root).arg("hang").limit(limit).read().unwrap_err();
        assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
        if !read().is_empty() {
            break;
        }
    }
    let pid: u32 = read().trim().parse().unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(20);
    // A signal takes a moment, and a zombie that is not reaped yet runs nothing.
    while !(stat().is_empty() || stat().contains(") Z")) {
        assert!(Instant::now() < deadline, "{}", stat());
        std::thread::yield_now();
    }
}

#[test]
fn a_background_process_of_a_hook_does_not_block_us() {
    let test = TestRepo::new();
    test.git(&["config", "alias.leave", "!sleep 600 & echo $!"]);
    let started = Instant::now();
    let pid = test.program().command("leaving a process", &test.root).arg("leave").read_text().unwrap();
    assert!(started.elapsed() < Duration::from_secs(60));
    let left = std::process::Command::new("sh").args(["-c", &format!("kill {pid}")]).status().unwrap();
    assert!(left.success(), "it must still be running");
}

#[test]
fn input_of_any_size_arrives() {
    let test = TestRepo::new();
    let text = "line of text\n".repeat(50_000);
    let command = test.program().command("hashing", &test.root).args(["hash-object", "-w", "--stdin"]);
    let name = command.stdin(text.as_bytes()).read_text().unwrap();
    assert_eq!(
        test.program().command("reading", &test.root).args(["cat-file", "blob", &name]).read().unwrap(),
        text.as_bytes()
    );
}

#[test]
fn a_missing_git_and_an_old_one_are_different_errors() {
    let test = TestRepo::new();
    let missing = test.program().with_program("/nonexistent/git").require_version().unwrap_err();
    assert!(matches!(missing, GitError::Missing { .. }), "{missing}");
    let old = test.home.path().join("old-git");
    script(&old, "[ \"$3\" = version ] && echo 'git version 2.30.2' && exit 0\nexit 129");
    let git = test.program().with_program(&old);
    assert!(matches!(git.require_version(), Err(GitError::TooOld { found: GitVersion(2, 30) })));
    let merge = git.command("merging", &test.root).args(["merge-tree", "--write-tree"]).read().unwrap_err();
    assert_eq!(merge.to_string(), "git 2.30 is too old: install git 2.38 or newer");
    assert!(test.program().require_version().unwrap() >= GitVersion::OLDEST);
    let folder =
        test.program().command("looking", &test.root.join("gone")).arg("version").read().unwrap_err();
    assert!(matches!(folder, GitError::Io { .. }), "{folder}");
}

#[test]
fn a_lock_that_is_soon_released_is_waited_for() {
    let test = TestRepo::new();
    let lock = test.root.join(".git/refs/heads/waited.lock");
    std::fs::write(&lock, "").unwrap();
    // Simulates another git that releases its lock after our first attempt.
    let program = test.home.path().join("git-that-releases");
    let release = format!("case \"$*\" in *update-ref*) rm -f '{}';; esac", lock.display());
    script(&program, &format!("git \"$@\"; status=$?\n{release}\nexit $status"));
    let repo = Repo::open(&test.program().with_program(program), &test.root).unwrap();
    assert!(repo.create_branch(&"waited".parse().unwrap(), &test.sha("HEAD")).unwrap());
}
