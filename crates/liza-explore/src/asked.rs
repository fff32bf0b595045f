//! The requests to the person, as the shipped view has them.

use liza_status::alarms::{ForeignCommits, Observations, alarms};
use liza_status::needs_you::needs_you;

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
    let alarms = alarms(&world.state, &seen, world.now);
    let needs = needs_you(&world.state, &seen, &alarms, world.now);
    needs.iter().map(|need| need.command.as_str().to_owned()).collect()
}
