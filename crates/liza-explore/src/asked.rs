//! The requests to the person, by the shipped view.

use liza_status::alarms::{ForeignCommits, Observations};
use liza_status::view::view;

use crate::world::{Tooth, World, sha};

/// The commands that NEEDS YOU names.
pub(crate) fn asked_for(world: &World) -> Vec<String> {
    if world.tooth == Some(Tooth::AsksNobody) {
        return Vec::new();
    }
    let foreign_commits = world.unrecorded.as_ref().map(|(_, expected)| ForeignCommits {
        head: sha(world.integration),
        expected: sha(*expected),
        commits: vec!["a merge".to_owned()],
        merge_of: None,
        merges: world.found_merges(),
    });
    let foreign_commits = foreign_commits.filter(|found| found.merges.hold_merges());
    let last_progress = Some(world.now);
    let seen = Observations { last_progress, foreign_commits, ..Observations::default() };
    let view = view(&world.state, &seen, world.now);
    view.needs_you.iter().map(|need| need.command.as_str().to_owned()).collect()
}
