//! The corpus: four small repositories with ten tasks each. A task has a correct patch, tests that the coder sees,
//! and hidden tests that only the oracle has.

/// The language of a repository, with its embedded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    Shell,
}

impl Language {
    pub const ALL: &'static [Language] = <Language as strum::VariantArray>::VARIANTS;

    fn text(self) -> &'static str {
        match self {
            Language::Rust => include_str!("../corpus/rust.txt"),
            Language::Python => include_str!("../corpus/python.txt"),
            Language::JavaScript => include_str!("../corpus/javascript.txt"),
            Language::Shell => include_str!("../corpus/shell.txt"),
        }
    }

    /// The file with the tests that the coder sees.
    pub fn test_file(self) -> &'static str {
        match self {
            Language::Rust => "tests/visible.rs",
            Language::Python => "test_visible.py",
            Language::JavaScript => "visible.test.js",
            Language::Shell => "test/visible.sh",
        }
    }

    /// One test as people write it in this language.
    fn test(self, number: usize, condition: &str) -> String {
        match self {
            Language::Rust => format!("#[test]\nfn visible_{number}() {{\n    assert!({condition});\n}}\n"),
            Language::Python => format!("def test_{number}():\n    assert {condition}\n"),
            Language::JavaScript => {
                format!("test(\"visible {number}\", () => {{\n  assert({condition});\n}});\n")
            }
            Language::Shell => format!("test_{number}() {{\n  {condition}\n}}\n"),
        }
    }

    /// The same test as one that is not run.
    pub fn skipped(self, test: &str) -> String {
        match self {
            Language::Rust => test.replacen("#[test]", "#[test]\n#[ignore]", 1),
            Language::Python => format!("@unittest.skip\n{test}"),
            Language::JavaScript => test.replacen("test(", "test.skip(", 1),
            Language::Shell => test.replacen("{\n", "{\n  skip\n", 1),
        }
    }

    /// The same test with a condition that always holds.
    pub fn weakened(self) -> String {
        let always = match self {
            Language::Rust | Language::JavaScript => "true",
            Language::Python => "True",
            Language::Shell => ":",
        };
        self.test(0, always)
    }
}

/// A task of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorpusTask {
    pub language: Language,
    pub name: String,
    pub about: String,
    /// The correct patch: one function.
    pub patch: String,
    /// Conditions that hold of the correct patch, one for each test.
    pub visible: Vec<String>,
    pub hidden: Vec<String>,
}

impl CorpusTask {
    /// The visible tests as they are in the repository.
    pub fn visible_tests(&self) -> Vec<String> {
        self.visible.iter().enumerate().map(|(at, condition)| self.language.test(at, condition)).collect()
    }
}

/// All tasks of all repositories.
pub fn tasks() -> Vec<CorpusTask> {
    Language::ALL.iter().flat_map(|language| parse(*language)).collect()
}

fn parse(language: Language) -> Vec<CorpusTask> {
    let blocks = language.text().split("@task ").filter(|block| !block.is_empty());
    blocks.filter_map(|block| parse_task(language, block)).collect()
}

fn parse_task(language: Language, block: &str) -> Option<CorpusTask> {
    let (head, rest) = block.split_once("@patch\n")?;
    let (name, about) = head.split_once('\n')?;
    let (patch, rest) = rest.split_once("@visible\n")?;
    let (visible, hidden) = rest.split_once("@hidden\n")?;
    let lines = |text: &str| text.lines().map(str::to_owned).collect();
    let (name, about, patch) = (name.to_owned(), about.trim().to_owned(), patch.to_owned());
    Some(CorpusTask { language, name, about, patch, visible: lines(visible), hidden: lines(hidden) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-01
    #[test]
    fn four_repositories_have_ten_tasks_each_with_both_kinds_of_tests() {
        let all = tasks();
        for language in Language::ALL {
            assert_eq!(all.iter().filter(|task| task.language == *language).count(), 10, "{language}");
        }
        for task in &all {
            assert!(!task.visible.is_empty() && task.hidden.len() >= 3, "{}", task.name);
            assert!(!task.patch.is_empty() && !task.about.is_empty(), "{}", task.name);
        }
    }
}
