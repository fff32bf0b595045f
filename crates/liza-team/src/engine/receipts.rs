//! Statements about what this process judged, and the check of one that is found on the branch. Only Liza makes
//! them: no session can write the reference that keeps them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::OnceLock;

use liza_core::model::{Sha, TaskId};
use liza_git::{BranchStep, GitError, MergeDraft, MergeKind, MergeMessage, PendingMerge, Repo};
use liza_ids::{Approver, Digest};
use liza_receipts::{
    Acceptance, Maker, Merge, Predicate, Purpose, Review, ReviewVerdict, Statement, Validation,
};

use crate::project::machine::machine_word;

use super::{Engine, EngineError};

/// The most statements that a merge names: they must fit into its own.
const EVIDENCE_MAX: usize = 64;

/// The words of a merge commit that its statement does not decide.
pub struct MergeWords<'a> {
    pub kind: MergeKind<'a>,
    pub title: Option<&'a str>,
    pub approved_by: Option<Approver>,
    /// True if the human's word replaces the commands that validate the task.
    pub without_validation: bool,
}

impl Engine<'_> {
    /// The programs and the machine that make statements here.
    pub fn maker(&self) -> Result<Maker, EngineError> {
        static GIT: OnceLock<String> = OnceLock::new();
        let git = match GIT.get() {
            Some(git) => git.clone(),
            None => GIT
                .get_or_init({
                    let version = self.repo()?.git().version()?;
                    move || version.to_string()
                })
                .clone(),
        };
        let machine = machine_word(self.project().folder());
        Ok(Maker { git, liza: env!("CARGO_PKG_VERSION").to_owned(), machine })
    }

    /// Adds a statement to the receipts; returns its name.
    pub fn state(
        &self,
        task: Option<&TaskId>,
        purpose: Purpose,
        predicate: Predicate,
    ) -> Result<Digest, EngineError> {
        let repo = self.repo()?;
        let statement = Statement { project: repo.project_name()?, task: task.cloned(), purpose, predicate };
        let unwritten =
            |error| GitError::io("writing a statement", repo.common_dir(), io::Error::other(error));
        let about = match &statement.predicate {
            Predicate::Validation(Validation { commit, .. }) | Predicate::Review(Review { commit, .. }) => {
                Some(commit.clone())
            }
            Predicate::Merge(_) | Predicate::Acceptance(_) => None,
        };
        let text = statement.encode_shortened().map_err(unwritten)?;
        Ok(match about {
            Some(commit) => repo.add_receipt_about(&text, &commit)?,
            None => {
                let digest = Digest::of(&text);
                repo.add_receipts(&[text])?;
                digest
            }
        })
    }

    /// The statements about a submitted commit on which its merge can rest: an approval by each of these agents, then
    /// validations that passed, the named one first. What does not fit into the statement of the merge is a further run
    /// of the same commands.
    pub fn evidence(
        &self,
        task: &TaskId,
        commit: &Sha,
        approved_by: &BTreeSet<&str>,
        validated: Option<&str>,
    ) -> Result<Vec<Digest>, EngineError> {
        let repo = self.repo()?;
        let receipts = repo.read_receipts(&repo.receipts_about(commit)?)?;
        // Those of another project can have come here with its history.
        let projects = if receipts.is_empty() { Vec::new() } else { repo.project_names()? };
        let (mut approvals, mut validations) = (BTreeMap::new(), Vec::new());
        for (digest, text) in receipts {
            let Ok(statement) = Statement::decode(&text) else { continue };
            if statement.task.as_ref() != Some(task) || !projects.contains(&statement.project) {
                continue;
            }
            match statement.predicate {
                Predicate::Review(review) if review.commit == *commit => {
                    let agent = review.agent.to_string();
                    if review.verdict == ReviewVerdict::Approved && approved_by.contains(agent.as_str()) {
                        approvals.insert(agent, digest);
                    }
                }
                Predicate::Validation(validation) if validation.commit == *commit => {
                    if validation.commands.iter().all(|run| run.exit == Some(0)) {
                        validations.push(digest);
                    }
                }
                Predicate::Review(_)
                | Predicate::Validation(_)
                | Predicate::Merge(_)
                | Predicate::Acceptance(_) => {}
            }
        }
        validations.sort_by_key(|digest| Some(digest.as_str()) != validated);
        Ok(approvals.into_values().chain(validations).take(EVIDENCE_MAX).collect())
    }

    /// States a computed merge, and gives it its commit, which names the statement. The branch does not move.
    pub fn state_merge(
        &self,
        draft: &MergeDraft,
        words: &MergeWords<'_>,
        evidence: Vec<Digest>,
    ) -> Result<PendingMerge, EngineError> {
        let (task, purpose) = match words.kind {
            MergeKind::Task(task) => (Some(task), Purpose::Merge),
            MergeKind::Sync { .. } => (None, Purpose::Sync),
            MergeKind::Finish { .. } => (None, Purpose::Finish),
        };
        let merge = Merge {
            tree: draft.tree.clone(),
            head: draft.trial.old.clone(),
            commit: draft.commit.clone(),
            approved_by: words.approved_by,
            without_validation: words.without_validation,
            evidence,
            made_by: self.maker()?,
        };
        let statement = &self.state(task, purpose, Predicate::Merge(merge))?;
        let approved_by = words.approved_by.map(|by| by.to_string());
        let (kind, title, approved_by) = (words.kind, words.title, approved_by.as_deref());
        let message = MergeMessage { kind, title, approved_by, statement };
        Ok(self.repo()?.commit_draft(draft, &message)?)
    }

    /// States that the human accepts the integration branch as it is.
    pub fn state_acceptance(&self, old: Option<&Sha>, head: &Sha) -> Result<Digest, EngineError> {
        let acceptance = Acceptance { old: old.cloned(), head: head.clone(), made_by: self.maker()? };
        self.state(None, Purpose::Accept, Predicate::Acceptance(acceptance))
    }
}

/// True if a step of the branch is the merge of a task with its own statement, and git computes the same files.
/// Without that it is a foreign commit, whatever its message says.
pub fn is_stated_merge(repo: &Repo, step: &BranchStep) -> Result<bool, GitError> {
    let (Some((task, commit)), Some(before), Some(digest)) = (&step.merged, &step.before, &step.statement)
    else {
        return Ok(false);
    };
    let receipts = repo.read_receipts(std::slice::from_ref(digest))?;
    let Some(Ok(statement)) = receipts.get(digest).map(|text| Statement::decode(text)) else {
        return Ok(false);
    };
    let Predicate::Merge(merge) = &statement.predicate else { return Ok(false) };
    let is_about = statement.purpose == Purpose::Merge
        && statement.task.as_ref() == Some(task)
        && (&merge.head, &merge.commit) == (before, commit)
        && merge.tree == repo.tree_of(&step.commit)?;
    Ok(is_about && repo.has_commit(commit)? && repo.is_merge_of(&step.commit, before, commit)?)
}
