//! The login of an agent's next session, and its turn to use it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use liza_agents::providers::{LoginPlaces, Provider};
use liza_core::model::{Sandbox, Sprint};
use liza_core::rules::clients::{ClientChoice, choose_client};

use crate::project::now;
use crate::session::client_folder::ClientFolder;
use crate::session::plan::home;

use super::event::MemberIndex;
use super::team::Team;

/// The pause between two looks of an agent that waits for its turn.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Team<'_> {
    /// True if an agent may start a session with its present login; takes its turn if it needs one.
    pub(super) fn may_use_login(&mut self, index: MemberIndex) -> bool {
        let (sandbox, limit) = (self.config.sandbox, self.config.session_limit);
        let sprint = self.state.board.sprint.ready();
        let Some(member) = self.members.get_mut(index) else { return false };
        let login = match sandbox {
            // Its program shares the login with all others, and knows how.
            Sandbox::Off => None,
            Sandbox::Auto | Sandbox::Require => login_of(&member.identity.provider, sprint),
        };
        let Some((program, file)) = login else { return true };
        let is_free = member.login_turn.may_use(&program, &file, limit);
        if !is_free {
            member.wake = Some(Instant::now() + LOOK_AGAIN);
            self.info(index, format!("waits until another session has refreshed the login of {program}"));
        }
        is_free
    }
}

/// The name and the login file of the program that the agent's next session uses.
fn login_of(provider: &Provider, sprint: Option<&Sprint>) -> Option<(String, PathBuf)> {
    let choice = sprint.map(|sprint| choose_client(sprint, &provider.names(), now()));
    let index = match choice {
        Some(ClientChoice::Use(index) | ClientChoice::Probe(index)) => index,
        Some(ClientChoice::Held { .. }) | None => 0,
    };
    let provider = provider.nth(index)?;
    let (home, variable) = (home(), |name: &str| std::env::var_os(name));
    let places = LoginPlaces { home: home.as_deref(), variable: &variable };
    if provider.has_key(&places) {
        return None;
    }
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let program = provider.installed_program().ok()?.file_stem()?.to_str()?.to_owned();
    Some((program, ClientFolder::login_of(provider.home(), home.as_deref(), &folder)?))
}
