//! Which agent of a team may start a session whose login is about to be refreshed: one at a time, until the login has changed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use liza_agents::providers::LoginPlaces;
use liza_agents::providers::Provider;
use liza_core::model::{Sandbox, Seconds, Sprint, Timestamp};
use liza_core::rules::clients::{ClientChoice, choose_client};

use crate::project::now;
use crate::session::client_folder::ClientFolder;
use crate::session::login_turn::{LoginTurn, TakenTurn, login_turn};
use crate::session::plan::home;

use super::event::MemberIndex;
use super::team::Team;

/// A session that begins less than this before its login has to be refreshed starts alone. Most sessions are shorter; one that
/// is not starts again if its login is refused.
const BEFORE_REFRESH: Seconds = Seconds::minutes(30);

/// The time for which an agent waits for a refresh that is due: its program may use another login than the one in the file.
const REFRESH_PATIENCE: Duration = Duration::from_secs(300);

/// The pause between two looks of an agent that waits for its turn.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The place of an agent among those whose sessions may refresh a login.
#[derive(Debug, Default)]
pub(super) struct LoginTurns {
    /// Held from before its session starts until that has ended.
    taken: Option<TakenTurn>,
    /// Since when it has waited for a refresh that was due.
    waiting: Option<Instant>,
}

impl Team<'_> {
    /// Whether an agent may start a session with its login as it is; takes its turn if it needs one.
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
        let ends = now() + Seconds(limit.0.min(BEFORE_REFRESH.0));
        // Its last turn ended with its last session.
        member.login_turn.taken = None;
        let is_free = match login_turn(program, &file, ends) {
            LoginTurn::Free => true,
            LoginTurn::Alone(turn) => {
                member.login_turn.taken = Some(turn);
                true
            }
            LoginTurn::Busy(due) => member.login_turn.is_too_long(due),
        };
        if is_free {
            member.login_turn.waiting = None;
        } else {
            member.wake = Some(Instant::now() + LOOK_AGAIN);
            self.info(index, format!("waits until another session has refreshed the login of {program}"));
        }
        is_free
    }
}

impl LoginTurns {
    /// Whether the agent has waited long enough for a refresh.
    fn is_too_long(&mut self, due: Timestamp) -> bool {
        if due > now() {
            return false;
        }
        self.waiting.get_or_insert_with(Instant::now).elapsed() >= REFRESH_PATIENCE
    }
}

/// The name and the login file of the program that the agent's next session uses.
fn login_of(provider: &Provider, sprint: Option<&Sprint>) -> Option<(&'static str, PathBuf)> {
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
    ClientFolder::login_of(provider.installed_program().ok()?, home.as_deref(), &folder)
}
