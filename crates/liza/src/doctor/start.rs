//! What keeps `liza run` from starting a team that works: the shared settings file and the goal.

use std::path::Path;

use liza_core::model::{State, TEAM_FILE};

use crate::project::Project;
use crate::team_file::{self, TeamFileContent};

use super::result::{Check, broken, good, warning};

/// The shared settings file, if the project has one.
pub(super) fn team_file(project: &Project, home: Option<&Path>) -> Option<Check> {
    let content = match team_file::read(project) {
        Ok(content) => content?,
        Err(error) => {
            let fix = format!("correct {TEAM_FILE}; to list the settings: liza config");
            return Some(broken(TEAM_FILE, error.to_string(), fix));
        }
    };
    let TeamFileContent { hash, .. } = content;
    Some(match team_file::is_accepted(home, project.root(), &hash) {
        true => good(TEAM_FILE, "accepted"),
        false => warning(
            TEAM_FILE,
            "you have not accepted this version, so it is not used",
            "read it, then: liza config --trust",
        ),
    })
}

/// The goal, if there is none: a team would wait for it.
pub(super) fn goal(state: &State) -> Option<Check> {
    let goal = state.board.goal.ready().filter(|goal| goal.description.trim().is_empty());
    goal.map(|_| warning("goal", "no goal is stated, so a team would only wait", "liza goal new \"GOAL\""))
}
