//! Alarms that wait for the human's consent: a plan, changed settings of the team or of git.

use liza_core::model::{State, TEAM_FILE};
use liza_core::rules::triggers::proposed_tasks;
use liza_core::text::count;

use super::observations::TeamFileChange;
use super::{Alarm, AlarmKind, Moment};
use crate::command_line::{CommandLine, liza};

/// The planner has proposed tasks, and the human has to approve them.
pub(super) fn plan(state: &State) -> Option<Alarm> {
    let tasks = proposed_tasks(state).count();
    let goal = state.board.goal.ready()?.id.as_str();
    let number = count(tasks, "task");
    let text = format!("the plan waits for your approval: {number}. To change it: liza note \"...\"");
    (tasks > 0).then(|| Alarm::new(AlarmKind::PlanProposed, goal, text))
}

/// Settings of a shared blackboard came from elsewhere, and this machine does not use them.
pub(super) fn settings(at: Moment<'_>) -> Option<Alarm> {
    let unaccepted = at.config()?.unaccepted.as_ref()?;
    let keys = unaccepted.keys.join(", ");
    let text = format!(
        "the blackboard has settings that name programs or lower protection, and that you have not accepted: {keys}. \
         This machine uses what you accepted last, or the default"
    );
    Some(Alarm::new(AlarmKind::SettingsNotAccepted, "config", text))
}

/// A merge changed the shared settings.
pub(super) fn team_file(change: &TeamFileChange) -> Alarm {
    let (then, command) = match change {
        TeamFileChange::CheckedOut => ("it applies once you accept it", liza!("config", "--trust")),
        TeamFileChange::OnBranch(branch) => (
            "it applies once it is in your checkout and you accept it there: liza config --trust",
            CommandLine::shell(format!("git diff HEAD {branch} -- {TEAM_FILE}")),
        ),
    };
    let text = format!("{TEAM_FILE} on the integration branch is not what you accepted; {then}");
    Alarm::new(AlarmKind::TeamFileChanged, TEAM_FILE, text).answered(command)
}

/// Settings of the project's git configuration that the human has not accepted.
pub(super) fn git_programs(keys: &[String]) -> Option<Alarm> {
    let text = format!(
        "the project's git configuration names programs, or ways to sign, that you have not accepted; merges wait: {}",
        keys.join(", ")
    );
    (!keys.is_empty()).then(|| Alarm::new(AlarmKind::GitProgramsChanged, keys.join(" "), text))
}
