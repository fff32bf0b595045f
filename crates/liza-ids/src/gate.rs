//! The files that judge a merge: `gate.runs` and `gate.watched`, patterns over the paths of a tree. Paths are
//! compared after case folding and Unicode normalization (NFC), as a case-insensitive file system does.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

/// `config.gate`: the files that judge work, as patterns of paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateSettings {
    /// The integration test runs from these.
    pub runs: Vec<String>,
    /// These only need the human's approval when they change.
    pub watched: Vec<String>,
}

impl Default for GateSettings {
    fn default() -> Self {
        let list = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Self {
            runs: list(&["scripts/**"]),
            watched: list(&["liza.yaml", ".github/workflows/**", ".gitlab-ci.yml"]),
        }
    }
}

/// Files that decide what a gate runs, besides its own. A person has to protect those that matter.
pub const DECIDING: [&str; 13] = [
    "Makefile",
    "GNUmakefile",
    "justfile",
    "package.json",
    "conftest.py",
    "pytest.ini",
    "tox.ini",
    "noxfile.py",
    ".cargo/config.toml",
    ".cargo/config",
    "rust-toolchain",
    "rust-toolchain.toml",
    "build.rs",
];

/// Settings of programs that run tests, and what Python loads before each program, in any folder.
const TEST_SETTINGS: [&str; 16] = [
    "jest.config.*",
    "vitest.config.*",
    "vitest.workspace.*",
    "playwright.config.*",
    "cypress.config.*",
    "karma.conf.*",
    ".mocharc*",
    "setup.cfg",
    ".config/nextest.toml",
    ".npmrc",
    ".yarnrc.yml",
    "bunfig.toml",
    "pyproject.toml",
    ".pytest.ini",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Patterns of all files that decide what a gate runs, in any folder.
pub fn deciding_patterns() -> GatePatterns {
    let anywhere = DECIDING.iter().chain(&TEST_SETTINGS).map(|name| format!("**/{name}"));
    GatePatterns::new(&GateSettings { runs: anywhere.collect(), watched: Vec::new() })
}

/// The relation of a path to the patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Neither the path nor anything below it can match.
    None,
    /// Something below it can match.
    OnTheWay,
    /// A change needs the human's approval.
    Watched,
    /// The same, and the gate runs from it.
    Runs,
}

/// The patterns that the person of this machine accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatePatterns {
    runs: Vec<Vec<Part>>,
    watched: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `**`: any number of folders.
    Folders,
    /// A name, with `*` and `?`, folded.
    Name(String),
}

impl GatePatterns {
    pub fn new(settings: &GateSettings) -> Self {
        let parsed = |patterns: &[String]| patterns.iter().map(|text| parse(text)).collect();
        Self { runs: parsed(&settings.runs), watched: parsed(&settings.watched) }
    }

    /// Compares a path with the patterns. A pattern that names a folder protects everything below it.
    pub fn protection(&self, path: &str) -> Protection {
        let path = fold(path);
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let of = |patterns: &[Vec<Part>], matched: Protection| {
            let reached = patterns.iter().map(|pattern| reach(pattern, &names));
            reached.max().map_or(Protection::None, |reached| match reached {
                Reach::No => Protection::None,
                Reach::OnTheWay => Protection::OnTheWay,
                Reach::Matches => matched,
            })
        };
        of(&self.runs, Protection::Runs).max(of(&self.watched, Protection::Watched))
    }

    /// The files among these paths that decide what the gate runs and that no pattern protects.
    pub fn unprotected_deciding<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> Vec<&'p str> {
        let decides = |path: &&str| DECIDING.contains(path);
        let is_protected = |path: &&str| self.protection(path) >= Protection::Watched;
        paths.into_iter().filter(decides).filter(|path| !is_protected(path)).collect()
    }
}

pub fn protect_command(settings: &GateSettings, files: &[&str]) -> String {
    let watched = settings.watched.iter().map(String::as_str).chain(files.iter().copied());
    let quoted: Vec<String> = watched.map(|pattern| format!("\"{pattern}\"")).collect();
    format!("liza config gate.watched '[{}]'", quoted.join(", "))
}

/// Folds a text as a file system that ignores case and Unicode forms does, without the characters that it skips.
pub fn fold(text: &str) -> String {
    let skipped = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let folded = text.nfd().filter(|c| !skipped(c)).flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    folded.nfc().collect()
}

fn parse(pattern: &str) -> Vec<Part> {
    let folded = fold(pattern);
    let names = folded.split('/').filter(|name| !name.is_empty() && *name != ".");
    names.map(|name| if name == "**" { Part::Folders } else { Part::Name(name.to_owned()) }).collect()
}

/// The distance that a pattern leads along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    No,
    OnTheWay,
    Matches,
}

fn reach(pattern: &[Part], names: &[&str]) -> Reach {
    match (pattern.split_first(), names.split_first()) {
        (None, _) => Reach::Matches,
        (Some(_), None) => Reach::OnTheWay,
        (Some((Part::Folders, rest)), Some((_, below))) => reach(rest, names).max(reach(pattern, below)),
        (Some((Part::Name(wanted), rest)), Some((name, below))) => {
            if name_matches(wanted, name) {
                reach(rest, below)
            } else {
                Reach::No
            }
        }
    }
}

fn name_matches(pattern: &str, name: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = letters.as_str();
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| name_matches(rest, &name[at..]))
        }
        Some(letter) => {
            let mut found = name.chars();
            let same = found.next().is_some_and(|other| letter == '?' || letter == other);
            same && name_matches(letters.as_str(), found.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(runs: &[&str], watched: &[&str]) -> GatePatterns {
        let list = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        GatePatterns::new(&GateSettings { runs: list(runs), watched: list(watched) })
    }

    /// Covers: JU-01
    #[test]
    fn paths_are_protected_after_folding() {
        let found = |path: &str| GatePatterns::new(&GateSettings::default()).protection(path);
        for path in [
            "scripts/integration-test.sh",
            "SCRIPTS/a/b",
            "\u{17f}cripts/x",
            "scr\u{200c}ipts/x",
            "Scripts/é",
        ] {
            assert_eq!(found(path), Protection::Runs, "{path}");
        }
        for path in ["liza.yaml", "Liza.YAML", ".github/workflows/ci.yml", ".gitlab-ci.yml"] {
            assert_eq!(found(path), Protection::Watched, "{path}");
        }
        for path in ["scripts", ".github", ".GitHub/workflows"] {
            assert_eq!(found(path), Protection::OnTheWay, "{path}");
        }
        for path in ["src/main.rs", "my-scripts/x", "scripts.sh", "a/scripts/x", "liza.yaml.bak"] {
            assert_eq!(found(path), Protection::None, "{path}");
        }
    }

    /// Covers: JU-01
    #[test]
    fn patterns_have_folders_stars_and_question_marks() {
        let some = patterns(&["tools/*.sh", "**/conftest.py", "ci"], &["a?c/**", "caf\u{e9}"]);
        let found = |path: &str| some.protection(path);
        assert_eq!(found("tools/x.sh"), Protection::Runs);
        assert_eq!(found("tools/.sh"), Protection::Runs);
        assert_eq!(found("conftest.py"), Protection::Runs);
        assert_eq!(found("a/b/Conftest.py"), Protection::Runs);
        assert_eq!(found("ci/deep/file"), Protection::Runs, "a folder protects what is below it");
        assert_eq!(found("abc/x"), Protection::Watched);
        assert_eq!(found("cafe\u{301}"), Protection::Watched);
        assert_eq!(found("tools/x.py"), Protection::OnTheWay, "it could have a conftest.py");
        assert_eq!(patterns(&["tools/*.sh"], &[]).protection("tools/x/y.sh"), Protection::None);
        assert_eq!(patterns(&[], &[]).protection("x"), Protection::None);
    }

    /// Covers: JU-01
    #[test]
    fn what_else_decides_is_named_unless_it_is_protected() {
        let some = patterns(&["scripts/**"], &["package.json"]);
        let paths = ["Makefile", "package.json", "src/main.rs", "rust-toolchain.toml"];
        assert_eq!(some.unprotected_deciding(paths), ["Makefile", "rust-toolchain.toml"]);
    }
}
