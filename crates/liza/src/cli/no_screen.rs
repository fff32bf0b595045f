//! In the place of `live_screen` in a program without screens: none is possible.

use liza_team::project::Project;
use liza_team::supervisor::TeamMessage;

use super::context::Context;
use super::ui::error::CommandError;
use super::ui::output::Reply;
use super::ui::theme_name::ThemeName;

pub(crate) fn is_possible(_: &Context) -> bool {
    false
}

pub(crate) fn show_team(_: &Context, _: &Project, _: ThemeName) -> Result<Reply, CommandError> {
    Err(CommandError::missing_feature("the terminal screen"))
}

/// The screen of a team, of which there is none.
pub(crate) enum TeamScreen {}

impl TeamScreen {
    pub(crate) fn start(_: &Context, _: &Project) -> Option<Self> {
        None
    }

    pub(crate) fn report(&self, _: &TeamMessage) -> bool {
        match *self {}
    }
}
