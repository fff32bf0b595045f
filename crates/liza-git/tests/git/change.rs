//! The change under review: whether it is still the same at another head, and merges that take back what others did.

use std::fmt::Write as _;
use std::path::PathBuf;

use liza_git::{MergeChange, TakenBack};
use liza_ids::Sha;

use crate::support::{TestRepo, write};

/// Commits that are made with one git command.
#[derive(Default)]
struct Commits {
    stream: String,
    count: usize,
}

impl Commits {
    /// A commit with these files, and without those that have no text; returns its mark.
    fn add(&mut self, parents: &[usize], files: &[(&str, Option<&str>)]) -> usize {
        self.count += 1;
        let mark = self.count;
        let _ = write!(
            self.stream,
            "commit refs/made/{mark}\nmark :{mark}\ncommitter T <t@example.com> {mark} +0000\ndata 0\n"
        );
        for (number, parent) in parents.iter().enumerate() {
            let word = if number == 0 { "from" } else { "merge" };
            let _ = writeln!(self.stream, "{word} :{parent}");
        }
        for (path, text) in files {
            let _ = match text {
                Some(text) => writeln!(self.stream, "M 100644 inline {path}\ndata {}\n{text}", text.len()),
                None => writeln!(self.stream, "D {path}"),
            };
        }
        self.stream.push('\n');
        mark
    }

    /// Makes them; returns what they are called, by mark.
    fn make(&self, test: &TestRepo) -> Vec<Sha> {
        let import = test.program().command("importing", &test.root).args(["fast-import", "--quiet"]);
        import.stdin(self.stream.clone()).read().unwrap();
        let list = ["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/made/"];
        let mut made: Vec<(usize, Sha)> = test
            .git(&list)
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(mark, name)| (mark.parse().unwrap(), name.parse().unwrap()))
            .collect();
        made.sort();
        let base = test.sha("HEAD");
        std::iter::once(base).chain(made.into_iter().map(|(_, name)| name)).collect()
    }
}

/// Lines of code-like text, many of which repeat as braces and blank lines do.
fn code() -> Vec<String> {
    (0..40)
        .flat_map(|n| {
            [
                format!("fn step_{n}(input: u32) -> u32 {{"),
                format!("    let value = input * {};", n * 7 + 1),
                "    log(value);".to_owned(),
                format!("    check_{}(value);", n % 5),
                "    value".to_owned(),
                "}".to_owned(),
                String::new(),
            ]
        })
        .collect()
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// The lines with one edit at a place: a replacement, an insertion of one or two, or a removal.
fn edited(lines: &[String], at: usize, kind: usize, tag: &str) -> Vec<String> {
    let mut lines = lines.to_vec();
    match kind % 4 {
        0 => lines[at] = format!("    {tag}_{at}();"),
        1 => lines.insert(at, format!("    {tag}_{at}();")),
        2 => {
            lines.insert(at, format!("    let {tag}_{at} = 1;"));
            lines.insert(at + 1, format!("    use_it({tag}_{at});"));
        }
        _ => {
            lines.remove(at);
        }
    }
    lines
}

/// What the integration branch gets while a commit with that edit is read; harmless.
fn drift(lines: &[String], work: &[String], at: usize, kind: usize) -> Vec<(&'static str, Option<String>)> {
    let file = |lines: Vec<String>| ("a.rs", Some(text(&lines)));
    match kind % 10 {
        0 => vec![("other.rs", Some("fn other() {}\n".to_owned()))],
        1 => vec![file(edited(lines, 1, 2, "above"))],
        2 => vec![file(edited(lines, at + 3, 0, "near"))],
        3 => vec![file(edited(lines, at - 3, 0, "near"))],
        4 => vec![file(edited(&edited(lines, at + 4, 1, "below"), at - 4, 2, "above"))],
        5 => vec![("b.rs", Some("the same in both\n".to_owned())), file(edited(lines, 3, 3, "gone"))],
        6 => vec![("a.rs", Some(text(work)))],
        7 => vec![("c.rs", None), file(edited(lines, lines.len() - 2, 1, "end"))],
        8 => vec![file(edited(lines, at + 3, 1, "near"))],
        _ => vec![file(lines.iter().skip(7).cloned().collect())],
    }
}

/// Covers: JU-06
#[test]
fn a_change_is_the_same_after_harmless_moves_of_the_integration_branch() {
    let test = TestRepo::new();
    let (mut commits, lines) = (Commits::default(), code());
    let base = [("a.rs", text(&lines)), ("b.rs", "b\n".to_owned()), ("c.rs", "c\n".to_owned())];
    let base: Vec<(&str, Option<&str>)> =
        base.iter().map(|(path, text)| (*path, Some(text.as_str()))).collect();
    let base = commits.add(&[], &base);
    let cases: Vec<(usize, usize, usize)> = (0..160)
        .map(|n| {
            let at = 20 + (n * 37) % 200;
            let work = edited(&lines, at, n / 10, "work");
            let mine = [("a.rs", Some(text(&work))), ("b.rs", Some("the same in both\n".to_owned()))];
            let mut add = |files: &[(&str, Option<String>)]| {
                let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_deref())).collect();
                commits.add(&[base], &files)
            };
            let commit = add(&mine);
            (n, commit, add(&drift(&lines, &work, at, n)))
        })
        .collect();
    let names = commits.make(&test);
    let refused: Vec<(usize, Vec<String>)> = cases
        .iter()
        .map(|(n, commit, head)| {
            (*n, test.repo.moved_change(&names[base], &names[*head], &names[*commit]).unwrap())
        })
        .filter(|(_, moved)| !moved.is_empty())
        .collect();
    assert!(refused.len() * 100 <= cases.len(), "{} of {}: {refused:?}", refused.len(), cases.len());
}

/// Covers: JU-06
#[test]
fn a_change_that_its_merge_would_make_otherwise_is_seen() {
    let test = TestRepo::new();
    let (mut commits, lines) = (Commits::default(), code());
    let whole = text(&lines);
    let base = commits.add(&[], &[("a.rs", Some(&whole)), ("b.rs", Some("b\n")), ("dir/x", Some("x\n"))]);
    let work = text(&edited(&edited(&lines, 50, 0, "one"), 100, 0, "two"));
    let commit = commits.add(&[base], &[("a.rs", Some(&work)), ("b.rs", Some("new b\n"))]);
    let half = text(&edited(&lines, 50, 0, "one"));
    let conflicting = text(&edited(&lines, 50, 0, "theirs"));
    let merged = commits.add(&[base, commit], &[("a.rs", Some(&work)), ("b.rs", Some("new b\n"))]);
    let heads = [
        ("a conflict", commits.add(&[base], &[("a.rs", Some(&conflicting))]), "a.rs (conflicts)"),
        ("one of two hunks", commits.add(&[base], &[("a.rs", Some(&half))]), "a.rs"),
        ("a removed file", commits.add(&[base], &[("a.rs", None)]), "a.rs (conflicts)"),
        (
            "merged and taken back",
            commits.add(&[merged], &[("a.rs", Some(&whole)), ("b.rs", Some("b\n"))]),
            "a.rs",
        ),
        ("a renamed file", commits.add(&[base], &[("a.rs", None), ("z.rs", Some(&whole))]), "z.rs"),
    ];
    let names = commits.make(&test);
    let moved = |before: usize, head: usize| {
        test.repo.moved_change(&names[before], &names[head], &names[commit]).unwrap()
    };
    for (what, head, expected) in heads {
        assert!(moved(base, head).iter().any(|path| path == expected), "{what}: {:?}", moved(base, head));
    }
    assert_eq!(moved(base, merged), Vec::<String>::new(), "the branch already has all of it");
    assert!(matches!(
        test.repo.merge_change(&names[heads[0].1], &names[commit]).unwrap(),
        MergeChange::Undefined { conflicts } if conflicts == [PathBuf::from("a.rs")]
    ));
}

/// A branch that is made of a base, with a fix on the integration branch and work beside it.
struct Work {
    test: TestRepo,
    folder: PathBuf,
}

impl Work {
    /// The fix changes one line of `shared`, and adds a file; the work changes `shared` as given.
    fn new(shared: Option<&str>) -> Self {
        let test = TestRepo::new();
        let old: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        test.advance("shared", &old);
        let folder = test.home.path().join("work");
        test.git(&["worktree", "add", "-q", "--detach", folder.to_str().unwrap(), "integration"]);
        test.commit(&folder, "mine", "mine\n");
        if let Some(text) = shared {
            test.commit(&folder, "shared", text);
        }
        test.advance("shared", &old.replace("line 5", "line 5 with the fix"));
        test.advance("fix", "the fix\n");
        Self { test, folder }
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.test.git_at(&self.folder, arguments)
    }

    fn taken_back(&self) -> Vec<TakenBack> {
        let commit = self.git(&["rev-parse", "HEAD"]).parse().unwrap();
        self.test.repo.taken_back(&self.test.base(), &commit).unwrap()
    }

    fn paths(&self) -> Vec<String> {
        let paths = self.taken_back().into_iter().flat_map(|taken| taken.paths);
        paths.map(|path| path.to_string_lossy().into_owned()).collect()
    }
}

/// Covers: JU-06
#[test]
fn a_merge_that_keeps_only_its_own_side_takes_back_what_others_did() {
    let work = Work::new(None);
    work.git(&["merge", "-q", "-s", "ours", "-m", "merge", "integration"]);
    assert_eq!(work.paths(), ["fix", "shared"]);
    // Commits after it do not hide it.
    work.test.commit(&work.folder, "more", "more\n");
    assert_eq!(work.taken_back()[0].merge.as_str(), work.git(&["rev-parse", "HEAD~1"]));
}

/// Covers: JU-06
#[test]
fn a_badly_resolved_conflict_takes_back_and_a_well_resolved_one_does_not() {
    let mine: String =
        (1..=9).map(|n| format!("line {n}\n")).collect::<String>().replace("line 5", "line 5 of mine");
    for (resolved, expected) in [
        ("line 5 of mine", &["shared"][..]),
        ("line 5 of mine with the fix", &[]),
        ("line 5 with the fix\nline 5 of mine", &[]),
    ] {
        let work = Work::new(Some(&mine));
        work.git(&["config", "rerere.enabled", "false"]);
        let conflict =
            work.test.program().command("merging", &work.folder).args(["merge", "-q", "integration"]);
        assert!(conflict.read().is_err());
        write(&work.folder.join("shared"), &mine.replace("line 5 of mine", resolved));
        work.git(&["add", "-A"]);
        work.git(&["commit", "-qm", "resolved"]);
        assert_eq!(work.paths(), expected, "{resolved}");
    }
}

/// Covers: JU-06
#[test]
fn a_refactoring_after_a_clean_merge_is_no_alarm() {
    let work = Work::new(None);
    work.git(&["merge", "-q", "-m", "merge", "integration"]);
    assert_eq!(work.taken_back(), []);
    work.git(&["mv", "fix", "renamed"]);
    write(&work.folder.join("shared"), "all of it is written again\n");
    work.git(&["add", "-A"]);
    work.git(&["commit", "-qm", "refactor"]);
    assert_eq!(work.taken_back(), []);
    // What the integration branch itself merged is not the work's.
    work.test.git(&["update-ref", "refs/heads/integration", &work.git(&["rev-parse", "HEAD"])]);
    assert_eq!(work.taken_back(), []);
}

/// Covers: JU-06
#[test]
fn a_merge_with_more_than_two_parents_is_named_since_it_cannot_be_compared() {
    let work = Work::new(None);
    let tree = work.git(&["rev-parse", "HEAD^{tree}"]);
    let parents = ["HEAD", "integration", "integration~1"].map(|name| work.git(&["rev-parse", name]));
    let words = ["commit-tree", &tree, "-m", "many", "-p", &parents[0], "-p", &parents[1], "-p", &parents[2]];
    let merge = work.git(&words);
    work.git(&["reset", "-q", "--hard", &merge]);
    let [TakenBack { merge: found, paths }] = &work.taken_back()[..] else { panic!("one merge") };
    assert_eq!((found.as_str(), paths.len()), (merge.as_str(), 0));
}

/// Covers: JU-04, JU-06
#[test]
fn the_digest_of_a_change_is_that_of_its_lines_wherever_they_are() {
    let test = TestRepo::new();
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n{last}\n");
    test.advance("c", &lines("1", "6"));
    let (base, tree) = (test.base(), test.worktree("task-1"));
    let commit = test.commit(&tree, "c", &lines("1", "theirs"));
    let digest = |head: &Sha, commit: &Sha| test.repo.change_digest(head, commit).unwrap();
    let before = digest(&base, &commit).unwrap();
    let moved = test.advance("c", &lines("0\n1", "6"));
    assert_eq!(digest(&moved, &commit), Some(before.clone()), "the lines are elsewhere now");
    let more = test.commit(&tree, "d", "x\n");
    assert_ne!(digest(&moved, &more), Some(before));
    let conflict = test.advance("c", &lines("1", "ours"));
    assert_eq!(digest(&conflict, &commit), None);
}
