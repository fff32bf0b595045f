//! Services of this machine that sessions were refused: the person decides whether sessions may use them.

use liza_core::model::Status;

use super::{Alarm, AlarmKind, Moment, RefusedPort};
use crate::command_line::liza;

/// One for each port, until it is listed or the task has ended.
pub(super) fn alarms(at: Moment<'_>) -> Vec<Alarm> {
    let listed = at.config().map(|config| config.network_ports.as_slice()).unwrap_or_default();
    let is_open = |refused: &&RefusedPort| {
        let status = refused.task.as_ref().map(|task| at.board().status(task));
        !listed.contains(&refused.port)
            && status.is_none_or(|status| status.is_some_and(|status| !Status::is_terminal(status)))
    };
    let alarm = |RefusedPort { port, agent, task }: &RefusedPort| {
        let during = task.as_ref().map(|task| format!(" during {task}")).unwrap_or_default();
        let text = format!(
            "{agent} was refused port {port} of this machine{during}, where a service of yours is. If sessions may use it, list \
             the port; else leave it: the entry ends with the task"
        );
        let ports: Vec<String> = listed.iter().chain([port]).map(u16::to_string).collect();
        let command = liza!("config", "network_ports", format!("[{}]", ports.join(", ")));
        Alarm::new(AlarmKind::PortRefused, port, text).answered(command)
    };
    at.seen.refused_ports.iter().filter(is_open).map(alarm).collect()
}
