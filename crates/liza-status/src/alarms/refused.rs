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
        let (kind, what) = match place {
            RefusedPlace::Port(port) => (
                AlarmKind::PortRefused,
                format!("port {port} of this machine{during}, where a service of yours is"),
            ),
            RefusedPlace::Socket(path) => (AlarmKind::PathRefused, format!("the socket {path}{during}")),
            RefusedPlace::Read(path) => (AlarmKind::PathRefused, format!("{path}{during}")),
            RefusedPlace::Write(path) => (AlarmKind::PathRefused, format!("to write to {path}{during}")),
            RefusedPlace::Host(host) => (AlarmKind::HostRefused, format!("the host {host}{during}")),
        };
        let who = agent.map_or_else(|| "a test or validation command".to_owned(), |agent| agent.to_string());
        let setting = place.setting();
        let text = format!(
            "{who} was refused {what}. If sessions may use it, list it in {setting}; else leave it: the entry ends with the task"
        );
        Alarm::new(kind, place, text).answered(command(at.config(), place))
    };
    at.seen.refused_places.iter().filter(is_open).map(alarm).collect()
}

fn is_listed(config: &Config, place: &RefusedPlace) -> bool {
    let is_in = |listed: &[String], path: &str| listed.iter().any(|setting| contains(setting, path));
    match place {
        RefusedPlace::Port(port) => config.network_ports.contains(port),
        RefusedPlace::Socket(path) => is_in(&config.sandbox_sockets, path),
        RefusedPlace::Read(path) => {
            is_in(&config.sandbox_readable, path) || is_in(&config.sandbox_writable, path)
        }
        RefusedPlace::Write(path) => is_in(&config.sandbox_writable, path),
        RefusedPlace::Host(host) => config.model_hosts.contains(host),
    }
}

/// True if a path is that of a setting or below it; `~` is the home folder.
fn contains(setting: &str, path: &str) -> bool {
    let setting = Path::new(setting);
    let inside: PathBuf = setting.components().skip(1).collect();
    match setting.starts_with("~") {
        true => Path::new(path).ancestors().any(|above| above.ends_with(&inside)),
        false => Path::new(path).starts_with(setting),
    }
}

/// The command that lists the place beside those that are listed already.
fn command(config: Option<&Config>, place: &RefusedPlace) -> CommandLine {
    let listed = |config: &Config| match place {
        RefusedPlace::Port(_) => config.network_ports.iter().map(u16::to_string).collect(),
        RefusedPlace::Socket(_) => config.sandbox_sockets.clone(),
        RefusedPlace::Read(_) => config.sandbox_readable.clone(),
        RefusedPlace::Write(_) => config.sandbox_writable.clone(),
        RefusedPlace::Host(_) => config.model_hosts.clone(),
    };
    let mut listed: Vec<String> = config.map(listed).unwrap_or_default();
    listed.push(place.to_string());
    liza!("config", place.setting(), format!("[{}]", listed.join(", ")))
}
