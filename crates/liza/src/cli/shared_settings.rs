//! Settings of a shared blackboard that count on this machine only as far as its person has accepted them: what
//! is accepted by which act. The rule is the core's.

use liza_core::model::{Config, Fields, Revision};
use liza_core::rules::accepted_settings::{accepting, accepting_all, as_accepted, shared};
use liza_store::{Store, settings_as_fields, yaml};
use liza_team::project::Project;

use crate::cli::confirm::accepts;
use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::settings_text::{changes, first_part, in_lines};

/// Accepts the settings of a shared blackboard as they are now; returns those that this machine did not use.
pub(crate) fn trust_settings(
    context: &Context,
    project: &Project,
    ask: bool,
) -> Result<Vec<String>, CommandError> {
    let config = project.store().snapshot()?.board.config()?.clone();
    let (Some(place), Some(unaccepted)) = (project.store().accepted_settings(), &config.unaccepted) else {
        return Ok(Vec::new());
    };
    let fields = |config: &Config| {
        settings_as_fields(config).map_err(|error| CommandError::refused("bad_config", error.to_string()))
    };
    let lines = in_lines(&changes(&fields(&config)?, &fields(&unaccepted.shared)?));
    if ask {
        let question = format!("Settings that came from another machine:{lines}\nAccept them?");
        accepts(context, &question, "they are not used here; to set one for all: liza config KEY VALUE")?;
    } else {
        context.screen.note(&format!("liza: settings that came from another machine:{lines}"));
    }
    place.write(&accepting_all(&unaccepted.shared))?;
    Ok(unaccepted.keys.clone())
}

/// Accepts a setting that the person has just set here, unless another machine has written since.
pub(crate) fn accept_setting(
    context: &Context,
    project: &Project,
    key: &str,
    revision: Revision,
) -> Result<(), CommandError> {
    let Some(place) = project.store().accepted_settings() else { return Ok(()) };
    let board = project.store().snapshot()?.board;
    if board.revision == revision {
        place.write(&accepting(place.read(), shared(board.config()?), key))?;
    }
    note_unused_settings(context, project.store())
}

/// Accepts what the accepted file sets, as far as the blackboard does not override it.
pub(crate) fn accept_file_settings(project: &Project, values: &Fields) -> Result<(), CommandError> {
    let Some(place) = project.store().accepted_settings() else { return Ok(()) };
    let board = project.store().snapshot()?.board;
    let file: Config = yaml::read(&yaml::document(values))
        .map_err(|error| CommandError::refused("bad_config", error.to_string()))?;
    let mut accepted = place.read();
    for key in values.keys() {
        let with = accepting(accepted.clone(), &file, key);
        let used = as_accepted(shared(board.config()?).clone(), &with);
        let differs = used
            .unaccepted
            .is_some_and(|unaccepted| unaccepted.keys.iter().any(|name| first_part(name) == key));
        if !differs {
            accepted = with;
        }
    }
    Ok(place.write(&accepted)?)
}

pub(crate) fn unused_in_words(keys: &[String]) -> String {
    format!(
        "not used on this machine, since you have not accepted them: {}; to see and accept them: liza config --trust",
        keys.join(", ")
    )
}

/// The notice about settings of a shared blackboard that this machine does not use.
pub(crate) fn note_unused_settings(context: &Context, store: &Store) -> Result<(), CommandError> {
    if let Some(unaccepted) = &store.snapshot()?.board.config()?.unaccepted {
        context.screen.note(&format!("liza: {}", unused_in_words(&unaccepted.keys)));
    }
    Ok(())
}
