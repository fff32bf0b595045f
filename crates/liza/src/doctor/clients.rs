//! The agent programs that are installed, as doctor reports them.

use std::path::PathBuf;

use liza_agents::providers::{ClientHome, InstalledClient, LoginPlaces};
use liza_core::model::State;
use liza_team::project::now;
use liza_team::session::client_folder::ClientFolder;
use liza_team::session::login_turn::can_read_expiry;

use super::result::{Check, good, warning};
use super::start;

/// The agent programs that are installed: version, login, rights of their sessions.
pub(super) fn clients(
    installed: Vec<InstalledClient>,
    places: &LoginPlaces<'_>,
    used: &[String],
    state: Option<&State>,
    run: &str,
) -> Vec<Check> {
    let check = |client: InstalledClient| {
        let version = client.version.unwrap_or_else(|| "version unknown".to_owned());
        let name = client.name.as_str();
        let rights = format!("; {}{}", client.rights, reaching_settings(places, &client.home));
        let held = state.and_then(|state| start::held(state, name, run, now()));
        match (client.login, held) {
            (Some(Err(login)), _) if used.iter().any(|used| used == name) => {
                warning(name, format!("{version}; no login found{rights}"), login.to_string())
            }
            (Some(Err(login)), _) => good(name, format!("{version}; no login found ({login}){rights}")),
            (_, Some((why, command))) => warning(name, format!("{version}; {why}"), command),
            (Some(Ok(place)), None) => {
                let shared = shared_login(places, name, &client.home, &place);
                good(name, format!("{version}; login: {place}{shared}{rights}"))
            }
            (None, None) => good(name, format!("{version}{rights}")),
        }
    };
    installed.into_iter().map(check).collect()
}

/// The settings and instructions of the person that reach the sessions of a program.
fn reaching_settings(places: &LoginPlaces<'_>, client: &ClientHome) -> String {
    let variable = |name: &str| (places.variable)(name).map(PathBuf::from);
    let files = ClientFolder::settings_of(client, places.home, &variable);
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    match files.as_slice() {
        [] => String::new(),
        files => format!("; yours that reach its sessions: {}", files.join(", ")),
    }
}

/// The warning about a login file whose end Liza cannot read.
fn shared_login(places: &LoginPlaces<'_>, program: &str, client: &ClientHome, place: &str) -> &'static str {
    let variable = |name: &str| (places.variable)(name).map(PathBuf::from);
    let file = ClientFolder::login_of(client, places.home, &variable);
    let is_file = file.is_some_and(|file| file.display().to_string() == place);
    match is_file && !can_read_expiry(program) {
        true => {
            " (its end is not known to Liza: a session whose login another one has refreshed starts again)"
        }
        false => "",
    }
}
