//! Acceptance tests that no session reads: they judge the files of a merge, and agents learn names only.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use crate::fixture::*;
use crate::support::TestProject;

struct Holdout {
    project: TestProject,
    place: tempfile::TempDir,
}

impl Holdout {
    /// A team whose merges are judged by this shell script.
    fn new(script: &str) -> Self {
        let holdout = Self { project: team(), place: tempfile::tempdir().unwrap() };
        holdout.write("names", "# of the goal\nlogin\nretry\n");
        holdout.write("run", &format!("#!/bin/sh\n{script}\n"));
        holdout.project.liza(&["config", "holdout", holdout.folder().to_str().unwrap()]).ok();
        holdout
    }

    fn folder(&self) -> PathBuf {
        self.place.path().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.place.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn outputs(&self) -> String {
        let logs = fs::read_dir(self.project.root.join(".liza/integration-tests")).unwrap().flatten();
        logs.filter(|log| log.file_name().to_string_lossy().contains("holdout"))
            .map(|log| fs::read_to_string(log.path()).unwrap())
            .collect()
    }
}

/// Covers: RO-09
#[test]
fn a_merge_that_breaks_a_hidden_test_comes_back_with_its_name_only() {
    let holdout =
        Holdout::new("echo secret-42; echo elsewhere; test ! -f one.txt || { echo login; exit 3; }");
    let project = &holdout.project;
    approved(project, "one");
    let before = tip(project, "integration");
    let error = merge(project, "one").refused(3, "holdout");
    assert!(error["message"].as_str().unwrap().ends_with("fail: login"), "{error}");
    assert_eq!((tip(project, "integration"), project.status("one")), (before, "INTEGRATION_FAILED"));
    let told = format!("{}{}{error}", project.read(".liza/state.yaml"), project.log());
    assert!(told.contains("login"), "{told}");
    for hidden in ["secret-42", "elsewhere", "exit status", "holdout-1.log"] {
        assert!(!told.contains(hidden), "{hidden}: {told}");
    }
    assert!(holdout.outputs().contains("secret-42"), "the person can read it");
    assert!(!project.root.join(".liza/holdout").exists(), "no copy is left");
    approved(project, "two");
    merge(project, "two").ok();
    check_consistent(project);
}

/// Covers: RO-09
#[test]
fn a_test_that_the_branch_does_not_pass_either_is_not_yet_reached() {
    let holdout = Holdout::new("echo retry; exit 1");
    approved(&holdout.project, "one");
    merge(&holdout.project, "one").ok();
}

/// A run says so, since nothing of what it tries would be refused otherwise.
const CONFINED: &str = "grep -q '^NoNewPrivs:.*1' /proc/self/status && echo confined";

/// Covers: RO-09
#[test]
#[cfg(target_os = "linux")]
fn what_it_runs_is_a_copy_at_a_random_path_and_no_other_code_reads_it() {
    for limit in [None, Some("100")] {
        let holdout = Holdout::new("");
        let original = holdout.folder().join("names");
        let original = original.display();
        holdout.write(
            "run",
            &format!(
                "#!/bin/sh\necho \"place $0\"\n{CONFINED}\ncat \"$(dirname \"$0\")/names\" >/dev/null || exit 4\ncat {original} && exit 5\n\
                 echo x 2>/dev/null > \"$(dirname \"$0\")/planted\" && exit 6\nexit 0"
            ),
        );
        let project = &holdout.project;
        if let Some(limit) = limit {
            project.liza(&["config", "sandbox_max_abi", limit]).ok();
        }
        let reading = format!("if cat {original}; then exit 1; fi");
        project.liza(&["config", "validation", &serde_json::to_string(&[reading]).unwrap()]).ok();
        approved(project, "one");
        merge(project, "one").ok();
        approved(project, "two");
        merge(project, "two").ok();
        let outputs = holdout.outputs();
        assert_eq!(outputs.matches("confined\n").count(), 2, "{limit:?}: {outputs}");
        let places: Vec<&str> = outputs.lines().filter_map(|line| line.strip_prefix("place ")).collect();
        assert!(matches!(places.as_slice(), [one, two] if one != two), "{limit:?}: {outputs}");
    }
}

/// Code under test could leave the acceptance tests where sessions read, too.
///
/// Covers: RO-09
#[test]
#[cfg(target_os = "linux")]
fn what_it_runs_reaches_no_place_that_the_person_has_opened_to_sessions() {
    for limit in [None, Some("100")] {
        let holdout = Holdout::new("");
        let project = &holdout.project;
        if let Some(limit) = limit {
            project.liza(&["config", "sandbox_max_abi", limit]).ok();
        }
        let (folder, socket) = (project.home().join("shared"), project.home().join("socket"));
        fs::create_dir(&folder).unwrap();
        let _local = UnixListener::bind(&socket).unwrap();
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = service.local_addr().unwrap().port();
        project.liza(&["config", "network_ports", &format!("[{port}]")]).ok();
        project.liza(&["config", "sandbox_sockets", &format!("[{}]", socket.display())]).ok();
        project.liza(&["config", "sandbox_writable", &format!("[{}]", folder.display())]).ok();
        let tries = format!(
            "{CONFINED}\n\
             perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new(\"127.0.0.1:{port}\")' && echo reached a service\n\
             perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(\"{}\")' && echo reached a socket\n\
             echo x > {}/$1 && echo reached a folder\n\
             echo x > own && echo x > \"$TMPDIR/own\" && echo \"writes to $PWD and $TMPDIR\"\nexit 0",
            socket.display(),
            folder.display()
        );
        project.write("tries.sh", &tries);
        holdout.write("run", &format!("#!/bin/sh\nset -- holdout\n{tries}"));
        let validation = ["sh tries.sh validation"];
        project.git(&["add", "."]);
        project.git(&["commit", "-qm", "tries"]);
        project.liza(&["sync"]).ok();
        project.liza(&["config", "validation", &serde_json::to_string(&validation).unwrap()]).ok();
        approved(project, "one");
        let open = project.read(".liza/integration-tests/one-validation-1.log");
        for place in ["confined\n", "reached a service", "reached a socket", "reached a folder"] {
            assert!(open.contains(place), "other code under test reaches it: {place}: {limit:?}: {open}");
        }
        merge(project, "one").ok();
        let outputs = holdout.outputs();
        assert!(outputs.contains("confined\n") && !outputs.contains("reached"), "{limit:?}: {outputs}");
        assert!(!folder.join("holdout").exists());
        // Sessions read checkouts and temporary files of other runs, which are among the worktrees.
        let writes = |text: &str, at: &str| {
            let at = project.root.join(at).join(".integration-test-");
            text.contains(&format!("writes to {0}", at.display()))
                && text.contains(&format!(" and {0}", at.display()))
        };
        assert!(writes(&open, ".worktrees") && writes(&outputs, ".liza"), "{limit:?}: {open}{outputs}");
        let left = fs::read_dir(project.root.join(".liza")).unwrap().flatten();
        assert!(
            left.map(|entry| entry.file_name()).all(|name| !name.display().to_string().contains("test-"))
        );
    }
}

/// Covers: RO-09
#[test]
fn a_holdout_that_cannot_judge_stops_merges_and_blames_no_task() {
    let holdout = Holdout::new("echo it does not start; exit 1");
    let project = &holdout.project;
    approved(project, "one");
    let is_refused = |words: &str| {
        let error = merge(project, "one").refused(1, "holdout_unusable");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert_eq!(project.status("one"), "APPROVED");
    };
    is_refused("fails without naming a test, on the integration branch too");
    for (path, words) in [
        ("/nowhere/at/all", "not a folder"),
        ("relative", "absolute path"),
        (project.root.join("specs").to_str().unwrap(), "outside of the project"),
        (project.root.parent().unwrap().to_str().unwrap(), "outside of the project"),
    ] {
        project.liza(&["config", "holdout", path]).ok();
        is_refused(words);
        let doctor = project.liza(&["doctor"]);
        assert!(doctor.stdout.contains(words), "{}", doctor.stdout);
    }
    project.liza(&["config", "holdout", holdout.folder().to_str().unwrap()]).ok();
    holdout.write("names", "# none\n\n");
    is_refused("a file `names`");
    holdout.write("names", "login\n");
    fs::remove_file(holdout.folder().join("run")).unwrap();
    is_refused("an executable file `run`");
    holdout.write("run", "#!/bin/sh\nexit 0\n");
    let doctor = project.liza(&["doctor"]);
    assert!(doctor.stdout.contains("1 acceptance tests that no session reads"), "{}", doctor.stdout);
    merge(project, "one").ok();
}
