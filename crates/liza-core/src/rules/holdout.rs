//! The acceptance tests that no session reads (`config.holdout`): what a run of them says, and what agents learn of it.

use std::collections::BTreeSet;

/// After so many results agents are told no more names, so that nobody finds the tests by trying.
pub const RESULTS_MAX: usize = 3;

/// The most names that a list can have, and their longest length.
pub const NAMES_MAX: usize = 1000;
pub const NAME_LENGTH_MAX: usize = 200;

/// The names in a list: one per line; empty lines and lines with `#` are comments.
pub fn names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter(|line| line.chars().count() <= NAME_LENGTH_MAX).take(NAMES_MAX).map(str::to_owned).collect()
}

/// The end of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldoutRun {
    pub passed: bool,
    /// The tests that failed. Only names of the list count, whatever the tested code prints.
    pub failed: BTreeSet<String>,
}

impl HoldoutRun {
    pub fn new(passed: bool, output: &str, names: &BTreeSet<String>) -> Self {
        let lines = output.lines().map(str::trim).filter(|line| names.contains(*line));
        Self { passed, failed: lines.map(str::to_owned).collect() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldoutResult {
    /// Nothing fails that did not fail without the merge.
    Passed,
    /// It breaks these tests; none if the run failed without naming one.
    Failed { names: Vec<String> },
    /// The run fails without naming a test, and so it does without the merge: it judges nothing.
    Broken,
}

/// Judges a failed run on the merged files by the same run on the integration branch. A goal is reached step by step:
/// a test that fails on the branch too is not yet reached, and is not the fault of this merge.
pub fn judge(merged: &HoldoutRun, branch: &HoldoutRun) -> HoldoutResult {
    let is_nameless = |run: &HoldoutRun| !run.passed && run.failed.is_empty();
    if merged.passed {
        return HoldoutResult::Passed;
    }
    if is_nameless(merged) {
        let broken = is_nameless(branch);
        return if broken { HoldoutResult::Broken } else { HoldoutResult::Failed { names: Vec::new() } };
    }
    // A branch that names nothing shows nothing: each failure counts.
    let known = if branch.passed { BTreeSet::new() } else { branch.failed.clone() };
    let names: Vec<String> = merged.failed.difference(&known).cloned().collect();
    if names.is_empty() { HoldoutResult::Passed } else { HoldoutResult::Failed { names } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "# of the goal\nlogin\n\n  retry \nslow\n";

    fn run(passed: bool, output: &str) -> HoldoutRun {
        HoldoutRun::new(passed, output, &names(NAMES))
    }

    fn failed(names: &[&str]) -> HoldoutResult {
        HoldoutResult::Failed { names: names.iter().map(ToString::to_string).collect() }
    }

    /// Covers: RO-09
    #[test]
    fn only_names_of_the_list_leave_a_run_sorted() {
        let printed = run(false, "retry\n secret assertion: 41 != 42\nlogin\nretry\nnot in the list\n");
        assert_eq!(Vec::from_iter(printed.failed), ["login", "retry"]);
        assert_eq!(names(&"x\n".repeat(9)).len(), 1);
        let many: String = (0..2000).map(|number| format!("test-{number}\n")).collect();
        assert_eq!(names(&many).len(), NAMES_MAX);
        assert!(names(&"x".repeat(NAME_LENGTH_MAX + 1)).is_empty());
    }

    /// Covers: RO-09
    #[test]
    fn a_merge_is_to_blame_for_what_it_breaks_and_not_for_what_is_not_yet_reached() {
        let (green, nameless) = (run(true, ""), run(false, "command not found\n"));
        for (merged, branch, expected) in [
            (&green, &green, HoldoutResult::Passed),
            (&run(true, "login\n"), &green, HoldoutResult::Passed),
            (&run(false, "login\n"), &green, failed(&["login"])),
            (&run(false, "login\n"), &run(false, "login\nslow\n"), HoldoutResult::Passed),
            (&run(false, "login\nretry\n"), &run(false, "login\n"), failed(&["retry"])),
            // It no longer builds, so nothing is named.
            (&nameless, &run(false, "login\n"), failed(&[])),
            (&nameless, &green, failed(&[])),
            (&nameless, &nameless, HoldoutResult::Broken),
            // Names that a passing run prints excuse nothing.
            (&run(false, "login\n"), &run(true, "login\n"), failed(&["login"])),
            (&run(false, "login\n"), &nameless, failed(&["login"])),
        ] {
            assert_eq!(judge(merged, branch), expected, "{merged:?} after {branch:?}");
        }
    }
}
