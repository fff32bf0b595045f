//! The integration test of a merge: on the merged result; with the protected files of the integration branch,
//! if the merge changes them; and, if it fails, once on the integration branch itself. Decides who is to
//! blame for a failure; moves no branch and changes no task.

use liza_core::model::{
    Actor, GateChange, HeadTest, Sha, StopFiles, TaskId, TestFailure, ValidationCommand, ValidationKind,
    ValidationResult,
};
use liza_core::protocol::{BeginMerge, MergeFailure, Mergeable, RecordHeadTest};
use liza_core::rules::holdout::HoldoutResult;
use liza_core::rules::judging_settings::{is_of_today, judging_settings};
use liza_git::{BuiltCheckout, GitError, PendingMerge, Protected};
use liza_host::{durable, private};
use liza_ids::gate::GatePatterns;

use crate::engine::{Engine, EngineError};

use super::holdout::judge_merge;
use super::test_run::{Start, TEST_LOGS, TestEnd, TestRun, next_log};
use super::validation_statement::{failed_elsewhere, stated};

pub(super) struct MergeTest<'e, 'p> {
    engine: &'e Engine<'p>,
    /// The files that judge work, as the person of this machine accepted them; never as the work names them.
    patterns: GatePatterns,
}

pub(super) enum MergeTestResult {
    /// It passed, or there is none. What it has built can be kept once the merge is recorded.
    Passed(Option<BuiltCheckout>),
    /// It fails with the task only.
    Failed(MergeFailure),
    /// It fails without the task too.
    HeadFails(TestFailure),
    /// It passes, but the merge changes protected files, and the human has not accepted that.
    GateChanged(GateChange),
}

struct Gates {
    before: Protected,
    after: Protected,
}

impl<'e, 'p> MergeTest<'e, 'p> {
    pub(super) fn new(engine: &'e Engine<'p>) -> Result<Self, EngineError> {
        let project = engine.project();
        let patterns = project.state()?.board.config()?.gate_patterns();
        Ok(Self { engine, patterns })
    }

    /// If the merge changes protected files, it is tested with both versions of them.
    pub(super) fn run(
        &self,
        merge: &PendingMerge,
        approved: &Mergeable,
    ) -> Result<MergeTestResult, EngineError> {
        let (repo, task) = (self.engine.repo()?, &approved.task.task);
        let gates = Gates {
            before: repo.protected(&merge.old, &self.patterns)?,
            after: repo.protected(&merge.new, &self.patterns)?,
        };
        if let Some(link) = gates.after.new_outside(&gates.before) {
            let what =
                format!("{} is a protected file and a link that leads out of the repository", link.display());
            return Ok(MergeTestResult::Failed(self.without_test(task, what)?));
        }
        let commands = if self.is_validated(merge, &gates, approved)? { &[] } else { &*approved.commands };
        let (of, name) = ((task, &merge.new), task.as_str());
        let end = self.test(of, &gates.after, name, commands, Start::BuildPlace)?;
        if let Some(failure) = end.failure {
            return self.blame(failure, merge, &gates.before, approved);
        }
        if let Some(failure) = self.holdout_failure(merge, &gates, task)? {
            return Ok(MergeTestResult::Failed(failure));
        }
        if gates.after.changes(&gates.before)
            && let Some(change) = self.judge_change(merge, &gates, approved)?
        {
            return Ok(MergeTestResult::GateChanged(change));
        }
        Ok(MergeTestResult::Passed(end.built))
    }

    /// The failure of the acceptance tests that no session reads, if it is the merge's.
    fn holdout_failure(
        &self,
        merge: &PendingMerge,
        gates: &Gates,
        task: &TaskId,
    ) -> Result<Option<MergeFailure>, EngineError> {
        let project = self.engine.project();
        let state = project.state()?;
        let goes_on = || self.engine.check(StopFiles::default(), BeginMerge { task: task.clone() }).map(drop);
        let of = (merge, &gates.before, &gates.after);
        match judge_merge(project, state.board.config()?, task, of, goes_on)? {
            HoldoutResult::Passed => Ok(None),
            HoldoutResult::Failed { names } => Ok(Some(MergeFailure::Holdout { names })),
            HoldoutResult::Broken => {
                let problem =
                    "its `run` fails without naming a test, on the integration branch too".to_owned();
                Err(EngineError::Holdout { problem })
            }
        }
    }

    /// True if the commands have passed on exactly this tree, under exactly these protected files, and a statement says so.
    fn is_validated(
        &self,
        merge: &PendingMerge,
        gates: &Gates,
        approved: &Mergeable,
    ) -> Result<bool, EngineError> {
        let Some(validated) = &approved.validated else { return Ok(false) };
        let lines = approved.commands.iter().map(|command| &command.line);
        let repo = self.engine.repo()?;
        Ok(validated.result == ValidationResult::Green
            && lines.eq(&validated.commands)
            && !gates.after.changes(&gates.before)
            && validated.gate == repo.digest(&gates.before)?
            && validated.tree == Some(repo.tree_of(&merge.new)?)
            && stated(self.engine, &approved.task.task, &approved.commit, validated)?
                // Only a run that began with nothing replaces that of the merge.
                .is_some_and(|stated| stated.began_with.is_none())
            // Machines that disagree are no evidence.
            && failed_elsewhere(self.engine, &approved.task.task, validated)?.is_none())
    }

    /// A failure for which no test has to run; the log has it as its output.
    fn without_test(&self, task: &TaskId, what: String) -> Result<MergeFailure, EngineError> {
        let project = self.engine.project();
        let file = next_log(&project.folder().join(TEST_LOGS), task.as_str());
        let write = || {
            file.parent().map_or(Ok(()), private::create_folder)?;
            durable::replace_private_file(&file, format!("{what}\n").as_bytes())
        };
        write().map_err(|error| GitError::io("writing why a merge failed", &file, error))?;
        let output = file.strip_prefix(project.root()).unwrap_or(&file).to_string_lossy().into_owned();
        Ok(MergeFailure::Test { what, output })
    }

    /// Decides who is to blame for a failure.
    fn blame(
        &self,
        failure: TestFailure,
        merge: &PendingMerge,
        gate: &Protected,
        approved: &Mergeable,
    ) -> Result<MergeTestResult, EngineError> {
        // A test that was killed with its team does not start another one.
        self.engine.check(StopFiles::default(), BeginMerge { task: approved.task.task.clone() })?;
        let TestFailure { what, output, .. } = failure;
        Ok(match self.head_failure(&merge.old, gate, approved)? {
            Some(failure) => MergeTestResult::HeadFails(failure),
            None => MergeTestResult::Failed(MergeFailure::Test { what, output }),
        })
    }

    /// Tests the merge with the protected files of the integration branch, and asks the human unless their
    /// decision on exactly this change is known; returns what they are asked.
    fn judge_change(
        &self,
        merge: &PendingMerge,
        gates: &Gates,
        approved: &Mergeable,
    ) -> Result<Option<GateChange>, EngineError> {
        let (repo, Gates { before, after }) = (self.engine.repo()?, gates);
        let mut change = GateChange {
            commit: approved.commit.clone(),
            before: repo.digest(before)?,
            after: repo.digest(after)?,
            files: after.differing(before),
            old_failure: None,
            accepted: None,
        };
        let known = approved.gate_change.as_deref().filter(|known| known.is_same(&change));
        let accepted = known.and_then(|known| known.accepted.as_ref());
        if accepted.is_some_and(|accepted| accepted.old_fails) {
            return Ok(None);
        }
        if before.has_test() || !approved.commands.is_empty() {
            let judged = repo.judged_commit(&merge.new, before, after)?;
            let (task, commands) = (&approved.task.task, &approved.commands);
            let name = format!("{task}-old-gate");
            change.old_failure = self.failure((task, &judged), before, &name, commands)?;
        }
        match (accepted, &change.old_failure) {
            (Some(_), None) => Ok(None),
            (Some(_), Some(_)) | (None, _) => Ok(Some(change)),
        }
    }

    /// The failure on the integration branch itself. Tested once per head, unless the human asks for the merge.
    fn head_failure(
        &self,
        head: &Sha,
        gate: &Protected,
        approved: &Mergeable,
    ) -> Result<Option<TestFailure>, EngineError> {
        let state = self.engine.project().state()?;
        let config = state.board.config()?;
        let is_known = |known: &&HeadTest| {
            known.head == *head && is_of_today(&known.settings, config) && self.engine.actor() != Actor::Human
        };
        let known = approved.head_test.as_deref().filter(is_known);
        if let Some(known) = known {
            return Ok(known.failure.clone());
        }
        // The task's own commands show its work: without it they have to fail.
        let keeps = approved.commands.iter().filter(|command| command.kind == ValidationKind::Keeps);
        let keeps: Vec<ValidationCommand> = keeps.cloned().collect();
        let (of, name) = ((&approved.task.task, head), format!("head-{}", head.short()));
        let failure = self.failure(of, gate, &name, &keeps)?;
        let settings = judging_settings(config);
        self.engine.execute(RecordHeadTest { head: head.clone(), failure: failure.clone(), settings })?;
        Ok(failure)
    }

    /// The failure of a run of its own.
    fn failure(
        &self,
        of: (&TaskId, &Sha),
        gate: &Protected,
        name: &str,
        commands: &[ValidationCommand],
    ) -> Result<Option<TestFailure>, EngineError> {
        Ok(self.test(of, gate, name, commands, Start::OwnPlace)?.failure)
    }

    /// Runs the test of a commit, for a task, with these protected files, if it has one, then these commands.
    fn test(
        &self,
        (task, commit): (&TaskId, &Sha),
        gate: &Protected,
        name: &str,
        commands: &[ValidationCommand],
        start: Start,
    ) -> Result<TestEnd, EngineError> {
        let project = self.engine.project();
        let state = project.state()?;
        let run = TestRun::of_merge(project, state.board.config()?, (Some(task), commit))?.starting(start);
        let end = run.test(commit, gate, name)?;
        if end.failure.is_some() || commands.is_empty() {
            return Ok(end);
        }
        let of_test = end.built;
        let commands: Vec<&ValidationCommand> = commands.iter().collect();
        let end = run.run_commands(commit, gate, name, &commands)?;
        let failure = end.failed.map(|failed| {
            let what = format!("`{}` {}", failed.command.line, failed.failure.what);
            TestFailure { what, ..failed.failure }
        });
        // Commands may build nothing: then what the integration test has built is kept.
        let has_build =
            |built: &BuiltCheckout| project.repo().is_ok_and(|repo| built.has_build(repo, commit));
        Ok(TestEnd { failure, built: end.built.filter(has_build).or(of_test) })
    }
}
