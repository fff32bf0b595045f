//! Whole blackboards with times that are relative to now, so that their output does not change.

use liza_team::project::now;

use crate::support::TestProject;

/// A team at work.
pub(crate) const BUSY: &str = include_str!("boards/busy.yaml");
/// A team with every kind of problem.
pub(crate) const FIRE: &str = include_str!("boards/fire.yaml");

/// A project with that blackboard. `@-90` in the text means ninety seconds ago, `@+90` in ninety seconds.
pub(crate) fn project(board: &str) -> TestProject {
    let project = TestProject::new();
    project.place_board(&dated(board));
    project.write(
        ".liza/log.yaml",
        &dated("- timestamp: @-40\n  agent: coder-1\n  action: claimed\n  detail: x\n"),
    );
    for task in ["retry-orders", "retry-users"] {
        project.write(&format!(".worktrees/{task}/file"), "");
    }
    project
}

/// The text with its times filled in.
pub(crate) fn dated(text: &str) -> String {
    liza_testkit::boards::dated(text, now())
}

/// The output for a board within the second in which it was made: ages on the page change every second.
pub(crate) fn in_one_second<T>(mut see: impl FnMut() -> T) -> T {
    for _ in 0..100 {
        let began = now();
        let seen = see();
        if now() == began {
            return seen;
        }
    }
    see()
}
