//! submit-for-review, claim-review, submit-verdict: collects the facts about the worktree for the rules, and
//! makes the checkouts of reviews. The coder's worktree is never changed.

use std::path::Path;

use liza_agents::providers::SettingFiles;
use liza_core::model::{
    Actor, AgentCommits, AgentId, ClientSettings, CommitAuthor, Refusal, Sha, TaskId, TaskStatus,
};
use liza_core::protocol::{
    ClaimReview, MovedChange, RefundSession, ReleaseReview, ReviewClaimed, SubmitForReview, SubmitVerdict,
    Submitted, TaskReply, Verdict, WorktreeFacts,
};
use liza_core::text::one_line;
use liza_git::{Branch, FileChange, TakenBack, WorktreeState};

use crate::engine::{Engine, EngineError, Exchange, Executed, integration_branch, lock_task};

use crate::project::machine::refuse_other_machine;

use super::fetch_commits::{fetch_merged, integration_head};
use super::found_merge::refuse_found_merge;
use super::review_setup::{fault_of_task, set_up_review};
use super::review_statement::state_approval;
use super::take_work::{generation_of, take_work};
use super::validation::{trusted_gate, validate};
use super::validation_statement::check_receipt;
use super::work_facts::facts_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitter {
    Session,
    /// A person who plays an agent.
    Person,
}

pub fn submit_for_review(
    engine: &Engine<'_>,
    task: &TaskId,
    commit: &Sha,
    submitter: Submitter,
) -> Result<Executed<Submitted>, EngineError> {
    let taken = take_work(engine.project(), &engine.read(&[task])?, task)?;
    let Some(_) = taken else {
        // The rules say what is missing.
        let (task, commit) = (task.clone(), commit.clone());
        return engine.execute(SubmitForReview { task, commit, facts: None, authors: Vec::new() });
    };
    let commit = engine.repo()?.resolve(commit)?;
    refuse_reserved_path(engine, task, &commit)?;
    refuse_unpublished_submodule(engine, task, &commit)?;
    if submitter == Submitter::Session {
        refuse_client_settings(engine, task, &commit)?;
    }
    let (mut facts, authors) = (worktree_facts(engine, task)?, authors(engine, task, &commit)?);
    if let Some(facts) = &mut facts {
        facts.takes_back = takes_back(engine, task, &commit)?;
        facts.work = facts_of(engine, task, &commit)?;
    }
    let command = SubmitForReview { task: task.clone(), commit: commit.clone(), facts, authors };
    let board = engine.read(&[task])?;
    let Some(exchange) = Exchange::with(engine.project(), &board)? else { return engine.execute(command) };
    // Refused work is not sent.
    engine.check(engine.project().stop_files(), command.clone())?;
    // Until the blackboard has the submission, no heartbeat may put other work in its place.
    let sender = exchange.sender(task)?;
    sender.send(generation_of(&board, task), &commit)?;
    engine.execute(command)
}

/// Refuses a commit whose files would overwrite Liza's own: checked out in the project, they would replace the blackboard.
pub(super) fn refuse_reserved_path(
    engine: &Engine<'_>,
    task: &TaskId,
    commit: &Sha,
) -> Result<(), EngineError> {
    match engine.repo()?.reserved_path(commit)? {
        Some(path) => Err(Refusal::ReservedPath { task: task.clone(), commit: commit.clone(), path }.into()),
        None => Ok(()),
    }
}

/// Refuses a commit with a submodule whose commit no one else could fetch.
fn refuse_unpublished_submodule(engine: &Engine<'_>, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
    let Some(base) = base_of(engine, task)? else { return Ok(()) };
    match engine.repo()?.unpublished_submodule(task, &base, commit)? {
        Some((path, commit)) => {
            let path = path.to_string_lossy().into_owned();
            Err(Refusal::UnpublishedSubmodule { task: task.clone(), path, commit }.into())
        }
        None => Ok(()),
    }
}

/// The authors of the commits that the work adds to the integration branch and the main branch.
fn authors(engine: &Engine<'_>, task: &TaskId, commit: &Sha) -> Result<Vec<CommitAuthor>, EngineError> {
    let board = engine.read(&[task])?;
    if board.config()?.agent_commits == AgentCommits::Person {
        return Ok(Vec::new());
    }
    let repo = engine.repo()?;
    let mut known = vec![integration_branch(&board)?];
    let main = board.config()?.main_branch.as_deref().and_then(|name| name.parse::<Branch>().ok());
    known.extend(main.filter(|main| repo.tip(main).is_ok_and(|tip| tip.is_some())));
    Ok(repo.authors(&known, commit)?)
}

/// Refuses work that configures agent programs: the reviewer's would obey the code under review. A link out
/// of the repository can lead to a repository that configures its git so.
fn refuse_client_settings(engine: &Engine<'_>, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
    let board = engine.read(&[task])?;
    let config = board.config()?;
    if config.client_settings == ClientSettings::Allow {
        return Ok(());
    }
    let repo = engine.repo()?;
    let changes = repo.changes_since(&integration_branch(&board)?, commit)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let settings = SettingFiles::of(config);
    if let Some(path) = changes.keys().find(|path| settings.contains(path)) {
        return Err(Refusal::ClientSettingsChanged { task: task.clone(), path: text(path) }.into());
    }
    match repo.outside_link(&changes)? {
        Some(path) => Err(Refusal::LinkOutside { task: task.clone(), path: text(&path) }.into()),
        None => Ok(()),
    }
}

/// The merges in the work that take back changes of the integration branch, in words for people.
fn takes_back(engine: &Engine<'_>, task: &TaskId, commit: &Sha) -> Result<Vec<String>, EngineError> {
    const SHOWN: usize = 10;
    let board = engine.read(&[task])?;
    let Some(head) = integration_head(engine.project(), &board)? else { return Ok(Vec::new()) };
    let words = |taken: TakenBack| {
        let names: Vec<_> = taken.paths.iter().take(SHOWN).map(|path| path.to_string_lossy()).collect();
        let what = match taken.paths.len() {
            0 => "cannot be compared with git's own merge".to_owned(),
            all if all > SHOWN => format!("{} and {} more", names.join(", "), all - SHOWN),
            _ => names.join(", "),
        };
        one_line(&format!("merge {}: {what}", taken.merge.short()), 1_000)
    };
    Ok(engine.repo()?.taken_back(&head, commit)?.into_iter().take(SHOWN).map(words).collect())
}

/// Claims a review, and checks out exactly the submitted commit.
pub fn claim_review(
    engine: &Engine<'_>,
    task: &TaskId,
    reviewer: AgentId,
) -> Result<Executed<ReviewClaimed>, EngineError> {
    refuse_found_merge(engine, task, None)?;
    refuse_other_machine(engine.project(), &engine.read(&[])?, reviewer)?;
    if let Some(exchange) = Exchange::of(engine.project())? {
        bring_submission(engine, &exchange, task)?;
    }
    let integration = integration_head(engine.project(), &engine.read(&[])?)?;
    let gate = trusted_gate(engine, task)?;
    let claim = ClaimReview { task: task.clone(), reviewer, setup_failure: None, integration, gate };
    let claimed = engine.execute(claim.clone())?;
    let (commit, validates) = (claimed.reply.commit.clone(), claimed.reply.validates);
    if let Err(error) = check_out(engine, task, &claimed.reply.commit) {
        // Before it is given back, so that no other agent tries the same meanwhile.
        let fault = fault_of_task(engine, task, &claimed.reply.commit);
        let _ = engine.execute(ReleaseReview { task: task.clone(), reviewer });
        // No session has run.
        if !validates {
            let _ = engine.execute(RefundSession { agent: reviewer, task: Some(task.clone()) });
        }
        return match fault? {
            // Refused, since the task goes back to its coder.
            setup_failure @ Some(_) => engine.execute(ClaimReview { setup_failure, ..claim }),
            None => Err(error),
        };
    }
    if validates { validate(engine, task, reviewer, &commit) } else { Ok(claimed) }
}

/// Fetches the submitted commit; `None` if nothing is submitted.
fn bring_submission(
    engine: &Engine<'_>,
    exchange: &Exchange<'_>,
    task: &TaskId,
) -> Result<Option<Sha>, EngineError> {
    let board = engine.read(&[task])?;
    // The record of a task that a person set to APPROVED may lack its commit.
    let Ok(TaskStatus::ReadyForReview { commit, .. }) = board.task(task).map(|task| task.status) else {
        return Ok(None);
    };
    exchange.bring_submission(task, &commit)?;
    Ok(Some(commit))
}

/// Makes the checkout of a review, in the place of an earlier one.
fn check_out(engine: &Engine<'_>, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
    let _lock = lock_task(engine.project(), task)?;
    let board = engine.read(&[])?;
    let repo = engine.repo()?;
    repo.create_review(task, commit, &integration_branch(&board)?)?;
    set_up_review(engine, task, commit)
}

/// Submits a verdict. For either verdict, a checkout that differs from the submitted commit is made again.
pub fn submit_verdict(
    engine: &Engine<'_>,
    task: &TaskId,
    verdict: Verdict,
    commit: Option<&Sha>,
) -> Result<Executed<TaskReply>, EngineError> {
    let commit =
        commit.map(|commit| engine.repo()?.resolve(commit).map_err(EngineError::from)).transpose()?;
    let facts = review_facts(engine, task)?;
    let moved = match &verdict {
        // The human's verdict needs no second look.
        Verdict::Approved(_) if engine.actor() != Actor::Human => moved_change(engine, task)?,
        Verdict::Approved(_) | Verdict::WithoutValidation(_) | Verdict::Rejected(_) => None,
    };
    let command = SubmitVerdict { task: task.clone(), verdict, facts, commit, moved };
    if let (Verdict::Approved(_), Some(agent)) = (&command.verdict, engine.actor().agent())
        // What is refused is not stated; the command below says why.
        && engine.check(engine.project().stop_files(), command.clone()).is_ok()
    {
        check_receipt(engine, task)?;
        state_approval(engine, task, agent)?;
    }
    let result = engine.execute(command);
    let refusal = result.as_ref().err().and_then(EngineError::refusal);
    if matches!(refusal, Some(Refusal::HeadMoved { .. } | Refusal::ReviewTouched { .. }))
        && let TaskStatus::ReadyForReview { commit, .. } = &engine.read(&[task])?.task(task)?.status
    {
        check_out(engine, task, commit)?;
    }
    result
}

/// The difference between the change and the one that the reviewer has read, if there is one. Costs no git
/// while the integration branch has not moved.
fn moved_change(engine: &Engine<'_>, task: &TaskId) -> Result<Option<MovedChange>, EngineError> {
    let board = engine.read(&[task])?;
    let TaskStatus::ReadyForReview { commit, review, .. } = &board.task(task)?.status else {
        return Ok(None);
    };
    let Some(before) = review.as_ref().and_then(|review| review.head.clone()) else { return Ok(None) };
    let head = integration_head(engine.project(), &board)?.filter(|head| *head != before);
    let Some(head) = head else { return Ok(None) };
    let repo = engine.repo()?;
    fetch_merged(engine.project(), &[&before])?;
    let what = match repo.has_commit(&before)? {
        true => repo.moved_change(&before, &head, commit)?,
        false => vec!["the integration branch was replaced".to_owned()],
    };
    Ok((!what.is_empty()).then_some(MovedChange { head, what }))
}

/// The state of the review's checkout; without one, as in a manual review, of the task's worktree, or of the
/// submitted commit if the worktree may be on another machine.
fn review_facts(engine: &Engine<'_>, task: &TaskId) -> Result<Option<WorktreeFacts>, EngineError> {
    let base = base_of(engine, task)?;
    let review = match &base {
        Some(base) => engine.repo()?.review_state(task, base)?,
        None => None,
    };
    if let Some(state) = review {
        return Ok(Some(facts(state)));
    }
    let Some(exchange) = Exchange::of(engine.project())? else { return worktree_facts(engine, task) };
    let submitted = bring_submission(engine, &exchange, task)?;
    Ok(submitted.map(WorktreeFacts::clean))
}

/// `None` if there is no worktree.
pub fn worktree_facts(engine: &Engine<'_>, task: &TaskId) -> Result<Option<WorktreeFacts>, EngineError> {
    let repo = engine.repo()?;
    let Some(head) = repo.worktree_head(task)? else { return Ok(None) };
    // Old files may have no base; then no commit has to be contained.
    let base = base_of(engine, task)?.unwrap_or(head);
    Ok(Some(facts(repo.worktree_state(task, &base)?)))
}

fn base_of(engine: &Engine<'_>, task: &TaskId) -> Result<Option<Sha>, EngineError> {
    let board = engine.read(&[task])?;
    Ok(board.body(task).ok().and_then(|body| body.record().base_commit.clone()))
}

fn facts(state: WorktreeState) -> WorktreeFacts {
    let name = |change: &FileChange| change.path().to_string_lossy().into_owned();
    WorktreeFacts {
        dirty: state.changes.iter().map(name).collect(),
        changed_tracked: state.tracked_changes().map(name).collect(),
        on_task_branch: state.on_task_branch,
        has_base: state.has_base,
        ..WorktreeFacts::clean(state.head)
    }
}
