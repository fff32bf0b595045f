//! The build of an integration head, with which validations begin: it saves time, and decides nothing.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::fixture::*;
use crate::support::{Run, TestProject};

/// Builds what is newer than its result, as build tools do, and says so.
const BUILD: &str = r#"mkdir -p target
for file in src/*; do
  result=target/${file#src/}
  if [ ! -e "$result" ] || [ "$file" -nt "$result" ]; then echo "built $file"; cat "$file" > "$result"; fi
done
echo "in $(pwd) with $CARGO_HOME"; ls target; cat target/*
if grep -q wrong target/*; then exit 1; fi
"#;

/// A team in a project of two files, with one command.
fn building() -> TestProject {
    let project = TestProject::bare();
    for (file, text) in
        [(".gitignore", "target/\n"), ("build.sh", BUILD), ("src/a", "a one\n"), ("src/b", "b one\n")]
    {
        project.write(file, text);
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "program"]);
    project.liza(&["init", "Build everything"]).ok();
    project.liza(&["config", "validation", r#"["sh build.sh"]"#]).ok();
    join(project)
}

/// Merges work whose commands run at its merge.
#[track_caller]
fn merge_by_hand(project: &TestProject, task: &str, file: &str, text: &str) -> Run {
    submitted_with(project, task, file, text);
    project.liza(&["submit-verdict", task, "APPROVED"]).ok();
    merge(project, task)
}

fn review(project: &TestProject, task: &str) -> Run {
    project.liza(&["claim-review", task, "code-reviewer-1", "--json"])
}

/// Validates a new task's work; returns the output.
#[track_caller]
fn validated(project: &TestProject, task: &str, file: &str, text: &str) -> String {
    submitted_with(project, task, file, text);
    review(project, task).ok();
    let output = log(project, task, 1);
    verdict(project, task, &["REJECTED", "Not needed."]).ok();
    output
}

fn log(project: &TestProject, task: &str, number: u32) -> String {
    project.read(&format!(".liza/integration-tests/{task}-validation-{number}.log"))
}

fn runs(project: &TestProject) -> usize {
    fs::read_dir(project.root.join(".liza/integration-tests")).map_or(0, Iterator::count)
}

fn builds(project: &TestProject) -> PathBuf {
    project.root.join(".liza/caches/head-build")
}

/// The folder of the build that counts.
#[track_caller]
fn current(project: &TestProject) -> PathBuf {
    builds(project).join(fs::read_to_string(builds(project).join("current")).unwrap())
}

fn folders(project: &TestProject) -> usize {
    let entries = fs::read_dir(builds(project)).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).count()
}

fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(texts(&entry.path())),
            false => found.push((entry.path(), fs::read_to_string(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

/// Covers: JU-10
#[test]
fn a_validation_builds_only_what_differs_from_the_head_and_its_merge_builds_everything() {
    let project = building();
    let nothing = validated(&project, "first", "src/a", "a two\n");
    assert!(nothing.contains("built src/a\nbuilt src/b\n"), "{nothing}");
    assert!(!builds(&project).exists(), "work that is not merged leaves nothing");
    merge_by_hand(&project, "zero", "src/c", "c one\n").ok();
    let merged = log(&project, "zero", 1);
    assert!(merged.contains("built src/a\nbuilt src/b\nbuilt src/c\n"), "{merged}");
    submitted_with(&project, "one", "src/b", "b two\n");
    review(&project, "one").ok();
    let output = log(&project, "one", 1);
    let (built, at) = output.split_once("in ").unwrap();
    assert!(built.ends_with("built src/b\n") && built.matches("built").count() == 1, "{output}");
    assert!(at.contains("a\nb\nc\na one\nb two\nc one\n"), "{output}");
    assert!(merged.contains(at.lines().next().unwrap()), "paths are the same: {merged}{output}");
    verdict(&project, "one", &["APPROVED"]).ok();
    let before = runs(&project);
    merge(&project, "one").ok();
    assert_eq!(runs(&project), before + 1, "a merge is never judged by a run that began with a build");
    assert!(log(&project, "one", 2).contains("built src/a\nbuilt src/b\nbuilt src/c\n"));
    assert_eq!(folders(&project), 1, "the earlier build is gone");
    check_consistent(&project);
}

/// Covers: JU-10
#[test]
fn a_file_that_goes_back_to_an_older_content_is_built_again() {
    let project = building();
    merge_by_hand(&project, "zero", "src/a", "a two\n").ok();
    let back = validated(&project, "one", "src/a", "a one\n");
    assert!(back.contains("built src/a\n") && back.contains("a one\n"), "{back}");
    assert!(!back.contains("built src/b"), "{back}");
    let gone = validated(&project, "two", ".gitattributes", "src/b text eol=crlf\n");
    assert!(gone.contains("built src/a\nbuilt src/b\n"), "attributes decide about all files: {gone}");
}

/// Covers: JU-01, JU-10
#[test]
fn work_changes_neither_the_build_nor_the_next_run() {
    let project = building();
    merge_by_hand(&project, "zero", "src/c", "c one\n").ok();
    let (before, name) = (texts(&builds(&project)), current(&project));
    let hostile = "echo planted > target/planted; echo false > target/b; touch -d 2100-01-01 target/c; rm target/a; \
                   mkdir target/d; ln -s /etc target/e";
    let output = validated(&project, "one", "build.sh", &format!("{hostile}\n{BUILD}"));
    assert!(output.contains("planted") && output.contains("false"), "it changed its own copy: {output}");
    assert_eq!((texts(&builds(&project)), current(&project)), (before, name));
    let next = validated(&project, "two", "src/c", "c two\n");
    assert!(next.contains("built src/c\n") && next.contains("a\nb\nc\na one\nb one\nc two\n"), "{next}");
    assert!(!next.contains("planted") && !next.contains("built src/a"), "{next}");
}

/// A kept build is a layer of later copies, where names of a file system's own have a meaning.
///
/// Covers: RO-07, JU-10
#[test]
fn markers_of_layers_in_a_build_decide_about_no_validation() {
    let plants = r#"mknod target/gone c 0 0 2> /dev/null && echo PLANTED
for name in opaque redirect metacopy; do
  perl -e '$call = `uname -m` =~ /x86_64/ ? 188 : 5; ($file, $name, $value) = ("target", "user.overlay.$ARGV[0]", "y");
    exit(syscall($call, $file, $name, $value, 1, 0) == 0 ? 0 : 1)' $name && echo PLANTED
done
"#;
    let project = building();
    project.liza(&["config", "validation", r#"["sh -e build.sh"]"#]).ok();
    let build = BUILD.replacen('\n', &format!("\n{plants}"), 1);
    merge_by_hand(&project, "zero", "build.sh", &build).ok();
    let output = log(&project, "zero", 1);
    assert!(!output.contains("PLANTED") && current(&project).exists(), "a run cannot plant one: {output}");
    // As if one could: folders that hide what is below, files that are gone, and names that lead elsewhere.
    let (target, secret) = (current(&project).join("files/target"), project.home().join("secret"));
    fs::write(&secret, "secret\n").unwrap();
    let mark = |at: &Path, name: &str, value: &[u8]| {
        rustix::fs::setxattr(at, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    for folder in [target.parent().unwrap(), &target] {
        mark(folder, "user.overlay.opaque", b"y");
    }
    mark(&target, "user.overlay.redirect", b"/../../../../../..");
    fs::remove_file(target.join("b")).unwrap();
    let (device, mode) = (rustix::fs::FileType::CharacterDevice, rustix::fs::Mode::empty());
    rustix::fs::mknodat(rustix::fs::CWD, target.join("b"), device, mode, 0).unwrap();
    let gone = validated(&project, "one", "src/c", "c one\n");
    assert!(gone.contains("built src/b\nbuilt src/c\n") && !gone.contains("built src/a\n"), "{gone}");
    assert!(gone.contains("a\nb\nc\na one\nb one\nc one\n"), "{gone}");
    mark(&target.join("a"), "user.overlay.metacopy", b"");
    mark(&target.join("a"), "user.overlay.redirect", secret.as_os_str().as_encoded_bytes());
    submitted_with(&project, "two", "src/a", "a two\n");
    review(&project, "two").ok();
    let validated_by = project.record("two").validated.unwrap();
    assert_eq!(validated_by.result.to_string(), "green", "its second try began with nothing");
    let shown: String = (1..=runs(&project) as u32)
        .map_while(|number| {
            fs::read_to_string(
                project.root.join(format!(".liza/integration-tests/two-validation-{number}.log")),
            )
            .ok()
        })
        .collect();
    assert!(shown.contains("a\nb\na two\nb one\n") && !shown.contains("secret"), "{shown}");
    // The next merge builds everything, and its build has nothing of it.
    verdict(&project, "two", &["APPROVED"]).ok();
    merge(&project, "two").ok();
    merge_by_hand(&project, "three", "src/d", "d one\n").ok();
    let after = validated(&project, "four", "src/d", "d two\n");
    assert!(
        after.contains("a\nb\nd\na two\nb one\nd two\n") && after.matches("built").count() == 1,
        "{after}"
    );
}

/// Covers: JU-10
#[test]
fn a_red_merge_leaves_nothing_and_so_does_one_that_cannot_be_trusted_with_times() {
    let project = building();
    merge_by_hand(&project, "red", "src/c", "wrong\n").refused(3, "integration_test");
    assert!(!builds(&project).exists());
    let newer = format!("{BUILD}touch -d 2100-01-01 target/a\n");
    merge_by_hand(&project, "newer", "build.sh", &newer).ok();
    let piped = format!("{BUILD}test -e target/pipe || mkfifo target/pipe\n");
    merge_by_hand(
        &project,
        "piped",
        "build.sh",
        &piped.replace("cat target/*", "true").replace("grep", "false"),
    )
    .ok();
    assert!(!builds(&project).join("current").exists());
    assert_eq!(folders(&project), 0);
}

/// Covers: JU-03, JU-10
#[test]
fn a_damaged_build_costs_only_time() {
    let project = building();
    merge_by_hand(&project, "zero", "src/c", "c one\n").ok();
    let damage = |file: &str, text: &str| fs::write(current(&project).join(file), text).unwrap();
    damage("files/target/b", "wrong\n");
    submitted_with(&project, "one", "src/c", "c two\n");
    review(&project, "one").ok();
    assert!(
        log(&project, "one", 1).contains("wrong")
            && log(&project, "one", 2).contains("built src/a\nbuilt src/b\n")
    );
    let validated_by = project.record("one").validated.unwrap();
    assert!(validated_by.flaky.is_empty(), "the tries began with different things");
    verdict(&project, "one", &["APPROVED"]).ok();
    let before = runs(&project);
    merge(&project, "one").ok();
    assert_eq!(runs(&project), before, "the try that passed began with nothing");
    let record = fs::read_to_string(current(&project).join("record.json")).unwrap();
    let later = record.replacen("\"kept\":", "\"kept\":1", 1);
    for (task, text) in [("later", later.as_str()), ("cut", &record[..20]), ("empty", "")] {
        damage("record.json", text);
        let output = validated(&project, task, "src/c", &format!("c {task}\n"));
        assert!(output.contains("built src/a\nbuilt src/b\nbuilt src/c\n"), "{task}: {output}");
    }
    fs::remove_dir_all(current(&project)).unwrap();
    let output = validated(&project, "gone", "src/c", "c three\n");
    assert!(output.contains("built src/a\n"), "{output}");
}

/// A killed merge leaves a folder that does not count; one that is in use stays until no run uses it.
///
/// Covers: JU-10
#[test]
fn a_build_is_replaced_as_a_whole_and_not_while_a_run_uses_it() {
    let project = building();
    merge_by_hand(&project, "zero", "src/c", "c one\n").ok();
    let old = current(&project);
    let half = builds(&project).join("build-1-0");
    fs::create_dir_all(half.join("files/target")).unwrap();
    fs::write(half.join("files/target/a"), "wrong\n").unwrap();
    let output = validated(&project, "one", "src/c", "c two\n");
    assert!(!output.contains("built src/a") && !output.contains("wrong"), "{output}");
    let used = File::open(old.join("lock")).unwrap();
    used.lock_shared().unwrap();
    merge_by_hand(&project, "two", "src/c", "c three\n").ok();
    assert!(old.join("files/target/a").exists() && !half.exists());
    let output = validated(&project, "three", "src/b", "b two\n");
    assert!(output.contains("built src/b\n") && !output.contains("built src/c"), "{output}");
    drop(used);
    merge_by_hand(&project, "four", "src/c", "c four\n").ok();
    assert_eq!((old.exists(), folders(&project)), (false, 1));
}

/// Covers: JU-10
#[test]
fn without_rooms_or_by_a_setting_every_run_begins_with_nothing() {
    for (key, value) in [("sandbox_max_abi", "100"), ("validation_start", "nothing"), ("sandbox", "off")] {
        let project = building();
        project.liza(&["config", key, value]).ok();
        merge_by_hand(&project, "zero", "src/c", "c one\n").ok();
        assert!(!builds(&project).exists(), "{key}");
        let output = validated(&project, "one", "src/c", "c two\n");
        assert!(output.contains("built src/a\nbuilt src/b\nbuilt src/c\n"), "{key}: {output}");
    }
}

/// Covers: JU-03, JU-10
#[test]
fn a_command_that_passes_on_the_head_leaves_the_build_for_the_second_validation() {
    let project = building();
    submitted_with(&project, "one", "src/a", "wrong\n");
    review(&project, "one").refused(1, "validation_failed");
    claim(&project, "one", "coder-1").ok();
    let right = commit(&project, &project.tree("one"), "src/a", "a right\n");
    submit(&project, "one", "coder-1", &right).ok();
    review(&project, "one").ok();
    let output = log(&project, "one", 3);
    assert!(output.contains("built src/a\n") && !output.contains("built src/b"), "{output}");
}

/// Covers: JU-10
#[test]
fn a_set_up_and_copied_files_name_the_place_at_which_the_commands_run() {
    let project = building();
    project.write(".gitignore", "target/\ndeps/\n");
    project.git(&["commit", "-qam", "ignore"]);
    project.liza(&["sync"]).ok();
    project.write("deps/place", &format!("{}\n", project.root.display()));
    symlink("place", project.root.join("deps/link")).unwrap();
    project.liza(&["config", "copy", "[deps]"]).ok();
    project.liza(&["config", "setup", "pwd > deps/pwd"]).ok();
    let same = r#"test "$(pwd)" = "$(cat deps/pwd)" && test "$(pwd)" = "$(cat deps/link)""#;
    project.liza(&["config", "validation", &serde_json::to_string(&["sh build.sh", same]).unwrap()]).ok();
    merge_by_hand(&project, "zero", "src/c", "c one\n").ok();
    let output = validated(&project, "one", "src/c", "c two\n");
    assert!(output.contains("built src/c\n") && !output.contains("built src/a"), "{output}");
    assert_eq!(runs(&project), 4, "no command was tried twice");
}

/// The commands of a task may build nothing: what its integration test has built counts then.
///
/// Covers: JU-10
#[test]
fn each_merge_replaces_the_build_of_the_one_before_also_if_only_the_integration_test_builds() {
    let project = building();
    project.write("scripts/integration-test.sh", "#!/bin/sh\nsh build.sh\n");
    let script = project.root.join("scripts/integration-test.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "test"]);
    project.liza(&["sync"]).ok();
    project.liza(&["config", "validation", r#"["ls target || true"]"#]).ok();
    let mut earlier = None;
    for (task, text) in [("one", "a one\n"), ("two", "a two\n"), ("three", "a three\n")] {
        submitted_with(&project, task, "src/c", text);
        review(&project, task).ok();
        verdict(&project, task, &["APPROVED"]).ok();
        merge(&project, task).ok();
        let build = current(&project);
        assert_eq!(fs::read_to_string(build.join("files/target/c")).unwrap(), text);
        assert_ne!(earlier.replace(build.clone()), Some(build), "{task}");
        assert_eq!(folders(&project), 1, "the earlier build is gone");
    }
}
