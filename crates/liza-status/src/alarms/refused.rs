//! Places of this machine that sessions were refused: the person decides whether sessions may use them.

use std::path::{Path, PathBuf};

use liza_core::model::{Config, Status};

use super::{Alarm, AlarmKind, Moment, Refused, RefusedPlace};
use crate::command_line::{CommandLine, liza};

/// One for each place, until it is listed or the task has ended.
pub(super) fn alarms(at: Moment<'_>) -> Vec<Alarm> {
    let is_open = |refused: &&Refused| {
        let status = refused.task.as_ref().map(|task| at.board().status(task));
        !at.config().is_some_and(|config| is_listed(config, &refused.place))
            && status.is_none_or(|status| status.is_some_and(|status| !Status::is_terminal(status)))
    };
    let alarm = |Refused { place, agent, task }: &Refused| {
        let during = task.as_ref().map(|task| format!(" during {task}")).unwrap_or_default();
        let (kind, what, how) = match place {
            RefusedPlace::Port(port) => (
                AlarmKind::PortRefused,
                format!("port {port} of this machine{during}, where a service of yours is"),
                "list the port",
            ),
            RefusedPlace::Path(path) => (
                AlarmKind::PathRefused,
                format!("{path}{during}"),
                "list the path (sandbox_readable, or sandbox_writable to change it)",
            ),
        };
        let who = agent.map_or_else(|| "a test or validation command".to_owned(), |agent| agent.to_string());
        let text = format!(
            "{who} was refused {what}. If sessions may use it, {how}; else leave it: the entry ends with the task"
        );
        Alarm::new(kind, place, text).answered(command(at.config(), place))
    };
    at.seen.refused_places.iter().filter(is_open).map(alarm).collect()
}

fn is_listed(config: &Config, place: &RefusedPlace) -> bool {
    match place {
        RefusedPlace::Port(port) => config.network_ports.contains(port),
        RefusedPlace::Path(path) => {
            let contains = |listed: &String| {
                let setting = Path::new(listed);
                let inside: PathBuf = setting.components().skip(1).collect();
                match setting.starts_with("~") {
                    true => Path::new(path).ancestors().any(|above| above.ends_with(&inside)),
                    false => Path::new(path).starts_with(setting),
                }
            };
            config.sandbox_readable.iter().chain(&config.sandbox_writable).any(contains)
        }
    }
}

/// The command that lists the place beside those that are listed already.
fn command(config: Option<&Config>, place: &RefusedPlace) -> CommandLine {
    let (setting, mut listed): (_, Vec<String>) = match place {
        RefusedPlace::Port(_) => {
            let ports = config.into_iter().flat_map(|config| &config.network_ports);
            ("network_ports", ports.map(u16::to_string).collect())
        }
        RefusedPlace::Path(_) => {
            ("sandbox_readable", config.map(|config| config.sandbox_readable.clone()).unwrap_or_default())
        }
    };
    listed.push(place.to_string());
    liza!("config", setting, format!("[{}]", listed.join(", ")))
}
