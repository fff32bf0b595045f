//! Gathers the facts for the comparison of blackboard, log, archive, receipts and git. Reads only.

use std::collections::{BTreeMap, BTreeSet};

use liza_core::audit::{AuditFacts, Contradiction, LineMerge, LineStep, LoggedWrite, StatedApproval, audit};
use liza_core::model::{State, TaskId, TaskRecord, Timestamp};
use liza_core::rules::invariants;
use liza_git::Repo;
use liza_ids::{Digest, Sha};
use liza_receipts::{Claim, LineCommit, Predicate, ReviewVerdict, Statement};
use liza_store::{LogRecord, Store, yaml};

use crate::engine::{EngineError, integration_branch};
use crate::project::Project;

use super::has_to_follow;

/// Everything that differs, for the line of the integration branch and all receipts.
pub fn contradictions(
    project: &Project,
    line: &[LineCommit],
    receipts: &BTreeMap<Digest, Vec<u8>>,
    now: Timestamp,
) -> Result<Vec<Contradiction>, EngineError> {
    let (store, repo) = (project.store(), project.repo()?);
    let state = &store.snapshot()?;
    let log = store.log_reader().read_new()?;
    // Other commands may have written since: the log must not be ahead of what is there now.
    let revision = store.read_parts(&[], &[])?.revision;
    let log: Vec<LoggedWrite<'_>> = log.iter().map(logged).collect();
    let line: Vec<LineStep> = line.iter().map(step).collect();
    let facts = AuditFacts {
        state,
        violations: &invariants::validate(state, &store.disk(), now),
        archive: &archive(store, state)?,
        log: &log,
        revision,
        line: &line,
        off_branch: &off_branch(project, repo, state, &line)?,
        kept: &repo.kept_merges()?,
        approvals: &approvals(receipts),
        edited: &edited(receipts),
    };
    Ok(audit(&facts))
}

fn logged(record: &LogRecord) -> LoggedWrite<'_> {
    let LogRecord { timestamp, agent, action, task, detail: _, revision } = record;
    LoggedWrite { time: *timestamp, agent, action, task: task.as_deref(), revision: *revision }
}

fn step(commit: &LineCommit) -> LineStep {
    let merge = match (&commit.claim, &commit.merged) {
        (Some(Claim::Task(task)), Some(merged)) => task.parse().ok().map(|task| LineMerge {
            task,
            commit: merged.clone(),
            approved_by: commit.approved_by.clone(),
        }),
        (Some(Claim::Task(_) | Claim::Sync | Claim::Finish) | None, _) => None,
    };
    LineStep { commit: commit.commit.clone(), merge }
}

fn archive(store: &Store, state: &State) -> Result<BTreeMap<TaskId, Option<TaskRecord>>, EngineError> {
    let read = |id: &TaskId| {
        let text = store.archived_task(id)?;
        Ok((id.clone(), text.and_then(|text| yaml::read(&text).ok())))
    };
    state.board.archived.keys().map(read).collect()
}

/// The commits of the blackboard that the branch does not contain; none while the branch has yet to follow the remote.
fn off_branch(
    project: &Project,
    repo: &Repo,
    state: &State,
    line: &[LineStep],
) -> Result<BTreeSet<Sha>, EngineError> {
    let tip = repo.tip(&integration_branch(&state.board)?)?;
    let Some(tip) = tip.filter(|_| has_to_follow(project, state) != Some(true)) else {
        return Ok(BTreeSet::new());
    };
    let head = state.board.goal.ready().and_then(|goal| goal.integration_head.clone());
    let records = state.bodies().map(|(_, body)| body.record());
    let named = records.flat_map(|record| [record.merge_commit.clone(), record.base_commit.clone()]);
    let mut named: BTreeSet<Sha> = named.flatten().chain(head).collect();
    // Nearly all are on the line: git is asked about the rest.
    let on_line: BTreeSet<&Sha> = line.iter().map(|step| &step.commit).collect();
    named.retain(|commit| !on_line.contains(commit));
    let is_off = |commit: &Sha| match repo.full_hash(commit) {
        Ok(full) if repo.has_commit(&full)? => Ok(!repo.is_ancestor(&full, &tip)?),
        Ok(_) | Err(_) => Ok(true),
    };
    let off = named.into_iter().map(|commit| is_off(&commit).map(|is_off| is_off.then_some(commit)));
    off.filter_map(Result::transpose).collect()
}

fn edited(receipts: &BTreeMap<Digest, Vec<u8>>) -> Vec<Digest> {
    let edited = receipts.iter().filter(|(digest, text)| Digest::of(text) != **digest);
    edited.map(|(digest, _)| digest.clone()).collect()
}

fn approvals(receipts: &BTreeMap<Digest, Vec<u8>>) -> BTreeSet<StatedApproval> {
    let statements = receipts.iter().filter(|(digest, text)| Digest::of(text) == **digest);
    let statements = statements.filter_map(|(digest, text)| Some((digest, Statement::decode(text).ok()?)));
    let statements: Vec<(&Digest, Statement)> = statements.collect();
    let evidence = |statement: &Statement| match &statement.predicate {
        Predicate::Merge(merge) => merge.evidence.clone(),
        Predicate::Review(_) | Predicate::Validation(_) | Predicate::Acceptance(_) => Vec::new(),
    };
    let named: BTreeSet<Digest> = statements.iter().flat_map(|(_, statement)| evidence(statement)).collect();
    let stated = statements.into_iter().filter_map(|(digest, statement)| match statement.predicate {
        Predicate::Review(review) if review.verdict == ReviewVerdict::Approved => Some(StatedApproval {
            task: statement.task?,
            agent: review.agent.to_string(),
            commit: review.commit,
            is_named: named.contains(digest),
        }),
        Predicate::Review(_) | Predicate::Validation(_) | Predicate::Merge(_) | Predicate::Acceptance(_) => {
            None
        }
    });
    stated.collect()
}
