//! The statements of validations as evidence: about exactly this commit, these commands and these protected files. Only reads.

use liza_core::model::{Board, Refusal, Sha, TaskId, Validation};
use liza_core::rules::validation::commands;
use liza_ids::Digest;
use liza_receipts::{Predicate, Statement};

use crate::engine::{Engine, EngineError, Exchange};
use crate::project::machine::machine_word;

use super::fetch_commits::integration_head;

/// The digits of a receipt's name that people are shown.
const RECEIPT_SHOWN: usize = 12;

/// Refuses an agent's approval of work whose validation has no statement, or another one than the blackboard says.
pub(super) fn check_receipt(engine: &Engine<'_>, task: &TaskId) -> Result<(), EngineError> {
    let board = engine.read(&[task])?;
    let record = board.body(task)?.record();
    if commands(board.config()?, record).is_empty() {
        return Ok(());
    }
    let (Some(validated), Some(commit)) = (&record.validated, &record.review_commit) else { return Ok(()) };
    let counts =
        stated(engine, task, commit, validated)?.is_some() && ran_on_work(engine, &board, commit, validated)?;
    let refused = || Refusal::NoReceipt { task: task.clone(), commit: commit.clone() }.into();
    if counts { Ok(()) } else { Err(refused()) }
}

/// The statement that says the same as the blackboard: these commands have passed on this tree of this commit, under
/// these protected files. What the blackboard says alone is nobody's evidence.
pub(super) fn stated(
    engine: &Engine<'_>,
    task: &TaskId,
    commit: &Sha,
    validated: &Validation,
) -> Result<Option<liza_receipts::Validation>, EngineError> {
    let receipt: Option<Digest> = validated.receipt.as_ref().and_then(|receipt| receipt.parse().ok());
    let (Some(receipt), repo) = (receipt, engine.repo()?) else { return Ok(None) };
    if repo.read_receipts(std::slice::from_ref(&receipt))?.is_empty()
        && let Some(exchange) = Exchange::of(engine.project())?
    {
        exchange.bring_receipts()?;
    }
    let named = same_runs_of(engine, task, validated, std::slice::from_ref(&receipt))?;
    let stated = named.into_iter().find(SameRun::passed).map(|run| run.stated);
    Ok(stated.filter(|stated| stated.commit == *commit && Some(&stated.tree) == validated.tree.as_ref()))
}

/// A statement about a run of the commands of a validation, or of the first of them, on its commit and under its protected files.
pub(super) struct SameRun {
    name: Digest,
    stated: liza_receipts::Validation,
    /// True if it is about all commands.
    is_whole: bool,
}

impl SameRun {
    fn passed(&self) -> bool {
        self.is_whole && self.failing().is_none()
    }

    /// The digest of the command that failed.
    pub(super) fn failing(&self) -> Option<Digest> {
        let failed = self.stated.commands.iter().find(|run| run.exit != Some(0));
        failed.map(|run| run.digest.clone())
    }

    pub(super) fn shown(&self) -> String {
        self.name.as_str().chars().take(RECEIPT_SHOWN).collect()
    }
}

/// A statement that the same commands passed on this commit: made by a run whose claim was lost, on this machine or another one.
pub(super) fn passed_before(
    engine: &Engine<'_>,
    task: &TaskId,
    validation: &Validation,
) -> Result<Option<SameRun>, EngineError> {
    Ok(same_runs(engine, task, validation)?.into_iter().find(SameRun::passed))
}

/// A statement of another machine that they failed there; `None` once the human has let the commit be tried again. A failure
/// on this machine is none: a later pass is a new try.
pub(super) fn failed_elsewhere(
    engine: &Engine<'_>,
    task: &TaskId,
    validation: &Validation,
) -> Result<Option<SameRun>, EngineError> {
    let board = engine.read(&[task])?;
    let retried = board.body(task)?.record().validation_retried.as_ref();
    if Exchange::of(engine.project())?.is_none() || retried == Some(&validation.commit) {
        return Ok(None);
    }
    let here = machine_word(engine.project().folder());
    let is_contrary = |run: &SameRun| run.stated.made_by.machine != here && run.failing().is_some();
    Ok(same_runs(engine, task, validation)?.into_iter().find(is_contrary))
}

/// All statements about the same run.
fn same_runs(
    engine: &Engine<'_>,
    task: &TaskId,
    validation: &Validation,
) -> Result<Vec<SameRun>, EngineError> {
    let about = engine.repo()?.receipts_about(&validation.commit)?;
    same_runs_of(engine, task, validation, &about)
}

/// Those with one of these names.
fn same_runs_of(
    engine: &Engine<'_>,
    task: &TaskId,
    validation: &Validation,
    names: &[Digest],
) -> Result<Vec<SameRun>, EngineError> {
    let repo = engine.repo()?;
    let texts = repo.read_receipts(names)?;
    // Those of another project can have come here with its history.
    let projects = if texts.is_empty() { Vec::new() } else { repo.project_names()? };
    let lines: Vec<Digest> = validation.commands.iter().map(|line| Digest::of(line.as_bytes())).collect();
    let same = |(name, text): (Digest, Vec<u8>)| {
        let statement = Statement::decode(&text).ok()?;
        let Predicate::Validation(stated) = statement.predicate else { return None };
        // A run ends with the command that fails.
        let ran = stated.commands.iter().map(|run| &run.digest);
        let is_same = statement.task.as_ref() == Some(task)
            && projects.contains(&statement.project)
            && stated.commit == validation.commit
            && stated.protected == validation.gate
            && ran.eq(lines.iter().take(stated.commands.len()));
        let is_whole = stated.commands.len() == lines.len();
        is_same.then_some(SameRun { name, stated, is_whole })
    };
    Ok(texts.into_iter().filter_map(same).collect())
}

/// True if the commands ran on the files of the commit, or on these with the protected ones of the integration branch.
/// If those have changed since, the second cannot be made again, and the merge runs the commands anyway.
fn ran_on_work(
    engine: &Engine<'_>,
    board: &Board,
    commit: &Sha,
    validated: &Validation,
) -> Result<bool, EngineError> {
    let repo = engine.repo()?;
    if validated.tree == Some(repo.tree_of(commit)?) {
        return Ok(true);
    }
    let Some(head) = integration_head(engine.project(), board)? else { return Ok(false) };
    let patterns = board.config()?.gate_patterns();
    let (before, after) = (repo.protected(&head, &patterns)?, repo.protected(commit, &patterns)?);
    if repo.digest(&before)? != validated.gate {
        return Ok(true);
    }
    let judged = repo.judged_commit(commit, &before, &after)?;
    Ok(validated.tree == Some(repo.tree_of(&judged)?))
}
