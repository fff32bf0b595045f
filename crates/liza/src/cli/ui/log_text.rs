//! Log entries in words for people: every screen and `liza log` use the same sentences. The log itself and
//! its JSON keep the names of the actions.

use liza_host::columns::one_line;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSentence {
    pub(crate) tone: Tone,
    /// The event; the agent is its subject. The task, if there is one, comes between the two parts.
    pub(crate) before: String,
    pub(crate) task: Option<String>,
    pub(crate) after: String,
    /// Further facts of the log; nothing if the text has them.
    pub(crate) detail: Option<String>,
    /// True if it belongs to the story of the work; otherwise only Liza needs to know it.
    pub(crate) is_story: bool,
}

impl LogSentence {
    fn new(tone: Tone, text: impl Into<String>) -> Self {
        let (task, after, detail) = (None, String::new(), None);
        Self { tone, before: text.into(), task, after, detail, is_story: true }
    }

    pub(crate) fn text(&self) -> String {
        [&self.before, self.task.as_deref().unwrap_or_default(), &self.after].concat()
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
            Some(detail) => format!("{} ({detail})", self.text()),
            None => self.text(),
        }
    }
}

/// The sentence of an entry. What Liza sends back by itself is no verdict.
pub(crate) fn sentence_by(agent: &str, action: &str, task: Option<&str>, detail: &str) -> LogSentence {
    let is_sent_back = action == "rejected" && agent == "system";
    sentence(if is_sent_back { "sent_back" } else { action }, task, detail)
}

fn sentence(action: &str, task: Option<&str>, detail: &str) -> LogSentence {
    let detail = one_line(detail);
    match task {
        Some(task) => about_task(action, &one_line(task), &detail),
        None => about_team(action, &detail),
    }
}

fn about_task(action: &str, task: &str, detail: &str) -> LogSentence {
    use Tone::{Attention, Bad, Good, Plain, Strong};
    let say = |tone: Tone, before: &str, after: &str| LogSentence {
        task: Some(task.to_owned()),
        after: after.to_owned(),
        ..LogSentence::new(tone, before)
    };
    let colon = format!(": {detail}");
    match action {
        "created" => say(Plain, "adds ", &colon),
        "tasks_finalized" => say(Strong, "makes the plan ready: ", ""),
        "tasks_proposed" => say(Strong, "proposes a plan: ", ""),
        "finalized" => say(Plain, "makes ", " ready for coders").with(detail),
        "proposed" => say(Plain, "proposes ", "").with(detail),
        "edited" => say(Plain, "changes ", "").with(detail).aside(),
        "claimed" => say(Plain, "begins ", "").with(detail),
        "resumed" => say(Plain, "continues ", "").with(detail),
        "reclaimed_after_rejection" => say(Plain, "continues ", " after the rejection").with(detail),
        "reassigned_after_rejection" => say(Plain, "takes over ", " after the rejection").with(detail),
        "reclaimed_after_expiry" => say(Plain, "takes over ", "").with(detail),
        "claimed_for_integration_fix" => say(Plain, "begins to fix the merge of ", "").with(detail),
        "claim_failed" => say(Plain, "cannot claim ", "").with(detail).aside(),
        "pre_execution_checkpoint" => say(Plain, "states its plan for ", &colon).aside(),
        "ready_for_review" => say(Plain, "submits ", " for review").with(detail),
        "review_claimed" => say(Plain, "reviews ", "").with(detail),
        "reviews_cleared" => say(Plain, "no longer reviews ", "").with(detail).aside(),
        "change_moved" => say(
            Attention,
            "has to read ",
            &format!(" again, which its merge would now change otherwise: {detail}"),
        ),
        "validated" => say(Plain, "", &format!(": {detail}")),
        "review_dropped" => say(Attention, "drops the review of ", &colon),
        "rejected" => say(Attention, "rejects ", &colon),
        "sent_back" => say(Attention, "sends back ", &colon),
        "approved" => say(Good, "approves ", "").with(detail),
        "merged" => say(Good, "", " is merged").with(detail),
        "integration_failed" => say(Bad, "", &format!(" cannot be merged: {detail}")),
        "merge_held" => say(Bad, "", &format!(" waits to be merged: {detail}")),
        "gate_accepted" => say(Strong, "accepts that ", &format!(" changes what judges it, {detail}")),
        "blocked" => say(Attention, "marks ", &format!(" as blocked: {detail}")),
        "unblocked" => say(Plain, "unblocks ", "").with(detail),
        "rescoped" => say(Strong, "replaces ", &colon),
        "superseded" => say(Strong, "replaces ", "").with(detail),
        "abandoned" => say(Attention, "abandons ", &colon),
        "handoff" => say(Plain, "hands ", " to its next session").with(detail),
        "session_ended" => say(Plain, "ends its session on ", "").with(detail).aside(),
        "released" => say(Plain, "releases the claim on ", "").with(detail),
        "anomaly" => say(Attention, "reports a problem with ", &colon).aside(),
        "discovered" => say(Plain, "discovers during ", &colon).aside(),
        "answered" => say(Plain, "answers ", &colon),
        "note" => say(Plain, "writes to the agents of ", &colon).aside(),
        "recovered" => say(Plain, "repairs ", "").with(detail).aside(),
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
        let raw = |action: LogAction| unknown(action.name(), "x").text();
        for action in team {
            assert_ne!(sentence(action.name(), None, "x").text(), raw(action), "{}", action.name());
        }
        let events = <EventName as strum::IntoEnumIterator>::iter().map(LogAction::Task);
        for action in events.chain(of_task).filter(|action| action.name() != "archived") {
            let said = sentence(action.name(), Some("t"), "x");
            assert_ne!(said.text(), unknown(action.name(), "t: x").text(), "{}", action.name());
            assert!(said.text().contains('t'), "{said:?}");
        }
    }

    #[test]
    fn a_detail_is_kept_beside_its_sentence_and_an_unknown_action_keeps_its_words() {
        assert_eq!(sentence("merged", Some("t"), "fast-forward").whole(), "t is merged (fast-forward)");
        assert_eq!(sentence("approved", Some("t"), "").whole(), "approves t");
        assert_eq!(sentence_by("system", "rejected", Some("t"), "red").whole(), "sends back t: red");
        assert_eq!(sentence_by("human", "rejected", Some("t"), "no").whole(), "rejects t: no");
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
