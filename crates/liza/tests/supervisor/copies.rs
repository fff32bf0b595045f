//! Throw-away copies on a real kernel: what is written in one reaches neither what it is a copy of nor the next one.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use liza_sandbox::confine::{Placed, PlacedFiles, ThrowAwayCopy};

use crate::fixture::Bench;
use crate::rooms::{place, said_with};

struct Project {
    folder: tempfile::TempDir,
    files: PathBuf,
    /// The copy's place, where there is nothing outside.
    at: PathBuf,
}

impl Project {
    fn new() -> Self {
        let folder = place();
        let real = folder.path().canonicalize().unwrap();
        let project = Self { files: real.join("files"), at: real.join("copied/here"), folder };
        for (file, text) in [("a", "a\n"), ("b", "b\n"), ("d/old", "old\n"), ("scripts/test.sh", "exit 3\n")]
        {
            let file = project.files.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        project
    }

    fn copy(&self) -> ThrowAwayCopy {
        ThrowAwayCopy::new(&self.folder.path().join("store")).unwrap()
    }

    /// Shows the files in a new copy, whose place is elsewhere.
    fn shown(&self, copy: &mut ThrowAwayCopy) -> Placed {
        let written = copy.new_folder().unwrap();
        copy.over(&self.at, &written, std::slice::from_ref(&self.files)).unwrap()
    }

    fn run(&self, placed: &[Placed], script: &str) -> String {
        let output = self.folder.path().join("run");
        fs::create_dir_all(&output).unwrap();
        said_with(&output, &self.at, placed, script)
    }
}

fn all_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(all_files(&entry.path())),
            false => found.push((entry.path(), fs::read_to_string(entry.path()).unwrap_or_default())),
        }
    }
    found.sort();
    found
}

/// Covers: RO-09
#[test]
fn nothing_that_is_written_in_a_copy_reaches_what_it_is_a_copy_of() {
    let project = Project::new();
    let (before, mut copy) = (all_files(&project.files), project.copy());
    let script =
        "pwd; cat a; echo changed > a; rm b; rm -r d; mkdir d; echo new > d/new; chmod 600 scripts/test.sh";
    let list = "cat a; ls; ls d";
    let written = copy.new_folder().unwrap();
    let mut again = || copy.over(&project.at, &written, std::slice::from_ref(&project.files)).unwrap();
    assert_eq!(project.run(&[again()], script), format!("{}\na\n", project.at.display()));
    let changed = "changed\na\nd\nscripts\nnew\n";
    assert_eq!(project.run(&[again()], list), changed, "the next run in the same folder goes on from there");
    let old = "a\na\nb\nd\nscripts\nold\n";
    assert_eq!(project.run(&[project.shown(&mut copy)], list), old, "and a new try does not");
    assert!(!project.at.exists(), "outside there is nothing");
    // In its own place, too.
    let place = Project { at: project.files.clone(), ..project };
    let said = place.run(&[copy.of(&place.files).unwrap()], &format!("{script}; {list}"));
    assert_eq!(said, format!("{}\na\n{changed}", place.at.display()));
    assert_eq!(all_files(&place.files), before);
    drop(copy);
    assert_eq!(fs::read_dir(place.folder.path().join("store")).unwrap().count(), 0);
}

/// Covers: RO-09
#[test]
fn a_run_reaches_neither_the_folder_of_its_changes_nor_another_copy() {
    let project = Project::new();
    let (mut copy, mut other) = (project.copy(), project.copy());
    let secret = other.new_folder().unwrap().join("secret");
    fs::write(&secret, "secret").unwrap();
    let store = project.folder.path().join("store");
    let script = format!(
        "ls -R {store}; cat {secret}; cat {files}/a; cat /proc/self/mountinfo | grep -c {store}",
        store = store.display(),
        secret = secret.display(),
        files = project.files.display()
    );
    let said = project.run(&[project.shown(&mut copy)], &script);
    assert!(!said.contains("secret\n") && said.ends_with("\n0\n"), "{said}");
    assert_eq!(said.matches("No such file or directory").count(), 3, "{said}");
}

/// Covers: RO-09
#[test]
fn sealed_files_cannot_be_changed_replaced_or_moved_away() {
    let project = Project::new();
    let mut copy = project.copy();
    let checkout = copy.new_folder().unwrap();
    for (path, text) in [("scripts/test.sh", "echo judged\n"), ("d/deep/rule", "strong\n")] {
        let file = checkout.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let mut placed = vec![copy.over(&project.at, &checkout, std::slice::from_ref(&project.files)).unwrap()];
    let mut place = |path: &str, files: PlacedFiles| placed.push(Placed { at: project.at.join(path), files });
    for sealed in ["scripts/test.sh", "d/deep/rule"] {
        place(sealed, PlacedFiles::Sealed);
    }
    for folder in ["d/deep", "scripts", "d"] {
        place(folder, PlacedFiles::Pinned);
    }
    let script = r#"try() { "$@" > /dev/null 2>&1 && echo "DONE $*"; }
try sh -c 'echo x > scripts/test.sh'; try sh -c 'echo x > d/deep/rule'; try rm -f scripts/test.sh; try touch scripts/test.sh
try rm -f d/deep/rule; try rm -rf d; try mv scripts other; try mv d other; try mv d/deep d/other; try mv d/deep/rule d/rule
try chmod 777 d/deep/rule; try sh -c 'echo x > new && mv new d/deep/rule'; try umount scripts; try ln -sf /dev/null d/deep/rule
try ln d/deep/rule second; try truncate -s 0 scripts/test.sh; try dd if=/dev/null of=d/deep/rule
echo more > d/deep/more; echo more > d/more; cat d/deep/more d/deep/rule; sh scripts/test.sh"#;
    assert_eq!(project.run(&placed, script), "more\nstrong\njudged\n");
    let read = |path: &str| fs::read_to_string(checkout.join(path)).ok();
    assert_eq!(
        (read("d/deep/rule").as_deref(), read("d/more").as_deref()),
        (Some("strong\n"), Some("more\n"))
    );
    let open = copy.over(&project.at, &checkout, std::slice::from_ref(&project.files)).unwrap();
    let open = project.run(&[open], script);
    assert!(open.contains("DONE "), "it could, if they were not sealed: {open}");
}

/// A layer may contain what a session could plant if no filter refused it.
///
/// Covers: RO-09
#[test]
fn planted_markers_lead_nowhere() {
    let project = Project::new();
    let planted = project.folder.path().join("planted");
    let secret = project.folder.path().join("secret");
    fs::create_dir_all(planted.join("d")).unwrap();
    fs::create_dir_all(&secret).unwrap();
    fs::write(secret.join("key"), "secret").unwrap();
    let mark = |name: &str, at: &Path, value: &[u8]| {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(at, name, value, flags).unwrap();
    };
    mark("user.overlay.redirect", &planted.join("d"), b"/../secret");
    fs::write(planted.join("b"), "").unwrap();
    mark("user.overlay.metacopy", &planted.join("b"), b"");
    mark("user.overlay.redirect", &planted.join("b"), b"/../secret/key");
    symlink(secret.join("key"), planted.join("link")).unwrap();
    let script = "ls d; cat b; cat link; find . -name key";
    let mut copy = project.copy();
    let written = copy.new_folder().unwrap();
    let below = copy.over(&project.at, &written, &[planted.clone(), project.files.clone()]).unwrap();
    let above = copy.over(&project.at, &planted, std::slice::from_ref(&project.files)).unwrap();
    let said = [below, above].map(|placed| project.run(&[placed], script)).concat();
    assert!(!said.contains("secret\n") && !said.contains("key\n"), "{said}");
    // Neither can a run plant one for those that follow.
    let script = r#"for name in opaque redirect whiteout metacopy origin; do
    perl -e '$call = `uname -m` =~ /x86_64/ ? 188 : 5; $name = "user.overlay.$ARGV[0]"; $file = "d"; $value = "y";
        exit(syscall($call, $file, $name, $value, 1, 0) == 0 ? 0 : 1)' $name && echo "DONE $name"
done
mknod whiteout c 0 0 2> /dev/null && echo "DONE device"; perl -e 'print "tried\n"'"#;
    let said = project.run(&[project.shown(&mut copy)], script);
    assert_eq!(said, "tried\n");
}

/// Copying by overlay costs the same whatever the files contain, so the build folder has 500 MB of holes; and however many
/// they are: 60,000 in `just full`.
///
/// Covers: RO-10
#[test]
fn a_copy_of_5000_files_with_a_build_folder_costs_less_than_50_ms() {
    let project = Project::new();
    for number in 0..if is_full() { 60_000 } else { 5000 } {
        let folder = project.files.join(format!("src/{}", number % 50));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number}.rs")), "x").unwrap();
    }
    fs::create_dir(project.files.join("target")).unwrap();
    for number in 0..50 {
        fs::File::create(project.files.join(format!("target/{number}"))).unwrap().set_len(10 << 20).unwrap();
    }
    let output = project.folder.path().join("run");
    fs::create_dir_all(&output).unwrap();
    let timed = |run: &dyn Fn()| {
        let began = Instant::now();
        run();
        began.elapsed()
    };
    let plain = || assert_eq!(said_with(&output, &output, &[], "true"), "");
    let copied = || {
        let mut copy = project.copy();
        assert_eq!(
            project.run(&[project.shown(&mut copy)], "echo changed > src/7/7.rs; cat target/7 > /dev/null"),
            ""
        );
    };
    let room = (0..5).map(|_| timed(&plain)).min().unwrap();
    // Tried again, since the machine may have other work.
    let costs = (0..40).map(|_| timed(&copied).saturating_sub(room));
    let mut seen = Vec::new();
    let is_cheap = costs.inspect(|cost| seen.push(*cost)).any(|cost| cost < Duration::from_millis(50));
    assert!(is_cheap, "beside {room:?} for a room: {seen:?}");
}

fn is_full() -> bool {
    std::env::var_os("LIZA_FULL").is_some()
}

/// The checks of a coder work in a plain copy, which the second one brings up to date.
///
/// Covers: RO-09
#[test]
fn a_coder_checks_a_checkout_of_60000_files_and_the_second_copy_writes_what_differs() {
    let count = if is_full() { 60_000 } else { 3_000 };
    let script = format!(
        r#"mkdir -p many && cd many && seq {count} | xargs touch && cd ..
look() {{ "$LIZA" check -- sh -c 'echo "LOOK $(ls many | wc -l) $(cat many/7) $(stat -c %i many/9)"; rm many/8; echo x > many/9'; }}
look; echo changed > many/7; look; rm -r many; exit 1"#
    );
    let bench = Bench::new("sandbox: require\nsandbox_min: isolated", &[("c", &script)]);
    bench.project.add_task("t1");
    let began = Instant::now();
    bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
    println!("{count} files: {:?}", began.elapsed());
    let said = bench.outputs();
    let seen: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("LOOK ")).collect();
    assert!(said.contains("[liza: confinement isolated"), "{said}");
    assert!(seen.len() == 2 && seen[0].starts_with(&format!("{count}  ")), "{said}");
    assert!(seen[1].starts_with(&format!("{count} changed ")), "what a check removes is there again: {said}");
}
