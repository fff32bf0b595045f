//! Judges a session that has ended: by the blackboard and git first, then by its client's report, its exit
//! code last. Records the result and its consequences.

use std::fs;
use std::path::PathBuf;
use std::sync::PoisonError;

use liza_core::model::{
    AgentStatus, AnomalyType, Approver, FaultKind, Fields, Role, Seconds, State, Status, TaskBody, TaskId,
    TaskRecord, Usage, Value,
};
use liza_core::protocol::{
    ExitCounted, LogAnomaly, PlannerExitCounted, RecordSession, RecordUsage, Reply, SetStatus,
};
use liza_core::rules::clients::{Continuation, describe_hold};
use liza_core::rules::triggers::in_words;
use liza_core::supervise::{EndedSession, SessionEnd, WorkKind, after_session, has_result};

use crate::engine::failed_since;
use crate::lifecycle::take_and_send;
use crate::observe::last_run::last_run;
use crate::project::{day_ends, now};
use crate::session::conversations::conversations_of;
use crate::session::refused_places;

use super::background::JobRunner;
use super::error::{Consequence, SupervisorError};
use super::event::{JobOutcome, SessionVerdict};
use super::last_words::last_words;
use super::member::UsageToRecord;
use super::message::MessageLevel;
use super::registration::retry_locked;
use super::session_result::{EndedRun, session_result};
use super::start_session::checkout_state;

impl JobRunner {
    pub(super) fn judge(&self, mut run: EndedRun) -> Result<JobOutcome, SupervisorError> {
        // First: with other modes the blackboard may be out of reach.
        let repaired = run.modes.repair();
        let not_recorded = self.record_usage(&run.usage).err();
        let state = retry_locked(|| Ok(self.project.state()?))?;
        self.observe(&mut run);
        let (mut counted, mut gave_up) = (false, None);
        let mut notes = self.record_session(&state, &mut run)?;
        notes.extend(self.report_modes(&repaired)?);
        let next = after_session(&state, &run.session, run.end);
        let result = session_result(&state, &run.session, next.progress);
        for command in &next.record {
            match self.execute(command) {
                Ok(Reply::CountExit(ExitCounted { count, limit, .. })) => {
                    counted = true;
                    count_notes(&mut notes, &run.session, (count, limit), next.pause);
                }
                Ok(Reply::CountPlannerExit(PlannerExitCounted { count, limit })) => {
                    counted = true;
                    count_notes(&mut notes, &run.session, (count, limit), next.pause);
                    gave_up = (count >= limit).then(|| SupervisorError::NoResult {
                        agent: run.session.agent,
                        times: count,
                        woken: in_words(&run.session.triggers),
                        last_words: run.session.last_words.clone(),
                        run: last_run(&self.project).run,
                    });
                }
                Ok(_) => {}
                // The task belongs to another agent now: nothing to count.
                Err(error) if matches!(error.consequence(), Consequence::Recheck | Consequence::Halted) => {
                    notes.push((MessageLevel::Info, error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        if run.session.agent.role() == Role::Planner {
            notes.extend(self.after_planning(&state, &run)?);
        }
        if run.merges {
            notes.extend(self.merge_approved(&state, &run.session)?);
        }
        // A large checkout takes long, and screens show the session until it is recorded.
        self.end_review(&run);
        let lost = |error| (MessageLevel::Info, format!("cannot record its usage: {error}"));
        notes.extend(not_recorded.map(lost));
        Ok(JobOutcome::Judged(SessionVerdict {
            task: run.session.task.clone(),
            next,
            gave_up,
            is_reported: run.session.is_clients_fault || counted,
            result,
            notes,
        }))
    }

    /// Raises an alarm for modes that a session changed.
    fn report_modes(&self, repaired: &[PathBuf]) -> Result<Option<(MessageLevel, String)>, SupervisorError> {
        let Some(first) = repaired.first() else { return Ok(None) };
        let more = match repaired.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let what = format!("changed the mode of {}{more} during a session; repaired", first.display());
        let details = Fields::from_iter([("deviation".to_owned(), Value::from(what.as_str()))]);
        self.execute(&LogAnomaly { kind: AnomalyType::ScopeDeviation, task: None, details })?;
        Ok(Some((MessageLevel::Alert, what)))
    }

    /// Records the end of the session and its client's faults.
    fn record_session(
        &self,
        state: &State,
        run: &mut EndedRun,
    ) -> Result<Vec<(MessageLevel, String)>, SupervisorError> {
        let progress = has_result(state, &run.session);
        let (end, has_new_login) = (run.end_text(progress), run.has_new_login && !progress);
        let session = &mut run.session;
        let by_itself = !matches!(run.end, SessionEnd::Stopped) && !session.halted && !has_new_login;
        // A model's behaviour is no sign that its program fails.
        let by_itself = by_itself && run.guard.is_none();
        let fault = run.outcome.fault.clone().filter(|_| !progress);
        let is_auth = fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Auth);
        let by_model = session.model_end(run.end).filter(|_| !progress && by_itself);
        let is_kept = !progress || state.board.config()?.resume_conversation;
        if let Some(task) = session.task.as_ref().filter(|_| !is_kept) {
            let _ = fs::remove_dir_all(conversations_of(self.project.folder(), task));
        }
        let recorded = self.execute(&RecordSession {
            agent: session.agent,
            task: session.task.clone(),
            client: run.client.clone(),
            started: run.started,
            end,
            said: run.outcome.said.clone(),
            repair: run.login.clone().filter(|_| is_auth),
            fault,
            failed: !progress && by_itself && !session.has_commits,
            model: run.outcome.model,
            by_model,
            refusal: session.refusal.clone().filter(|_| !progress),
            unsubmitted: run.unsubmitted.clone().filter(|_| !progress),
            usage: run.usage.used.usage.clone(),
            conversation: run.outcome.conversation.clone().filter(|_| session.agent.role() == Role::Coder),
        })?;
        session.is_clients_fault = recorded.is_clients_fault || has_new_login;
        Ok(vec![match recorded.new_hold {
            Some(hold) => {
                let start = last_run(&self.project);
                let then = Continuation { has_team: true, run: &start.run };
                let text =
                    format!("{} is held for the team: {}", run.client, describe_hold(&hold, then, now()));
                (MessageLevel::Alert, text)
            }
            // Another session has reported why its client is held.
            None if progress || recorded.is_clients_fault => (MessageLevel::Debug, recorded.line),
            None => (MessageLevel::Info, recorded.line),
        }])
    }

    /// Merges the task if the session approved it.
    fn merge_approved(
        &self,
        state: &State,
        session: &EndedSession,
    ) -> Result<Option<(MessageLevel, String)>, SupervisorError> {
        let approved = |task: &&TaskId| {
            let record = state.board.body(task).ok().map(TaskBody::record);
            let own = |record: &TaskRecord| record.approved_by == Some(Approver::Agent(session.agent));
            state.board.status(task) == Some(Status::Approved) && record.is_some_and(own)
        };
        let Some(task) = session.task.as_ref().filter(approved) else { return Ok(None) };
        let merged = self.merge(task).map_err(|error| error.on(WorkKind::Merge, Some(task)))?;
        Ok(Some((MessageLevel::Info, merged)))
    }

    /// Deletes the checkout of a review whose session has ended; the next session gets a new one.
    fn end_review(&self, run: &EndedRun) {
        if let Some(task) =
            run.session.task.as_ref().filter(|_| run.session.agent.role() == Role::CodeReviewer)
        {
            // The next review or `recover` repeats a failed deletion.
            let _ = self.project.repo().map(|repo| repo.remove_review(task));
        }
    }

    /// Adds the facts from git and the session's output.
    fn observe(&self, run: &mut EndedRun) {
        let guard = run.guard.map(|guard| guard.reason());
        let refusal = || run.session.refusal.as_ref().map(ToString::to_string);
        let said = || run.output.as_deref().and_then(last_words);
        run.session.last_words = guard.or_else(refusal).or_else(said);
        if let Some(log) = &run.output {
            refused_places::record(&self.project, Some(run.session.agent), run.session.task.as_ref(), log);
        }
        if let (Some(task), Some(before)) = (&run.session.task, &run.head) {
            let head = self.project.repo().ok().and_then(|repo| repo.worktree_head(task).ok().flatten());
            run.unsubmitted = head.filter(|head| head != before);
            run.session.has_commits = run.unsubmitted.is_some();
            // The next session takes the rest, or a rescue saves it.
            let _ = take_and_send(&self.project, task, self.identity.generation);
            // The next claim repeats it. Until then a damaged repository is one in which git does nothing.
            if let Err(error) = self.project.repo().and_then(|repo| repo.restore_settings(task)) {
                let details = Fields::from_iter([("deviation".to_owned(), Value::from(error.to_string()))]);
                let (kind, task) = (AnomalyType::ScopeDeviation, Some(task.clone()));
                let _ = self.execute(&LogAnomaly { kind, task, details });
            }
            run.session.remote_failed = failed_since(self.project.folder(), run.started);
        }
    }

    fn after_planning(
        &self,
        state: &State,
        run: &EndedRun,
    ) -> Result<Option<(MessageLevel, String)>, SupervisorError> {
        let now = checkout_state(&self.project, state);
        let changed = run.checkout.is_some() && now.is_some() && run.checkout != now;
        let alert = changed.then_some("the project's own checkout changed during a planning session");
        if let Some(what) = alert {
            let details = Fields::from_iter([("deviation".to_owned(), Value::from(what))]);
            self.execute(&LogAnomaly { kind: AnomalyType::ScopeDeviation, task: None, details })?;
        }
        self.execute(&SetStatus::new(self.identity.agent, AgentStatus::Waiting))?;
        Ok(alert.map(|text| (MessageLevel::Alert, text.to_owned())))
    }

    pub(super) fn record_usage(&self, usage: &UsageToRecord) -> Result<(), SupervisorError> {
        let mut recorded = usage.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let used = &usage.used;
        // A thread that started later may have recorded more already.
        if used.events <= recorded.events {
            return Ok(());
        }
        let more = used.usage.since(&recorded.usage);
        // As in a rehearsal.
        if more == Usage::default() && used.context_percent.is_none() {
            return Ok(());
        }
        self.execute(&RecordUsage {
            agent: self.identity.agent,
            task: usage.task.clone(),
            usage: more,
            context_percent: used.context_percent,
            day_ends: day_ends(),
        })?;
        *recorded = used.clone();
        Ok(())
    }
}

/// Adds the count of the session and the start of the next one to the first note, which reports its end.
fn count_notes(
    notes: &mut Vec<(MessageLevel, String)>,
    session: &EndedSession,
    (count, limit): (u32, u32),
    pause: Seconds,
) {
    let agent = session.agent;
    if let Some((_, text)) = notes.first_mut() {
        let again = if count < limit { format!("; again in {pause}") } else { String::new() };
        let said = text.trim_end_matches('.').to_owned();
        *text = format!("{said}. No result, {count} of {limit}{again}; see it: liza tail {agent}");
    }
    if let Some(task) = session.task.as_ref().filter(|_| count >= limit)
        && agent.role() == Role::CodeReviewer
    {
        let text = format!("drops the review of {task}; another code reviewer must take it");
        notes.push((MessageLevel::Alert, text));
    }
    let words = session.last_words.as_ref().filter(|_| count >= limit);
    notes.extend(words.map(|words| (MessageLevel::Alert, format!("it ended with: {words}"))));
}

#[cfg(test)]
mod tests {
    use liza_core::model::Revision;

    use super::*;

    /// Covers: UI-03
    #[test]
    fn a_failed_session_is_one_line() {
        let mut notes = vec![(MessageLevel::Info, "codex exited 1: no route.".to_owned())];
        let session = EndedSession::new("coder-1".parse().unwrap(), "t".parse().ok(), Revision(1));
        count_notes(&mut notes, &session, (1, 5), Seconds(5));
        let text = "codex exited 1: no route. No result, 1 of 5; again in 5s; see it: liza tail coder-1";
        assert_eq!(notes, [(MessageLevel::Info, text.to_owned())]);
    }
}
