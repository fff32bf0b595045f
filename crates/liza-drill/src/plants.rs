//! Defects that a reviewer can only see by reading: each survives every command that judges the work in the copy, and fails under a
//! test of the change that is taken out of the copy. Tries them with the project's own commands, confined as before a merge.

use std::collections::VecDeque;

use liza_core::evidence::mutations;
use liza_core::model::{Config, Sha, State, TaskId, ValidationCommand};
use liza_core::rules::validation::commands;
use liza_core::rules::work_facts::has_language;
use liza_git::Repo;
use liza_team::lifecycle::try_commands;
use liza_team::project::Project;

use crate::changes::Change;
use crate::error::DrillError;
use crate::recommit::{FileNow, recommit};

/// The most defects of a change that are tried for one that fits.
const TRIES: usize = 20;

/// A change with a planted defect, and the same without it.
#[derive(Debug, Clone)]
pub struct Plant {
    pub change: Change,
    pub path: String,
    pub line: usize,
    pub before: String,
    pub after: String,
    /// The test that fails with the defect. Neither of the two commits has it as the change made it.
    pub taken_out: String,
    pub planted: Sha,
    /// The change as it was, in the same copy: a reviewer who only misses the test rejects both.
    pub original: Sha,
}

/// The reason that a change has no plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoPlant {
    NoTestFile,
    NoCommands,
    /// The commands fail on the change as it was.
    Fails,
    NoneFits,
}

impl NoPlant {
    /// A clause about so many changes.
    pub fn words(self) -> &'static str {
        match self {
            NoPlant::NoTestFile => "brought no test file in its last commit, or no code beside it",
            NoPlant::NoCommands => "is judged by no command",
            NoPlant::Fails => "fails its own commands here, as it was",
            NoPlant::NoneFits => "has no small defect that only one of its tests finds",
        }
    }
}

/// The result of the search.
#[derive(Debug, Default)]
pub struct Plants {
    pub found: Vec<Plant>,
    /// The changes without any.
    pub without: Vec<(TaskId, NoPlant)>,
}

/// Searches until so many are found, one in each change before the second in any. `progress` is told the task and the number found.
pub fn find_plants(
    workshop: &Project,
    state: &State,
    changes: &[Change],
    wanted: usize,
    progress: &dyn Fn(&TaskId, usize),
) -> Result<Plants, DrillError> {
    let (repo, mut plants) = (workshop.repo()?, Plants::default());
    let mut searches = VecDeque::new();
    let mut new = changes.iter();
    while plants.found.len() < wanted {
        let next = match new.next() {
            Some(change) => {
                progress(&change.task, plants.found.len());
                match Search::begin(workshop, repo, state, change)? {
                    Ok(search) => search,
                    Err(why) => {
                        plants.without.push((change.task.clone(), why));
                        continue;
                    }
                }
            }
            None => match searches.pop_front() {
                Some(search) => search,
                None => break,
            },
        };
        let mut search = next;
        progress(&search.change.task, plants.found.len());
        match search.next()? {
            Some(plant) => {
                plants.found.push(plant);
                search.has_found = true;
                searches.push_back(search);
            }
            None if !search.has_found => {
                plants.without.push((search.change.task.clone(), NoPlant::NoneFits));
            }
            None => {}
        }
    }
    Ok(plants)
}

/// One line of a file with a defect.
struct Mutant {
    path: String,
    line: usize,
    before: String,
    after: String,
    /// The whole file.
    text: String,
}

struct Search<'s> {
    workshop: &'s Project,
    repo: &'s Repo,
    config: &'s Config,
    commands: Vec<ValidationCommand>,
    change: &'s Change,
    /// Test files with the commit that lacks each of them and passes.
    originals: Vec<(String, Sha)>,
    mutants: VecDeque<Mutant>,
    has_found: bool,
}

impl<'s> Search<'s> {
    fn begin(
        workshop: &'s Project,
        repo: &'s Repo,
        state: &'s State,
        change: &'s Change,
    ) -> Result<Result<Self, NoPlant>, DrillError> {
        let (tests, mutants) = files(repo, change)?;
        if tests.is_empty() || mutants.is_empty() {
            return Ok(Err(NoPlant::NoTestFile));
        }
        let config = state.board.config()?;
        let commands = commands(config, state.board.body(&change.task)?.record());
        if commands.is_empty() && !repo.is_tested(&change.commit)? {
            return Ok(Err(NoPlant::NoCommands));
        }
        let (originals, has_found) = (Vec::new(), false);
        let mut search = Self { workshop, repo, config, commands, change, originals, mutants, has_found };
        if !search.passes(&change.commit)? {
            return Ok(Err(NoPlant::Fails));
        }
        for test in tests {
            let original = recommit(repo, &change.commit, &[search.without(&test)])?;
            if search.passes(&original)? {
                search.originals.push((test, original));
            }
        }
        Ok(if search.originals.is_empty() { Err(NoPlant::NoneFits) } else { Ok(search) })
    }

    fn passes(&self, commit: &Sha) -> Result<bool, DrillError> {
        Ok(try_commands(self.workshop, self.config, &self.commands, commit)?.is_none())
    }

    /// The test as it was before the change.
    fn without<'t>(&self, test: &'t str) -> (&'t str, FileNow) {
        (test, FileNow::AsIn(self.change.before.clone()))
    }

    fn next(&mut self) -> Result<Option<Plant>, DrillError> {
        for _ in 0..TRIES {
            let Some(mutant) = self.mutants.pop_front() else { return Ok(None) };
            if let Some(plant) = self.plant(mutant)? {
                return Ok(Some(plant));
            }
        }
        Ok(None)
    }

    fn plant(&self, mutant: Mutant) -> Result<Option<Plant>, DrillError> {
        let defect = || (mutant.path.as_str(), FileNow::Text(mutant.text.clone()));
        let whole = recommit(self.repo, &self.change.commit, &[defect()])?;
        // Twice: a test that fails by chance shows no defect.
        if self.passes(&whole)? || self.passes(&whole)? {
            return Ok(None);
        }
        for (test, original) in &self.originals {
            let planted = recommit(self.repo, &self.change.commit, &[defect(), self.without(test)])?;
            if self.passes(&planted)? {
                let Mutant { path, line, before, after, .. } = mutant;
                let (change, taken_out, original) = (self.change.clone(), test.clone(), original.clone());
                return Ok(Some(Plant { change, path, line, before, after, taken_out, planted, original }));
            }
        }
        Ok(None)
    }
}

/// The test files of the change's last commit, and the defects of the lines that this commit added elsewhere.
fn files(repo: &Repo, change: &Change) -> Result<(Vec<String>, VecDeque<Mutant>), DrillError> {
    let files = repo.changed_files(&change.before, &change.commit)?;
    let named: Vec<_> = files.iter().filter(|file| file.path.to_str().is_some_and(has_language)).collect();
    let contents = repo.contents(&named)?;
    let (mut tests, mut mutants) = (Vec::new(), Vec::new());
    for (file, content) in named.iter().zip(contents) {
        let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let (Some(path), Some(new)) = (file.path.to_str(), text(content.new)) else { continue };
        match is_test(path) {
            true => tests.push(path.to_owned()),
            false => mutants.push(of_file(path, &text(content.old).unwrap_or_default(), &new)),
        }
    }
    Ok((tests, mutants.into_iter().flat_map(spread).collect()))
}

/// True if a part of the path says that it is a test.
fn is_test(path: &str) -> bool {
    let is_word = |word: &str| matches!(word, "test" | "tests" | "spec" | "specs");
    path.to_lowercase().split(['/', '.', '_', '-']).any(is_word)
}

fn of_file(path: &str, old: &str, new: &str) -> Vec<Mutant> {
    let known: Vec<&str> = old.lines().collect();
    let is_comment = |line: &str| ["//", "#", "*", "/*", "--"].iter().any(|mark| line.starts_with(mark));
    let lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_end_matches('\n');
        if known.contains(&bare) || is_comment(bare.trim_start()) {
            continue;
        }
        for after in mutations(line) {
            let text = [&lines[..at].concat(), after.as_str(), &lines[at + 1..].concat()].concat();
            let (before, after) = (bare.trim().to_owned(), after.trim().to_owned());
            found.push(Mutant { path: path.to_owned(), line: at + 1, before, after, text });
        }
    }
    found
}

/// The same in an order whose beginning comes from everywhere.
fn spread(mut all: Vec<Mutant>) -> Vec<Mutant> {
    let step = all.len().div_ceil(TRIES).max(1);
    let mut order: Vec<(usize, Mutant)> =
        all.drain(..).enumerate().map(|(at, one)| (at % step, one)).collect();
    order.sort_by_key(|(turn, _)| *turn);
    order.into_iter().map(|(_, mutant)| mutant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-03
    #[test]
    fn defects_are_in_lines_that_the_change_added_and_in_no_comment() {
        let old = "a = 1\nif a < 2:\n";
        let new = "# 7 < 8\na = 1\nif a < 2:\n    b = a + 3\n";
        let found = of_file("x.py", old, new);
        let seen: Vec<(usize, &str, &str)> =
            found.iter().map(|one| (one.line, one.before.as_str(), one.after.as_str())).collect();
        assert_eq!(seen, [(4, "b = a + 3", "b = a - 3"), (4, "b = a + 3", "b = a + 4")]);
        assert_eq!(found[0].text, "# 7 < 8\na = 1\nif a < 2:\n    b = a - 3\n");
    }

    /// Covers: TR-03
    #[test]
    fn a_test_is_named_as_one() {
        for path in ["tests/a.rs", "src/test_a.py", "a.test.js", "spec/a.rb", "A-Test.sh"] {
            assert!(is_test(path), "{path}");
        }
        for path in ["src/latest.rs", "src/contest/a.py", "attest.sh"] {
            assert!(!is_test(path), "{path}");
        }
    }
}
