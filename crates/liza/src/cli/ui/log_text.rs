//! What a log entry says, in words for people: every screen and `liza log` use the same sentences.
//!
//! The log itself and its JSON keep the names of the actions.

use liza_host::columns::one_line;

/// How a sentence sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// A step of the whole team.
    Strong,
    Good,
    /// Something that is worth a look.
    Attention,
    Bad,
}

/// A log entry in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSentence {
    pub(crate) tone: Tone,
    /// What happened; the agent is its subject.
    pub(crate) text: String,
    /// What the log says besides; nothing if the text has it.
    pub(crate) detail: Option<String>,
    /// Whether it belongs to the story of the work; otherwise only Liza needs to know it.
    pub(crate) is_story: bool,
}

impl LogSentence {
    fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into(), detail: None, is_story: true }
    }

    /// Keeps the detail beside the text.
    fn with(self, detail: &str) -> Self {
        Self { detail: Some(detail.to_owned()).filter(|detail| !detail.is_empty()), ..self }
    }

    /// Left out of the story.
    fn aside(self) -> Self {
        Self { is_story: false, ..self }
    }

    /// The text and the detail.
    pub(crate) fn whole(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.text),
            None => self.text.clone(),
        }
    }
}

/// What an entry says.
pub(crate) fn sentence(action: &str, task: Option<&str>, detail: &str) -> LogSentence {
    let detail = one_line(detail);
    match task {
        Some(task) => about_task(action, &one_line(task), &detail),
        None => about_team(action, &detail),
    }
}

fn about_task(action: &str, task: &str, detail: &str) -> LogSentence {
    use Tone::{Attention, Bad, Good, Plain, Strong};
    let say = |tone: Tone, text: String| LogSentence::new(tone, text);
    match action {
        "created" => say(Plain, format!("adds {task}: {detail}")),
        "tasks_finalized" => say(Strong, format!("makes the plan ready: {task}")),
        "tasks_proposed" => say(Strong, format!("proposes a plan: {task}")),
        "finalized" => say(Plain, format!("makes {task} ready for coders")).with(detail),
        "proposed" => say(Plain, format!("proposes {task}")).with(detail),
        "edited" => say(Plain, format!("changes {task}")).with(detail).aside(),
        "claimed" => say(Plain, format!("begins {task}")).with(detail),
        "resumed" => say(Plain, format!("continues {task}")).with(detail),
        "reclaimed_after_rejection" => {
            say(Plain, format!("continues {task} after the rejection")).with(detail)
        }
        "reassigned_after_rejection" => {
            say(Plain, format!("takes over {task} after the rejection")).with(detail)
        }
        "reclaimed_after_expiry" => say(Plain, format!("takes over {task}")).with(detail),
        "claimed_for_integration_fix" => {
            say(Plain, format!("begins to fix the merge of {task}")).with(detail)
        }
        "claim_failed" => say(Plain, format!("cannot claim {task}")).with(detail).aside(),
        "pre_execution_checkpoint" => say(Plain, format!("states its plan for {task}: {detail}")).aside(),
        "ready_for_review" => say(Plain, format!("submits {task} for review")).with(detail),
        "review_claimed" => say(Plain, format!("reviews {task}")).with(detail),
        "reviews_cleared" => say(Plain, format!("no longer reviews {task}")).with(detail).aside(),
        "change_moved" => say(
            Attention,
            format!("has to read {task} again, which its merge would now change otherwise: {detail}"),
        ),
        "review_dropped" => say(Attention, format!("drops the review of {task}: {detail}")),
        "rejected" => say(Attention, format!("rejects {task}: {detail}")),
        "approved" => say(Good, format!("approves {task}")).with(detail),
        "merged" => say(Good, format!("{task} is merged")).with(detail),
        "integration_failed" => say(Bad, format!("{task} cannot be merged: {detail}")),
        "merge_held" => say(Bad, format!("{task} waits to be merged: {detail}")),
        "gate_accepted" => say(Strong, format!("accepts that {task} changes what judges it, {detail}")),
        "blocked" => say(Attention, format!("marks {task} as blocked: {detail}")),
        "unblocked" => say(Plain, format!("unblocks {task}")).with(detail),
        "rescoped" => say(Strong, format!("replaces {task}: {detail}")),
        "superseded" => say(Strong, format!("replaces {task}")).with(detail),
        "abandoned" => say(Attention, format!("abandons {task}: {detail}")),
        "handoff" => say(Plain, format!("hands {task} to its next session")).with(detail),
        "session_ended" => say(Plain, format!("ends its session on {task}")).with(detail).aside(),
        "released" => say(Plain, format!("releases the claim on {task}")).with(detail),
        "anomaly" => say(Attention, format!("reports a problem with {task}: {detail}")).aside(),
        "discovered" => say(Plain, format!("discovers during {task}: {detail}")).aside(),
        "answered" => say(Plain, format!("answers {task}: {detail}")),
        "note" => say(Plain, format!("writes to the agents of {task}: {detail}")).aside(),
        "recovered" => say(Plain, format!("repairs {task}")).with(detail).aside(),
        other => unknown(other, &format!("{task}: {detail}")),
    }
}

fn about_team(action: &str, detail: &str) -> LogSentence {
    use Tone::{Attention, Bad, Good, Plain, Strong};
    let say = |tone: Tone, text: String| LogSentence::new(tone, text);
    match action {
        "goal_created" => say(Strong, format!("states the goal: {detail}")).aside(),
        "goal_ended" => say(Strong, detail.to_owned()),
        "goal_finished" => say(Good, format!("takes the result: {detail}")).aside(),
        "tasks_finalized" => say(Strong, format!("makes the plan ready: {detail}")),
        "tasks_proposed" => say(Strong, format!("proposes a plan: {detail}")),
        "registered" => say(Plain, "joins the team".to_owned()).aside(),
        "deregistered" => say(Plain, "leaves the team".to_owned()).with(detail).aside(),
        "reviews_cleared" => say(Plain, "clears review claims".to_owned()).with(detail).aside(),
        "archived" => say(Plain, "moves tasks to the archive".to_owned()).with(detail).aside(),
        "anomaly" => say(Attention, format!("reports: {detail}")).aside(),
        "discovered" => say(Plain, format!("discovers: {detail}")).aside(),
        "note" => say(Plain, format!("writes to the agents: {detail}")).aside(),
        "spec_updated" => say(Plain, format!("changes a specification: {detail}")).aside(),
        "aligned" => say(Plain, format!("compares the work with the goal: {detail}")).aside(),
        "paused" => say(Attention, "pauses the team".to_owned()).with(detail).aside(),
        "resumed" => say(Plain, "resumes the team".to_owned()).with(detail).aside(),
        "aborted" => say(Bad, "aborts".to_owned()).with(detail).aside(),
        "checkpoint" => say(Attention, format!("stops the team for a review: {detail}")).aside(),
        "circuit_breaker" => say(Bad, format!("circuit breaker: {detail}")).aside(),
        "sprint_completed" => say(Strong, "every task of the sprint has ended".to_owned()).with(detail),
        "sprint_started" => say(Strong, "begins the next sprint".to_owned()).with(detail).aside(),
        "sprint_updated" => say(Plain, "changes the sprint".to_owned()).with(detail).aside(),
        "planner_stopped" => say(Attention, format!("the planner waits for you: {detail}")).aside(),
        "handoff" => say(Plain, format!("hands over to its next session: {detail}")).aside(),
        "session_ended" => say(Plain, "ends its session".to_owned()).with(detail).aside(),
        "integration_updated" => say(Plain, detail.to_owned()).aside(),
        "head_tested" => say(Plain, format!("tests the integration branch: {detail}")).aside(),
        "recovered" => say(Plain, format!("repairs: {detail}")).aside(),
        "edit" => say(Attention, format!("edits the blackboard: {detail}")).aside(),
        "configured" => say(Attention, format!("sets {detail}")).aside(),
        "settings_applied" => say(Attention, format!("applies the settings of {detail}")).aside(),
        other => unknown(other, detail),
    }
}

/// An action of another version, or of a person: its own words.
fn unknown(action: &str, detail: &str) -> LogSentence {
    let words = one_line(action).replace('_', " ");
    LogSentence::new(Tone::Plain, format!("{words} {detail}").trim().to_owned()).aside()
}

#[cfg(test)]
mod tests {
    use liza_core::model::{EventName, LogAction};

    use super::*;

    /// Covers: UI-03
    #[test]
    fn every_action_of_the_log_has_a_sentence_of_its_own() {
        let team = [
            LogAction::GoalCreated,
            LogAction::GoalEnded,
            LogAction::TasksFinalized,
            LogAction::Registered,
            LogAction::Deregistered,
            LogAction::ReviewsCleared,
            LogAction::Anomaly,
            LogAction::Discovered,
            LogAction::Note,
            LogAction::SpecUpdated,
            LogAction::Aligned,
            LogAction::Paused,
            LogAction::Resumed,
            LogAction::Aborted,
            LogAction::Checkpoint,
            LogAction::CircuitBreaker,
            LogAction::SprintCompleted,
            LogAction::SprintStarted,
            LogAction::SprintUpdated,
            LogAction::PlannerStopped,
            LogAction::TasksProposed,
            LogAction::IntegrationUpdated,
            LogAction::HeadTested,
            LogAction::GoalFinished,
            LogAction::Recovered,
            LogAction::Edit,
            LogAction::Configured,
            LogAction::SettingsApplied,
            LogAction::Task(EventName::Archived),
            LogAction::Task(EventName::Handoff),
            LogAction::Task(EventName::SessionEnded),
        ];
        let of_task =
            [LogAction::Edited, LogAction::ClaimFailed, LogAction::Rescoped, LogAction::ReviewClaimed];
        let raw = |action: LogAction| unknown(action.name(), "x").text;
        for action in team {
            assert_ne!(sentence(action.name(), None, "x").text, raw(action), "{}", action.name());
        }
        let events = <EventName as strum::IntoEnumIterator>::iter().map(LogAction::Task);
        for action in events.chain(of_task).filter(|action| action.name() != "archived") {
            let said = sentence(action.name(), Some("t"), "x");
            assert_ne!(said.text, unknown(action.name(), "t: x").text, "{}", action.name());
            assert!(said.text.contains('t'), "{said:?}");
        }
    }

    #[test]
    fn a_detail_is_kept_beside_its_sentence_and_an_unknown_action_keeps_its_words() {
        assert_eq!(sentence("merged", Some("t"), "fast-forward").whole(), "t is merged (fast-forward)");
        assert_eq!(sentence("approved", Some("t"), "").whole(), "approves t");
        assert_eq!(sentence("odd_thing", None, "x\ny").whole(), "odd thing x y");
    }

    /// Covers: UI-03
    #[test]
    fn a_detail_that_says_nothing_is_left_out() {
        assert_eq!(sentence("paused", None, "").whole(), "pauses the team");
        assert_eq!(sentence("resumed", None, "x").whole(), "resumes the team (x)");
        assert_eq!(
            sentence("settings_applied", None, "liza.yaml").whole(),
            "applies the settings of liza.yaml"
        );
    }
}
