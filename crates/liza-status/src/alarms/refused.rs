//! Services of this machine that sessions were refused: the person decides whether sessions may use them.

use liza_core::model::{State, Status};

use super::{Alarm, AlarmKind, AlarmSubject, Observations, RefusedPort};
use crate::command_line::{CommandLine, liza};

/// One for each port, until it is listed or the task has ended.
pub(super) fn alarms(state: &State, seen: &Observations) -> Vec<Alarm> {
    let open = seen.refused_ports.iter().filter(|refused| is_open(state, refused));
    let alarm = |RefusedPort { port, agent, task }: &RefusedPort| {
        let during = task.as_ref().map(|task| format!(" during {task}")).unwrap_or_default();
        let text = format!(
            "{agent} was refused port {port} of this machine{during}, where a service of yours is. If sessions may use it, list \
             the port; else leave it: the entry ends with the task"
        );
        Alarm::warning(AlarmKind::PortRefused, port.to_string().as_str(), text)
    };
    open.map(alarm).collect()
}

fn is_open(state: &State, refused: &RefusedPort) -> bool {
    let listed =
        state.board.config.ready().is_some_and(|config| config.network_ports.contains(&refused.port));
    let status = refused.task.as_ref().map(|task| state.board.status(task));
    !listed && status.is_none_or(|status| status.is_some_and(|status| !Status::is_terminal(status)))
}

/// The command that lists the port beside those that are listed already.
pub(crate) fn command(state: &State, subject: &AlarmSubject) -> CommandLine {
    let listed = state.board.config.ready().map(|config| config.network_ports.as_slice()).unwrap_or_default();
    let ports: Vec<String> = listed.iter().map(u16::to_string).chain([subject.to_string()]).collect();
    liza!("config", "network_ports", format!("[{}]", ports.join(", ")))
}
