//! Defects: the correct patch with one small change, made by a table. Which tests kill a mutant is recorded once in
//! `corpus/kills.txt`; `LIZA_BLESS=1 cargo nextest run -p liza-trial toolchains` makes that file with the real toolchains.

use liza_core::evidence::mutations;

use crate::corpus::{CorpusTask, tasks};

/// The most mutants of a task: evenly spread over all that the table makes.
const MOST: usize = 10;

/// The mutants of a patch, in a fixed order.
pub fn mutants(patch: &str) -> Vec<String> {
    let all = mutations(patch);
    let step = all.len().div_ceil(MOST).max(1);
    all.into_iter().step_by(step).collect()
}

/// A mutant that hidden tests kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutant {
    /// Its number among the mutants of its task.
    pub number: usize,
    /// True if a visible test kills it too.
    pub is_visible: bool,
}

/// A task with the defects that its hidden tests find.
#[derive(Debug, Clone)]
pub struct Material {
    pub task: CorpusTask,
    pub mutants: Vec<Mutant>,
}

impl Material {
    /// The part of the mutants that visible tests kill.
    pub fn visible_part(&self) -> f64 {
        let seen = self.mutants.iter().filter(|mutant| mutant.is_visible).count();
        seen as f64 / self.mutants.len().max(1) as f64
    }

    /// True if a mutant survives the visible tests.
    pub fn has_survivors(&self) -> bool {
        self.mutants.iter().any(|mutant| !mutant.is_visible)
    }
}

/// The line of one mutant in the file: a digit for each test, 1 if the test kills it.
pub fn kill_line(task: &CorpusTask, number: usize, visible: &[bool], hidden: &[bool]) -> String {
    let digits =
        |tests: &[bool]| tests.iter().map(|kills| if *kills { '1' } else { '0' }).collect::<String>();
    format!("{}/{} {number} {} {}", task.language, task.name, digits(visible), digits(hidden))
}

/// The tasks with their admitted defects, as recorded.
pub fn material() -> Vec<Material> {
    let recorded = include_str!("../corpus/kills.txt");
    let of = |task: CorpusTask| {
        let name = format!("{}/{}", task.language, task.name);
        let lines = recorded.lines().filter_map(|line| line.strip_prefix(&name)?.strip_prefix(' '));
        let mutants = lines.filter_map(admitted).collect();
        Material { task, mutants }
    };
    tasks().into_iter().map(of).filter(|material| !material.mutants.is_empty()).collect()
}

fn admitted(line: &str) -> Option<Mutant> {
    let mut words = line.split(' ');
    let (number, visible, hidden) = (words.next()?, words.next()?, words.next()?);
    let mutant = Mutant { number: number.parse().ok()?, is_visible: visible.contains('1') };
    hidden.contains('1').then_some(mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-01
    #[test]
    fn a_mutant_is_the_patch_with_one_change() {
        for task in tasks() {
            let all = mutants(&task.patch);
            assert!(!all.is_empty() && all.len() <= MOST, "{}", task.name);
            assert!(all.iter().all(|mutant| *mutant != task.patch), "{}", task.name);
        }
    }

    /// Covers: TR-01, TR-02
    #[test]
    fn only_mutants_that_hidden_tests_kill_are_defects() {
        let all = material();
        assert_eq!(all.len(), 40);
        assert!(all.iter().any(Material::has_survivors));
        assert!(all.iter().any(|material| material.visible_part() > 0.0));
        assert_eq!(admitted("3 1 000"), None);
        assert_eq!(admitted("3 0 010"), Some(Mutant { number: 3, is_visible: false }));
    }
}
