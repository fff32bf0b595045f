//! The obstacles to `liza run`: the shared settings file and the goal.

use std::collections::BTreeSet;
use std::path::Path;

use liza_core::model::{State, TEAM_FILE, Timestamp};
use liza_core::rules::clients::{Continuation, describe_hold, repair_command};
use liza_core::rules::presence::Presence;
use liza_team::project::Project;
use liza_team::project::team_file::{self, TeamFileContent};

use crate::recognition::test_command::{SCRIPT, how_to_test};

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

/// The settings of a shared blackboard that this machine does not use.
pub(super) fn settings(state: &State) -> Option<Check> {
    let unaccepted = state.board.config.ready()?.unaccepted.as_ref()?;
    let found = format!("not used here, since you have not accepted them: {}", unaccepted.keys.join(", "));
    Some(warning("settings", found, "to see and accept them: liza config --trust"))
}

/// The goal, if there is none: a team would wait for it.
pub(super) fn goal(state: &State) -> Option<Check> {
    let goal = state.board.goal.ready().filter(|goal| goal.description.trim().is_empty());
    goal.map(|_| warning("goal", "no goal is stated, so a team would only wait", "liza goal new \"GOAL\""))
}

/// The integration test of a project in which nothing is wrong with it.
pub(super) fn test_in_words(root: &Path, is_validated: bool) -> String {
    match root.join(SCRIPT).exists() {
        false if is_validated => format!("none; to test merges besides validation: {}", how_to_test(root)),
        true => format!("{SCRIPT} runs before every merge"),
        false => {
            format!("none: nothing but the code reviewer judges merges; to test them: {}", how_to_test(root))
        }
    }
}

/// The reason why the team holds a program, and the command that lets it continue.
pub(super) fn held(state: &State, client: &str, run: &str, now: Timestamp) -> Option<(String, String)> {
    let hold = state.board.sprint.ready()?.clients.get(client)?.hold.as_ref()?;
    let has_team = Presence { board: &state.board, dead: &BTreeSet::new(), now }.has_team();
    let then = Continuation { has_team, run };
    let words = describe_hold(hold, then, now);
    Some((format!("held for {}: {words}", now.since(hold.since)), repair_command(hold, then)))
}

#[cfg(test)]
mod tests {
    use liza_core::model::{ClientHold, ClientRecord, FaultKind, Loaded, Repair, Seconds, Sprint};

    use super::*;

    /// Covers: UI-03, SE-03
    #[test]
    fn a_program_that_the_team_holds_is_not_called_well() {
        let now: Timestamp = "2026-01-17T14:00:00Z".parse().unwrap();
        let mut state = State::default();
        let mut sprint = Sprint::begin(1, "goal-1", now);
        let hold = ClientHold {
            kind: FaultKind::Auth,
            message: "401 Unauthorized".to_owned(),
            repair: Some(Repair::Run("codex login".to_owned())),
            since: now,
            until: None,
            probes: 1,
        };
        sprint.clients.insert("codex".to_owned(), ClientRecord { hold: Some(hold), failures: None });
        state.board.sprint = Loaded::Ready(sprint);
        let later = now + Seconds(180);
        let words =
            "held for 3m: no valid login. Run codex login, then continue: liza run (401 Unauthorized)";
        assert_eq!(
            held(&state, "codex", "liza run", later),
            Some((words.to_owned(), "codex login, then: liza run".to_owned()))
        );
        let Loaded::Ready(sprint) = &mut state.board.sprint else { panic!("no sprint") };
        let hold = sprint.clients["codex"].hold.clone().unwrap();
        let meaning = Some("the env_key of the provider in config.toml".to_owned());
        let repair = Some(Repair::Set { variable: "SHOP_KEY".to_owned(), meaning });
        let hold = Some(ClientHold { repair, ..hold });
        sprint.clients.insert("codex".to_owned(), ClientRecord { hold, failures: None });
        let fix = held(&state, "codex", "liza run", later).unwrap().1;
        assert_eq!(fix, "export SHOP_KEY=KEY, then: liza run");
        assert_eq!(held(&state, "claude", "liza run", later), None);
    }
}
