//! The validation of submitted work: Liza runs the project's and the task's commands on exactly the submitted
//! commit, with the protected files of the integration branch, before a reviewer's session is paid for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use liza_core::model::{
    AgentId, Config, Refusal, ReviewPhase, Sha, TaskId, TestFailure, Validation, ValidationCommand,
    ValidationKind, ValidationResult,
};
use liza_core::protocol::{BeginReview, RecordValidation, ReleaseReview, ReviewClaimed};
use liza_core::rules::judging_settings::judging_settings;
use liza_core::rules::validation::{commands, is_validated};
use liza_git::{HeadBuild, Protected};
use liza_host::durable;
use liza_ids::Digest;
use liza_receipts::{CommandRun, Origin, Predicate, Purpose};
use liza_sandbox::confine::Level;

use crate::engine::{Engine, EngineError, Exchange, Executed};
use crate::project::{Project, now};
use crate::session::checkout_setup::set_up_settings;
use crate::session::plan::known_level;

use super::fetch_commits::integration_head;
use super::judged_copy::head_builds;
use super::test_run::{CommandEnd, CommandsEnd, FailedCommand, Start, TestRun};
use super::validation_statement::{check_receipt, failed_elsewhere, passed_before};

/// The pause between two looks at the claim, while the commands run.
const LOOK: Duration = Duration::from_secs(1);

/// The digest of the protected files of the integration branch, if commands validate this task.
pub(super) fn gate_of(engine: &Engine<'_>, task: &TaskId) -> Result<Option<String>, EngineError> {
    let board = engine.read(&[task])?;
    let Ok(body) = board.body(task) else { return Ok(None) };
    if commands(board.config()?, body.record()).is_empty() {
        return Ok(None);
    }
    let Some(head) = integration_head(engine.project(), &board)? else { return Ok(None) };
    let (repo, patterns) = (engine.repo()?, board.config()?.gate_patterns());
    Ok(Some(repo.digest(&repo.protected(&head, &patterns)?)?))
}

/// The same, or the name of no gate if the result on the blackboard has no valid statement: then the commands run again.
pub(super) fn trusted_gate(engine: &Engine<'_>, task: &TaskId) -> Result<Option<String>, EngineError> {
    let Some(gate) = gate_of(engine, task)? else { return Ok(None) };
    let board = engine.read(&[task])?;
    let (config, record) = (board.config()?, board.body(task)?.record());
    let counts = |commit: &Sha| is_validated(config, record, commit, Some(&gate));
    if !record.review_commit.as_ref().is_some_and(counts) {
        return Ok(Some(gate));
    }
    match check_receipt(engine, task) {
        Err(error) if matches!(error.refusal(), Some(Refusal::NoReceipt { .. })) => Ok(Some(String::new())),
        checked => checked.map(|()| Some(gate)),
    }
}

/// Validates a review that is claimed for it. If the commands pass, the session may begin; otherwise the review
/// is no longer claimed, and the reason is returned as an error.
pub(super) fn validate(
    engine: &Engine<'_>,
    task: &TaskId,
    reviewer: AgentId,
    commit: &Sha,
) -> Result<Executed<ReviewClaimed>, EngineError> {
    let release = |error: EngineError| {
        // If it is not claimed any more, that is what is wanted.
        let _ = engine.execute(ReleaseReview { task: task.clone(), reviewer });
        error
    };
    let validation = run(engine, task, reviewer, commit).map_err(release)?;
    let (result, ran_under) = (validation.result, validation.gate.clone());
    let what = in_words(&validation);
    let _ = engine.execute(RecordValidation { task: task.clone(), reviewer, validation }).map_err(release)?;
    let (task, commit) = (task.clone(), commit.clone());
    match result {
        ValidationResult::Green => {
            // The commands took their time: the gate of now decides, not the one under which they ran.
            let gate = gate_of(engine, &task).map_err(release)?.unwrap_or(ran_under);
            engine.execute(BeginReview { task, reviewer, gate }).map_err(release)
        }
        ValidationResult::Red => Err(Refusal::ValidationFailed { task, commit, what }.into()),
        ValidationResult::Held => Err(Refusal::ValidationHeld { task, what }.into()),
    }
}

/// The command that failed, and its end.
fn in_words(validation: &Validation) -> String {
    let what = validation.failure.as_ref().map(|failure| failure.what.as_str()).unwrap_or_default();
    format!("`{}` {what}", validation.command.as_deref().unwrap_or_default())
}

/// Runs the commands, and gives up when the review is no longer this reviewer's.
fn run(
    engine: &Engine<'_>,
    task: &TaskId,
    reviewer: AgentId,
    commit: &Sha,
) -> Result<Validation, EngineError> {
    let (cancelled, project) = (AtomicBool::new(false), engine.project().clone());
    let (_ends, ended) = channel::<()>();
    thread::scope(|scope| {
        let claim = Claim { project: &project, task, reviewer };
        let cancelled = &cancelled;
        scope.spawn(move || claim.watch(&ended, cancelled));
        let validation = Run::new(engine, task, commit, cancelled).and_then(|run| run.validation());
        // Ends the other thread.
        drop(_ends);
        validation
    })
}

struct Claim<'a> {
    project: &'a Project,
    task: &'a TaskId,
    reviewer: AgentId,
}

impl Claim<'_> {
    /// Looks at the claim until the run has ended. A claim that cannot be read is not lost.
    fn watch(&self, ended: &Receiver<()>, cancelled: &AtomicBool) {
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if self.is_lost() || self.project.stop_files().abort {
                cancelled.store(true, Ordering::Relaxed);
                return;
            }
        }
    }

    fn is_lost(&self) -> bool {
        let Ok(state) = self.project.state() else { return false };
        let Ok(task) = state.board.task(self.task) else { return false };
        let is_own = task.status.review().is_some_and(|review| {
            review.by == self.reviewer && review.phase == Some(ReviewPhase::Validation)
        });
        !is_own
    }
}

struct Run<'e, 'p> {
    engine: &'e Engine<'p>,
    task: &'e TaskId,
    commit: &'e Sha,
    /// The head of the integration branch, and the one that the blackboard has: they differ while the branch has
    /// commits that the human has not accepted.
    head: Sha,
    recorded_head: Option<Sha>,
    config: Config,
    commands: Vec<ValidationCommand>,
    /// The protected files of the integration branch, and those of the work.
    before: Protected,
    after: Protected,
    cancelled: &'e AtomicBool,
}

impl<'e, 'p> Run<'e, 'p> {
    fn new(
        engine: &'e Engine<'p>,
        task: &'e TaskId,
        commit: &'e Sha,
        cancelled: &'e AtomicBool,
    ) -> Result<Self, EngineError> {
        let board = engine.read(&[task])?;
        let config = board.config()?.clone();
        let commands = commands(&config, board.body(task)?.record());
        let head = integration_head(engine.project(), &board)?.unwrap_or_else(|| commit.clone());
        let recorded_head = board.goal.ready().and_then(|goal| goal.integration_head.clone());
        let (repo, patterns) = (engine.repo()?, config.gate_patterns());
        let (before, after) = (repo.protected(&head, &patterns)?, repo.protected(commit, &patterns)?);
        Ok(Self { engine, task, commit, head, recorded_head, config, commands, before, after, cancelled })
    }

    fn validation(&self) -> Result<Validation, EngineError> {
        let (judged, mut end) = self.judge()?;
        let blames_no_one = match &end.failed {
            Some(failed) => failed.blames_machine || self.fails_without_it(&failed.command)?.is_some(),
            None => false,
        };
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Refusal::ValidationStale { task: self.task.clone() }.into());
        }
        let mut validation = self.green(&judged, &end)?;
        // A run that blames this machine or the branch judges no work, and is nobody's evidence.
        if !blames_no_one {
            validation.receipt = Some(self.state(&judged, &validation.gate, &end)?.to_string());
        }
        let is_disputed = match end.failed.take() {
            Some(failed) => self.failed(&mut validation, failed, blames_no_one)?,
            None => self.passed(&mut validation, &end.runs)?,
        };
        if is_disputed || blames_no_one {
            (validation.result, validation.head) = (ValidationResult::Held, self.recorded_head.clone());
            validation.settings = vec![judging_settings(&self.config)];
        }
        Ok(validation)
    }

    fn green(&self, judged: &Sha, end: &CommandsEnd) -> Result<Validation, EngineError> {
        let repo = self.engine.repo()?;
        Ok(Validation {
            commit: self.commit.clone(),
            result: ValidationResult::Green,
            commands: self.commands.iter().map(|command| command.line.clone()).collect(),
            gate: repo.digest(&self.before)?,
            tree: Some(repo.tree_of(judged)?),
            time: now(),
            command: None,
            failure: None,
            flaky: end.flaky.clone(),
            head: None,
            settings: Vec::new(),
            receipt: None,
        })
    }

    /// Notes the command that failed; true if a statement says that it has passed on this commit.
    fn failed(
        &self,
        validation: &mut Validation,
        FailedCommand { command, mut failure, .. }: FailedCommand,
        blames_no_one: bool,
    ) -> Result<bool, EngineError> {
        let other = match blames_no_one {
            true => None,
            false => passed_before(self.engine, self.task, validation)?,
        };
        if let Some(passed) = &other {
            let more = format!(", and passed on the same commit before (receipt {})", passed.shown());
            failure.what.push_str(&more);
        }
        validation.result = ValidationResult::Red;
        (validation.command, validation.failure) = (Some(command.line), Some(failure));
        Ok(other.is_some())
    }

    /// True if another machine states that they fail on this commit; then it notes the command that fails there.
    fn passed(&self, validation: &mut Validation, runs: &[CommandEnd]) -> Result<bool, EngineError> {
        let Some(other) = failed_elsewhere(self.engine, self.task, validation)? else { return Ok(false) };
        let failing = other.failing();
        let is_it = |run: &&CommandEnd| Some(Digest::of(run.command.line.as_bytes())) == failing;
        let Some(here) = runs.iter().find(is_it) else { return Ok(false) };
        let output = here.output.strip_prefix(self.engine.project().root()).unwrap_or(&here.output);
        validation.command = Some(here.command.line.clone());
        validation.failure = Some(TestFailure {
            what: format!("passed here, and failed on another machine (receipt {})", other.shown()),
            output: output.to_string_lossy().into_owned(),
            last_lines: Vec::new(),
        });
        Ok(true)
    }

    /// Runs the commands on the work with the protected files of the integration branch. If they fail, and the
    /// work has other ones, on the work as it is: its merge asks the human then.
    fn judge(&self) -> Result<(Sha, CommandsEnd), EngineError> {
        let (name, commit) = (self.task.as_str(), self.commit.clone());
        if !self.after.changes(&self.before) {
            return self.run_on(&commit, &self.before, name).map(|end| (commit, end));
        }
        let judged = self.engine.repo()?.judged_commit(&commit, &self.before, &self.after)?;
        let end = self.run_on(&judged, &self.before, name)?;
        if end.failed.is_none() {
            return Ok((judged, end));
        }
        self.run_on(&commit, &self.after, name).map(|end| (commit, end))
    }

    /// States what was run and how it ended.
    fn state(&self, judged: &Sha, gate: &str, end: &CommandsEnd) -> Result<Digest, EngineError> {
        let run = |end: &CommandEnd| {
            let origin = match end.command.kind {
                ValidationKind::Keeps => Origin::Project,
                ValidationKind::Shows => Origin::Task,
            };
            let output = Digest::of(&durable::read_file(&end.output).unwrap_or_default());
            CommandRun::new(&end.command.line, origin, end.exit, end.seconds, output)
        };
        let statement = liza_receipts::Validation {
            commit: self.commit.clone(),
            tree: self.engine.repo()?.tree_of(judged)?,
            commands: end.runs.iter().map(run).collect(),
            protected: gate.to_owned(),
            setup: set_up_settings(&self.config).map(|settings| Digest::of(settings.as_bytes())),
            began_with: end.began_with.clone(),
            level: level(self.engine.project(), &self.config),
            made_by: self.engine.maker()?,
        };
        let exchange = Exchange::of(self.engine.project())?;
        if let Some(exchange) = &exchange {
            let _ = exchange.bring_first_receipts();
        }
        let predicate = Predicate::Validation(statement);
        let receipt = self.engine.state(Some(self.task), Purpose::Review, predicate)?;
        if let Some(exchange) = exchange {
            // Another machine can begin a review with it, and this one learns what others have stated. If the remote does
            // not answer, what is here decides.
            let _ = exchange.send_receipts();
        }
        Ok(receipt)
    }

    /// The failure of one of the project's commands on the integration branch itself.
    fn fails_without_it(&self, command: &ValidationCommand) -> Result<Option<TestFailure>, EngineError> {
        if command.kind == ValidationKind::Shows || self.head == *self.commit {
            return Ok(None);
        }
        let name = format!("head-{}", self.head.short());
        let run = self.test_run(&self.head)?.starting(Start::BuildPlace);
        let mut end = run.run_commands(&self.head, &self.before, &name, &[command])?;
        // The next validation can begin with it. A merge leaves more: the build of all commands.
        let (built, store) = (end.built.take(), head_builds(self.engine.project()));
        let is_wanted = self.recorded_head.as_ref() == Some(&self.head) && HeadBuild::of(&store).is_none();
        if let Some(built) = built.filter(|_| is_wanted) {
            built.keep(self.engine.repo()?, &store, &self.head);
        }
        Ok(end.failed.map(|failed| failed.failure))
    }

    fn run_on(&self, commit: &Sha, gate: &Protected, name: &str) -> Result<CommandsEnd, EngineError> {
        let commands: Vec<&ValidationCommand> = self.commands.iter().collect();
        let run = self.test_run(commit)?.starting(Start::HeadBuild);
        run.run_commands(commit, gate, name, &commands)
    }

    fn test_run<'r>(&'r self, commit: &'r Sha) -> Result<TestRun<'r>, EngineError> {
        TestRun::of_review(self.engine.project(), &self.config, (self.task, commit), self.cancelled)
    }
}

/// The confinement of the commands.
fn level(project: &Project, config: &Config) -> liza_receipts::Level {
    let liza = std::env::current_exe().unwrap_or_else(|_| "liza".into());
    match known_level(project, config, &liza) {
        Ok(Level::Off) => liza_receipts::Level::Off,
        Ok(Level::Isolated) => liza_receipts::Level::Isolated,
        Ok(Level::Restricted(_)) => liza_receipts::Level::Restricted,
        Ok(Level::Unenforced(_)) | Err(_) => liza_receipts::Level::Unenforced,
    }
}
