//! Refuses a rehearsal that could only wait: one without a goal, or one whose merges cannot be tested.

use std::time::Instant;

use liza_core::model::Seconds;
use liza_team::engine::integration_branch;
use liza_team::lifecycle::try_test;
use liza_team::project::Project;

use crate::cli::context::Context;
use crate::cli::spec_path;
use crate::cli::test_trial::{failure_in_words, limits_in_words};
use crate::cli::ui::error::CommandError;

/// Refuses a rehearsal for which there is nothing to plan from: its planner could only ask.
pub(crate) fn check_rehearsal(project: &Project) -> Result<(), CommandError> {
    let state = project.store().snapshot()?;
    let Some(goal) = state.board.goal.ready().filter(|_| state.board.tasks.is_empty()) else { return Ok(()) };
    let refused = |message: String, hint: &str| {
        Err(CommandError::refused("nothing_to_rehearse", message)
            .hint(format!("{hint}; to see a team without a project of yours: liza demo")))
    };
    if goal.description.trim().is_empty() {
        return refused("there is no goal to rehearse".to_owned(), "liza goal new \"GOAL\"");
    }
    match goal.spec_ref.as_deref() {
        Some(spec) if !spec_path::exists(project.root(), spec) => refused(
            format!(
                "a rehearsal plans from {spec}, which does not exist; only an agent program plans from the goal alone"
            ),
            "write it, or start from a template: liza init --template",
        ),
        Some(_) | None => Ok(()),
    }
}

/// Refuses a rehearsal whose every merge would wait for the human: the project's own test fails without any work. Says what it does,
/// and how often the team will do it.
pub(crate) fn check_own_test(context: &Context, copy: &Project) -> Result<(), CommandError> {
    let state = copy.store().snapshot()?;
    let (repo, integration) = (copy.repo()?, integration_branch(&state.board)?);
    let Some(head) = repo.tip(&integration)?.filter(|_| repo.has_test(&integration).unwrap_or(false)) else {
        return Ok(());
    };
    let (config, began) = (state.board.config()?, Instant::now());
    context.screen.note(&format!("first, in a new checkout: {}; Ctrl-C ends it", limits_in_words(config)));
    let Some(failure) = try_test(copy, config, &head)? else {
        let setups = match config.setup.is_some() || !config.copy.is_empty() {
            true => " Each task is set up three times: for its coder, its review and the test of its merge.",
            false => " The merge of each task takes as long.",
        };
        let took = Seconds(began.elapsed().as_secs());
        context.screen.note(&format!("that passed, in {took}.{setups}"));
        return Ok(());
    };
    let words = failure_in_words(&failure, copy.root(), copy.root());
    let message =
        format!("the project's own test fails in a new checkout, so nothing could be merged: {words}");
    Err(CommandError::refused("own_test_fails", message)
        .hint("correct it, commit it, then: liza sync; to try the test alone: liza init --test"))
}
