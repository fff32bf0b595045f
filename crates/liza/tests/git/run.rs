//! The runner: its environment, its limits, its errors.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use liza::git::{Git, GitError, Repo, Version};

use crate::support::{TestRepo, script, variables};

/// Covers: CM-06
#[test]
fn what_is_inherited_cannot_mislead_git() {
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

#[test]
fn a_failure_says_what_was_done_and_what_git_said() {
    let test = TestRepo::new();
    let error =
        test.program().call("trying something", &test.root).args(["rev-parse", "--verify", "nothing"]).ok();
    let Err(error @ GitError::Failed { status: Some(128), .. }) = error else { panic!("{error:?}") };
    let text = error.to_string();
    assert_eq!(
        text,
        "trying something: fatal: Needed a single revision (git rev-parse --verify nothing, exit 128)"
    );
}

#[test]
fn git_that_hangs_is_killed_with_its_children() {
    let test = TestRepo::new();
    let pids = test.home.path().join("pids");
    let alias = format!("!sh -c 'echo $$ >{}; sleep 600 & wait'", pids.display());
    test.git(&["config", "alias.hang", &alias]);
    let read = || std::fs::read_to_string(&pids).unwrap_or_default();
    // A busy machine may need longer to get so far that there is a child to kill.
    for limit in [200, 1_000, 5_000, 25_000].map(Duration::from_millis) {
        let error = test.program().call("hanging", &test.root).arg("hang").limit(limit).ok().unwrap_err();
        assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
        if !read().is_empty() {
            break;
        }
    }
    let pid: u32 = read().trim().parse().unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(20);
    // A signal takes a moment; and a zombie that nobody has reaped yet runs nothing.
    while !(stat().is_empty() || stat().contains(") Z")) {
        assert!(Instant::now() < deadline, "{}", stat());
        std::thread::yield_now();
    }
}

#[test]
fn a_hook_that_leaves_a_process_behind_does_not_hang_us() {
    let test = TestRepo::new();
    test.git(&["config", "alias.leave", "!sleep 600 & echo $!"]);
    let started = Instant::now();
    let answer = test.program().call("leaving a process", &test.root).arg("leave").text().unwrap();
    assert!(started.elapsed() < Duration::from_secs(60));
    let left = std::process::Command::new("kill").arg(&answer).status().unwrap();
    assert!(left.success(), "it must still have been there");
}

#[test]
fn input_of_any_size_arrives() {
    let test = TestRepo::new();
    let text = "line of text\n".repeat(50_000);
    let call = test.program().call("hashing", &test.root).args(["hash-object", "-w", "--stdin"]);
    let name = call.stdin(text.as_bytes()).text().unwrap();
    assert_eq!(
        test.program().call("reading", &test.root).args(["cat-file", "blob", &name]).ok().unwrap(),
        text.as_bytes()
    );
}

#[test]
fn a_missing_program_and_an_old_one_are_told_apart() {
    let test = TestRepo::new();
    let missing = test.program().with_program("/nonexistent/git").require_version().unwrap_err();
    assert!(matches!(missing, GitError::Missing { .. }), "{missing}");
    let old = test.home.path().join("old-git");
    script(&old, "[ \"$3\" = version ] && echo 'git version 2.30.2' && exit 0\nexit 129");
    let git = test.program().with_program(&old);
    assert!(matches!(git.require_version(), Err(GitError::TooOld { found: Version(2, 30) })));
    let merge = git.call("merging", &test.root).args(["merge-tree", "--write-tree"]).ok().unwrap_err();
    assert_eq!(merge.to_string(), "git 2.30 is too old: install git 2.38 or newer");
    assert!(test.program().require_version().unwrap() >= Version::OLDEST);
    let folder = test.program().call("looking", &test.root.join("gone")).arg("version").ok().unwrap_err();
    assert!(matches!(folder, GitError::Io { .. }), "{folder}");
}

#[test]
fn a_lock_that_is_soon_gone_is_waited_for() {
    let test = TestRepo::new();
    let lock = test.root.join(".git/refs/heads/waited.lock");
    std::fs::write(&lock, "").unwrap();
    // Stands for the other git: it lets go after our first try.
    let program = test.home.path().join("git-and-letting-go");
    let let_go = format!("case \"$*\" in *update-ref*) rm -f '{}';; esac", lock.display());
    script(&program, &format!("git \"$@\"; status=$?\n{let_go}\nexit $status"));
    let repo = Repo::open(&test.program().with_program(program), &test.root).unwrap();
    assert!(repo.create_branch(&"waited".parse().unwrap(), &test.sha("HEAD")).unwrap());
}
