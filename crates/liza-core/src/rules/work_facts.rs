//! The facts about a change: pure counting over its files, with their old and new text.

use liza_ids::gate::{GatePatterns, GateSettings, Protection, deciding_patterns};

use crate::model::{FactKind, WorkFacts};

use super::test_table::{FoundTest, tests_in};

pub use super::test_table::has_language;

/// A file that the change touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDelta {
    pub path: String,
    pub added: usize,
    pub removed: usize,
    /// `None` if the file did not exist or was not read.
    pub old: Option<String>,
    pub new: Option<String>,
    /// True if the tests in it could not be counted because it is too large.
    pub is_uncounted: bool,
    /// True if agent programs take instructions or settings from it.
    pub instructs: bool,
}

/// A test with its file.
type Located<'f> = (&'f str, FoundTest);

/// The paths and patterns that files are compared with.
#[derive(Debug, Clone, Default)]
pub struct KnownFiles {
    /// The protected ones among the changed files.
    pub protected: Vec<String>,
    /// The files of the coder's pre-checks, as paths, folders or patterns.
    pub planned: Vec<String>,
    /// `config.high_impact`.
    pub high_impact: Vec<String>,
}

pub fn work_facts(files: &[FileDelta], known: &KnownFiles) -> WorkFacts {
    let sum = |number: fn(&FileDelta) -> usize| files.iter().map(number).sum();
    let mut facts = WorkFacts {
        files: files.len(),
        added: sum(|file| file.added),
        removed: sum(|file| file.removed),
        ..WorkFacts::default()
    };
    for path in &known.protected {
        facts.note(FactKind::Protected, path);
    }
    let patterns = |list: Vec<String>| GatePatterns::new(&GateSettings { runs: list, watched: Vec::new() });
    let (planned, deciding) =
        (patterns(known.planned.iter().flat_map(|text| plan_entries(text)).collect()), deciding_patterns());
    let high_impact = patterns(known.high_impact.clone());
    let matches = |patterns: &GatePatterns, path: &str| patterns.protection(path) == Protection::Runs;
    for file in files {
        let path = file.path.as_str();
        let kinds = [
            (FactKind::Deciding, matches(&deciding, path) && !known.protected.contains(&file.path)),
            (FactKind::HighImpact, matches(&high_impact, path)),
            (FactKind::Instructions, file.instructs),
            (FactKind::Unplanned, !matches(&planned, path)),
            (FactKind::Uncounted, file.is_uncounted),
        ];
        for (kind, _) in kinds.into_iter().filter(|(_, holds)| *holds) {
            facts.note(kind, path);
        }
    }
    note_tests(&mut facts, files);
    facts
}

/// An entry of a pre-check as people and models write it: `src/a.rs`, `src/`, or `src/a.rs (new)`.
fn plan_entries(text: &str) -> Vec<String> {
    let plain = |text: &str| text.trim_matches(['`', '"', '\'', ',', ':', ' ']).to_owned();
    let first = text.split_whitespace().next().unwrap_or_default();
    // An entry without a name would match every path.
    let names = |entry: &String| entry.split('/').any(|name| !matches!(name, "" | "." | "**"));
    [plain(text), plain(first)].into_iter().filter(names).collect()
}

fn note_tests(facts: &mut WorkFacts, files: &[FileDelta]) {
    let (mut deleted, mut added): (Vec<Located<'_>>, Vec<Located<'_>>) = (Vec::new(), Vec::new());
    for file in files {
        let tests = |text: &Option<String>| tests_in(&file.path, text.as_deref().unwrap_or_default());
        let mut old = tests(&file.old);
        for new in tests(&file.new) {
            // Among tests of the same name the unchanged one is the same.
            let same = old.iter().position(|old| old.name == new.name && old.text == new.text);
            let same = same.or_else(|| old.iter().position(|old| old.name == new.name));
            match same.map(|at| old.remove(at)) {
                Some(old) => note_kept(facts, &file.path, &old, &new),
                None => added.push((&file.path, new)),
            }
        }
        deleted.extend(old.into_iter().map(|test| (file.path.as_str(), test)));
    }
    for (path, test) in added {
        // A test that only moved to another file is neither new nor gone.
        let moved = deleted.iter().position(|(_, old)| old.name == test.name && old.text == test.text);
        match moved {
            Some(at) => drop(deleted.remove(at)),
            None => {
                note(facts, FactKind::TestsAdded, path, &test, !test.is_group);
                note(facts, FactKind::TestsSkipped, path, &test, test.is_skipped);
            }
        }
    }
    for (path, test) in deleted {
        note(facts, FactKind::TestsDeleted, path, &test, !test.is_group);
    }
}

fn note_kept(facts: &mut WorkFacts, path: &str, old: &FoundTest, new: &FoundTest) {
    let is_skipped = new.is_skipped && !old.is_skipped;
    note(facts, FactKind::TestsSkipped, path, new, is_skipped);
    note(facts, FactKind::TestsChanged, path, new, !is_skipped && !new.is_group && old.text != new.text);
}

fn note(facts: &mut WorkFacts, kind: FactKind, path: &str, test: &FoundTest, holds: bool) {
    if holds {
        facts.note(kind, &format!("{} in {path}", test.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, old: &str, new: &str) -> FileDelta {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        FileDelta { path: path.to_owned(), old: text(old), new: text(new), ..FileDelta::default() }
    }

    /// The names of tests that were added, changed, deleted and newly skipped.
    fn counted(files: &[FileDelta]) -> [Vec<String>; 4] {
        let facts = work_facts(files, &KnownFiles::default());
        let kinds =
            [FactKind::TestsAdded, FactKind::TestsChanged, FactKind::TestsDeleted, FactKind::TestsSkipped];
        kinds.map(|kind| {
            let names = facts.noted.get(&kind).map(|list| list.names.clone()).unwrap_or_default();
            names.iter().filter_map(|name| name.split_once(" in ").map(|(name, _)| name.to_owned())).collect()
        })
    }

    fn check(path: &str, old: &str, new: &str) {
        let expected = ["fresh", "altered", "gone", "muted"].map(|name| vec![name.to_owned()]);
        let is_go = path.ends_with(".go");
        let found = counted(&[file(path, old, new)]).map(|names| {
            let plain = |name: &String| match is_go {
                true => name.trim_start_matches("Test").to_lowercase(),
                false => name.trim_start_matches("test_").to_owned(),
            };
            names.iter().map(plain).collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{path}");
        assert_eq!(counted(&[file(path, old, old)]), [const { Vec::<String>::new() }; 4], "{path}");
        // A deleted file has lost its tests, and a new one has only new ones.
        assert_eq!(counted(&[file(path, old, "")])[2].len(), 3, "{path}");
        let moved = [file(path, old, ""), file(&format!("moved/{path}"), "", old)];
        assert_eq!(counted(&moved), [const { Vec::<String>::new() }; 4], "{path}");
    }

    /// Covers: JU-07
    #[test]
    fn tests_of_rust_are_counted() {
        let old = "fn helper() {\n    one();\n}\n\n#[test]\nfn altered() {\n    assert_eq!(\n        one(),\n        1\n    );\n}\n\n\
                   #[tokio::test(flavor = \"current_thread\")]\nasync fn gone() {}\n\n#[test]\nfn muted() {\n    two();\n}\n\n\
                   // #[test]\n// fn never() {}\n";
        let new = "fn helper() {\n    other();\n}\n\n#[test]\nfn altered() {\n    assert_eq!(\n        one(),\n        2\n    );\n}\n\n\
                   #[ignore = \"slow\"]\n#[test]\nfn muted() {\n    two();\n}\n\n#[rstest]\n#[case(\n    1\n)]\npub(crate) fn fresh(a: u8) {}\n\
                   /*\n#[test]\nfn gone() {}\n*/\n";
        check("src/lib.rs", old, new);
        let inline = "#[test] #[ignore] fn muted() {}\n#[test]\nfn other() { ignore(); }\n";
        assert_eq!(counted(&[file("a.rs", "", inline)])[3], ["muted"]);
        let off = "#[cfg(any())]\nmod tests {\n    #[test]\n    fn one() {}\n}\n";
        assert_eq!(counted(&[file("a.rs", &off.replace("#[cfg(any())]\n", ""), off)])[3], ["tests"]);
    }

    /// Covers: JU-07
    #[test]
    fn tests_of_python_are_counted() {
        let old = "def helper():\n    pass\n\ndef test_altered(\n    a,\n):\n    assert a == 1\n\nclass TestX:\n    def test_gone(self):\n        pass\n\n    \
                   def test_muted(self):\n        assert 1\n";
        let new = "def helper():\n    return\n\ndef test_altered(\n    a,\n):\n    assert a\n\nclass TestX:\n    @pytest.mark.skip(\n        reason=\"x\"\n    )\n    \
                   def test_muted(self):\n        assert 1\n\n    async def test_fresh(self):\n        pass\n";
        check("test_a.py", old, new);
        let inside = "def test_a():\n    pytest.skip(\"x\")\n\ndef test_b():\n    skip = 1\n";
        assert_eq!(counted(&[file("a.py", "", inside)])[3], ["test_a"]);
        let class = "@unittest.skip\nclass All:\n    pass\n\nclass Other:\n    pass\n";
        assert_eq!(counted(&[file("a.py", "", class)])[3], ["All"]);
    }

    /// Covers: JU-07
    #[test]
    fn tests_of_javascript_and_typescript_are_counted() {
        let old = "describe(\"x\", () => {\n  it(\"altered\", () => {\n    expect(1).toBe(1)\n  })\n  test('gone', () => {})\n  it(`muted`, async () => {\n    two()\n  })\n})\n";
        let new = "describe(\"x\", () => {\n  it(\"altered\", () => {\n    expect(1)\n  })\n  it.skip(`muted`, async () => {\n    two()\n  })\n  it(\n    \"fresh\",\n    () => {},\n  )\n})\n";
        for extension in ["js", "jsx", "mjs", "ts", "tsx", "cts"] {
            check(&format!("a.test.{extension}"), old, new);
        }
        for skipped in ["describe.skip(\"x\"", "xdescribe(\"x\"", "describe.only(\"x\""] {
            let new = old.replace("describe(\"x\"", skipped);
            assert_eq!(counted(&[file("a.ts", old, &new)])[3], ["x"], "{skipped}");
        }
        assert_eq!(counted(&[file("a.ts", "", "it(\"has .skip in its name\", f)\n")])[3], [""; 0]);
    }

    /// Covers: JU-07
    #[test]
    fn tests_of_go_are_counted() {
        let old = "func helper() {\n\tone()\n}\n\nfunc TestAltered(t *testing.T) {\n\tone()\n}\n\nfunc TestGone(t *testing.T) {\n}\n\nfunc TestMuted(t *testing.T) {\n\ttwo()\n}\n";
        let new = "func TestAltered(t *testing.T) {\n\tother()\n}\n\nfunc TestMuted(t *testing.T) {\n\tt.Skip(\"later\")\n\ttwo()\n}\n\nfunc (s *Suite) TestFresh() {\n}\n";
        check("a_test.go", old, new);
    }

    /// Covers: JU-07
    #[test]
    fn tests_of_the_shell_are_counted() {
        let old = "helper() {\n  one\n}\n@test \"altered\" {\n  [ 1 = 1 ]\n}\n@test \"gone\" {\n  one\n}\n@test \"muted\" {\n  two --skip\n}\n";
        let new = "@test \"altered\" {\n  [ 1 ]\n}\n@test \"muted\" {\n  skip \"later\"\n  two --skip\n}\nfunction test_fresh {\n  one\n}\n";
        check("a.bats", old, new);
        check("a.sh", old, new);
        let units =
            counted(&[file("a.sh", "", "test_one() {\n  x\n}\ntest -f \"$(y ())\"\ntest_two () {\n}\n")]);
        assert_eq!(units[0], ["test_one", "test_two"]);
    }

    /// Covers: JU-07
    #[test]
    fn a_deleted_test_is_not_hidden_by_another_of_its_name() {
        let (one, two) = ("#[test]\nfn same() {\n    one();\n}\n", "#[test]\nfn same() {\n    two();\n}\n");
        let files = [file("a.rs", one, ""), file("b.rs", "", two)];
        let [added, changed, deleted, _] = counted(&files);
        assert_eq!((added.len(), changed.len(), deleted.len()), (1, 0, 1));
    }

    /// Covers: JU-07
    #[test]
    fn files_are_compared_with_the_plan_the_gate_and_what_models_read() {
        let delta = |path: &str| FileDelta { added: 2, removed: 1, ..file(path, "", "") };
        let instructs = |path: &str| FileDelta { instructs: true, ..delta(path) };
        let files = [
            delta("src/a.rs"),
            delta("docs/b.md"),
            delta("tests/c_test.py"),
            delta("other.rs"),
            delta("web/package.json"),
            delta("web/jest.config.ts"),
            delta("scripts/build.rs"),
            instructs("CLAUDE.md"),
        ];
        let planned = ["`src/a.rs` (new)", "docs/", "./tests/*.py", "/", ""].map(str::to_owned);
        let known = KnownFiles {
            protected: vec!["scripts/build.rs".to_owned()],
            planned: planned.to_vec(),
            high_impact: vec!["docs/**".to_owned()],
        };
        let facts = work_facts(&files, &known);
        assert_eq!((facts.files, facts.added, facts.removed), (8, 16, 8));
        assert_eq!(facts.noted[&FactKind::Protected].names, ["scripts/build.rs"]);
        assert_eq!(facts.noted[&FactKind::Deciding].names, ["web/package.json", "web/jest.config.ts"]);
        assert_eq!(facts.noted[&FactKind::HighImpact].names, ["docs/b.md"]);
        assert_eq!(facts.noted[&FactKind::Instructions].names, ["CLAUDE.md"]);
        let unplanned = &facts.noted[&FactKind::Unplanned];
        assert_eq!((unplanned.count, unplanned.names[0].as_str()), (5, "other.rs"));
        assert_eq!(work_facts(&files, &KnownFiles::default()).count(FactKind::Unplanned), 8);
    }
}
