//! One review of a drill: a reviewer at work in a copy, as in a project, and its verdict there.

use liza_core::model::{EventName, HistoryEvent, Role, Sha, State};
use liza_store::LogRecord;
use liza_team::project::Project;
use liza_team::supervisor::{EndReason, Post, SupervisorOptions, TeamMessage, run};

use crate::changes::Change;
use crate::error::DrillError;
use crate::stage::Stage;

/// The parts that all drills of one run share.
pub struct Drill<'d> {
    pub project: &'d Project,
    /// The blackboard and the log as they are now.
    pub state: &'d State,
    pub log: &'d [LogRecord],
    /// Has the commits of all plants.
    pub workshop: &'d Stage,
}

#[derive(Debug, Default)]
pub struct DrillEnd {
    /// `None` without a verdict.
    pub rejected: Option<bool>,
    /// The program of its session.
    pub program: Option<String>,
    /// The reason that there is no verdict.
    pub why: Option<String>,
    /// True if the person stopped it.
    pub interrupted: bool,
}

/// Lets one reviewer judge that commit in the place of the change.
pub fn drill(
    drill: &Drill<'_>,
    (change, shown): (&Change, &Sha),
    post: Post,
    options: SupervisorOptions,
    on_message: &dyn Fn(&TeamMessage),
) -> Result<DrillEnd, DrillError> {
    let workshop = drill.workshop.project.repo()?;
    let stage = Stage::of_drill(drill.project, (drill.state, drill.log), workshop, (change, shown))?;
    let before = events(&stage, change)?.len();
    let post = Post { role: Role::CodeReviewer, task: Some(change.task.clone()), once: true, ..post };
    let ends = run(&stage.project, vec![post], options, on_message)?;
    let new = events(&stage, change)?.split_off(before);
    let mut end = end_of(&new);
    for ended in ends {
        match ended.reason {
            EndReason::Signalled => end.interrupted = true,
            EndReason::Failed(error) => end.why = Some(error.to_string()),
            EndReason::Stop(_) | EndReason::Once | EndReason::NoClient | EndReason::RegistrationLost => {}
        }
    }
    Ok(end)
}

fn events(stage: &Stage, change: &Change) -> Result<Vec<HistoryEvent>, DrillError> {
    let state = stage.project.store().snapshot()?;
    Ok(state.board.body(&change.task)?.record().history.clone().unwrap_or_default())
}

/// The verdict of a code reviewer; a submission that Liza itself sends back has none.
fn end_of(events: &[HistoryEvent]) -> DrillEnd {
    let is_reviewer = |event: &&HistoryEvent| {
        let agent = event.agent.as_ref().and_then(|agent| agent.parse().ok());
        agent.is_some_and(|agent: liza_core::model::AgentId| agent.role() == Role::CodeReviewer)
    };
    let of_reviewer = || events.iter().filter(is_reviewer);
    let verdict = of_reviewer().find_map(|event| match event.name() {
        Some(EventName::Approved) => Some(false),
        Some(EventName::Rejected) => Some(true),
        Some(_) | None => None,
    });
    let session = of_reviewer().rfind(|event| event.is(EventName::SessionEnded));
    let why = session.and_then(|event| event.text("end"));
    DrillEnd {
        rejected: verdict,
        program: session.and_then(|event| event.text("client")),
        why,
        interrupted: false,
    }
}

#[cfg(test)]
mod tests {
    use liza_core::model::Timestamp;

    use super::*;

    /// Covers: TR-03
    #[test]
    fn only_the_verdict_of_a_reviewer_counts() {
        let at = Timestamp::from_unix(0);
        let event = |name, agent: &str| HistoryEvent::new(at, name, agent);
        let of = |events: &[HistoryEvent]| end_of(events).rejected;
        assert_eq!(of(&[event(EventName::Rejected, "system")]), None);
        assert_eq!(of(&[event(EventName::SessionEnded, "code-reviewer-1")]), None);
        assert_eq!(of(&[event(EventName::Rejected, "code-reviewer-1")]), Some(true));
        assert_eq!(of(&[event(EventName::Approved, "code-reviewer-2")]), Some(false));
    }
}
